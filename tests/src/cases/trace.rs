//! `cargo xtask trace`: the time line of a line under which the driver of the disk crashes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use lab::trace::{FILES, check};
use trefoil_gate::tool;

use super::guide::labelled;
use super::recovery::big_sum;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("trace-shows-crash-restart-and-repeated-request", crash),
    case("trace-of-a-killed-domain-and-a-failing-line", killed),
    case("trace-refuses-what-it-cannot-do", refused),
    case("trace-by-the-guide", by_the_guide),
    case("trace-lists-calls-with-their-arguments", listed),
    case("trace-of-a-linux-process", in_a_process),
];

/// `cargo xtask trace` with these words.
fn trace(bench: &Bench<'_>, words: &[&str]) -> Result<Output> {
    Ok(bench.tool("trace")?.arg("--rw").args(words).output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is in the three files, which keep to their formats.
fn files(folder: &Path) -> Result<(check::Found, Vec<String>, Vec<String>)> {
    let [events, profile, picture] = FILES.map(|name| folder.join(name));
    let read = |file: &PathBuf| fs::read_to_string(file).context(file.display().to_string());
    let found = check::trace_events(&read(&events)?).context("trace.json")?;
    let profiles = check::speedscope(&read(&profile)?).context("trace.speedscope.json")?;
    let seen = check::picture(&read(&picture)?).context("trace.svg")?;
    import(&profile)?;
    Ok((found, profiles, seen))
}

/// Has Speedscope's own importer read the file, where there is one: `TREFOIL_SPEEDSCOPE` is the
/// folder of its package.
fn import(profile: &Path) -> Result<()> {
    let package = std::env::var_os("TREFOIL_SPEEDSCOPE");
    let (Some(package), Some(node)) = (package, tool::find("node")) else {
        return Ok(());
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("importers/speedscope.cjs");
    let words: [OsString; 3] = [script.into(), package, profile.into()];
    let output = Command::new(node).args(words).output()?;
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "speedscope: {said}{errors}");
    ensure!(said.contains("profile processor 0: "), "speedscope: {said}");
    Ok(())
}

/// The moments of this category, one of which contains `what`.
fn expect_moment(found: &check::Found, category: &str, what: &str) -> Result<()> {
    let moments = found.moments.get(category);
    let is_there = moments.is_some_and(|all| all.iter().any(|name| name.contains(what)));
    ensure!(
        is_there,
        "no {category} with {what:?} in {:?}",
        found.moments
    );
    Ok(())
}

/// Acceptance: sum, crash, restart, repeated request, and what a time line has, in all three files.
fn crash(bench: &Bench<'_>) -> Result<()> {
    let (disk, folder) = (bench.disk()?, bench.folder.join("trace"));
    let (disk, out) = (disk.display().to_string(), folder.display().to_string());
    let line = "sha256sum /big & crash virtio-blk; wait";
    let words = ["--processors", "4", "--disk", &disk, "-o", &out, "--", line];
    let output = trace(bench, &words)?;
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    ensure!(
        output.status.success(),
        "{:?} {said} {errors}",
        output.status
    );
    ensure!(
        said.contains(&format!("{}  /big\n", big_sum(bench)?)),
        "another sum: {said}"
    );
    let (found, profiles, seen) = files(&folder)?;
    expect_moment(&found, "crash", "virtio-blk")?;
    expect_moment(&found, "restart", "virtio-blk")?;
    expect_moment(
        &found,
        "repeat",
        "block asks virtio-blk again: BlockQueue.submit",
    )?;
    for sort in [
        "call",
        "thread",
        "domain",
        "interrupt",
        "wait",
        "ready",
        "life",
    ] {
        ensure!(
            found.intervals.contains_key(sort),
            "no {sort} in {:?}",
            found.intervals
        );
    }
    let has = |part: &str| found.names.iter().any(|name| name.contains(part));
    ensure!(
        (has("BlockQueue.submit, failed") || has("BlockQueue.completions, failed"))
            && has("BlockQueue.submit, again"),
        "{:?}",
        found.names
    );
    ensure!(has("timer") && has("device line"), "{:?}", found.names);
    for profile in ["processor 0", "processor 3", "virtio-blk"] {
        ensure!(profiles.iter().any(|name| name == profile), "{profiles:?}");
    }
    for part in [
        "crashes: Panic",
        "is started again",
        "asks virtio-blk again",
        "processor 3",
    ] {
        ensure!(
            seen.iter().any(|text| text.contains(part)),
            "no {part:?} in the picture"
        );
    }
    // A busy host may be too slow; then all say so.
    let warned = errors.contains(&format!("{} events are lost", found.lost));
    ensure!((found.lost != 0) == warned, "{} lost: {errors}", found.lost);
    let shown = seen.iter().any(|text| text.contains("no event is lost"));
    ensure!((found.lost == 0) == shown, "{} lost: {seen:?}", found.lost);
    Ok(())
}

/// A domain that another ends, and a line that fails: its status is ours.
fn killed(bench: &Bench<'_>) -> Result<()> {
    let (disk, folder) = (bench.disk()?, bench.folder.join("trace"));
    let (disk, out) = (disk.display().to_string(), folder.display().to_string());
    let line = "kill-domain virtio-blk; head -c 9 /big > /dev/null; exit 7";
    let words = [
        "--calls",
        "virtio-blk",
        "--disk",
        &disk,
        "-o",
        &out,
        "--",
        line,
    ];
    let output = trace(bench, &words)?;
    let errors = text(&output.stderr);
    ensure!(
        errors.contains("block -> virtio-blk ") && errors.contains(": BlockQueue.submit(requests "),
        "no calls are listed: {errors}"
    );
    ensure!(
        output.status.code() == Some(7),
        "{:?} {}",
        output.status,
        text(&output.stderr)
    );
    let (found, ..) = files(&folder)?;
    expect_moment(&found, "crash", "is killed by kill-domain")?;
    expect_moment(&found, "restart", "virtio-blk")?;
    expect_moment(&found, "end", "head is ended by rv6")
}

/// Bad input is told, and nothing is written over.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let out = bench.folder.join("file");
    fs::write(&out, "mine")?;
    let out = out.display().to_string();
    let manifest = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let granted = "[program.calls]\nservices = [\"monitor\"]\n";
    ensure!(
        manifest.contains(granted),
        "the manifest grants it otherwise"
    );
    let poor = bench.folder.join("poor.toml");
    fs::write(&poor, manifest.replace(granted, ""))?;
    let (poor, into) = (
        poor.display().to_string(),
        bench.folder.display().to_string(),
    );
    let cases: [(&[&str], i32, &str); 5] = [
        (&[], 2, "there is no line to trace; for example"),
        (&["ls"], 2, "'ls'"),
        (&["--processors", "0", "--", "ls"], 2, "0 is not in 1..=8"),
        (&["-o", &out, "--", "ls"], 1, "cannot make the folder"),
        (
            &[
                "-o",
                &into,
                "--no-disk",
                "--manifest",
                &poor,
                "--",
                "echo hi",
            ],
            1,
            "nothing was traced",
        ),
    ];
    for (words, status, complaint) in cases {
        let output = trace(bench, words)?;
        let errors = text(&output.stderr);
        ensure!(
            output.status.code() == Some(status) && errors.contains(complaint),
            "{words:?}: {:?} {errors}",
            output.status
        );
    }
    ensure!(
        fs::read_to_string(&out)? == "mine",
        "{out} was written over"
    );
    let help = trace(bench, &["--help"])?;
    ensure!(
        text(&help.stdout).contains("trace.speedscope.json"),
        "{}",
        text(&help.stdout)
    );
    Ok(())
}

/// Runs the other command that the guide gives: each line that it shows is there, but for the
/// number of the thread and the time.
fn listed(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let block = labelled(&guide, "sh trace-calls");
    let rest = block
        .trim()
        .strip_prefix("cargo xtask trace --calls dd -- '");
    let line = rest.and_then(|rest| rest.strip_suffix('\''));
    let line = line.context("no such command")?;
    let (disk, folder) = (bench.disk()?, bench.folder.join("trace"));
    let (disk, out) = (disk.display().to_string(), folder.display().to_string());
    let words = ["--calls", "dd", "--disk", &disk, "-o", &out, "--", line];
    let errors = text(&trace(bench, &words)?.stderr);
    let told = labelled(&guide, "text trace-listing");
    ensure!(told.lines().count() == 3, "{told}");
    for line in told.lines() {
        let (_, call) = line.split_once(": ").context("no thread")?;
        let (call, _) = call.split_once('<').context("no time")?;
        ensure!(errors.contains(call), "no {call:?} in {errors}");
    }
    let reads = errors.matches("Process.read(descriptor 3, buffer 1024 elements) = returned");
    ensure!(reads.count() == 2, "{errors}");
    Ok(())
}

/// Runs the command that the guide gives, and finds what it says.
fn by_the_guide(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let block = labelled(&guide, "sh trace");
    let line = block
        .trim()
        .strip_prefix("cargo xtask trace ")
        .context("no such command")?;
    let (options, line) = line.split_once(" -- '").context("no line behind `--`")?;
    let line = line.strip_suffix('\'').context("a quoted line")?;
    let (disk, folder) = (bench.disk()?, bench.folder.join("trace"));
    let (disk, out) = (disk.display().to_string(), folder.display().to_string());
    let mut words: Vec<&str> = options.split(' ').collect();
    let place = words
        .iter()
        .position(|word| *word == "-o")
        .context("no -o")?;
    *words.get_mut(place + 1).context("no folder behind -o")? = &out;
    words.extend(["--disk", &disk, "--", line]);
    let output = trace(bench, &words)?;
    let errors = text(&output.stderr);
    ensure!(output.status.success(), "{:?} {errors}", output.status);
    let (found, ..) = files(&folder)?;
    for told in labelled(&guide, "text trace-moments").lines() {
        let (category, name) = told
            .trim()
            .split_once(": ")
            .context("what sort of moment")?;
        // Numbers of instances may differ.
        let moments = found.moments.get(category).context(told.to_string())?;
        let plain = |name: &str| {
            name.split(' ')
                .filter(|word| word.parse::<u32>().is_err())
                .collect::<Vec<_>>()
                .join(" ")
        };
        ensure!(
            moments.iter().any(|moment| plain(moment) == plain(name)),
            "{told}: {moments:?}"
        );
    }
    Ok(())
}

/// The guide's line: calls through two domains to the one that dies, to the end of the process.
fn in_a_process(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let block = labelled(&guide, "sh trace-hosted");
    let line = block.lines().next().unwrap_or_default();
    let words = line.strip_prefix("cargo xtask trace ").context("no line")?;
    let folder = bench.folder.join("trace");
    let mut command = bench.tool("trace")?;
    command.arg("-o").arg(&folder).args(words.split(' '));
    let output = command.output()?;
    let errors = text(&output.stderr);
    ensure!(output.status.success(), "{:?} {errors}", output.status);
    let [events, ..] = FILES.map(|name| folder.join(name));
    let found = check::trace_events(&fs::read_to_string(events)?).context("trace.json")?;
    expect_moment(&found, "crash", "victim")?;
    for wanted in [
        ": prober -> forwarder 5: Subject.misbehave(",
        ": forwarder 5 -> forwarder 4: Subject.misbehave(",
        ": forwarder 4 -> victim: Subject.misbehave(",
    ] {
        let line = errors.lines().find(|line| line.contains(wanted));
        let line = line.with_context(|| format!("no {wanted:?} in {errors}"))?;
        ensure!(
            line.contains(" = failed") || line.contains(" = returned"),
            "{line}"
        );
    }
    ensure!(!errors.contains("are lost"), "{errors}");
    let none = trace(bench, &["--hosted", "--", "bench", "calls"])?;
    let errors = text(&none.stderr);
    ensure!(none.status.code() == Some(2), "{:?} {errors}", none.status);
    // A process that never comes so far.
    let none = trace(bench, &["--hosted", "--", "run", "/none"])?;
    let errors = text(&none.stderr);
    ensure!(
        none.status.code() == Some(1) && errors.contains("the launcher ended before"),
        "{:?} {errors}",
        none.status
    );
    Ok(())
}
