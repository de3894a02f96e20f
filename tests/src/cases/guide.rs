//! The guide `docs/guide/write-a-domain.md`: its code is the code that is built, and what it says
//! to run works.

use std::fs;

use anyhow::{Context, Result, ensure};
use trefoil_gate::build;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("guide-shows-the-files-that-are-built", verbatim),
    case("guide-domains-count-and-come-back", runs),
    case("guide-program-uses-the-service", program),
];

pub(super) const GUIDE: &str = "docs/guide/write-a-domain.md";

/// The fenced blocks of a Markdown text: what stands behind the opening fence, and the lines.
pub(super) fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(label) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            found.push((label, inside.flat_map(|line| [line, "\n"]).collect()));
        }
    }
    found
}

/// A file of the sources.
pub(super) fn read(bench: &Bench<'_>, path: &str) -> Result<String> {
    fs::read_to_string(bench.site.project.root.join(path)).context(path.to_string())
}

/// Fails unless every block of a guide that names a file is that file; their names.
pub(super) fn shown(bench: &Bench<'_>, guide: &str) -> Result<Vec<String>> {
    let text = read(bench, guide)?;
    let mut names = Vec::new();
    for (label, block) in blocks(&text) {
        if let Some((_, path)) = label.split_once(" file=") {
            let file = read(bench, path)?;
            ensure!(block == file, "{guide} does not show {path} as it is");
            names.push(path.to_string());
        }
    }
    Ok(names)
}

fn verbatim(bench: &Bench<'_>) -> Result<()> {
    let compared = shown(bench, GUIDE)?.len();
    ensure!(compared == 7, "{compared} files are shown, not 7");
    Ok(())
}

/// The text `manifest` with the sections of `changes` in place of those of the same name, or behind
/// all others.
fn changed(manifest: &str, changes: &str) -> String {
    let mut sections = sections(manifest);
    for new in self::sections(changes) {
        let is_same = |old: &&mut String| old.lines().next() == new.lines().next();
        match sections.iter_mut().find(is_same) {
            Some(old) => *old = new,
            None => sections.push(new),
        }
    }
    sections.concat()
}

/// A manifest cut in front of every header; the part before the first one is a section, too.
fn sections(manifest: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in manifest.lines() {
        if line.starts_with('[') {
            found.push(String::new());
        }
        let section = found.last_mut().expect("one is there from the start");
        section.push_str(line);
        section.push('\n');
    }
    found
}

/// The shell lines that the guide has run, in their order.
fn shell_lines(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once("--exec '"));
    lines
        .filter_map(|(_, rest)| rest.strip_suffix('\''))
        .collect()
}

/// The blocks with this label, one behind the other.
pub(super) fn labelled(text: &str, wanted: &str) -> String {
    let blocks = blocks(text).into_iter();
    blocks
        .filter(|(label, _)| *label == wanted)
        .map(|(_, block)| block)
        .collect()
}

/// The default manifest, changed as the guide says.
pub(super) fn manifest(bench: &Bench<'_>, text: &str) -> Result<String> {
    let default = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let header = "[services]\n";
    let services = format!("{header}{}", labelled(text, "toml services"));
    ensure!(default.contains(header), "no section for services");
    let default = default.replace(header, &services);
    Ok(changed(&default, &labelled(text, "toml manifest")))
}

/// Changes the default manifest as the guide says, and runs what it runs.
fn runs(bench: &Bench<'_>) -> Result<()> {
    let text = read(bench, GUIDE)?;
    let manifest = manifest(bench, &text)?;
    let file = bench.folder.join("tally.toml");
    fs::write(&file, &manifest)?;
    build::build(&bench.site.project, Some(&file))?;
    let lines = shell_lines(&text);
    let [count, crash, _] = lines.as_slice() else {
        anyhow::bail!("the guide runs {} lines, not 3", lines.len());
    };
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(disk.clone());
    bench
        .exec_on(machine, count)?
        .status(0)?
        .silently()?
        .shows("tally-watch: ")?
        .shows(" written")?;
    bench.expect_clean(&disk)?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(disk.clone());
    bench
        .exec_on(machine, crash)?
        .status(0)?
        .shows("a.txt\nb.txt\n")?
        .shows("restart 1 after 1 crashes")?
        .shows("tally-watch: ")?
        .logs("block-tally: domain_rt::crash at runtime/src/lib.rs:")?
        // Whichever of the two called first.
        .logs_one_of(&["ext2: ext2_domain::", "tally-watch: domain_rt::thread::run"])?;
    bench.expect_clean(&disk)
}

/// The program gets the service from the instance that serves, also from the next one; where the
/// manifest does not give it, it gets nothing.
fn program(bench: &Bench<'_>) -> Result<()> {
    let text = read(bench, GUIDE)?;
    let line = *shell_lines(&text).last().context("no line is run")?;
    let disk = bench.disk()?;
    let mut machine = bench.machine_by(&manifest(bench, &text)?)?;
    machine.disk = Some(disk.clone());
    let answer = bench.exec_on(machine, line)?.status(0)?;
    let counted = |line: &str| {
        let (read, _) = line.split_once(" sectors read, ")?;
        read.parse::<u64>().ok()
    };
    let counts: Vec<_> = answer.stdout.lines().map(counted).collect();
    match counts.as_slice() {
        [Some(before), Some(after)] if before > after => {}
        _ => anyhow::bail!(
            "not two counts, the second of a fresh start: {}",
            answer.stdout
        ),
    }
    bench.expect_clean(&disk)?;
    let refused = bench.exec_on(bench.machine(), "/boot/testing/tally")?;
    let refused = refused.status(1)?;
    ensure!(
        refused.stderr.contains("not granted that service"),
        "it got the service, or another error: {refused:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_labels_and_lines() {
        let text = "a\n```sh\nls\n```\n\n```rust file=x\nb\nc\n```\n";
        let expected = [("sh", "ls\n".to_string()), ("rust file=x", "b\nc\n".into())];
        assert_eq!(blocks(text), expected);
    }

    #[test]
    fn sections_are_replaced_or_added() {
        let manifest = "# a\n[one]\nx = 1\n[two]\ny = 2\n";
        assert_eq!(
            changed(manifest, "[one]\nx = 3\n[three]\n"),
            "# a\n[one]\nx = 3\n[two]\ny = 2\n[three]\n"
        );
    }

    #[test]
    fn shell_lines_are_found() {
        let text = "cargo xtask run --exec 'a; b'\nno\n";
        assert_eq!(shell_lines(text), ["a; b"]);
    }
}
