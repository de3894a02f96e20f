//! The state of a pipe: a bounded buffer, and who still has its ends open.
//!
//! No locks and no waits: [`Pipe::read`] and [`Pipe::write`] say when the caller has to wait, and
//! the owner blocks it until something changed. Any call that changes something may end somebody's
//! wait.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

use alloc::collections::VecDeque;

/// Most bytes that a pipe holds.
pub const CAPACITY: usize = 64 * 1024;

/// Fewest bytes of a buffer.
const LEAST: usize = 512;

/// A write of at most this many bytes is never torn by another writer's.
pub const ATOMIC: usize = 4096;

/// Why a read or write could not be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Wait for the other side, then try again.
    Wait,
    /// Nobody has the reading end open.
    Broken,
    /// No memory for the buffer.
    NoMemory,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end to read from.
    Read,
    /// The end to write to.
    Write,
}

/// A pipe.
pub struct Pipe {
    buffer: VecDeque<u8>,
    readers: usize,
    writers: usize,
    /// Somebody may open it to read when nobody does.
    has_name: bool,
    /// The most bytes that it holds.
    room: usize,
}

impl Default for Pipe {
    fn default() -> Self {
        Self::new()
    }
}

impl Pipe {
    /// An empty pipe with one reader and one writer. It takes memory only for what is in it.
    pub const fn new() -> Self {
        Pipe {
            buffer: VecDeque::new(),
            readers: 1,
            writers: 1,
            has_name: false,
            room: CAPACITY,
        }
    }

    /// An empty pipe that nobody has open yet, and that may be opened again. What is in it stays
    /// for the next reader for as long as somebody has it open.
    pub const fn with_name() -> Self {
        Pipe {
            buffer: VecDeque::new(),
            readers: 0,
            writers: 0,
            has_name: true,
            room: CAPACITY,
        }
    }

    /// Has it hold less than [`CAPACITY`], and [`ATOMIC`] at least.
    pub fn set_room(&mut self, bytes: usize) {
        self.room = bytes.clamp(ATOMIC, CAPACITY);
    }

    /// Somebody opens an end.
    pub fn open(&mut self, end: End) {
        match end {
            End::Read => self.readers += 1,
            End::Write => self.writers += 1,
        }
    }

    /// How many have an end open.
    pub fn holders(&self, end: End) -> usize {
        match end {
            End::Read => self.readers,
            End::Write => self.writers,
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Moves bytes out, as many as there are and fit; `Ok(0)` is the end: all read and no writer
    /// left.
    ///
    /// # Errors
    /// [`Blocked::Wait`] when it is empty and somebody may still write.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, Blocked> {
        if self.buffer.is_empty() && self.writers > 0 && !out.is_empty() {
            return Err(Blocked::Wait);
        }
        let count = self.buffer.len().min(out.len());
        let (first, second) = self.buffer.as_slices();
        let cut = first.len().min(count);
        out[..cut].copy_from_slice(&first[..cut]);
        out[cut..count].copy_from_slice(&second[..count - cut]);
        self.buffer.drain(..count);
        Ok(count)
    }

    /// Puts bytes back that were read last. Where there is no memory for them they are lost.
    pub fn give_back(&mut self, bytes: &[u8]) {
        if self.buffer.try_reserve(bytes.len()).is_ok() {
            bytes
                .iter()
                .rev()
                .for_each(|byte| self.buffer.push_front(*byte));
        }
    }

    /// Moves bytes in; how many. At most [`ATOMIC`] bytes go in together or not at all.
    ///
    /// # Errors
    /// [`Blocked::Wait`] when there is no room, [`Blocked::Broken`] when nobody can read it any
    /// more, [`Blocked::NoMemory`] when the buffer cannot grow. Nothing was written then.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, Blocked> {
        self.write_charged(data, |_| true)
    }

    /// As [`write`](Self::write). Before the buffer grows, `may_have` is asked whether it may have
    /// so many bytes; if not, that is [`Blocked::NoMemory`].
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_charged(
        &mut self,
        data: &[u8],
        may_have: impl FnOnce(usize) -> bool,
    ) -> Result<usize, Blocked> {
        if self.readers == 0 {
            return Err(Blocked::Broken);
        }
        let room = self.room.saturating_sub(self.buffer.len());
        if data.len() <= ATOMIC && room < data.len() || room == 0 && !data.is_empty() {
            return Err(Blocked::Wait);
        }
        let count = room.min(data.len());
        self.make_room(self.buffer.len() + count, may_have)?;
        self.buffer.extend(&data[..count]);
        Ok(count)
    }

