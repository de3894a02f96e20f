//! The work that `cargo xtask bench memory` counts: reads and writes of memory that is shared, of a
//! few bytes and of pages, of pages that are there and of new ones.
//!
//! A system offers its nearest thing to a memory object as [`Memory`]. The machine's clock counts
//! instructions while this runs, so the best round is exact.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::hint::black_box;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Pages that are there.
pub const PAGES: u64 = 256;
/// Calls in one round.
const CALLS: u64 = 512;
/// Rounds; the best one counts, since only it was not interrupted.
const ROUNDS: u64 = 40;
/// Lines that [`run`] tells.
pub const LINES: usize = 6;
/// Lines that are told of address spaces, which are none of this crate's.
pub const LINES_OF_SPACES: usize = 6;

/// Memory that several programs may share, and that is reached by calls.
pub trait Memory {
    /// Why something could not be done.
    type Error;

    /// The clock, in nanoseconds.
    fn now() -> u64;

    /// Reads `length` bytes, 64 or a page, from byte `offset` on.
    ///
    /// # Errors
    /// The system's own.
    fn read(&mut self, offset: u64, length: usize) -> Result<(), Self::Error>;

    /// Writes `length` bytes, 64 or a page, at byte `offset`.
    ///
    /// # Errors
    /// The system's own.
    fn write(&mut self, offset: u64, length: usize) -> Result<(), Self::Error>;

    /// Takes all pages away.
    ///
    /// # Errors
    /// The system's own.
    fn clear(&mut self) -> Result<(), Self::Error>;
}

/// Where call number `call` goes: another page each time, and another place in it.
fn place(call: u64) -> u64 {
    call * 83 % PAGES * PAGE + call % 60 * 64
}

/// What each call of `work` takes in the best round, in nanoseconds, less what the loop itself
/// does.
fn per_call<M: Memory>(mut work: impl FnMut(u64) -> Result<(), M::Error>) -> Result<u64, M::Error> {
    let mut best = [u64::MAX; 2];
    for _ in 0..ROUNDS {
        let start = M::now();
        for call in 0..CALLS {
            black_box(place(black_box(call)));
        }
        best[0] = best[0].min(M::now() - start);
        let start = M::now();
        for call in 0..CALLS {
            work(black_box(call))?;
        }
        best[1] = best[1].min(M::now() - start);
    }
    Ok(best[1].saturating_sub(best[0]) / CALLS)
}

/// Does all the work, and tells a line for each figure.
///
/// # Errors
/// The first one.
pub fn run<M: Memory>(memory: &mut M, tell: &mut dyn FnMut(String)) -> Result<(), M::Error> {
    for page in 0..PAGES {
        memory.write(page * PAGE, PAGE as usize)?;
    }
    let mut line = |name: &str, value: u64| tell(line(name, value));
    line(
        "read of 64 bytes",
        per_call::<M>(|call| memory.read(place(call), 64))?,
    );
    line(
        "write of 64 bytes",
        per_call::<M>(|call| memory.write(place(call), 64))?,
    );
    let page = |call| place(call) / PAGE * PAGE;
    line(
        "read of 4 KiB",
        per_call::<M>(|call| memory.read(page(call), PAGE as usize))?,
    );
    line(
        "write of 4 KiB",
        per_call::<M>(|call| memory.write(page(call), PAGE as usize))?,
    );
    let (mut new, mut gone) = (u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        memory.clear()?;
        let start = M::now();
        for page in 0..PAGES {
            memory.write(black_box(page * PAGE), 64)?;
        }
        new = new.min((M::now() - start) / PAGES);
        let start = M::now();
        memory.clear()?;
        gone = gone.min((M::now() - start) / PAGES);
    }
    line("first write to a page", new);
    line("a page taken away", gone);
    Ok(())
}

/// A figure as a line.
pub fn line(name: &str, value: u64) -> String {
    format!("memorybench instructions \"{name}\" {value}")
}

/// Name and value of such a line.
pub fn parse_line(text: &str) -> Option<(&str, f64)> {
    let (_, rest) = text.split_once("memorybench instructions \"")?;
    let (name, value) = rest.split_once("\" ")?;
    Some((name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicU64, Ordering};

    static CLOCK: AtomicU64 = AtomicU64::new(0);

    /// A memory whose clock goes by what is done.
    struct Counted;

    impl Memory for Counted {
        type Error = ();
        fn now() -> u64 {
            CLOCK.load(Ordering::Relaxed)
        }
        fn read(&mut self, offset: u64, length: usize) -> Result<(), ()> {
            assert!(offset + length as u64 <= PAGES * PAGE);
            CLOCK.fetch_add(length as u64, Ordering::Relaxed);
            Ok(())
        }
        fn write(&mut self, offset: u64, length: usize) -> Result<(), ()> {
            self.read(offset, 2 * length.min(2048))
        }
        fn clear(&mut self) -> Result<(), ()> {
            CLOCK.fetch_add(7 * PAGES, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn each_figure_is_what_was_done() {
        let mut lines = Vec::new();
        run(&mut Counted, &mut |line| lines.push(line)).expect("nothing fails");
        assert_eq!(lines.len(), LINES);
        let values: Vec<_> = lines.iter().filter_map(|line| parse_line(line)).collect();
        let right = [64.0, 128.0, 4096.0, 4096.0, 128.0, 7.0];
        assert_eq!(
            values.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            right
        );
        assert_eq!(values[0].0, "read of 64 bytes");
        assert_eq!(parse_line("memorybench instructions \"x"), None);
    }
}
