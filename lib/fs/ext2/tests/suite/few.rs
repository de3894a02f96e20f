//! Which sequences `proptest` tries, and how many. `lib/fs/redo` includes this file in its tests,
//! too.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// So many cases, the same each time, so that a run can be had again; `PROPTEST_CASES` and
/// `PROPTEST_RNG_SEED` ask for more and for others.
pub fn few(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}
