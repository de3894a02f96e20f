//! What `printf` and the shell's `echo` print.
//!
//! `printf` (POSIX, XCU): the format is used again while arguments are left; missing ones are empty
//! or 0. Of floating point there is `%f` alone.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Longest field that a width or precision can ask for.
const WIDEST: usize = 1 << 20;

/// What is printed, and what was wrong with the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: Vec<u8>,
    /// Messages.
    pub errors: Vec<String>,
}

/// `echo [-n] ARGUMENT...` as in dash: backslashes are escapes, as POSIX's XSI option wants it.
pub fn echo(arguments: &[Vec<u8>]) -> Printed {
    let (line_break, words) = match arguments {
        [first, rest @ ..] if first == b"-n" => (&b""[..], rest),
        all => (&b"\n"[..], all),
    };
    let mut printed = Printed::default();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            printed.text.push(b' ');
        }
        if escaped_text(word, &mut printed.text) {
            return printed;
        }
    }
    printed.text.extend_from_slice(line_break);
    printed
}

/// Adds a text whose escapes are as in `echo` and `%b`; whether `\c` ended all output.
fn escaped_text(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match rest.first() {
            Some(b'c') => return true,
            Some(b'0') => rest = octal(&rest[1..], 3, out),
            _ => rest = escape(rest, out),
        }
    }
    false
}

/// Adds what stands for the escape whose backslash was just read; what follows it.
fn escape<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((&letter, behind)) = rest.split_first() else {
        out.push(b'\\');
        return rest;
    };
    out.push(match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' => b'\\',
        _ => {
            out.push(b'\\');
            return rest;
        }
    });
    behind
}

/// Adds the byte that at most `most` octal digits stand for; what follows them.
fn octal<'a>(rest: &'a [u8], most: usize, out: &mut Vec<u8>) -> &'a [u8] {
    let digits = rest.iter().take(most);
    let digits = digits.take_while(|it| matches!(it, b'0'..=b'7')).count();
    let value = rest[..digits]
        .iter()
        .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
    out.push(value as u8);
    &rest[digits..]
}

/// `printf FORMAT ARGUMENT...`
pub fn printf(format: &[u8], arguments: &[Vec<u8>]) -> Printed {
    let mut printer = Printer {
        arguments,
        printed: Printed::default(),
        took: false,
    };
    loop {
        printer.took = false;
        let goes_on = printer.once(format);
        if !goes_on || printer.arguments.is_empty() || !printer.took {
            return printer.printed;
        }
    }
}

/// One `%...` of a format.
#[derive(Default)]
struct Directive {
    left: bool,
    plus: bool,
    blank: bool,
    zeros: bool,
    alternative: bool,
    width: usize,
    precision: Option<usize>,
}

struct Printer<'a> {
    arguments: &'a [Vec<u8>],
    printed: Printed,
    /// An argument was asked for, or would have been.
    took: bool,
}

impl<'a> Printer<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        self.took = true;
        let (first, rest) = self.arguments.split_first()?;
        self.arguments = rest;
        Some(first)
    }
}

