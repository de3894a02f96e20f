//! Programs that the watch must refuse, and such as it must not, made from parts: each hole of the
//! language in each way to write it down. The compiler takes all of them, with its old trait solver
//! and with the next one; what the watch says of each is compared with what it has to say.

use std::env;

use super::looks::{Beside, expansion};
use super::*;
use crate::setup;

/// What all programs begin with.
const HEAD: &str = "#![no_std]\n#![allow(unused)]\nextern crate alloc;\n\
    use alloc::{boxed::Box, vec, vec::Vec};\nuse core::cell::Cell;\n\
    pub trait Every {}\nimpl<T> Every for T {}\n\
    pub struct Sink(Cell<&'static str>);\nfn yes() -> bool { true }\n";

/// What is said of a program.
struct Said {
    /// The plain compiler takes it.
    is_taken: bool,
    /// What the watch has found.
    found: String,
}

/// Gives the program `text` to the compiler and to the watch, with more arguments for both.
fn examine(folder: &Path, text: &str, more: &[&str]) -> Said {
    let file = folder.join("form.rs");
    fs::write(&file, format!("{HEAD}{text}\n")).expect("written");
    let compiler = setup::toolchain().expect("a compiler").bin.join("rustc");
    let mut arguments: Vec<OsString> = ["--crate-name", "form", "--edition=2024"]
        .iter()
        .chain(&["--crate-type=lib", "--emit=metadata", "--out-dir"])
        .map(OsString::from)
        .collect();
    arguments.extend([folder.into(), file.into()]);
    arguments.extend(more.iter().map(OsString::from));
    let mut plain = Command::new(&compiler);
    plain
        .args(&arguments)
        .args(MINE)
        .env("RUSTC_BOOTSTRAP", "1");
    let output = plain.output().expect("the compiler starts");
    let compiler = compiler.as_os_str();
    let expansion = expansion(compiler, &arguments).expect("looked at");
    let expansion = expansion.unwrap_or_default();
    let beside = Beside::begin(compiler, &arguments).expect("begun");
    let mut found = beside.end(&expansion).expect("ended");
    found.extend(expansion.found);
    Said {
        is_taken: output.status.success(),
        found: found.join("; ") + &String::from_utf8_lossy(&output.stderr),
    }
}

/// The two trait solvers.
const SOLVERS: [&[&str]; 2] = [&[], &["-Znext-solver=globally"]];

