//! A controller that does what it is told, when it is told to: see the tests beside it.

mod tests;

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::PAGE;
use crate::command::WORDS;
use crate::queue::tests::Shared;
use crate::queue::{ANSWER_BYTES, COMMAND_BYTES};
use crate::registers::Registers;

/// Blocks of the only namespace.
const BLOCKS: usize = 256;
const BLOCK: usize = 512;
const DOORBELLS: usize = 0x1000;

/// One pair as the controller knows it.
#[derive(Default)]
struct Rings {
    entries: u16,
    commands: usize,
    answers: usize,
    head: u16,
    tail: u16,
    answer: u16,
    phase: bool,
    taken: u16,
}

#[derive(Default)]
struct State {
    enabled: bool,
    admin: [u32; 5],
    pairs: BTreeMap<u16, Rings>,
    /// Completion queues that have no submission queue yet.
    answers: BTreeMap<u16, (usize, u16)>,
    /// Commands that were read and not answered.
    has: Vec<(u16, [u32; 2 * WORDS])>,
    disk: Vec<u8>,
}

#[derive(Clone)]
struct Simulated {
    memory: Shared,
    state: Rc<RefCell<State>>,
    /// It answers nothing.
    is_deaf: Rc<Cell<bool>>,
}

impl Registers for Simulated {
    fn read32(&self, offset: usize) -> u32 {
        match offset {
            0 => 63 | 1 << 24,
            4 => 1 << 5,
            8 => 0x1_0400,
            0x1c => self.state.borrow().enabled.into(),
            _ => 0,
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        let mut state = self.state.borrow_mut();
        match offset {
            0x14 => {
                state.enabled = value & 1 == 1;
                state.pairs.clear();
                state.has.clear();
                if state.enabled {
                    assert_eq!(value, 0x46_0001);
                    let [sizes, commands, _, answers, _] = state.admin;
                    let rings = Rings::new((sizes & 0xfff) as u16 + 1, commands, answers);
                    state.pairs.insert(0, rings);
                }
            }
            0x24..0x38 => state.admin[(offset - 0x24) / 4] = value,
            DOORBELLS.. => {
                let number = (offset - DOORBELLS) / 4;
                let pair = state.pairs.get_mut(&((number / 2) as u16));
                let pair = pair.expect("a doorbell of no queue");
                assert!(value < u32::from(pair.entries), "a doorbell out of range");
                match number % 2 {
                    0 => pair.tail = value as u16,
                    _ => pair.taken = value as u16,
                }
            }
            _ => panic!("a write to {offset:#x}"),
        }
    }
}

impl Rings {
    fn new(entries: u16, commands: u32, answers: u32) -> Self {
        Rings {
            entries,
            commands: commands as usize,
            answers: answers as usize,
            phase: true,
            ..Rings::default()
        }
    }
}

impl Simulated {
    fn new(bytes: usize) -> Self {
        let simulated = Simulated {
            memory: Shared::new(bytes),
            state: Rc::default(),
            is_deaf: Rc::default(),
        };
        simulated.state.borrow_mut().disk = vec![0; BLOCKS * BLOCK];
        simulated
    }

    /// Reads all commands that it was told of.
    fn look(&self) {
        let state = &mut *self.state.borrow_mut();
        for (number, pair) in &mut state.pairs {
            while pair.head != pair.tail {
                let at = pair.commands + usize::from(pair.head) * COMMAND_BYTES;
                let words = core::array::from_fn(|word| self.memory.read_u32(at + 4 * word));
                state.has.push((*number, words));
                pair.head = (pair.head + 1) % pair.entries;
            }
        }
    }

    /// Does one of the commands that it has, and answers.
    fn complete(&self, index: usize) {
        let (pair, words) = self.state.borrow_mut().has.swap_remove(index);
        let (status, result) = match pair {
            0 => self.admin(&words),
            _ => (self.carry_out(&words), 0),
        };
        let number = (words[0] >> 16) as u16;
        self.answer(pair, |pair, head| (result, head, pair, number, status));
    }

