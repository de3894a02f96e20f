//! Parts that crash or are killed under a running system, and what the rest of it notices.

use anyhow::{Context, Result, bail, ensure};
use machine::manifests;
use machine::session::Session;
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::limits::{STRAIN, greedy};
use super::mounts::two_disks;
use super::{Case, case};
use crate::bench::{Answer, Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("recovery-100-driver-crashes-cost-no-memory", hundred),
    case("recovery-driver-crash-before-a-read", driver_before),
    case("recovery-driver-crash-under-a-read", driver_under_read),
    case(
        "recovery-driver-crash-under-a-read-on-4-processors",
        driver_under_read_on_four,
    ),
    case("recovery-driver-crash-under-a-write", driver_under_write),
    case("recovery-driver-killed", driver_killed),
    case(
        "recovery-driver-crash-without-memory",
        driver_without_memory,
    ),
    case("recovery-file-system-crash", file_system),
    case(
        "recovery-file-system-crash-without-memory",
        file_system_without_memory,
    ),
    case("recovery-block-shadow-crash", block_shadow),
    case("recovery-driver-that-loses-a-request", lossy_driver),
    case("recovery-driver-that-answers-nonsense", wild_driver),
    case("recovery-driver-that-refuses-calls", shy_driver),
    case("recovery-boot-archive-crash", boot_archive),
    case("recovery-personality-crash", personality),
    case("recovery-shell-crash", shell),
    case("recovery-console-crash", console),
    case("recovery-pci-crash", pci),
    case("recovery-regions-stay-mapped", regions_stay),
    case("recovery-restart-budget", budget),
    case("recovery-complaints-put-nothing-down", complaints),
    case("recovery-beside-a-driver-that-hoards-interrupts", hoarded),
    case("recovery-program-killed", program),
];

pub(super) fn big_sum(bench: &Bench<'_>) -> Result<String> {
    host_sum(&bench.site.root.join("big"))
}

/// Limits with which a domain is restarted as often as it takes.
pub(super) const MANY_RESTARTS: &str = "restarts = 100000";

/// The default manifest, with these limits for some of its domains.
pub(super) fn with_limits(bench: &Bench<'_>, domains: &[&str], limits: &str) -> Result<String> {
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    manifests::with_limits(&text, domains, limits)
}

/// The cell in column `title` of the row of `domain` in what `domains -q` prints.
pub(super) fn cell<'a>(table: &'a str, domain: &str, title: &str) -> Option<&'a str> {
    let header = table.lines().find(|line| line.contains("NAME"))?;
    let column = header.split_whitespace().position(|word| word == title)?;
    let row = table
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(domain))?;
    row.split_whitespace().nth(column)
}

/// The domain is the one that was started at boot.
pub(super) fn expect_no_restart(table: &str, domain: &str) -> Result<()> {
    expect_restarts(table, domain, 0)
}

pub(super) fn expect_restarts(table: &str, domain: &str, count: u32) -> Result<()> {
    let restarts = cell(table, domain, "RESTARTS");
    ensure!(
        restarts == Some(count.to_string().as_str()),
        "{domain}: {restarts:?} restarts, expected {count}:\n{table}"
    );
    Ok(())
}

/// At least so many: an instance that is ended while it starts is none that was restarted, and on a
/// busy host the work may be over before the last one dies.
pub(super) fn expect_restarts_from(table: &str, domain: &str, least: u32) -> Result<()> {
    let restarts = cell(table, domain, "RESTARTS").and_then(|count| count.parse::<u32>().ok());
    ensure!(
        restarts >= Some(least),
        "{domain}: {restarts:?} restarts, expected {least} or more:\n{table}"
    );
    Ok(())
}

/// Acceptance 3.
fn driver_before(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let answer = bench
        .exec(&disk, "crash virtio-blk; sha256sum /big; domains -q")?
        .status(0)?
        .silently()?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 1)?;
    bench.expect_clean(&disk)
}

fn driver_under_read(bench: &Bench<'_>) -> Result<()> {
    under_read(bench, 1)
}

