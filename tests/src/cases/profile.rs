//! `cargo xtask profile`: in which functions the time of a line goes.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};

use super::guide::labelled;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("profile-of-two-runs-is-the-same", twice),
    case("profile-shows-domains-under-a-program", domains),
    case("profile-refuses-what-it-cannot-do", refused),
    case("profile-of-a-linux-process", in_a_process),
];

/// `cargo xtask profile` with these words.
fn profile(bench: &Bench<'_>, words: &[&str]) -> Result<Output> {
    Ok(bench.tool("profile")?.arg("--rw").args(words).output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The stacks of a folded file, and what they weigh.
fn folded(file: &Path) -> Result<Vec<(String, u64)>> {
    let text = fs::read_to_string(file)?;
    let lines = text.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').context("no weight")?;
        Ok((stack.to_string(), weight.parse()?))
    });
    lines.collect()
}

/// The guide's line, twice: where instructions are counted and nothing waits for the host, not one
/// is different.
fn twice(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let command = labelled(&guide, "sh profile");
    let words = command.trim().strip_prefix("cargo xtask profile ");
    let (options, line) = words
        .and_then(|words| words.split_once(" -- '"))
        .context("a line")?;
    let line = line.strip_suffix('\'').context("a quoted line")?;
    let mut seen = Vec::new();
    for number in 0..2 {
        let file = bench.folder.join(format!("{number}.folded"));
        let file = file.display().to_string();
        let mut words: Vec<&str> = options.split(' ').collect();
        words.extend(["-o", &file, "--", line]);
        let output = profile(bench, &words)?;
        let told = text(&output.stderr);
        ensure!(output.status.success(), "{told}");
        ensure!(text(&output.stdout) == "9999\n", "{}", text(&output.stdout));
        let expected = labelled(&guide, "text profile-told");
        for name in expected
            .lines()
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            ensure!(told.contains(name), "no {name:?} in\n{told}");
        }
        ensure!(!told.contains("lost"), "{told}");
        seen.push(folded(Path::new(&file))?);
    }
    ensure!(seen[0].len() > 1, "{:?}", seen[0]);
    ensure!(seen[0] == seen[1], "{:?}\n{:?}", seen[0], seen[1]);
    Ok(())
}

fn domains(bench: &Bench<'_>) -> Result<()> {
    let (file, disk) = (bench.folder.join("disk.folded"), bench.disk()?);
    let (out, disk) = (file.display().to_string(), disk.display().to_string());
    // One sample is taken each 10 ms.
    let line = "for i in 1 2 3 4; do cp /big /copy; sync; rm /copy; done";
    let words = ["--processors", "2", "--disk", &disk, "-o", &out, "--", line];
    let output = profile(bench, &words)?;
    ensure!(output.status.success(), "{}", text(&output.stderr));
    let stacks = folded(&file)?;
    let through = |stack: &str| {
        let places = ["kernel: ", "rv6: ", "vfs: ", "ext2: "].map(|name| stack.find(name));
        places.iter().all(Option::is_some) && places.is_sorted()
    };
    let all = || {
        stacks
            .iter()
            .map(|(stack, _)| format!("{stack}\n"))
            .collect::<String>()
    };
    ensure!(
        stacks.iter().any(|(stack, _)| through(stack)),
        "no way into ext2 in\n{}",
        all()
    );
    ensure!(stacks.iter().all(|(_, ns)| *ns > 0), "{}", all());
    Ok(())
}

fn refused(bench: &Bench<'_>) -> Result<()> {
    let cases: [(&[&str], i32, &str); 4] = [
        (&[], 2, "there is no line to profile"),
        (
            &["--icount", "--smp", "2", "--", "ls"],
            2,
            "leave --processors or --icount out",
        ),
        (&["--icount", "--kvm", "--", "ls"], 2, "cannot be used with"),
        (
            &["-o", "/dev/null/x", "--", "ls"],
            1,
            "cannot write /dev/null/x",
        ),
    ];
    for (words, status, complaint) in cases {
        let output = profile(bench, words)?;
        let errors = text(&output.stderr);
        let right = output.status.code() == Some(status) && errors.contains(complaint);
        ensure!(right, "{words:?}: {:?} {errors}", output.status);
    }
    let help = profile(bench, &["--help"])?;
    ensure!(
        text(&help.stdout).contains("--icount"),
        "{}",
        text(&help.stdout)
    );
    Ok(())
}

/// The guide's other line: a domain that spins is met where it does, behind those that called it.
fn in_a_process(bench: &Bench<'_>) -> Result<()> {
    let guide = fs::read_to_string(bench.site.project.root.join("docs/guide/debugging.md"))?;
    let block = labelled(&guide, "sh trace-hosted");
    let line = block.lines().nth(1).unwrap_or_default();
    let words = line.strip_prefix("cargo xtask profile ");
    let words = words.context("no line")?;
    let file = bench.folder.join("hosted.folded");
    let mut command = bench.tool("profile")?;
    command.arg("-o").arg(&file).args(words.split(' '));
    let output = command.output()?;
    let errors = text(&output.stderr);
    ensure!(output.status.success(), "{:?} {errors}", output.status);
    let all = fs::read_to_string(&file)?;
    let spins = |stack: &str| {
        let places = ["prober: ", "forwarder: ", "victim: victim::misdeeds::harm"];
        let places = places.map(|name| stack.find(name));
        places.iter().all(Option::is_some) && places.is_sorted()
    };
    let found = folded(&file)?.iter().any(|(stack, _)| spins(stack));
    ensure!(found, "no way into the victim in\n{all}");
    Ok(())
}
