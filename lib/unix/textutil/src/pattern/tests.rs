//! Tests of expressions: what they find, and what is refused.

use super::*;
use Syntax::{Basic, Extended, Fixed};

fn found(pattern: &str, syntax: Syntax, line: &str) -> Option<(usize, usize)> {
    let pattern = Pattern::new(pattern.as_bytes(), syntax, false).expect(pattern);
    let range = pattern.find(line.as_bytes(), 0);
    assert_eq!(range.is_some(), pattern.is_match(line.as_bytes()));
    range.map(|range| (range.start, range.end))
}

#[test]
fn basic() {
    for (pattern, line, expected) in [
        ("b", "abc", Some((1, 2))),
        ("", "abc", Some((0, 0))),
        ("a.c", "xabc", Some((1, 4))),
        ("ab*", "abbb", Some((0, 4))),
        ("^b", "ab", None),
        ("c$", "abc", Some((2, 3))),
        ("a^b$c", "a^b$c", Some((0, 5))),
        ("*a", "*a", Some((0, 2))),
        ("^*a", "*a", Some((0, 2))),
        ("a+b?", "a+b?", Some((0, 4))),
        (r"a\+", "aaa", Some((0, 3))),
        (r"\(ab\)*c", "ababc", Some((0, 5))),
        (r"a\{2\}", "aaa", Some((0, 2))),
        (r"a\{2,\}", "aaaa", Some((0, 4))),
        (r"x\|b", "abc", Some((1, 2))),
        ("a(b)", "a(b)", Some((0, 4))),
        (r"\.", "ab.", Some((2, 3))),
        ("[]a]*", "]a]", Some((0, 3))),
        ("[^a-c]", "abcd", Some((3, 4))),
        ("[[:digit:]x]*$", "ab1x2", Some((2, 5))),
        ("a]", "a]", Some((0, 2))),
        (r"\bfoo\b", "a foo b", Some((2, 5))),
        (r"\<oo", "foo", None),
        ("[a-]*", "a-", Some((0, 2))),
    ] {
        assert_eq!(found(pattern, Basic, line), expected, "{pattern} on {line}");
    }
}

#[test]
fn extended() {
    for (pattern, line, expected) in [
        ("a|bc", "xbc", Some((1, 3))),
        ("(a|ab)(c|bcd)", "abcd", Some((0, 4))),
        ("a+", "baa", Some((1, 3))),
        ("colou?r", "color", Some((0, 5))),
        ("^(a|b)+$", "abba", Some((0, 4))),
        ("a{2,3}", "aaaa", Some((0, 3))),
        ("(a*)*", "aaa", Some((0, 3))),
        ("(|a)b", "ab", Some((0, 2))),
        (r"\(a\)", "(a)", Some((0, 3))),
        ("a||b", "c", Some((0, 0))),
        ("^$", "", Some((0, 0))),
        ("(^a)b", "ab", Some((0, 2))),
        ("a{,2}", "aaa", Some((0, 2))),
    ] {
        assert_eq!(
            found(pattern, Extended, line),
            expected,
            "{pattern} on {line}"
        );
    }
}

#[test]
fn fixed_and_case() {
    assert_eq!(found("a.*[", Fixed, "xa.*["), Some((1, 5)));
    assert_eq!(found("aab", Fixed, "aaab"), Some((1, 4)));
    assert_eq!(found("aab", Basic, "aaaa"), None);
    assert_eq!(found("", Fixed, ""), Some((0, 0)));
    let pattern = Pattern::new(b"HeLLo [x-z]", Basic, true).unwrap();
    assert!(pattern.is_match(b"say hEllO Y"));
    assert!(
        Pattern::new(b"a*", Basic, false)
            .unwrap()
            .is_whole_match(b"aaa")
    );
    assert!(
        !Pattern::new(b"a*", Basic, false)
            .unwrap()
            .is_whole_match(b"aab")
    );
}

#[test]
fn both_cases() {
    let matches = |pattern: &[u8], line: &[u8]| {
        let pattern = Pattern::new(pattern, Extended, true);
        pattern.expect("a good pattern").is_match(line)
    };
    assert!(matches(b"[a-c]X", b"Bx") && matches(b"[[:upper:]]", b"a") && matches(b"\\A", b"a"));
    assert!(!matches(b"[^a]", b"aA") && matches(b"[^a]", b"b"));
}

#[test]
fn later_matches_know_what_stands_before_them() {
    let start = Pattern::new(b"^a|\\bb", Extended, false).expect("a good pattern");
    assert_eq!(start.find(b"aab b", 0), Some(0..1));
    assert_eq!(start.find(b"aab b", 1), Some(4..5));
    let text = Pattern::new(b"ab", Fixed, false).expect("a good pattern");
    assert_eq!(
        (
            text.find(b"abab", 1),
            text.find(b"abab", 3),
            text.find(b"ab", 9)
        ),
        (Some(2..4), None, None)
    );
}

#[test]
fn whole_words() {
    let pattern = Pattern::words(b"ab*", Basic, false).unwrap();
    assert_eq!(pattern.find(b"xab abbc a-", 0), Some(9..10));
    assert_eq!(pattern.find(b"abb!", 0), Some(0..3));
    assert!(!pattern.is_match(b"ab_ abc cab"));
}

#[test]
fn what_is_no_pattern() {
    for (pattern, syntax, error) in [
        ("[a", Basic, PatternError::Bracket),
        ("[[:no:]]", Basic, PatternError::Bracket),
        ("[]", Basic, PatternError::Bracket),
        (r"\(a", Basic, PatternError::Group),
        (r"a\)", Basic, PatternError::Group),
        ("(a", Extended, PatternError::Group),
        ("a\\", Basic, PatternError::Backslash),
        (r"\(a\)\1", Basic, PatternError::BackReference),
        ("a{2", Extended, PatternError::Count),
        ("a{3,2}", Extended, PatternError::Count),
        ("a{x}", Extended, PatternError::Count),
        ("a{9999999999}", Extended, PatternError::Count),
        ("((a{1000}){1000}){1000}", Extended, PatternError::TooLarge),
    ] {
        assert_eq!(
            Pattern::new(pattern.as_bytes(), syntax, false).err(),
            Some(error),
            "{pattern}"
        );
    }
}

#[test]
fn hostile_patterns_end() {
    let deep = alloc::format!("{}a{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(
        Pattern::new(deep.as_bytes(), Extended, false).err(),
        Some(PatternError::TooLarge)
    );
    let signs = alloc::format!("a{}", "?".repeat(10_000));
    assert_eq!(
        Pattern::new(signs.as_bytes(), Extended, false).err(),
        Some(PatternError::TooLarge)
    );
    let empty = alloc::format!("(){}", "{1000}".repeat(9));
    assert!(Pattern::new(empty.as_bytes(), Extended, false).is_ok());
    let line = alloc::vec![b'a'; 2000];
    assert!(
        !Pattern::new(b"(a*)*(a*)*(a*)*b", Extended, false)
            .unwrap()
            .is_match(&line)
    );
}