/// Has all `forms` examined in the folder `name`; each has to be taken by the plain compiler, and
/// what is found has to have `wanted` in it, or has to be nothing if that is empty.
fn all(name: &str, wanted: &str, forms: &[String]) {
    let folder = env::temp_dir().join(format!("trefoil-corpus-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    let mut wrong = Vec::new();
    for form in forms {
        for (at, solver) in SOLVERS.iter().enumerate() {
            let said = examine(&folder, form, solver);
            let is_right = match wanted {
                "" => said.found.is_empty(),
                _ => said.found.contains(wanted),
            };
            if !said.is_taken || !is_right {
                let Said { is_taken, found } = said;
                wrong.push(format!("{form}\n  solver {at}, taken: {is_taken}: {found}"));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("removed");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Ways to come to a variable `g` that is a pointer to a function, by `P` and `Q`, without a word
/// of its type.
const POINTERS: [&str; 12] = [
    "let mut g = [P, Q][0];",
    "let mut g = if yes() { P } else { Q };",
    "let mut g = match yes() { true => P, false => Q };",
    "let mut g = vec![P, Q].remove(0);",
    "let mut g = *[P, Q].first()?;",
    "let mut g = Some([P, Q][0])?;",
    "let get = || [P, Q][0]; let mut g = get();",
    "let get = || if yes() { P } else { Q }; let mut g = get();",
    "struct Keep<G>(G); let mut keep = Keep([P, Q][0]); let mut g = keep.0;",
    "let mut all = Vec::new(); all.push([P, Q][0]); let mut g = all[0];",
    "let (mut g, _) = ([P, Q][0], 1);",
    "let mut g = [P, Q].into_iter().map(|it| it).next()?;",
];

/// Programs in which a pointer to `f` is put where pointers to `p` are, and called by `call`. In
/// every other one a closure stands in place of `p`.
fn by_pointer(functions: &str, p: [&str; 2], call: &str, result: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for (at, way) in POINTERS.iter().enumerate() {
        let way = way.replace('P', p[at % 2]).replace('Q', "q");
        let way = way.replace(&format!("{}ush", p[at % 2]), "push");
        for put in ["g = f;", "let mut all = [g, g]; all[0] = f; g = all[0];"] {
            forms.push(format!(
                "{functions}\npub fn extend(x: &str, s: &Sink) -> Option<{result}> {{ {way} {put} {call} }}"
            ));
        }
        forms.push(format!(
            "{functions}\nfn any() -> Option<impl Fn(&'static &'static (), &str) -> &'static str> \
             {{ {way} g = f; Some(g) }}"
        ));
    }
    forms
}

#[test]
fn pointers_with_lifetimes_of_others_are_refused() {
    let closure = "|_: &'static &'static (), _: &str| -> &'static str { \"\" }";
    let by_reference = "fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
        fn p(_: &'static &'static (), _: &str) -> &'static str { \"\" }\n\
        fn q(_: &'static &'static (), _: &str) -> &'static str { \"\" }";
    let mut forms = by_pointer(
        by_reference,
        ["p", closure],
        "Some(g(&&(), x))",
        "&'static str",
    );
    let by_type = by_reference.replace("&'static &'b ()", "core::slice::Iter<'static, &'b ()>");
    let by_type = by_type.replace(
        "&'static &'static ()",
        "core::slice::Iter<'static, &'static ()>",
    );
    let call = "Some(g([].iter(), x))";
    let by_type = by_pointer(&by_type, ["p", "p"], call, "&'static str");
    forms.extend(by_type.into_iter().filter(|it| !it.contains("fn any")));
    forms.push(
        "fn f<'b>(_: &'static &'b (), x: &'b str, s: &Sink) { s.0.set(x) }\n\
        fn p(_: &'static &'static (), _: &str, _: &Sink) {}\n\
        fn q(_: &'static &'static (), _: &str, _: &Sink) {}\n\
        pub fn extend(x: &str, s: &Sink) { let mut g = [p, q][0]; g = f; g(&&(), x, s) }"
            .into(),
    );
    // A type that says that its arguments last for ever: all lifetimes are the pointer's own.
    let bounded = "pub struct Lasting<T: 'static>(T);\n\
        fn f<'b>(_: Option<Lasting<&'b ()>>, x: &'b str, s: &Sink) { s.0.set(x) }\n\
        pub fn extend(x: &str, s: &Sink) { let g: fn(Option<Lasting<&()>>, &str, &Sink) = f; g(None, x, s) }";
    forms.push(bounded.into());
    all("pointer", "rule `pointer`", &forms);
}

#[test]
fn pointers_with_lifetimes_of_their_own_are_not() {
    let functions = "fn f<'b>(x: &'b str, s: &Sink) -> &'b str { x }\n\
        fn p<'b>(x: &'b str, _: &Sink) -> &'b str { x }\n\
        fn q<'b>(x: &'b str, _: &Sink) -> &'b str { x }\n\
        fn r<'b>(x: &'b str, _: &Sink) -> &'b str { x }";
    let mut forms = by_pointer(functions, ["p", "r"], "Some(g(x, s))", "&str");
    forms.retain(|it| !it.contains("fn any"));
    for form in &mut forms {
        *form = form.replace("extend(x: &str", "same<'b>(x: &'b str");
        *form = form.replace("Option<&str> {", "Option<&'b str> {");
    }
    forms.push("pub const ALL: [(&str, fn(&Sink, &mut dyn FnMut(&[u8])) -> bool); 2] = [(\"a\", a), (\"b\", |_, _| true)];\n\
        fn a(s: &Sink, f: &mut dyn FnMut(&[u8])) -> bool { f(&[]); false }".into());
    forms.push("pub static ALL: [fn(u8) -> Option<Box<dyn Every>>; 1] = [|_| None];\n\
        pub fn each<T>(of: impl Fn(&T) -> bool, all: &[T]) -> usize { all.iter().filter(|it| of(it)).count() }".into());
    all("own", "", &forms);
}

/// Iterators that yield a `&'x str`, and are made of closures, or hide what they are made of.
const OPEN: [&str; 8] = [
    "core::iter::from_fn(|| None::<&'x str>)",
    "core::iter::repeat_with(|| -> &'x str { \"\" })",
    "(0..3).map(|_| -> &'x str { \"\" })",
    "[0, 1].iter().filter_map(|_| None::<&'x str>)",
    "vec![1].into_iter().map_while(|_| None::<&'x str>).fuse()",
    "(0..3).scan(0, |_, _| None::<&'x str>)",
    "hidden(x)",
    "core::iter::from_fn((|| || None::<&'x str>)())",
];

/// What keeps an item of an iterator.
const KEEPERS: [&str; 4] = [
    "let mut kept = (IT).peekable(); kept.peek();",
    "let mut kept = (IT).map(Some).flatten(); kept.next();",
    "let mut v: Vec<&'x str> = Vec::new(); let mut kept = v.splice(.., IT); kept.next();",
    "let mut kept = core::iter::once(IT).map(Iterator::peekable).next()?; kept.peek();",
];

#[test]
fn what_keeps_the_items_of_closures_is_refused() {
    let hidden = "fn hidden<'x>(x: &'x str) -> impl Iterator<Item = &'x str> + 'static { core::iter::from_fn(|| None) }\n";
    let mut forms = Vec::new();
    for keeper in KEEPERS {
        for open in OPEN {
            let body = keeper.replace("IT", open);
            forms.push(format!(
                "{hidden}pub fn keep<'x>(x: &'x str) -> Option<()> {{ {body} None }}"
            ));
        }
    }
    forms.push(
        "pub fn keep<I: Iterator + 'static>(it: I) -> Box<dyn Every> { Box::new(it.peekable()) }"
            .into(),
    );
    forms.push(
        "pub fn keep(it: impl Iterator + 'static) -> Box<dyn Every> { Box::new(it.peekable()) }"
            .into(),
    );
    forms.push(
        "pub struct Keep<I: Iterator>(core::iter::Peekable<I>);\n\
        impl<I: Iterator> Keep<I> { pub fn new(it: I) -> Self { Keep(it.peekable()) } }"
            .into(),
    );
    forms.push("pub trait Keep: Iterator + Sized { fn keep(self) -> core::iter::Peekable<core::iter::Rev<Self>> where Self: DoubleEndedIterator { self.rev().peekable() } }".into());
    all("holder", "rule `holder`", &forms);
}

#[test]
fn what_keeps_the_items_of_others_is_not() {
    let forms = [
        "pub fn a(v: &[Option<u8>]) -> usize { v.iter().flatten().peekable().count() }",
        "pub fn a<T>(v: &[Option<T>]) -> usize { v.iter().flatten().count() }",
        "pub fn a<T>(v: Vec<Vec<T>>) -> Vec<T> { v.into_iter().flatten().collect() }",
        "pub fn a(v: &str) -> Option<char> { let mut all = v.chars().peekable(); all.peek_mut().map(|c| *c) }",
        "pub fn a(v: &[u8]) -> usize { let mut all = v.split(|b| *b == 0).peekable(); all.next_if(|it| it.is_empty()); all.count() }",
        "pub fn a() -> Option<u8> { core::iter::from_fn(|| Some(Some(1))).flatten().next() }",
        "pub struct Words<'a>(core::iter::Peekable<core::str::Split<'a, char>>);\n\
         impl<'a> Iterator for Words<'a> { type Item = &'a str; fn next(&mut self) -> Option<Self::Item> { self.0.next() } }",
    ];
    all("others", "", &forms.map(String::from));
}

/// Ways to call `f`, a `for<'b> fn((), &'b str) -> &'static str` that takes something for granted,
/// without a look at what it takes for granted.
const CALLS: [&str; 5] = [
    "fn g<'x, F: Fn((), &'x str) -> &'static str>(f: F, x: &'x str) -> &'static str { f((), x) }\n\
     pub fn extend(x: &str) -> &'static str { g(FUN, x) }",
    "pub fn extend(x: &str) -> &'static str { let g: &dyn Fn((), &str) -> &'static str = &FUN; g((), x) }",
    "fn h<'x>() -> impl Fn((), &'x str) -> &'static str { FUN }\n\
     pub fn extend(x: &str) -> &'static str { h()((), x) }",
    "pub fn extend(x: &str) -> Option<&'static str> { let g = [FUN, FUN][0]; Some(()).map(|it| g(it, x)) }",
    "pub fn extend(x: &str) -> &'static str { let g: Box<dyn FnOnce((), &str) -> &'static str> = Box::new(FUN); g((), x) }",
];

#[test]
fn associated_types_that_say_how_long_something_lasts_are_refused() {
    let has = "pub trait Has { type A; }\nimpl<T> Has for &T { type A = (); }\n\
        pub trait Of<W> { type A; }\npub struct M;\nimpl<W> Of<W> for M { type A = (); }\n";
    let functions = [
        "fn f<'b>(_: <&'static &'b () as Has>::A, x: &'b str) -> &'static str { x }",
        "fn f<'b>(_: <M as Of<&'static &'b ()>>::A, x: &'b str) -> &'static str { x }",
        "type Al<'b> = <&'static &'b () as Has>::A;\nfn f<'b>(_: Al<'b>, x: &'b str) -> &'static str { x }",
        "type P<'b> = &'static &'b ();\nfn f<'b>(_: <P<'b> as Has>::A, x: &'b str) -> &'static str { x }",
        "type P<'b> = &'static &'b ();\nfn f<'b>(_: <M as Of<P<'b>>>::A, x: &'b str) -> &'static str { x }",
    ];
    let mut forms = Vec::new();
    for function in functions {
        for call in CALLS {
            // What a pointer is made of says all of it.
            let is_seen = call.contains("[FUN");
            forms.extend(
                (!is_seen).then(|| format!("{has}{function}\n{}", call.replace("FUN", "f"))),
            );
        }
    }
    all(
        "projection",
        "an associated type of a type with arguments",
        &forms,
    );
}
