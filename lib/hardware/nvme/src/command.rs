//! Submission queue entries (section 4.2): what a controller is asked.

use crate::prp::Pointers;

/// Words of an entry.
pub const WORDS: usize = 16;

/// A submission queue entry, but for the command's number, which [`queue`](crate::queue) puts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub [u32; WORDS]);

/// All namespaces.
pub const ALL_NAMESPACES: u32 = u32::MAX;
/// Blocks of a read, a write, or zeros (the count is 16 bits that begin with one).
pub const MOST_BLOCKS: u32 = 1 << 16;
/// Blocks of one range of [`discard`].
pub const MOST_DISCARDED: u32 = u32::MAX;
/// Bytes of a range of [`discard`].
pub const RANGE_BYTES: usize = 16;

/// Opcodes: admin (figure 139), NVM (figure 346).
mod code {
    pub const CREATE_SUBMISSION: u8 = 0x01;
    pub const LOG_PAGE: u8 = 0x02;
    pub const CREATE_COMPLETION: u8 = 0x05;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;

    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
}

/// The log page with [SMART](crate::smart) data.
const SMART: u32 = 2;
/// The feature that says how many queues there are to be.
const NUMBER_OF_QUEUES: u32 = 7;
/// Force unit access, in the word with the count of blocks.
const DURABLE: u32 = 1 << 30;
/// Dataset management: the blocks are not needed any more.
const DEALLOCATE: u32 = 1 << 2;
/// A queue is in one piece of memory.
const CONTIGUOUS: u32 = 1;
/// A completion queue interrupts.
const INTERRUPTS: u32 = 2;

/// Which structure [`identify`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Of a namespace.
    Namespace = 0,
    /// Of the controller.
    Controller = 1,
    /// The list of namespaces in use, with numbers above the one given.
    Namespaces = 2,
}

fn command(code: u8, namespace: u32) -> Command {
    let mut words = [0; WORDS];
    (words[0], words[1]) = (code.into(), namespace);
    Command(words)
}

impl Command {
    fn pointing(mut self, pointers: Pointers) -> Self {
        let Pointers { first, second } = pointers;
        let words = [
            first as u32,
            (first >> 32) as u32,
            second as u32,
            (second >> 32) as u32,
        ];
        self.0[6..10].copy_from_slice(&words);
        self
    }

    fn with(mut self, word: usize, value: u32) -> Self {
        self.0[word] = value;
        self
    }

    fn with_blocks(self, first: u64, count: u32, flags: u32) -> Self {
        self.with(10, first as u32)
            .with(11, (first >> 32) as u32)
            .with(12, count.wrapping_sub(1) & 0xffff | flags)
    }
}

/// Asks for a structure of 4 KiB at the page `to` (5.15).
pub fn identify(structure: Structure, namespace: u32, to: u64) -> Command {
    let command = command(code::IDENTIFY, namespace).pointing(Pointers::page(to));
    command.with(10, structure as u32)
}

/// Asks for the SMART data, 512 bytes at the page `to` (5.14.1.2).
pub fn smart(to: u64) -> Command {
    let words = (crate::smart::BYTES / 4 - 1) as u32;
    let command = command(code::LOG_PAGE, ALL_NAMESPACES).pointing(Pointers::page(to));
    command.with(10, SMART | words << 16)
}

/// Asks for so many pairs of queues, at least one (5.21.1.7). The answer's first word says how many
/// there are: see [`granted_pairs`].
pub fn ask_for_pairs(pairs: u16) -> Command {
    let last = u32::from(pairs.max(1) - 1);
    let command = command(code::SET_FEATURES, 0).with(10, NUMBER_OF_QUEUES);
    command.with(11, last << 16 | last)
}

/// How many pairs there are, by the answer to [`ask_for_pairs`].
pub fn granted_pairs(answer: u32) -> u32 {
    (answer & 0xffff).min(answer >> 16) + 1
}

fn queue(code: u8, pair: u16, entries: u16, at: u64) -> Command {
    let last = u32::from(entries - 1);
    let command = command(code, 0).pointing(Pointers::page(at));
    command.with(10, last << 16 | u32::from(pair))
}

/// Makes a completion queue at the page `at` (5.3). It interrupts by `vector`, or not at all.
pub fn create_completion(pair: u16, entries: u16, at: u64, vector: Option<u16>) -> Command {
    let interrupts = vector.map_or(0, |vector| u32::from(vector) << 16 | INTERRUPTS);
    queue(code::CREATE_COMPLETION, pair, entries, at).with(11, interrupts | CONTIGUOUS)
}

