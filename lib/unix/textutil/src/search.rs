//! The expressions of `find`: read from its arguments, and asked about one file after the other.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Most nested parentheses and negations.
const DEEPEST: usize = 40;

/// What is asked about a file, or done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `-name PATTERN`, `-iname`: its name.
    Name {
        /// What it is to match.
        pattern: Vec<u8>,
        /// Large and small letters are the same.
        any_case: bool,
    },
    /// `-path PATTERN`: the whole path.
    Path(Vec<u8>),
    /// `-type f|d|l|b|c|p|s`: one of these letters.
    Kind(Vec<u8>),
    /// `-size [+-]N[ckMG]`: its length in units of so many bytes, rounded up.
    Size(Ordering, u64, u64),
    /// `-newer FILE`: changed later than that.
    Newer(Vec<u8>),
    /// `-empty`: a file or directory with nothing in it.
    Empty,
    /// `-print`; `-print0`, with a zero byte behind.
    Print(u8),
    /// `-delete`
    Delete,
    /// `-prune`: what is in it is left out.
    Prune,
    /// `-exec COMMAND ;`, in which `{}` is the path; with `+` at once for many.
    Run {
        /// The command and its arguments.
        command: Vec<Vec<u8>>,
        /// The number of this one, if it is to be run for many.
        together: Option<usize>,
    },
    /// `-true`, `-false`
    Always(bool),
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A single question.
    Test(Test),
    /// `! EXPRESSION`
    Not(Box<Expression>),
    /// All of these; what stands behind one that does not hold is not asked.
    All(Vec<Expression>),
    /// `-o`: any of these; what stands behind one that holds is not asked.
    Any(Vec<Expression>),
}

impl Expression {
    /// Whether it holds; `ask` answers each question.
    ///
    /// # Errors
    /// The first of `ask`.
    pub fn holds<E>(&self, ask: &mut impl FnMut(&Test) -> Result<bool, E>) -> Result<bool, E> {
        match self {
            Expression::Test(test) => ask(test),
            Expression::Not(inner) => Ok(!inner.holds(ask)?),
            Expression::All(parts) => Ok(!first(parts, false, ask)?),
            Expression::Any(parts) => first(parts, true, ask),
        }
    }
}

/// Whether one of them holds, or does not, as `wanted`; what stands behind it is not asked.
fn first<E>(
    parts: &[Expression],
    wanted: bool,
    ask: &mut impl FnMut(&Test) -> Result<bool, E>,
) -> Result<bool, E> {
    for part in parts {
        if part.holds(ask)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All that the arguments say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Where to begin.
    pub paths: Vec<Vec<u8>>,
    /// What to find; it prints, if it does nothing else.
    pub wanted: Expression,
    /// How deep to go, at least and at most.
    pub depth: (usize, usize),
    /// What is in a directory comes before it.
    pub inside_first: bool,
    /// Commands that are run for many.
    pub together: Vec<Vec<Vec<u8>>>,
}

/// An argument that makes no sense where it stands, or lacks what belongs behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonsense(pub Vec<u8>);

impl Search {
    /// Reads the arguments.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn parse(arguments: &[Vec<u8>]) -> Result<Self, Nonsense> {
        let is_path = |it: &Vec<u8>| !(it.starts_with(b"-") || it == b"!" || it == b"(");
        let count = arguments.iter().take_while(|it| is_path(it)).count();
        let (paths, rest) = arguments.split_at(count);
        let mut reader = Reader {
            rest,
            depth: (0, usize::MAX),
            inside_first: false,
            acts: false,
            together: Vec::new(),
        };
        let mut wanted = match rest {
            [] => Expression::Test(Test::Always(true)),
            _ => reader.either(0)?,
        };
        if let Some(left) = reader.rest.first() {
            return Err(Nonsense(left.clone()));
        }
        if !reader.acts {
            let print = Expression::Test(Test::Print(b'\n'));
            wanted = Expression::All(Vec::from([wanted, print]));
        }
        Ok(Search {
            paths: match paths {
                [] => Vec::from([b".".to_vec()]),
                paths => paths.to_vec(),
            },
            wanted,
            depth: reader.depth,
            inside_first: reader.inside_first,
            together: reader.together,
        })
    }
}

