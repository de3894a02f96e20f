//! Whether what documents and comments refer to is there: linked files and headings, quoted paths,
//! and the codes of goals such as R1 or P14.
//!
//! Looked at are all Markdown files, and the comments of Rust sources, interface files and
//! manifests. A reference is believed to be one by its form alone:
//!
//! - `[text](target)` in Markdown: the file exists, and so does the heading behind a `#`;
//! - a path whose first part is a folder of the project's root: it exists (`NAME` stands for any
//!   name); and so does a document that is quoted by its name alone;
//! - `"some words" in` such a path: a heading of it, or of a document in that folder, has these
//!   words;
//! - a code in Markdown: it begins a row of some table, its legend.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::columns;
use trefoil_gate::project::Project;
use trefoil_gate::trust::Breach;

/// Folders that hold no text of ours.
const PASSED_OVER: [&str; 3] = ["target", ".git", "golden"];
/// Letters that codes of goals and invariants begin with.
const CODES: &str = "RAEBPSI";

/// A piece of prose and where it stands.
struct Text {
    file: PathBuf,
    /// Its first line, counted from 1.
    line: usize,
    /// One line of Markdown, or one block of comments with a space between its lines.
    words: String,
}

/// All references that lead nowhere.
///
/// # Errors
/// If a file cannot be read.
pub fn breaches(project: &Project) -> Result<Vec<Breach>> {
    let mut files = Vec::new();
    gather(&project.root, &mut files)?;
    let known = Known::of(project, &files)?;
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let is_markdown = has_ending(file, "md");
        let is_generated = file.iter().any(|part| part == "golden");
        if !is_generated {
            found.extend(columns::breaches(file, &text));
        }
        let pieces = match is_markdown {
            true => prose(file, &text),
            false => comments(file, &text),
        };
        for piece in &pieces {
            let mut complain = |text: String| {
                found.push(Breach {
                    file: piece.file.clone(),
                    line: piece.line,
                    text,
                });
            };
            known.paths(piece, &mut complain);
            if is_markdown {
                known.links(piece, &mut complain);
                known.codes(piece, &mut complain);
            }
        }
    }
    Ok(found)
}

fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|found| found == ending)
}

/// All files below `folder` that have prose, in a fixed order.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || PASSED_OVER.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            gather(&path, files)?;
        } else if ["md", "rs", "idl", "toml"]
            .iter()
            .any(|ending| has_ending(&path, ending))
        {
            files.push(path);
        }
    }
    Ok(())
}

/// The lines of a Markdown document outside of code blocks.
fn prose(file: &Path, text: &str) -> Vec<Text> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            found.push(Text {
                file: file.to_path_buf(),
                line: index + 1,
                words: line.to_string(),
            });
        }
    }
    found
}

/// The comments of a source file that have lines of their own, block by block.
fn comments(file: &Path, text: &str) -> Vec<Text> {
    let marks: &[&str] = match has_ending(file, "toml") {
        true => &["#"],
        false => &["//!", "///", "//"],
    };
    let mut found: Vec<Text> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let comment = marks.iter().find_map(|mark| line.strip_prefix(mark));
        match (comment, found.last_mut()) {
            (Some(comment), Some(block)) if goes_on => {
                block.words.push(' ');
                block.words.push_str(comment.trim());
            }
            (Some(comment), _) => found.push(Text {
                file: file.to_path_buf(),
                line: index + 1,
                words: comment.trim().to_string(),
            }),
            (None, _) => {}
        }
        goes_on = comment.is_some();
    }
    found
}

/// The words of a heading as the target of a link: small letters, digits and hyphens.
fn slug(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| match letter {
        ' ' => '-',
        _ => letter.to_ascii_lowercase(),
    })
    .collect()
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim())
}

/// What can be referred to.
struct Known {
    root: PathBuf,
    /// Folders in the root.
    tops: BTreeSet<String>,
    /// Names of all documents.
    documents: BTreeSet<String>,
    /// Codes with a legend.
    legends: BTreeSet<String>,
}

