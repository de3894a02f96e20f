//! Translating, deleting and squeezing bytes, as `tr` does.

use alloc::vec::Vec;

/// Reads a set of bytes: single ones, ranges `a-z`, classes `[:upper:]`, and `\n`, `\t`, `\\`,
/// `\012`. `None` if a range runs backwards, a class is not known, or there is a lone backslash at
/// the end.
pub fn parse_set(text: &[u8]) -> Option<Vec<u8>> {
    let mut set = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((class, behind)) = class(rest) {
            set.extend((0..=127).filter(members(class)?));
            rest = behind;
            continue;
        }
        if let Some((repeated, count, behind)) = repetition(rest) {
            // Without a number as often as anybody could need it.
            let count = if count == 0 { 256 } else { count.min(256) };
            set.extend(core::iter::repeat_n(repeated, count));
            rest = behind;
            continue;
        }
        let (first, behind) = byte(rest)?;
        match behind {
            [b'-', end @ ..] if !end.is_empty() => {
                let (last, behind) = byte(end)?;
                if first > last {
                    return None;
                }
                set.extend(first..=last);
                rest = behind;
            }
            _ => {
                set.push(first);
                rest = behind;
            }
        }
    }
    Some(set)
}

/// `[x*N]`: a byte, how often (0: not said), and what is behind it. `[=x=]`, all that is equal to
/// x, is x once.
fn repetition(text: &[u8]) -> Option<(u8, usize, &[u8])> {
    let inner = text.strip_prefix(b"[")?;
    if let [b'=', equal, b'=', b']', rest @ ..] = inner {
        return Some((*equal, 1, rest));
    }
    let (repeated, rest) = byte(inner)?;
    let rest = rest.strip_prefix(b"*")?;
    let end = rest.iter().position(|&byte| byte == b']')?;
    let (digits, behind) = (&rest[..end], &rest[end + 1..]);
    let base = if digits.starts_with(b"0") { 8 } else { 10 };
    let value = |value: usize, digit: &u8| {
        let digit = char::from(*digit).to_digit(base)? as usize;
        Some(
            value
                .checked_mul(base as usize)?
                .checked_add(digit)?
                .min(1 << 16),
        )
    };
    let count = digits.iter().try_fold(0, value)?;
    Some((repeated, count, behind))
}

/// The name of the class that `text` starts with, and what is behind it.
fn class(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"[:")?;
    let end = inner.windows(2).position(|pair| pair == b":]")?;
    Some((&inner[..end], &inner[end + 2..]))
}

fn members(class: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match class {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b'\t'..=b'\r' | b' '),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

/// The byte that `text` starts with, perhaps behind a backslash, and what is behind it.
fn byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'\\', rest @ ..] = text else {
        return text.split_first().map(|(&byte, rest)| (byte, rest));
    };
    let is_octal = |byte: &&u8| matches!(byte, b'0'..=b'7');
    let digits = rest.iter().take(3).take_while(is_octal).count();
    if digits > 0 {
        let (number, rest) = rest.split_at(digits);
        let value = |value: u32, digit: &u8| value * 8 + u32::from(digit - b'0');
        let number = number.iter().fold(0, value);
        return u8::try_from(number).ok().map(|byte| (byte, rest));
    }
    let (&letter, rest) = rest.split_first()?;
    let byte = match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        other => other,
    };
    Some((byte, rest))
}

/// All bytes that are not in `set`, in order.
pub fn complement(set: &[u8]) -> Vec<u8> {
    (0..=255).filter(|byte| !set.contains(byte)).collect()
}

/// What happens to each byte.
#[derive(Clone, Debug)]
pub struct Translation {
    to: [u8; 256],
    deleted: [bool; 256],
    squeezed: [bool; 256],
    last: Option<u8>,
}

impl Default for Translation {
    fn default() -> Self {
        Translation {
            to: core::array::from_fn(|byte| byte as u8),
            deleted: [false; 256],
            squeezed: [false; 256],
            last: None,
        }
    }
}

impl Translation {
    /// Each byte of `from` becomes the one in its place in `to`, or the last one there. Nothing
    /// happens if `to` is empty.
    pub fn translate(&mut self, from: &[u8], to: &[u8]) {
        for (at, &byte) in from.iter().enumerate() {
            if let Some(&new) = to.get(at).or(to.last()) {
                self.to[usize::from(byte)] = new;
            }
        }
    }

    /// The bytes of `set` are left out.
    pub fn delete(&mut self, set: &[u8]) {
        set.iter()
            .for_each(|&byte| self.deleted[usize::from(byte)] = true);
    }

    /// Of equal bytes of `set` in a row, as they are after translation, one is left.
    pub fn squeeze(&mut self, set: &[u8]) {
        set.iter()
            .for_each(|&byte| self.squeezed[usize::from(byte)] = true);
    }

    /// What becomes of a further piece of text.
    pub fn apply(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len());
        for &byte in piece {
            let new = self.to[usize::from(byte)];
            let again = self.last == Some(new) && self.squeezed[usize::from(new)];
            if !self.deleted[usize::from(byte)] && !again {
                out.push(new);
                self.last = Some(new);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Vec<u8> {
        parse_set(text.as_bytes()).unwrap()
    }

    #[test]
    fn sets() {
        assert_eq!(set("a-cx\\n\\101-"), b"abcx\nA-");
        assert_eq!(set("[:digit:]_"), b"0123456789_");
        assert_eq!(set("-a[]"), b"-a[]");
        assert_eq!(set("[x*3]y"), b"xxxy");
        assert_eq!(set("[\\n*010]"), b"\n\n\n\n\n\n\n\n");
        assert_eq!(set("a[x*]").len(), 257);
        assert_eq!(set("[=a=]b"), b"ab");
        assert_eq!(set("[x*y]"), b"[x*y]");
        assert_eq!(complement(&complement(b"xa")), b"ax");
    }

    #[test]
    fn translations() {
        let mut upper = Translation::default();
        upper.translate(&set("[:lower:]"), &set("A-Z"));
        assert_eq!(upper.apply(b"Hello, 1"), b"HELLO, 1");
        let mut blanks = Translation::default();
        blanks.translate(&set("a-z"), b" ");
        blanks.squeeze(b" ");
        assert_eq!(
            [
                blanks.apply(b"abA"),
                blanks.apply(b"bb"),
                blanks.apply(b"bC")
            ]
            .concat(),
            b" A C"
        );
        let mut none = Translation::default();
        none.delete(&set("l-o"));
        assert_eq!(none.apply(b"hello"), b"he");
    }

    #[test]
    fn what_is_no_set() {
        for text in ["z-a", "[:letters:]", "a\\", "\\777", "b-\\a", "[::]"] {
            assert_eq!(parse_set(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn nothing_to_translate_to_changes_nothing() {
        let mut translation = Translation::default();
        translation.translate(b"abc", b"");
        assert_eq!(translation.apply(b"abcc\xff"), b"abcc\xff");
        assert_eq!(translation.apply(b""), b"");
        assert_eq!(parse_set(b"").unwrap(), b"");
    }
}
