//! Domains are replaced by other images while they are used, and nobody notices.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use machine::qemu::Machine;

use super::recovery::{MANY_RESTARTS, cell, free, with_limits, with_meddler};
use super::shadows::{JOURNAL, compare, fill};
use super::{Case, case};
use crate::bench::{Answer, Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case(
        "update-that-fails-leaves-the-content-of-a-disk",
        failing_memory_disk,
    ),
    case("update-that-fails-leaves-the-old-driver", failing_driver),
    case(
        "update-20-drivers-under-reads-and-writes",
        driver_under_load,
    ),
    case("update-drivers-on-4-processors", driver_on_four),
    case("update-file-systems-under-cp", file_system_under_cp),
    case("update-file-system-under-an-open-file", open_file),
    case("update-hands-the-content-of-a-disk-over", memory_disk),
    case("update-is-not-held-up-by-a-gate", hanging_gate),
    case("update-under-crashes", crashes),
    case("update-80-drivers-cost-no-memory", eighty),
    case("update-outlived-by-a-new-init", init_dies),
    case("update-decides-what-is-restarted", restarts),
    case("update-that-crashes-is-undone", undone),
    case("update-is-refused-before-anything-is-touched", refused),
];

/// An image to update to, in the system.
fn image(name: &str) -> String {
    format!("/boot/updates/{name}")
}

/// How many updates were made.
fn made(answer: &Answer) -> usize {
    let lines = answer.stdout.lines();
    lines
        .filter(|line| line.contains(" serves as instance "))
        .count()
}

/// Fails if not so many updates were made, or anything crashed.
fn expect_made(answer: &Answer, count: usize) -> Result<()> {
    ensure!(
        made(answer) == count,
        "{} updates, expected {count}:\n{}",
        made(answer),
        answer.stdout
    );
    ensure!(
        !answer.log.contains("crashed in"),
        "a domain crashed:\n{}",
        answer.log
    );
    Ok(())
}

fn big_sum(bench: &Bench<'_>) -> Result<String> {
    host_sum(&bench.site.root.join("big"))
}

fn driver_under_load(bench: &Bench<'_>) -> Result<()> {
    under_load(bench, 1, 10)
}

fn driver_on_four(bench: &Bench<'_>) -> Result<()> {
    under_load(bench, 4, 5)
}

/// No error, sums right. Every other image comes from the disk that the driver drives.
fn under_load(bench: &Bench<'_>, processors: u32, rounds: usize) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = processors;
    let line = format!(
        "cp {image} /driver; sha256sum /big & cp /big /copy & \
         for i in $(seq 1 {rounds}); do update virtio-blk {image}; sleep 0.1; update virtio-blk /driver; sleep 0.1; done; \
         wait; sync; sha256sum /copy",
        image = image("virtio-blk-2")
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    expect_made(&answer, 2 * rounds)?;
    let sum = big_sum(bench)?;
    let sums = [format!("{sum}  /big\n"), format!("{sum}  /copy\n")];
    answer.shows(&sums[0])?.shows(&sums[1])?;
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/copy")? == fs::read(bench.site.root.join("big"))?,
        "/copy is damaged"
    );
    Ok(())
}

fn file_system_under_cp(bench: &Bench<'_>) -> Result<()> {
    for options in [&[][..], JOURNAL] {
        let disk = bench.small_disk("64M", options, fill)?;
        let line = format!(
            "cp -r /tree /copy & for i in $(seq 1 8); do update ext2 {}; update virtio-blk {}; sleep 0.05; done; wait; sync",
            image("ext2-2"),
            image("virtio-blk-2")
        );
        let answer = bench.exec(&disk, &line)?.status(0)?.silently()?;
        expect_made(&answer, 16)?;
        compare(bench, &disk)?;
        // Nothing was written half, with a journal or without.
        bench.expect_clean(&disk)?;
        fs::remove_file(disk)?;
    }
    Ok(())
}

/// What is open stays open, also what has no name any more.
fn open_file(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let update = format!("update ext2 {}", image("ext2-2"));
    let line = format!(
        "sha256sum < /big > /sum & rm /big; sleep 0.1; {update}; sleep 0.1; {update}; wait; cat /sum; ls / | grep -c big"
    );
    let answer = bench.exec(&disk, &line)?.silently()?;
    expect_made(&answer, 2)?;
    let expected = format!("{}  -\n0\n", big_sum(bench)?);
    ensure!(
        answer.stdout.ends_with(&expected),
        "the sum is not right, or the name is still there:\n{}",
        answer.stdout
    );
    bench.expect_clean(&disk)
}

