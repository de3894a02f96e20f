//! Patterns with `*`, `?` and `[...]`, over bytes.

use alloc::vec::Vec;

/// A byte of a pattern, and whether `* ? [` have their special meaning there (they have not in quotes).
pub type PatternByte = (u8, bool);

/// Whether the pattern has anything special in it.
pub fn has_wildcard(pattern: &[PatternByte]) -> bool {
    pattern
        .iter()
        .any(|&(byte, active)| active && matches!(byte, b'*' | b'?' | b'['))
}

/// Whether `name` matches the whole of `pattern`. A name that starts with a dot only matches a pattern that
/// does. Takes at most pattern length times name length steps.
pub fn matches(pattern: &[PatternByte], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first().map(|first| first.0) != Some(b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    // Where the last `*` was, and how much of the name it takes: on a mismatch it takes one byte more.
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

/// The set that `pattern`, which starts with `[`, starts with, and its length; `None` if it is not closed.
fn bracket(pattern: &[PatternByte]) -> Option<(Set<'_>, usize)> {
    let negated = matches!(pattern.get(1), Some((b'!' | b'^', true)));
    let start = 1 + usize::from(negated);
    // A `]` right at the start is a member.
    let rest = pattern.get(start + 1..)?;
    let end = start + 1 + rest.iter().position(|&byte| byte == (b']', true))?;
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

/// The paths that a pattern stands for, sorted; `None` if there are none. `list` gives the names in a
/// directory (the empty path is the working directory), none if it cannot be read.
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

/// Each path with the literal `component` behind it, as far as that is there. While there is only the
/// start of the pattern (no wildcard was met yet), nothing needs to be looked up.
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
