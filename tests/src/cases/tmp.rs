//! `/tmp` and the crash of what it is made of: `ramfs`, its shadow, and who keeps its content.

use anyhow::{Context, Result, ensure};
use machine::session::Session;

use super::recovery::{MANY_RESTARTS, cell, expect_restarts, with_limits};
use super::{Case, case};
use crate::bench::{Answer, Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("tmp-survives-a-crash", survives),
    case("tmp-full-and-emptied", full),
    case("tmp-copies-under-crashes", copies),
    case("tmp-copies-under-crashes-on-4-processors", copies_on_four),
    case("tmp-changes-of-names-under-crashes", names),
    case("tmp-file-is-made-while-it-is-removed", made_and_removed),
    case("tmp-keeps-a-removed-file-that-is-open", removed_file),
    case("tmp-keeper-crashes", keeper),
    case("tmp-keeper-and-files-crash-at-once", both),
    case("tmp-crashes-cost-no-memory", memory),
    case("tmp-updated-under-cp", updated),
];

/// The default manifest with these domains started as often as it takes, and a line under it.
fn run(bench: &Bench<'_>, processors: u32, line: &str) -> Result<Answer> {
    let manifest = with_limits(bench, &["ramfs", "keep", "vfs-tmp"], MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(bench.disk()?);
    machine.processors = processors;
    bench.exec_on(machine, line)
}

/// Names, content, times, the place where a shell is, and a file that is being read.
fn survives(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine_with(&bench.disk()?))?;
    let mut run = |line: &str| session.run(line, LIMIT);
    let said =
        run("cd /tmp; mkdir d; echo kept > d/f; mv d e; ln -s f e/s; cat e/s; ls -l e > /a")?;
    ensure!(said == "kept\n", "{said}");
    let said = run("crash ramfs > /dev/null; cat e/s; pwd; ls -l e > /b; cmp /a /b && echo same")?;
    ensure!(said == "kept\n/tmp\nsame\n", "{said}");
    let said = run(
        "head -c 3000000 /big > big; { dd bs=4096 count=9 2> /dev/null; crash ramfs > /dev/null; cat; } < big | cmp - big && echo same",
    )?;
    ensure!(said == "same\n", "{said}");
    let said =
        run("kill-domain ramfs > /dev/null; cat e/f; echo more >> e/f; cat e/f; domains -q")?;
    ensure!(said.starts_with("kept\nkept\nmore\n"), "{said}");
    expect_restarts(&said, "ramfs", 3)?;
    expect_restarts(&said, "vfs-tmp", 0)
}

fn full(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine_with(&bench.disk()?))?;
    let mut run = |line: &str| session.run(line, LIMIT);
    run("head -c 8388608 /big > /part; cp /part /tmp/1; rm /tmp/1")?;
    let before = run(FREE)?;
    let said = run(
        "for n in 1 2 3 4 5 6 7; do cp /part /tmp/$n; done; rm /tmp/7; cmp /part /tmp/3 && echo same",
    )?;
    ensure!(
        said.contains("No space left on device") && said.ends_with("same\n"),
        "{said}"
    );
    let said = run("crash ramfs > /dev/null; cmp /part /tmp/3 && echo same")?;
    ensure!(said == "same\n", "{said}");
    let said = run("rm /tmp/*; ls /tmp; echo fits > /tmp/x; cat /tmp/x; rm /tmp/x")?;
    ensure!(said == "fits\n", "{said}");
    let lost = kilobytes(&before)? - kilobytes(&run(FREE)?)?;
    // 48 MiB came and went; the shared heap, through which they did, has grown with it.
    ensure!(lost < 4096, "{lost} kB did not come back");
    Ok(())
}

const FREE: &str = "sleep 1; cat /proc/meminfo | grep MemFree";

fn kilobytes(text: &str) -> Result<i64> {
    let word = text.split_whitespace().nth(1);
    Ok(word.with_context(|| text.to_string())?.parse()?)
}

/// Trees are copied into `/tmp`, and removed again, while it crashes without a pause: between calls
/// and in the middle of them.
fn copies(bench: &Bench<'_>) -> Result<()> {
    copies_on(bench, 1)
}

fn copies_on_four(bench: &Bench<'_>) -> Result<()> {
    copies_on(bench, 4)
}

fn copies_on(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let line = "{ until [ -e /struck ]; do rm -rf /tmp/copy && cp -r /boot/bin /tmp/copy || echo FAILED; done; } & \
        for i in $(seq 40); do until kill-domain ramfs 2> /dev/null; do sleep 0.01; done; crash ramfs > /dev/null 2>&1; sleep 0.01; done; \
        echo > /struck; wait; cd /boot/bin; for f in *; do cmp $f /tmp/copy/$f || echo DIFFERENT $f; done; \
        ls > /a; ls /tmp/copy > /b; cmp /a /b && echo compared; domains -q";
    let answer = run(bench, processors, line)?.status(0)?.silently()?;
    ensure!(answer.stdout.starts_with("compared\n"), "{}", answer.stdout);
    let restarts = cell(&answer.stdout, "ramfs", "RESTARTS").context("no ramfs")?;
    ensure!(restarts.parse::<u32>()? >= 20, "only {restarts} crashes");
    expect_restarts(&answer.stdout, "vfs-tmp", 0)?;
    expect_restarts(&answer.stdout, "keep", 0)
}

