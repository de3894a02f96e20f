//! Any sequence of operations with any crashes, which `proptest` makes shorter when it fails: each
//! operation is chosen by a number of its own, so that the others stay when one is left out.

use crate::few::few;
use crate::model::pair::Pair;
use crate::model::{Choice, Crash, Random};
use crate::real;
use proptest::collection::vec;
use proptest::prelude::*;

fn crash() -> impl Strategy<Value = Crash> {
    (0..80usize, any::<bool>()).prop_map(|(calls, done)| Crash { calls, done })
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![Just(Choice::Random), (0..40usize).prop_map(Choice::Nth)]
}

proptest! {
    #![proptest_config(few(300))]

    /// On the simple file system, with any of the states on the disk that a crash may leave.
    #[test]
    fn crashes_are_not_noticed(
        steps in vec(any::<u64>(), 0..150),
        crashes in vec(crash(), 0..8),
        choice in choice(),
        budget in prop_oneof![Just(1usize << 20), Just(300)],
    ) {
        let mut pair: Pair = Pair::new(1, budget);
        pair.disk(|disk| (disk.crashes, disk.choice) = (crashes, choice));
        for step in steps {
            pair.step(&mut Random(step | 1));
            if step >> 60 < 4 {
                pair.go_on_with_commits((step >> 40) as usize);
            }
        }
        pair.compare();
        pair.release_all();
        prop_assert_eq!(pair.hidden(), 0);
    }
}

proptest! {
    #![proptest_config(few(300))]

    /// The same where the shadow dies with the file system, at any moment between two changes, with
    /// other crashes in between.
    #[test]
    fn what_is_noted_is_enough_when_both_die(
        steps in vec(any::<u64>(), 0..150),
        crashes in vec(crash(), 0..6),
        choice in choice(),
    ) {
        let mut pair: Pair = Pair::new(1, 1 << 20);
        pair.note();
        pair.disk(|disk| (disk.crashes, disk.choice) = (crashes, choice));
        for step in steps {
            pair.step(&mut Random(step | 1));
            if step >> 60 < 4 {
                pair.go_on_with_commits((step >> 40) as usize);
            }
            if (step >> 50) & 15 == 0 {
                pair.die_together(step >> 63 == 0);
            }
        }
        pair.compare();
    }
}

/// Found by `proptest`: an instance died when it had made a directory again under another number,
/// and nobody had heard that number. The next one's disk then was as after no number of changes.
#[test]
fn a_crash_while_something_is_made_again() {
    let crash = |calls, done| Crash { calls, done };
    let crashes = vec![
        crash(58, true),
        crash(10, true),
        crash(62, false),
        crash(70, true),
        crash(71, false),
    ];
    let mut pair: Pair = Pair::new(1, 300);
    pair.disk(|disk| (disk.crashes, disk.choice) = (crashes, Choice::Nth(7)));
    for step in STEPS_THAT_MAKE_AGAIN {
        pair.step(&mut Random(step | 1));
    }
    pair.compare();
}

proptest! {
    #![proptest_config(few(40))]

    /// On the real file system, with a crash at any request to the disk.
    #[test]
    fn crashes_of_the_real_one_are_not_noticed(
        steps in vec(any::<u64>(), 0..150),
        crashes in vec(0..60usize, 0..5),
        budget in prop_oneof![Just(1usize << 20), Just(2000)],
        journal in any::<bool>(),
    ) {
        match journal {
            true => real::run_chosen::<true>(&steps, &crashes, budget),
            false => real::run_chosen::<false>(&steps, &crashes, budget),
        }
    }
}

const STEPS_THAT_MAKE_AGAIN: [u64; 40] = [
    6343292508796388760,
    15269955568862255520,
    660058468891758322,
    17198787954753998494,
    1121673595769544354,
    571911431031224646,
    8641066526397982428,
    1611466517811756132,
    252821762081213544,
    2793365733701875948,
    1074191616631515312,
    1718719279741118354,
    17534533893561543506,
    1967995096095313826,
    3559695936134609834,
    16614500286057813350,
    1325398231562112862,
    10725969440391712581,
    10793293335481428643,
    7712009861911556739,
    7557076784774617658,
    8101925117222824116,
    13023783737651444597,
    14389339960713780848,
    6625079724790620285,
    6623480092013690653,
    2669868906927060189,
    6277860171197779854,
    12320804091035980686,
    8249896647175600008,
    12706891656758574153,
    7746085284771985419,
    7648033804335621741,
    15618420140155980015,
    3794262824490163917,
    5484501682918369262,
    10823143842815397291,
    16420525676623652478,
    10334400923099322816,
    6286293740897480633,
];
