//! The files that are tried: made by the grammar of interfaces, with now and then something that is
//! not allowed; the project's own, damaged; and such as would take long if somebody went all ways.

use std::path::Path;

use anyhow::Result;
use idlc::{Source, source};

use super::Numbers;
use super::grammar::{Grammar, ODD, SIMPLE, edge};

/// The project's own files, and those of them that need no other.
pub(super) struct Texts {
    all: Vec<Source>,
    alone: Vec<String>,
}

/// What damage puts in.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "`",
    "```",
    "    ",
    "{",
    "}",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "/*",
    "*/",
    "//",
    "///",
    "//!",
    "#[domain]",
    "#[plain]",
    "#[base]",
    "#[gone]",
    "#[frees]",
    "#[unbounded]",
    "#[budget(1)]",
    "#[budget(4294967295)]",
    "#[offers(a, b)]",
    "#[doc = \"a\"]",
    "#[doc = include_str!(\"/a\")]",
    "#![doc = \"a\"]",
    "r#\"",
    "\\",
    "\r",
    "\0",
    "\u{200e}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "é",
    "unsafe ",
    "fn ",
    "pub ",
    "trait ",
    "struct ",
    "enum ",
    "dyn ",
    "!",
    "#",
    "::",
    "'static ",
    "&mut ",
    ";",
    ",",
    ":",
    "->",
    "=",
    "0",
    "1",
    "255",
    "4096",
    "65535",
    "18446744073709551616",
    "Self",
    "self",
    "r#",
    "async ",
    "where u8: Copy",
    "$crate",
    "macro_rules!",
    "include!(\"/a\")",
];
impl Texts {
    /// Reads the project's own files.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn new() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = source::find(&root).map_err(|report| anyhow::anyhow!("{report}"))?;
        let is_alone = |it: &&Source| idlc::compile(vec![(*it).clone()]).is_ok();
        let mut alone: Vec<_> = all
            .iter()
            .filter(is_alone)
            .map(|it| it.text.clone())
            .collect();
        alone.push(include_str!("../../../../../abi/idlc/tests/golden/sample.idl").to_string());
        Ok(Texts { all, alone })
    }

    /// The files of one input.
    pub(super) fn files(&self, numbers: &mut Numbers) -> Vec<Source> {
        match numbers.below(32) {
            // They take a hundred times as long as others.
            0 if numbers.below(16) == 0 => self.whole(numbers),
            0..=4 => {
                let own = &self.alone[numbers.below(self.alone.len())];
                vec![named(damaged(own, numbers))]
            }
            5..=8 => vec![named(damaged(&Grammar::of(numbers), numbers))],
            9 | 10 => vec![named(repetition(numbers))],
            11 => two(&Grammar::of(numbers)),
            _ => vec![named(Grammar::of(numbers))],
        }
    }

    /// All of the project's files, one of them damaged.
    fn whole(&self, numbers: &mut Numbers) -> Vec<Source> {
        let mut all = self.all.clone();
        let at = numbers.below(all.len());
        all[at].text = damaged(&all[at].text, numbers);
        all
    }
}

fn named(text: String) -> Source {
    let name = "fuzz.idl".to_string();
    Source { name, text }
}

/// The items of a text in two files, which are one namespace.
fn two(text: &str) -> Vec<Source> {
    let items: Vec<_> = text.split_inclusive("\n}\n").collect();
    let (first, rest) = items.split_at(items.len() / 2);
    vec![
        named(format!("//! D.\n{}", rest.concat())),
        named(first.concat()),
    ]
}

/// `text` with damage in one to four places.
fn damaged(text: &str, numbers: &mut Numbers) -> String {
    let mut text = text.to_string();
    for _ in 0..=numbers.below(4) {
        text = match numbers.below(6) {
            0 => lines(&text, numbers),
            1 => words(&text, numbers),
            2 => types(&text, numbers),
            _ => pieces(&text, numbers),
        };
    }
    text
}

/// Something put in, over up to twelve bytes.
fn pieces(text: &str, numbers: &mut Numbers) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = numbers.below(bytes.len() + 1);
    let until = (at + numbers.below(12)).min(bytes.len());
    bytes.splice(at..until, numbers.one_of(PIECES).bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Lines left out, doubled, or in another place.
fn lines(text: &str, numbers: &mut Numbers) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
    match numbers.below(3) {
        _ if lines.is_empty() => {}
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, lines[from]),
        _ => lines.swap(from, to),
    }
    lines.join("\n")
}

