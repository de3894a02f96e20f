//! What is done at the start of a driver, and by its threads.

use alloc::vec::Vec;

use domain_rt::processors::PerProcessor;
use domain_rt::{log, time};
use interfaces::{Handle, HardwareError, Interrupt, PciError, RpcError};

/// How long a resource is waited for, and how long between two attempts, in nanoseconds.
const WAIT: u64 = 2_000_000_000;
const PAUSE: u64 = 1_000_000;
/// Lines of a device. What can be under way is shared by them, since the pages that a driver may
/// have held are bounded.
pub const MOST_LINES: usize = 4;

/// Asks for a resource until it is free: a driver that died may have lost the function already, and
/// not yet all that it had of it.
///
/// # Errors
/// That of the last attempt.
pub fn patiently<T>(mut ask: impl FnMut() -> Result<T, PciError>) -> Result<T, PciError> {
    let deadline = time::now() + WAIT;
    loop {
        match ask() {
            Err(PciError::Resource(HardwareError::InUse)) if time::now() < deadline => {
                time::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

/// What the start of a driver answers when a call has failed. It is told as such, whoever made it:
/// where memory was wanting the start is worth another try.
pub fn refusal(error: &PciError) -> RpcError {
    match error {
        PciError::Rpc(error) | PciError::Resource(HardwareError::Rpc(error)) => *error,
        _ => RpcError::Refused,
    }
}

/// Interrupts for the lines of a device, as `ask` gets them, which is told the number of a line:
/// one for each processor, as long as there are vectors, `most` and [`MOST_LINES`] at most.
///
/// # Errors
/// That of the first.
pub fn interrupts(
    most: usize,
    ask: impl Fn(u16) -> Result<Handle<dyn Interrupt>, PciError>,
) -> Result<Vec<Handle<dyn Interrupt>>, PciError> {
    let mut interrupts = Vec::new();
    for number in 0..most.clamp(1, MOST_LINES) as u16 {
        match patiently(|| ask(number)) {
            Ok(interrupt) => interrupts.push(interrupt),
            Err(PciError::NoSuchDevice | PciError::Resource(HardwareError::NoSuchResource))
                if number > 0 =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(interrupts)
}

/// Which line a thread gives to first: each processor has its own, as far as there are so many.
pub struct Order {
    first: PerProcessor<usize>,
    lines: usize,
}

impl Order {
    /// For so many lines.
    pub fn new(lines: usize) -> Self {
        let mut numbers = (0..lines.max(1)).cycle();
        Order {
            first: PerProcessor::new(|| numbers.next().unwrap_or(0)),
            lines,
        }
    }

    /// The numbers of all lines, that of the processor where the thread is first.
    pub fn from_here(&self) -> impl Iterator<Item = usize> {
        // Of one line it is known without looking where the thread is.
        let here = match self.lines {
            0 | 1 => 0,
            _ => *self.first.mine(),
        };
        all_from(here, self.lines)
    }
}

/// The numbers below `count`, from `here` on and then those before.
fn all_from(here: usize, count: usize) -> impl Iterator<Item = usize> {
    (here..count).chain(0..here)
}

/// Calls `take` at each interrupt, for as long as the domain lives. The count is read before it is
/// looked at the device, so an interrupt in between ends the next wait at once.
pub fn at_interrupts(interrupt: &Handle<dyn Interrupt>, take: impl Fn()) {
    let Ok(mut seen) = interrupt.count() else {
        return;
    };
    loop {
        take();
        match interrupt.wait(seen, None) {
            Ok(count) => seen = count,
            Err(error) => {
                log!("no more interrupts: {error}");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_comes_once_and_the_own_one_first() {
        assert_eq!(all_from(2, 4).collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!(all_from(0, 0).count(), 0);
        // More parts than lines, and more lines than parts.
        for lines in [1, 3, 20] {
            let order = Order::new(lines);
            assert!(order.first.all().all(|first| *first < lines));
            let mut all: Vec<_> = order.from_here().collect();
            all.sort_unstable();
            assert_eq!(all, (0..lines).collect::<Vec<_>>());
        }
    }
}
