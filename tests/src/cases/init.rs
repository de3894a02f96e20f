//! `init` crashes, alone and together with others: its next life goes on where it was.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use machine::session::Session;

use super::mounts::two_disks;
use super::recovery::{after_crash, big_sum, cell, expect_restarts};
use super::{Case, case};
use crate::bench::{Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("recovery-init-crash", crash),
    case("recovery-init-crash-keeps-the-status", status),
    case("recovery-init-then-all-others-crash", then_others),
    case("recovery-init-and-driver-crash-at-once", with_driver),
    case("recovery-init-crash-under-writes", under_writes),
    case("recovery-init-crash-keeps-mounts", keeps_mounts),
    case("recovery-init-crash-keeps-services", keeps_services),
    case("recovery-init-gone-for-good", gone),
    case("recovery-steward-crash", steward),
    case("recovery-steward-and-init-crash", both),
    case("recovery-steward-then-init-crash", one_after_the_other),
    case("recovery-init-and-personality-crash", with_personality),
];

/// What `domains` says when `init` has ended so often.
fn expect_lives(table: &str, ends: &str) -> Result<()> {
    for title in ["CRASHES", "RESTARTS"] {
        let count = cell(table, "init", title);
        ensure!(
            count == Some(ends),
            "{title} {count:?}, expected {ends}:\n{table}"
        );
    }
    Ok(())
}

fn power_off(mut session: Session) -> Result<()> {
    session.type_line(b"poweroff")?;
    session.end(LIMIT).map(|_| ())
}

/// It crashes in a call from `domains`, whose answer comes from the next life.
fn crash(bench: &Bench<'_>) -> Result<()> {
    let table = after_crash(bench, "init: back after a crash", "crash init; domains -q")?;
    expect_lives(&table, "1")
}

/// A line goes on, and its status is the machine's.
fn status(bench: &Bench<'_>) -> Result<()> {
    let line = "PATH=/boot/bin; kill-domain init; until crash init 2> /dev/null; do sleep 0.05; done; domains -q; exit 7";
    let answer = bench.exec(&bench.disk()?, line)?.status(7)?.silently()?;
    expect_lives(&answer.stdout, "2")
}

/// Afterwards each of the others can still be restarted alone, with the function and the counts
/// that it had before.
fn then_others(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "PATH=/boot/bin; crash virtio-blk; sha256sum /big; kill-domain init; \
                crash virtio-blk; sha256sum /big; kill-domain ext2; echo a > /a; crash bootfs; \
                kill-domain pci; kill-domain block; echo b > /b; \
                ls /boot/bin > /c; sync; sleep 0.5; domains -q";
    let answer = bench.exec(&disk, line)?.status(0)?.silently()?;
    let sum = format!("{}  /big\n", big_sum(bench)?);
    ensure!(
        answer.stdout.matches(&sum).count() == 2,
        "wrong sums:\n{}",
        answer.stdout
    );
    expect_lives(&answer.stdout, "1")?;
    expect_restarts(&answer.stdout, "virtio-blk", 2)?;
    for domain in ["bootfs", "pci", "block"] {
        expect_restarts(&answer.stdout, domain, 1)?;
    }
    for (file, text) in [("/a", "a\n"), ("/b", "b\n")] {
        ensure!(bench.host_read(&disk, file)? == text.as_bytes(), "{file}");
    }
    bench.expect_clean(&disk)
}

/// The driver is dead when the next life begins: nobody saw it die.
fn with_driver(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = 2;
    let line = "PATH=/boot/bin; for i in 1 2 3; do kill-domain init & kill-domain virtio-blk & \
                kill-domain ext2; wait; sha256sum /big; done; sleep 0.5; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    let sum = format!("{}  /big\n", big_sum(bench)?);
    ensure!(
        answer.stdout.matches(&sum).count() == 3,
        "wrong sums:\n{}\n{}",
        answer.stdout,
        answer.stderr
    );
    expect_lives(&answer.stdout, "3")?;
    bench.expect_clean(&disk)
}

/// Everything is copied while `init`, the driver and the file system die in turns.
fn under_writes(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = 2;
    let line = "PATH=/boot/bin; cp /big /copy & for i in 1 2 3 4; do sleep 0.2; \
                kill-domain init; kill-domain virtio-blk; sleep 0.1; kill-domain ext2; done; \
                wait; sync; sha256sum /copy; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    let answer = answer.shows(&format!("{}  /copy\n", big_sum(bench)?))?;
    expect_lives(&answer.stdout, "4")?;
    bench.expect_clean(&disk)
}

