//! Loops of the personalities that a program could keep going for ever.
//!
//! A program that is killed has to be gone soon, whatever it has asked for: its thread is inside
//! the personality as long as a call lasts. So a loop there goes over something whose length is
//! known (`for`), or asks `is_ending` whether the program is to end. Those that do neither are
//! listed here, with what bounds them.

use std::path::Path;

use trefoil_gate::lexer::{self, Kind, Token};
use trefoil_gate::trust::Breach;

/// Where programs decide how long something takes.
const FOLDERS: &[&str] = &["domains/personalities", "domains/libs/guests"];

/// The word by which a loop asks whether its program is to end.
const ASKS: &str = "is_ending";

/// What makes iterators without an end.
const ENDLESS: &[&str] = &["cycle", "from_fn", "repeat_with", "successors"];

/// A wait of `rv6`'s: a kill of the process interrupts it.
const INTERRUPTED: &str = "each turn waits, and ends where the process is killed";
/// A thread of the personality's own, that does nothing for one program.
const OWN: &str = "a thread of the personality's own, which waits each turn";
/// Domains of the machine.
const DOMAINS: &str = "each turn tells of one domain of the machine";

/// A file, how many loops may stand in it that the rule would refuse, and what bounds them.
const BOUNDED: &[(&str, usize, &str)] = &[
    (
        "domains/libs/guests/src/archive.rs",
        2,
        "each turn tells of one file of the archive, or reads a part of it",
    ),
    (
        "domains/libs/guests/src/signals.rs",
        1,
        "a turn is lost only if another thread has taken the signal; SIGKILL is looked at first",
    ),
    (
        "domains/libs/guests/src/space.rs",
        1,
        "each turn goes on by a page at least, and callers name a part at a time",
    ),
    ("domains/libs/guests/src/workers.rs", 2, OWN),
    (
        "domains/personalities/first/src/program.rs",
        1,
        "a turn for each stop of the program: nobody can kill one of this example's",
    ),
    ("domains/personalities/linux/src/alarms.rs", 2, OWN),
    (
        "domains/personalities/linux/src/calls/signalling.rs",
        1,
        "each turn waits for a signal, and SIGKILL ends it",
    ),
    (
        "domains/personalities/linux/src/children.rs",
        2,
        "each turn gives away a child of a process that has ended; and init's own wait",
    ),
    (
        "domains/personalities/linux/src/delivery.rs",
        1,
        "each turn takes a signal, and SIGKILL is taken first",
    ),
    (
        "domains/personalities/linux/src/disk/listing.rs",
        2,
        "each turn tells names, of as many as there is room for in 256 KiB, or those of one directory",
    ),
    (
        "domains/personalities/linux/src/shortage.rs",
        2,
        "a turn for each process, of which there are so many at most; and a wait of two seconds",
    ),
    (
        "domains/personalities/linux/src/sockets/inet/moving.rs",
        1,
        "each turn sends a byte at least of those that are left, and SIGKILL ends its wait",
    ),
    ("domains/personalities/linux/src/sockets/network.rs", 1, OWN),
    (
        "domains/personalities/linux/src/sockets/rights.rs",
        1,
        "each turn drops a message or a descriptor in one, of as many as a user may have in messages",
    ),
    (
        "domains/personalities/linux/src/special/system.rs",
        2,
        DOMAINS,
    ),
    ("domains/personalities/linux/src/stream.rs", 3, OWN),
    (
        "domains/personalities/linux/src/task.rs",
        2,
        "the life of a thread, which takes its signals each turn; and the wait that all signals end",
    ),
    ("domains/personalities/linux/src/terminal.rs", 2, OWN),
    (
        "domains/personalities/rv6/src/images.rs",
        1,
        "each turn lets go of one image that was kept",
    ),
    ("domains/personalities/rv6/src/input.rs", 1, OWN),
    (
        "domains/personalities/rv6/src/launch.rs",
        2,
        "an array of sixteen; and a domain, which is killed until it has ended",
    ),
    (
        "domains/personalities/rv6/src/listing.rs",
        1,
        "each turn lists one mount",
    ),
    ("domains/personalities/rv6/src/pipes.rs", 2, INTERRUPTED),
    ("domains/personalities/rv6/src/proc_text.rs", 1, DOMAINS),
    ("domains/personalities/rv6/src/process.rs", 1, INTERRUPTED),
    ("domains/personalities/rv6/src/stop.rs", 1, INTERRUPTED),
    (
        "domains/personalities/rv6/src/table.rs",
        6,
        "one turn more than there are processes; or a wait, which ends where the process is killed",
    ),
    (
        "domains/personalities/rv6/src/terminal.rs",
        3,
        "each turn writes a part of the text; or waits, until there is room or the process is killed",
    ),
];

