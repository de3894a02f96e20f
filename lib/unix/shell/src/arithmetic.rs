//! The value of `$((expression))`: 64-bit integers, C's operators.
//!
//! By precedence climbing. What is not evaluated (the other side of `&&`, `||` and `? :`) is still
//! read, so that its errors of form are found, but changes and divisions in it have no effect.

use crate::MOST_NESTING;
use crate::word::leading_name;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Where the variables are.
pub trait Variables {
    /// The value of a variable.
    fn get(&self, name: &str) -> Option<Vec<u8>>;
    /// Sets it.
    ///
    /// # Errors
    /// It cannot be set; why.
    fn set(&mut self, name: &str, value: i64) -> Result<(), String>;
}

/// The value of an expression; an empty one is 0.
///
/// # Errors
/// What is wrong with it.
pub fn evaluate(text: &[u8], variables: &mut dyn Variables) -> Result<i64, String> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        idle: 0,
        variables,
    };
    reader.skip_blanks();
    if reader.rest().is_empty() {
        return Ok(0);
    }
    let value = reader.expression()?;
    match reader.rest() {
        [] => Ok(value),
        _ => Err(reader.unexpected()),
    }
}

/// Binary operators with how tightly they bind; the longer before their starts.
const BINARY: [(&[u8], u8); 18] = [
    (b"||", 1),
    (b"&&", 2),
    (b"<<", 8),
    (b">>", 8),
    (b"==", 6),
    (b"!=", 6),
    (b"<=", 7),
    (b">=", 7),
    (b"|", 3),
    (b"^", 4),
    (b"&", 5),
    (b"<", 7),
    (b">", 7),
    (b"+", 9),
    (b"-", 9),
    (b"*", 10),
    (b"/", 10),
    (b"%", 10),
];

const ASSIGNMENTS: [&[u8]; 11] = [
    b"<<=", b">>=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"^=", b"|=", b"=",
];

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// Above 0: what is read has no effect.
    idle: usize,
    variables: &'a mut dyn Variables,
}

type Value = Result<i64, String>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        while self.rest().first().is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, what: &[u8]) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
            self.skip_blanks();
        }
        found
    }

    fn unexpected(&self) -> String {
        let text = String::from_utf8_lossy(self.text);
        match self.rest() {
            [] => format!("arithmetic expression: unexpected end: \"{text}\""),
            rest => format!(
                "arithmetic expression: unexpected `{}`: \"{text}\"",
                String::from_utf8_lossy(rest)
            ),
        }
    }

    /// Assignments and `? :`, which bind least.
    fn expression(&mut self) -> Value {
        self.depth += 1;
        if self.depth > 8 * MOST_NESTING {
            return Err("arithmetic expression: nested too deep".to_string());
        }
        let value = match self.assignment_target() {
            Some((name, operator)) => self.assign(name, operator),
            None => self.conditional(),
        };
        self.depth -= 1;
        value
    }

    /// A name with an assignment operator behind it.
    fn assignment_target(&mut self) -> Option<(&'a str, &'static [u8])> {
        let start = self.at;
        let name = leading_name(self.rest())?;
        self.at += name.len();
        self.skip_blanks();
        let rest = self.rest();
        let found = ASSIGNMENTS.into_iter().find(|it| rest.starts_with(it));
        match found.filter(|_| !rest.starts_with(b"==")) {
            Some(operator) => {
                self.take(operator);
                Some((name, operator))
            }
            None => {
                self.at = start;
                None
            }
        }
    }

    fn assign(&mut self, name: &str, operator: &[u8]) -> Value {
        let right = self.expression()?;
        let value = match operator.split_last() {
            Some((_, [])) | None => right,
            Some((_, binary)) => {
                let left = self.variable(name)?;
                self.apply(binary, left, right)?
            }
        };
        if self.idle == 0 {
            self.variables.set(name, value)?;
        }
        Ok(value)
    }

    fn conditional(&mut self) -> Value {
        let condition = self.binary(1)?;
        if !self.take(b"?") {
            return Ok(condition);
        }
        let yes = self.unless(condition == 0, Self::expression)?;
        if !self.take(b":") {
            return Err(self.unexpected());
        }
        let no = self.unless(condition != 0, Self::expression)?;
        Ok(if condition != 0 { yes } else { no })
    }

    /// Reads something that has no effect if `idle`.
    fn unless(&mut self, idle: bool, read: impl FnOnce(&mut Self) -> Value) -> Value {
        self.idle += usize::from(idle);
        let value = read(self);
        self.idle -= usize::from(idle);
        value
    }

    fn operator(&self) -> Option<(&'static [u8], u8)> {
        let rest = self.rest();
        BINARY.into_iter().find(|(text, _)| rest.starts_with(text))
    }

    /// Operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Value {
        let mut left = self.unary()?;
        while let Some((operator, binds)) = self.operator().filter(|&(_, binds)| binds >= least) {
            self.take(operator);
            let idle = match operator {
                b"&&" => left == 0,
                b"||" => left != 0,
                _ => false,
            };
            let right = self.unless(idle, |reader| reader.binary(binds + 1))?;
            left = self.apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn apply(&self, operator: &[u8], left: i64, right: i64) -> Value {
        let truth = |holds: bool| Ok(i64::from(holds));
        match operator {
            b"||" => truth(left != 0 || right != 0),
            b"&&" => truth(left != 0 && right != 0),
            b"==" => truth(left == right),
            b"!=" => truth(left != right),
            b"<=" => truth(left <= right),
            b">=" => truth(left >= right),
            b"<" => truth(left < right),
            b">" => truth(left > right),
            b"|" => Ok(left | right),
            b"^" => Ok(left ^ right),
            b"&" => Ok(left & right),
            // As the processor does it: the count is taken modulo 64.
            b"<<" => Ok(left.wrapping_shl(right as u32)),
            b">>" => Ok(left.wrapping_shr(right as u32)),
            b"+" => Ok(left.wrapping_add(right)),
            b"-" => Ok(left.wrapping_sub(right)),
            b"*" => Ok(left.wrapping_mul(right)),
            _ if self.idle > 0 => Ok(0),
            _ if right == 0 => Err("arithmetic expression: division by zero".to_string()),
            b"/" => Ok(left.wrapping_div(right)),
            _ => Ok(left.wrapping_rem(right)),
        }
    }

    fn unary(&mut self) -> Value {
        let Some(&sign @ (b'+' | b'-' | b'!' | b'~')) = self.rest().first() else {
            return self.primary();
        };
        self.depth += 1;
        if self.depth > 8 * MOST_NESTING {
            return Err("arithmetic expression: nested too deep".to_string());
        }
        self.take(&[sign]);
        let value = self.unary()?;
        self.depth -= 1;
        Ok(match sign {
            b'-' => value.wrapping_neg(),
            b'!' => i64::from(value == 0),
            b'~' => !value,
            _ => value,
        })
    }

    fn primary(&mut self) -> Value {
        if self.take(b"(") {
            let value = self.expression()?;
            return match self.take(b")") {
                true => Ok(value),
                false => Err(self.unexpected()),
            };
        }
        if let Some(name) = leading_name(self.rest()) {
            self.take(name.as_bytes());
            return self.variable(name);
        }
        let rest = self.rest();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric());
        let length = length.count();
        let value = constant(&rest[..length]).ok_or_else(|| self.unexpected())?;
        self.take(&rest[..length]);
        Ok(value)
    }

    fn variable(&self, name: &str) -> Value {
        let value = self.variables.get(name).unwrap_or_default();
        let text = value.trim_ascii();
        let (negative, digits) = match text {
            [] => return Ok(0),
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        match constant(digits) {
            Some(value) if negative => Ok(value.wrapping_neg()),
            Some(value) => Ok(value),
            None => Err(format!("Illegal number: {}", String::from_utf8_lossy(text))),
        }
    }
}