/// A second disk stays mounted, as it was, its driver can be restarted, and it can be unmounted.
fn keeps_mounts(bench: &Bench<'_>) -> Result<()> {
    let (machine, second) = two_disks(bench, &["-j", "-J", "size=4"])?;
    let mut session = bench.session(&machine)?;
    let mut run = |line: &str| session.run(line, LIMIT);
    run("mkdir /mnt && mount vdb /mnt -r && kill-domain init")?;
    let said = run("kill-domain virtio-blk-vdb; cat /mnt/sub/hello; echo x > /mnt/x")?;
    ensure!(
        said.contains("second disk") && said.contains("Read-only file system"),
        "{said}"
    );
    let again = run("umount /mnt && mount vdb /mnt && kill-domain init; cp /text/b.txt /mnt/b")?;
    ensure!(!again.contains("mount:"), "{again}");
    let sums = run("sha256sum < /mnt/b; umount vdb; kill-domain init; lsblk; domains -q")?;
    let expected = host_sum(&bench.site.root.join("text/b.txt"))?;
    ensure!(sums.contains(&expected), "{sums}");
    ensure!(!sums.contains("ext2-vdb"), "nobody wants it:\n{sums}");
    let (_, table) = sums.split_once("ID ").context("no table")?;
    expect_lives(&format!("ID {table}"), "3")?;
    power_off(session)?;
    bench.expect_clean(&second)
}

/// What programs ask for by name, and an update, work with the next life.
fn keeps_services(bench: &Bench<'_>) -> Result<()> {
    let line = "PATH=/boot/bin; kill-domain init; \
                update virtio-blk /boot/updates/virtio-blk-2; crash virtio-blk; sha256sum /big; \
                domains -iq; lsblk";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?.silently()?;
    let answer = answer
        .shows("vda   128M   0  /")?
        .shows(&format!("{}  /big\n", big_sum(bench)?))?;
    let image = cell(&answer.stdout, "virtio-blk", "IMAGE");
    ensure!(image == Some("virtio-blk-2"), "{}", answer.stdout);
    expect_lives(&answer.stdout, "1")
}

/// The last life ends: the machine goes off, and the terminal says why.
fn gone(bench: &Bench<'_>) -> Result<()> {
    let line = "for i in 1 2 3 4 5; do echo $i; kill-domain init; sleep 1; done; sleep 60";
    bench
        .exec_on(bench.machine(), line)?
        .status(1)?
        .shows("5\n")?
        .shows("Trefoil cannot go on: init crashed too often")?;
    Ok(())
}

/// The steward ends, and the personality is started anew. Until then the old shell may still read
/// what is typed.
fn kill_steward(session: &mut Session) -> Result<()> {
    session.type_line(b"kill-domain steward; sleep 60")?;
    let deadline = Instant::now() + LIMIT;
    while session.guest.log().matches("init: rv6: instance ").count() < 2 {
        ensure!(
            Instant::now() < deadline,
            "no new personality:\n{}",
            session.report()
        );
        session.settle(Duration::from_millis(50));
    }
    let from = session.printed();
    session.type_line(b"echo fresh")?;
    session
        .wait_for(from, "fresh\r\nfresh\r\n", LIMIT)
        .map(drop)?;
    session.prompt(LIMIT)
}

/// Who holds a stand-in cannot go on without the steward, the personality neither.
fn steward(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    kill_steward(&mut session)?;
    let screen = session.screen();
    ensure!(screen.contains("the shell starts again"), "{screen}");
    let table = session.run("wc -l < /text/a.txt > /count; domains -q", LIMIT)?;
    for domain in ["steward", "block", "vfs", "rv6"] {
        expect_restarts(&table, domain, 1)?;
    }
    power_off(session)?;
    bench.expect_clean(&disk)?;
    let count = bench.host_read(&disk, "/count")?;
    ensure!(count == b"5000\n", "{count:?} lines");
    Ok(())
}

/// Nothing is left that could be taken over.
fn both(bench: &Bench<'_>) -> Result<()> {
    let happened = "init crashed: everything was started anew";
    let line = "kill-domain init steward; /boot/bin/sleep 60";
    let text = after_crash(bench, happened, line)?;
    let (_, table) = text.split_once("ID ").context("no table")?;
    expect_lives(&format!("ID {table}"), "1")
}

/// A new steward is told of those that went on without the old one.
fn one_after_the_other(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine_with(&bench.disk()?))?;
    session.run("echo kept > /tmp/file", LIMIT)?;
    kill_steward(&mut session)?;
    let text = session.run("kill-domain init; cat /tmp/file; domains -q", LIMIT)?;
    ensure!(text.contains("kept\n"), "{text}\n{}", session.report());
    let (_, table) = text.split_once("ID ").context("no table")?;
    let table = format!("ID {table}");
    expect_lives(&table, "1")?;
    for domain in ["console", "keep", "virtio-blk"] {
        expect_restarts(&table, domain, 0)?;
    }
    power_off(session)
}

/// Programs of a personality that died with `init` are ended, too.
fn with_personality(bench: &Bench<'_>) -> Result<()> {
    let happened = "init: back after a crash";
    let line = "/boot/bin/sleep 1000 & kill-domain init rv6; /boot/bin/sleep 60";
    let text = after_crash(bench, happened, line)?;
    let (_, table) = text.split_once("ID ").context("no table")?;
    let table = format!("ID {table}");
    ensure!(!table.contains("sleep"), "{table}");
    expect_lives(&table, "1")?;
    expect_restarts(&table, "rv6", 1)
}
