//! Regular expressions for `grep`: POSIX basic and extended syntax over bytes, without back-references.
//!
//! An expression is compiled to a small program whose possible states are all followed at once, so that
//! the time is at most the length of the line times the length of the program, whatever the expression.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The most instructions that an expression may compile to: `x{1000}{1000}` is refused, not tried.
const MOST_INSTRUCTIONS: usize = 20_000;
/// How deep groups may nest.
const MOST_NESTING: usize = 20;

/// How an expression is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Groups and counts are written `\( \) \{ \}`; `\|`, `\+`, `\?` as GNU has them.
    Basic,
    /// They are written without backslashes.
    Extended,
    /// Nothing is special.
    Fixed,
}

/// Why an expression is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// `[` without `]`.
    Bracket,
    /// A group that is not closed, or closed and not opened.
    Group,
    /// `{` with something else than counts behind it, or counts that are too large or the wrong way round.
    Count,
    /// A backslash at the end.
    Backslash,
    /// A back-reference.
    BackReference,
    /// It is too long or nests too deep.
    TooLarge,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternError::Bracket => "unmatched [ in the pattern",
            PatternError::Group => "unmatched ( or ) in the pattern",
            PatternError::Count => "bad count in { } in the pattern",
            PatternError::Backslash => "the pattern ends in a backslash",
            PatternError::BackReference => "back-references are not supported",
            PatternError::TooLarge => "the pattern is too large",
        })
    }
}

/// The bytes that one place of a line may have.
type Class = [u64; 4];

fn has(class: &Class, byte: u8) -> bool {
    class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
}

fn add(class: &mut Class, byte: u8) {
    class[usize::from(byte >> 6)] |= 1 << (byte & 63);
}

fn single(byte: u8) -> Class {
    let mut class = [0; 4];
    add(&mut class, byte);
    class
}

#[derive(Clone, Debug)]
enum Node {
    Empty,
    Class(Class),
    Start,
    End,
    /// `\b` (true) or `\B`.
    Boundary(bool),
    WordStart,
    WordEnd,
    NoWordBefore,
    NoWordAfter,
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat(Box<Node>, u32, Option<u32>),
}

