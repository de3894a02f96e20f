//! What the sources of domains and of safe libraries must not contain, since `forbid(unsafe_code)`
//! does not stop all of it. The build looks here before it compiles, and again, in what the
//! compiler makes of all macros, while it does ([`crate::guard`]).
//!
//! Each rule closes one door; each has a test below or among the attacks
//! (`docs/soundness/attacks.md`). What stays open is listed in `CAVEATS.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::lexer::{self, Kind, Token};
use crate::packages::Package;

/// The registry's packages that may be linked into the kernel, a domain or a library for them, and
/// the version that a manifest has to ask for, since older ones may have holes that safe code gets
/// through. One that nothing links any more is struck.
pub const VETTED: [(&str, &str); 6] = [
    ("cpufeatures", "0.3"),
    ("cfg-if", "1"),
    ("ed25519-compact", "2.1"),
    ("elf", "0.8"),
    ("sha2", "0.11"),
    ("smoltcp", "0.14"),
];

/// Packages that only one of ours may link, and in these words alone: that one's folder, the
/// package, and all that a manifest may say of it. Features switch on code that nobody vetted, the
/// usual ones too, and the more of a large package is in everybody's reach, the more has to hold.
pub const IN_ONE_FOLDER: [(&str, &str, &str); 1] = [(
    "lib/net/endpoint",
    "smoltcp",
    "{ version = \"0.14\", default-features = false, features = [\"alloc\", \"medium-ethernet\", \
     \"proto-ipv4\", \"proto-dhcpv4\", \"socket-tcp\", \"socket-tcp-reno\", \"socket-dhcpv4\", \
     \"auto-icmp-echo-reply\", \"iface-neighbor-cache-count-64\", \
     \"assembler-max-segment-count-32\"] }",
)];

/// A breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub text: String,
}

/// Words that must not occur, and why.
const BANNED: [(&str, &str); 17] = [
    ("unsafe", "unsafe code is for the kernel's crates alone"),
    ("asm", "assembly is unsafe code"),
    ("naked_asm", "assembly is unsafe code"),
    ("global_asm", "assembly is unsafe code"),
    ("naked", "naked functions escape the compiler's checks"),
    (
        "force_target_feature",
        "it changes how functions are called",
    ),
    ("target_feature", "it changes how functions are called"),
    ("linkage", "it replaces symbols of other crates"),
    (
        "link_section",
        "it moves code or data where it does not belong",
    ),
    ("no_mangle", "it replaces symbols of other crates"),
    ("export_name", "it replaces symbols of other crates"),
    ("proc_macro", "code must not run at build time"),
    (
        "global_allocator",
        "the runtime brings the domain's allocator",
    ),
    ("panic_handler", "the runtime says what a panic does"),
    ("alloc_error_handler", "the runtime says what a panic does"),
    ("no_core", "it unhooks the language from its library"),
    (
        "debugger_visualizer",
        "a debugger runs what it names, on the host",
    ),
];

/// The breaches in one source file. `root` is the folder of its package.
pub fn source(file: &Path, text: &str) -> Vec<Breach> {
    let tokens = lexer::code_tokens(text);
    let mut found = Vec::new();
    if has_shebang(text) {
        found.push(Breach {
            file: file.to_path_buf(),
            line: 1,
            text: "a first line that the compiler skips is not allowed here".into(),
        });
    }
    for (character, line) in lexer::odd_characters(text) {
        found.push(Breach {
            file: file.to_path_buf(),
            line,
            text: odd(character),
        });
    }
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind == Kind::Word)
    {
        let (before, after) = (&tokens[..at], &tokens[at + 1..]);
        if let Some(text) = breach(token.text.trim_start_matches("r#"), before, after) {
            found.push(Breach {
                file: file.to_path_buf(),
                line: token.line,
                text,
            });
        }
    }
    found
}

/// Why `character` must not be there.
fn odd(character: char) -> String {
    let why = match lexer::is_bidirectional(character) {
        true => "it changes the order in which text is shown",
        false => "only ASCII may stand outside of comments and literals",
    };
    format!(
        "the character {} is not allowed here: {why}",
        character.escape_unicode()
    )
}

/// Whether the compiler may skip the first line, whatever else could be read in it.
fn has_shebang(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    text.strip_prefix("#!")
        .is_some_and(|rest| !rest.starts_with('['))
}

/// What must not be in `text`, which the compiler printed after the expansion of all macros: each
/// once.
///
/// Words within literals do not count, as in [`source`]. The language's own derives write `unsafe`
/// in two forms, told apart by what they name: `unsafe impl ::core::clone::TrivialClone for Type
/// {}` (`Clone` of what is `Copy`) and `unsafe { ::core::intrinsics::unreachable() }` (comparisons
/// of enums). Nobody else can write these: no source that passes [`source`] has the word `unsafe`,
/// and to name that trait or that function takes an unstable feature, which the watched compilation
/// has none of, not for the macros of other packages either.
pub fn expanded(text: &str) -> Vec<String> {
    let tokens = lexer::code_tokens(text);
    let is_there = |banned: &str| {
        tokens.iter().enumerate().any(|(at, token)| {
            token.kind == Kind::Word
                && token.text.trim_start_matches("r#") == banned
                && !is_derived(&tokens[at..])
        })
    };
    let found = BANNED.iter().filter(|(word, _)| is_there(word));
    let found = found.map(|(word, reason)| format!("`{word}` is not allowed here: {reason}"));
    let characters = lexer::odd_characters(text);
    let characters: BTreeSet<char> = characters.into_iter().map(|(c, _)| c).collect();
    found.chain(characters.into_iter().map(odd)).collect()
}

/// What `derive(PartialEq)` of an enum has in it.
const UNREACHABLE: &str = "unsafe { : : core : : intrinsics : : unreachable ( ) }";