fn driver_under_read_on_four(bench: &Bench<'_>) -> Result<()> {
    under_read(bench, 4)
}

/// A crash of the driver, which some call has met when this is done: it is there again.
const MET: &str = "crash virtio-blk; echo x > /mark; sync;";

fn under_read(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = processors;
    let line = format!(
        "sha256sum /big > /tmp-sum & sleep 0.2; {MET} sleep 0.3; {MET} wait; cat /tmp-sum; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 2)?;
    bench.expect_clean(&disk)
}

fn driver_under_write(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line =
        format!("cp /big /copy & sleep 0.3; {MET} sleep 0.5; {MET} wait; sync; sha256sum /copy");
    let answer = bench.exec(&disk, &line)?.status(0)?.silently()?;
    answer.shows(&format!("{}  /copy\n", big_sum(bench)?))?;
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/copy")? == fs::read(bench.site.root.join("big"))?,
        "/copy is damaged"
    );
    Ok(())
}

fn driver_killed(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let answer = bench
        .exec(&disk, "kill-domain virtio-blk; sha256sum /big; domains -q")?
        .status(0)?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 1)?;
    bench.expect_clean(&disk)
}

/// The number in the column `free`, if this is that line of what `free` prints.
pub(super) fn free(line: &str) -> Option<u64> {
    let row = line.strip_prefix("Mem:")?;
    row.split_whitespace().nth(2)?.parse().ok()
}

/// Free memory may be this much less after all crashes than after the first rounds: one chunk of
/// the shared heap that happens to be cut anew. A page lost in each of the 120 crashes between
/// would be nearly twice as much.
const STRAY_BYTES: u64 = 256 << 10;

/// Ten times twenty crashes. The personality's tables double in one of the first three rounds,
/// whose programs end at once or linger as the host's load has it, and are kept; so the fourth
/// reading counts as the first. Before each reading the last death has time to be cleared away. The
/// manifest allows more restarts than usual.
fn hundred(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&with_limits(bench, &["virtio-blk"], MANY_RESTARTS)?)?;
    machine.disk = Some(disk.clone());
    let line = format!(
        "for round in $(seq 10); do for i in $(seq 20); do {MET} done; sleep 1; free -b; done; cat /mark; domains -q"
    );
    let answer = bench
        .exec_on(machine, &line)?
        .status(0)?
        .shows("\nx\n")?
        .silently()?;
    expect_restarts(&answer.stdout, "virtio-blk", 200)?;
    let free: Vec<_> = answer.stdout.lines().filter_map(free).collect();
    let &[_, _, _, first, .., last] = free.as_slice() else {
        bail!("not ten readings: {free:?}");
    };
    ensure!(
        free.len() == 10 && last + STRAY_BYTES >= first,
        "free after each 20 crashes: {free:?}"
    );
    bench.expect_clean(&disk)
}

fn driver_without_memory(bench: &Bench<'_>) -> Result<()> {
    without_memory(bench, "virtio-blk")
}

fn file_system_without_memory(bench: &Bench<'_>) -> Result<()> {
    without_memory(bench, "ext2")
}

