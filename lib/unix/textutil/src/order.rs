//! The order of lines, as `sort` has it where letters sort by their bytes.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// How texts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// As decimal numbers, of any length.
    pub numeric: bool,
    /// The greatest first.
    pub reverse: bool,
    /// Without regard to blanks at the start.
    pub blanks: bool,
    /// Small letters as if they were large.
    pub fold: bool,
}

/// A part of the line that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    first: Place,
    last: Option<Place>,
    manner: Option<Manner>,
}

/// A field, counted from 1, and a byte in it, likewise; of a key's last place 0 is the end of the
/// field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    field: usize,
    byte: usize,
}

impl Place {
    /// Where it is in a line.
    fn find(self, line: &[u8], separator: Option<u8>, without: bool) -> usize {
        let start = (1..self.field).fold(0, |at, _| next_field(line, at, separator));
        let blanks = match without {
            true => line.len() - start - without_blanks(&line[start..]).len(),
            false => 0,
        };
        (start + blanks).saturating_add(self.byte).min(line.len())
    }
}

impl Key {
    /// Reads `FIRST[.BYTE][LETTERS][,LAST[.BYTE][LETTERS]]`, counted from 1, letters of `nrbf`.
    /// `None` if it is not that.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.splitn(2, |&byte| byte == b',');
        let mut manner = Manner::default();
        let mut first = place(parts.next()?, &mut manner, 1)?;
        first.byte = first.byte.checked_sub(1)?;
        let last = match parts.next() {
            Some(part) => Some(place(part, &mut manner, 0)?),
            None => None,
        };
        Some(Key {
            first,
            last,
            manner: (manner != Manner::default()).then_some(manner),
        })
    }

    fn of<'a>(&self, line: &'a [u8], separator: Option<u8>, without: bool) -> &'a [u8] {
        let start = self.first.find(line, separator, without);
        let end = self.last.map_or(line.len(), |last| match last.byte {
            0 => field_end(line, last.find(line, separator, false), separator),
            _ => last.find(line, separator, without),
        });
        &line[start..end.max(start)]
    }
}

/// The numbers before the letters, which go into `manner`; `byte` if there is only that of the
/// field.
fn place(text: &[u8], manner: &mut Manner, byte: usize) -> Option<Place> {
    let (field, mut rest) = leading_number(text)?;
    let mut place = Place { field, byte };
    if let [b'.', behind @ ..] = rest {
        (place.byte, rest) = leading_number(behind)?;
    }
    for letter in rest {
        match letter {
            b'n' => manner.numeric = true,
            b'r' => manner.reverse = true,
            b'b' => manner.blanks = true,
            b'f' => manner.fold = true,
            _ => return None,
        }
    }
    (place.field > 0).then_some(place)
}

fn leading_number(text: &[u8]) -> Option<(usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let number: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
    // More fields than this are in no line that could be read.
    (number < 1 << 24).then_some((number, rest))
}

/// Where the field that starts at `at` ends: before a separator, or before blanks behind what is
/// none.
fn field_end(line: &[u8], at: usize, separator: Option<u8>) -> usize {
    let rest = &line[at..];
    let length = match separator {
        Some(separator) => rest.iter().position(|&byte| byte == separator),
        None => {
            let blanks = rest.len() - without_blanks(rest).len();
            let word = rest[blanks..].iter().position(is_blank);
            word.map(|length| blanks + length)
        }
    };
    length.map_or(line.len(), |length| at + length)
}

fn next_field(line: &[u8], at: usize, separator: Option<u8>) -> usize {
    let end = field_end(line, at, separator);
    (end + usize::from(separator.is_some())).min(line.len())
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_blank(byte));
    &text[start.unwrap_or(text.len())..]
}

/// How lines are sorted.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The keys, the most important first; without any, the whole line.
    pub keys: Vec<Key>,
    /// What stands between fields; otherwise fields start where blanks do.
    pub separator: Option<u8>,
    /// For the whole line, and for keys that do not say.
    pub manner: Manner,
    /// Lines with equal keys are equal; otherwise the whole lines decide then.
    pub keys_only: bool,
}