/// The loops in `text`, the source of `file` (from the project's root), that nothing bounds.
pub fn breaches(file: &Path, text: &str) -> Vec<Breach> {
    if !FOLDERS.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    let found = endless(text);
    let name = file.to_string_lossy();
    let listed = BOUNDED.iter().find(|(listed, ..)| *listed == name);
    let allowed = listed.map_or(0, |(_, count, _)| *count);
    if found.len() == allowed {
        return Vec::new();
    }
    let there = found.len();
    let breach = |line: usize| Breach {
        file: file.to_path_buf(),
        line,
        text: format!(
            "a loop that neither goes over a known length nor asks `{ASKS}`; {allowed} such loops are listed for this file in \
             xtask/src/loops.rs, {there} are there"
        ),
    };
    match found.is_empty() {
        true => vec![breach(1)],
        false => found.into_iter().map(breach).collect(),
    }
}

/// The lines of loops without a bound that can be seen.
fn endless(text: &str) -> Vec<usize> {
    let tokens = lexer::code_tokens(text);
    let is = |token: &Token<'_>, word| token.kind == Kind::Word && token.text == word;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at..];
        let is_endless = match token.text {
            "loop" | "while" if token.kind == Kind::Word => {
                !whole(rest).iter().any(|it| is(it, ASKS))
            }
            "for" if token.kind == Kind::Word => {
                let head = head(rest);
                head.iter().any(|it| is(it, "in"))
                    && matches!(head, [.., a, b] if a.text == "." && b.text == ".")
            }
            word => token.kind == Kind::Word && ENDLESS.contains(&word),
        };
        if is_endless {
            found.push(token.line);
        }
    }
    found
}

/// A loop's tokens up to its block.
fn head<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let mut depth = 0;
    let end = tokens.iter().position(|token| {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        token.text == "{" && depth == 0
    });
    &tokens[..end.unwrap_or(tokens.len())]
}

/// A loop's tokens with its block.
fn whole<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let start = head(tokens).len();
    let mut depth = 0;
    let end = tokens[start..].iter().position(|token| {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map_or(tokens, |end| &tokens[..=start + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "domains/personalities/linux/src/new.rs";

    fn lines(file: &str, text: &str) -> Vec<usize> {
        let found = breaches(Path::new(file), text);
        found.iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn loops_that_nobody_can_end_are_found() {
        let text = "fn f() {\n loop { g(); }\n while x < y { x += 1; }\n for i in 0.. { g(i); }\n \
                    core::iter::repeat_with(g).find(h);\n while let Some(x) = it.next() {}\n}";
        assert_eq!(lines(NEW, text), [2, 3, 4, 5, 6]);
        assert_eq!(lines("domains/fs/ext2/src/new.rs", text), [0; 0]);
    }

    #[test]
    fn loops_with_an_end_pass() {
        let text = "fn f() { for i in 0..x { g(i); } for y in list {} // loop {}\n\
                    while f(|| { 1 }) && !self.is_ending() { g(); }\n\
                    loop { if task.is_ending() { break; } } }\nimpl A for B {}";
        assert_eq!(lines(NEW, text), [0; 0]);
    }

    /// What asks inside another loop's block, or behind it, asks for that one alone.
    #[test]
    fn a_question_elsewhere_does_not_count() {
        let text = "fn f() { loop { g(); }\n while is_ending() {} }";
        assert_eq!(lines(NEW, text), [1]);
    }

    /// The list says how many there are, so that none comes, and none stays listed, unseen.
    #[test]
    fn a_listed_file_has_as_many_as_are_listed() {
        let file = "domains/personalities/rv6/src/stop.rs";
        assert_eq!(lines(file, "fn f() { loop {} }"), [0; 0]);
        assert_eq!(lines(file, "fn f() { loop {}\n loop {} }"), [1, 2]);
        assert_eq!(lines(file, "fn f() {}"), [1]);
    }
}
