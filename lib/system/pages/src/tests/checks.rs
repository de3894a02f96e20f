//! The scenes under the model checker, which chooses at every access to a word who goes on.
//!
//! It explores sequentially consistent schedules alone. On x86-64 that is all there is: every store
//! of the protocol is a locked instruction, which leaves no store waiting. What the compiler may
//! turn round is for the orders in the code, and for [`super::stress`].

use super::memory::{Kit, Shared};
use super::scenes::{self, Scene};
use crate::{Step, Word};
use core::sync::atomic::Ordering;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::atomic::AtomicU64;
use shuttle::{Config, MaxSteps, Runner};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::vec::Vec;

/// Schedules of each kind for each scene.
const ROUNDS: usize = 3_000;
/// Changes of thread that PCT looks for.
const DEPTH: usize = 3;

impl crate::sealed::Honest for AtomicU64 {}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    fn replace(&self, from: u64, to: u64) -> Result<u64, u64> {
        self.compare_exchange(from, to, Ordering::SeqCst, Ordering::Acquire)
    }
}

impl Kit for AtomicU64 {
    fn put(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    fn pause() {
        shuttle::thread::yield_now();
    }
    fn together(bodies: Vec<Box<dyn FnOnce() + Send>>) {
        let start = |body| shuttle::thread::spawn(body);
        let threads: Vec<_> = bodies.into_iter().map(start).collect();
        for thread in threads {
            thread.join().expect("it ended well");
        }
    }
}

/// Plays a scene once.
pub fn play<W: Kit>(scene: &Scene<W>, broken: Option<Step>) {
    let shared = Arc::new(Shared::<W>::new(broken));
    let bodies = scene.threads.iter().map(|&act| {
        let shared = shared.clone();
        Box::new(move || act(&shared)) as Box<dyn FnOnce() + Send>
    });
    W::together(bodies.collect());
    (scene.end)(&shared);
    shared.is_empty_after();
}

fn run(scheduler: impl Scheduler + 'static, scene: fn() -> Scene<AtomicU64>, broken: Option<Step>) {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(20_000);
    Runner::new(scheduler, config).run(move || play(&scene(), broken));
}

fn explore(scene: fn() -> Scene<AtomicU64>, broken: Option<Step>) {
    run(PctScheduler::new_from_seed(1, DEPTH, ROUNDS), scene, broken);
    run(RandomScheduler::new_from_seed(1, ROUNDS), scene, broken);
}

fn check(scene: fn() -> Scene<AtomicU64>) {
    explore(scene, None);
}

scenes::each!(check, AtomicU64);

/// The scene must go wrong under some schedule when this step is broken.
fn must_notice(scene: fn() -> Scene<AtomicU64>, broken: Step) {
    let whole = catch_unwind(AssertUnwindSafe(|| explore(scene, Some(broken))));
    assert!(whole.is_err(), "{broken:?} was not noticed");
}

macro_rules! mutants {
    ($($name:ident: $scene:ident, $broken:ident;)*) => { $(
        #[test]
        fn $name() {
            must_notice(scenes::$scene, Step::$broken);
        }
    )* };
}

mutants! {
    no_second_look_at_a_removed_page_is_noticed: a_freeze_and_a_reader, SecondLook;
    no_second_look_at_a_cut_page_is_noticed: a_cut_and_a_reader, SecondLook;
    a_second_look_that_minds_no_load_is_noticed: a_reload_and_a_reader, SecondLookForLoading;
    a_mark_before_the_copy_is_noticed: a_write_and_a_clean, MarkLast;
    a_removal_of_what_is_written_back_is_noticed: a_write_back_and_a_remove, WriteBackKeeps;
    two_cleans_at_a_time_are_noticed: two_cleans, OneCleanAtATime;
    a_page_cleared_before_it_is_frozen_is_noticed: a_write_and_a_remove, FreezeFirst;
    a_mark_on_another_frame_is_noticed: a_write_and_a_cut, MarkThatFrame;
    a_load_without_a_count_is_noticed: a_load_that_breaks_off, LoadHolds;
    a_broken_load_that_leaves_its_frame_is_noticed: a_load_that_breaks_off, BreakOffEmpties;
    a_device_without_a_count_is_noticed: a_freeze_and_a_device, LoanHolds;
    a_device_without_a_count_is_noticed_at_a_cut: a_cut_and_a_device, LoanHolds;
    a_mark_of_a_device_on_another_frame_is_noticed: a_cut_and_a_device, MarkThatFrame;
    a_load_that_minds_no_device_is_noticed: a_load_by_a_device, LoanCounts;
    a_broken_load_that_wakes_nobody_is_noticed: a_load_that_breaks_off, BreakOffWakes;
    a_page_told_before_it_is_marked_is_noticed: writes_and_a_look, TellLast;
    an_alarm_quieted_after_the_look_is_noticed: writes_and_a_look, QuietFirst;
}
