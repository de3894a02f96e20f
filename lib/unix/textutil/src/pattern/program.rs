//! What an expression is compiled to, and the states that a match goes through.

use super::{Class, Node, PatternError};
use alloc::vec::Vec;

/// The most instructions that an expression may compile to: `x{1000}{1000}` is refused, not tried.
const MOST_INSTRUCTIONS: usize = 20_000;
/// One step of a match.
#[derive(Clone, Debug)]
pub(super) enum Instruction {
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

/// A set of places in the program, those that wait for a byte.
pub(super) struct States {
    /// The places, without repetition.
    pub list: Vec<usize>,
    seen: Vec<bool>,
    /// The end of the program was reached.
    pub matched: bool,
    pending: Vec<usize>,
}

impl States {
    /// An empty set for a program of `length` instructions.
    pub fn new(length: usize) -> Self {
        let seen = alloc::vec![false; length];
        States {
            list: Vec::new(),
            seen,
            matched: false,
            pending: Vec::new(),
        }
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
        self.matched = false;
    }

    /// Adds `state` and what can be reached from it at position `at` without a byte.
    pub fn enter(&mut self, program: &[Instruction], line: &[u8], at: usize, state: usize) {
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
pub(super) fn emit(node: &Node, program: &mut Vec<Instruction>) -> Result<(), PatternError> {
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
