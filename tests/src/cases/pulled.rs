//! Disks that are pulled out while they are in use: whoever needs them is told so, nothing else is
//! touched, and what is left of them can be got rid of.

use std::fs;

use anyhow::{Result, ensure};

use super::mounts::two_disks;
use super::{Case, case};
use crate::bench::{Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("pulled-out-disk-fails-its-own-users-alone", second_disk),
    case(
        "pulled-out-disk-of-the-system-leaves-the-rest",
        whole_system,
    ),
];

/// What is said of a disk that is not there.
const DOWN: &str = "the file system or its disk is down";

/// A second disk, on virtio, with files that are read and written.
fn second_disk(bench: &Bench<'_>) -> Result<()> {
    let (mut machine, second) = two_disks(bench, &["-j", "-J", "size=4"])?;
    machine.has_slot = true;
    let mut session = bench.session(&machine)?;
    let mut expect = |line: &str, texts: &[&str]| -> Result<String> {
        let said = session.run(line, LIMIT)?;
        for text in texts {
            ensure!(said.contains(text), "{line}: no {text:?} in\n{said}");
        }
        Ok(said)
    };
    expect("mkdir /mnt && mount vdb /mnt && sync", &[])?;
    expect("cat /mnt/sub/hello", &["second disk"])?;
    // The reader is in the midst of it.
    expect(
        "while cat /mnt/data > /dev/null; do cp /text/a.txt /mnt/w; done &",
        &[],
    )?;
    session.guest.pull_out()?;
    let mut expect = |line: &str, texts: &[&str]| -> Result<String> {
        let said = session.run(line, LIMIT)?;
        for text in texts {
            ensure!(said.contains(text), "{line}: no {text:?} in\n{said}");
        }
        Ok(said)
    };
    expect(
        "sync; echo dirty > /mnt/dirty; sync || echo refused",
        &[DOWN, "refused"],
    )?;
    expect("kill %1; wait; umount /mnt", &[DOWN, "-f"])?;
    // The other disk is not concerned.
    let said = expect(
        "sha256sum /big; cp /big /copy && cmp /copy /big && echo same; domains | grep -c ' 0 *$'",
        &["same\n"],
    )?;
    let sum = host_sum(&bench.site.root.join("big"))?;
    ensure!(said.contains(&sum), "{said}");
    expect(
        "umount -f /mnt && mount | grep -c vdb; ls /mnt; sync && echo whole",
        &["0\nwhole\n"],
    )?;
    expect("mount vdb /mnt; lsblk", &["there is no such device", "vda"])?;
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(machine.disk.as_ref().expect("it has one"))?;
    // What was there before is there.
    ensure!(bench.host_read(&second, "/sub/hello")? == b"second disk\n");
    Ok(())
}

/// The disk with everything, on NVMe: what does not need it goes on.
fn whole_system(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let mut machine = bench.machine_by(&machine::nvme::manifest(&text)?)?;
    machine.nvme = Some(disk.clone());
    machine.has_slot = true;
    let mut session = bench.session(&machine)?;
    session.run("sha256sum /big; echo kept > /tmp/note; sync", LIMIT)?;
    session.guest.pull_out()?;
    let said = session.run("cat /text/a.txt > /dev/null; sync; echo status $?", LIMIT)?;
    ensure!(said.contains(DOWN), "{said}");
    let said = session.run(
        "/boot/bin/cat /tmp/note; /boot/bin/ls /boot; echo alive",
        LIMIT,
    )?;
    ensure!(said.contains("kept") && said.contains("alive"), "{said}");
    ensure!(said.contains("testing"), "{said}");
    session.run("/boot/bin/poweroff", LIMIT)?;
    session.type_line(b"/boot/bin/poweroff -f")?;
    session.end(LIMIT)?;
    ensure!(
        bench.host_read(&disk, "/text/b.txt")? == fs::read(bench.site.root.join("text/b.txt"))?
    );
    Ok(())
}