struct Reader<'a> {
    rest: &'a [Vec<u8>],
    depth: (usize, usize),
    inside_first: bool,
    /// Something is done with what is found, so that it need not be printed.
    acts: bool,
    together: Vec<Vec<Vec<u8>>>,
}

impl Reader<'_> {
    fn take(&mut self, words: &[&[u8]]) -> bool {
        match self.rest {
            [first, rest @ ..] if words.contains(&first.as_slice()) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn either(&mut self, depth: usize) -> Result<Expression, Nonsense> {
        let mut parts = Vec::from([self.both(depth)?]);
        while self.take(&[b"-o", b"-or"]) {
            parts.push(self.both(depth)?);
        }
        Ok(Expression::Any(parts))
    }

    fn both(&mut self, depth: usize) -> Result<Expression, Nonsense> {
        let mut parts = Vec::from([self.term(depth)?]);
        loop {
            let joined = self.take(&[b"-a", b"-and"]);
            let ends = match self.rest.first() {
                None => true,
                Some(next) => [&b"-o"[..], b"-or", b")"].contains(&next.as_slice()),
            };
            if ends && !joined {
                return Ok(Expression::All(parts));
            }
            parts.push(self.term(depth)?);
        }
    }

    fn term(&mut self, depth: usize) -> Result<Expression, Nonsense> {
        let (word, rest) = match self.rest {
            [word, rest @ ..] if depth < DEEPEST => (word, rest),
            [word, ..] => return Err(Nonsense(word.clone())),
            [] => return Err(Nonsense(Vec::new())),
        };
        self.rest = rest;
        match word.as_slice() {
            b"!" | b"-not" => Ok(Expression::Not(Box::new(self.term(depth + 1)?))),
            b"(" => {
                let inner = self.either(depth + 1)?;
                match self.take(&[b")"]) {
                    true => Ok(inner),
                    false => Err(Nonsense(word.clone())),
                }
            }
            word => match self.test(word) {
                Some(test) => Ok(Expression::Test(test)),
                None => Err(Nonsense(word.to_vec())),
            },
        }
    }

    fn test(&mut self, word: &[u8]) -> Option<Test> {
        Some(match word {
            b"-print" | b"-print0" => {
                self.acts = true;
                Test::Print(if word == b"-print" { b'\n' } else { 0 })
            }
            b"-delete" => {
                (self.acts, self.inside_first) = (true, true);
                Test::Delete
            }
            b"-depth" => {
                self.inside_first = true;
                Test::Always(true)
            }
            b"-exec" => self.command()?,
            b"-prune" => Test::Prune,
            b"-empty" => Test::Empty,
            b"-true" | b"-false" => Test::Always(word == b"-true"),
            _ => {
                let (value, rest) = self.rest.split_first()?;
                self.rest = rest;
                return self.valued(word, value);
            }
        })
    }

    fn valued(&mut self, word: &[u8], value: &[u8]) -> Option<Test> {
        let number = |text: &[u8]| core::str::from_utf8(text).ok()?.parse::<u32>().ok();
        Some(match word {
            b"-name" | b"-iname" => Test::Name {
                pattern: value.to_vec(),
                any_case: word == b"-iname",
            },
            b"-path" => Test::Path(value.to_vec()),
            b"-newer" => Test::Newer(value.to_vec()),
            b"-type" => Test::Kind(kinds(value)?),
            b"-size" => size(value)?,
            b"-mindepth" => {
                self.depth.0 = number(value)? as usize;
                Test::Always(true)
            }
            b"-maxdepth" => {
                self.depth.1 = number(value)? as usize;
                Test::Always(true)
            }
            _ => return None,
        })
    }

    /// What stands between `-exec` and `;` or `{} +`.
    fn command(&mut self) -> Option<Test> {
        self.acts = true;
        let ends_many = |at: usize| at > 1 && self.rest[at] == b"+" && self.rest[at - 1] == b"{}";
        let end = (0..self.rest.len()).find(|&at| self.rest[at] == b";" || ends_many(at))?;
        let many = self.rest[end] == b"+";
        let command = self.rest[..end - usize::from(many)].to_vec();
        self.rest = &self.rest[end + 1..];
        let together = many.then_some(self.together.len());
        self.together.extend(many.then(|| command.clone()));
        (!command.is_empty()).then_some(Test::Run { command, together })
    }
}

/// `f`, or `f,d`.
fn kinds(text: &[u8]) -> Option<Vec<u8>> {
    let letters = text.split(|&byte| byte == b',');
    letters
        .map(|letter| match letter {
            [letter @ (b'f' | b'd' | b'l' | b'b' | b'c' | b'p' | b's')] => Some(*letter),
            _ => None,
        })
        .collect()
}

fn size(text: &[u8]) -> Option<Test> {
    let (order, text) = match text {
        [b'+', rest @ ..] => (Ordering::Greater, rest),
        [b'-', rest @ ..] => (Ordering::Less, rest),
        all => (Ordering::Equal, all),
    };
    let (digits, unit) = match text {
        [digits @ .., b'c'] => (digits, 1),
        [digits @ .., b'w'] => (digits, 2),
        [digits @ .., b'b'] => (digits, 512),
        [digits @ .., b'k'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1 << 30),
        digits => (digits, 512),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Test::Size(order, number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|it| it.as_bytes().to_vec()).collect()
    }

    /// The questions that are asked, as far as needed, where those of `true_ones` hold.
    fn asked(line: &str, true_ones: &[&str]) -> String {
        let search = Search::parse(&words(line)).unwrap();
        let mut asked = Vec::new();
        let mut ask = |test: &Test| -> Result<bool, ()> {
            let (text, holds) = match test {
                Test::Name { pattern, .. } => {
                    let name = String::from_utf8(pattern.clone()).unwrap();
                    let holds = true_ones.contains(&name.as_str());
                    (name, holds)
                }
                Test::Print(_) => ("print".to_string(), true),
                Test::Always(holds) => return Ok(*holds),
                other => (alloc::format!("{other:?}"), true),
            };
            asked.push(text);
            Ok(holds)
        };
        search.wanted.holds(&mut ask).unwrap();
        asked.join(" ")
    }

    #[test]
    fn what_joins_questions() {
        assert_eq!(asked("d", &[]), "print");
        assert_eq!(asked("-name a -name b", &["a"]), "a b");
        assert_eq!(asked("-name a -a -name b", &["a", "b"]), "a b print");
        assert_eq!(asked("-name a -o -name b", &["a"]), "a print");
        assert_eq!(asked("-name a -o -name b -print", &["a"]), "a");
        assert_eq!(asked("! -name a", &[]), "a print");
        assert_eq!(asked("-not ( -name a -o -name b )", &["b"]), "a b");
        assert_eq!(asked("-name a -prune -o -print", &["a"]), "a Prune");
        assert_eq!(asked("-name a -prune -o -print", &[]), "a print");
        assert_eq!(asked("-print -name a -print", &["a"]), "print a print");
    }

    #[test]
    fn paths_and_options() {
        let search = Search::parse(&words("a b -mindepth 1 -maxdepth 3 -delete")).unwrap();
        assert_eq!(search.paths, words("a b"));
        assert_eq!((search.depth, search.inside_first), ((1, 3), true));
        let search = Search::parse(&words("! -empty")).unwrap();
        assert_eq!(search.paths, words("."));
        let search = Search::parse(&words("-exec echo {} + -exec rm {} ;")).unwrap();
        assert_eq!(search.together, [words("echo")]);
        assert_eq!(size(b"-3k"), Some(Test::Size(Ordering::Less, 3, 1024)));
        assert_eq!(size(b"7"), Some(Test::Size(Ordering::Equal, 7, 512)));
        assert_eq!(kinds(b"f,l"), Some(b"fl".to_vec()));
    }

    #[test]
    fn what_makes_no_sense() {
        for (line, what) in [
            ("-foo", "-foo"),
            ("-name", "-name"),
            ("-type x", "-type"),
            ("-type f,", "-type"),
            ("-size x", "-size"),
            ("-size +-1", "-size"),
            ("-maxdepth -1", "-maxdepth"),
            ("( -name a", "("),
            ("-name a )", ")"),
            ("-name a b", "b"),
            ("-exec echo", "-exec"),
            ("-exec ;", "-exec"),
            ("-name a -o", ""),
            ("!", ""),
        ] {
            assert_eq!(
                Search::parse(&words(line)),
                Err(Nonsense(what.as_bytes().to_vec())),
                "{line}"
            );
        }
        let deep = "! ".repeat(100_000) + "-print";
        assert!(Search::parse(&words(&deep)).is_err());
        let long = "-print ".repeat(5_000) + "-print";
        assert!(Search::parse(&words(&long)).is_ok());
    }
}
