//! Processor time as users see it. No test here asks how fast anything is: a machine whose host is
//! busy loses time, but that is charged to whoever had the processor then, so shares stay what they
//! are.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("times-busy-and-sleeping-programs", busy_and_sleeping),
    case("times-of-a-command", command),
    case("times-of-two-processors", two_processors),
    case("times-are-charged-where-the-work-is", where_the_work_is),
    case("times-after-a-crash", after_a_crash),
    case("times-a-thousand-threads-and-ls", thousand),
];

/// A program that never ends.
const LOOP: &str = "sh -c 'while :; do :; done'";
/// One that asks the file system for a file again and again, whose name is too long for the shadow
/// to remember that there is none.
const LOOKS: &str = "sh -c 'i=0; while [ $i -lt 3000 ]; do [ -e /deep/level0/level1/level2/level3/none-of-a-length-that-the-shadow-does-not-remember ]; i=$((i+1)); done'";

/// The number in column `column` (from 0) of the first line of `text` that ends with the word
/// `name`.
fn number(text: &str, name: &str, column: usize) -> Result<u64> {
    let rows = text.lines().map(|line| line.split_whitespace());
    let row = rows.clone().find(|row| row.clone().last() == Some(name));
    let row = row.with_context(|| format!("no line about {name} in\n{text}"))?;
    let word = row.clone().nth(column);
    let word = word.with_context(|| format!("no column {column} about {name} in\n{text}"))?;
    Ok(word.parse()?)
}

/// What the line of `/proc/processes` about `name` says, in milliseconds: own code, others' on its
/// behalf.
fn process(text: &str, name: &str) -> Result<(u64, u64)> {
    Ok((number(text, name, 4)?, number(text, name, 5)?))
}

/// What `/proc/times` says about `name`, in milliseconds.
fn total(text: &str, name: &str) -> Result<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value
        .with_context(|| format!("no {name} in\n{text}"))?
        .parse()?)
}

/// Seconds that `time` wrote after `name`, in hundredths.
fn hundredths(errors: &str, name: &str) -> Result<u64> {
    let lines = errors.lines().map(|line| line.split_once(' '));
    let values: Vec<&str> = lines
        .filter_map(|pair| pair.filter(|(word, _)| *word == name))
        .map(|(_, value)| value)
        .collect();
    let [value] = values[..] else {
        anyhow::bail!("{name} is not there once in\n{errors}");
    };
    let (seconds, rest) = value.split_once('.').context(errors.to_string())?;
    ensure!(rest.len() == 2, "{value}");
    Ok(seconds.parse::<u64>()? * 100 + rest.parse::<u64>()?)
}

fn busy_and_sleeping(bench: &Bench<'_>) -> Result<()> {
    let line = format!(
        "sleep 500 & {LOOP} & sleep 3; cat /proc/processes; ps; echo 0 0 0 0; cat /proc/times"
    );
    let answer = bench.exec(&bench.disk()?, &line)?.status(0)?.silently()?;
    let text = &answer.stdout;
    // The first `sh` is the one that runs the line; the loop is a child of it.
    let looping: String = text
        .lines()
        .filter(|line| !line.starts_with("1 0 "))
        .map(|line| format!("{line}\n"))
        .collect();
    let (user, system) = process(&looping, "sh")?;
    let (sleeping, on_its_behalf) = process(text, "sleep")?;
    ensure!(user + system >= 1500, "{user} + {system} ms in 3 s\n{text}");
    ensure!(
        sleeping + on_its_behalf <= (user + system) / 2,
        "asleep for {sleeping} + {on_its_behalf} ms\n{text}"
    );
    ensure!(user >= 300, "only {user} ms in its own code\n{text}");
    let (all, busy, idle) = (
        total(text, "all")?,
        total(text, "busy")?,
        total(text, "idle")?,
    );
    ensure!(busy <= all && busy + idle <= all + 1, "{text}");
    ensure!(busy >= user + system, "{text}");
    ensure!(text.contains("TIME"), "{text}");
    Ok(())
}

/// Four jobs with 250 spinning threads each have no more than their four parts. Where each thread
/// had a part, `ls` took 17 seconds.
fn thousand(bench: &Bench<'_>) -> Result<()> {
    let spin = "/boot/testing/strain spin 250 &";
    let line = format!(
        "{spin} {spin} {spin} {spin} sleep 3; cat /proc/processes; time -p ls /boot; \
         kill %1 %2 %3 %4; wait; echo over"
    );
    const RV6: &str = "[domain.rv6]\n";
    let manifest = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    ensure!(manifest.contains(RV6), "the manifest has no {RV6:?}");
    // A program may have 64 threads, if nobody says more.
    let manifest = manifest.replace(RV6, &format!("{RV6}options = \"threads 256\"\n"));
    for processors in [1, 2] {
        let mut machine = bench.machine_by(&manifest)?;
        machine.disk = Some(bench.disk()?);
        machine.processors = processors;
        let answer = bench.exec_on(machine, &line)?.status(0)?;
        let text = &answer.stdout;
        let made = text.matches("250 threads").count();
        ensure!(made == 4, "{made} of 4 jobs have their threads\n{text}");
        ensure!(
            text.contains("testing") && text.ends_with("over\n"),
            "{text}"
        );
        let real = hundredths(&answer.stderr, "real")?;
        ensure!(real < 600, "ls took {real} hundredths\n{}", answer.stderr);
    }
    Ok(())
}

