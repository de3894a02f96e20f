//! The last bytes of the log, and how far each serial line has come with them. Pure logic: a line
//! is a trait.

/// The last `N` bytes that were written.
pub(crate) struct Ring<const N: usize> {
    bytes: [u8; N],
    /// Bytes ever written.
    written: u64,
}

impl<const N: usize> Ring<N> {
    /// An empty one.
    pub const fn new() -> Self {
        Ring {
            bytes: [0; N],
            written: 0,
        }
    }

    /// Bytes ever written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes `text` over what is oldest.
    pub fn push(&mut self, text: &[u8]) {
        for &byte in text {
            self.bytes[(self.written % N as u64) as usize] = byte;
            self.written += 1;
        }
    }

    /// The position of the oldest byte that is kept.
    fn oldest(&self) -> u64 {
        self.written.saturating_sub(N as u64)
    }

    /// The position of the first end of a line that is kept; behind the last byte if there is none.
    fn first_end(&self) -> u64 {
        let is_end = |at: &u64| self.bytes[(at % N as u64) as usize] == b'\n';
        let mut kept = self.oldest()..self.written;
        kept.find(is_end).unwrap_or(self.written)
    }

    /// Copies bytes from position `from` on into `buffer`: the position of the first, and how many.
    pub fn read(&self, from: u64, buffer: &mut [u8]) -> (u64, usize) {
        let start = from.clamp(self.oldest(), self.written);
        let count = buffer.len().min((self.written - start) as usize);
        for (at, byte) in (start..).zip(&mut buffer[..count]) {
            *byte = self.bytes[(at % N as u64) as usize];
        }
        (start, count)
    }
}

/// Where bytes go, a few at a time.
pub(crate) trait Line {
    /// How many bytes it takes now without being waited for.
    fn room(&mut self) -> usize;
    /// Sends a byte, for which there is room.
    fn put(&mut self, byte: u8);
}

/// What a call of [`Sent::some`] leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// The line has to be waited for.
    Room,
    /// More.
    More,
}

/// How far a line has come.
pub(crate) struct Sent {
    /// The next byte to be sent.
    next: u64,
    /// The carriage return in front of it was sent.
    returned: bool,
    /// Bytes that were overwritten before they could be sent.
    lost: u64,
}

impl Sent {
    /// At the start.
    pub const fn new() -> Self {
        Sent {
            next: 0,
            returned: false,
            lost: 0,
        }
    }

    /// Leaves out what was not sent yet.
    pub fn skip<const N: usize>(&mut self, ring: &Ring<N>) {
        (self.next, self.returned) = (ring.written(), false);
    }

    /// Whether everything before position `end` was sent or left out.
    pub fn is_past(&self, end: u64) -> bool {
        self.next >= end
    }

    /// Sends as much as fits into the line at once.
    pub fn some<const N: usize>(&mut self, ring: &Ring<N>, line: &mut impl Line) -> Left {
        if self.next < ring.oldest() {
            // A line goes on with its end and no other byte: what a domain has written in the
            // middle of one is never the beginning of another.
            let next = ring.first_end();
            self.lost += next - self.next;
            (self.next, self.returned) = (next, false);
        }
        if self.next == ring.written() {
            return Left::Nothing;
        }
        let room = line.room();
        if room == 0 {
            return Left::Room;
        }
        for _ in 0..room {
            if self.next == ring.written() {
                return Left::Nothing;
            }
            let byte = ring.bytes[(self.next % N as u64) as usize];
            if byte == b'\n' && !self.returned {
                line.put(b'\r');
                self.returned = true;
            } else {
                line.put(byte);
                self.returned = false;
                self.next += 1;
            }
        }
        Left::More
    }

    /// Bytes that are still to be sent, or lost.
    #[cfg(feature = "selftest")]
    pub fn left<const N: usize>(&self, ring: &Ring<N>) -> u64 {
        ring.written() - self.next
    }

    /// Bytes that were lost since the last time that this was asked.
    pub fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wire {
        room: usize,
        sent: Vec<u8>,
        asked: usize,
    }

    fn wire(room: usize) -> Wire {
        let sent = Vec::new();
        Wire {
            room,
            sent,
            asked: 0,
        }
    }

    impl Line for Wire {
        fn room(&mut self) -> usize {
            self.asked += 1;
            self.room
        }
        fn put(&mut self, byte: u8) {
            self.sent.push(byte);
        }
    }

    #[test]
    fn everything_is_sent_in_order_a_few_bytes_at_a_time() {
        for room in [1, 2, 3, 16] {
            let (mut ring, mut sent, mut wire) = (Ring::<64>::new(), Sent::new(), wire(room));
            for text in ["one\n", "\n", "two and three\n"] {
                ring.push(text.as_bytes());
                loop {
                    let before = wire.sent.len();
                    let left = sent.some(&ring, &mut wire);
                    assert!(wire.sent.len() - before <= room);
                    if left == Left::Nothing {
                        break;
                    }
                    assert_eq!(left, Left::More);
                }
            }
            assert_eq!(wire.sent, b"one\r\n\r\ntwo and three\r\n");
            assert_eq!(sent.take_lost(), 0);
        }
    }

    #[test]
    fn a_full_line_is_asked_once_and_not_waited_for() {
        let (mut ring, mut sent, mut wire) = (Ring::<64>::new(), Sent::new(), wire(0));
        ring.push(b"text");
        assert_eq!(sent.some(&ring, &mut wire), Left::Room);
        assert_eq!((wire.asked, wire.sent.len()), (1, 0));
    }

    #[test]
    fn what_is_overwritten_before_it_is_sent_is_counted() {
        let (mut ring, mut sent, mut wire) = (Ring::<16>::new(), Sent::new(), wire(16));
        ring.push(b"one");
        while sent.some(&ring, &mut wire) != Left::Nothing {}
        ring.push(&[b'a'; 17]);
        ring.push(b"bbb\nwhole line\nc");
        while sent.some(&ring, &mut wire) != Left::Nothing {}
        assert_eq!(wire.sent, b"one\r\nwhole line\r\nc");
        assert_eq!((sent.take_lost(), sent.take_lost()), (20, 0));
        ring.push(&[b'd'; 17]);
        while sent.some(&ring, &mut wire) != Left::Nothing {}
        assert_eq!((sent.take_lost(), sent.is_past(53)), (17, true));
    }

    #[test]
    fn what_is_skipped_is_not_lost() {
        let (mut ring, mut sent, mut wire) = (Ring::<16>::new(), Sent::new(), wire(16));
        ring.push(b"old");
        assert!(!sent.is_past(3));
        sent.skip(&ring);
        ring.push(b"new");
        assert!(sent.is_past(3) && !sent.is_past(4));
        while sent.some(&ring, &mut wire) != Left::Nothing {}
        assert_eq!((wire.sent.as_slice(), sent.take_lost()), (&b"new"[..], 0));
    }

    #[test]
    fn the_last_bytes_can_be_read() {
        let mut ring = Ring::<16>::new();
        ring.push(b"0123456789abcdefghij");
        let mut buffer = [0; 8];
        assert_eq!(ring.read(0, &mut buffer), (4, 8));
        assert_eq!(&buffer, b"456789ab");
        assert_eq!(ring.read(18, &mut buffer), (18, 2));
        assert_eq!(ring.read(u64::MAX, &mut buffer), (20, 0));
    }
}
