//! A pair of queues (section 4.1): a ring of commands that the driver fills, and a ring of answers
//! that the controller fills.
//!
//! # Protocol
//! A command has a number of the driver's own, below [`Pair::commands`]. From
//! [`submit`](Pair::submit) until [`take`](Pair::take) gives its answer the controller has it, with
//! all memory that it names. The controller sees new commands when it is told the
//! [`tail`](Pair::tail), and may use the places of answers again when it is told the
//! [`head`](Pair::head). There are never as many commands under way as a ring has entries, so
//! neither ring runs over, whatever the controller says.
//!
//! An answer is new if its phase tag differs from what was there one round before (4.6). What the
//! controller writes besides is compared with what it may say: the number of a command that it has,
//! the queue's own number, and a place in the ring up to which it can have read. Anything else is a
//! [`Fault`]; the pair is of no more use then, until the controller is reset.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use crate::PAGE;
use crate::command::{Command, WORDS};
use crate::status::Status;

/// Bytes of a command.
pub const COMMAND_BYTES: usize = 8 * WORDS;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 16;

/// The memory of a pair, which the controller may change at any time.
pub trait Memory {
    /// Reads 64 bits at a multiple of eight, all of them at once.
    fn read_u64(&self, offset: usize) -> u64;
    /// Writes the words of a command at a multiple of its size.
    fn write_command(&self, offset: usize, words: [u64; WORDS]);
    /// Orders all accesses before it before those after it, as the controller sees them.
    fn fence(&self);
}

/// Where the rings lie in their memory: commands at its start, answers from a page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Entries of each ring.
    pub entries: u16,
    /// Where the answers begin.
    pub answers: usize,
    /// Bytes of both.
    pub bytes: usize,
}

impl Layout {
    /// Rings of so many entries, 2 at least.
    pub fn new(entries: u16) -> Self {
        let entries = entries.max(2);
        let answers = (usize::from(entries) * COMMAND_BYTES).next_multiple_of(PAGE);
        Layout {
            entries,
            answers,
            bytes: answers + usize::from(entries) * ANSWER_BYTES,
        }
    }
}

/// Why a command was not submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// There are as many under way as there can be.
    Full,
    /// There is one of this number under way.
    Taken,
    /// The number is not below [`Pair::commands`].
    BadNumber,
}

/// How the controller breaks the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers a command that it does not have.
    Command(u16),
    /// It names another queue.
    Queue(u16),
    /// It says that it has read to a place to which it cannot have come.
    Head(u16),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Fault::Command(number) => write!(f, "it answers command {number}, which it has not"),
            Fault::Queue(number) => write!(f, "it answers in the name of queue {number}"),
            Fault::Head(place) => write!(f, "it has read up to {place}, where nothing is"),
        }
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The command's number.
    pub command: u16,
    /// How it ended.
    pub status: Status,
}

/// See the module.
#[derive(Debug)]
pub struct Pair {
    number: u16,
    layout: Layout,
    /// Where the next command goes, what the controller was told of it, and up to where it says
    /// that it has read.
    tail: u16,
    told_tail: u16,
    read_to: u16,
    /// Where the next answer is looked for, what the controller was told of it, and the phase tag
    /// of a new one.
    head: u16,
    told_head: u16,
    phase: bool,
    /// Which commands are under way.
    has: Vec<bool>,
    under_way: usize,
}