/// What `derive(Clone)` says of a type that is `Copy`, behind `unsafe impl` and generic parameters.
const TRIVIAL_CLONE: &str = ": : core : : clone : : TrivialClone for";

/// Whether `tokens` begin as one of the two things that only the language's derives can write.
fn is_derived(tokens: &[Token<'_>]) -> bool {
    let texts: Vec<&str> = tokens.iter().take(400).map(|token| token.text).collect();
    if UNREACHABLE.split(' ').eq(texts.iter().take(14).copied()) {
        return true;
    }
    let Some(rest) = texts.strip_prefix(&["unsafe", "impl"][..]) else {
        return false;
    };
    let rest = rest[generics(rest)..].iter().take(10).copied();
    TRIVIAL_CLONE.split(' ').eq(rest)
}

/// How many tokens the list of generic parameters takes that `texts` begins with; 0 if there is
/// none.
fn generics(texts: &[&str]) -> usize {
    let mut depth = 0usize;
    for (at, text) in texts.iter().enumerate() {
        match *text {
            "<" => depth += 1,
            ">" if at > 0 && texts[at - 1] != "-" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
    }
    0
}

fn breach(word: &str, before: &[Token<'_>], after: &[Token<'_>]) -> Option<String> {
    let next = |index: usize| after.get(index).map_or("", |token| token.text);
    if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == word) {
        return Some(format!("`{word}` is not allowed here: {reason}"));
    }
    match word {
        "include" if next(0) == "!" => {
            Some("`include!` is not allowed here: write a module".into())
        }
        "include_bytes" | "include_str" if next(0) == "!" && !is_inside(next(2)) => Some(format!(
            "`{word}!` of a file that is not named by a plain path inside of the package"
        )),
        "path" if next(0) == "=" && is_attribute(before) => {
            Some("`#[path]` is not allowed here: a module stands where its name says".into())
        }
        "feature" if next(0) == "(" => Some("unstable features are not allowed here".into()),
        "extern" if next(0) != "crate" || !matches!(next(1), "alloc" | "std") => {
            Some("`extern` is not allowed here, but for `extern crate alloc;`".into())
        }
        "entry" if next(0) == "!" => {
            Some("`entry!` is not allowed here: the build writes it".into())
        }
        "env" | "option_env" if next(0) == "!" => Some(format!(
            "`{word}!` is not allowed here: an image does not depend on who builds it"
        )),
        "static" if next(0) == "mut" => {
            Some("`static mut` is not allowed here: only unsafe code can use it".into())
        }
        _ => None,
    }
}

/// Whether the literal names a file in the folder of the source file or below.
fn is_inside(literal: &str) -> bool {
    let path = literal.trim_matches('"');
    literal.starts_with('"')
        && !path.starts_with('/')
        && !path.contains("..")
        && !path.contains('\\')
}

/// Whether what follows `before` stands in an attribute.
fn is_attribute(before: &[Token<'_>]) -> bool {
    let opening = before.iter().rposition(|token| token.text == "[");
    opening.is_some_and(|at| {
        let closed = before[at..].iter().any(|token| token.text == "]");
        let hash = before[..at]
            .iter()
            .rev()
            .map(|token| token.text)
            .find(|text| *text != "!");
        !closed && hash == Some("#")
    })
}

/// The breaches in all files of `package`, which is a domain or a safe library.
///
/// # Errors
/// If a file cannot be read.
pub fn package(package: &Package) -> Result<Vec<Breach>> {
    let mut found = targets(package);
    found.extend(settings(package));
    // What is in these folders is never linked, and no module can be taken from them without
    // `#[path]`.
    let others = ["tests", "benches", "examples"].map(|name| package.folder.join(name));
    for file in rust_files(&package.folder)? {
        if others.iter().any(|other| file.starts_with(other)) {
            continue;
        }
        if file.is_symlink() {
            let text = "links are not allowed here: they lead out of the package".into();
            found.push(Breach {
                file,
                line: 1,
                text,
            });
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        found.extend(source(&file, &text));
    }
    Ok(found)
}

/// Files that tell cargo or the compiler how to work, which is not the package's to say.
fn settings(package: &Package) -> Option<Breach> {
    let names = [".cargo", "rust-toolchain", "rust-toolchain.toml"];
    let file = names.map(|name| package.folder.join(name));
    let file = file.into_iter().find(|file| file.exists())?;
    let text = "how it is compiled is not the package's to say".into();
    Some(Breach {
        file,
        line: 1,
        text,
    })
}

/// Code that would run at build time, or that stands outside of the package.
fn targets(package: &Package) -> Vec<Breach> {
    let manifest = package.folder.join("Cargo.toml");
    let mut found = Vec::new();
    for (kind, file) in &package.targets {
        let text = match kind.as_str() {
            "custom-build" => {
                "build scripts are not allowed here: code must not run at build time".into()
            }
            "proc-macro" => {
                "procedural macros are not allowed here: code must not run at build time".into()
            }
            _ if !file.starts_with(&package.folder) => {
                format!("{} is not in the package's folder", file.display())
            }
            _ => continue,
        };
        found.push(Breach {
            file: manifest.clone(),
            line: 1,
            text,
        });
    }
    found
}

/// All Rust files and links below `folder`, sorted; its own build folder is passed over (but no
/// other folder of that name: it may be a module).
///
/// # Errors
/// If a folder cannot be read.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    gather(folder, &folder.join("target"), &mut files)?;
    files.sort();
    Ok(files)
}

fn gather(folder: &Path, except: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_symlink() || is_rust && !path.is_dir() {
            files.push(path);
        } else if path.is_dir() && path != except {
            gather(&path, except, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
