//! The text of an expression to its tree.

use super::{Class, Node, PatternError, Syntax, add, fold, letter, single};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How deep groups may nest.
const MOST_NESTING: usize = 20;

/// Parses a basic or extended expression.
///
/// # Errors
/// Why it is not one.
pub(super) fn parse(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Node, PatternError> {
    let mut parser = Parser {
        rest: text,
        syntax,
        ignore_case,
        depth: 0,
    };
    parser.whole()
}

struct Parser<'a> {
    rest: &'a [u8],
    syntax: Syntax,
    ignore_case: bool,
    depth: usize,
}

/// What stands next in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Open,
    Close,
    Or,
    Star,
    Plus,
    Question,
    Brace,
    Dot,
    Bracket,
    Caret,
    Dollar,
    Escaped(u8),
    Byte(u8),
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Node, PatternError> {
        let node = self.either()?;
        match self.rest.is_empty() {
            true => Ok(node),
            false => Err(PatternError::Group),
        }
    }

    /// The next sign and its length, without taking it.
    fn peek(&self) -> Result<Option<(Sign, usize)>, PatternError> {
        let extended = self.syntax == Syntax::Extended;
        let Some(&first) = self.rest.first() else {
            return Ok(None);
        };
        let special = |byte| match byte {
            b'(' => Some(Sign::Open),
            b')' => Some(Sign::Close),
            b'|' => Some(Sign::Or),
            b'+' => Some(Sign::Plus),
            b'?' => Some(Sign::Question),
            b'{' => Some(Sign::Brace),
            _ => None,
        };
        Ok(Some(match first {
            b'\\' => {
                let second = *self.rest.get(1).ok_or(PatternError::Backslash)?;
                let sign = if extended { None } else { special(second) };
                (sign.unwrap_or(Sign::Escaped(second)), 2)
            }
            b'.' => (Sign::Dot, 1),
            b'[' => (Sign::Bracket, 1),
            b'*' => (Sign::Star, 1),
            b'^' => (Sign::Caret, 1),
            b'$' => (Sign::Dollar, 1),
            _ if extended => (special(first).unwrap_or(Sign::Byte(first)), 1),
            _ => (Sign::Byte(first), 1),
        }))
    }

    fn either(&mut self) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > MOST_NESTING {
            return Err(PatternError::TooLarge);
        }
        let mut branches = Vec::from([self.sequence()?]);
        while let Some((Sign::Or, len)) = self.peek()? {
            self.rest = &self.rest[len..];
            branches.push(self.sequence()?);
        }
        self.depth -= 1;
        match branches.len() {
            1 => Ok(branches.remove(0)),
            _ => Ok(Node::Either(branches)),
        }
    }

    fn sequence(&mut self) -> Result<Node, PatternError> {
        let mut nodes = Vec::new();
        while let Some((sign, len)) = self.peek()? {
            let at_start = nodes.is_empty() || matches!(nodes.last(), Some(Node::Start));
            if sign == Sign::Or || (sign == Sign::Close && self.depth > 1) {
                break;
            }
            if sign == Sign::Close && self.syntax == Syntax::Basic {
                return Err(PatternError::Group);
            }
            self.rest = &self.rest[len..];
            // Where there is nothing to repeat, the signs for it are ordinary characters.
            let atom = match sign {
                Sign::Star if at_start => Node::Class(single(b'*')),
                Sign::Plus | Sign::Question | Sign::Brace if at_start => {
                    Node::Class(single(self.last_byte(sign)))
                }
                _ => self.atom(sign, nodes.is_empty())?,
            };
            let anchor = self.syntax == Syntax::Basic && matches!(atom, Node::Start);
            nodes.push(if anchor { atom } else { self.repeats(atom)? });
        }
        match nodes.len() {
            0 => Ok(Node::Empty),
            _ => Ok(Node::Sequence(nodes)),
        }
    }

    fn last_byte(&self, sign: Sign) -> u8 {
        match sign {
            Sign::Plus => b'+',
            Sign::Question => b'?',
            _ => b'{',
        }
    }

    fn atom(&mut self, sign: Sign, at_start: bool) -> Result<Node, PatternError> {
        let basic = self.syntax == Syntax::Basic;
        Ok(match sign {
            Sign::Open => {
                let inner = self.either()?;
                match self.peek()? {
                    Some((Sign::Close, len)) => self.rest = &self.rest[len..],
                    _ => return Err(PatternError::Group),
                }
                inner
            }
            Sign::Dot => Node::Class([u64::MAX; 4]),
            Sign::Bracket => Node::Class(self.bracket()?),
            Sign::Caret if !basic || at_start => Node::Start,
            Sign::Dollar if !basic || self.at_end_of_branch() => Node::End,
            Sign::Caret => Node::Class(single(b'^')),
            Sign::Dollar => Node::Class(single(b'$')),
            Sign::Star => Node::Class(single(b'*')),
            Sign::Close => Node::Class(single(b')')),
            Sign::Plus | Sign::Question | Sign::Brace | Sign::Or => {
                Node::Class(single(self.last_byte(sign)))
            }
            Sign::Escaped(byte) => escaped(byte, self.ignore_case)?,
            Sign::Byte(byte) => Node::Class(letter(byte, self.ignore_case)),
        })
    }

    fn at_end_of_branch(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(b"\\)") || self.rest.starts_with(b"\\|")
    }

    /// Takes `* + ? {m,n}` behind an atom.
    fn repeats(&mut self, mut node: Node) -> Result<Node, PatternError> {
        let mut layers = 0;
        while let Some((sign, len)) = self.peek()? {
            let (least, most) = match sign {
                Sign::Star => (0, None),
                Sign::Plus => (1, None),
                Sign::Question => (0, Some(1)),
                Sign::Brace => {
                    self.rest = &self.rest[len..];
                    let counts = self.counts()?;
                    node = Node::Repeat(Box::new(node), counts.0, counts.1);
                    layers += 1;
                    if layers > MOST_NESTING {
                        return Err(PatternError::TooLarge);
                    }
                    continue;
                }
                _ => break,
            };
            self.rest = &self.rest[len..];
            // `x**` is `x*`, and a run of signs must not nest without end.
            node = match node {
                Node::Repeat(inner, low, None) if most.is_none() => {
                    Node::Repeat(inner, low.min(least), None)
                }
                node => Node::Repeat(Box::new(node), least, most),
            };
            layers += 1;
            if layers > MOST_NESTING {
                return Err(PatternError::TooLarge);
            }
        }
        Ok(node)
    }

    /// Behind `{`: the counts, and the closing brace.
    fn counts(&mut self) -> Result<(u32, Option<u32>), PatternError> {
        let least = self.number();
        let mut most = least;
        if let [b',', rest @ ..] = self.rest {
            self.rest = rest;
            most = self.number();
        } else if least.is_none() {
            return Err(PatternError::Count);
        }
        let close: &[u8] = if self.syntax == Syntax::Basic {
            b"\\}"
        } else {
            b"}"
        };
        self.rest = self.rest.strip_prefix(close).ok_or(PatternError::Count)?;
        let least = least.unwrap_or(0);
        match least > 1000 || most.is_some_and(|most| most < least || most > 1000) {
            true => Err(PatternError::Count),
            false => Ok((least, most)),
        }
    }

    fn number(&mut self) -> Option<u32> {
        let digits = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return None;
        }
        Some(
            core::str::from_utf8(number)
                .ok()?
                .parse()
                .unwrap_or(u32::MAX),
        )
    }

    /// Behind `[`: the class up to `]`.
    fn bracket(&mut self) -> Result<Class, PatternError> {
        let negated = self.rest.first() == Some(&b'^');
        self.rest = &self.rest[usize::from(negated)..];
        let mut class = [0; 4];
        let mut first = true;
        loop {
            match *self.rest {
                [] => return Err(PatternError::Bracket),
                [b']', ..] if !first => break,
                [b'[', b':', ..] => self.named(&mut class)?,
                [from, b'-', to, ..] if to != b']' => {
                    (from..=to).for_each(|byte| add(&mut class, byte));
                    self.rest = &self.rest[3..];
                }
                [byte, ..] => {
                    add(&mut class, byte);
                    self.rest = &self.rest[1..];
                }
            }
            first = false;
        }
        self.rest = &self.rest[1..];
        if self.ignore_case {
            fold(&mut class);
        }
        Ok(if negated {
            class.map(|bits| !bits)
        } else {
            class
        })
    }

    /// `[:alpha:]` and its like.
    fn named(&mut self, class: &mut Class) -> Result<(), PatternError> {
        let inside = &self.rest[2..];
        let end = inside
            .windows(2)
            .position(|pair| pair == b":]")
            .ok_or(PatternError::Bracket)?;
        let member: fn(&u8) -> bool = match &inside[..end] {
            b"alpha" => u8::is_ascii_alphabetic,
            b"digit" => u8::is_ascii_digit,
            b"alnum" => u8::is_ascii_alphanumeric,
            b"upper" => u8::is_ascii_uppercase,
            b"lower" => u8::is_ascii_lowercase,
            b"space" => |&byte| byte.is_ascii_whitespace() || byte == 0x0b,
            b"blank" => |&byte| byte == b' ' || byte == b'\t',
            b"punct" => u8::is_ascii_punctuation,
            b"xdigit" => u8::is_ascii_hexdigit,
            b"cntrl" => u8::is_ascii_control,
            b"graph" => u8::is_ascii_graphic,
            b"print" => |&byte| byte.is_ascii_graphic() || byte == b' ',
            _ => return Err(PatternError::Bracket),
        };
        (0..=255).filter(member).for_each(|byte| add(class, byte));
        self.rest = &inside[end + 2..];
        Ok(())
    }
}

/// What a backslash in front of `byte` means.
fn escaped(byte: u8, ignore_case: bool) -> Result<Node, PatternError> {
    let mut word = [0; 4];
    let in_word = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (0..=255)
        .filter(in_word)
        .for_each(|byte| add(&mut word, byte));
    let mut space = [0; 4];
    b" \t\n\x0b\x0c\r"
        .iter()
        .for_each(|&byte| add(&mut space, byte));
    Ok(match byte {
        b'1'..=b'9' => return Err(PatternError::BackReference),
        b'w' => Node::Class(word),
        b'W' => Node::Class(word.map(|bits| !bits)),
        b's' => Node::Class(space),
        b'S' => Node::Class(space.map(|bits| !bits)),
        b'b' => Node::Boundary(true),
        b'B' => Node::Boundary(false),
        b'<' => Node::WordStart,
        b'>' => Node::WordEnd,
        _ => Node::Class(letter(byte, ignore_case)),
    })
}
