//! Formats, as others print them.

use super::*;

fn arguments(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn printed(format: &str, texts: &[&str]) -> String {
    let printed = printf(format.as_bytes(), &arguments(texts));
    assert_eq!(printed.errors, Vec::<String>::new(), "{format}");
    String::from_utf8(printed.text).unwrap()
}

#[test]
fn prints_as_others_do() {
    for (format, texts, expected) in [
        ("%s\\n", &["a", "b"][..], "a\nb\n"),
        ("%s-%s\\n", &["a", "b", "c"], "a-b\nc-\n"),
        (
            "%5d|%-5d|%05d\\n",
            &["42", "42", "42"],
            "   42|42   |00042\n",
        ),
        ("%+d % d %d", &["5", "5", "-5"], "+5  5 -5"),
        (
            "%x %X %o %#x %#o",
            &["255", "255", "8", "255", "8"],
            "ff FF 10 0xff 010",
        ),
        ("%u", &["-1"], "18446744073709551615"),
        ("%.3d %.0d|", &["7", "0"], "007 |"),
        ("%.2s|%5s|%-5s|", &["abc", "ab", "ab"], "ab|   ab|ab   |"),
        ("%c%c", &["abc", "x"], "ax"),
        ("%b", &["a\\tb\\0101\\n"], "a\tbA\n"),
        ("%b|%s", &["a\\cb", "x"], "a"),
        ("%%|\\101|\\x", &[], "%|A|\\x"),
        ("%d %d %d", &["0x1f", "010", "'A"], "31 8 65"),
        ("%*d|%-*d|", &["4", "7", "4", "7"], "   7|7   |"),
        ("%.2f %.0f %f", &["3.14159", "2.5", "1"], "3.14 2 1.000000"),
        ("%06.1f %.2f", &["-2.25", "0.005"], "-002.2 0.01"),
        ("no arguments\\n", &["x"], "no arguments\n"),
        ("%d %s|", &[], "0 |"),
    ] {
        assert_eq!(printed(format, texts), expected, "{format}");
    }
}

#[test]
fn echo_knows_escapes() {
    let text = |texts: &[&str]| String::from_utf8(echo(&arguments(texts)).text).unwrap();
    assert_eq!(text(&["a", "b"]), "a b\n");
    assert_eq!(text(&["-n", "a"]), "a");
    assert_eq!(text(&["a\\tb\\nc"]), "a\tb\nc\n");
    assert_eq!(text(&["\\0101\\q\\\\"]), "A\\q\\\n");
    assert_eq!(text(&["a\\cb", "d"]), "a");
    assert_eq!(text(&["a\\"]), "a\\\n");
    assert_eq!(text(&[]), "\n");
}

#[test]
fn faults() {
    for (format, texts, expected) in [
        ("%d\\n", &["abc"][..], "0\n"),
        ("%d\\n", &["12abc"], "12\n"),
        ("%d\\n", &[""], "0\n"),
        ("a%z", &["1"], "a"),
        ("a%", &[], "a"),
        ("%f", &["x"], "0.000000"),
    ] {
        let printed = printf(format.as_bytes(), &arguments(texts));
        assert_eq!(printed.text, expected.as_bytes(), "{format}");
        assert_eq!(printed.errors.len(), 1, "{format}");
    }
    let wide = printf(b"%999999999999d", &arguments(&["1"]));
    assert_eq!(wide.text.len(), WIDEST);
    assert_eq!(
        printed("%d", &["99999999999999999999"]),
        i64::MAX.to_string()
    );
    assert_eq!(printed("%.99999f", &["0.5"]).len(), 100_001);
    assert_eq!(printed("%.99999d", &["-5"]).len(), 100_000);
    assert_eq!(printed("%.2f %.2f", &["2.345", "inf"]), "2.35 inf");
    assert_eq!(printed("%.99f", &["0"]).len(), 101);
}
