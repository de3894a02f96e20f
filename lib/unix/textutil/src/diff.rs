//! Differences between two texts, line by line, as `diff` and `diff -u` print them.
//!
//! Myers' algorithm ("An O(ND) difference algorithm and its variations", 1986) on what is left when
//! equal starts and ends are taken off. Beyond [`MOST_CHANGES`] what is left counts as replaced as
//! a whole: right, not smallest.

use alloc::format;
use alloc::vec::Vec;

/// Most changed lines for which the smallest difference is looked for; the memory for it grows with
/// the square.
const MOST_CHANGES: usize = 2000;

/// A piece of the texts: lines of the old one that become lines of the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    old: core::ops::Range<usize>,
    new: core::ops::Range<usize>,
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// What changes, in order.
fn hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[start..], &new[start..]);
    let end = rest_old.iter().rev().zip(rest_new.iter().rev());
    let end = end.take_while(|(a, b)| a == b).count();
    let middle_old = &rest_old[..rest_old.len() - end];
    let middle_new = &rest_new[..rest_new.len() - end];
    let found = match trace(middle_old, middle_new) {
        Some(steps) => joined(&steps),
        None => Vec::from([Hunk {
            old: 0..middle_old.len(),
            new: 0..middle_new.len(),
        }]),
    };
    let moved = found.into_iter().map(|hunk| Hunk {
        old: hunk.old.start + start..hunk.old.end + start,
        new: hunk.new.start + start..hunk.new.end + start,
    });
    moved
        .filter(|it| !it.old.is_empty() || !it.new.is_empty())
        .collect()
}

/// A line that goes (`true`) or comes, with the place in both texts before it.
type Step = (usize, usize, bool);