impl Order {
    /// Which of two lines comes first.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let mut order = match self.keys.is_empty() {
            true => compare(a, b, self.manner),
            false => Ordering::Equal,
        };
        for key in &self.keys {
            let manner = key.manner.unwrap_or(self.manner);
            let part = |line| key.of(line, self.separator, manner.blanks);
            let (a, b) = (part(a), part(b));
            order = order.then_with(|| compare(a, b, manner));
        }
        if order.is_ne() || self.keys_only {
            return order;
        }
        let whole = Manner {
            reverse: self.manner.reverse,
            ..Manner::default()
        };
        compare(a, b, whole)
    }
}

fn compare(a: &[u8], b: &[u8], manner: Manner) -> Ordering {
    let (a, b) = match manner.blanks {
        true => (without_blanks(a), without_blanks(b)),
        false => (a, b),
    };
    let order = match (manner.numeric, manner.fold) {
        (true, _) => compare_numbers(a, b),
        (false, true) => {
            let upper = |text: &'_ [u8]| -> Vec<u8> { text.to_ascii_uppercase() };
            upper(a).cmp(&upper(b))
        }
        (false, false) => a.cmp(b),
    };
    if manner.reverse {
        order.reverse()
    } else {
        order
    }
}

/// A number as it is written: negative, digits without zeros at the left, decimals without zeros at
/// the right.
fn number(text: &[u8]) -> (bool, &[u8], &[u8]) {
    let text = without_blanks(text);
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (mut whole, rest) = text.split_at(digits(text));
    let mut decimals = match rest {
        [b'.', rest @ ..] => &rest[..digits(rest)],
        _ => &[],
    };
    while let [b'0', rest @ ..] = whole {
        whole = rest;
    }
    while let [rest @ .., b'0'] = decimals {
        decimals = rest;
    }
    let zero = whole.is_empty() && decimals.is_empty();
    (negative && !zero, whole, decimals)
}

fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let ((a_negative, a, a_decimals), (b_negative, b, b_decimals)) = (number(a), number(b));
    let size = a.len().cmp(&b.len());
    let size = size.then_with(|| a.cmp(b));
    let size = size.then_with(|| a_decimals.cmp(b_decimals));
    match (a_negative, b_negative) {
        (true, true) => size.reverse(),
        (false, false) => size,
        (a, b) => b.cmp(&a),
    }
}

/// Which part of a line `uniq` compares, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// So many fields in front are left out, each with the blanks before it.
    pub fields: usize,
    /// And so many bytes behind them.
    pub bytes: usize,
    /// Not more bytes than these, if it says so.
    pub most: Option<usize>,
    /// Small letters are as large ones.
    pub fold: bool,
}

impl Compared {
    /// Whether both lines are the same in that part.
    pub fn are_equal(&self, a: &[u8], b: &[u8]) -> bool {
        let (a, b) = (self.part(a), self.part(b));
        match self.fold {
            true => a.eq_ignore_ascii_case(b),
            false => a == b,
        }
    }