    /// Has the buffer hold `bytes` bytes, of at most [`CAPACITY`].
    fn make_room(
        &mut self,
        bytes: usize,
        may_have: impl FnOnce(usize) -> bool,
    ) -> Result<(), Blocked> {
        let before = self.buffer.capacity();
        if bytes <= before {
            return Ok(());
        }
        // As much again as there was, so that many small writes do not copy it each time.
        let wanted = bytes.next_power_of_two().clamp(LEAST, CAPACITY);
        if !may_have(wanted) {
            return Err(Blocked::NoMemory);
        }
        let more = wanted - self.buffer.len();
        self.buffer
            .try_reserve_exact(more)
            .map_err(|_| Blocked::NoMemory)
    }

    /// Whether one can read from, or write to, it now without waiting, or is told at once that it
    /// is of no use any more.
    pub fn is_ready(&self, end: End) -> bool {
        match end {
            End::Read => !self.buffer.is_empty() || self.writers == 0,
            End::Write => {
                self.room.saturating_sub(self.buffer.len()) >= ATOMIC || self.readers == 0
            }
        }
    }

    /// Bytes of its buffer.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// One holder of an end is gone. What is in the pipe goes with the last who could read it.
    pub fn close(&mut self, end: End) {
        match end {
            End::Write => self.writers = self.writers.saturating_sub(1),
            End::Read => self.readers = self.readers.saturating_sub(1),
        }
        let may_be_read = self.readers > 0 || self.has_name && self.writers > 0;
        if !may_be_read {
            self.buffer = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn bytes_come_out_in_order_across_the_wrap() {
        let mut pipe = Pipe::new();
        let mut next_in = 0u8;
        let mut next_out = 0u8;
        let mut buffer = [0; 1000];
        for _ in 0..500 {
            let data: vec::Vec<u8> = (0..777).map(|i| next_in.wrapping_add(i as u8)).collect();
            let wrote = pipe.write(&data).expect("room");
            next_in = next_in.wrapping_add(wrote as u8);
            let count = pipe.read(&mut buffer).expect("data");
            for byte in &buffer[..count] {
                assert_eq!(*byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
        }
        assert_eq!(next_in, next_out);
    }

    #[test]
    fn a_pipe_is_ready_where_nobody_would_wait() {
        let mut pipe = Pipe::new();
        assert!(!pipe.is_ready(End::Read) && pipe.is_ready(End::Write));
        pipe.write(&[1; CAPACITY - ATOMIC + 1])
            .expect("there is room");
        assert!(pipe.is_ready(End::Read) && !pipe.is_ready(End::Write));
        pipe.close(End::Read);
        assert!(pipe.is_ready(End::Write), "it is told that nobody reads");
        let mut pipe = Pipe::new();
        pipe.close(End::Write);
        assert!(pipe.is_ready(End::Read), "it is told of the end");
    }

    #[test]
    fn an_empty_pipe_waits_and_ends_with_its_last_writer() {
        let mut pipe = Pipe::new();
        let mut buffer = [0; 8];
        assert_eq!(pipe.read(&mut buffer), Err(Blocked::Wait));
        pipe.write(b"x").expect("room");
        pipe.close(End::Write);
        assert_eq!(pipe.read(&mut buffer), Ok(1));
        assert_eq!(pipe.read(&mut buffer), Ok(0));
        assert_eq!(pipe.read(&mut buffer), Ok(0));
    }

    #[test]
    fn a_pipe_without_readers_is_broken_and_empty() {
        let mut pipe = Pipe::new();
        pipe.write(&[7; 1000]).expect("room");
        pipe.close(End::Read);
        assert_eq!(pipe.write(b"x"), Err(Blocked::Broken));
        assert_eq!(pipe.buffer.capacity(), 0);
    }

    #[test]
    fn a_full_pipe_waits() {
        let mut pipe = Pipe::new();
        assert_eq!(pipe.write(&vec![1; CAPACITY + 5]), Ok(CAPACITY));
        assert_eq!(pipe.write(b"x"), Err(Blocked::Wait));
        assert_eq!(pipe.write(b""), Ok(0));
        let mut buffer = [0; 10];
        assert_eq!(pipe.read(&mut buffer), Ok(10));
        assert_eq!(pipe.write(&vec![2; ATOMIC + 1]), Ok(10));
    }

    #[test]
    fn a_buffer_grows_no_further_than_it_may() {
        let mut pipe = Pipe::new();
        let most = 4096;
        let write =
            |pipe: &mut Pipe, count| pipe.write_charged(&vec![1; count], |bytes| bytes <= most);
        assert_eq!(write(&mut pipe, 1), Ok(1));
        assert!(pipe.memory() >= 1 && pipe.memory() <= most);
        assert_eq!(write(&mut pipe, 4095), Ok(4095));
        assert_eq!(write(&mut pipe, 1), Err(Blocked::NoMemory));
        assert_eq!(pipe.read(&mut [0; 100]), Ok(100));
        assert_eq!(write(&mut pipe, 100), Ok(100));
        assert!(pipe.memory() <= most);
        assert_eq!(pipe.write(&vec![2; CAPACITY]), Ok(CAPACITY - 4096));
        assert_eq!(pipe.memory(), CAPACITY);
        pipe.close(End::Read);
        assert_eq!(pipe.memory(), 0);
    }

    #[test]
    fn a_small_pipe_waits_earlier() {
        let mut pipe = Pipe::new();
        pipe.set_room(0);
        assert_eq!(pipe.write(&vec![1; CAPACITY]), Ok(ATOMIC));
        assert!(!pipe.is_ready(End::Write));
        assert_eq!(pipe.write(b"x"), Err(Blocked::Wait));
        assert_eq!(pipe.read(&mut [0; ATOMIC]), Ok(ATOMIC));
        assert_eq!(pipe.write(&[1; ATOMIC]), Ok(ATOMIC));
        assert_eq!(pipe.memory(), ATOMIC);
    }

    #[test]
    fn what_is_given_back_is_read_again() {
        let mut pipe = Pipe::new();
        pipe.write(b"abcd").expect("room");
        let mut buffer = [0; 3];
        assert_eq!(pipe.read(&mut buffer), Ok(3));
        pipe.give_back(&buffer);
        assert_eq!(pipe.read(&mut buffer), Ok(3));
        assert_eq!(&buffer, b"abc");
    }

    #[test]
    fn a_small_write_is_never_torn() {
        let mut pipe = Pipe::new();
        pipe.write(&vec![1; CAPACITY - 10]).expect("room");
        assert_eq!(pipe.write(&[2; 11]), Err(Blocked::Wait));
        assert_eq!(pipe.write(&[2; 10]), Ok(10));
    }

    #[test]
    fn closing_too_often_does_no_harm() {
        let mut pipe = Pipe::new();
        for _ in 0..3 {
            pipe.close(End::Write);
            pipe.close(End::Read);
        }
        assert_eq!(pipe.read(&mut [0; 4]), Ok(0));
    }

    #[test]
    fn a_pipe_with_a_name_keeps_what_is_in_it_for_the_next_reader() {
        let mut pipe = Pipe::with_name();
        assert_eq!(pipe.holders(End::Read) + pipe.holders(End::Write), 0);
        assert_eq!(pipe.write(b"x"), Err(Blocked::Broken));
        pipe.open(End::Read);
        pipe.open(End::Write);
        pipe.write(b"abc").expect("room");
        pipe.close(End::Read);
        assert_eq!(pipe.write(b"x"), Err(Blocked::Broken));
        pipe.open(End::Read);
        let mut buffer = [0; 8];
        assert_eq!(pipe.read(&mut buffer), Ok(3));
        assert_eq!(pipe.read(&mut buffer), Err(Blocked::Wait));
        pipe.write(b"d").expect("room");
        pipe.close(End::Read);
        pipe.close(End::Write);
        assert!(pipe.is_empty() && pipe.memory() == 0, "nobody has it");
        pipe.open(End::Read);
        assert_eq!(pipe.read(&mut buffer), Ok(0));
    }

    #[test]
    fn an_empty_buffer_never_waits() {
        assert_eq!(Pipe::new().read(&mut []), Ok(0));
    }
}
