//! A counter that one waits at (`eventfd(2)`).

use crate::errno::{EINVAL, Error};

/// What it counts to at most.
const MOST: u64 = u64::MAX - 1;

/// The counter.
#[derive(Debug)]
pub struct Counter {
    value: u64,
    /// Each read takes one.
    is_semaphore: bool,
}

impl Counter {
    /// One that begins with a number.
    pub fn new(value: u32, is_semaphore: bool) -> Self {
        Counter {
            value: value.into(),
            is_semaphore,
        }
    }

    /// What it has counted, or one of that; `None`: nothing, so one waits.
    pub fn take(&mut self) -> Option<u64> {
        let taken = match self.is_semaphore {
            true => self.value.min(1),
            false => self.value,
        };
        self.value -= taken;
        Some(taken).filter(|taken| *taken > 0)
    }

    /// Adds a number; `false`: it is too much now, so one waits.
    ///
    /// # Errors
    /// `EINVAL`: it would always be.
    pub fn add(&mut self, number: u64) -> Result<bool, Error> {
        if number > MOST {
            return Err(EINVAL);
        }
        let fits = number <= MOST - self.value;
        self.value += if fits { number } else { 0 };
        Ok(fits)
    }

    /// Whether there is something to take.
    pub fn has_some(&self) -> bool {
        self.value > 0
    }

    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.value < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_taken_at_once() {
        let mut counter = Counter::new(3, false);
        assert_eq!(counter.add(4), Ok(true));
        assert_eq!((counter.take(), counter.take()), (Some(7), None));
        assert!(!counter.has_some());
    }

    #[test]
    fn of_a_semaphore_one_is_taken() {
        let mut counter = Counter::new(2, true);
        assert_eq!((counter.take(), counter.take()), (Some(1), Some(1)));
        assert_eq!(counter.take(), None);
    }

    #[test]
    fn it_does_not_overflow() {
        let mut counter = Counter::new(0, false);
        assert_eq!(counter.add(u64::MAX), Err(EINVAL));
        assert_eq!(counter.add(MOST - 1), Ok(true));
        assert_eq!((counter.has_room(), counter.add(2)), (true, Ok(false)));
        assert_eq!((counter.add(1), counter.has_room()), (Ok(true), false));
        assert_eq!((counter.add(0), counter.add(1)), (Ok(true), Ok(false)));
        assert_eq!(counter.take(), Some(MOST));
    }
}