#[derive(Clone, Debug)]
enum Instruction {
    Class(Class),
    Start,
    End,
    Boundary(bool),
    WordStart,
    WordEnd,
    NoWordBefore,
    NoWordAfter,
    Split(usize, usize),
    Jump(usize),
    Match,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    program: Vec<Instruction>,
    ignore_case: bool,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// Why it is not an expression.
    pub fn new(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Self, PatternError> {
        let node = Self::parse(text, syntax)?;
        Self::compile(&node, ignore_case)
    }

    /// Compiles `text` so that it matches only where no letter, digit or `_` stands beside the match.
    ///
    /// # Errors
    /// Why it is not an expression.
    pub fn words(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Self, PatternError> {
        let node = Self::parse(text, syntax)?;
        let node = Node::Sequence(Vec::from([Node::NoWordBefore, node, Node::NoWordAfter]));
        Self::compile(&node, ignore_case)
    }

    fn parse(text: &[u8], syntax: Syntax) -> Result<Node, PatternError> {
        let mut parser = Parser {
            rest: text,
            syntax,
            depth: 0,
        };
        match syntax {
            Syntax::Fixed => Ok(Node::Sequence(
                text.iter().map(|&b| Node::Class(single(b))).collect(),
            )),
            _ => parser.whole(),
        }
    }

    fn compile(node: &Node, ignore_case: bool) -> Result<Self, PatternError> {
        let mut program = Vec::new();
        emit(node, &mut program)?;
        program.push(Instruction::Match);
        if ignore_case {
            program.iter_mut().for_each(fold);
        }
        Ok(Pattern {
            program,
            ignore_case,
        })
    }

    /// Where in `line` the leftmost match is, and of those that start there the longest.
    pub fn find(&self, line: &[u8]) -> Option<core::ops::Range<usize>> {
        (0..=line.len()).find_map(|start| Some(start..self.run(line, start, true)?))
    }

    /// Whether a match is anywhere in `line`.
    pub fn is_match(&self, line: &[u8]) -> bool {
        self.run(line, 0, false).is_some()
    }

    /// Whether the match can be the whole of `line`.
    pub fn is_whole_match(&self, line: &[u8]) -> bool {
        self.run(line, 0, true) == Some(line.len())
    }

    /// Follows all states from `start`; the end of the longest match. If not `anchored`, matches that start
    /// later are followed as well, and the first end found is given.
    fn run(&self, line: &[u8], start: usize, anchored: bool) -> Option<usize> {
        let mut now = States::new(self.program.len());
        let mut next = States::new(self.program.len());
        let mut end = None;
        now.enter(&self.program, line, start, 0);
        for at in start..=line.len() {
            if now.matched {
                end = Some(at);
                if !anchored {
                    return end;
                }
            }
            let Some(&byte) = line.get(at) else { break };
            let byte = if self.ignore_case {
                byte.to_ascii_lowercase()
            } else {
                byte
            };
            next.clear();
            for &state in &now.list {
                if matches!(&self.program[state], Instruction::Class(class) if has(class, byte)) {
                    next.enter(&self.program, line, at + 1, state + 1);
                }
            }
            if !anchored {
                next.enter(&self.program, line, at + 1, 0);
            } else if next.list.is_empty() && !next.matched {
                break;
            }
            core::mem::swap(&mut now, &mut next);
        }
        end
    }
}

/// Folds the letters of a class to lower case, as the line's are.
fn fold(instruction: &mut Instruction) {
    if let Instruction::Class(class) = instruction {
        for byte in b'A'..=b'Z' {
            if has(class, byte) {
                add(class, byte.to_ascii_lowercase());
            }
        }
    }
}

/// A set of places in the program, those that wait for a byte.
struct States {
    list: Vec<usize>,
    seen: Vec<bool>,
    matched: bool,
    pending: Vec<usize>,
}

impl States {
    fn new(length: usize) -> Self {
        let seen = alloc::vec![false; length];
        States {
            list: Vec::new(),
            seen,
            matched: false,
            pending: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
        self.matched = false;
    }

    /// Adds `state` and what can be reached from it at position `at` without a byte.
    fn enter(&mut self, program: &[Instruction], line: &[u8], at: usize, state: usize) {
        self.pending.push(state);
        while let Some(state) = self.pending.pop() {
            if core::mem::replace(&mut self.seen[state], true) {
                continue;
            }
            let holds = match &program[state] {
                Instruction::Class(_) => {
                    self.list.push(state);
                    false
                }
                Instruction::Match => {
                    self.matched = true;
                    false
                }
                Instruction::Jump(to) => {
                    self.pending.push(*to);
                    false
                }
                Instruction::Split(one, other) => {
                    self.pending.extend([*other, *one]);
                    false
                }
                assertion => assertion.holds(line, at),
            };
            if holds {
                self.pending.push(state + 1);
            }
        }
    }
}

impl Instruction {
    fn holds(&self, line: &[u8], at: usize) -> bool {
        let is_word =
            |byte: Option<&u8>| byte.is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_');
        let before = is_word(at.checked_sub(1).and_then(|at| line.get(at)));
        let after = is_word(line.get(at));
        match self {
            Instruction::Start => at == 0,
            Instruction::End => at == line.len(),
            Instruction::Boundary(wanted) => (before != after) == *wanted,
            Instruction::WordStart => !before && after,
            Instruction::WordEnd => before && !after,
            Instruction::NoWordBefore => !before,
            Instruction::NoWordAfter => !after,
            _ => false,
        }
    }
}

/// Appends the instructions for `node`.
fn emit(node: &Node, program: &mut Vec<Instruction>) -> Result<(), PatternError> {
    if program.len() > MOST_INSTRUCTIONS {
        return Err(PatternError::TooLarge);
    }
    match node {
        Node::Empty => {}
        Node::Class(class) => program.push(Instruction::Class(*class)),
        Node::Start => program.push(Instruction::Start),
        Node::End => program.push(Instruction::End),
        Node::Boundary(wanted) => program.push(Instruction::Boundary(*wanted)),
        Node::WordStart => program.push(Instruction::WordStart),
        Node::WordEnd => program.push(Instruction::WordEnd),
        Node::NoWordBefore => program.push(Instruction::NoWordBefore),
        Node::NoWordAfter => program.push(Instruction::NoWordAfter),
        Node::Sequence(nodes) => {
            for node in nodes {
                emit(node, program)?;
            }
        }
        Node::Either(nodes) => emit_either(nodes, program)?,
        Node::Repeat(node, least, most) => emit_repeat(node, *least, *most, program)?,
    }
    Ok(())
}

fn emit_either(nodes: &[Node], program: &mut Vec<Instruction>) -> Result<(), PatternError> {
    let mut jumps = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if index + 1 == nodes.len() {
            emit(node, program)?;
            break;
        }
        let split = program.len();
        program.push(Instruction::Split(split + 1, 0));
        emit(node, program)?;
        jumps.push(program.len());
        program.push(Instruction::Jump(0));
        program[split] = Instruction::Split(split + 1, program.len());
    }
    for jump in jumps {
        program[jump] = Instruction::Jump(program.len());
    }
    Ok(())
}

fn emit_repeat(
    node: &Node,
    least: u32,
    most: Option<u32>,
    program: &mut Vec<Instruction>,
) -> Result<(), PatternError> {
    for _ in 0..least {
        let before = program.len();
        emit(node, program)?;
        if program.len() == before {
            // Nothing, however often: `((){1000}){1000}` must not take a million rounds.
            return Ok(());
        }
    }
    match most {
        None => {
            let split = program.len();
            program.push(Instruction::Split(split + 1, 0));
            emit(node, program)?;
            program.push(Instruction::Jump(split));
            program[split] = Instruction::Split(split + 1, program.len());
        }
        Some(most) => {
            let mut splits = Vec::new();
            for _ in least..most {
                splits.push(program.len());
                program.push(Instruction::Match);
                emit(node, program)?;
            }
            for split in splits {
                program[split] = Instruction::Split(split + 1, program.len());
            }
        }
    }
    Ok(())
}

struct Parser<'a> {
    rest: &'a [u8],
    syntax: Syntax,
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
            Sign::Escaped(byte) => escaped(byte)?,
            Sign::Byte(byte) => Node::Class(single(byte)),
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
fn escaped(byte: u8) -> Result<Node, PatternError> {
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
        _ => Node::Class(single(byte)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Syntax::{Basic, Extended, Fixed};

    fn found(pattern: &str, syntax: Syntax, line: &str) -> Option<(usize, usize)> {
        let pattern = Pattern::new(pattern.as_bytes(), syntax, false).expect(pattern);
        let range = pattern.find(line.as_bytes());
        assert_eq!(range.is_some(), pattern.is_match(line.as_bytes()));
        range.map(|range| (range.start, range.end))
    }

    #[test]
    fn basic() {
        for (pattern, line, expected) in [
            ("b", "abc", Some((1, 2))),
            ("", "abc", Some((0, 0))),
            ("a.c", "xabc", Some((1, 4))),
            ("ab*", "abbb", Some((0, 4))),
            ("^b", "ab", None),
            ("c$", "abc", Some((2, 3))),
            ("a^b$c", "a^b$c", Some((0, 5))),
            ("*a", "*a", Some((0, 2))),
            ("^*a", "*a", Some((0, 2))),
            ("a+b?", "a+b?", Some((0, 4))),
            (r"a\+", "aaa", Some((0, 3))),
            (r"\(ab\)*c", "ababc", Some((0, 5))),
            (r"a\{2\}", "aaa", Some((0, 2))),
            (r"a\{2,\}", "aaaa", Some((0, 4))),
            (r"x\|b", "abc", Some((1, 2))),
            ("a(b)", "a(b)", Some((0, 4))),
            (r"\.", "ab.", Some((2, 3))),
            ("[]a]*", "]a]", Some((0, 3))),
            ("[^a-c]", "abcd", Some((3, 4))),
            ("[[:digit:]x]*$", "ab1x2", Some((2, 5))),
            ("a]", "a]", Some((0, 2))),
            (r"\bfoo\b", "a foo b", Some((2, 5))),
            (r"\<oo", "foo", None),
            ("[a-]*", "a-", Some((0, 2))),
        ] {
            assert_eq!(found(pattern, Basic, line), expected, "{pattern} on {line}");
        }
    }

    #[test]
    fn extended() {
        for (pattern, line, expected) in [
            ("a|bc", "xbc", Some((1, 3))),
            ("(a|ab)(c|bcd)", "abcd", Some((0, 4))),
            ("a+", "baa", Some((1, 3))),
            ("colou?r", "color", Some((0, 5))),
            ("^(a|b)+$", "abba", Some((0, 4))),
            ("a{2,3}", "aaaa", Some((0, 3))),
            ("(a*)*", "aaa", Some((0, 3))),
            ("(|a)b", "ab", Some((0, 2))),
            (r"\(a\)", "(a)", Some((0, 3))),
            ("a||b", "c", Some((0, 0))),
            ("^$", "", Some((0, 0))),
            ("(^a)b", "ab", Some((0, 2))),
            ("a{,2}", "aaa", Some((0, 2))),
        ] {
            assert_eq!(
                found(pattern, Extended, line),
                expected,
                "{pattern} on {line}"
            );
        }
    }

    #[test]
    fn fixed_and_case() {
        assert_eq!(found("a.*[", Fixed, "xa.*["), Some((1, 5)));
        let pattern = Pattern::new(b"HeLLo [x-z]", Basic, true).unwrap();
        assert!(pattern.is_match(b"say hEllO Y"));
        assert!(
            Pattern::new(b"a*", Basic, false)
                .unwrap()
                .is_whole_match(b"aaa")
        );
        assert!(
            !Pattern::new(b"a*", Basic, false)
                .unwrap()
                .is_whole_match(b"aab")
        );
    }

    #[test]
    fn whole_words() {
        let pattern = Pattern::words(b"ab*", Basic, false).unwrap();
        assert_eq!(pattern.find(b"xab abbc a-"), Some(9..10));
        assert_eq!(pattern.find(b"abb!"), Some(0..3));
        assert!(!pattern.is_match(b"ab_ abc cab"));
    }

    #[test]
    fn what_is_no_pattern() {
        for (pattern, syntax, error) in [
            ("[a", Basic, PatternError::Bracket),
            ("[[:no:]]", Basic, PatternError::Bracket),
            ("[]", Basic, PatternError::Bracket),
            (r"\(a", Basic, PatternError::Group),
            (r"a\)", Basic, PatternError::Group),
            ("(a", Extended, PatternError::Group),
            ("a\\", Basic, PatternError::Backslash),
            (r"\(a\)\1", Basic, PatternError::BackReference),
            ("a{2", Extended, PatternError::Count),
            ("a{3,2}", Extended, PatternError::Count),
            ("a{x}", Extended, PatternError::Count),
            ("a{9999999999}", Extended, PatternError::Count),
            ("((a{1000}){1000}){1000}", Extended, PatternError::TooLarge),
        ] {
            assert_eq!(
                Pattern::new(pattern.as_bytes(), syntax, false).err(),
                Some(error),
                "{pattern}"
            );
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let deep = alloc::format!("{}a{}", "(".repeat(60), ")".repeat(60));
        assert_eq!(
            Pattern::new(deep.as_bytes(), Extended, false).err(),
            Some(PatternError::TooLarge)
        );
        let signs = alloc::format!("a{}", "?".repeat(10_000));
        assert_eq!(
            Pattern::new(signs.as_bytes(), Extended, false).err(),
            Some(PatternError::TooLarge)
        );
        let empty = alloc::format!("(){}", "{1000}".repeat(9));
        assert!(Pattern::new(empty.as_bytes(), Extended, false).is_ok());
        let line = alloc::vec![b'a'; 2000];
        assert!(
            !Pattern::new(b"(a*)*(a*)*(a*)*b", Extended, false)
                .unwrap()
                .is_match(&line)
        );
    }
}
