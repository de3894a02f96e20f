//! The builtin `test` (also written `[ ... ]`).

use crate::builtin::{Outcome, number};
use crate::launch::lossy;
use crate::run::{Flow, Shell};
use crate::system::{FileTest, System};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

type Answer = Result<bool, (i32, String)>;

/// Most nested parentheses and negations.
const DEEPEST: usize = 200;

impl<S: System> Shell<S> {
    pub(crate) fn test_builtin(&mut self, words: &[Vec<u8>]) -> Outcome {
        self.status = i32::from(!self.test(words)?);
        Ok(Flow::Next)
    }

    /// Whether the condition that `words` state holds. Like POSIX, decides by the number of words;
    /// more than four are read with `-o` binding less than `-a`.
    fn test(&mut self, words: &[Vec<u8>]) -> Answer {
        match words {
            [] => Ok(false),
            [text] => Ok(!text.is_empty()),
            [not, rest] if not == b"!" => self.test(core::slice::from_ref(rest)).map(|it| !it),
            [operator, operand] => self.unary(operator, operand),
            [left, operator, right] if is_binary(operator) => self.binary(left, operator, right),
            [not, rest @ ..] if not == b"!" && rest.len() <= 3 => self.test(rest).map(|it| !it),
            [open, text, close] if open == b"(" && close == b")" => Ok(!text.is_empty()),
            _ => {
                let mut rest = words;
                let holds = self.either(&mut rest, 0)?;
                match rest {
                    [] => Ok(holds),
                    [word, ..] => Err((2, format!("{}: unexpected operator", lossy(word)))),
                }
            }
        }
    }

    fn either(&mut self, rest: &mut &[Vec<u8>], depth: usize) -> Answer {
        let mut holds = self.both(rest, depth)?;
        while take(rest, b"-o") {
            holds |= self.both(rest, depth)?;
        }
        Ok(holds)
    }

    fn both(&mut self, rest: &mut &[Vec<u8>], depth: usize) -> Answer {
        let mut holds = self.term(rest, depth)?;
        while take(rest, b"-a") {
            holds &= self.term(rest, depth)?;
        }
        Ok(holds)
    }

    fn term(&mut self, rest: &mut &[Vec<u8>], depth: usize) -> Answer {
        if depth > DEEPEST {
            return Err((2, "nested too deep".to_string()));
        }
        if let [left, operator, right, others @ ..] = rest
            && is_binary(operator)
        {
            *rest = others;
            return self.binary(left, operator, right);
        }
        if take(rest, b"!") {
            return self.term(rest, depth + 1).map(|it| !it);
        }
        if take(rest, b"(") {
            let holds = self.either(rest, depth + 1)?;
            return match take(rest, b")") {
                true => Ok(holds),
                false => Err((2, "closing paren expected".to_string())),
            };
        }
        match rest {
            [operator, operand, others @ ..] if question(operator).is_some() => {
                *rest = others;
                self.unary(operator, operand)
            }
            [text, others @ ..] => {
                *rest = others;
                Ok(!text.is_empty())
            }
            [] => Err((2, "argument expected".to_string())),
        }
    }

    fn unary(&mut self, operator: &[u8], operand: &[u8]) -> Answer {
        match question(operator) {
            Some(Question::Text(empty)) => Ok(operand.is_empty() == empty),
            Some(Question::File(question)) => Ok(self.system.test(operand, question)),
            None => Err((2, format!("{}: unexpected operator", lossy(operator)))),
        }
    }

    fn binary(&mut self, left: &[u8], operator: &[u8], right: &[u8]) -> Answer {
        let compare: fn(&i64, &i64) -> bool = match operator {
            b"=" | b"==" => return Ok(left == right),
            b"!=" => return Ok(left != right),
            b"<" => return Ok(left < right),
            b">" => return Ok(left > right),
            b"-nt" | b"-ot" => {
                let (left, right) = (self.system.modified(left), self.system.modified(right));
                let newer = operator == b"-nt";
                return Ok(if newer { left > right } else { left < right });
            }
            b"-ef" => return Ok(self.system.same_file(left, right)),
            b"-eq" => i64::eq,
            b"-ne" => i64::ne,
            b"-lt" => i64::lt,
            b"-le" => i64::le,
            b"-gt" => i64::gt,
            _ => i64::ge,
        };
        let parsed = |text: &[u8]| {
            number(text).ok_or_else(|| (2, format!("Illegal number: {}", lossy(text))))
        };
        Ok(compare(&parsed(left)?, &parsed(right)?))
    }
}

/// Takes `word` off the front of `rest` if it stands there.
fn take(rest: &mut &[Vec<u8>], word: &[u8]) -> bool {
    match rest {
        [first, others @ ..] if first == word => {
            *rest = others;
            true
        }
        _ => false,
    }
}

fn is_binary(operator: &[u8]) -> bool {
    matches!(
        operator,
        b"=" | b"=="
            | b"!="
            | b"<"
            | b">"
            | b"-eq"
            | b"-ne"
            | b"-lt"
            | b"-le"
            | b"-gt"
            | b"-ge"
            | b"-nt"
            | b"-ot"
            | b"-ef"
    )
}

/// What is asked of one operand.
enum Question {
    /// Whether the text is empty (or is not).
    Text(bool),
    /// About a file.
    File(FileTest),
}

fn question(operator: &[u8]) -> Option<Question> {
    Some(Question::File(match operator {
        b"-n" => return Some(Question::Text(false)),
        b"-z" => return Some(Question::Text(true)),
        // There are no users: what is there can be read and written.
        b"-e" | b"-r" | b"-w" => FileTest::Exists,
        b"-f" => FileTest::Regular,
        b"-d" => FileTest::Directory,
        b"-s" => FileTest::NotEmpty,
        b"-L" | b"-h" => FileTest::Symlink,
        b"-x" => FileTest::Executable,
        b"-p" | b"-S" | b"-b" | b"-c" => FileTest::Other,
        b"-t" => FileTest::Terminal,
        _ => return None,
    }))
}
