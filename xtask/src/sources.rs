//! What every source file and package of ours has: a header, `unsafe` that is explained or
//! forbidden, no documentation that would be run where others wrote it. Kept for readers; what the
//! trusted build refuses is in `gate`.

use std::fs;
use std::path::{Path, PathBuf};

use trefoil_gate::lexer::{self, Kind, Token};
use trefoil_gate::packages::Package;
use trefoil_gate::trust::Breach;

/// Whether the package forbids unsafe code to the compiler, as all but the kernel must.
pub fn forbids_unsafe(package: &Package) -> Option<Breach> {
    let manifest = package.folder.join("Cargo.toml");
    let is_in_manifest = fs::read_to_string(&manifest)
        .unwrap_or_default()
        .contains("unsafe_code = \"forbid\"");
    if is_in_manifest {
        return None;
    }
    let roots = package
        .targets
        .iter()
        .filter(|(kind, _)| matches!(kind.as_str(), "lib" | "bin"));
    let lacks = |file: &&PathBuf| {
        !fs::read_to_string(file)
            .unwrap_or_default()
            .contains("#![forbid(unsafe_code)]")
    };
    let file = roots.map(|(_, file)| file).find(lacks)?;
    let text =
        "`#![forbid(unsafe_code)]` is missing (or `unsafe_code = \"forbid\"` in Cargo.toml)".into();
    Some(Breach {
        file: file.clone(),
        line: 1,
        text,
    })
}

/// A package whose code a build script writes, and whose documentation `cargo test` would compile
/// and run: there stands what domains' authors wrote.
pub fn generated(package: &Package) -> Option<Breach> {
    let is_generated = package.dependencies.iter().any(|it| it.kind == "build");
    let file = package.folder.join("Cargo.toml");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let is_off = text.lines().any(|line| line.trim() == "doctest = false");
    let text = "what is generated has no doctests: `doctest = false` is missing".into();
    (is_generated && !is_off).then_some(Breach {
        file,
        line: 1,
        text,
    })
}

/// A file that does not begin by saying what it is for.
pub fn header(file: &Path, text: &str) -> Option<Breach> {
    let first = lexer::tokens(text).into_iter().next();
    let says =
        first.is_some_and(|token| token.kind == Kind::Comment && token.text.starts_with("//!"));
    let text = "the file does not begin with `//!` and what it is for".into();
    if says {
        None
    } else {
        Some(Breach {
            file: file.to_path_buf(),
            line: 1,
            text,
        })
    }
}