/// A word in place of another one of the same file.
fn words(text: &str, numbers: &mut Numbers) -> String {
    let words: Vec<&str> = text
        .split(|it: char| !it.is_alphanumeric() && it != '_')
        .collect();
    let (old, new) = (*numbers.one_of(&words), *numbers.one_of(&words));
    match old.is_empty() || new.is_empty() {
        true => text.to_string(),
        false => text.replacen(old, new, 1 + numbers.below(3)),
    }
}

/// Another type behind a colon.
fn types(text: &str, numbers: &mut Numbers) -> String {
    let places: Vec<_> = text.match_indices(": ").map(|it| it.0 + 2).collect();
    let at = if places.is_empty() {
        0
    } else {
        *numbers.one_of(&places)
    };
    let rest = &text[at..];
    let end = rest.find([',', ')', '\n']).unwrap_or(rest.len());
    let (simple, odd) = (*numbers.one_of(SIMPLE), *numbers.one_of(ODD));
    let ty = if numbers.below(2) == 0 { simple } else { odd };
    format!("{}{ty}{}", &text[..at], &rest[end..])
}

/// A file in which something stands very often, in a row or within each other.
fn repetition(numbers: &mut Numbers) -> String {
    let (kind, count, width) = (numbers.below(15), edge(numbers), 1 + numbers.below(8));
    match kind {
        0 => within("RRef<", "u8", ">", count),
        1 => within("Option<", "()", ">", count),
        2 => within("(", "u8", ",)", count),
        3 => within("[", "()", "; 2]", count),
        4 => within("Result<u8, ", "u8", ">", count),
        5 => within("fn() -> ", "u8", "", count),
        6 => within("x", "x", "", count),
        7 | 8 => graph(kind == 7, width, count),
        9 | 10 => items(kind == 9, count),
        _ => parts(kind, count),
    }
}

/// A field whose type is nested so often.
fn within(open: &str, inner: &str, close: &str, count: usize) -> String {
    let ty = format!("{}{inner}{}", open.repeat(count), close.repeat(count));
    format!("//! D.\n/// D.\npub struct S {{\n/// D.\npub a: {ty},\n}}\n")
}

fn many(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect()
}

/// Structs of which each holds the next one several times, in a ring or a chain.
fn graph(is_shared: bool, width: usize, count: usize) -> String {
    let one = |at: usize| {
        let next = if width.is_multiple_of(2) {
            (at + 1) % count
        } else {
            at + 1
        };
        let ty = if is_shared {
            format!("RRef<T{next}>")
        } else {
            format!("T{next}")
        };
        let fields = many(width, |it| format!("/// D.\npub a{it}: {ty},\n"));
        format!("/// D.\npub struct T{at} {{\n{fields}}}\n")
    };
    let last = format!("/// D.\npub struct T{count} {{\n/// D.\npub a: (),\n}}\n");
    format!("//! D.\n{}{last}", many(count, one))
}

/// Many interfaces, each with a handle to the next one, or entries.
fn items(is_interfaces: bool, count: usize) -> String {
    let one = |at: usize| {
        let next = (at + 1) % count;
        match is_interfaces {
            true => format!(
                "/// D.\n#[base]\npub trait I{at} {{\n/// D.\nfn f(&self, it: Handle<dyn I{next}>) -> RpcResult<()>;\n}}\n"
            ),
            false => {
                format!("/// D.\n#[domain]\npub trait D{at} {{\nfn start() -> RpcResult<()>;\n}}\n")
            }
        }
    };
    format!("//! D.\n{}", many(count, one))
}

/// An item with many parts, or a long text.
fn parts(kind: usize, count: usize) -> String {
    let method = |rest: String| format!("/// D.\nfn {rest};\n");
    let interface = |methods: String| format!("/// D.\npub trait I {{\n{methods}}}\n");
    let items = match kind {
        11 => interface(many(count, |at| {
            method(format!(
                "m{at}(&self, it: Handle<dyn I>) -> RpcResult<AnyHandle>"
            ))
        })),
        12 => {
            let variants = many(count, |at| format!("/// D.\nV{at},\n"));
            let methods = many(count, |at| {
                method(format!(
                    "m{at}(&self, a: E, b: E, c: E, d: E) -> RpcResult<E>"
                ))
            });
            let methods = interface(methods);
            format!("/// D.\n#[plain]\npub enum E {{\n{variants}}}\n{methods}")
        }
        13 => {
            let parameters = many(count, |at| format!(", a{at}: ()"));
            interface(method(format!("f(&self{parameters}) -> RpcResult<()>")))
        }
        _ => {
            let fields = many(count, |at| format!("/// D.\npub a{at}: Unknow{at},\n"));
            let text = "D".repeat(count * 16);
            format!("/// {text}\npub struct S {{\n{fields}}}\n")
        }
    };
    format!("//! D.\n{items}")
}
