//! The log: a line goes to the launcher and into a ring of the last 64 KiB.

use crate::host::host;
use core::fmt::{self, Write};
use isolation::lock::Lock;

const RING_BYTES: usize = 64 * 1024;
/// Longest line that is kept, in bytes.
const LONGEST: usize = 1200;

struct Ring {
    bytes: [u8; RING_BYTES],
    /// Bytes ever written.
    written: u64,
}

static RING: Lock<Ring> = Lock::new(Ring {
    bytes: [0; RING_BYTES],
    written: 0,
});

impl Ring {
    fn push(&mut self, text: &[u8]) {
        let at = (self.written % RING_BYTES as u64) as usize;
        let (head, tail) = text.split_at(text.len().min(RING_BYTES - at));
        self.bytes[at..at + head.len()].copy_from_slice(head);
        // A line is far shorter than the ring.
        self.bytes[..tail.len()].copy_from_slice(tail);
        self.written += text.len() as u64;
    }

    /// Text from position `from` on into `buffer`; where it starts and how much it is.
    fn read(&self, from: u64, buffer: &mut [u8]) -> (u64, usize) {
        let start = from
            .max(self.written.saturating_sub(RING_BYTES as u64))
            .min(self.written);
        let count = buffer.len().min((self.written - start) as usize);
        for (at, byte) in (start..).zip(&mut buffer[..count]) {
            *byte = self.bytes[(at % RING_BYTES as u64) as usize];
        }
        (start, count)
    }
}

/// A line that is being written; what does not fit is cut off.
struct Line {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte stays for the end of the line.
        let count = text.len().min(LONGEST - 1 - self.len);
        self.bytes[self.len..self.len + count].copy_from_slice(&text.as_bytes()[..count]);
        self.len += count;
        Ok(())
    }
}

fn formatted(text: fmt::Arguments<'_>) -> Line {
    let now = (host().now)() / 1000;
    let mut line = Line {
        bytes: [0; LONGEST],
        len: 0,
    };
    // Cutting off is no error.
    let _ = write!(
        line,
        "[{:5}.{:06}] {text}",
        now / 1_000_000,
        now % 1_000_000
    );
    line.bytes[line.len] = b'\n';
    line.len += 1;
    line
}

/// Writes a line to the log.
pub fn line(text: fmt::Arguments<'_>) {
    let line = formatted(text);
    RING.lock().push(&line.bytes[..line.len]);
    if (host().quiet)() == 0 {
        put(&line);
    }
}

/// Prints a line and nothing else; for when everything is lost.
pub fn print(text: fmt::Arguments<'_>) {
    put(&formatted(text));
}

fn put(line: &Line) {
    // SAFETY: the line is lent for the call.
    unsafe { (host().write)(line.bytes.as_ptr() as usize, line.len) };
}

/// Text of the log from position `from` on into `buffer`; the position behind it and how many
/// bytes.
pub fn read(from: u64, buffer: &mut [u8]) -> (u64, usize) {
    let (start, count) = RING.lock().read(from, buffer);
    (start + count as u64, count)
}
