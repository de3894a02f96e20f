//! Whether the log tells the stacks of domains that died as they were.
//!
//! The tests `backtrace-*` of the prober have a victim die behind two domains that forward calls.
//! Here is which function and line each frame must name: the lines are found by what stands in
//! them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A frame as it must be told: the domain, the function, the file, and the first line of the
/// function whose line it is with the text that stands in that line.
type Expected = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const VICTIM: &str = "domains/testing/victim/src/lib.rs";
const MISDEEDS: &str = "domains/testing/victim/src/misdeeds.rs";
const FORWARDER: &str = "domains/testing/forwarder/src/lib.rs";
const PROBER: &str = "domains/testing/prober/src/traces.rs";

/// A frame of a function of the victim that does harm.
const fn victim(function: &'static str, begins: &'static str, text: &'static str) -> Expected {
    ("victim", function, MISDEEDS, begins, text)
}

/// A frame of what does harm: in the line with this text.
const fn harm(text: &'static str) -> Expected {
    victim("victim::misdeeds::harm", "fn harm(", text)
}

const FORWARDED: Expected = (
    "forwarder",
    "forwarder::Forwarder::misbehave",
    FORWARDER,
    "fn misbehave(",
    "self.0.misbehave(how)",
);

/// What all of them end with: two domains that forward, and who called them.
const CALLERS: [Expected; 4] = [
    (
        "victim",
        "victim::Rogue::misbehave",
        VICTIM,
        "fn misbehave(",
        "misdeeds::harm(self, how)",
    ),
    FORWARDED,
    FORWARDED,
    (
        "prober",
        "prober::traces::ask",
        PROBER,
        "fn ask(",
        "front.misbehave(how)",
    ),
];

const SPIN: Expected = victim("victim::misdeeds::harm", "Misdeed::Spin =>", "*");

/// What each begins with. The first frame of the overflow is there many times.
const TESTS: [(&str, &[Expected]); 7] = [
    (
        "backtrace-of-a-panic",
        &[
            victim(
                "victim::misdeeds::panic_with_boxes",
                "fn panic_with_boxes(",
                "panic!(",
            ),
            harm("panic_with_boxes()"),
        ],
    ),
    (
        "backtrace-of-an-index-out-of-bounds",
        &[harm("[1u8, 2, 3][")],
    ),
    (
        "backtrace-of-a-stack-overflow",
        &[
            victim("victim::misdeeds::recurse", "fn recurse(", "*"),
            harm("recurse(0,"),
        ],
    ),
    (
        "backtrace-of-want-of-memory",
        &[
            victim(
                "victim::misdeeds::hoard_blindly",
                "fn hoard_blindly(",
                "Box::new(Link",
            ),
            harm("hoard_blindly()"),
        ],
    ),
    ("backtrace-of-a-hang", &[SPIN]),
    ("backtrace-of-who-is-ended-at-work", &[SPIN]),
    (
        "backtrace-of-who-is-ended-while-it-waits",
        &[
            victim("victim::misdeeds::block", "fn block(", "*"),
            harm("block(rogue)"),
        ],
    ),
];

/// Looks at the stacks that the log of the prober tells. The names of tests whose stack is right
/// and, of the others, what is wrong.
pub fn judge(log: &str, root: &Path) -> Vec<(&'static str, Result<()>)> {
    let ran = |name: &str| log.contains(&format!("prober: test {name} "));
    let tests = TESTS.into_iter().filter(|(name, _)| ran(name));
    tests
        .map(|(name, first)| (name, judge_one(log, name, first, root)))
        .collect()
}