    /// Writes an answer, of which `make` says result, head, queue, command, and status.
    fn answer(&self, number: u16, make: impl FnOnce(u16, u16) -> (u32, u16, u16, u16, u16)) {
        let mut state = self.state.borrow_mut();
        let pair = state.pairs.get_mut(&number).expect("it has a queue");
        let next = (pair.answer + 1) % pair.entries;
        assert_ne!(next, pair.taken, "there is room for the answer");
        let (result, head, queue, command, status) = make(number, pair.head);
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..4].copy_from_slice(&result.to_le_bytes());
        let half = status << 1 | u16::from(pair.phase);
        for (value, at) in [(head, 8), (queue, 10), (command, 12), (half, 14)] {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        let at = pair.answers + usize::from(pair.answer) * ANSWER_BYTES;
        self.memory.write(at, &bytes);
        pair.answer = next;
        pair.phase ^= next == 0;
    }

    /// Looks at its queues and answers everything.
    fn settle(&self) {
        if self.is_deaf.get() {
            return;
        }
        self.look();
        while !self.state.borrow().has.is_empty() {
            self.complete(0);
        }
    }

    fn admin(&self, words: &[u32; 2 * WORDS]) -> (u16, u32) {
        let mut page = [0; PAGE];
        let (number, entries) = (words[10] as u16, (words[10] >> 16) as u16 + 1);
        match (words[0] as u8, words[10]) {
            (6, 0) if words[1] == 1 => {
                page[..8].copy_from_slice(&(BLOCKS as u64).to_le_bytes());
                page[130] = 9;
            }
            (6, 1) => {
                (page[77], page[512], page[513]) = (2, 0x66, 0x44);
                page[24..28].copy_from_slice(b"simu");
            }
            (6, 2) => page[..4].copy_from_slice(&1u32.to_le_bytes()),
            (2, _) => page[1] = 44,
            (9, 7) => return (0, 3 << 16 | 3),
            (5, _) => {
                let mut state = self.state.borrow_mut();
                state.answers.insert(number, (words[6] as usize, entries));
                return (0, 0);
            }
            (1, _) => {
                let mut state = self.state.borrow_mut();
                let Some((answers, _)) = state.answers.remove(&((words[11] >> 16) as u16)) else {
                    return (0x100, 0);
                };
                let rings = Rings::new(entries, words[6], answers as u32);
                state.pairs.insert(number, rings);
                return (0, 0);
            }
            _ => return (1, 0),
        }
        self.memory.write(words[6] as usize, &page);
        (0, 0)
    }

    /// Reads or writes; the status.
    fn carry_out(&self, words: &[u32; 2 * WORDS]) -> u16 {
        let (first, count) = (words[10] as usize, (words[12] & 0xffff) as usize + 1);
        if first + count > BLOCKS {
            return 0x80;
        }
        let disk = &mut self.state.borrow_mut().disk[first * BLOCK..][..count * BLOCK];
        let mut done = 0;
        for (at, length) in self.pieces(words, count * BLOCK) {
            let part = &mut disk[done..done + length];
            match words[0] as u8 {
                1 => self.memory.read(at, part),
                2 => self.memory.write(at, part),
                _ => return 1,
            }
            done += length;
        }
        0
    }

    /// Where the bytes of a command are, by its pointers (4.3).
    fn pieces(&self, words: &[u32; 2 * WORDS], bytes: usize) -> Vec<(usize, usize)> {
        let (first, second) = (words[6] as usize, words[8] as usize);
        let mut pieces = vec![(first, bytes.min(PAGE - first % PAGE))];
        let mut left = bytes - pieces[0].1;
        let pages = left.div_ceil(PAGE);
        for number in 0..pages {
            let page = match pages {
                1 => second,
                _ => self.memory.read_u32(second + 8 * number) as usize,
            };
            assert_eq!(page % PAGE, 0);
            pieces.push((page, left.min(PAGE)));
            left -= left.min(PAGE);
        }
        pieces
    }
}
