//! Which subject of `kernel/isolation` may know which: those before it in one order. So circles of
//! files are only inside of a subject. Decision 0030 says why the order is this one.

use std::path::Path;

use trefoil_gate::lexer::{self, Kind, Token};
use trefoil_gate::trust::Breach;

/// Where the subjects stand, each a folder or a file.
const HOUSE: &str = "kernel/isolation/src";
/// The subjects, from the lowest. Each may name those before it, and itself.
const ORDER: [&str; 8] = [
    "platform", "sync", "lock", "memory", "domain", "call", "death", "load",
];
/// What stands above all of them: the root, which joins them, and the model, which tests them.
const ABOVE: [&str; 2] = ["lib", "model"];
/// Names at the root that any of them may use: the macro that writes to the log, and the model,
/// which is there in tests alone.
const FOR_ALL: [&str; 2] = ["klog", "model"];

/// What the source `text` of `file` (from the project's root) names that lies above its subject.
/// Unit tests are left out: they may need what they test it with.
pub fn breaches(file: &Path, text: &str) -> Vec<Breach> {
    let Ok(inside) = file.strip_prefix(HOUSE) else {
        return Vec::new();
    };
    let parts: Vec<String> = inside
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .filter(|part| part != "mod")
        .collect();
    let (Some(subject), Some(last)) = (parts.first(), parts.last()) else {
        return Vec::new();
    };
    if ABOVE.contains(&subject.as_str()) || last == "tests" {
        return Vec::new();
    }
    let breach = |line, text| Breach {
        file: file.to_path_buf(),
        line,
        text,
    };
    let Some(height) = ORDER.iter().position(|it| it == subject) else {
        let text = format!("`{subject}` is no subject of {HOUSE} (xtask/src/subjects.rs)");
        return vec![breach(1, text)];
    };
    let tokens = outside_of_tests(text);
    let words = tokens.iter().enumerate();
    words
        .filter_map(|(at, token)| {
            let why = match token.text {
                "crate" => above(&tokens, at, height)?,
                "super" => beyond(&tokens, at, parts.len())?,
                _ => return None,
            };
            Some(breach(token.line, format!("`{subject}` {why}")))
        })
        .collect()
}

/// All tokens of code before the unit tests.
fn outside_of_tests(text: &str) -> Vec<Token<'_>> {
    let mut tokens = lexer::code_tokens(text);
    let begin = |window: &[Token<'_>]| {
        let words = window.iter().map(|token| token.text);
        words.eq(["cfg", "(", "test", ")", "]", "mod"])
    };
    if let Some(at) = tokens.windows(6).position(begin) {
        tokens.truncate(at);
    }
    tokens
}

/// What stands behind the `::` after the token at `at`.
fn behind<'a>(tokens: &[Token<'a>], at: usize) -> Option<Token<'a>> {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    (is_colon(at + 1) && is_colon(at + 2)).then(|| tokens.get(at + 3).copied())?
}

/// What is wrong with the path from the root that begins at `at`.
fn above(tokens: &[Token<'_>], at: usize, height: usize) -> Option<String> {
    let named = behind(tokens, at)?;
    if named.kind != Kind::Word {
        return Some("names several subjects in one import; write one line for each".into());
    }
    if FOR_ALL.contains(&named.text) {
        return None;
    }
    match ORDER.iter().position(|subject| *subject == named.text) {
        Some(other) if other <= height => None,
        Some(_) => Some(format!(
            "must not know `{}`, which lies above it (xtask/src/subjects.rs has the order)",
            named.text
        )),
        // A macro's text is read where it is used, and there the root's names are all that there
        // is.
        None if at > 0 && tokens[at - 1].text == "$" => None,
        None => Some(format!(
            "must name `{}` by its subject, not by the root",
            named.text
        )),
    }
}

/// What is wrong with the path by `super` that begins at `at`, in a module `depth` below the root.
fn beyond(tokens: &[Token<'_>], at: usize, depth: usize) -> Option<String> {
    let is_super = |token: Option<Token<'_>>| token.is_some_and(|token| token.text == "super");
    let mut count = 1;
    let mut place = at;
    while is_super(behind(tokens, place)) {
        (count, place) = (count + 1, place + 3);
    }
    (count >= depth).then(|| "goes up to the root by `super`; write `crate`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &str, text: &str) -> Vec<usize> {
        let file = Path::new("kernel/isolation/src").join(file);
        let found = breaches(&file, text);
        found.iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn a_subject_may_know_what_lies_below_it() {
        let text = "use crate::memory::heap;\nuse crate::domain::ControlBlock;\nuse crate::klog;";
        assert_eq!(lines("call/handle.rs", text), [0; 0]);
        assert_eq!(lines("domain/mod.rs", text), [0; 0]);
        assert_eq!(lines("load/loader/place.rs", text), [0; 0]);
    }

    #[test]
    fn what_lies_above_a_subject_is_found() {
        let text = "use crate::memory::heap;\nfn f() { crate::death::kill::kill(); }";
        assert_eq!(lines("domain/budget.rs", text), [2]);
        assert_eq!(lines("call/mod.rs", text), [2]);
        assert_eq!(lines("memory/heap.rs", text), [2]);
        assert_eq!(lines("platform.rs", text), [1, 2]);
        assert_eq!(lines("death/kill.rs", text), [0; 0]);
        // Whatever is between the words.
        assert_eq!(lines("call/mod.rs", "use crate /* */ :: load::elf;"), [1]);
    }

    #[test]
    fn ways_around_the_names_are_found() {
        assert_eq!(lines("domain/a.rs", "use crate::{memory, death};"), [1]);
        assert_eq!(lines("domain/a.rs", "use crate::*;"), [1]);
        assert_eq!(lines("domain/a.rs", "use crate::Proxy;"), [1]);
        assert_eq!(lines("domain/a.rs", "use super::super::death;"), [1]);
        assert_eq!(lines("domain/mod.rs", "use super::death;"), [1]);
        assert_eq!(lines("lock.rs", "use super::call;"), [1]);
        assert_eq!(lines("new/a.rs", "fn f() {}"), [1]);
    }

    #[test]
    fn tests_comments_and_macros_are_no_imports() {
        let text = "//! See crate::death.\n#[cfg(test)]\nmod tests { use crate::load::elf; }";
        assert_eq!(lines("memory/heap.rs", text), [0; 0]);
        assert_eq!(lines("domain/group/tests.rs", "use crate::load;"), [0; 0]);
        assert_eq!(lines("model/scenes.rs", "use crate::load;"), [0; 0]);
        assert_eq!(lines("call/proxy.rs", "$crate::Proxy"), [0; 0]);
        assert_eq!(lines("call/proxy.rs", "$crate::load::x"), [1]);
        assert_eq!(lines("call/handle/a.rs", "use super::super::x;"), [0; 0]);
        let outside = Path::new("kernel/image/src/main.rs");
        assert!(breaches(outside, "use crate::death;").is_empty());
    }
}
