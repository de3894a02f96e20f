//! The scenes on threads of Linux. `cargo xtask sanitize` runs these with AddressSanitizer and
//! ThreadSanitizer.

use super::checks::ONE_AT_A_TIME;
use super::scenes::{self, Scene, play};
use std::sync::PoisonError;

/// Runs of each scene, unless the environment says more.
const RUNS: usize = 200;

fn stress(scene: fn(&mut Scene)) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runs = std::env::var("TREFOIL_STRESS_RUNS");
    let runs = runs.map_or(RUNS, |text| text.parse().expect("a number of runs"));
    for run in 0..runs {
        if let Some(what) = play(scene) {
            panic!("in run {run} {what}");
        }
    }
}

scenes::each!(stress);
