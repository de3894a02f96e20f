//! The scenes under the model checker.
//!
//! Each is run under many schedules, half of them chosen at random, half by PCT, which finds an
//! error that takes `d` changes of thread with a known probability. `TREFOIL_MODEL_ROUNDS` sets how
//! many of each, `TREFOIL_MODEL_SEED` which. The same seed gives the same schedules. A failure
//! prints its schedule, with which `shuttle::replay` repeats it.

use super::scenes::{self, Scene, play};
use super::threads::{MODEL_STACK, as_model};
use crate::sync::{Broken, break_on_purpose};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};
use std::process::Command;
use std::string::String;
use std::sync::{Mutex, PoisonError};

/// Only one scene at a time: the tables of this crate are the process's.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Schedules of each kind for each scene, unless the environment says more.
const ROUNDS: usize = 25;
/// Changes of thread that PCT looks for.
const DEPTH: usize = 3;

const BROKEN: [Broken; 10] = [
    Broken::TestFirst,
    Broken::StopIsNoFence,
    Broken::NobodyLooks,
    Broken::HandlesAreNothing,
    Broken::LeaveFirst,
    Broken::TornCount,
    Broken::OwnerLate,
    Broken::ChunkLost,
    Broken::OwnerEarly,
    Broken::OpenedBlindly,
];

/// The number that the environment gives under this name.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs `scene` under many schedules.
fn check(scene: fn(&mut Scene)) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(name) = std::env::var("TREFOIL_MODEL_BREAK") {
        let broken = BROKEN
            .iter()
            .find(|broken| std::format!("{broken:?}") == name);
        break_on_purpose(*broken.expect("a step that can be broken"));
    }
    let seed = number("TREFOIL_MODEL_SEED").unwrap_or(1);
    let rounds = number("TREFOIL_MODEL_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    run(PctScheduler::new_from_seed(seed, DEPTH, rounds), scene);
    run(RandomScheduler::new_from_seed(seed, rounds), scene);
}

fn run(scheduler: impl Scheduler + 'static, scene: fn(&mut Scene)) {
    let mut config = Config::new();
    config.stack_size = MODEL_STACK;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(200_000);
    Runner::new(scheduler, config).run(move || {
        if let Some(what) = as_model(|| play(scene)) {
            panic!("in this schedule {what}");
        }
    });
}

scenes::each!(check);

/// Runs the check `name` in a process of its own with `broken` broken: it must fail, by what it saw
/// or because the heap's own count ran below zero.
fn must_notice(name: &str, broken: Broken) {
    let name = std::format!("model::checks::{name}");
    let output = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", &name, "--nocapture"])
        .env("TREFOIL_MODEL_BREAK", std::format!("{broken:?}"))
        .env("TREFOIL_MODEL_ROUNDS", "20000")
        .output()
        .expect("the tests can be run");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let noticed = ["in this schedule", "attempt to subtract with overflow"];
    let noticed = noticed.iter().any(|what| text.contains(what));
    assert!(
        noticed && !output.status.success(),
        "{broken:?} was not noticed: {text}"
    );
}

macro_rules! mutants {
    ($($name:ident: $scene:ident, $broken:ident;)*) => { $(
        #[test]
        fn $name() {
            must_notice(stringify!($scene), Broken::$broken);
        }
    )* };
}

mutants! {
    a_test_before_the_record_is_noticed: a_call_and_a_kill, TestFirst;
    a_stop_that_is_no_fence_is_noticed: a_call_and_a_kill, StopIsNoFence;
    a_reaper_that_does_not_look_is_noticed: a_call_and_a_kill, NobodyLooks;
    a_reaper_that_overlooks_handles_is_noticed: a_call_and_a_kill, HandlesAreNothing;
    a_result_that_comes_late_is_noticed: a_gift_and_a_kill, LeaveFirst;
    a_torn_count_is_noticed: the_last_drop, TornCount;
    an_owner_cleared_late_is_noticed: frees_beside_reclaim, OwnerLate;
    a_chunk_that_a_search_loses_is_noticed: drops_beside_reclaim, ChunkLost;
    a_proxy_owned_before_it_is_whole_is_noticed: a_look_at_handles, OwnerEarly;
    a_domain_opened_blindly_is_noticed: short_of_memory_and_a_kill, OpenedBlindly;
}
