//! One negative test and more for every rule: the error names the rule, the place, what is wrong
//! and what to write instead.

mod bounds;
mod declarations;
mod documentation;
mod entries;
mod marks;
mod places;
mod types;

use idlc::{Report, Rule, Source};
use std::collections::BTreeSet;

/// A file that breaks one rule.
#[derive(Clone)]
struct Case {
    name: &'static str,
    rule: Rule,
    text: &'static str,
    /// `line:column` of the error.
    place: &'static str,
    message: &'static str,
    help: &'static str,
}

fn compile(text: &str) -> Result<idlc::Model, Report> {
    idlc::compile(vec![Source {
        name: "test.idl".to_string(),
        text: text.to_string(),
    }])
}

/// The file breaks its rule and no other, and the error says all that it should.
fn check(case: &Case) {
    let Err(report) = compile(case.text) else {
        panic!("{}: it was accepted", case.name)
    };
    let text = report.to_string();
    let rules: BTreeSet<_> = report.errors.iter().map(|error| error.rule).collect();
    assert_eq!(rules, BTreeSet::from([case.rule]), "{}:\n{text}", case.name);
    let start = format!("test.idl:{}: error[{}]: ", case.place, case.rule.name());
    for part in [start.as_str(), case.message, case.help] {
        assert!(
            text.contains(part),
            "{}: `{part}` is missing in:\n{text}",
            case.name
        );
    }
}

macro_rules! cases {
    ($($name:ident $rule:ident $place:literal $message:literal $help:literal $text:literal;)*) => {
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            rule: Rule::$rule,
            text: $text,
            place: $place,
            message: $message,
            help: $help,
        }),*];

        $(#[test]
        fn $name() {
            let case = CASES.iter().find(|case| case.name == stringify!($name));
            check(case.expect("made by this macro"));
        })*
    };
}

pub(crate) use cases;

const CASES: [&[Case]; 7] = [
    bounds::CASES,
    declarations::CASES,
    documentation::CASES,
    types::CASES,
    places::CASES,
    entries::CASES,
    marks::CASES,
];

#[test]
fn every_rule_has_a_case() {
    let tested: BTreeSet<_> = CASES.concat().iter().map(|case| case.rule).collect();
    let missing: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !tested.contains(rule))
        .map(|rule| rule.name())
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn rules_have_distinct_names() {
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn a_type_is_named_with_the_path_that_reaches_it() {
    let text = "//! D.\n/// D.\npub trait Thing {\n    /// D.\n    fn f(&self, x: Outer) -> RpcResult<()>;\n}\n\
                /// D.\npub struct Outer {\n    /// D.\n    pub inner: RRef<Inner>,\n}\n\
                /// D.\npub enum Inner {\n    /// D.\n    Full(Vec<u8>),\n}\n";
    let report = compile(text).expect_err("it has a Vec").to_string();
    let path = "reached by: interface `Thing`, method `f`, argument `x`, struct `Outer`, field `inner`, \
                `RRef<Inner>`, enum `Inner`, variant `Full`, field `0`";
    assert!(report.contains(path), "{report}");
}

#[test]
fn a_type_that_nothing_reaches_is_checked_too() {
    let text = "//! D.\n/// D.\npub struct Alone {\n    /// D.\n    pub x: Vec<u8>,\n}\n";
    let report = compile(text).expect_err("it has a Vec").to_string();
    assert!(
        report.contains("reached by: struct `Alone`, field `x`"),
        "{report}"
    );
}

#[test]
fn files_are_one_namespace() {
    let file = |name: &str, text: &str| Source {
        name: name.to_string(),
        text: text.to_string(),
    };
    let point = "//! D.\n/// D.\npub struct Point {\n    /// D.\n    pub x: u8,\n}\n";
    let user = "//! D.\n/// D.\npub trait Plane {\n    /// D.\n    fn origin(&self) -> RpcResult<Point>;\n}\n";
    assert!(idlc::compile(vec![file("b.idl", user), file("a.idl", point)]).is_ok());
    let twice =
        idlc::compile(vec![file("a.idl", point), file("b.idl", point)]).expect_err("defined twice");
    assert!(twice.to_string().contains(
        "b.idl:3:12: error[duplicate]: `Point` is defined twice; the first is at a.idl:3"
    ));
}

#[test]
fn no_cut_and_no_lost_word_makes_idlc_panic() {
    let sample = include_str!("../golden/sample.idl");
    for (at, letter) in sample.char_indices().filter(|(at, _)| at % 7 == 0) {
        let _ = compile(&sample[..at]);
        let _ = compile(&format!(
            "{}{}",
            &sample[..at],
            &sample[at + letter.len_utf8()..]
        ));
    }
}