fn judge_one(log: &str, name: &str, first: &[Expected], root: &Path) -> Result<()> {
    let told = stack_of(log, name);
    let seen = told.join("\n");
    let mut frames = told.iter().map(|line| read(line).unwrap_or_default());
    // Kernel and library are between them; what they do there is theirs.
    // Between so many levels of a recursion some are not in the log.
    let is_recursive = name.ends_with("overflow");
    let is_own = |(domain, _, place): &(&str, &str, &str)| match *domain {
        "kernel" => false,
        "??" => !is_recursive,
        _ => !place.starts_with("rust/") && !place.starts_with("runtime/"),
    };
    let mut own = frames.by_ref().filter(is_own);
    for (number, expected) in first.iter().chain(&CALLERS).enumerate() {
        let mut found = own.next();
        if is_recursive {
            while found.is_some_and(|(domain, function, _)| {
                (domain, function) == (first[0].0, first[0].1) && number > 0
            }) {
                found = own.next();
            }
        }
        let (domain, function, place) =
            found.with_context(|| format!("frame {number} is missing in\n{seen}"))?;
        let right = (domain, function) == (expected.0, expected.1);
        ensure!(
            right,
            "frame {number} is {domain}: {function}, and not {}: {}\n{seen}",
            expected.0,
            expected.1
        );
        let lines = lines(root, expected)?;
        let line = place
            .strip_prefix(expected.2)
            .and_then(|rest| rest.strip_prefix(':'));
        let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_default();
        ensure!(
            lines.contains(&line),
            "{function} is at {place}, and not in {} at {lines:?}\n{seen}",
            expected.2
        );
    }
    let rest: Vec<_> = own.collect();
    ensure!(
        !rest.is_empty(),
        "the prober's own frames are missing in\n{seen}"
    );
    for (domain, function, place) in rest {
        ensure!(
            domain == "prober" && place.contains(".rs:"),
            "{domain}: {function} at {place}\n{seen}"
        );
    }
    Ok(())
}

/// The lines of the stack that was told last before the test's result.
fn stack_of<'a>(log: &'a str, name: &str) -> Vec<&'a str> {
    let end = log
        .find(&format!("prober: test {name} "))
        .unwrap_or_default();
    let before: Vec<_> = log[..end].lines().collect();
    let is_frame = |line: &&str| line.contains("]     #");
    let last = before.iter().rposition(is_frame).map_or(0, |last| last + 1);
    let first = before[..last]
        .iter()
        .rposition(|line| line.contains("]     #0 "))
        .unwrap_or(last);
    before[first..last]
        .iter()
        .copied()
        .filter(|line| is_frame(line))
        .collect()
}

/// Domain, function, file and line of a frame such as `[ 0.1]     #3  ext2: ext2::read at a.rs:7`.
fn read(line: &str) -> Option<(&str, &str, &str)> {
    let (_, frame) = line.split_once('#')?;
    let (_, frame) = frame.split_once(' ')?;
    let (domain, rest) = frame.trim_start().split_once(": ")?;
    let (function, place) = rest.split_once(" at ").unwrap_or((rest, ""));
    Some((domain, function, place))
}

/// The numbers of the lines that a frame may name: the first with this text after the one that
/// begins the function; `*`: any line up to the end of that block.
fn lines(
    root: &Path,
    (_, _, file, function, text): &Expected,
) -> Result<std::ops::RangeInclusive<usize>> {
    let source = fs::read_to_string(root.join(file))?;
    let lines: Vec<_> = source.lines().collect();
    let has = |text: &str, from: usize| {
        let found = lines[from..].iter().position(|line| line.contains(text));
        found
            .map(|at| at + from)
            .with_context(|| format!("no `{text}` in {file}"))
    };
    let first = has(function, 0)?;
    if *text != "*" {
        let line = has(text, first)? + 1;
        return Ok(line..=line);
    }
    let indent = lines[first].len() - lines[first].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let last = lines[first..]
        .iter()
        .position(|line| line.starts_with(&end));
    Ok(first + 1..=first + 1 + last.context("a block has an end")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn a_frame_is_read() {
        let line = "[    0.31]     #12 vfs: vfs::Service::lookup at domains/a.rs:9";
        assert_eq!(
            read(line),
            Some(("vfs", "vfs::Service::lookup", "domains/a.rs:9"))
        );
        assert_eq!(
            read("[ 0.3]     #1  kernel: +0x12"),
            Some(("kernel", "+0x12", ""))
        );
        assert_eq!(read("nothing"), None);
    }

    #[test]
    fn every_line_that_is_expected_is_there() {
        for expected in TESTS.iter().flat_map(|(_, first)| *first).chain(&CALLERS) {
            assert!(
                lines(&root(), expected).is_ok_and(|lines| *lines.start() > 1),
                "{expected:?}"
            );
        }
    }

    #[test]
    fn a_stack_that_is_not_told_is_no_right_one() {
        let log = "[ 0.1] prober: test backtrace-of-a-panic ok\n";
        let judged = judge(log, &root());
        assert_eq!(judged.len(), 1);
        assert!(judged[0].1.is_err());
    }
}