    fn part<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut rest = line;
        for _ in 0..self.fields {
            let behind = without_blanks(rest);
            let end = behind.iter().position(is_blank);
            rest = &behind[end.unwrap_or(behind.len())..];
            if rest.is_empty() {
                break;
            }
        }
        let rest = &rest[self.bytes.min(rest.len())..];
        &rest[..self.most.unwrap_or(rest.len()).min(rest.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn sorted(keys: &[&str], letters: &str, separator: Option<u8>, lines: &str) -> String {
        let keys = keys.iter().map(|key| Key::parse(key.as_bytes()).unwrap());
        let order = Order {
            keys: keys.collect(),
            separator,
            manner: Manner {
                numeric: letters.contains('n'),
                reverse: letters.contains('r'),
                blanks: letters.contains('b'),
                fold: letters.contains('f'),
            },
            keys_only: letters.contains('u'),
        };
        let mut lines: Vec<&str> = lines.split('|').collect();
        lines.sort_by(|a, b| order.compare(a.as_bytes(), b.as_bytes()));
        lines.join("|")
    }

    #[test]
    fn whole_lines() {
        assert_eq!(sorted(&[], "", None, "b|a|B|"), "|B|a|b");
        assert_eq!(sorted(&[], "r", None, "b|a|c"), "c|b|a");
        assert_eq!(
            sorted(&[], "n", None, "10|9|-1|-2|1.5|1.25"),
            "-2|-1|1.25|1.5|9|10"
        );
    }

    #[test]
    fn keys() {
        assert_eq!(sorted(&["2"], "n", None, "a 10|b 9|c 9"), "b 9|c 9|a 10");
        assert_eq!(
            sorted(&["2,2r", "1"], "", Some(b':'), "a:x|b:y|c:y"),
            "b:y|c:y|a:x"
        );
        assert_eq!(sorted(&["2"], "", None, "x  b|y a"), "x  b|y a");
        assert_eq!(sorted(&["2"], "b", None, "x  b|y a"), "y a|x  b");
        assert_eq!(sorted(&["1,1"], "u", None, "b 2|a 2|a 1"), "a 2|a 1|b 2");
    }

    #[test]
    fn bytes_in_fields() {
        assert_eq!(
            sorted(&["2.2"], "", Some(b':'), "a:yb|b:xc|c:za"),
            "c:za|a:yb|b:xc"
        );
        assert_eq!(
            sorted(&["1.2,1.2"], "u", None, "xb1|ya2|zb0"),
            "ya2|xb1|zb0"
        );
        assert_eq!(sorted(&["2.1,2.1r"], "", None, "a  b|b a"), "a  b|b a");
        assert_eq!(
            sorted(&["2.1b,2.1b"], "", None, "b  b|a c|c a"),
            "c a|b  b|a c"
        );
        assert_eq!(sorted(&["1.9"], "", None, "b|a"), "a|b");
    }

    #[test]
    fn parts_of_lines_that_are_equal() {
        let all = Compared::default();
        let equal = |how: Compared, a: &str, b: &str| how.are_equal(a.as_bytes(), b.as_bytes());
        assert!(equal(all, "a", "a") && !equal(all, "a", "A") && !equal(all, "a", "ab"));
        assert!(equal(Compared { fold: true, ..all }, "aB", "Ab"));
        assert!(equal(Compared { fields: 1, ..all }, "a  x", " b  x"));
        assert!(!equal(Compared { fields: 1, ..all }, "a  x", "b x"));
        assert!(equal(Compared { fields: 9, ..all }, "a x", "b"));
        assert!(equal(Compared { bytes: 1, ..all }, "ax", "bx"));
        assert!(equal(Compared { bytes: 9, ..all }, "ax", ""));
        assert!(equal(
            Compared {
                most: Some(2),
                ..all
            },
            "abc",
            "abd"
        ));
    }

    #[test]
    fn large_and_small_letters() {
        assert_eq!(sorted(&[], "f", None, "b|A|a|B|_"), "A|a|B|b|_");
        assert_eq!(sorted(&["2f"], "", None, "1 b|2 A|3 a"), "2 A|3 a|1 b");
    }

    #[test]
    fn fields_that_are_not_there_are_empty() {
        assert_eq!(sorted(&["3"], "", None, "b|a x y"), "b|a x y");
        assert_eq!(sorted(&["2"], "", Some(b':'), "b:x|c:|a"), "a|c:|b:x");
        assert_eq!(sorted(&["3,1"], "", None, "b b b|a a a"), "a a a|b b b");
    }

    #[test]
    fn what_is_no_number_is_zero() {
        assert_eq!(sorted(&[], "nu", None, "1|x||-0|0|-1"), "-1|x||-0|0|1");
        let long = "100000000000000000000000000000|99999999999999999999999999999|3";
        assert!(sorted(&[], "n", None, long).starts_with("3|9"));
    }

    #[test]
    fn what_is_no_key() {
        for text in [
            "",
            "0",
            "x",
            "1x",
            "1,",
            "1,0",
            ",1",
            "1.0",
            "1.",
            "1.x",
            "99999999999999999999",
        ] {
            assert_eq!(Key::parse(text.as_bytes()), None, "{text}");
        }
    }
}
