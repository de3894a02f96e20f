//! How much there may be of everything: each breaks one of these rules, and what is as large as it
//! may be is accepted.

use crate::{Case, cases, check, compile};
use idlc::{Rule, Source};

cases! {
    no_long_names NameLength "6:8" "is longer than 32 bytes" "a shorter name" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(&self) -> RpcResult<()>;
}
"#;

    no_long_names_of_ports NameLength "6:27" "is longer than 32 bytes" "a shorter name" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    #[offers(a)] fn start(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: Handle<dyn Part>) -> RpcResult<Handle<dyn Part>>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_deep_types Nesting "6:20" "is nested more than 32 types deep" "refer to each other by index" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<RRef<u8>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) -> RpcResult<()>;
}
"#;

    no_long_words FileSize "1:1" "a word of more than 256 bytes" "" r#"//! D.

/// D.
pub struct Point {
    /// D.
    pub aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: u8,
}
"#;

    few_parameters TooMany "6:8" "method `Thing::f` has 17 parameters, and at most 16" "a struct" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, a0: u8, a1: u8, a2: u8, a3: u8, a4: u8, a5: u8, a6: u8, a7: u8, a8: u8, a9: u8, a10: u8, a11: u8, a12: u8, a13: u8, a14: u8, a15: u8, a16: u8) -> RpcResult<()>;
}
"#;

    no_interfaces_without_methods Body "4:11" "interface `Thing` has no method" "a method;" r#"//! D.

/// D.
pub trait Thing {}
"#;

    no_giants_on_the_shared_heap TooLarge "6:25" "takes up to 1048584 bytes" "`RVec<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<[u64; 131073]>) -> RpcResult<()>;
}
"#;

    no_giant_elements TooLarge "6:25" "takes up to 4294967295 bytes" "`RVec<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<[(); 4294967295]>) -> RpcResult<()>;
}
"#;

    no_method_like_that_of_a_base Reserved "7:8" "every base has a method `pass`" "`pass_thing`" r#"//! D.

/// D.
#[base]
pub trait Thing {
    /// D.
    fn pass(&self) -> RpcResult<()>;
}
"#;

    no_name_like_that_of_a_base Duplicate "5:11" "`ThingBase` is defined twice" "another name" r#"//! D.

/// D.
#[base]
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
/// D.
pub struct ThingBase {
    /// D.
    pub x: u8,
}
"#;
}

/// The numbers of a text with `count` of something.
struct Bound {
    rule: Rule,
    most: usize,
    message: &'static str,
    text: fn(usize) -> String,
}

fn many(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect()
}

fn methods(count: usize) -> String {
    let methods = many(count, |at| {
        format!("/// D.\nfn m{at}(&self) -> RpcResult<()>;\n")
    });
    format!("//! D.\n/// D.\npub trait Many {{\n{methods}}}\n")
}

fn parameters(count: usize) -> String {
    let parameters = many(count, |at| format!(", a{at}: u8"));
    format!(
        "//! D.\n/// D.\npub trait T {{\n/// D.\nfn f(&self{parameters}) -> RpcResult<()>;\n}}\n"
    )
}

fn variants(count: usize) -> String {
    let variants = many(count, |at| format!("/// D.\nV{at},\n"));
    format!("//! D.\n/// D.\n#[plain]\npub enum E {{\n{variants}}}\n")
}

fn fields(count: usize) -> String {
    let fields = many(count, |at| format!("/// D.\npub a{at}: u8,\n"));
    format!("//! D.\n/// D.\npub struct S {{\n{fields}}}\n")
}

fn fields_of_variant(count: usize) -> String {
    let fields = many(count, |_| "u8, ".to_string());
    format!("//! D.\n/// D.\npub enum E {{\n/// D.\nV({fields}),\n}}\n")
}

fn interfaces(count: usize) -> String {
    let item = "/// D.\npub trait T@ {\n/// D.\nfn f(&self) -> RpcResult<()>;\n}\n";
    format!(
        "//! D.\n{}",
        many(count, |at| item.replace('@', &at.to_string()))
    )
}

fn types(count: usize) -> String {
    let item = "/// D.\npub struct T@ {\n/// D.\npub a: u8,\n}\n";
    format!(
        "//! D.\n{}",
        many(count, |at| item.replace('@', &at.to_string()))
    )
}

fn entries(count: usize) -> String {
    let item = "/// D.\n#[domain]\npub trait T@ {\nfn start() -> RpcResult<()>;\n}\n";
    format!(
        "//! D.\n{}",
        many(count, |at| item.replace('@', &at.to_string()))
    )
}

/// Structs that hold each other, the first one a number: as deep as there are, and that.
fn chain(count: usize) -> String {
    let one = |at: usize| {
        let inner = at
            .checked_sub(1)
            .map_or("u8".to_string(), |it| format!("T{it}"));
        format!("/// D.\npub struct T{at} {{\n/// D.\npub a: {inner},\n}}\n")
    };
    format!("//! D.\n{}", many(count - 1, one))
}