/// A program holds all memory that it can get, and takes what comes back, when `domain` crashes
/// under its reads: what it reads is right, and `domain` is started once.
fn without_memory(bench: &Bench<'_>, domain: &str) -> Result<()> {
    let disk = bench.disk()?;
    let machine = greedy(bench, &disk)?;
    let line = format!("{STRAIN} starved {domain} /big; domains -q; dmesg");
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    let big = fs::read(bench.site.root.join("big"))?;
    let sum = big
        .iter()
        .fold(0_u64, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
    let answer = answer.shows(&format!("{} bytes, sum {sum:016x}\n", big.len()))?;
    expect_restarts(&answer.stdout, domain, 1)?;
    bench.expect_clean(&disk)
}

fn power_off(mut session: Session) -> Result<()> {
    session.type_line(b"poweroff")?;
    session.end(LIMIT).map(|_| ())
}

/// Without the shadow in front of it: what was under way fails with a message, and the next command
/// works.
fn file_system(bench: &Bench<'_>) -> Result<()> {
    const SHADOW: &str = "[domain.vfs]\nimage = \"vfs-shadow\"\ngrants = { fs = \"ext2.respawn\", \
         objects = \"kernel.objects\", memory = \"kernel.memory\", keep = \"keep.b.respawn\" }\npass = [\"held\"]\nlimits = { reserve_pages = 256 }\n";
    let manifest = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    ensure!(
        manifest.contains(SHADOW),
        "the default manifest has no {SHADOW:?}"
    );
    let manifest = manifest
        .replace(SHADOW, "")
        .replace("vfs.respawn", "ext2.respawn")
        .replace("files = \"vfs\"", "files = \"ext2\"");
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(disk.clone());
    let line = "PATH=/boot/bin; { head -c 100 | wc -c; crash ext2; sha256sum; } < /big; echo -; wc -l < /text/a.txt; echo new > /new; cat /new; domains -q";
    let answer = bench
        .exec_on(machine, line)?
        .status(0)?
        .shows("100\n-\n5000\nnew\n")?
        .complains("restarted")?;
    expect_restarts(&answer.stdout, "ext2", 1)?;
    bench.expect_clean(&disk)
}

/// A driver that lives, and never answers one of its requests, is replaced when that has taken half
/// a minute; who waits notices nothing else.
fn lossy_driver(bench: &Bench<'_>) -> Result<()> {
    behind_lossy(bench, "150")?
        .logs("lossy-disk: a request is lost")?
        .logs("the driver has lost a request: it is replaced")?;
    Ok(())
}

/// A driver that lives answers a request that it does not have, or says that it gives more answers
/// than it has room for. It is replaced, and nobody notices.
fn wild_driver(bench: &Bench<'_>) -> Result<()> {
    behind_lossy(bench, "150 wild")?
        .logs("lossy-disk: nonsense is answered")?
        .logs("which it does not have")?;
    behind_lossy(bench, "150 many")?.logs("the driver gives 257 answers in room for 256")?;
    Ok(())
}

/// A driver refuses calls, as one does whose caller has too little stack left for what it calls
/// itself. What was taken from the submitter is handed on nevertheless, though nobody calls again,
/// and the driver is not ended for it.
fn shy_driver(bench: &Bench<'_>) -> Result<()> {
    for options in ["3 shy", "2 shy"] {
        let answer = behind_lossy(bench, options)?;
        expect_no_restart(&answer.stdout, "lossy-disk")?;
    }
    Ok(())
}

/// Copies a file on a disk that does such a thing with one of its requests.
fn behind_lossy(bench: &Bench<'_>, options: &str) -> Result<Answer> {
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let lossy = format!(
        "[domain.lossy-disk]\nlimits = {{ restarts = 1000 }}\ngrants = {{ device = \"virtio-blk\" }}\noptions = \"{options}\"\n\n[domain.block]"
    );
    let text = text.replacen("[domain.block]", &lossy, 1);
    let text = text.replace("\"virtio-blk.respawn\"", "\"lossy-disk.respawn\"");
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&text)?;
    machine.disk = Some(disk.clone());
    let line = "cp /big /copy && sync && sha256sum /copy && domains -q";
    let answer = bench.exec_within(2 * LIMIT, machine, line)?;
    let sum = host_sum(&bench.site.root.join("big"))?;
    let answer = answer
        .status(0)?
        .silently()?
        .shows(&format!("{sum}  /copy\n"))?;
    bench.expect_clean(&disk)?;
    Ok(answer)
}

