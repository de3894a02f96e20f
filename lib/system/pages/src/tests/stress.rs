//! The scenes on threads of the host, with `core`'s atomics and the orders that the code names.

use super::checks::play;
use super::memory::Kit;
use super::scenes::{self, Scene};
use core::sync::atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::vec::Vec;

/// Runs of each scene, unless the environment says more.
const RUNS: usize = 500;

impl Kit for AtomicU64 {
    fn put(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    fn pause() {
        std::thread::yield_now();
    }
    fn together(bodies: Vec<Box<dyn FnOnce() + Send>>) {
        let start = |body| std::thread::spawn(body);
        let threads: Vec<_> = bodies.into_iter().map(start).collect();
        for thread in threads {
            thread.join().expect("it ended well");
        }
    }
}

fn stress(scene: fn() -> Scene<AtomicU64>) {
    let runs = std::env::var("TREFOIL_STRESS_RUNS");
    let runs = runs.map_or(RUNS, |text| text.parse().expect("a number of runs"));
    for _ in 0..runs {
        play(&scene(), None);
    }
}

scenes::each!(stress, AtomicU64);
