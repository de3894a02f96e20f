//! Submission queue entries (section 4.2): what a controller is asked.

use crate::prp::Pointers;

/// Words of 64 bits of an entry.
pub const WORDS: usize = 8;

/// A submission queue entry, but for the command's number, which [`queue`](crate::queue) puts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub [u64; WORDS]);

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

#[inline]
fn command(code: u8, namespace: u32) -> Command {
    let mut words = [0; WORDS];
    words[0] = u64::from(namespace) << 32 | u64::from(code);
    Command(words)
}

impl Command {
    #[inline]
    fn pointing(mut self, pointers: Pointers) -> Self {
        (self.0[3], self.0[4]) = (pointers.first, pointers.second);
        self
    }

    /// With the specification's words 10 and 11.
    fn with(mut self, tenth: u32, eleventh: u32) -> Self {
        self.0[5] = u64::from(eleventh) << 32 | u64::from(tenth);
        self
    }

    #[inline]
    fn with_blocks(mut self, first: u64, count: u32, flags: u32) -> Self {
        self.0[5] = first;
        self.0[6] = (count.wrapping_sub(1) & 0xffff | flags).into();
        self
    }
}

/// Asks for a structure of 4 KiB at the page `to` (5.15).
pub fn identify(structure: Structure, namespace: u32, to: u64) -> Command {
    let command = command(code::IDENTIFY, namespace).pointing(Pointers::page(to));
    command.with(structure as u32, 0)
}

/// Asks for the SMART data, 512 bytes at the page `to` (5.14.1.2).
pub fn smart(to: u64) -> Command {
    let words = (crate::smart::BYTES / 4 - 1) as u32;
    let command = command(code::LOG_PAGE, ALL_NAMESPACES).pointing(Pointers::page(to));
    command.with(SMART | words << 16, 0)
}

/// Asks for so many pairs of queues, at least one (5.21.1.7). The answer's first word says how many
/// there are: see [`granted_pairs`].
pub fn ask_for_pairs(pairs: u16) -> Command {
    let last = u32::from(pairs.max(1) - 1);
    command(code::SET_FEATURES, 0).with(NUMBER_OF_QUEUES, last << 16 | last)
}

/// How many pairs there are, by the answer to [`ask_for_pairs`].
pub fn granted_pairs(answer: u32) -> u32 {
    (answer & 0xffff).min(answer >> 16) + 1
}

fn queue(code: u8, pair: u16, entries: u16, at: u64, how: u32) -> Command {
    let last = u32::from(entries - 1);
    let command = command(code, 0).pointing(Pointers::page(at));
    command.with(last << 16 | u32::from(pair), how)
}

/// Makes a completion queue at the page `at` (5.3). It interrupts by `vector`, or not at all.
pub fn create_completion(pair: u16, entries: u16, at: u64, vector: Option<u16>) -> Command {
    let interrupts = vector.map_or(0, |vector| u32::from(vector) << 16 | INTERRUPTS);
    let how = interrupts | CONTIGUOUS;
    queue(code::CREATE_COMPLETION, pair, entries, at, how)
}

/// Makes a submission queue at the page `at`, whose answers come in the completion queue of the
/// same number (5.4).
pub fn create_submission(pair: u16, entries: u16, at: u64) -> Command {
    let how = u32::from(pair) << 16 | CONTIGUOUS;
    queue(code::CREATE_SUBMISSION, pair, entries, at, how)
}

/// Asks to end command number `id` of a pair early (5.1). It has its own answer either way.
pub fn abort(pair: u16, id: u16) -> Command {
    command(code::ABORT, 0).with(u32::from(id) << 16 | u32::from(pair), 0)
}

/// Reads `count` blocks, 1 to [`MOST_BLOCKS`] (6.9).
#[inline]
pub fn read(namespace: u32, first: u64, count: u32, to: Pointers) -> Command {
    let command = command(code::READ, namespace).pointing(to);
    command.with_blocks(first, count, 0)
}

/// Writes `count` blocks, 1 to [`MOST_BLOCKS`]; `durable`: they are on stable storage before the
/// answer (6.15).
#[inline]
pub fn write(namespace: u32, first: u64, count: u32, from: Pointers, durable: bool) -> Command {
    let flags = if durable { DURABLE } else { 0 };
    let command = command(code::WRITE, namespace).pointing(from);
    command.with_blocks(first, count, flags)
}

/// Fills `count` blocks, 1 to [`MOST_BLOCKS`], with zeros (6.17).
#[inline]
pub fn write_zeroes(namespace: u32, first: u64, count: u32, durable: bool) -> Command {
    let flags = if durable { DURABLE } else { 0 };
    command(code::WRITE_ZEROES, namespace).with_blocks(first, count, flags)
}

/// Puts all that was written on stable storage (6.8).
#[inline]
pub fn flush(namespace: u32) -> Command {
    command(code::FLUSH, namespace)
}

/// Says that the blocks of one [`range`], which lies at `from`, are not needed any more (6.7).
pub fn discard(namespace: u32, from: Pointers) -> Command {
    let command = command(code::DATASET_MANAGEMENT, namespace).pointing(from);
    // The number of ranges begins with one.
    command.with(0, DEALLOCATE)
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

    /// The words of the specification, which have 32 bits.
    fn words(command: Command) -> [u32; 16] {
        core::array::from_fn(|word| (command.0[word / 2] >> (word % 2 * 32)) as u32)
    }

    #[test]
    fn a_write_has_all_its_words() {
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
        assert_eq!(words(write(7, 0x3_0000_0004, 8, WHERE, true)), wanted);
        assert_eq!(words(write(7, 4, MOST_BLOCKS, WHERE, false))[12], 0xffff);
    }

    #[test]
    fn the_others_differ_as_they_should() {
        assert_eq!(words(read(1, 5, 1, WHERE))[..2], [2, 1]);
        assert_eq!(words(read(1, 5, 1, WHERE))[10..13], [5, 0, 0]);
        assert_eq!(words(write_zeroes(1, 5, 2, false))[10..13], [5, 0, 1]);
        assert_eq!(words(flush(1))[..2], [0, 1]);
        assert_eq!(words(discard(1, WHERE))[10..12], [0, 4]);
        assert_eq!(
            range(9, 3),
            [0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn admin_commands() {
        let made = words(create_completion(2, 64, 0x5000, Some(3)));
        assert_eq!((made[0], made[6]), (5, 0x5000));
        assert_eq!(made[10..12], [63 << 16 | 2, 3 << 16 | 3]);
        assert_eq!(words(create_completion(2, 64, 0x5000, None))[11], 1);
        let made = words(create_submission(2, 64, 0x5000));
        assert_eq!(made[10..12], [63 << 16 | 2, 2 << 16 | 1]);
        assert_eq!(words(abort(1, 9))[10], 9 << 16 | 1);
        assert_eq!(words(smart(0))[10], 127 << 16 | 2);
        assert_eq!(words(ask_for_pairs(2))[10..12], [7, 1 << 16 | 1]);
        assert_eq!(granted_pairs(63 << 16 | 3), 4);
        assert_eq!(granted_pairs(u32::MAX), 0x1_0000);
    }
}
