//! Patterns with `*`, `?` and `[...]`, over bytes.

use alloc::vec::Vec;

/// A byte of a pattern, and whether `* ? [` have their special meaning there (they have not in
/// quotes).
pub type PatternByte = (u8, bool);

/// Whether the pattern has anything special in it. A `[` that nothing ends stands for itself, as in
/// the command of that name.
pub fn has_wildcard(pattern: &[PatternByte]) -> bool {
    let is_special = |(at, &(byte, active)): (usize, &PatternByte)| match byte {
        _ if !active => false,
        b'*' | b'?' => true,
        // A `]` right behind it is one of the characters.
        b'[' => pattern[at + 1..].iter().skip(1).any(|end| end.0 == b']'),
        _ => false,
    };
    pattern.iter().enumerate().any(is_special)
}

/// Whether `name` matches the whole of `pattern`. A name that starts with a dot only matches a
/// pattern that does. Takes at most pattern length times name length steps.
pub fn matches(pattern: &[PatternByte], name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.') && pattern.first().map(|first| first.0) != Some(b'.');
    !hidden && matches_text(pattern, name)
}

/// What is left of `text` when a part that matches `pattern` is cut off at its start or end: the
/// longest, or the shortest. All of it if none matches. Takes at most pattern length times text
/// length steps.
pub fn cut<'a>(pattern: &[PatternByte], text: &'a [u8], suffix: bool, longest: bool) -> &'a [u8] {
    let mut units = units(pattern);
    if suffix {
        units.reverse();
    }
    // Which units may be the next to match, after so many bytes as were looked at.
    let mut next = alloc::vec![false; units.len() + 1];
    next[0] = true;
    let mut found = None;
    for length in 0..=text.len() {
        for (at, unit) in units.iter().enumerate() {
            next[at + 1] |= next[at] && is_star(unit);
        }
        if next[units.len()] {
            found = Some(length);
            if !longest {
                break;
            }
        }
        let byte = match suffix {
            true => text.iter().rev().nth(length),
            false => text.get(length),
        };
        let Some(&byte) = byte else { break };
        for at in (0..units.len()).rev() {
            let goes_on = next[at] && !is_star(units[at]);
            next[at + 1] = goes_on && match_one(units[at], byte).is_some();
            next[at] &= is_star(units[at]);
        }
    }
    match (found, suffix) {
        (None, _) => text,
        (Some(length), true) => &text[..text.len() - length],
        (Some(length), false) => &text[length..],
    }
}

fn is_star(unit: &[PatternByte]) -> bool {
    unit == [(b'*', true)]
}

/// The pattern in pieces of which each matches one byte, or is a star.
fn units(pattern: &[PatternByte]) -> Vec<&[PatternByte]> {
    let mut units = Vec::new();
    let mut rest = pattern;
    while let Some(&first) = rest.first() {
        let len = match first {
            (b'[', true) => bracket(rest).map_or(1, |(_, len)| len),
            _ => 1,
        };
        units.push(&rest[..len]);
        rest = &rest[len..];
    }
    units
}

/// Whether `name` matches the whole of `pattern`, dots being nothing special.
pub fn matches_text(pattern: &[PatternByte], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where the last `*` was, and how much of the name it takes: on a mismatch it takes one byte
    // more.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&(b'*', true)) {
            star = Some((p + 1, n));
            p += 1;
        } else if let Some(len) = match_one(&pattern[p..], name[n]) {
            p += len;
            n += 1;
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (p, n) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == (b'*', true))
}

/// If the start of `pattern` matches `byte`: how much of the pattern that was.
fn match_one(pattern: &[PatternByte], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        (b'?', true) => Some(1),
        (b'[', true) => match bracket(pattern) {
            Some((set, len)) => set.contains(byte).then_some(len),
            None => (byte == b'[').then_some(1),
        },
        (literal, _) => (literal == byte).then_some(1),
    }
}

struct Set<'a> {
    members: &'a [PatternByte],
    negated: bool,
}

/// The set that `pattern`, which starts with `[`, starts with, and its length; `None` if it is not
/// closed.
fn bracket(pattern: &[PatternByte]) -> Option<(Set<'_>, usize)> {
    let negated = matches!(pattern.get(1), Some((b'!' | b'^', true)));
    let start = 1 + usize::from(negated);
    // A `]` right at the start is a member, and one that ends a class like `[:alpha:]` is not the
    // end.
    let mut end = start;
    loop {
        let rest = pattern.get(end..)?;
        end += match class(rest) {
            Some((_, len)) => len,
            None if end > start && *rest.first()? == (b']', true) => break,
            None => 1,
        };
    }
    Some((
        Set {
            members: &pattern[start..end],
            negated,
        },
        end + 1,
    ))
}

