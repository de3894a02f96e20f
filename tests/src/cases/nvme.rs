//! NVMe in place of virtio: the driver's queue, errors of the disk, and the whole system on it.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lab::fuzz::queues::manifest_for;
use machine::nbd::Server;
use machine::qemu::Machine;

use super::{Case, case};
use crate::bench::{Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("nvme-outlives-driver-and-submitter", gate),
    case("nvme-carries-out-requests", requests),
    case("nvme-tells-the-error-of-one-request", errors),
    case("nvme-carries-the-system-over-crashes", system),
    case("nvme-resets-a-controller-that-does-not-answer", stalled),
];

/// The gate of block queues with this driver, in small.
fn gate(bench: &Bench<'_>) -> Result<()> {
    let mut command = bench.tool("fuzz")?;
    let words = "queues --driver nvme --count 1 --kills 40";
    let output = command.args(words.split_whitespace()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !text.contains(" 0 findings") {
        bail!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// A system with an NVMe disk of a mebibyte and no file system on it.
fn bare(bench: &Bench<'_>) -> Result<Machine> {
    let services = "disk = \"block\"\nobjects = \"kernel.objects\"\n";
    let section = "[program.queuetry]\nservices = [\"disk\", \"objects\"]\n";
    let mut machine = bench.machine_by(&(manifest_for("nvme", "", services) + section))?;
    let disk = bench.folder.join("bare.img");
    fs::write(&disk, vec![7; 1 << 20])?;
    machine.nvme = Some(disk);
    Ok(machine)
}

/// Has `machine` try requests; what the answers are.
fn try_on(bench: &Bench<'_>, machine: Machine, words: &str) -> Result<(Vec<String>, String)> {
    let line = format!("/boot/testing/queuetry {words}");
    let answer = bench.exec_within(LIMIT, machine, &line)?.status(0)?;
    let lines = answer.stdout.lines().map(|line| line.trim().to_string());
    Ok((lines.collect(), answer.log))
}

fn expect(lines: &[String], wanted: &[&str]) -> Result<()> {
    ensure!(
        lines == wanted,
        "{wanted:#?} were expected, came {lines:#?}"
    );
    Ok(())
}

/// Each operation, with one, two and many pages, and what is wrong with a request.
fn requests(bench: &Bench<'_>) -> Result<()> {
    let machine = bare(bench)?;
    let disk = machine.nvme.clone().expect("it has one");
    let words = "r:0:1 w:8:1 W:16:15 w:40:200 w:1000:1024 f then r:8:1 r:16:15 r:40:200 r:1000:1024 r:7:2 \
                 then z:16:15 d:300:8 then r:16:15 then r:2047:2 w:0:0 r:0:1025 r:18446744073709551615:2 r:2047:1";
    let (lines, log) = try_on(bench, machine, words)?;
    let wanted = [
        "r:0:1 Done 7",
        "w:8:1 Done",
        "W:16:15 Done",
        "w:40:200 Done",
        "w:1000:1024 Done",
        "f Done",
        "r:8:1 Done 65",
        "r:16:15 Done 66",
        "r:40:200 Done 67",
        "r:1000:1024 Done 68",
        "r:7:2 Done mixed",
        "z:16:15 Done",
        "d:300:8 Done",
        "r:16:15 Done 0",
        "r:2047:2 OutOfRange",
        "w:0:0 OutOfRange",
        "r:0:1025 OutOfRange",
        "r:18446744073709551615:2 OutOfRange",
        "r:2047:1 Done 7",
    ];
    expect(&lines, &wanted)?;
    ensure!(log.contains("nvme: health: "), "{log}");
    let image = fs::read(disk)?;
    let bytes = |from: usize, count: usize| &image[from * 512..(from + count) * 512];
    ensure!(bytes(8, 1).iter().all(|byte| *byte == 65));
    ensure!(bytes(16, 15).iter().all(|byte| *byte == 0));
    ensure!(bytes(40, 200).iter().all(|byte| *byte == 67));
    ensure!(bytes(1000, 1024).iter().all(|byte| *byte == 68));
    ensure!(bytes(9, 7).iter().all(|byte| *byte == 7));
    Ok(())
}

/// A sector that cannot be read and one that cannot be written: requests that touch them say so,
/// and no other.
fn errors(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bare(bench)?;
    let rules = bench.folder.join("rules");
    let rule = |kind: &str, sector: u32| {
        format!(
            "[inject-error]\nevent = \"none\"\niotype = \"{kind}\"\nerrno = \"5\"\nonce = \"off\"\nsector = \"{sector}\"\n"
        )
    };
    fs::write(&rules, rule("read", 24) + &rule("write", 80))?;
    machine.disk_faults = Some(rules);
    let words =
        "r:0:8 r:16:16 r:32:8 w:64:8 w:72:16 w:96:8 f then r:24:1 r:25:1 w:80:1 w:81:1 r:64:8";
    let (lines, _) = try_on(bench, machine, words)?;
    let wanted = [
        "r:0:8 Done 7",
        "r:16:16 Device",
        "r:32:8 Done 7",
        "w:64:8 Done",
        "w:72:16 Device",
        "w:96:8 Done",
        "f Done",
        "r:24:1 Device",
        "r:25:1 Done 7",
        "w:80:1 Device",
        "w:81:1 Done",
        "r:64:8 Done 67",
    ];
    expect(&lines, &wanted)
}

/// A write that takes 14 seconds: the controller is asked to abort it, which QEMU's does not do,
/// and is reset. The shadow submits it again to the next instance of the driver.
fn stalled(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bare(bench)?;
    let content = fs::read(machine.nvme.take().expect("it has one"))?;
    let socket = std::env::temp_dir().join(format!("trefoil-nvme-{}", std::process::id()));
    let server = Server::start(content, &socket)?;
    server.stall(Duration::from_secs(14));
    machine.served = Some(socket);
    machine.serves_nvme = true;
    let words = "w:8:8 r:64:8 w:128:8 f then r:8:8 r:128:8";
    let (lines, log) = try_on(bench, machine, words)?;
    let wanted = [
        "w:8:8 Done",
        "r:64:8 Done 7",
        "w:128:8 Done",
        "f Done",
        "r:8:8 Done 64",
        "r:128:8 Done 66",
    ];
    expect(&lines, &wanted)?;
    for text in [
        "nvme: a command takes long: the controller is asked to abort it",
        "nvme: the controller does not answer",
    ] {
        ensure!(log.contains(text), "no {text:?} in\n{log}");
    }
    Ok(())
}

/// The whole system on such a disk. Its driver crashes under reads and under writes.
fn system(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let mut machine = bench.machine_by(&machine::nvme::manifest(&text)?)?;
    machine.nvme = Some(disk.clone());
    machine.processors = 2;
    let line = "sha256sum /big & crash nvme; wait; cp /big /copy & crash nvme; wait; sync; \
                cmp /big /copy && echo same; crash nvme; echo more >> /copy; sync; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let sum = host_sum(&bench.site.root.join("big"))?;
    let answer = answer.shows(&format!("{sum}  /big\n"))?.shows("same\n")?;
    let lives = answer.log.matches("init: nvme: instance").count();
    ensure!(lives >= 3, "{lives} lives of the driver\n{}", answer.log);
    // One for each processor, and one that is polled.
    let pairs = answer.log.matches("3 pairs of queues").count();
    ensure!(pairs >= 3, "{pairs} of {lives}\n{}", answer.log);
    bench.expect_clean(&disk)?;
    let copied = bench.host_read(&disk, "/copy")?;
    let mut wanted = fs::read(bench.site.root.join("big"))?;
    wanted.extend(b"more\n");
    ensure!(copied == wanted, "/copy is damaged");
    Ok(())
}
