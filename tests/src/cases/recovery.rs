//! Parts that crash or are killed under a running system, and what the rest of it notices.

use anyhow::{Context, Result, ensure};
use std::fs;
use xtask::session::Session;

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
    case("recovery-file-system-crash", file_system),
    case("recovery-personality-crash", personality),
    case("recovery-shell-crash", shell),
    case("recovery-console-crash", console),
    case("recovery-pci-crash", pci),
    case("recovery-init-crash", init),
    case("recovery-restart-budget", budget),
    case("recovery-program-crash", program),
];

fn big_sum(bench: &Bench<'_>) -> Result<String> {
    host_sum(&bench.site.root.join("big"))
}

/// The cell in column `title` of the row of `domain` in what `domains -q` prints.
fn cell<'a>(table: &'a str, domain: &str, title: &str) -> Option<&'a str> {
    let header = table.lines().find(|line| line.contains("NAME"))?;
    let column = header.split_whitespace().position(|word| word == title)?;
    let row = table
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(domain))?;
    row.split_whitespace().nth(column)
}

fn expect_restarts(table: &str, domain: &str, count: u32) -> Result<()> {
    let restarts = cell(table, domain, "RESTARTS");
    ensure!(
        restarts == Some(count.to_string().as_str()),
        "{domain}: {restarts:?} restarts, expected {count}:\n{table}"
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

fn under_read(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = processors;
    let line = "sha256sum /big > /tmp-sum & sleep 0.2; crash virtio-blk; sleep 0.3; crash virtio-blk; wait; cat /tmp-sum; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let answer = answer.shows(&format!("{}  /big\n", big_sum(bench)?))?;
    expect_restarts(&answer.stdout, "virtio-blk", 2)?;
    bench.expect_clean(&disk)
}

fn driver_under_write(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "cp /big /copy & sleep 0.3; crash virtio-blk; sleep 0.5; crash virtio-blk; wait; sync; sha256sum /copy";
    let answer = bench.exec(&disk, line)?.status(0)?.silently()?;
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

/// The number in the column `free` of what `free` prints.
fn free(text: &str) -> Result<i64> {
    let row = text
        .lines()
        .find(|line| line.starts_with("Mem:"))
        .with_context(|| format!("no Mem: in {text:?}"))?;
    Ok(row
        .split_whitespace()
        .nth(3)
        .context("no column `free`")?
        .parse()?)
}

/// After a first crash, so that everything that is kept is there; with pauses, to stay within the budget of restarts.
fn hundred(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    let round = "crash virtio-blk; sync; cat /text/b.txt > /dev-null; sync; sleep 2.1";
    for _ in 0..3 {
        session.run(round, LIMIT)?;
    }
    let before = free(&session.run("free -b", LIMIT)?)?;
    for _ in 0..100 {
        session.run(round, LIMIT)?;
    }
    let after = free(&session.run("free -b", LIMIT)?)?;
    let table = session.run("domains -q", LIMIT)?;
    expect_restarts(&table, "virtio-blk", 103)?;
    ensure!(
        before == after,
        "{before} bytes were free before 100 crashes, {after} after them"
    );
    power_off(session)?;
    bench.expect_clean(&disk)
}

fn power_off(mut session: Session) -> Result<()> {
    session.type_line(b"poweroff")?;
    session.end(LIMIT).map(|_| ())
}

fn file_system(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "sha256sum /big & sleep 0.3; crash ext2; wait; echo -; wc -l < /text/a.txt; echo new > /new; cat /new; domains -q";
    let answer = bench
        .exec(&disk, line)?
        .status(0)?
        .shows("-\n5000\nnew\n")?
        .complains("restarted")?;
    expect_restarts(&answer.stdout, "ext2", 1)?;
    bench.expect_clean(&disk)
}

fn personality(bench: &Bench<'_>) -> Result<()> {
    after_crash(bench, "rv6", "crash rv6").map(|_| ())
}

/// Types `line`, waits for the next prompt, and has the system prove that it still works.
fn after_crash(bench: &Bench<'_>, domain: &str, line: &str) -> Result<String> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    let printed = session
        .run(line, LIMIT)
        .with_context(|| format!("after the crash of {domain}"))?;
    session.settle(std::time::Duration::from_secs(1));
    let count = session.run("wc -l < /text/a.txt", LIMIT)?;
    ensure!(
        count.contains("5000\n"),
        "expected 5000 lines: {count:?}\n{}",
        session.report()
    );
    let table = session.run("domains -q", LIMIT)?;
    session.run("echo new > /new", LIMIT)?;
    power_off(session)?;
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/new")? == b"new\n",
        "/new was not written"
    );
    Ok(printed + &table)
}

fn shell(bench: &Bench<'_>) -> Result<()> {
    after_crash(bench, "sh", "crash sh").map(|_| ())
}

fn console(bench: &Bench<'_>) -> Result<()> {
    let text = after_crash(bench, "console", "crash console")?;
    expect_restarts(&text, "console", 1)
}

fn pci(bench: &Bench<'_>) -> Result<()> {
    let text = after_crash(bench, "pci", "crash pci")?;
    expect_restarts(&text, "pci", 1)
}

fn init(bench: &Bench<'_>) -> Result<()> {
    after_crash(bench, "init", "crash init").map(|_| ())
}

/// The sixth crash within ten seconds: the driver stays down, the log says so, and reads fail with a message.
fn budget(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let line = "for i in 1 2 3 4 5 6 7; do crash virtio-blk; sync; done; sha256sum /big; echo \"status $?\"; domains -q";
    let answer = bench.exec(&disk, line)?;
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

fn program(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let answer: Answer = bench
        .exec(&disk, "sleep 100 & sleep 0.2; crash sleep; wait; echo on")?
        .status(0)?;
    answer.shows("on\n")?;
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
        let text = "              total        used        free      shared\nMem:    100    40    60    1\n";
        assert_eq!(free(text).expect("is there"), 60);
        assert!(free("").is_err());
    }
}
