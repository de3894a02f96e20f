//! How the objects of a foe misbehave when they are called, or dropped.

use crate::foe::{Hand, Shared};
use crate::random::Random;
use alloc::sync::Arc;
use core::hint::black_box;
use domain_rt::sync::Mutex;
use domain_rt::time;
use hostile_calls::{Mind, Source};

/// Long enough for the foe to be killed first, in nanoseconds.
const LONG: u64 = 600_000_000_000;
/// How long a drop takes that takes long: whoever drops the last handle waits for it.
const SHORT: u64 = 20_000_000;
/// How deep answers may lead into further calls.
const DEEPEST: u32 = 6;

/// The mind of one object.
pub struct Temper {
    shared: Arc<Shared>,
    random: Mutex<Random>,
    thread: u32,
}

impl Temper {
    /// One that belongs to what thread number `thread` does.
    pub fn new(shared: Arc<Shared>, random: Random, thread: u32) -> Self {
        Temper {
            shared,
            random: Mutex::new(random),
            thread,
        }
    }

    fn numbers(&self) -> Random {
        let mut random = self.random.lock();
        Random::of(random.next(), 0)
    }
}

impl Mind for Temper {
    fn think(&self, work: &mut dyn FnMut(&mut dyn Source)) {
        let mut random = self.numbers();
        match random.below(64) {
            0 => panic!("a rogue panics when it is called"),
            1 => spin(),
            2 => time::sleep(LONG),
            3..=6 => time::sleep(1_000_000),
            _ => {}
        }
        let mut hand = Hand::new(self.shared.clone(), random, self.thread);
        if hand.random() & 7 == 0 {
            self.shared.deeper(DEEPEST, || hand.step(usize::MAX));
        }
        work(&mut hand);
    }
}

impl Drop for Temper {
    fn drop(&mut self) {
        match self.numbers().below(256) {
            0 => panic!("a rogue panics when it is dropped"),
            1 => time::sleep(SHORT),
            _ => {}
        }
    }
}

fn spin() {
    let mut turns = 0u64;
    while black_box(turns) < u64::MAX {
        turns += 1;
    }
}
