//! The builtin `test` (also written `[ ... ]`).

use crate::builtin::number;
use crate::launch::lossy;
use crate::run::Shell;
use crate::system::{FileTest, System};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

type Answer = Result<bool, (i32, String)>;

impl<S: System> Shell<S> {
    /// Whether the condition that `words` state holds. Like POSIX, decides by the number of words.
    pub(crate) fn test(&mut self, words: &[Vec<u8>]) -> Answer {
        match words {
            [] => Ok(false),
            [text] => Ok(!text.is_empty()),
            [not, rest @ ..] if not == b"!" && rest.len() <= 3 => self.test(rest).map(|it| !it),
            [operator, operand] => self.unary(operator, operand),
            [left, operator, right] => binary(left, operator, right),
            _ => Err((2, "too many arguments".to_string())),
        }
    }

    fn unary(&mut self, operator: &[u8], operand: &[u8]) -> Answer {
        let question = match operator {
            b"-n" => return Ok(!operand.is_empty()),
            b"-z" => return Ok(operand.is_empty()),
            b"-e" => FileTest::Exists,
            b"-f" => FileTest::Regular,
            b"-d" => FileTest::Directory,
            b"-s" => FileTest::NotEmpty,
            b"-L" | b"-h" => FileTest::Symlink,
            _ => return Err((2, alloc::format!("{}: unknown operator", lossy(operator)))),
        };
        Ok(self.system.test(operand, question))
    }
}

fn binary(left: &[u8], operator: &[u8], right: &[u8]) -> Answer {
    let compare: fn(&i64, &i64) -> bool = match operator {
        b"=" | b"==" => return Ok(left == right),
        b"!=" => return Ok(left != right),
        b"-eq" => i64::eq,
        b"-ne" => i64::ne,
        b"-lt" => i64::lt,
        b"-le" => i64::le,
        b"-gt" => i64::gt,
        b"-ge" => i64::ge,
        _ => return Err((2, alloc::format!("{}: unknown operator", lossy(operator)))),
    };
    let parsed = |text: &[u8]| {
        number(text).ok_or_else(|| (2, alloc::format!("{}: a number is needed", lossy(text))))
    };
    Ok(compare(&parsed(left)?, &parsed(right)?))
}
