//! What the watch lets through, and what it does not.

use super::looks::without_output;
use super::*;

fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

#[test]
fn the_root_of_a_crate_is_found() {
    let call = words("--crate-name a --edition=2024 domains/a/src/lib.rs --crate-type lib");
    assert_eq!(root(&call), Some(Path::new("domains/a/src/lib.rs")));
    assert_eq!(root(&words("-vV")), None);
}

#[test]
fn an_expansion_writes_no_files() {
    let call =
        words("--crate-name a --error-format=json --json=x --emit=link --out-dir o -C metadata=1");
    assert_eq!(
        without_output(&call),
        words("--crate-name a -C metadata=1")
            .iter()
            .collect::<Vec<_>>()
    );
}

/// The modules that decide nothing about what a crate may say: where things are, and how tools are
/// called.
const OTHERS: [&str; 6] = ["build", "keys", "project", "setup", "signer", "tool"];

#[test]
fn all_rules_count_for_what_is_examined_again() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let is_listed = |wanted: &Path| RULES.iter().any(|(file, _)| sources.join(file) == wanted);
    for (file, text) in RULES.iter().filter(|(file, _)| file.ends_with(".rs")) {
        let mut named = Vec::new();
        let mut before = "";
        for line in text.lines() {
            let module = line
                .strip_prefix("mod ")
                .and_then(|it| it.strip_suffix(';'));
            // What is there for tests alone is no rule.
            if let Some(name) = module.filter(|_| before != "#[cfg(test)]") {
                named.push(sources.join(file).with_extension("").join(name));
            }
            if line.contains("crate::") {
                let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                let words = words.filter(|word| !word.is_empty() && !OTHERS.contains(word));
                named.extend(words.map(|word| sources.join(word)));
            }
            before = line;
        }
        let files = named.iter().map(|it| it.with_extension("rs"));
        for found in files.filter(|it| it.exists()) {
            assert!(is_listed(&found), "{file} names {}", found.display());
        }
    }
}

#[test]
fn what_could_not_be_looked_at_does_not_pass() {
    assert!(judge(Some(&[]), true).is_ok());
    assert!(judge(None, false).is_ok(), "the compiler has said why");
    assert!(judge(None, true).is_err());
    for is_compiled in [false, true] {
        assert!(judge(Some(&["`unsafe`".into()]), is_compiled).is_err());
    }
}

#[test]
fn every_file_that_was_read_is_searched() {
    let folder = std::env::temp_dir().join(format!("trefoil-read-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    let list = |name: &str, content: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, content).expect("written");
        format!("a.rlib: {0}\n\n{0}:\n", file.display())
    };
    let found = |list: String| searched(&list).expect("read").len();
    assert_eq!(found(list("a b.txt", b"unsafe fn a() {}")), 1);
    assert_eq!(
        found(list(
            "a.rs",
            "fn a() { include\u{200e}!(\"b\") }".as_bytes()
        )),
        2
    );
    assert_eq!(found(list("a.bin", b"unsafe \xff")), 0);
    assert_eq!(found(list("b.rs", b"fn a() {}")), 0);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn files_and_variables_of_others_are_seen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = folder.join("src/lib.rs");
    let list = format!("a.rlib: {0}\n\n{0}:\n", own.display());
    assert!(strangers(&list, folder).is_empty());
    let other = folder.join("../Cargo.toml");
    let list = format!("{}:\n/nowhere:\n# env-dep:HOME=/root\n", other.display());
    assert_eq!(strangers(&list, folder).len(), 3);
}