/// The shadow of the disk dies, and the file system with it, since its handle is dead for good. The
/// shadow of the file system asks the next instance.
fn block_shadow(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "PATH=/boot/bin; crash block; sha256sum /big; crash block; echo new > /new; sync; cat /new; domains -q";
    let answer = bench.exec(&disk, line)?.status(0)?.silently()?;
    let answer = answer.shows(&format!("{}  /big\nnew\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "block", 2)?;
    bench.expect_clean(&disk)
}

/// The boot archive is the same under the next instance, so what was asked is asked again: a name,
/// a program that is started, a file that is being read.
fn boot_archive(bench: &Bench<'_>) -> Result<()> {
    let line = "crash bootfs; ls /boot; cd /boot/bin; crash bootfs; ./echo on; \
                { dd bs=4096 count=1 > /tmp/a 2> /dev/null; crash bootfs; cat > /tmp/b; } < ls; \
                cat /tmp/a /tmp/b > /tmp/c; cmp /tmp/c ls && echo same; domains -q";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?.silently()?;
    let answer = answer.shows("bin\ntesting\nupdates\non\nsame\n")?;
    expect_restarts(&answer.stdout, "bootfs", 3)
}

fn personality(bench: &Bench<'_>) -> Result<()> {
    after_crash(bench, "the personality crashed", "crash rv6").map(|_| ())
}

/// Types `line`, waits for the next prompt, and has the system prove that it still works.
/// `happened` is what the log says of the crash.
pub(super) fn after_crash(bench: &Bench<'_>, happened: &str, line: &str) -> Result<String> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    let printed = session
        .run(line, LIMIT)
        .with_context(|| format!("after `{line}`"))?;
    session.settle(Duration::from_secs(1));
    let count = session.run("wc -l < /text/a.txt", LIMIT)?;
    ensure!(
        count.contains("5000\n"),
        "expected 5000 lines: {count:?}\n{}",
        session.report()
    );
    let table = session.run("domains -q", LIMIT)?;
    session.run("echo new > /new", LIMIT)?;
    expect_in_log(&session, happened)?;
    power_off(session)?;
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/new")? == b"new\n",
        "/new was not written"
    );
    Ok(printed + &table)
}

/// The log says so, or soon does: what was typed may be done before what crashed is back.
fn expect_in_log(session: &Session, happened: &str) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = session.guest.log();
        if log.contains(happened) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "no {happened:?} in the log:\n{log}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

fn shell(bench: &Bench<'_>) -> Result<()> {
    // Nobody calls the shell, so a crash in its next call would never come.
    after_crash(bench, "the shell ended (Killed)", "kill-domain sh").map(|_| ())
}

fn console(bench: &Bench<'_>) -> Result<()> {
    let text = after_crash(bench, "console: domain ", "crash console")?;
    expect_restarts(&text, "console", 1)
}

/// Nobody calls the bus until a driver starts: so one is made to.
fn pci(bench: &Bench<'_>) -> Result<()> {
    let text = after_crash(
        bench,
        "pci: domain ",
        "crash pci; kill-domain virtio-blk; sha256sum /big",
    )?;
    ensure!(text.contains(&big_sum(bench)?), "the sum is wrong:\n{text}");
    ensure!(text.contains(") will crash in its next call"), "{text}");
    expect_restarts(&text, "pci", 1)
}

/// Driver and bus crash, also the bus first: the device's registers stay where they were all the
/// time. QEMU before 8.2 may lose what another processor writes to its interrupt controller, or
/// crash, when regions go away and come back.
fn regions_stay(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = 2;
    let mappings = bench.folder.join("mappings");
    machine.mappings = Some(mappings.clone());
    let line = "crash virtio-blk; echo x > /one; sync; crash pci; kill-domain virtio-blk; sha256sum /big; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 2)?;
    expect_restarts(&answer.stdout, "pci", 1)?;
    let text = fs::read_to_string(&mappings).context("QEMU notes no mappings")?;
    ensure!(text.contains("pci_update_mappings_add"), "none: {text}");
    ensure!(!text.contains("pci_update_mappings_del"), "moved:\n{text}");
    Ok(())
}

/// More crashes than it may have: the driver stays down, the log says so, and reads fail with a
/// message.
fn budget(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&with_limits(bench, &["virtio-blk"], "window_s = 3600")?)?;
    machine.disk = Some(disk);
    let line = "PATH=/boot/bin; for i in 1 2 3 4 5 6 7; do crash virtio-blk; echo $i > /round; sync; done; sha256sum /big; echo \"status $?\"; domains -q";
    let answer = bench.exec_on(machine, line)?;
    let answer = answer.complains("/big: the file system or its disk is down")?;
    ensure!(
        answer.stdout.contains("status 1"),
        "reading from a dead disk worked, or hung: {answer:?}"
    );
    ensure!(
        cell(&answer.stdout, "virtio-blk", "STATE") == Some("down"),
        "expected `down`: {}",
        answer.stdout
    );
    ensure!(
        answer.log.contains("virtio-blk") && answer.log.contains("down"),
        "the log does not say so:\n{}",
        answer.log
    );
    Ok(())
}

