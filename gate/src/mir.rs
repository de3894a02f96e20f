//! What the compiler has made of a crate: its functions in the compiler's own middle language
//! (MIR), before anything is optimised. Types stand in it that nobody wrote.
//!
//! | rule | what must not be | hole |
//! | --- | --- | --- |
//! | `pointer` | a function or a closure that becomes a pointer, if a lifetime in the pointer's type is not bound there, or two of them may depend on one another | rust#25860 |
//! | `holder` | a type of the library that keeps what an iterator yields, where that may borrow more than the type says | rust#84366 |
//!
//! A pointer forgets what its function could take for granted: that whoever gives it a `&'static
//! &'b T` has shown that `'b` lasts for ever. So the type of the pointer must not let anybody take
//! something for granted. The compiler prints a lifetime that is bound in a type by its number
//! (`'^0`), and any other as `'{erased}`.
//!
//! A closure may give what lives shorter than the closure itself. An iterator made of it is taken
//! to last as long as the closure, and so is what the library keeps of its items ([`HOLDERS`]).
//!
//! The text is meant for people and changes with the compiler. The tests of [`crate::guard`] have
//! programs that must be refused and others that must not, for the compiler that is there.

use std::collections::{BTreeMap, BTreeSet};

mod pointers;

use pointers::{is_bound, takes_nothing};

/// Has the compiler print what [`find`] looks at: of types everything.
pub const FLAGS: [&str; 4] = [
    "-Zunpretty=mir",
    "-Zmir-opt-level=0",
    "-Zverbose-internals",
    "-Ztrim-diagnostic-paths=false",
];

/// The types of `core` and `alloc` that keep what an iterator yields and do not name it. That there
/// are no others, a test finds out for the compiler that is there.
pub const HOLDERS: [&str; 9] = [
    "ArrayChunks",
    "Flatten",
    "Intersperse",
    "IntersperseWith",
    "MapWindows",
    "MapWindowsInner",
    "MaybeDone",
    "Peekable",
    "Splice",
];

/// Iterators over what their type names, so that a type parameter there hides nothing.
const CONTAINERS: [&str; 8] = [
    "alloc::vec::IntoIter",
    "core::array::IntoIter",
    "core::option::IntoIter",
    "core::option::Iter",
    "core::option::IterMut",
    "core::result::IntoIter",
    "core::slice::Iter",
    "core::slice::IterMut",
];

/// How the compiler marks that a function, or a closure, becomes a pointer.
const COERCIONS: [&str; 2] = [
    "(PointerCoercion(ReifyFnPointer",
    "(PointerCoercion(ClosureFnPointer",
];