/// Makes a submission queue at the page `at`, whose answers come in the completion queue of the
/// same number (5.4).
pub fn create_submission(pair: u16, entries: u16, at: u64) -> Command {
    let queue = queue(code::CREATE_SUBMISSION, pair, entries, at);
    queue.with(11, u32::from(pair) << 16 | CONTIGUOUS)
}

/// Asks to end command number `id` of a pair early (5.1). It has its own answer either way.
pub fn abort(pair: u16, id: u16) -> Command {
    command(code::ABORT, 0).with(10, u32::from(id) << 16 | u32::from(pair))
}

/// Reads `count` blocks, 1 to [`MOST_BLOCKS`] (6.9).
pub fn read(namespace: u32, first: u64, count: u32, to: Pointers) -> Command {
    let command = command(code::READ, namespace).pointing(to);
    command.with_blocks(first, count, 0)
}

/// Writes `count` blocks, 1 to [`MOST_BLOCKS`]; `durable`: they are on stable storage before the
/// answer (6.15).
pub fn write(namespace: u32, first: u64, count: u32, from: Pointers, durable: bool) -> Command {
    let flags = if durable { DURABLE } else { 0 };
    let command = command(code::WRITE, namespace).pointing(from);
    command.with_blocks(first, count, flags)
}

/// Fills `count` blocks, 1 to [`MOST_BLOCKS`], with zeros (6.17).
pub fn write_zeroes(namespace: u32, first: u64, count: u32, durable: bool) -> Command {
    let flags = if durable { DURABLE } else { 0 };
    command(code::WRITE_ZEROES, namespace).with_blocks(first, count, flags)
}

/// Puts all that was written on stable storage (6.8).
pub fn flush(namespace: u32) -> Command {
    command(code::FLUSH, namespace)
}

/// Says that the blocks of one [`range`], which lies at `from`, are not needed any more (6.7).
pub fn discard(namespace: u32, from: Pointers) -> Command {
    let command = command(code::DATASET_MANAGEMENT, namespace).pointing(from);
    // The number of ranges begins with one.
    command.with(10, 0).with(11, DEALLOCATE)
}

/// A range of blocks: attributes, count, first.
pub fn range(first: u64, count: u32) -> [u8; RANGE_BYTES] {
    let mut bytes = [0; RANGE_BYTES];
    bytes[4..8].copy_from_slice(&count.to_le_bytes());
    bytes[8..].copy_from_slice(&first.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHERE: Pointers = Pointers {
        first: 0x1_0000_2200,
        second: 0x2_0000_3000,
    };

    #[test]
    fn a_write_has_all_its_words() {
        let Command(words) = write(7, 0x3_0000_0004, 8, WHERE, true);
        let wanted = [
            1,
            7,
            0,
            0,
            0,
            0,
            0x2200,
            1,
            0x3000,
            2,
            4,
            3,
            0x4000_0007,
            0,
            0,
            0,
        ];
        assert_eq!(words, wanted);
        assert_eq!(write(7, 4, MOST_BLOCKS, WHERE, false).0[12], 0xffff);
    }

    #[test]
    fn the_others_differ_as_they_should() {
        assert_eq!(read(1, 5, 1, WHERE).0[..2], [2, 1]);
        assert_eq!(read(1, 5, 1, WHERE).0[10..13], [5, 0, 0]);
        assert_eq!(write_zeroes(1, 5, 2, false).0[10..13], [5, 0, 1]);
        assert_eq!(flush(1).0[..2], [0, 1]);
        assert_eq!(discard(1, WHERE).0[10..12], [0, 4]);
        assert_eq!(
            range(9, 3),
            [0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn admin_commands() {
        let words = create_completion(2, 64, 0x5000, Some(3)).0;
        assert_eq!((words[0], words[6]), (5, 0x5000));
        assert_eq!(words[10..12], [63 << 16 | 2, 3 << 16 | 3]);
        assert_eq!(create_completion(2, 64, 0x5000, None).0[11], 1);
        let words = create_submission(2, 64, 0x5000).0;
        assert_eq!(words[10..12], [63 << 16 | 2, 2 << 16 | 1]);
        assert_eq!(abort(1, 9).0[10], 9 << 16 | 1);
        assert_eq!(smart(0).0[10], 127 << 16 | 2);
        assert_eq!(ask_for_pairs(2).0[10..12], [7, 1 << 16 | 1]);
        assert_eq!(granted_pairs(63 << 16 | 3), 4);
        assert_eq!(granted_pairs(u32::MAX), 0x1_0000);
    }
}