/// A gate that never says that it is closed keeps neither the update nor who waits at the others.
fn hanging_gate(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&with_meddler(bench, "hang")?)?;
    machine.disk = Some(disk.clone());
    let line = format!(
        "sleep 1; update virtio-blk {}; echo status $?; sha256sum /big; domains -iq",
        image("virtio-blk-2")
    );
    let answer = bench.exec_within(2 * LIMIT, machine, &line)?;
    let why = "the old image goes on: its shadow `meddler` did not close its gate in 30 s";
    let answer = answer
        .complains(why)?
        .shows("status 1\n")?
        .shows(&format!("{}  /big\n", big_sum(bench)?))?;
    let row = [("IMAGE", "virtio-blk"), ("RESTARTS", "0"), ("UPDATES", "0")];
    expect_row(&answer, "virtio-blk", row)?;
    let restarts = cell(&answer.stdout, "meddler", "RESTARTS");
    ensure!(restarts == Some("1"), "{}", answer.stdout);
    bench.expect_clean(&disk)
}

/// What the driver of a disk has for its device at least, and at most twice; and what requests of
/// the file system have besides, at most. In bytes.
const OWN_MEMORY: u64 = 72 << 10;
const REQUESTS: u64 = 2 << 20;
/// Options of `odd-disk` with which an update does not succeed, and what is said of it.
const FAILURES: [(&str, &str); 4] = [
    ("start=panic", "it crashed while it started"),
    ("start=refuse", "it does not want to"),
    ("start=spin", "its start took longer than 5 s"),
    ("start=hang", "its start took longer than 5 s"),
];

/// The same, for updates with state.
const STATE_FAILURES: [(&str, &str); 3] = [
    ("check=panic", "does not want the state: it crashed over it"),
    ("check=refuse", "does not want the state: told to refuse it"),
    (
        "check=hang",
        "does not want the state: it took longer than 5 s",
    ),
];

/// The shell commands that try these updates of a domain.
fn tries(domain: &str, failures: &[(&str, &str)]) -> String {
    let odd = image("odd-disk");
    let try_one =
        |(how, _): &(&str, &str)| format!("update -o {how} {domain} {odd}; echo status $?; ");
    failures.iter().map(try_one).collect()
}

/// Fails if each of these updates was not refused as it should.
fn expect_kept(answer: &Answer, failures: &[(&str, &str)]) -> Result<()> {
    let lines: Vec<_> = answer.stderr.lines().collect();
    ensure!(
        lines.len() == failures.len(),
        "expected {} errors: {lines:#?}",
        failures.len()
    );
    for (line, (how, expected)) in lines.iter().zip(failures) {
        ensure!(
            line.contains("the old image goes on: ") && line.contains(expected),
            "{how}: expected {expected:?}: {line:?}"
        );
    }
    let refused = answer.stdout.matches("status 1\n").count();
    ensure!(
        refused == failures.len(),
        "{refused} times status 1:\n{}",
        answer.stdout
    );
    Ok(())
}

/// Fails if the row of `domain` in what `domains -iq` printed is not so.
fn expect_row(answer: &Answer, domain: &str, expected: [(&str, &str); 3]) -> Result<()> {
    for (title, value) in expected {
        let shown = cell(&answer.stdout, domain, title);
        ensure!(
            shown == Some(value),
            "{domain}: {title}: {shown:?}, expected {value}:\n{}",
            answer.stdout
        );
    }
    Ok(())
}

fn failing_driver(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = format!(
        "cp /big /copy & {} wait; sync; sha256sum /copy; domains -iq",
        tries("virtio-blk", &FAILURES)
    );
    let answer = bench.exec(&disk, &line)?.status(0)?;
    expect_kept(&answer, &FAILURES)?;
    let answer = answer.shows(&format!("{}  /copy\n", big_sum(bench)?))?;
    let row = [("IMAGE", "virtio-blk"), ("RESTARTS", "0"), ("UPDATES", "0")];
    expect_row(&answer, "virtio-blk", row)?;
    expect_freed_late(&answer.log)?;
    bench.expect_clean(&disk)
}

/// Fails if memory that the device knew was not there when it was reset: each time the driver that
/// was ended, while another one had memory for the device and did not come to reset it. Pages of
/// requests that were under way come to that, up to all that the file system has for them.
fn expect_freed_late(log: &str) -> Result<()> {
    let bytes = |line: &str| {
        let (_, what) = line.split_once(" was reset: ")?;
        what.split(' ').next()?.parse::<u64>().ok()
    };
    let freed: Vec<u64> = log.lines().filter_map(bytes).collect();
    let all_there = |bytes: &u64| (OWN_MEMORY..2 * OWN_MEMORY + REQUESTS).contains(bytes);
    ensure!(
        freed.len() >= FAILURES.len() && freed.iter().all(all_there),
        "freed at resets: {freed:?}"
    );
    Ok(())
}