/// A crash at each of many moments of work with names, each before a call of the next change.
fn names(bench: &Bench<'_>) -> Result<()> {
    let line = "cd /tmp; for i in $(seq 1 20); do mkdir a$i a$i/b; crash ramfs; mv a$i c$i; crash ramfs; \
        mkdir a$i; ln c$i/../x c$i/none; rm -r a$i; done 2> /dev/null; \
        echo kept > keep; mkdir s; mv keep s/old; crash ramfs; echo new > keep; mv s/old keep2; crash ramfs; \
        rm -r s; crash ramfs; cat keep keep2; ls | wc -l; ls c7";
    let answer = run(bench, 1, line)?.status(0)?.silently()?;
    answer.prints("new\nkept\n22\nb\n").map(drop)
}

/// Who makes a file where there is none is never told that there is none, whoever removes it.
fn made_and_removed(bench: &Bench<'_>) -> Result<()> {
    let line = "for n in 1 2 3; do { until [ -e /tmp/enough ]; do rm -f /tmp/x; done; } & done; \
        for i in $(seq 6000); do echo $i > /tmp/x; done; echo > /tmp/enough; wait; echo made";
    let answer = run(bench, 4, line)?.status(0)?.silently()?;
    answer.prints("made\n").map(drop)
}

/// Its last name is removed, then the file system crashes, twice; who has it open reads on.
fn removed_file(bench: &Bench<'_>) -> Result<()> {
    // `.` and `..` are all that is seen meanwhile.
    let line = "cp /boot/bin/sh /tmp/sh; { rm /tmp/sh; crash ramfs; dd bs=4096 count=9 2> /dev/null; ls -a /tmp | wc -l >&2; \
        crash ramfs; cat; } < /tmp/sh | cmp - /boot/bin/sh && echo same; crash ramfs; ls -a /tmp; df /tmp | tail -n 1";
    let answer = run(bench, 1, line)?.status(0)?;
    answer.shows("same\n.\n..\n")?.complains("2\n").map(drop)
}

/// Who keeps the content dies under work: the file system puts in what it has, and loses nothing
/// when it dies later.
fn keeper(bench: &Bench<'_>) -> Result<()> {
    let line = "{ until [ -e /struck ]; do rm -rf /tmp/copy; cp -r /boot/bin /tmp/copy || echo FAILED; done; } & \
        for i in $(seq 4); do sleep 0.02; until kill-domain keep 2> /dev/null; do sleep 0.02; done; done; echo > /struck; wait; sleep 0.5; crash ramfs; \
        cd /boot/bin; for f in *; do cmp $f /tmp/copy/$f || echo DIFFERENT $f; done; crash keep; sleep 0.5; kill-domain ramfs; \
        ls > /a; ls /tmp/copy > /b; cmp /a /b && echo compared; domains -q";
    let answer = run(bench, 2, line)?.status(0)?.silently()?;
    let table = answer
        .stdout
        .split_once("compared\n")
        .with_context(|| answer.stdout.clone())?;
    ensure!(!table.0.contains("DIFFERENT"), "{}", table.0);
    expect_restarts(table.1, "ramfs", 2)?;
    let restarts = cell(table.1, "keep", "RESTARTS").context("no keeper")?;
    ensure!(restarts.parse::<u32>()? >= 5, "only {restarts} crashes");
    Ok(())
}

/// Then nothing is left, and everything works.
fn both(bench: &Bench<'_>) -> Result<()> {
    let line = "echo lost > /tmp/f; kill-domain keep ramfs; ls /tmp; echo new > /tmp/f; crash ramfs; cat /tmp/f";
    let answer = run(bench, 1, line)?.status(0)?;
    answer.prints("new\n").map(drop)
}

/// What the file system pays for stays the same over its crashes, and so does the rest of memory.
fn memory(bench: &Bench<'_>) -> Result<()> {
    let manifest = with_limits(bench, &["ramfs"], MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(bench.disk()?);
    let mut session = bench.session(&machine)?;
    let crashes = "for i in 1 2 3 4 5 6 7 8 9 10; do crash ramfs; ls /tmp/copy > /dev/null; done; ";
    session.run(&format!("cp -r /boot/bin /tmp/copy; {crashes}"), LIMIT)?;
    let before = figures(&mut session)?;
    for _ in 0..4 {
        session.run(crashes, LIMIT)?;
    }
    let after = figures(&mut session)?;
    ensure!(after.0 == before.0, "{before:?}, then {after:?}");
    let lost = before.1 - after.1;
    ensure!(lost < 512, "40 crashes cost {lost} kB");
    Ok(())
}

/// The file system is replaced by another image again and again, and copies go on.
fn updated(bench: &Bench<'_>) -> Result<()> {
    let line = "{ until [ -e /updated ]; do rm -rf /tmp/copy; cp -r /boot/bin /tmp/copy || echo FAILED; done; } & \
        for i in 1 2 3; do update ramfs /boot/updates/ramfs-2 > /dev/null || echo REFUSED; done; echo > /updated; wait; \
        cd /boot/bin; for f in *; do cmp $f /tmp/copy/$f || echo DIFFERENT $f; done; echo compared; domains -q";
    let answer = run(bench, 2, line)?.status(0)?.silently()?;
    ensure!(answer.stdout.starts_with("compared\n"), "{}", answer.stdout);
    let updates = cell(&answer.stdout, "ramfs", "UPDATES").context("no ramfs")?;
    ensure!(updates == "3", "{updates} updates");
    Ok(())
}

/// What the file system pays for memory objects, and free memory.
fn figures(session: &mut Session) -> Result<(String, i64)> {
    let table = session.run("domains -q", LIMIT)?;
    let paid = cell(&table, "ramfs", "MEMOBJ").with_context(|| table.clone())?;
    let free = kilobytes(&session.run(FREE, LIMIT)?)?;
    Ok((paid.to_owned(), free))
}
