//! Which types of `core` and `alloc` keep something that their type does not name: an associated
//! type of a type parameter, which may be what an iterator yields or a closure gives.

use std::collections::BTreeSet;
use std::fs;

use crate::lexer::{self, Kind, Token};
use crate::mir::HOLDERS;
use crate::{setup, trust};

/// Types that keep an associated type, and no item of an iterator that could borrow more than the
/// type says; and why.
const HARMLESS: [(&str, &str); 18] = [
    ("Atomic", INTEGER),
    ("CharArrayRefSearcher", PATTERN),
    ("CharArraySearcher", PATTERN),
    ("CharPredicateSearcher", PATTERN),
    ("CharSliceSearcher", PATTERN),
    (
        "Cow",
        "what a type named in it owns, which its implementation says",
    ),
    ("DedupSortedIter", OWN),
    ("DifferenceInner", ELEMENTS),
    ("Discriminant", INTEGER),
    ("EscapeByte", ELEMENTS),
    ("EscapeDebug", ELEMENTS),
    ("FlatMap", "the iterator of a type that is named in it"),
    ("MatchIndicesInternal", PATTERN),
    ("MatchesInternal", PATTERN),
    ("NonZero", INTEGER),
    ("Peeked", OWN),
    ("SplitInternal", PATTERN),
    (
        "TaggedOption",
        "not to be named outside of the library, for types of its own",
    ),
];
/// Items of a collection, or of a string, that is named.
const ELEMENTS: &str = "a holder of items of a collection that is named in it";
/// An associated type that is a number.
const INTEGER: &str = "a number";
/// Only the library implements patterns.
const PATTERN: &str = "the search for a pattern, and who implements those is the library";
/// What the library uses within one function, or for iterators of its own.
const OWN: &str = "private, and for iterators of the library's own";

/// A declaration of a type: its name, the words up to its fields, and those of its fields.
struct Declared {
    name: String,
    header: Vec<String>,
    fields: Vec<String>,
}

/// All in `source`.
fn declared(source: &str) -> Vec<Declared> {
    let tokens = lexer::code_tokens(source);
    let starts = tokens.iter().enumerate().filter(|(_, token)| {
        token.kind == Kind::Word && ["struct", "enum", "union"].contains(&token.text)
    });
    let declared = starts.filter_map(|(at, _)| {
        let name = tokens.get(at + 1)?.text;
        let is_type = name.starts_with(char::is_uppercase);
        is_type.then(|| read(name, &tokens[at + 2..]))
    });
    declared.collect()
}

/// The declaration of the type `name`, which `tokens` follow.
fn read(name: &str, tokens: &[Token<'_>]) -> Declared {
    let (mut header, mut fields) = (Vec::new(), Vec::new());
    let mut depth = 0usize;
    for token in tokens {
        match token.text {
            "{" | "(" => depth += 1,
            "}" | ")" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => break,
            text if depth > 0 => fields.push(text.to_string()),
            text => header.push(text.to_string()),
        }
        if depth == 0 && token.text == "}" {
            break;
        }
    }
    Declared {
        name: name.to_string(),
        header,
        fields,
    }
}

/// Whether a field of `declared` has an associated type in it: `<T as Trait>::A`, `I::Item`.
fn projects(declared: &Declared) -> bool {
    let fields = &declared.fields;
    let is_colon = |word: &String| word == ":";
    let is_asked = |word: &String| word == "Self" || declared.header.contains(word);
    let is_type = |word: &String| word.contains(|c: char| c.is_lowercase());
    let mut short = fields.windows(4);
    let mut long = fields.windows(3);
    short.any(|it| is_asked(&it[0]) && is_colon(&it[1]) && is_colon(&it[2]) && is_type(&it[3]))
        || long.any(|it| it[0] == "<" && it[2] == "as")
}

/// The names of the types that are declared in `sources` and keep an associated type, or a type
/// that does and is not [`HARMLESS`].
fn keepers(sources: &[String]) -> BTreeSet<String> {
    let all: Vec<_> = sources.iter().flat_map(|it| declared(it)).collect();
    let is_harmless = |name: &str| HARMLESS.iter().any(|(harmless, _)| *harmless == name);
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for declared in &all {
            let mut pairs = declared.fields.windows(2);
            let mut holds =
                pairs.any(|it| found.contains(&it[0]) && it[1] == "<" && !is_harmless(&it[0]));
            holds |= projects(declared);
            if holds {
                found.insert(declared.name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[test]
fn nothing_else_in_the_library_keeps_what_an_iterator_yields() {
    let bin = setup::toolchain().expect("a compiler").bin;
    let library = bin.join("../lib/rustlib/src/rust/library");
    let mut sources = Vec::new();
    for name in ["core/src", "alloc/src"] {
        for file in trust::rust_files(&library.join(name)).expect("the library's sources") {
            sources.push(fs::read_to_string(file).expect("read"));
        }
    }
    let found = keepers(&sources);
    let known: BTreeSet<String> = HOLDERS
        .iter()
        .chain(HARMLESS.iter().map(|(name, _)| name))
        .map(|it| it.to_string())
        .collect();
    assert_eq!(found, known);
}
