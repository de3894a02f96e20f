//! Golden tests: what idlc writes for a sample that has one of everything, and for a file full of errors.
//!
//! `BLESS=1 cargo test -p idlc --test golden` renews the files; read the difference before committing it.

use std::fs;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn compile(name: &str) -> Result<idlc::Model, idlc::Report> {
    let text = fs::read_to_string(path(name)).expect("a file of this test");
    idlc::compile(vec![idlc::Source {
        name: name.to_string(),
        text,
    }])
}

fn sample() -> idlc::Model {
    compile("sample.idl").unwrap_or_else(|report| panic!("{report}"))
}

/// Compares with a golden file and shows the first line that differs.
fn golden(name: &str, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        return fs::write(path(name), actual).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(path(name)).unwrap_or_default();
    if actual == expected {
        return;
    }
    let line = actual
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    let line = line.unwrap_or(actual.lines().count().min(expected.lines().count()));
    panic!(
        "{name}, line {}:\n  golden: {}\n  actual: {}\nBLESS=1 renews the file",
        line + 1,
        expected.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)"),
    );
}

#[test]
fn interfaces() {
    golden("sample.interfaces.rs", &idlc::emit_interfaces(&sample()));
}

#[test]
fn proxies() {
    golden("sample.proxies.rs", &idlc::emit_proxies(&sample()));
}

#[test]
fn hostile() {
    golden("sample.hostile.rs", &idlc::emit_hostile(&sample()));
}

#[test]
fn manual() {
    golden("sample.manual.md", &idlc::emit_manual(&sample()));
}

#[test]
fn shadow() {
    let model = sample();
    let interface = model.interface("Whole").expect("defined in the sample");
    golden("sample.shadow.rs", &idlc::emit_shadow(&model, interface));
}

#[test]
fn normalised() {
    golden("sample.normalised.txt", &sample().normalised());
}

#[test]
fn errors() {
    let report = compile("errors.idl").expect_err("it is full of errors");
    golden("errors.txt", &report.to_string());
}

#[test]
fn lines_are_not_too_long_and_have_no_blanks_at_the_end() {
    let model = sample();
    for text in [idlc::emit_interfaces(&model), idlc::emit_proxies(&model)] {
        let long = text
            .lines()
            .find(|line| line.len() > 140 || line.ends_with(' ') || line.contains('\t'));
        assert_eq!(long, None);
    }
}
