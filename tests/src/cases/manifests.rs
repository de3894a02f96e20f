//! Manifests with mistakes: the cause is named, by the tool before boot and by `init` when booted
//! all the same.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use machine::manifests::with_guest;
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::build;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("manifest-mistakes-are-named-before-boot", before_boot),
    case("manifest-mistakes-are-named-by-init", by_init),
    case(
        "manifest-regions-over-configuration-space-are-refused",
        regions_over_configuration,
    ),
];

/// A second personality like the one of Linux programs, on the same disk.
const OTHER: &str = "
[domain.other]
image = \"linux\"
grants = { spaces = \"kernel.spaces\", archive = \"kernel.archive\", disk = \"vfs.respawn\" }
";

/// The default manifest with a mistake, and what must be named.
fn mistakes(bench: &Bench<'_>) -> Result<Vec<(String, &'static str)>> {
    let good = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let replaced = |from: &str, to: &str| -> Result<String> {
        ensure!(good.contains(from), "the default manifest has no {from:?}");
        Ok(good.replacen(from, to, 1))
    };
    Ok(vec![
        (replaced("device = \"block\"", "device = \"blok\"")?, "blok"),
        (
            replaced(
                "driver = \"virtio-blk.respawn\"",
                "drover = \"virtio-blk.respawn\"",
            )?,
            "drover",
        ),
        (
            replaced("image = \"block-shadow\"", "image = \"block-shade\"")?,
            "block-shade",
        ),
        (replaced("[domain.ext2]", "[domain.ext2")?, "line"),
        (replaced("kernel.archive", "kernel.archives")?, "archives"),
        // What `vfs` notes for one it would take for the other's.
        (with_guest(&good)? + OTHER, "`other` and `linux`"),
    ])
}

fn before_boot(bench: &Bench<'_>) -> Result<()> {
    for (text, name) in mistakes(bench)? {
        let file = bench.folder.join("line.toml");
        fs::write(&file, text)?;
        let error = build::build(&bench.site.project, Some(&file)).err();
        let error = error
            .with_context(|| format!("the mistake {name:?} was not found"))?
            .to_string();
        ensure!(
            error.contains(name) && error.contains("line.toml:"),
            "expected {name:?} and the place: {error}"
        );
    }
    Ok(())
}

/// Nothing hangs: what can be started is started, or the machine says why not.
fn by_init(bench: &Bench<'_>) -> Result<()> {
    for (text, name) in mistakes(bench)? {
        expect_in_log(&bench.machine_by(&text)?, name)?;
    }
    Ok(())
}

/// Boots and waits until the log has `text`.
fn expect_in_log(machine: &Machine, text: &str) -> Result<()> {
    let session = Session::start(machine, false)?;
    let deadline = Instant::now() + LIMIT;
    while !session.guest.log().contains(text) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
    let log = session.guest.log();
    ensure!(log.contains(text), "expected {text:?} in the log:\n{log}");
    Ok(())
}

/// The disk's registers are placed where the configuration space of buses is on which there is
/// nothing, so that nobody has it: the kernel does not give it to the driver for that.
fn regions_over_configuration(bench: &Bench<'_>) -> Result<()> {
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let window = "window=0xc0000000,0x10000000";
    ensure!(
        text.contains(window),
        "the default manifest has no {window}"
    );
    let mut machine = bench.machine_by(&text.replacen(window, "window=0xb8000000,0x8000000", 1))?;
    machine.disk = Some(bench.disk()?);
    expect_in_log(
        &machine,
        "the device cannot be used: the PCI bus says: Resource(Sensitive)",
    )
}