/// Uses of `unsafe` without a comment that says why they are sound.
pub fn safety_comments(file: &Path, text: &str) -> Vec<Breach> {
    let tokens = lexer::tokens(text);
    let code: Vec<(usize, &Token<'_>)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind != Kind::Comment)
        .collect();
    let mut found = Vec::new();
    for (index, (at, token)) in code.iter().copied().enumerate() {
        let next = |steps: usize| code.get(index + steps).map_or("", |(_, next)| next.text);
        let is_foreign = next(1) == "extern" && (next(2) == "{" || next(3) == "{");
        let needs = token.text == "unsafe" && (matches!(next(1), "{" | "impl") || is_foreign);
        if needs && !is_explained(&tokens[..at], token.line) {
            let text = "`unsafe` without a `// SAFETY:` comment before it".into();
            found.push(Breach {
                file: file.to_path_buf(),
                line: token.line,
                text,
            });
        }
    }
    found
}

/// Whether a SAFETY comment stands in the ten lines before `line`, comments not counted.
fn is_explained(before: &[Token<'_>], line: usize) -> bool {
    let mut code_lines = 0;
    let mut last = line;
    for token in before.iter().rev() {
        if token.kind == Kind::Comment {
            if token.text.contains("SAFETY") {
                return true;
            }
            last = last.min(token.line);
            continue;
        }
        code_lines += last.saturating_sub(token.line);
        last = last.min(token.line);
        if code_lines > 10 {
            return false;
        }
    }
    false
}

/// Files that know the head of a chunk of the shared heap.
const OF_THE_HEAP: [&str; 3] = [
    "abi/base/src/shared.rs",
    "kernel/isolation/src/memory/heap.rs",
    "kernel/isolation/src/memory/heap",
];

/// Borrows for writing through a pointer, where a pointer may lead to the head of a chunk: domains
/// read it at any time. No run shows such a borrow, as what it writes is atomic or not read.
pub fn exclusive_heads(file: &Path, relative: &Path, text: &str) -> Vec<Breach> {
    if !OF_THE_HEAP.iter().any(|known| relative.starts_with(known)) {
        return Vec::new();
    }
    let code = lexer::tokens(text);
    let code: Vec<_> = code.iter().filter(|it| it.kind != Kind::Comment).collect();
    let is_exclusive = |at: &usize| {
        let word = |steps: usize| code.get(at + steps).map_or("", |it| it.text);
        match word(0) {
            "&" => word(1) == "mut" && matches!(word(2), "*" | "(" | "ChunkHead"),
            "*" => word(1) == "mut" && word(2) == "ChunkHead",
            word => matches!(word, "as_mut" | "as_uninit_mut" | "as_mut_unchecked"),
        }
    };
    let found = (0..code.len()).filter(is_exclusive);
    let breach = |at: usize| Breach {
        file: file.to_path_buf(),
        line: code[at].line,
        text: "a borrow for writing through a pointer, which may lead to a chunk's head".into(),
    };
    found.map(breach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_what_they_are_for() {
        assert!(header(Path::new("a.rs"), "//! A file.\nfn a() {}").is_none());
        assert!(header(Path::new("a.rs"), "// A file.\nfn a() {}").is_some());
        assert!(header(Path::new("a.rs"), "").is_some());
    }

    #[test]
    fn unsafe_blocks_are_explained() {
        let lines = |text: &str| -> Vec<usize> {
            safety_comments(Path::new("a.rs"), text)
                .iter()
                .map(|breach| breach.line)
                .collect()
        };
        assert!(lines("// SAFETY: it is.\nunsafe { a() }").is_empty());
        assert!(lines("// SAFETY: it is,\n// really.\nlet x =\n    unsafe { a() };").is_empty());
        assert!(lines("unsafe fn a() {}").is_empty());
        assert_eq!(lines("fn a() {\n    unsafe { a() }\n}"), [2]);
        assert_eq!(lines("unsafe impl Send for A {}"), [1]);
        assert_eq!(lines("unsafe extern \"C\" { static a: u8; }"), [1]);
        assert!(lines("struct A { a: unsafe extern \"C\" fn() }").is_empty());
        assert_eq!(
            lines(&format!(
                "// SAFETY: far away.\n{}unsafe {{ a() }}",
                "b();\n".repeat(20)
            )),
            [22]
        );
    }

    #[test]
    fn heads_of_chunks_are_only_shared() {
        let lines = |file: &str, text: &str| {
            let found = exclusive_heads(Path::new(file), Path::new(file), text);
            found.iter().map(|breach| breach.line).collect::<Vec<_>>()
        };
        let heap = "kernel/isolation/src/memory/heap/chunk.rs";
        for bad in [
            "let head = &mut *self.0.as_ptr();",
            "let head = &mut (*self.0.as_ptr()).used;",
            "let head = self.0.as_mut();",
            "fn head(&self) -> &mut ChunkHead {",
            "let head: *mut ChunkHead = self.0.as_ptr();",
        ] {
            let text = format!("// first\n{bad}\n");
            assert_eq!(lines(heap, &text), [2], "{bad}");
            assert_eq!(lines("abi/base/src/shared.rs", &text), [2], "{bad}");
            assert!(lines("kernel/isolation/src/domain/mod.rs", &text).is_empty());
        }
        let good = "let head = self.0.as_ref(); // not &mut *self.0\nfn a(&mut self) {}";
        assert!(lines(heap, good).is_empty());
    }

    #[test]
    fn forbidding_unsafe_is_asked_for() {
        let folder = std::env::temp_dir().join(format!("trefoil-rules-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let file = folder.join("lib.rs");
        let package = Package {
            folder: folder.clone(),
            targets: vec![("lib".into(), file.clone())],
            ..Package::default()
        };
        fs::write(&file, "//! A file.\n").expect("written");
        assert!(forbids_unsafe(&package).is_some());
        fs::write(&file, "//! A file.\n#![forbid(unsafe_code)]\n").expect("written");
        assert!(forbids_unsafe(&package).is_none());
        fs::remove_dir_all(folder).expect("removed");
    }
}
