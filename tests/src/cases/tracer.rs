//! `trace` inside the system: calls by name with their arguments, and its ends.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::calls::counts;
use super::guide::labelled;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("tracer-by-the-guide", by_the_guide),
    case("tracer-shows-known-calls-and-ends-with-its-program", known),
    case("tracer-of-a-domain-that-ends", ended),
    case("tracer-of-who-serves-it-ends", of_its_own),
    case("tracer-refuses-what-it-cannot-do", refused),
];

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the command that the guide gives: each line that it shows is there, but for times.
fn by_the_guide(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let line = labelled(&guide, "text trace-inside");
    let (line, told) = line.split_once('\n').context("no command")?;
    let line = line.strip_prefix("$ ").context("no prompt")?;
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?;
    ensure!(told.lines().count() == 4, "{told}");
    for line in told.lines() {
        let (_, call) = line.split_once(' ').context("no time")?;
        let (call, _) = call.split_once('<').context("no other time")?;
        ensure!(
            answer.stdout.contains(call),
            "no {call:?} in {}",
            answer.stdout
        );
    }
    Ok(())
}

/// Lines of `text` that contain `part`.
fn lines_with(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

/// Each call is shown once, and when the program is ended from outside, nobody pays any more.
fn known(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    session.run("trace ext2 > /tmp/calls &", LIMIT)?;
    session.run(
        "sleep 1; mkdir /one /two /three; rmdir /two; sleep 1",
        LIMIT,
    )?;
    session.run("kill %1; wait; sleep 1", LIMIT)?;
    let text = session.run("cat /tmp/calls", LIMIT)?;
    for (part, expected) in [
        (
            "vfs -> ext2: FileSystem.create(directory 2, name 3 elements, kind Directory, mode ",
            2,
        ),
        (
            "vfs -> ext2: FileSystem.create(directory 2, name 5 elements, kind Directory, mode ",
            1,
        ),
        (
            "vfs -> ext2: FileSystem.remove_directory(directory 2, name 3 elements) = returned <",
            1,
        ),
    ] {
        let found = lines_with(&text, part);
        ensure!(found == expected, "{found} times {part:?} in {text}");
    }
    ensure!(lines_with(&text, "ext2 -> block: ") > 0, "{text}");
    let others = text.lines().filter(|line| line.contains(" -> "));
    let strange = others.clone().find(|line| !line.contains("ext2"));
    ensure!(strange.is_none(), "{strange:?} is not of ext2");
    // An address of the kernel's has 20 digits, or begins with ffff.
    let addresses = others.filter(|line| line.contains("ffff") || line.contains("1844674"));
    ensure!(addresses.count() == 0, "{text}");
    let before = session.run("calls", LIMIT)?;
    session.run("ls / > /dev/null", LIMIT)?;
    let after = session.run("calls", LIMIT)?;
    ensure!(!counts(&before).is_empty(), "nothing was counted: {before}");
    ensure!(counts(&before) == counts(&after), "{before}\n{after}");
    Ok(())
}

/// A trace ends with the domain.
fn ended(bench: &Bench<'_>) -> Result<()> {
    let line = "(sleep 1; ls / > /dev/null; kill-domain ext2) & trace ext2 > /tmp/calls; \
                echo status $?; wait; grep -c 'vfs -> ext2: ' /tmp/calls";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?;
    ensure!(answer.stdout.starts_with("status 0\n"), "{}", answer.stdout);
    Ok(())
}

/// `rv6` is asked for everything that is printed: that is no reason to go on for ever.
fn of_its_own(bench: &Bench<'_>) -> Result<()> {
    let line = "trace rv6 -- dd if=/big of=/dev/null bs=1024 skip=3 count=2 2> /dev/null; \
                while :; do ls / > /dev/null; done & trace -n 7 rv6 > /tmp/calls; kill %1; wait; \
                wc -l < /tmp/calls; trace rv6 -- sh -c 'exit 9' > /tmp/calls";
    let answer = bench.exec(&bench.disk()?, line)?.status(9)?;
    let text = &answer.stdout;
    for (part, expected) in [
        (
            " -> rv6: Process.seek(descriptor 3, offset 3072) = returned <",
            1,
        ),
        (
            " -> rv6: Process.read(descriptor 3, buffer 1024 elements) = returned <",
            2,
        ),
        (
            " -> rv6: Process.write(descriptor 4, data 1024 elements) = returned <",
            2,
        ),
    ] {
        let found = lines_with(text, part);
        ensure!(found == expected, "{found} times {part:?} in {text}");
    }
    ensure!(text.lines().last() == Some("7"), "{text}");
    Ok(())
}

/// Bad input, and a program without the right.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let line = "trace; echo $?; trace nobody; echo $?; trace -n 0 ext2; echo $?; \
                trace ext2 vfs; echo $?; trace ext2 -- nothing; echo $?; trace --help > /tmp/help; \
                echo $?; grep -c COMMAND /tmp/help";
    let answer = bench.exec(&bench.disk()?, line)?.status(0)?;
    answer
        .prints("2\n1\n2\n2\n127\n0\n2\n")?
        .complains("trace: a name is needed; `trace --help` says more")?
        .complains("trace: nobody: no such domain")?
        .complains("trace: a number above 0 is needed")?
        .complains("trace: one name is enough")?
        .complains("trace: nothing: No such file or directory")?;
    let manifest = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let granted = "services = [\"monitor\", \"tracer\"]\n";
    ensure!(
        manifest.matches("\"tracer\"").count() == 1 && manifest.contains(granted),
        "the manifest grants it otherwise"
    );
    let poor = manifest.replace(granted, "services = [\"monitor\"]\n");
    let mut machine = bench.machine_by(&poor)?;
    machine.disk = Some(bench.disk()?);
    let answer = bench.exec_on(machine, "trace ext2")?.status(1)?;
    answer.complains("trace: tracer: this program is not granted that service")?;
    Ok(())
}
