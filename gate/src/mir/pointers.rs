//! Whether the type of a pointer to a function lets its function take nothing for granted.

use std::collections::{BTreeMap, BTreeSet};

use super::{closes, end, is_of_word, is_open};

/// What may depend on another in a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A lifetime that is bound by the pointer's type, by its number.
    Lifetime(u32),
    /// A type parameter.
    Parameter(String),
    /// How long what is behind a trait object lasts, if that is not bound.
    Object,
}

/// A part, and whether it is an argument of a type that may bound it: what `core` and `alloc`
/// declare bounds nothing by how long it lasts.
type Place = Vec<(Part, bool)>;

/// Whether all lifetimes in `pointer`, the type of a pointer to a function, are bound by it, and
/// none of them can be taken to outlast another, a type parameter, or everything.
pub(super) fn is_bound(pointer: &str, parameters: &BTreeSet<String>) -> bool {
    places(pointer, parameters, false).is_some_and(|places| is_free(&places))
}

/// Whether a function of the type that `text` begins with, `signature {name}`, takes nothing for
/// granted that the type of a pointer to it would not show.
pub(super) fn takes_nothing(text: &str, parameters: &BTreeSet<String>) -> bool {
    let starts = ["for<", "fn(", "unsafe ", "extern "];
    starts.iter().any(|it| text.starts_with(it))
        && places(text, parameters, true).is_some_and(|places| is_free(&places))
}

/// Whether nothing in a function's type may be taken to outlast something else.
///
/// Two that stand in one argument, or in the result, may depend on one another: `&'a &'b ()` says
/// that `'b` outlasts `'a`. A type may say that its arguments last for ever. Either is of use to
/// the function only if what depends stands somewhere else as well.
fn is_free(places: &[Place]) -> bool {
    let mut counts = BTreeMap::new();
    for (part, _) in places.iter().flatten() {
        *counts.entry(part).or_insert(0) += 1;
    }
    places.iter().all(|place| {
        let often = place.iter().filter(|(part, _)| counts[part] > 1);
        let parts: BTreeSet<_> = often.clone().map(|(part, _)| part).collect();
        let mut bounded = often.filter(|(part, is_argument)| *is_argument && *part != Part::Object);
        parts.len() < 2 && bounded.next().is_none()
    })
}

/// What stands in each argument of `text`, and in its result. `None` if a lifetime is not bound, or
/// if it cannot be read. Of a function's own type free lifetimes are passed over: they are in that
/// of the pointer as well.
fn places(text: &str, parameters: &BTreeSet<String>, is_function: bool) -> Option<Vec<Place>> {
    let mut walk = Walk {
        text,
        at: 0,
        is_function,
        open: Vec::new(),
        binders: Vec::new(),
        places: vec![Vec::new()],
    };
    while walk.at < text.len() {
        let is_name = is_function && walk.open.is_empty() && text[walk.at..].starts_with('{');
        if is_name {
            break;
        }
        walk.step(parameters)?;
    }
    let read = &text[..walk.at];
    let is_hidden = read.contains(" as ") || read.contains("...");
    (!is_hidden).then_some(walk.places)
}

/// A walk through the text of a type.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// It is the type of a function, not of a pointer to one.
    is_function: bool,
    /// For each bracket that is open, whether it has arguments that may be bounded.
    open: Vec<bool>,
    /// For each type around that may bind lifetimes, how many brackets were open where it began.
    binders: Vec<usize>,
    places: Vec<Place>,
}

impl Walk<'_> {
    fn step(&mut self, parameters: &BTreeSet<String>) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let is_start = !self.text[..self.at].ends_with(is_of_word);
        if let Some(bound) = rest.strip_prefix("for<").filter(|_| is_start) {
            self.at += "for<".len() + end(bound) + 1;
        } else if is_start && (rest.starts_with("fn(") || rest.starts_with("dyn ")) {
            self.binders.push(self.open.len());
            self.at += if rest.starts_with("fn(") { 2 } else { 4 };
        } else if rest.starts_with('\'') {
            self.lifetime(rest)?;
        } else if is_start && rest.starts_with(is_of_word) {
            self.word(rest, parameters)?;
        } else {
            self.mark(rest)?;
        }
        Some(())
    }

    fn note(&mut self, part: Part) -> Option<()> {
        let is_argument = self.open.contains(&true);
        self.places.last_mut()?.push((part, is_argument));
        Some(())
    }

    fn lifetime(&mut self, rest: &str) -> Option<()> {
        let erased = "'{erased}";
        if rest.starts_with(erased) && self.text[..self.at].ends_with(" + ") {
            self.at += erased.len();
            return self.note(Part::Object);
        }
        for free in [erased, "'static"].iter().filter(|_| self.is_function) {
            if rest.starts_with(free) {
                self.at += free.len();
                return Some(());
            }
        }
        let number = rest.strip_prefix("'^")?;
        let length = number.find(|c: char| !c.is_ascii_digit() && c != '_');
        let number = &number[..length.unwrap_or(number.len())];
        self.at += "'^".len() + number.len();
        // What it is called in the source stands in brackets behind it.
        if let Some(name) = self.text[self.at..].strip_prefix(".Named(") {
            self.at += ".Named(".len() + end(name) + 1;
        }
        let (outwards, number) = number.split_once('_').unwrap_or(("0", number));
        let outwards: usize = outwards.parse().ok()?;
        let binder = self.binders.len().checked_sub(outwards + 1)?;
        match binder {
            0 => self.note(Part::Lifetime(number.parse().ok()?)),
            _ => Some(()),
        }
    }

    fn word(&mut self, rest: &str, parameters: &BTreeSet<String>) -> Option<()> {
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(length);
        let is_part = self.text[..self.at].ends_with("::") || behind.starts_with("::");
        if is_open(word, parameters) && !is_part {
            self.note(Part::Parameter(word.to_string()))?;
        }
        self.at += length;
        Some(())
    }

    /// Whether the bracket at this place is behind a type that may bound its arguments.
    fn is_bounding(&self) -> bool {
        let before = &self.text[..self.at];
        let start = before.rfind(|c: char| !is_of_word(c) && c != ':');
        let path = &before[start.map_or(0, |start| start + 1)..];
        !["core::", "alloc::"].iter().any(|it| path.starts_with(it))
    }

    /// A bracket or a mark between types. A brace is that of a closure, or of a function: types
    /// that nobody can write, and that may hide anything.
    fn mark(&mut self, rest: &str) -> Option<()> {
        let mark = rest.chars().next()?;
        match mark {
            '{' | '}' => return None,
            '<' => self.open.push(self.is_bounding()),
            '(' | '[' => self.open.push(false),
            _ if closes(self.text, self.at) => {
                self.open.pop()?;
                let depth = self.open.len();
                self.binders.retain(|opened| *opened <= depth);
            }
            ',' | '+' => self.leave(),
            _ => {}
        }
        let is_result = rest.starts_with("->") && self.open.is_empty();
        if is_result || mark == ',' && self.open.len() == 1 {
            self.places.push(Vec::new());
        }
        self.at += mark.len_utf8();
        Some(())
    }

    /// The types end that have begun at this depth, but for the pointer itself.
    fn leave(&mut self) {
        let depth = self.open.len();
        let mut is_first = true;
        self.binders
            .retain(|opened| std::mem::take(&mut is_first) || *opened < depth);
    }
}
