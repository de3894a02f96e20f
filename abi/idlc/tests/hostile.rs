//! `.idl` files of authors who want to get out: each is answered with an error, or with code in
//! which what they wrote is where it belongs. Never with a panic.

use idlc::{Model, Report, Source};

fn compile(text: &str) -> Result<Model, Report> {
    idlc::compile(vec![Source {
        name: "hostile.idl".to_string(),
        text: text.to_string(),
    }])
}

/// A decent file with `$a` in the place of one of its parts.
fn file(doc: &str, name: &str, field: &str, ty: &str) -> String {
    format!("//! D.\n\n/// {doc}\npub struct {name} {{\n    /// D.\n    pub {field}: {ty},\n}}\n")
}

#[test]
fn what_would_break_out_of_its_place_is_refused() {
    assert!(compile(&file("D.", "Point", "x", "u64")).is_ok());
    for text in [
        // Documentation that ends itself, or is code.
        file("D.\n/// ```\n/// a()\n/// ```", "Point", "x", "u64"),
        file("D.\n///\n///\ta()", "Point", "x", "u64"),
        file("> ~~~", "Point", "x", "u64"),
        file("1.     a()", "Point", "x", "u64"),
        file("D.\n#[doc = \"```\\n\"]", "Point", "x", "u64"),
        file("D.\n/** ``` */", "Point", "x", "u64"),
        file("D.\n#[doc = \"a\\rb\"]", "Point", "x", "u64"),
        file("D.\n#[doc = \"a\\0b\"]", "Point", "x", "u64"),
        file(
            "D.\n#[doc = include_str!(\"/etc/passwd\")]\n#[doc(alias = \"x\")]",
            "Point",
            "x",
            "u64",
        ),
        file("D.\n#[cfg_attr(all(), doc = \"x\")]", "Point", "x", "u64"),
        file("D.\n#[derive(Clone)]", "Point", "x", "u64"),
        // Names that are more than names, or mean something else.
        file("D.", "r#Point", "x", "u64"),
        file("D.", "P\u{43e}int", "x", "u64"),
        file("D.", "Send", "x", "u64"),
        file("D.", "Plain", "x", "u64"),
        file("D.", "Point<T>", "x", "u64"),
        file("D.", "Point", "r#fn", "u64"),
        file("D.", "Point", "x\u{e9}", "u64"),
        file("D.", "Point", "x__y", "u64"),
        file("D.", "Point", "gen", "u64"),
        "//! D.\n\n/// D.\n#[domain]\npub trait Super {\n    /// D.\n    fn start() -> RpcResult<()>;\n}\n".to_string(),
        // Types that are code, or lead elsewhere.
        file("D.", "Point", "x", "[u8; { loop {} }]"),
        file("D.", "Point", "x", "[u8; 1 + 1]"),
        file("D.", "Point", "x", "[u8; N]"),
        file("D.", "Point", "x", "[u8; 0xffff_ffff_ffff]"),
        file("D.", "Point", "x", "Text<{ 1 }>"),
        file("D.", "Point", "x", "Text<70000>"),
        file("D.", "Point", "x", "core::cell::Cell<u8>"),
        file("D.", "Point", "x", "crate::generated::Point"),
        file("D.", "Point", "x", "<u8 as Trait>::Type"),
        file("D.", "Point", "x", "u8!()"),
        file("D.", "Point", "x", "&'static u8"),
        file("D.", "Point", "x", "*mut u8"),
        file("D.", "Point", "x", "fn()"),
        file("D.", "Point", "x", "impl Send"),
        file("D.", "Point", "x", "_"),
        file("D.", "Point", "x", "!"),
        file(
            "D.",
            "Point",
            "x",
            "u64 } unsafe impl Plain for A {} pub struct A { pub a: u64",
        ),
        // Items that are no declarations.
        "//! D.\ninclude!(\"/etc/passwd\");".to_string(),
        "//! D.\nmod a;".to_string(),
        "//! D.\nextern crate std;".to_string(),
        "//! D.\nuse std::fs;".to_string(),
        "#![feature(x)]\n//! D.".to_string(),
        "//! D.\nmacro_rules! a { () => {} }".to_string(),
    ] {
        let Err(report) = compile(&text) else {
            panic!("it was accepted:\n{text}");
        };
        assert!(report.to_string().starts_with("hostile.idl:"), "{report}");
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let many = 100_000;
    for ty in [
        format!("{}u8{}", "RRef<".repeat(many), ">".repeat(many)),
        format!("{}u8{}", "Result<u8, ".repeat(many), ">".repeat(many)),
        format!("{}u8{}", "(".repeat(many), ")".repeat(many)),
        format!("{}u8{}", "[".repeat(many), "; 1]".repeat(many)),
        format!("{}u8", "&".repeat(many)),
        format!("{}u8", "*const ".repeat(many)),
        format!("{}u8", "fn() -> ".repeat(many)),
        format!("[u8; {}1]", "-".repeat(many)),
        format!("[u8; 1{}]", " + 1".repeat(many)),
        format!("[u8; 1{}]", ".a".repeat(many)),
        format!("[u8; {}1{}]", "{".repeat(many), "}".repeat(many)),
        format!("[u8; A {{}}{}]", " + A {}".repeat(many)),
        format!("[u8; if a {{}}{}]", " else if a {}".repeat(many)),
        "x".repeat(2 << 20),
    ] {
        let report = compile(&file("D.", "Point", "x", &ty)).expect_err("it is hostile");
        let text = report.to_string();
        let is_told = text.contains("nested too deeply") || text.contains("longer than 256 KiB");
        assert!(is_told, "{}", &text[..text.len().min(300)]);
    }
    let top = format!(
        "//! D.\npub const A: B = B {{}}{};\n",
        " + B {}".repeat(many)
    );
    assert!(compile(&top).is_err());
    let brackets = "{".repeat(many);
    assert!(compile(&brackets).is_err());
}

#[test]
fn a_parameter_is_never_taken_for_something_of_the_generated_code() {
    let text = "//! D.\n/// D.\n#[base]\npub trait Part {\n    /// D.\n    fn f(&self, it: Handle<dyn Part>, moved: u8) -> RpcResult<()>;\n}\n";
    let model = compile(text).expect("it is decent");
    let interfaces = idlc::emit_interfaces(&model);
    for line in [
        "let mut moved_ = Some((it,));",
        "self.pass(|it_| match moved_.take() {",
        "Some((it,)) => it_.f(it, moved),",
    ] {
        assert!(interfaces.contains(line), "{interfaces}");
    }
    let interface = model.interface("Part").expect("defined");
    let shadow = idlc::emit_shadow(&model, interface);
    assert!(
        shadow.contains("self.0.call(|it_| it_.f(it.duplicate()?, moved))"),
        "{shadow}"
    );
}

/// Numbers for a sequence that looks random and is always the same.
fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// What a damaged file has in places where it does not belong.
const PIECES: [&str; 34] = [
    "\"",
    "'",
    "`",
    "```",
    "{",
    "}",
    "<",
    ">",
    "(",
    ")",
    "/*",
    "*/",
    "//",
    "r#\"",
    "\\",
    "\r",
    "\0",
    "\u{200e}",
    "\u{202e}",
    "é",
    "unsafe ",
    "fn ",
    "dyn ",
    "!",
    "#",
    "::",
    "'static ",
    "&mut ",
    ";",
    ",",
    "0",
    "18446744073709551616",
    "Self",
    "r#",
];
/// Files that are damaged with each piece, and perhaps with one or two others.
const ROUNDS: usize = 8;

/// A decent file with `first` somewhere, and perhaps other pieces elsewhere.
fn damaged(first: &str, state: &mut u64) -> String {
    let mut bytes = include_bytes!("golden/sample.idl").to_vec();
    let mut piece = first;
    for _ in 0..=next(state) % 3 {
        let at = next(state) % bytes.len();
        let until = (at + next(state) % 12).min(bytes.len());
        bytes.splice(at..until, piece.bytes());
        piece = PIECES[next(state) % PIECES.len()];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_files_give_errors_or_plain_code() {
    let mut state = 1;
    let mut accepted = 0;
    for piece in PIECES.repeat(ROUNDS) {
        let Ok(model) = compile(&damaged(piece, &mut state)) else {
            continue;
        };
        accepted += 1;
        for text in [idlc::emit_interfaces(&model), idlc::emit_proxies(&model)] {
            assert!(syn::parse_file(&text).is_ok(), "{text}");
            assert!(
                !text.contains("```") && !text.contains('\u{202e}'),
                "{text}"
            );
        }
        let _ = idlc::emit_manual(&model);
    }
    assert!(accepted > 10, "only {accepted} were accepted");
}