impl Set<'_> {
    fn contains(&self, byte: u8) -> bool {
        let mut rest = self.members;
        let mut found = false;
        while let Some(&(first, _)) = rest.first() {
            if let Some((is_in, len)) = class(rest) {
                found |= is_in(&byte);
                rest = &rest[len..];
                continue;
            }
            match rest {
                [_, (b'-', true), (last, _), ..] => {
                    found |= (first..=*last).contains(&byte);
                    rest = &rest[3..];
                }
                _ => {
                    found |= first == byte;
                    rest = &rest[1..];
                }
            }
        }
        found != self.negated
    }
}

type Class = fn(&u8) -> bool;

/// The class like `[:alpha:]` that `pattern` starts with, and its length.
fn class(pattern: &[PatternByte]) -> Option<(Class, usize)> {
    const CLASSES: [(&[u8], Class); 12] = [
        (b"alpha", u8::is_ascii_alphabetic),
        (b"digit", u8::is_ascii_digit),
        (b"alnum", u8::is_ascii_alphanumeric),
        (b"upper", u8::is_ascii_uppercase),
        (b"lower", u8::is_ascii_lowercase),
        (b"space", |byte| byte.is_ascii_whitespace() || *byte == 0x0b),
        (b"blank", |byte| matches!(byte, b' ' | b'\t')),
        (b"punct", u8::is_ascii_punctuation),
        (b"print", |byte| matches!(byte, b' '..=b'~')),
        (b"graph", u8::is_ascii_graphic),
        (b"cntrl", u8::is_ascii_control),
        (b"xdigit", u8::is_ascii_hexdigit),
    ];
    let text = |from: &[PatternByte], what: &[u8]| {
        from.len() >= what.len() && from.iter().zip(what).all(|(at, byte)| at == &(*byte, true))
    };
    let rest = pattern.get(2..).filter(|_| text(pattern, b"[:"))?;
    let found = CLASSES.into_iter().find(|(name, _)| {
        text(rest, name) && rest.get(name.len()..).is_some_and(|rest| text(rest, b":]"))
    });
    found.map(|(name, is_in)| (is_in, name.len() + 4))
}

/// The paths that a pattern stands for, sorted; `None` if there are none. `list` gives the names in
/// a directory (the empty path is the working directory), none if it cannot be read.
pub(crate) fn paths(
    pattern: &[PatternByte],
    list: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>,
) -> Option<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<u8>> = Vec::from([Vec::new()]);
    let mut rest = pattern;
    while !rest.is_empty() {
        let slashes = rest.iter().take_while(|byte| byte.0 == b'/').count();
        let name = rest[slashes..]
            .iter()
            .take_while(|byte| byte.0 != b'/')
            .count();
        let component = &rest[slashes..slashes + name];
        rest = &rest[slashes + name..];
        for path in &mut found {
            path.extend(core::iter::repeat_n(b'/', slashes));
        }
        found = match has_wildcard(component) {
            true => found
                .iter()
                .flat_map(|path| matching(path, component, list))
                .collect(),
            false => extended(found, component, list),
        };
    }
    found.sort();
    (!found.is_empty()).then_some(found)
}

fn matching(
    directory: &[u8],
    component: &[PatternByte],
    list: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let names = list(directory)
        .into_iter()
        .filter(|name| matches(component, name));
    names
        .map(|name| [directory, name.as_slice()].concat())
        .collect()
}

/// Each path with the literal `component` behind it, as far as that is there. While there is only
/// the start of the pattern (no wildcard was met yet), nothing needs to be looked up.
fn extended(
    found: Vec<Vec<u8>>,
    component: &[PatternByte],
    list: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let literal: Vec<u8> = component.iter().map(|byte| byte.0).collect();
    let only_start = found.len() == 1;
    let there = found
        .into_iter()
        .filter(|path| only_start || literal.is_empty() || list(path).contains(&literal));
    there.map(|path| [path, literal.clone()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_that_nothing_ends_is_no_wildcard() {
        let has = |text: &str| {
            let pattern: Vec<PatternByte> = text.bytes().map(|byte| (byte, true)).collect();
            has_wildcard(&pattern)
        };
        for text in ["", "a.b", "[", "]", "[]", "a[", "]a[b", "[[]"] {
            assert_eq!(has(text), text == "[[]", "{text}");
        }
        for text in ["*", "a?", "[a]", "[]]", "[!a]b", "x[[a]"] {
            assert!(has(text), "{text}");
        }
        assert!(!has_wildcard(&[
            (b'*', false),
            (b'[', false),
            (b'a', true),
            (b']', true)
        ]));
    }
}
