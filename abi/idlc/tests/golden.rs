//! Golden tests: what idlc writes for a sample that has one of everything, and for a file full of
//! errors.
//!
//! `BLESS=1 cargo test -p idlc --test golden` renews the files; read the difference before
//! committing it.

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

/// How many calls the fuzzer over interfaces makes of an `.idl` file, and how many methods that
/// has.
fn calls(text: String) -> (usize, usize, String) {
    let name = "sample.idl".to_string();
    let model = idlc::compile(vec![idlc::Source { name, text }]);
    let model = model.unwrap_or_else(|report| panic!("{report}"));
    let methods = model.interfaces.iter().map(|it| it.methods.len()).sum();
    let code = idlc::emit_hostile(&model);
    (code.matches("crate::Method {").count(), methods, code)
}

#[test]
fn a_method_is_called_with_hostile_values_by_being_written() {
    let text = fs::read_to_string(path("sample.idl")).expect("a file of this test");
    let (before, methods, _) = calls(text.clone());
    assert_eq!(before, methods);
    let added = "pub trait Part {\n    /// D.\n    fn added(&self, left: u32, right: &RVec<u8>) -> RpcResult<u8>;\n";
    let (after, methods, code) = calls(text.replace("pub trait Part {\n", added));
    assert_eq!((after, methods), (before + 1, methods));
    assert_eq!(code.matches("name: \"added\",").count(), 1);
    assert_eq!(code.matches("let result = target.added(").count(), 1);
    let made = "left: {value0:?}, right: {value1:?}";
    assert_eq!(code.matches(made).count(), 1, "both arguments are made");
    assert_eq!(
        code.matches("fn added(&self, _: u32, _: &RVec<u8>)")
            .count(),
        1
    );
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