/// The changes of a shortest way from `old` to `new`; `None` if it is too long.
fn trace(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<Step>> {
    let (old_len, new_len) = (old.len() as isize, new.len() as isize);
    // furthest[k + offset]: how far in `old` the furthest way on diagonal k has come.
    let mut history: Vec<Vec<isize>> = Vec::new();
    let most = old.len().saturating_add(new.len()).min(MOST_CHANGES);
    for changes in 0..=most as isize {
        let before = history.last();
        let at = |diagonal: isize| -> isize {
            let index = usize::try_from(diagonal + changes - 1).ok();
            index
                .and_then(|index| before?.get(index).copied())
                .unwrap_or(-1)
        };
        let mut now = Vec::with_capacity(2 * changes as usize + 1);
        for diagonal in -changes..=changes {
            let mut x = match changes {
                0 => 0,
                _ => at(diagonal + 1).max(at(diagonal - 1) + 1),
            };
            // Ways that left the texts lead nowhere.
            if x > old_len || x - diagonal > new_len {
                x = isize::MIN / 2;
            }
            while x >= 0
                && x < old_len
                && x - diagonal < new_len
                && x >= diagonal
                && old[x as usize] == new[(x - diagonal) as usize]
            {
                x += 1;
            }
            now.push(x);
            if x >= old_len && x - diagonal >= new_len {
                history.push(now);
                return Some(steps_back(&history, old_len, new_len));
            }
        }
        history.push(now);
    }
    None
}

fn steps_back(history: &[Vec<isize>], old_len: isize, new_len: isize) -> Vec<Step> {
    let (mut x, mut y) = (old_len, new_len);
    let mut steps = Vec::new();
    for changes in (1..history.len() as isize).rev() {
        let before = &history[changes as usize - 1];
        let at = |diagonal: isize| -> isize {
            let index = usize::try_from(diagonal + changes - 1).ok();
            index
                .and_then(|index| before.get(index).copied())
                .unwrap_or(-1)
        };
        let diagonal = x - y;
        let (came, went) = (at(diagonal + 1), at(diagonal - 1) + 1);
        let goes = went > came;
        (x, y) = match goes {
            true => (went - 1, went - 1 - (diagonal - 1)),
            false => (came, came - (diagonal + 1)),
        };
        steps.push((x as usize, y as usize, goes));
    }
    steps.reverse();
    steps
}

/// Steps that follow each other without an equal line between, as one piece.
fn joined(steps: &[Step]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for &(x, y, goes) in steps {
        let follows = hunks
            .last()
            .is_some_and(|last| last.old.end == x && last.new.end == y);
        if !follows {
            hunks.push(Hunk {
                old: x..x,
                new: y..y,
            });
        }
        if let Some(last) = hunks.last_mut() {
            match goes {
                true => last.old.end += 1,
                false => last.new.end += 1,
            }
        }
    }
    hunks
}

/// Adds lines with a sign in front.
fn add(out: &mut Vec<u8>, sign: &[u8], lines: &[&[u8]]) {
    for line in lines {
        out.extend_from_slice(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// As `diff` prints it.
pub fn normal(old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let mut out = Vec::new();
    for hunk in hunks(&old, &new) {
        let letter = match (hunk.old.is_empty(), hunk.new.is_empty()) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        let head = format!("{}{letter}{}\n", range(&hunk.old), range(&hunk.new));
        out.extend_from_slice(head.as_bytes());
        add(&mut out, b"< ", &old[hunk.old.clone()]);
        if letter == 'c' {
            out.extend_from_slice(b"---\n");
        }
        add(&mut out, b"> ", &new[hunk.new.clone()]);
    }
    out
}

/// `first,last` from 1; of nothing the line before it.
fn range(lines: &core::ops::Range<usize>) -> alloc::string::String {
    match lines.len() {
        0 => format!("{}", lines.start),
        1 => format!("{}", lines.end),
        _ => format!("{},{}", lines.start + 1, lines.end),
    }
}

/// As `diff -u` prints it, without the two lines that name the files.
pub fn unified(old: &[u8], new: &[u8], context: usize) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let mut out = Vec::new();
    let hunks = hunks(&old, &new);
    let mut rest = hunks.as_slice();
    while let Some(first) = rest.first() {
        // Changes with few lines between share their surroundings.
        let apart = |pair: &[Hunk]| pair[1].old.start - pair[0].old.end > 2 * context;
        let count = rest
            .windows(2)
            .position(apart)
            .map_or(rest.len(), |at| at + 1);
        let (group, others) = rest.split_at(count);
        rest = others;
        let before = first.old.start.min(context);
        let last = &group[group.len() - 1];
        let after = (old.len() - last.old.end).min(context);
        let old_range = first.old.start - before..last.old.end + after;
        let new_range = first.new.start - before..last.new.end + after;
        let head = format!("@@ -{} +{} @@\n", span(&old_range), span(&new_range));
        out.extend_from_slice(head.as_bytes());
        let mut at = old_range.start;
        for hunk in group {
            add(&mut out, b" ", &old[at..hunk.old.start]);
            add(&mut out, b"-", &old[hunk.old.clone()]);
            add(&mut out, b"+", &new[hunk.new.clone()]);
            at = hunk.old.end;
        }
        add(&mut out, b" ", &old[at..old_range.end]);
    }
    out
}

/// `first,count`; one line as its number alone.
fn span(lines: &core::ops::Range<usize>) -> alloc::string::String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.end),
        count => format!("{},{count}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn both(old: &str, new: &str) -> (String, String) {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            text(normal(old.as_bytes(), new.as_bytes())),
            text(unified(old.as_bytes(), new.as_bytes(), 3)),
        )
    }

    #[test]
    fn shows_what_changes() {
        let (plain, with_context) = both("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n");
        assert_eq!(plain, "2c2\n< b\n---\n> x\n4a5\n> e\n");
        assert_eq!(with_context, "@@ -1,4 +1,5 @@\n a\n-b\n+x\n c\n d\n+e\n");
        assert_eq!(both("a\n", "").0, "1d0\n< a\n");
        assert_eq!(both("", "a\nb\n").0, "0a1,2\n> a\n> b\n");
        assert_eq!(
            both("a", "a\n").0,
            "1c1\n< a\n\\ No newline at end of file\n---\n> a\n"
        );
        assert_eq!(both("a\n", "a\n"), (String::new(), String::new()));
        assert_eq!(
            both("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n")
                .0
                .matches(['<', '>'])
                .count(),
            5
        );
    }

    #[test]
    fn changes_far_apart_stand_apart() {
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("2\n3\n", "3\n").replace("19\n", "x\n");
        let (_, shown) = both(&old, &new);
        assert!(
            shown.starts_with("@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n@@ -"),
            "{shown}"
        );
        assert!(shown.ends_with("-19\n+x\n 20\n"), "{shown}");
    }

    #[test]
    fn applying_the_difference_gives_the_new_text() {
        let mut state = 1u32;
        let mut random = move |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..300 {
            let mut text = |_| -> Vec<u8> {
                let count = random(12);
                (0..count)
                    .flat_map(|_| [b'a' + random(3) as u8, b'\n'])
                    .collect()
            };
            let (old, new) = (text(0), text(1));
            let (old_lines, new_lines) = (lines(&old), lines(&new));
            let (mut at, mut made) = (0, Vec::new());
            for hunk in hunks(&old_lines, &new_lines) {
                made.extend_from_slice(&old_lines[at..hunk.old.start]);
                made.extend_from_slice(&new_lines[hunk.new]);
                at = hunk.old.end;
            }
            made.extend_from_slice(&old_lines[at..]);
            assert_eq!(made.concat(), new);
        }
    }

    #[test]
    fn texts_that_have_nothing_in_common_are_replaced() {
        let old: String = (0..3000).map(|number| format!("a{number}\n")).collect();
        let new = old.replace('a', "b");
        assert!(both(&old, &new).0.starts_with("1,3000c1,3000\n"));
    }
}