/// A machine with a memory disk, and somebody who checks what is on it all the time.
fn checked(bench: &Bench<'_>) -> Result<Machine> {
    let mut text = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    text += "
[domain.memory-disk]
options = \"size=8M\"

[domain.scratch]
image = \"block-shadow\"
grants = { driver = \"memory-disk.respawn\" }

[domain.block-checker]
grants = { device = \"scratch\", objects = \"kernel.objects\" }
";
    let mut machine = bench.machine_by(&text)?;
    machine.disk = Some(bench.disk()?);
    Ok(machine)
}

/// Shell commands that wait until the checker has done so many steps.
const CHECKED: &str = "until dmesg | grep -q 'region 0: .* of 1024 steps'; do sleep 0.1; done";

/// Fails if anything that the checker read was wrong.
fn expect_content(answer: &Answer) -> Result<()> {
    ensure!(
        !answer.log.contains("WRONG"),
        "something was lost:\n{}",
        answer.log
    );
    ensure!(
        answer.log.contains("1024 of 1024 steps right"),
        "the checker does not say so:\n{}",
        answer.log
    );
    Ok(())
}

fn memory_disk(bench: &Bench<'_>) -> Result<()> {
    let line = format!(
        "sleep 0.5; for i in $(seq 1 20); do update memory-disk {}; sleep 0.05; done; {CHECKED}",
        image("memory-disk-2")
    );
    let answer = bench.exec_on(checked(bench)?, &line)?;
    let answer = answer.status(0)?.silently()?;
    expect_made(&answer, 20)?;
    let handed_over = answer.stdout.matches("state handed over").count();
    ensure!(handed_over == 20, "{handed_over} times:\n{}", answer.stdout);
    expect_content(&answer)
}

fn failing_memory_disk(bench: &Bench<'_>) -> Result<()> {
    let failures = [&FAILURES[..], &STATE_FAILURES[..]].concat();
    let line = format!(
        "sleep 0.5; {}update memory-disk {image}; update -o size=4M memory-disk {image} > /why 2>&1; cat /why; domains -iq; {CHECKED}",
        tries("memory-disk", &failures),
        image = image("memory-disk-2")
    );
    let answer = bench.exec_on(checked(bench)?, &line)?.status(0)?;
    expect_kept(&answer, &failures)?;
    ensure!(made(&answer) == 1, "no update:\n{}", answer.stdout);
    let answer = answer.shows("it is that of a disk of another size")?;
    let row = [
        ("IMAGE", "memory-disk-2"),
        ("RESTARTS", "0"),
        ("CRASHES", "0"),
    ];
    expect_row(&answer, "memory-disk", row)?;
    expect_content(&answer)
}

/// The old instance dies at all moments of an update.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&with_limits(bench, &["virtio-blk"], MANY_RESTARTS)?)?;
    machine.disk = Some(disk.clone());
    let update = format!("/boot/bin/update virtio-blk {}", image("virtio-blk-2"));
    let line = format!(
        "cp /big /copy & for i in 00 01 02 03 04 05 06 08 10 12 14 16; do \
         {update} & sleep 0.$i; crash virtio-blk; kill-domain virtio-blk; sleep 0.1; done; \
         wait; {update}; sync; sha256sum /copy"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let answer = answer.shows(&format!("{}  /copy\n", big_sum(bench)?))?;
    // An update that finds its domain dead may fail; it must say so, and no more.
    let failed = answer.stderr.matches("the old image goes on").count();
    ensure!(
        made(&answer) + failed == 13 && made(&answer) > 0,
        "{} updates made, {failed} failed:\n{}",
        made(&answer),
        answer.stderr
    );
    bench.expect_clean(&disk)
}

/// Ten times eight updates; what is lost every time is a leak, what is allocated once and kept is
/// none: tables grow in the first rounds.
fn eighty(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let update = format!("update virtio-blk {}", image("virtio-blk-2"));
    let line = format!(
        "for round in $(seq 10); do for i in $(seq 8); do {update}; update -o start=refuse virtio-blk {}; done 2> /why; sleep 0.2; free -b; done",
        image("odd-disk")
    );
    let answer = bench.exec(&disk, &line)?;
    let answer = answer.status(0)?.silently()?;
    ensure!(made(&answer) == 80, "{} updates", made(&answer));
    let free: Vec<_> = answer.stdout.lines().filter_map(free).collect();
    ensure!(
        free.len() == 10 && free.windows(2).any(|pair| pair[1] >= pair[0]),
        "free after each 8 updates: {free:?}"
    );
    bench.expect_clean(&disk)
}

/// `init` dies while it has closed the gate and waits for a start that hangs: calls go on, the
/// instance that was to be is ended, and the driver serves as before.
fn init_dies(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    session.run("PATH=/boot/bin", LIMIT)?;
    let line = format!(
        "update -o start=hang virtio-blk {} & sleep 0.5; kill-domain init",
        image("odd-disk")
    );
    session.run(&line, LIMIT)?;
    let sum = session.run("sha256sum /big; wait; domains -iq", LIMIT)?;
    ensure!(sum.contains(&big_sum(bench)?), "no sum: {sum:?}");
    ensure!(
        cell(&sum, "virtio-blk", "IMAGE") == Some("virtio-blk") && !sum.contains("odd-disk"),
        "{sum}"
    );
    session.type_line(b"poweroff")?;
    session.end(LIMIT).map(|_| ())
}

/// After an update a crash leads to an instance of the new image.
fn restarts(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = format!(
        "update virtio-blk {}; crash virtio-blk; sha256sum /big; domains -iq",
        image("virtio-blk-2")
    );
    let answer = bench.exec(&disk, &line)?.status(0)?.silently()?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    let row = [
        ("IMAGE", "virtio-blk-2"),
        ("RESTARTS", "1"),
        ("UPDATES", "1"),
    ];
    expect_row(&answer, "virtio-blk", row)?;
    bench.expect_clean(&disk)
}

/// An image that comes up and then crashes in every call uses its restarts up; then the one before
/// serves again.
fn undone(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = format!(
        "update -o serve=panic virtio-blk {}; sha256sum /big; domains -iq",
        image("odd-disk")
    );
    let answer = bench.exec(&disk, &line)?.status(0)?.silently()?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    ensure!(
        answer.log.contains("going back to the one before"),
        "nothing is said of it:\n{}",
        answer.log
    );
    let row = [("IMAGE", "virtio-blk"), ("CRASHES", "5"), ("UPDATES", "1")];
    expect_row(&answer, "virtio-blk", row)?;
    bench.expect_clean(&disk)
}

/// What is wrong with an image or a name is found out before a call has to wait.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let images = bench.site.project.images();
    let disk = bench.small_disk("64M", &[], |root| {
        corrupt(&images.join("boot/updates/virtio-blk-2"), root)
    })?;
    let line = format!(
        "update virtio-blk /corrupt; update virtio-blk /short; update virtio-blk /text; update virtio-blk /none; update virtio-blk {ext2}; update virtio-blk /boot/bin/ls; \
         update nobody {driver}; update block {driver}; update rv6 {driver}; update console {driver}; update virtio-blk; echo $?; domains -q; cat /text",
        ext2 = image("ext2-2"),
        driver = image("virtio-blk-2")
    );
    let answer = bench
        .exec(&disk, &line)?
        .status(0)?
        .shows("2\n")?
        .shows("some text\n")?;
    let expected = [
        "/corrupt: the image is refused",
        "/short: the image is refused",
        "/text: the image is refused: it is not a domain image",
        "/none: No such file",
        "ext2-2: the image does not fit",
        "ls: the image does not fit",
        "nobody: no such domain",
        "block: it cannot be updated while it is used: `ext2` calls it without a shadow",
        "rv6: it cannot be updated while it is used",
        "console: it cannot be updated while it is used: `rv6`",
        "a name and an image are needed",
    ];
    let said: Vec<_> = answer.stderr.lines().collect();
    ensure!(
        said.len() == expected.len(),
        "expected {} errors: {said:#?}",
        expected.len()
    );
    for (line, expected) in said.iter().zip(expected) {
        ensure!(line.contains(expected), "expected {expected:?}: {line:?}");
    }
    let started = answer
        .log
        .lines()
        .filter(|line| line.contains("virtio-blk: instance"))
        .count();
    ensure!(started == 1, "the driver was touched:\n{}", answer.log);
    Ok(())
}

/// Files that are no image, or not any more.
fn corrupt(image: &Path, root: &Path) -> Result<()> {
    let good = fs::read(image).with_context(|| image.display().to_string())?;
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(root.join("corrupt"), bad)?;
    fs::write(root.join("short"), &good[..good.len() - 1])?;
    Ok(fs::write(root.join("text"), "some text\n")?)
}
