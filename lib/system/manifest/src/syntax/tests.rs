//! Values of every kind, and where the text stops being one.

use super::*;
use alloc::vec;

fn fails(text: &str) -> (u32, String) {
    let error = parse(text).expect_err("a malformed file");
    (error.line, error.message)
}

#[test]
fn reads_every_kind_of_value() {
    let text = "# c\n[a.b-c] # d\ns = \"x\\\"\\n\"\ni = 0x3_f8\nn = -5\nb = true\r\nl = [ \"p\", # e\n \"q\",\n]\nt = { x = 1,\n y = \"z\" }\n[e]";
    let sections = parse(text).expect("well-formed");
    assert_eq!(sections[0].path, ["a", "b-c"]);
    let values: Vec<_> = sections[0]
        .entries
        .iter()
        .map(|entry| entry.value.clone())
        .collect();
    let table = vec![
        Entry {
            key: "x".into(),
            value: Value::Integer(1),
            line: 10,
        },
        Entry {
            key: "y".into(),
            value: Value::String("z".into()),
            line: 11,
        },
    ];
    let expected = [
        Value::String("x\"\n".into()),
        Value::Integer(0x3f8),
        Value::Integer(-5),
        Value::Bool(true),
        Value::Strings(vec!["p".into(), "q".into()]),
        Value::Table(table),
    ];
    assert_eq!(values, expected);
    assert_eq!((sections[1].line, sections[1].entries.len()), (12, 0));
}

#[test]
fn an_empty_file_has_no_sections() {
    assert_eq!(parse(" \n# only a comment"), Ok(vec![]));
}

#[test]
fn says_where_a_string_is_not_closed() {
    let (line, message) = fails("[a]\n\nb = \"x\nc = 1\n");
    assert_eq!(line, 3);
    assert!(message.contains("not closed"), "{message}");
}

#[test]
fn says_what_was_expected() {
    for (text, line, wanted) in [
        ("a = 1", 1, "table header"),
        ("[a\n", 1, "`]`"),
        ("[]", 1, "a name"),
        ("[a]\nb 1", 2, "`=` after the key `b`"),
        ("[a]\nb = ", 2, "a value"),
        ("[a]\nb = 1 2", 2, "the end of the line"),
        ("[a]\nb = [1]", 2, "a string in double quotes or `]`"),
        ("[a]\nb = [\"x\" \"y\"]", 2, "`,` or `]`"),
        ("[a]\nb = {x = 1\ny = 2}", 3, "`,` or `}`"),
        ("[a]\nb = {x = {}}", 2, "a value"),
        ("[a]\nb = yes", 2, "found `yes`"),
        ("[a]\nb = \"\\x\"", 2, "after `\\`"),
        ("[a]\nb = [\"x\"", 2, "the end of the file"),
    ] {
        let (at, message) = fails(text);
        assert_eq!(at, line, "{text}");
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn nothing_comes_twice() {
    assert!(fails("[a]\nb = 1\nb = 2").1.contains("line 2 already"));
    assert!(fails("[a]\n[c]\n[a]").1.contains("line 1 already"));
    assert!(fails("[a]\nb = {c = 1, c = 2}").1.contains("already"));
}

#[test]
fn bad_integers_are_refused() {
    for word in [
        "0x",
        "1__",
        "_1",
        "99999999999999999999",
        "1.5",
        "--1",
        "0x-1",
    ] {
        assert_eq!(integer(word), None, "{word}");
    }
}
