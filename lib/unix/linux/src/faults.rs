//! What a program did that it must not.

use crate::errno::{SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use crate::memory::Memory;

/// So often in a row a program may meet one address that it cannot execute though it is there.
/// Another thread may have had the page made ready meanwhile, but hardly so often.
const PATIENCE: u32 = 3;

/// The signal for an exception of the processor, by its vector.
pub fn signal_of(vector: u8) -> u32 {
    match vector {
        0 | 16 | 19 => SIGFPE,
        1 | 3 => SIGTRAP,
        6 => SIGILL,
        _ => SIGSEGV,
    }
}

/// Where a thread could not execute last. A page that may be read and not executed is ready as far
/// as [`Memory::touch`] knows, so the program would meet it again for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stuck {
    at: u64,
    times: u32,
}

impl Stuck {
    /// A thread could not execute what is at an address; whether it may try again once the page is
    /// touched.
    pub fn tries_again(&mut self, space: &impl Memory, at: u64) -> bool {
        // Most come once, and are not looked at.
        let was_there = self.at == at && space.peek(at, &mut [0]) == 1;
        self.times = if was_there { self.times + 1 } else { 0 };
        self.at = at;
        self.times < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use crate::memory::{EXECUTE, PAGE, READ, WRITE};

    const AT: u64 = 0x40_0000;

    fn tries(stuck: &mut Stuck, space: &Fake, at: u64) -> bool {
        let again = stuck.tries_again(space, at);
        again && space.touch(at, false).is_ok()
    }

    #[test]
    fn exceptions_have_their_signals() {
        let signals = [0, 3, 6, 13, 14, 255].map(signal_of);
        let right = [SIGFPE, SIGTRAP, SIGILL, SIGSEGV, SIGSEGV, SIGSEGV];
        assert_eq!(signals, right);
    }

    #[test]
    fn who_executes_its_data_comes_to_an_end() {
        let (space, mut stuck) = (Fake::default(), Stuck::default());
        space.map_zero(AT, PAGE, READ | WRITE).expect("it is free");
        let times = (0..10).take_while(|_| tries(&mut stuck, &space, AT + 5));
        assert_eq!(times.count(), 3);
    }

    /// Code that comes and goes is met as often as it goes, and so is code at several places.
    #[test]
    fn who_makes_progress_goes_on() {
        let (space, mut stuck) = (Fake::default(), Stuck::default());
        for _ in 0..10 {
            let bits = READ | EXECUTE;
            space.map_zero(AT, 2 * PAGE, bits).expect("it is free");
            assert!(tries(&mut stuck, &space, AT));
            space.unmap(AT, 2 * PAGE).expect("it is there");
        }
        space.map_zero(AT, PAGE, READ).expect("it is free");
        space.touch(AT, false).expect("it may be read");
        for step in 0..10 {
            assert!(tries(&mut stuck, &space, AT + step % 2));
        }
    }
}