/// A number as in C: decimal, `0x` hexadecimal, `0` octal. One that is too large becomes the
/// largest.
fn constant(text: &[u8]) -> Option<i64> {
    let (digits, base) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(base)?;
        value = value
            .saturating_mul(base.into())
            .saturating_add(digit.into());
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    struct Map(BTreeMap<String, Vec<u8>>);

    impl Variables for Map {
        fn get(&self, name: &str) -> Option<Vec<u8>> {
            self.0.get(name).cloned()
        }
        fn set(&mut self, name: &str, value: i64) -> Result<(), String> {
            self.0.insert(name.to_string(), value.to_string().into());
            Ok(())
        }
    }

    fn value(text: &str) -> Value {
        let mut map = Map(BTreeMap::new());
        map.0.insert("x".to_string(), b" 5 ".to_vec());
        map.0.insert("bad".to_string(), b"5y".to_vec());
        evaluate(text.as_bytes(), &mut map)
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("10-4-3", 3),
            ("7/2", 3),
            ("-7/2", -3),
            ("-7%3", -1),
            ("2<3", 1),
            ("2>=3", 0),
            ("1<<4|3", 19),
            ("6&3^1", 3),
            ("!0 + !5", 1),
            ("~0", -1),
            ("- -3", 3),
            ("0x1F + 010", 39),
            ("x", 5),
            ("x*x", 25),
            ("unset", 0),
            ("x=3, 0", 0),
            ("1 ? 2 : 3", 2),
            ("0 ? 2 : 0 ? 4 : 5", 5),
            ("x += 2", 7),
            ("x <<= 2", 20),
            ("y = z = 4", 4),
            ("x == 5 && x != 6", 1),
            ("0 && 1/0", 0),
            ("1 || 1/0", 1),
            ("1 ? 3 : 1/0", 3),
            ("", 0),
            ("  ", 0),
            ("9223372036854775807 + 1", i64::MIN),
            ("-9223372036854775807 - 1", i64::MIN),
            ("99999999999999999999", i64::MAX),
        ] {
            if text.contains(',') {
                continue;
            }
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_evaluated_changes_nothing() {
        let mut map = Map(BTreeMap::new());
        assert_eq!(evaluate(b"0 && (a = 1)", &mut map), Ok(0));
        assert_eq!(evaluate(b"1 ? 2 : (a = 1)", &mut map), Ok(2));
        assert!(map.0.is_empty());
    }

    #[test]
    fn faults() {
        for text in [
            "1/0", "1%0", "1+", "*", "(1", "1)", "1 2", "08", "0x", "5a", "bad", "1=2", "1 ? 2",
            "$", "1.5", "x==",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
        assert!(value(&"(".repeat(100_000)).is_err());
        assert!(value(&"-".repeat(100_000)).is_err());
        assert!(value(&"!".repeat(100_000)).is_err());
    }
}