/// What must not be in `text`, the MIR of a crate that has type parameters called `parameters`.
pub fn find(text: &str, parameters: &BTreeSet<String>) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut locals = BTreeMap::new();
    for line in text.lines() {
        if line.starts_with(|c: char| c.is_alphabetic()) {
            locals.clear();
        }
        locals.extend(local(line));
        for (operand, pointer) in coerced(line) {
            if !is_bound(pointer, parameters) || !is_seen(operand, &locals, parameters) {
                found.insert(format!(
                    "a function becomes the pointer `{}`, which is not allowed here (rule `pointer`): \
                     only what it takes and gives for any lifetime may stand in its type; take `impl \
                     Fn` or `&dyn Fn` instead",
                    short(pointer)
                ));
            }
        }
        for (name, arguments) in holders(line) {
            if !is_settled(arguments, parameters) {
                found.insert(format!(
                    "`{name}<{}>` is not allowed here (rule `holder`): it keeps what its iterator \
                     yields, and that may borrow what the type does not say; collect the items \
                     first, or use a loop or `flat_map`",
                    short(arguments)
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// The name and the type of a local variable that is declared in `line`.
fn local(line: &str) -> Option<(&str, &str)> {
    let declared = line.trim_start().strip_prefix("let ")?;
    let declared = declared.strip_prefix("mut ").unwrap_or(declared);
    declared.strip_suffix(';')?.split_once(": ")
}

/// What is turned into a pointer to a function in `line`, and the type of the pointer: the longest
/// text that may be one, so that what stands before it is looked at rather than something left out.
fn coerced(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = COERCIONS.iter().flat_map(|it| line.match_indices(it));
    ends.map(|(end, _)| {
        let whole = &line[..end];
        let starts = [" as for<", " as fn(", " as unsafe ", " as extern "];
        let start = starts.iter().filter_map(|it| whole.find(it)).min();
        let (operand, pointer) = whole.split_at(start.unwrap_or(0));
        (operand, pointer.trim_start_matches(" as ").trim_end())
    })
}

/// Whether the type of `operand`, which becomes a pointer, is seen, and its function takes nothing
/// for granted. Of a closure's type nobody can say that two of its lifetimes are one.
fn is_seen(operand: &str, locals: &BTreeMap<&str, &str>, parameters: &BTreeSet<String>) -> bool {
    if let Some((_, function)) = operand.split_once("(ZeroSized: ") {
        return takes_nothing(function, parameters);
    }
    let source = operand.rsplit_once(" = ").map_or(operand, |(_, it)| it);
    let source = source
        .trim_start_matches("move ")
        .trim_start_matches("copy ");
    let source = match source.split_once(": ") {
        Some((_, ty)) => Some(ty),
        None => locals.get(source).copied(),
    };
    source.is_some_and(|ty| ty.starts_with('{') || takes_nothing(ty, parameters))
}

/// The holders in `line`, each with its arguments.
fn holders(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    HOLDERS.iter().flat_map(move |name| {
        line.match_indices(name).filter_map(move |(at, _)| {
            let is_part = line[..at].ends_with(is_of_word);
            let rest = line[at + name.len()..].trim_start_matches("::");
            let rest = rest.strip_prefix('<').filter(|_| !is_part)?;
            Some((*name, &rest[..end(rest)]))
        })
    })
}

/// Whether what an iterator of the type, or types, `arguments` yields can borrow nothing but what
/// `arguments` name.
fn is_settled(arguments: &str, parameters: &BTreeSet<String>) -> bool {
    let Some(text) = without_paths(arguments) else {
        return false;
    };
    let mut results = text.split("closure_sig_as_fn_ptr_ty=").skip(1).map(result);
    let is_owned = |result: &str| {
        let mut words = words(result).map(|(_, word)| word);
        !result.contains('\'') && !words.any(|word| is_open(word, parameters))
    };
    let is_open = |(at, word)| is_open(word, parameters) && !is_contained(&text, at);
    !text.contains(" as ") && results.all(is_owned) && !words(&text).any(is_open)
}

/// Whether `word` stands for a type that is not known yet.
fn is_open(word: &str, parameters: &BTreeSet<String>) -> bool {
    word == "impl" || word == "Self" || parameters.contains(word.trim_start_matches("r#"))
}

/// `text` without the names of functions and closures, which are no types. `None` if there is a
/// closure whose type is not printed, or a function made of one.
fn without_paths(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let inside = &rest[at + 1..];
        let inside = &inside[..end(inside)];
        kept += &rest[..at];
        rest = rest.get(at + 1 + inside.len() + 1..)?;
        if inside == "erased" {
            kept += "erased";
        } else if let Some(of) = of_closure(inside) {
            kept += &format!("{{{}}}", without_paths(of)?);
        } else if inside.contains("closure") {
            return None;
        }
    }
    Some(kept + rest)
}

/// What is printed of a closure behind its name, which may itself have braces in it.
fn of_closure(inside: &str) -> Option<&str> {
    let start = " closure_kind_ty=";
    let mut ends = inside.match_indices(start);
    let (at, _) = ends.find(|(at, _)| {
        let name = &inside[..*at];
        name.matches('{').count() == name.matches('}').count()
    })?;
    Some(&inside[at..])
}

/// What a closure gives whose signature `text` begins with.
fn result(text: &str) -> &str {
    let Some(at) = text.find("fn(") else {
        return "'";
    };
    let arguments = &text[at + "fn(".len()..];
    let behind = arguments.get(end(arguments) + 1..).unwrap_or("'");
    let Some(given) = behind.strip_prefix(" -> ") else {
        return "";
    };
    &given[..given.find(" upvar_tys=").unwrap_or(given.len())]
}

/// Whether what stands at `at` in `text` is an argument of one of the [`CONTAINERS`].
fn is_contained(text: &str, at: usize) -> bool {
    let mut around = Vec::new();
    for (place, byte) in text.bytes().enumerate().take(at) {
        match byte {
            b'<' | b'(' | b'[' | b'{' => around.push(place),
            _ if closes(text, place) => drop(around.pop()),
            _ => {}
        }
    }
    around.iter().any(|place| {
        let before = text[..*place].trim_end_matches("::");
        let start = before.rfind(|c: char| !is_of_word(c) && c != ':');
        CONTAINERS.contains(&&before[start.map_or(0, |start| start + 1)..])
    })
}

/// The words in `text` that are no part of a longer path, and where each stands.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|c: char| !is_of_word(c))
        .filter_map(move |piece| {
            let start = at;
            at += piece.len();
            let word = piece.trim_end_matches(|c: char| !is_of_word(c));
            let is_part =
                text[..start].ends_with("::") || text[start + word.len()..].starts_with("::");
            (!word.is_empty() && !is_part).then_some((start, word))
        })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '#'
}

/// Where the bracket closes that `text` stands behind; its end if it does not.
fn end(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            _ if closes(text, at) && depth == 0 => return at,
            _ if closes(text, at) => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether a bracket closes at `at`; the arrow `->` is none.
fn closes(text: &str, at: usize) -> bool {
    match text.as_bytes()[at] {
        b')' | b']' | b'}' => true,
        b'>' => !text[..at].ends_with('-') && !text[..at].ends_with('='),
        _ => false,
    }
}

/// At most 300 characters of `text`.
fn short(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod library;
#[cfg(test)]
mod tests;