fn command(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    for option in ["", "-p "] {
        let line = format!("time {option}{LOOKS}");
        let answer = bench.exec(&disk, &line)?.status(0)?;
        let [real, user, system] =
            ["real", "user", "sys"].map(|name| hundredths(&answer.stderr, name));
        let (real, used) = (real?, user? + system?);
        // Each is cut to hundredths.
        ensure!(used > 0 && used <= real, "{}", answer.stderr);
        ensure!(answer.stderr.lines().count() == 3, "{}", answer.stderr);
    }
    let answer = bench.exec(&disk, "time sleep 2; times")?.status(0)?;
    let used = hundredths(&answer.stderr, "user")? + hundredths(&answer.stderr, "sys")?;
    let real = hundredths(&answer.stderr, "real")?;
    ensure!(real >= 200 && used < real / 2, "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    ensure!(
        lines.len() == 2 && lines.iter().all(|line| line.matches('m').count() == 2),
        "{}",
        answer.stdout
    );
    // Bad use, and a command that fails, is not there, crashes.
    let line = "time; echo $?; time -x true; echo $?; time false; echo $?; time nothing; echo $?";
    let answer = bench.exec(&disk, line)?;
    answer.shows("2\n2\n1\n127\n").map(drop)
}

fn two_processors(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.processors = 2;
    let line = "cp /bin/sh /tmp/one; cp /bin/sh /tmp/two; PATH=/tmp:/bin; one -c 'while :; do :; done' & \
                two -c 'while :; do :; done' & sleep 3; cat /proc/processes /proc/domains /proc/times";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let text = &answer.stdout;
    let of = |name| process(text, name).map(|(user, system)| user + system);
    let (one, two) = (of("one")?, of("two")?);
    let (all, busy) = (total(text, "all")?, total(text, "busy")?);
    // Together more than one processor can give in the three seconds, and less than there is.
    ensure!(one >= 1000 && two >= 1000, "{one} and {two} ms\n{text}");
    ensure!(one + two >= 3500, "{one} and {two} ms\n{text}");
    ensure!(one + two <= busy && busy <= all, "{text}");
    let domains = text
        .lines()
        .filter(|line| line.split_whitespace().count() == 11);
    let charged: u64 = domains
        .filter_map(|line| line.split_whitespace().nth(9)?.parse::<u64>().ok())
        .sum();
    let charged = charged + total(text, "gone")? + total(text, "kernel")?;
    ensure!(
        charged <= busy && charged >= busy / 2,
        "{charged} ms charged\n{text}"
    );
    Ok(())
}

/// The file system is charged with what is asked of it, and who asks with the sum.
fn where_the_work_is(bench: &Bench<'_>) -> Result<()> {
    let line = format!("cat /proc/domains; {LOOKS}; cat /proc/domains");
    let answer = bench.exec(&bench.disk()?, &line)?.status(0)?.silently()?;
    let text = &answer.stdout;
    let last = text.rfind(" init\n").context("no line about init")?;
    let start = text[..last].rfind('\n').map_or(0, |at| at + 1);
    let (before, after) = text.split_at(start);
    let used = |name| -> Result<u64> { Ok(number(after, name, 9)? - number(before, name, 9)?) };
    let (asked, idle) = (used("ext2")?, used("pci")?);
    ensure!(
        asked > 0 && asked > 4 * idle,
        "{asked} ms in ext2, {idle} in pci\n{text}"
    );
    Ok(())
}

/// What an instance has used is not forgotten when it is gone.
fn after_a_crash(bench: &Bench<'_>) -> Result<()> {
    let line = format!(
        "{LOOKS}; cat /proc/domains /proc/times; crash ext2; ls /deep > /tmp/x; sleep 1; echo -; cat /proc/domains /proc/times"
    );
    let answer = bench.exec(&bench.disk()?, &line)?.status(0)?;
    let (before, after) = answer.stdout.split_once("\n-\n").context("no answer")?;
    let then = number(before, "ext2", 9)?;
    ensure!(
        number(before, "ext2", 0)? != number(after, "ext2", 0)?,
        "the instance is the same:\n{after}"
    );
    ensure!(then > 0, "nothing was charged:\n{before}");
    let (gone, later) = (total(before, "gone")?, total(after, "gone")?);
    ensure!(
        later + 1 >= gone + then,
        "{gone} + {then} ms are {later}:\n{after}"
    );
    Ok(())
}
