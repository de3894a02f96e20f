//! What the `Cargo.toml` of a domain or of a safe library may say: very little, and each thing on
//! one line.
//!
//! Nothing is listed that must not be there, for such a list would have to know all of cargo. What
//! is not understood here is refused; so no build scripts, procedural macros, renamed packages,
//! sources other than the registry, features of others that were not vetted, profiles, patches,
//! other targets or unstable settings get in.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::packages::Package;
use crate::trust::{Breach, IN_ONE_FOLDER};

/// What is wrong with the manifest of `package`.
///
/// # Errors
/// If it cannot be read.
pub fn package(package: &Package) -> Result<Vec<Breach>> {
    let file = package.folder.join("Cargo.toml");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(check(&file, &text))
}

/// What is wrong with the manifest `text`, which stands in `file`.
pub fn check(file: &Path, text: &str) -> Vec<Breach> {
    let mut table = "";
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('[') {
            table = line;
        }
        let is_fine = if line.starts_with('[') {
            is_table(line)
        } else {
            line.split_once('=')
                .is_some_and(|(key, value)| is_setting(table, key.trim(), value.trim()))
        };
        if !is_fine {
            found.push(Breach {
                file: file.to_path_buf(),
                line: index + 1,
                text: format!("`{line}` is not allowed in the Cargo.toml of a domain or library"),
            });
        }
    }
    found
}

fn is_table(line: &str) -> bool {
    matches!(
        line,
        "[package]"
            | "[package.metadata.trefoil]"
            | "[lib]"
            | "[dependencies]"
            | "[dev-dependencies]"
            | "[lints]"
            | "[lints.rust]"
    )
}

/// Whether `table` may have `key = value`.
fn is_setting(table: &str, key: &str, value: &str) -> bool {
    match (table, key) {
        ("[package]", "edition") => value == "\"2024\"",
        ("[package]", "name" | "description" | "version" | "rust-version" | "license") => {
            is_text(value)
        }
        (
            "[package]",
            "edition.workspace"
            | "version.workspace"
            | "rust-version.workspace"
            | "license.workspace",
        ) => value == "true",
        ("[package.metadata.trefoil]", "image" | "entry" | "path" | "update") => is_text(value),
        ("[lib]", "test" | "doctest" | "bench") => matches!(value, "true" | "false"),
        ("[dependencies]", name) => is_name(name) && is_dependency(name, value),
        // They are not part of an image.
        ("[dev-dependencies]", name) => is_name(name) && is_whole(value),
        ("[lints]", "workspace") => value == "true",
        ("[lints.rust]", "unsafe_code") => value == "\"forbid\"",
        ("[lints.rust]", name) => is_name(name) && is_text(value),
        _ => false,
    }
}

/// Whether `value` may be said of the package `name`.
fn is_dependency(name: &str, value: &str) -> bool {
    match IN_ONE_FOLDER.iter().find(|(_, listed, _)| *listed == name) {
        Some((.., words)) => value == *words,
        None => is_text(value) || is_source(value),
    }
}

/// Whether `value` says no more of a package than where it is, or which version.
fn is_source(value: &str) -> bool {
    let inner = value
        .strip_prefix('{')
        .and_then(|value| value.strip_suffix('}'));
    inner.is_some_and(|inner| {
        inner.split(',').all(|part| {
            part.split_once('=')
                .is_some_and(|(key, value)| match key.trim() {
                    "path" | "version" => is_text(value.trim()),
                    "default-features" => value.trim() == "false",
                    _ => false,
                })
        })
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c == '-' || c == '_' || c.is_ascii_alphanumeric())
}

/// Whether `value` is one string on one line, without escapes.
fn is_text(value: &str) -> bool {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains(['"', '\\']))
}

/// Whether `value` ends on its line.
fn is_whole(value: &str) -> bool {
    let count = |mark: char| value.matches(mark).count();
    !value.contains("\"\"\"")
        && !value.contains("'''")
        && count('[') == count(']')
        && count('{') == count('}')
        && count('"') % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<usize> {
        let found = check(Path::new("Cargo.toml"), text);
        found.into_iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn a_usual_manifest_passes() {
        let text = "# A domain.\n[package]\nname = \"a\"\nedition.workspace = true\n\n[lib]\ntest = false\n\n\
                    [package.metadata.trefoil]\nimage = \"a\"\nentry = \"a\"\n\n[dependencies]\n\
                    interfaces = { path = \"../../interfaces\" }\ncfg-if = \"1\"\n\
                    elf = { version = \"0.8\", default-features = false }\n";
        assert_eq!(wrong(text), [0; 0]);
    }

    #[test]
    fn features_of_others_are_those_that_were_vetted() {
        for (_, name, words) in IN_ONE_FOLDER {
            let wrong = |name: &str, value: &str| {
                let text = format!("[dependencies]\n{name} = {value}\n");
                !wrong(&text).is_empty()
            };
            assert!(!wrong(name, words));
            for value in [
                words.replace("\"]", "\", \"std\"]"),
                words.replace("default-features = false, ", ""),
                words.replace("false", "true"),
                words.replace(" }", ", package = \"other\" }"),
                words.replace(" }", ", path = \"../other\" }"),
                // The usual features, or none that was vetted with the others.
                "\"0.14\"".into(),
                "{ version = \"0.14\" }".into(),
                "{ version = \"0.14\", default-features = false }".into(),
                "{ path = \"../other\" }".into(),
            ] {
                assert_ne!(value, words);
                assert!(wrong(name, &value), "{value}");
            }
            assert!(wrong("other", words));
        }
    }

    #[test]
    fn what_spans_lines_is_refused() {
        assert_eq!(
            wrong("[package]\ndescription = \"\"\"\n[lib]\nproc-macro = true\n\"\"\"\n"),
            [2, 4, 5]
        );
        assert_eq!(
            wrong("[dependencies]\na = { path = \"x\",\n git = \"y\" }\n"),
            [2, 3]
        );
        assert_eq!(wrong("[dev-dependencies]\na = [\n"), [2]);
    }

    #[test]
    fn other_ways_to_write_the_same_are_refused() {
        for text in [
            "lib = { proc-macro = true }",
            "package.build = \"x.rs\"",
            "[ package ]",
            "[\"lib\"]",
            "[package]\n\"build\" = \"x.rs\"",
            "[dependencies]\na.git = \"x\"",
            "[dependencies]\na = { path = \"x\", 'git' = \"y\" }",
            "[dependencies]\na = { path = \"x\\\", git = \\\"y\" }",
            "[dependencies] # a\nb = 1",
        ] {
            assert!(!wrong(text).is_empty(), "{text}");
        }
    }
}
