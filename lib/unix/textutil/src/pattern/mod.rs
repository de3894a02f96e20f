//! Regular expressions for `grep`: POSIX basic and extended syntax over bytes, without
//! back-references.
//!
//! An expression is [parsed](parse) to a tree and compiled to a small [program] whose possible
//! states are all followed at once, so that the time is at most the length of the line times the
//! length of the program, whatever the expression.

mod parse;
mod program;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use program::{Instruction, States, emit};

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
    /// `{` with something else than counts behind it, or counts that are too large or the wrong way
    /// round.
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

/// Adds the other case of every letter in the class.
fn fold(class: &mut Class) {
    for byte in 0..=255_u8 {
        if has(class, byte) && byte.is_ascii_alphabetic() {
            add(class, byte ^ 0x20);
        }
    }
}

/// The class of a byte, in both cases if `ignore_case`.
fn letter(byte: u8, ignore_case: bool) -> Class {
    let mut class = single(byte);
    if ignore_case {
        fold(&mut class);
    }
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

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    program: Vec<Instruction>,
    /// The expression is this text and nothing else: found without following states.
    literal: Option<Vec<u8>>,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// Why it is not an expression.
    pub fn new(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Self, PatternError> {
        let node = Self::parse(text, syntax, ignore_case)?;
        Self::compile(&node)
    }

    /// Compiles `text` so that it matches only where no letter, digit or `_` stands beside the
    /// match.
    ///
    /// # Errors
    /// Why it is not an expression.
    pub fn words(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Self, PatternError> {
        let node = Self::parse(text, syntax, ignore_case)?;
        let node = Node::Sequence(Vec::from([Node::NoWordBefore, node, Node::NoWordAfter]));
        Self::compile(&node)
    }

    fn parse(text: &[u8], syntax: Syntax, ignore_case: bool) -> Result<Node, PatternError> {
        match syntax {
            Syntax::Fixed => Ok(Node::Sequence(
                text.iter()
                    .map(|&b| Node::Class(letter(b, ignore_case)))
                    .collect(),
            )),
            _ => parse::parse(text, syntax, ignore_case),
        }
    }

    fn compile(node: &Node) -> Result<Self, PatternError> {
        let mut program = Vec::new();
        emit(node, &mut program)?;
        program.push(Instruction::Match);
        let literal = literal(node);
        Ok(Pattern { program, literal })
    }

    /// Where in `line` the leftmost match is that starts at byte `from` or later, and of those that
    /// start there the longest.
    pub fn find(&self, line: &[u8], from: usize) -> Option<core::ops::Range<usize>> {
        if let Some(text) = &self.literal {
            let start = from + find_text(line.get(from..)?, text)?;
            return Some(start..start + text.len());
        }
        (from..=line.len()).find_map(|start| Some(start..self.run(line, start, true)?))
    }

    /// Whether a match is anywhere in `line`.
    pub fn is_match(&self, line: &[u8]) -> bool {
        match &self.literal {
            Some(text) => find_text(line, text).is_some(),
            None => self.run(line, 0, false).is_some(),
        }
    }

    /// Whether the match can be the whole of `line`.
    pub fn is_whole_match(&self, line: &[u8]) -> bool {
        self.run(line, 0, true) == Some(line.len())
    }

    /// Follows all states from `start`; the end of the longest match. If not `anchored`, matches
    /// that start later are followed as well, and the first end found is given.
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

/// The text that `node` matches, if there is only one.
fn literal(node: &Node) -> Option<Vec<u8>> {
    let Node::Sequence(nodes) = node else {
        return None;
    };
    let byte = |node: &Node| match node {
        Node::Class(class) => {
            let mut members = (0..=255).filter(|&byte| has(class, byte));
            let first = members.next()?;
            members.next().is_none().then_some(first)
        }
        _ => None,
    };
    nodes.iter().map(byte).collect()
}

/// Where `text` starts in `line` for the first time.
fn find_text(line: &[u8], text: &[u8]) -> Option<usize> {
    let Some((&first, rest)) = text.split_first() else {
        return Some(0);
    };
    let mut from = 0;
    loop {
        let start = from + line[from..].iter().position(|&byte| byte == first)?;
        if line[start + 1..].starts_with(rest) {
            return Some(start);
        }
        from = start + 1;
    }
}