/// The default manifest with a domain that abuses the right to have the disk's driver restarted.
pub(super) fn with_meddler(bench: &Bench<'_>, options: &str) -> Result<String> {
    let text = with_limits(bench, &["virtio-blk"], "window_s = 3600")?;
    Ok(text
        + &format!(
            "\n[domain.meddler]\ngrants = {{ victim = \"virtio-blk.respawn\" }}\noptions = \"{options}\"\n"
        ))
}

/// The holder of a domain's `respawn` says of each instance that it has failed, though it lives. As
/// many are replaced as the domain may have crashes, none counts as one, and the domain serves on.
fn complaints(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&with_meddler(bench, "accuse")?)?;
    machine.disk = Some(disk.clone());
    let line = "until dmesg | grep ' complaints: '; do sleep 0.1; done; sha256sum /big; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let answer = answer
        .shows("40 complaints: 5 heard, 0 errors")?
        .shows(&format!("{}  /big\n", big_sum(bench)?))?;
    for (title, value) in [("STATE", "running"), ("CRASHES", "0"), ("RESTARTS", "5")] {
        let shown = cell(&answer.stdout, "virtio-blk", title);
        ensure!(
            shown == Some(value),
            "{title}: {shown:?}, expected {value}:\n{}",
            answer.stdout
        );
    }
    bench.expect_clean(&disk)
}

/// The driver of a second disk asks for all interrupts that it can get. That of the first disk
/// crashes then, and finds its own again.
fn hoarded(bench: &Bench<'_>) -> Result<()> {
    let (mut machine, _) = two_disks(bench, &["-j", "-J", "size=4"])?;
    let text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let hoarder = "\n[domain.meddler]\ngrants = { device = \"pci.claim(1af4:1042,1001)\" }\n\
                   options = \"hoard\"\n";
    machine.archive = bench.machine_by(&(text + hoarder))?.archive;
    let line = "PATH=/boot/bin; until dmesg | grep ' interrupts for '; do sleep 0.1; done; \
                crash virtio-blk; sha256sum /big; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let answer = answer
        .shows(" 1000 interrupts for ")?
        .shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 1)
}

/// A program that is ended from outside takes nothing along.
fn program(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    // It is there as soon as `&` is done.
    let line = "yes > /trash & sleep 0.3; kill-domain yes; wait; rm /trash; echo on";
    bench.exec(&disk, line)?.status(0)?.prints("on\n")?;
    bench.expect_clean(&disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "ID  NAME        STATE    RESTARTS\n 2  init        running         -\n16  virtio-blk  running         2\n";

    #[test]
    fn cells_are_found_by_row_and_column() {
        assert_eq!(cell(TABLE, "virtio-blk", "RESTARTS"), Some("2"));
        assert_eq!(cell(TABLE, "init", "STATE"), Some("running"));
        assert_eq!(cell(TABLE, "ext2", "STATE"), None);
        assert!(expect_restarts(TABLE, "virtio-blk", 1).is_err());
    }

    #[test]
    fn free_memory_is_read() {
        assert_eq!(free("Mem:    100    40    60    1"), Some(60));
        assert_eq!(
            free("              total        used        free      shared"),
            None
        );
    }
}