fn long(count: usize) -> String {
    let text = "//! D.\n/// D.\npub struct S {\n/// D.\npub a: u8,\n}\n";
    format!("{text}{}", " ".repeat(count - text.len()))
}

const BOUNDS: [Bound; 11] = [
    Bound {
        rule: Rule::TooMany,
        most: 256,
        message: "interface `Many` has 257 methods, and at most 256",
        text: methods,
    },
    Bound {
        rule: Rule::TooMany,
        most: 16,
        message: "has 17 parameters, and at most 16",
        text: parameters,
    },
    Bound {
        rule: Rule::TooMany,
        most: 256,
        message: "enum `E` has 257 variants, and at most 256",
        text: variants,
    },
    Bound {
        rule: Rule::TooMany,
        most: 256,
        message: "struct `S` has 257 fields, and at most 256",
        text: fields,
    },
    Bound {
        rule: Rule::TooMany,
        most: 256,
        message: "variant `E::V` has 257 fields, and at most 256",
        text: fields_of_variant,
    },
    Bound {
        rule: Rule::TooMany,
        most: 1024,
        message: "all files together have 1025 interfaces, and at most 1024",
        text: interfaces,
    },
    Bound {
        rule: Rule::TooMany,
        most: 4096,
        message: "all files together have 4097 structs and enums",
        text: types,
    },
    Bound {
        rule: Rule::TooMany,
        most: 1024,
        message: "all files together have 1025 entries of domains",
        text: entries,
    },
    Bound {
        rule: Rule::Nesting,
        most: 32,
        message: "`T31` is nested more than 32 types deep",
        text: chain,
    },
    Bound {
        rule: Rule::FileSize,
        most: 256 * 1024,
        message: "longer than 256 KiB",
        text: long,
    },
    Bound {
        rule: Rule::Budget,
        most: 3_600_000,
        message: "`3600001` is not a budget in milliseconds",
        text: |count| {
            let method = format!("/// D.\n#[budget({count})]\nfn f(&self) -> RpcResult<()>;\n");
            format!("//! D.\n/// D.\npub trait T {{\n{method}}}\n")
        },
    },
];

#[test]
fn what_is_as_much_as_it_may_be_is_accepted_and_one_more_refused() {
    for Bound {
        rule,
        most,
        message,
        text,
    } in BOUNDS
    {
        if let Err(report) = compile(&text(most)) {
            panic!("{most} were refused:\n{report}");
        }
        let report = compile(&text(most + 1)).expect_err(message);
        let rules: Vec<_> = report.errors.iter().map(|it| it.rule).collect();
        assert_eq!(rules, [rule], "{report}");
        assert!(report.to_string().contains(message), "{report}");
    }
}

#[test]
fn there_are_not_too_many_files() {
    let files = |count: usize, length: usize| {
        let text = format!("//! D.\n{}", " ".repeat(length));
        let name = "a.idl".to_string();
        idlc::compile(vec![Source { name, text }; count])
    };
    assert!(files(1024, 0).is_ok() && files(16, 200_000).is_ok());
    for refused in [files(1025, 0), files(22, 200_000)] {
        let report = refused.expect_err("too much");
        assert!(
            report
                .to_string()
                .contains("error[file-size]: there are more than"),
            "{report}"
        );
    }
}

/// A type of which each holds the one before twice, or itself in many steps: to go through all ways
/// would take longer than anybody lives.
#[test]
fn nothing_goes_through_all_ways_of_a_graph() {
    let last = ["u8", "()", "f32", "RRef<f64>", "Handle<dyn Part>", "T29"];
    for last in last {
        let one = |at: usize| {
            let inner = at
                .checked_sub(1)
                .map_or(last.to_string(), |it| format!("T{it}"));
            let fields = many(16, |at| format!("/// D.\npub a{at}: RRef<{inner}>,\n"));
            format!("/// D.\npub struct T{at} {{\n{fields}}}\n")
        };
        let part = "/// D.\npub trait Part {\n/// D.\nfn f(&self, it: RRef<T14>) -> RpcResult<RRef<T14>>;\n}\n";
        let Ok(model) = compile(&format!("//! D.\n{}{part}", many(30, one))) else {
            continue;
        };
        let written = [idlc::emit_interfaces(&model), idlc::emit_hostile(&model)];
        assert!(written.iter().all(|it| it.len() < 1 << 20));
    }
    for length in [15, 40, 4000] {
        let one = |at: usize| {
            let next = (at + 1) % length;
            format!("/// D.\npub struct T{at} {{\n/// D.\npub a: RRef<T{next}>,\n}}\n")
        };
        assert!(compile(&format!("//! D.\n{}", many(length, one))).is_err());
    }
}

#[test]
fn a_report_does_not_grow_without_bound() {
    let one = |at: usize| format!("/// D.\npub a{at}: Bo{at}x,\n");
    let item = |at: usize| format!("/// D.\npub struct T{at} {{\n{}}}\n", many(250, one));
    let report = compile(&format!("//! D.\n{}", many(30, item))).expect_err("nothing is defined");
    assert!((100..1000).contains(&report.errors.len()));
}