impl Known {
    fn of(project: &Project, files: &[PathBuf]) -> Result<Known> {
        let mut known = Known {
            root: project.root.clone(),
            tops: BTreeSet::new(),
            documents: BTreeSet::new(),
            legends: BTreeSet::new(),
        };
        for entry in fs::read_dir(&project.root)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !PASSED_OVER.contains(&name.as_str()) {
                known.tops.insert(name);
            }
        }
        for file in files.iter().filter(|file| has_ending(file, "md")) {
            let text = fs::read_to_string(file)?;
            text.lines().for_each(|line| known.learn(line));
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            known.documents.insert(name.into_owned());
        }
        Ok(known)
    }

    /// Notes the codes that begin a row: `| R1 | ...`, `| E1-E11 | ...`.
    fn learn(&mut self, line: &str) {
        let Some(row) = line.strip_prefix("| ") else {
            return;
        };
        let cell = row.split(" |").next().unwrap_or_default();
        let (first, last) = cell.split_once('-').unwrap_or((cell, cell));
        if let (Some((letter, from)), Some((_, to))) = (code(first), code(last)) {
            let codes = (from..=to).map(|number| format!("{letter}{number}"));
            self.legends.extend(codes);
        }
    }

    /// Whether a path exists; `None` if it does not look like one of ours.
    fn exists(&self, path: &str) -> Option<bool> {
        let path = path.trim_end_matches(['.', ',', ';', ':', '/']);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
        if path.ends_with(".md") && path.chars().all(|letter| letter != '/' && is_plain(letter)) {
            return Some(self.documents.contains(path));
        }
        let (top, rest) = path.split_once('/')?;
        let is_ours = self.tops.contains(top) && path.chars().all(is_plain);
        let stands_for_others = rest
            .split(['/', '.'])
            .any(|part| part.len() > 1 && part.chars().all(|letter| letter.is_ascii_uppercase()));
        (is_ours && !stands_for_others && !path.contains(".."))
            .then(|| self.root.join(path).exists())
    }

    /// Complains of paths that lead nowhere, and of headings that they do not have.
    fn paths(&self, text: &Text, complain: &mut impl FnMut(String)) {
        let mut rest = text.words.as_str();
        while let Some((before, behind)) = rest.split_once('`') {
            let Some((quoted, behind)) = behind.split_once('`') else {
                return;
            };
            rest = behind;
            match self.exists(quoted) {
                Some(false) => complain(format!("`{quoted}` is not there")),
                Some(true) => self.heading(before, quoted, complain),
                None => {}
            }
        }
    }

    /// If `before` ends in `"some words" in `: complains if `path` has no such heading.
    fn heading(&self, before: &str, path: &str, complain: &mut impl FnMut(String)) {
        let quoted = before
            .strip_suffix("\" in ")
            .and_then(|text| text.rsplit_once('"'));
        let Some((_, wanted)) = quoted else {
            return;
        };
        let path_of = self.root.join(path);
        let mut files = Vec::new();
        if path_of.is_dir() {
            // Unreadable: then it was reported before.
            let _ = gather(&path_of, &mut files);
        } else {
            files.push(path_of);
        }
        let has_it = |file: &PathBuf| {
            let text = fs::read_to_string(file).unwrap_or_default();
            headings(&text).any(|heading| heading.to_lowercase().contains(&wanted.to_lowercase()))
        };
        let is_there = files
            .iter()
            .filter(|file| has_ending(file, "md"))
            .any(has_it);
        if !is_there {
            complain(format!("`{path}` has no heading \"{wanted}\""));
        }
    }

    /// Complains of links to files and headings that are not there.
    fn links(&self, text: &Text, complain: &mut impl FnMut(String)) {
        for piece in text.words.split("](").skip(1) {
            let target = piece.split(')').next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = text.file.parent().unwrap_or(&self.root);
            let file = match path {
                "" => text.file.clone(),
                _ => folder.join(path),
            };
            if !file.exists() {
                complain(format!("the link to {target} leads nowhere"));
            } else if !anchor.is_empty() {
                let text = fs::read_to_string(&file).unwrap_or_default();
                if !headings(&text).any(|heading| slug(heading) == anchor) {
                    complain(format!("the link to {target}: no such heading"));
                }
            }
        }
    }

    /// Complains of codes without a legend.
    fn codes(&self, text: &Text, complain: &mut impl FnMut(String)) {
        let words = text
            .words
            .split(|letter: char| !letter.is_ascii_alphanumeric());
        for word in words {
            if code(word).is_some() && !self.legends.contains(word) {
                complain(format!("no table says what {word} is"));
            }
        }
    }
}

/// Letter and number of a code such as `R1`.
fn code(word: &str) -> Option<(char, u32)> {
    let letter = word.chars().next().filter(|first| CODES.contains(*first))?;
    let number = &word[1..];
    let is_number = (1..=2).contains(&number.len()) && number.chars().all(|d| d.is_ascii_digit());
    is_number
        .then(|| number.parse().ok())
        .flatten()
        .map(|number| (letter, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong in a project that has just these files.
    fn found(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let root =
            std::env::temp_dir().join(format!("trefoil-texts-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("in the folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let project = Project {
            root: root.clone(),
            target: root.join("target"),
            out: root.join("target/trefoil"),
        };
        let found = breaches(&project).expect("read");
        fs::remove_dir_all(&root).expect("removed");
        found.into_iter().map(|breach| breach.text).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let page = "# One page\n\n[a](b.md#two-words) [c](b.md#three) [d](e.md) [f](#one-page)\n";
        let texts = found(
            "links",
            &[("docs/a.md", page), ("docs/b.md", "## Two words\n")],
        );
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("b.md#three") && texts[1].contains("e.md"));
    }

    #[test]
    fn quoted_paths_are_there() {
        let source = "//! See `docs/a.md`, `docs/b.md`,\n//! `docs/NAME.md`, `other/c.md`, `a.md`, `d.md`.\n";
        let texts = found("paths", &[("docs/a.md", "# A\n"), ("lib/x.rs", source)]);
        assert_eq!(texts, ["`docs/b.md` is not there", "`d.md` is not there"]);
    }

    #[test]
    fn quoted_headings_are_there() {
        let source = "// Read \"The A\" in `docs` and \"the b\" in `docs/a.md`.\n";
        let texts = found(
            "headings",
            &[("docs/a.md", "# The a\n"), ("lib/x.rs", source)],
        );
        assert_eq!(texts, ["`docs/a.md` has no heading \"the b\""]);
    }

    #[test]
    fn codes_have_a_legend() {
        let page = "| R1 | threads |\n| E1-E3 | more |\n\nR1, E2, P7, X9, R123 and `P1`\n";
        let texts = found("codes", &[("a.md", page)]);
        assert_eq!(
            texts,
            ["no table says what P7 is", "no table says what P1 is"]
        );
    }

    #[test]
    fn code_blocks_are_passed_over() {
        let page = "```\n[a](nowhere.md) P9\n```\n";
        assert_eq!(found("blocks", &[("a.md", page)]), [] as [&str; 0]);
    }
}
