//! What is left of a file service that has died does nothing to the files of the next one: calls
//! that are late, and requests that the disk has not answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::manifests;
use machine::qemu::Machine;

use super::mapping::{Kept, said_until};
use super::recovery::{MANY_RESTARTS, expect_no_restart, expect_restarts};
use super::{Case, case};
use super::{deadly, storing};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("fence-before-a-late-change-of-names-and-store", names),
    case("fence-before-a-late-cut", cut),
    case("fence-waits-for-who-was-killed-while-it-started", asked),
    case("fence-before-a-late-read-of-the-device", read),
    case("fence-ends-who-is-told-of-it", told),
];

/// A file system whose calls can come late, on a disk with blocks of which a page has four.
fn late(bench: &Bench<'_>, fill: impl FnOnce(&Path) -> Result<()>) -> Result<(Machine, PathBuf)> {
    let disk = bench.small_disk("24M", &["-b", "1024", "-j"], fill)?;
    Ok((deadly::machine(bench, &disk, &[])?, disk))
}

/// The service is killed in a rename and in a store that makes a file longer. The next one does
/// both again. Then a file gets the old name, and the other file is cut; and only then the calls of
/// the dead one reach the file system.
fn names(bench: &Bench<'_>) -> Result<()> {
    let (machine, disk) = late(bench, |_| Ok(()))?;
    let line = "mkdir /d; echo old > /d/held-9-a; seq 20000 > /d/c; sync; \
                { dd if=/boot/bin/sh bs=70009 count=1 of=/d/f status=none; sync /d/f; } & \
                sleep 1; mv /d/held-9-a /d/b & sleep 1; kill-domain vfs; \
                until [ -e /d/b ]; do sleep 0.1; done; echo new > /d/held-9-a; \
                /boot/testing/strain cut /d/f 1000; sync; echo then; sleep 10; wait; \
                cat /d/b /d/held-9-a; wc -c < /d/f; sync; domains -q";
    let answer = bench.exec_within(2 * LIMIT, machine, line)?.status(0)?;
    ensure!(
        answer.stdout.starts_with("then\nold\nnew\n1000\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    ensure!(
        answer.log.matches("a held call goes on").count() == 2,
        "{}",
        answer.log
    );
    expect_restarts(&answer.stdout, "vfs", 1)?;
    expect_no_restart(&answer.stdout, "ext2")?;
    ensure!(bench.host_read(&disk, "/d/f")?.len() == 1000);
    bench.expect_clean(&disk)
}

/// The service is killed in a truncation, which the next one does again. Then the file becomes
/// longer; and only then the call of the dead one reaches the file system.
fn cut(bench: &Bench<'_>) -> Result<()> {
    let content = disk::noise(100_000, 7);
    let (machine, disk) = late(bench, |root| Ok(fs::write(root.join("f"), &content)?))?;
    let line = "/boot/testing/strain cut /f 70009 & sleep 1; kill-domain vfs; \
                until [ $(wc -c < /f) = 70009 ]; do sleep 0.1; done; seq 9000 >> /f; sync; \
                wc -c < /f; sleep 9; wait; wc -c < /f; sync; domains -q";
    let answer = bench.exec_within(2 * LIMIT, machine, line)?.status(0)?;
    let lines: String = (1..=9000).map(|line| format!("{line}\n")).collect();
    let length = 70_009 + lines.len();
    let right = format!("{length}\n{length}\n");
    ensure!(
        answer.stdout.starts_with(&right),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    let answer = answer.logs("a held call goes on")?;
    expect_restarts(&answer.stdout, "vfs", 1)?;
    let right = [&content[..70_009], lines.as_bytes()].concat();
    ensure!(bench.host_read(&disk, "/f")? == right, "/f is another");
    bench.expect_clean(&disk)
}

/// A thread of a service that has crashed is in the file system still. Who meets the crash has the
/// next one started, and is killed while that is waited for: it starts when the thread has left all
/// the same.
fn asked(bench: &Bench<'_>) -> Result<()> {
    let (machine, disk) = late(bench, |root| Ok(fs::write(root.join("x"), "x\n")?))?;
    let line = "PATH=/boot/bin; echo old > /held-4-a; sync; cd /tmp; mv /held-4-a /b & sleep 1; \
                crash vfs; cat /x & asker=$!; sleep 0.5; kill -9 $asker; wait; \
                cat /b; sync; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    ensure!(
        answer.stdout.starts_with("old\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    expect_restarts(&answer.stdout, "vfs", 1)?;
    let at = |text: &str| answer.log.rfind(text).with_context(|| answer.log.clone());
    ensure!(
        at("a held call goes on")? < at("init: vfs: instance")?,
        "{}",
        answer.log
    );
    bench.expect_clean(&disk)
}

/// A read is under way when the service dies, into a page that nobody waits for any more, and the
/// disk keeps its answer back. The page is written to as a whole, which takes no read. Then the
/// driver dies: the read is made again by the next one, into the page as it is then.
fn read(bench: &Bench<'_>) -> Result<()> {
    let kept = Kept::new(bench, "late", &[100])?;
    let mut machine = storing::machine(bench, &kept.disk)?;
    (machine.disk, machine.served) = (None, Some(kept.server.socket.clone()));
    let line = "PATH=/boot/bin; cd /tmp; dd if=/big bs=4096 skip=90 count=1 status=none > /dev/null; sync; \
                dd if=/big bs=4096 skip=100 count=1 status=none > /dev/null & reader=$!; sleep 1; \
                kill -9 $reader; kill-domain vfs; { sleep 3; kill-domain virtio-blk; } & \
                head -c 4096 /boot/bin/sh > /tmp/x; dd if=/tmp/x of=/big bs=4096 seek=100 conv=notrunc status=none; \
                wait; cp /tmp/x /x; sync; domains -q";
    let mut guest = bench.begin(machine, line)?;
    let deadline = Instant::now() + LIMIT;
    kept.wait_for(1, deadline)?;
    let is_dead = |line: &str| line.contains("init: vfs: ") && line.ends_with("ended: killed");
    while !guest.log().lines().any(is_dead) {
        ensure!(Instant::now() < deadline, "it lives:\n{}", guest.log());
        thread::sleep(Duration::from_millis(10));
    }
    // The machine stands still when the device is reset by the next driver, until it answers.
    thread::sleep(Duration::from_secs(7));
    kept.server.let_go();
    let said = said_until(&mut guest, "", deadline)?;
    expect_restarts(&said, "vfs", 1)?;
    expect_no_restart(&said, "ext2")?;
    fs::write(&kept.disk, kept.server.content())?;
    let found = bench.host_read(&kept.disk, "/big")?;
    let mut right = kept.content.clone();
    right[100 * 4096..101 * 4096].copy_from_slice(&bench.host_read(&kept.disk, "/x")?);
    ensure!(found == right, "/big is another\n{}", guest.log());
    bench.expect_clean(&kept.disk)
}

/// Two services are in front of one file system, by mistake. The one that began last serves; the
/// other is told at its next call, and ends itself.
fn told(bench: &Bench<'_>) -> Result<()> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let other = "[domain.vfs-two]\nimage = \"vfs-shadow\"\ngrants = { fs = \"ext2.respawn\" }\n\n[domain.vfs]\n";
    let text = usual.replacen("[domain.vfs]\n", other, 1);
    let text = text.replace("\"vfs-tmp.respawn\"", "\"vfs-two.respawn\"");
    let text = manifests::with_limits(&text, &["vfs", "vfs-two"], MANY_RESTARTS)?;
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&text)?;
    machine.disk = Some(disk.clone());
    let line = "PATH=/boot/bin; until echo one > /a; do sleep 0.1; done; until echo two > /tmp/b; do sleep 0.1; done; \
                until cat /a; do sleep 0.1; done; until cat /tmp/b; do sleep 0.1; done";
    let answer = bench.exec_on(machine, line)?;
    let answer = answer.logs("another service has begun with the file system")?;
    ensure!(answer.stdout.ends_with("two\n"), "{}", answer.stdout);
    ensure!(bench.host_read(&disk, "/b")? == b"two\n", "/b is another");
    bench.expect_clean(&disk)
}