impl Printer<'_> {
    /// Goes through the format once; `false` if nothing more is to be printed.
    fn once(&mut self, format: &[u8]) -> bool {
        let mut rest = format;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match byte {
                b'\\' => match rest.first() {
                    Some(b'0'..=b'7') => rest = octal(rest, 3, &mut self.printed.text),
                    Some(b'"' | b'\'') => {
                        self.printed.text.push(rest[0]);
                        rest = &rest[1..];
                    }
                    _ => rest = escape(rest, &mut self.printed.text),
                },
                b'%' if rest.first() == Some(&b'%') => {
                    self.printed.text.push(b'%');
                    rest = &rest[1..];
                }
                b'%' => {
                    let (directive, behind) = self.directive(rest);
                    let Some((&letter, behind)) = behind.split_first() else {
                        self.error("missing format character".to_string());
                        return false;
                    };
                    rest = behind;
                    if !self.convert(&directive, letter) {
                        return false;
                    }
                }
                _ => self.printed.text.push(byte),
            }
        }
        true
    }

    fn error(&mut self, text: String) {
        self.printed.errors.push(text);
    }

    fn directive<'f>(&mut self, format: &'f [u8]) -> (Directive, &'f [u8]) {
        let mut directive = Directive::default();
        let mut rest = format;
        while let Some((byte, behind)) = rest.split_first() {
            match byte {
                b'-' => directive.left = true,
                b'+' => directive.plus = true,
                b' ' => directive.blank = true,
                b'0' => directive.zeros = true,
                b'#' => directive.alternative = true,
                _ => break,
            }
            rest = behind;
        }
        let (width, behind) = self.size(rest);
        rest = behind;
        directive.left |= width < 0;
        directive.width = width.unsigned_abs() as usize;
        if let [b'.', behind @ ..] = rest {
            let (precision, behind) = self.size(behind);
            rest = behind;
            directive.precision = usize::try_from(precision).ok();
        }
        while let [b'l' | b'h' | b'q' | b'j' | b'z' | b't' | b'L', behind @ ..] = rest {
            rest = behind;
        }
        (directive, rest)
    }

    /// A width or precision: a number, or `*` for an argument.
    fn size<'f>(&mut self, format: &'f [u8]) -> (i64, &'f [u8]) {
        let limit = WIDEST as i64;
        if let [b'*', rest @ ..] = format {
            let value = self.next().map_or(0, |argument| self.integer(argument));
            return ((value as i64).clamp(-limit, limit), rest);
        }
        let digits = format.iter().take_while(|it| it.is_ascii_digit()).count();
        let value = format[..digits].iter().fold(0i64, |value, digit| {
            (value * 10 + i64::from(digit - b'0')).min(limit)
        });
        (value, &format[digits..])
    }

    /// Prints one argument; `false` if nothing more is to be printed.
    fn convert(&mut self, directive: &Directive, letter: u8) -> bool {
        match letter {
            b's' => {
                let text = self.next().unwrap_or_default();
                let most = directive.precision.unwrap_or(usize::MAX);
                self.padded(directive, &text[..text.len().min(most)]);
            }
            b'b' => {
                let mut text = Vec::new();
                let ended = escaped_text(self.next().unwrap_or_default(), &mut text);
                let most = directive.precision.unwrap_or(usize::MAX);
                text.truncate(most);
                self.padded(directive, &text);
                return !ended;
            }
            b'c' => {
                let text = self.next().unwrap_or_default();
                self.padded(directive, &text[..text.len().min(1)]);
            }
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => {
                let value = self.next().map_or(0, |argument| self.integer(argument));
                let (sign, digits) = digits(value, letter, directive);
                self.number(directive, &sign, digits, directive.precision.is_none());
            }
            b'f' | b'F' => {
                let value = self.next().map_or(0.0, |argument| self.fraction(argument));
                let places = directive.precision.unwrap_or(6);
                let sign = sign(value.is_sign_negative(), directive);
                self.number(
                    directive,
                    &sign,
                    fixed(value.abs(), places),
                    value.is_finite(),
                );
            }
            _ => {
                self.error(format!("%{}: invalid directive", char::from(letter)));
                return false;
            }
        }
        true
    }

    fn padded(&mut self, directive: &Directive, text: &[u8]) {
        let gap = directive.width.saturating_sub(text.len());
        let out = &mut self.printed.text;
        if directive.left {
            out.extend_from_slice(text);
        }
        out.extend(core::iter::repeat_n(b' ', gap));
        if !directive.left {
            out.extend_from_slice(text);
        }
    }

    fn number(&mut self, directive: &Directive, sign: &str, digits: String, zeros: bool) {
        let mut text = Vec::from(sign.as_bytes());
        if directive.zeros && !directive.left && zeros {
            let gap = directive.width.saturating_sub(sign.len() + digits.len());
            text.extend(core::iter::repeat_n(b'0', gap));
        }
        text.extend_from_slice(digits.as_bytes());
        self.padded(directive, &text);
    }

    /// A number as in C, or a character behind a quote. What cannot be read is an error and counts
    /// as far as it can be.
    fn integer(&mut self, argument: &[u8]) -> i128 {
        if let [b'\'' | b'"', rest @ ..] = argument {
            let text = String::from_utf8_lossy(rest);
            return text.chars().next().map_or(0, |first| first as u32).into();
        }
        let text = argument.trim_ascii_start();
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (base, digits) = match rest {
            [b'0', b'x' | b'X', rest @ ..] => (16, rest),
            [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
            rest => (10, rest),
        };
        let mut value: i128 = 0;
        let mut read = 0;
        for &byte in digits {
            let Some(digit) = char::from(byte).to_digit(base) else {
                break;
            };
            value = (value * i128::from(base) + i128::from(digit)).min(i128::from(u64::MAX));
            read += 1;
        }
        let shown = String::from_utf8_lossy(argument);
        if read == 0 && !(base == 8 && read == digits.len()) {
            self.error(format!("{shown}: expected numeric value"));
        } else if read < digits.len() {
            self.error(format!("{shown}: not completely converted"));
        }
        if negative { -value } else { value }
    }

    fn fraction(&mut self, argument: &[u8]) -> f64 {
        let text = core::str::from_utf8(argument.trim_ascii()).ok();
        match text.and_then(|text| text.parse().ok()) {
            Some(value) => value,
            None => {
                let shown = String::from_utf8_lossy(argument);
                self.error(format!("{shown}: expected numeric value"));
                0.0
            }
        }
    }
}

/// So many zeros. A width that the formatting of the language takes is at most 65,535.
fn zeros(count: usize) -> String {
    core::iter::repeat_n('0', count).collect()
}

fn sign(negative: bool, directive: &Directive) -> String {
    let sign = match (negative, directive.plus, directive.blank) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    sign.to_string()
}

/// The sign and digits of an integer.
fn digits(value: i128, letter: u8, directive: &Directive) -> (String, String) {
    let signed = value.clamp(i64::MIN.into(), i64::MAX.into());
    // A negative number printed without a sign is what its 64 bits are.
    let unsigned = match value < 0 {
        true => signed as i64 as u64,
        false => value as u64,
    };
    let (sign, digits) = match letter {
        b'o' => ("".to_string(), format!("{unsigned:o}")),
        b'x' => ("".to_string(), format!("{unsigned:x}")),
        b'X' => ("".to_string(), format!("{unsigned:X}")),
        b'u' => ("".to_string(), format!("{unsigned}")),
        _ => (
            sign(value < 0, directive),
            format!("{}", signed.unsigned_abs()),
        ),
    };
    let least = directive.precision.unwrap_or(1);
    let digits = match (least, digits.as_str()) {
        (0, "0") => String::new(),
        _ => zeros(least.saturating_sub(digits.len())) + &digits,
    };
    let prefix = match (directive.alternative && unsigned != 0, letter) {
        (true, b'o') => "0",
        (true, b'x') => "0x",
        (true, b'X') => "0X",
        _ => "",
    };
    (sign + prefix, digits)
}

/// A number with so many places. A double has at most 1,074 that are not 0.
fn fixed(value: f64, places: usize) -> String {
    let shown = places.min(1100);
    let text = format!("{value:.shown$}");
    match value.is_finite() {
        true => text + &zeros(places - shown),
        false => text.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests;