impl Pair {
    /// Pair `number`, whose memory is all zeros, with numbers for `commands` commands; at least one
    /// less than its entries can be under way.
    ///
    /// # Errors
    /// No memory.
    pub fn new(number: u16, layout: Layout, commands: usize) -> Result<Self, TryReserveError> {
        let mut has = Vec::new();
        has.try_reserve_exact(commands)?;
        has.resize(commands, false);
        Ok(Pair {
            number,
            layout,
            tail: 0,
            told_tail: 0,
            read_to: 0,
            head: 0,
            told_head: 0,
            phase: true,
            has,
            under_way: 0,
        })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Numbers of commands are below this.
    pub fn commands(&self) -> usize {
        self.has.len()
    }

    /// How many commands are under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// How many more can be under way.
    pub fn room(&self) -> usize {
        (usize::from(self.layout.entries) - 1).saturating_sub(self.under_way)
    }

    /// A number that no command under way has.
    pub fn free_number(&self) -> Option<u16> {
        let free = self.has.iter().position(|has| !has);
        free.and_then(|number| u16::try_from(number).ok())
    }

    /// Puts a command into the ring. The controller may look at it from now on.
    ///
    /// # Errors
    /// Nothing was done; why.
    #[inline]
    pub fn submit(
        &mut self,
        memory: &impl Memory,
        number: u16,
        command: &Command,
    ) -> Result<(), SubmitError> {
        let has = self.has.get_mut(usize::from(number));
        let has = has.ok_or(SubmitError::BadNumber)?;
        if *has {
            return Err(SubmitError::Taken);
        }
        if self.under_way + 1 >= usize::from(self.layout.entries) {
            return Err(SubmitError::Full);
        }
        *has = true;
        self.under_way += 1;
        let mut words = command.0;
        words[0] |= u64::from(number) << 16;
        memory.write_command(usize::from(self.tail) * COMMAND_BYTES, words);
        self.tail += 1;
        if self.tail == self.layout.entries {
            self.tail = 0;
        }
        Ok(())
    }

    /// What the controller has to be told so that it sees all commands; `None` if it was told. The
    /// register may be written when this has returned.
    pub fn tail(&mut self, memory: &impl Memory) -> Option<u32> {
        if self.tail == self.told_tail {
            return None;
        }
        memory.fence();
        self.told_tail = self.tail;
        Some(self.tail.into())
    }

    /// What it has to be told so that it knows that the answers were taken; `None` if it knows.
    pub fn head(&mut self) -> Option<u32> {
        if self.head == self.told_head {
            return None;
        }
        self.told_head = self.head;
        Some(self.head.into())
    }

    /// The next answer, if there is a new one. Its command is not under way any more.
    ///
    /// # Errors
    /// The controller breaks the rules; nothing was taken.
    // Inlined, since it is what each answer takes.
    #[inline(always)]
    pub fn take(&mut self, memory: &impl Memory) -> Result<Option<Answer>, Fault> {
        let place = self.layout.answers + usize::from(self.head) * ANSWER_BYTES;
        // The tag is written last: what is read beside it is as new, if it is read at once.
        let last = memory.read_u64(place + 8);
        if (last >> 48 & 1 == 1) != self.phase {
            return Ok(None);
        }
        let [read_to, queue, number, half] = [0, 16, 32, 48].map(|shift| (last >> shift) as u16);
        if queue != self.number {
            return Err(Fault::Queue(queue));
        }
        // It is nearly always what it was.
        if read_to != self.read_to && !self.can_have_read_to(read_to) {
            return Err(Fault::Head(read_to));
        }
        match self.has.get_mut(usize::from(number)) {
            Some(has @ true) => *has = false,
            _ => return Err(Fault::Command(number)),
        }
        self.under_way -= 1;
        self.read_to = read_to;
        self.head += 1;
        if self.head == self.layout.entries {
            self.head = 0;
            self.phase = !self.phase;
        }
        Ok(Some(Answer {
            command: number,
            status: Status::from_half(half),
        }))
    }

    /// As [`take`](Self::take), with the result of the command, a word.
    ///
    /// # Errors
    /// As `take`.
    pub fn take_with_result(
        &mut self,
        memory: &impl Memory,
    ) -> Result<Option<(Answer, u32)>, Fault> {
        let place = self.layout.answers + usize::from(self.head) * ANSWER_BYTES;
        let answer = self.take(memory)?;
        // What is read from here on is as new as the tag.
        memory.fence();
        Ok(answer.map(|answer| (answer, memory.read_u64(place) as u32)))
    }

    /// Whether a place lies between what the controller has said before and what it was told.
    fn can_have_read_to(&self, place: u16) -> bool {
        let entries = self.layout.entries;
        let from = |place: u16| match place >= self.read_to {
            true => place - self.read_to,
            false => place + (entries - self.read_to),
        };
        place < entries && from(place) <= from(self.told_tail)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::command;
    use alloc::rc::Rc;
    use alloc::vec;
    use core::cell::RefCell;

    /// Memory that driver and controller share. Its addresses for the controller are offsets.
    #[derive(Clone, Default)]
    pub struct Shared(pub Rc<RefCell<Vec<u8>>>);

    impl Shared {
        pub fn new(bytes: usize) -> Self {
            Shared(Rc::new(RefCell::new(vec![0; bytes])))
        }

        pub fn write(&self, offset: usize, bytes: &[u8]) {
            self.0.borrow_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
        }

        pub fn read(&self, offset: usize, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0.borrow()[offset..offset + bytes.len()]);
        }

        pub fn read_u32(&self, offset: usize) -> u32 {
            let mut bytes = [0; 4];
            self.read(offset, &mut bytes);
            u32::from_le_bytes(bytes)
        }

        pub fn write_u64(&self, offset: usize, value: u64) {
            self.write(offset, &value.to_le_bytes());
        }
    }

    impl Memory for Shared {
        fn read_u64(&self, offset: usize) -> u64 {
            let mut bytes = [0; 8];
            self.read(offset, &mut bytes);
            u64::from_le_bytes(bytes)
        }
        fn write_command(&self, offset: usize, words: [u64; WORDS]) {
            self.write(offset, words.map(u64::to_le_bytes).as_flattened());
        }
        fn fence(&self) {}
    }

    fn rig(entries: u16, commands: usize) -> (Pair, Layout, Shared) {
        let layout = Layout::new(entries);
        let pair = Pair::new(3, layout, commands).expect("memory");
        (pair, layout, Shared::new(layout.bytes))
    }

    fn answer(memory: &Shared, layout: Layout, place: usize, words: (u32, u16, u16, u16, u16)) {
        let (result, head, queue, number, half) = words;
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..4].copy_from_slice(&result.to_le_bytes());
        for (value, at) in [(head, 8), (queue, 10), (number, 12), (half, 14)] {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        memory.write(layout.answers + place * ANSWER_BYTES, &bytes);
    }

    #[test]
    fn a_command_goes_and_its_answer_comes() {
        let (mut pair, layout, memory) = rig(4, 8);
        pair.submit(&memory, 5, &command::flush(1)).expect("room");
        assert_eq!(memory.read_u64(0), 1 << 32 | 5 << 16);
        assert_eq!(pair.tail(&memory), Some(1));
        assert_eq!(pair.tail(&memory), None);
        assert_eq!(pair.take(&memory), Ok(None));
        answer(&memory, layout, 0, (9, 1, 3, 5, 1));
        let (taken, result) = pair
            .take_with_result(&memory)
            .expect("good")
            .expect("there");
        assert_eq!((taken.command, result), (5, 9));
        assert_eq!((pair.head(), pair.head()), (Some(1), None));
        assert_eq!((pair.take(&memory), pair.under_way()), (Ok(None), 0));
    }

    #[test]
    fn rings_do_not_run_over() {
        let (mut pair, _, memory) = rig(4, 8);
        for number in 0..3 {
            pair.submit(&memory, number, &command::flush(1))
                .expect("room");
        }
        let flush = command::flush(1);
        assert_eq!(pair.submit(&memory, 3, &flush), Err(SubmitError::Full));
        assert_eq!(pair.submit(&memory, 2, &flush), Err(SubmitError::Taken));
        assert_eq!(pair.submit(&memory, 8, &flush), Err(SubmitError::BadNumber));
        assert_eq!(pair.free_number(), Some(3));
    }

    #[test]
    fn wrong_answers_are_faults() {
        for (words, fault) in [
            ((0, 1, 2, 0, 1), Fault::Queue(2)),
            ((0, 1, 3, 1, 1), Fault::Command(1)),
            ((0, 1, 3, 0xffff, 1), Fault::Command(0xffff)),
            ((0, 2, 3, 0, 1), Fault::Head(2)),
            ((0, 4, 3, 0, 1), Fault::Head(4)),
        ] {
            let (mut pair, layout, memory) = rig(4, 8);
            pair.submit(&memory, 0, &command::flush(1)).expect("room");
            pair.tail(&memory);
            answer(&memory, layout, 0, words);
            assert_eq!(pair.take(&memory), Err(fault));
            assert_eq!(pair.under_way(), 1, "nothing was taken");
        }
    }

    #[test]
    fn a_command_that_was_not_told_of_is_not_answered() {
        let (mut pair, layout, memory) = rig(4, 8);
        pair.submit(&memory, 0, &command::flush(1)).expect("room");
        answer(&memory, layout, 0, (0, 1, 3, 0, 1));
        assert_eq!(pair.take(&memory), Err(Fault::Head(1)));
    }

    #[test]
    fn an_answer_is_not_taken_twice() {
        let (mut pair, layout, memory) = rig(2, 2);
        for round in 0..6u16 {
            pair.submit(&memory, 1, &command::flush(1)).expect("room");
            let tail = pair.tail(&memory).expect("new") as u16;
            assert_eq!(
                pair.take(&memory),
                Ok(None),
                "what is there is of the round before"
            );
            let phase = (round / 2 + 1) % 2;
            answer(
                &memory,
                layout,
                usize::from(round % 2),
                (0, tail, 3, 1, phase),
            );
            assert!(pair.take(&memory).expect("good").is_some());
            assert_eq!(pair.take(&memory), Ok(None));
        }
    }
}
