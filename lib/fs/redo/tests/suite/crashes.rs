//! Crashes at every point of random work, with every state that the disk may be in, against a file
//! system that never crashes.

use crate::model::pair::Pair;
use crate::model::{Choice, Crash, Error, NOW, Random};
use redo::seen::Place;
use redo::{Action, Host, Kind, Outcome, Report};

/// Runs `steps` operations of a seed, with these crashes.
fn run(seed: u64, steps: usize, crashes: Vec<Crash>, choice: Choice, budget: usize) -> Pair {
    let mut pair: Pair = Pair::new(seed, budget);
    let mut random = Random(seed);
    pair.disk(|disk| {
        disk.crashes = crashes;
        disk.choice = choice;
    });
    for _ in 0..steps {
        pair.step(&mut random);
    }
    pair.compare();
    pair
}

#[test]
fn without_a_crash_both_sides_agree() {
    for seed in 1..200 {
        let pair = run(seed, 100, Vec::new(), Choice::Random, 1 << 20);
        assert!(pair.site.reports.borrow().is_empty());
    }
}

/// One crash at each call, before and after it, with each state on the disk.
#[test]
fn one_crash_anywhere_is_not_noticed() {
    for seed in 1..12 {
        let calls = run(seed, 40, Vec::new(), Choice::Random, 1 << 20).disk(|disk| disk.calls);
        for (at, done) in (0..calls).flat_map(|at| [(at, false), (at, true)]) {
            for nth in (0..30).step_by(3) {
                run(
                    seed,
                    40,
                    vec![Crash { calls: at, done }],
                    Choice::Nth(nth),
                    1 << 20,
                );
            }
        }
    }
}

/// A second crash at each call of the recovery from the first.
#[test]
fn a_crash_during_recovery_is_not_noticed() {
    for seed in 20..26 {
        for (first, second) in (30..90)
            .step_by(7)
            .flat_map(|first| (0..60).map(move |second| (first, second)))
        {
            for done in [false, true] {
                let crashes = vec![
                    Crash {
                        calls: first,
                        done: second % 2 == 0,
                    },
                    Crash {
                        calls: second,
                        done,
                    },
                ];
                run(seed, 60, crashes, Choice::Random, 1 << 20);
            }
        }
    }
}

#[test]
fn many_crashes_in_long_work_are_not_noticed() {
    for seed in 100..400 {
        let mut random = Random(seed * 77);
        let crashes = (0..25).map(|_| Crash {
            calls: random.below(500),
            done: random.below(2) == 0,
        });
        let mut pair = run(seed, 600, crashes.collect(), Choice::Random, 1 << 20);
        pair.release_all();
        assert_eq!(pair.hidden(), 0, "seed {seed}");
    }
}

/// Who asks remembers his answer late, and who made a change ends it late: nobody is told by it
/// what is no more, neither a reader nor the next change.
#[test]
fn what_is_remembered_late_is_never_wrong() {
    for seed in 1..80 {
        let mut random = Random(seed * 5);
        let mut pair: Pair = Pair::new(seed, 1 << 20);
        pair.be_slow(seed * 3);
        let crashes = (0..seed as usize % 12).map(|_| Crash {
            calls: random.below(400),
            done: random.below(2) == 0,
        });
        let crashes = crashes.collect();
        pair.disk(|disk| disk.crashes = crashes);
        (0..400).for_each(|_| pair.step(&mut random));
        pair.compare();
        pair.release_all();
        assert_eq!(pair.hidden(), 0, "seed {seed}");
    }
}

/// Commits begin, are done and end between changes, and crashes come at any time.
#[test]
fn commits_beside_changes_forget_no_more_than_they_made_safe() {
    let mut committed = 0;
    for seed in 400..700 {
        let (mut random, mut times) = (Random(seed), Random(seed * 99));
        let mut pair: Pair = Pair::new(seed, 1 << 20);
        let crashes = (0..12).map(|_| Crash {
            calls: times.below(400),
            done: times.below(2) == 0,
        });
        let crashes = crashes.collect();
        pair.disk(|disk| disk.crashes = crashes);
        for _ in 0..300 {
            pair.step(&mut random);
            if times.below(3) == 0 {
                pair.go_on_with_commits(times.below(4));
            }
        }
        pair.compare();
        committed += pair.committed;
        pair.release_all();
        assert_eq!(pair.hidden(), 0, "seed {seed}");
    }
    assert!(committed > 300, "{committed}");
}

/// What was changed after a commit began is remembered, also if the same number was something else
/// before; what was changed before is not.
#[test]
fn a_commit_makes_the_log_short() {
    let mut pair: Pair = Pair::new(1, 1 << 20);
    let create = |kind| Action::Create {
        name: b"x".to_vec(),
        kind,
        mode: 0o755,
    };
    let unlink = Action::Unlink {
        name: b"x".to_vec(),
    };
    let Ok(Outcome::Made(file)) = pair.result_of(create(Kind::File), 2) else {
        panic!("it can be made");
    };
    pair.result_of(unlink, 2).expect("it is a file");
    // It gets the file's number.
    let made = pair.result_of(create(Kind::Directory), 2);
    assert_eq!(made, Ok(Outcome::Made(file)));
    pair.go_on_with_commits(0);
    let inside = Action::Create {
        name: b"y".to_vec(),
        kind: Kind::File,
        mode: 0o644,
    };
    let weight = pair.engine.weight();
    assert!(pair.result_of(inside, file).is_ok());
    pair.go_on_with_commits(0);
    pair.go_on_with_commits(0);
    assert_eq!(pair.committed, 1);
    assert!((1..weight).contains(&pair.engine.weight()));
    let id = pair.disk(|disk| {
        (disk.dead, disk.choice) = (true, Choice::Nth(0));
        disk.id
    });
    pair.engine.revive(&pair.site, id).expect("it works");
    let report = pair.site.reports.borrow()[0];
    assert_eq!((report.entries, report.refused), (1, 0));
}

#[test]
fn a_small_budget_keeps_the_log_short() {
    for seed in 1..60 {
        let mut pair: Pair = Pair::new(seed, 64);
        let mut random = Random(seed);
        for step in 0..300 {
            if step % 40 == 13 {
                pair.disk(|disk| {
                    disk.crashes.push(Crash {
                        calls: step % 7,
                        done: step % 3 == 0,
                    })
                });
            }
            pair.step(&mut random);
            assert!(pair.engine.weight() <= 64);
        }
        pair.compare();
    }
}

/// A file system whose next instance has all that was acknowledged: one crash at each call, before
/// and after it, and many.
#[test]
fn of_a_lasting_file_system_one_change_is_remembered() {
    for seed in 1..120 {
        for at in 0..120 {
            let mut pair: Pair = Pair::lasting(seed);
            let mut random = Random(seed);
            pair.disk(|disk| {
                // The newest of its states.
                disk.choice = Choice::Nth(usize::MAX);
                let mut more = Random(seed * 31 + at as u64);
                disk.crashes = (0..1 + seed as usize % 9)
                    .map(|number| Crash {
                        calls: if number == 0 { at } else { more.below(60) },
                        done: more.below(2) == 0,
                    })
                    .collect();
            });
            for _ in 0..60 {
                pair.step(&mut random);
                assert_eq!(pair.engine.weight(), 0);
            }
            pair.compare();
            let most = |report: &Report| report.entries <= 1 && report.refused == 0;
            assert!(pair.site.reports.borrow().iter().all(most));
        }
    }
}

#[test]
fn crash_after_crash_ends_in_an_error() {
    let mut pair: Pair = Pair::new(1, 1 << 20);
    pair.disk(|disk| {
        disk.crashes = vec![
            Crash {
                calls: 0,
                done: false
            };
            1000
        ]
    });
    let create = Action::Create {
        name: b"x".to_vec(),
        kind: Kind::File,
        mode: 0o644,
    };
    assert_eq!(pair.result_of(create.clone(), 2), Err(Error::Failed));
    // When it works again, nothing of it stands in the way.
    pair.disk(|disk| disk.crashes.clear());
    assert!(matches!(pair.result_of(create, 2), Ok(Outcome::Made(_))));
}

/// A name that kills whoever changes it: the fourth death is the last, who asked is told once, and
/// all else goes on, also what was not committed.
#[test]
fn a_change_that_kills_each_time_is_given_up() {
    for is_done in [false, true] {
        let mut pair: Pair = Pair::new(7, 1 << 20);
        let mut random = Random(7);
        (0..40).for_each(|_| pair.step(&mut random));
        let create = |name: &[u8]| Action::Create {
            name: name.to_vec(),
            kind: Kind::File,
            mode: 0o644,
        };
        pair.disk(|disk| {
            disk.deadly = Some((b"deadly".to_vec(), is_done));
            // What it has done is lost with it each time.
            disk.choice = Choice::Nth(0);
        });
        assert_eq!(pair.result_of(create(b"deadly"), 2), Err(Error::Failed));
        assert_eq!(pair.disk(|disk| disk.killed), 4);
        // It was not made, and nothing of it is tried again.
        pair.compare();
        for _ in 0..40 {
            pair.step(&mut random);
        }
        pair.disk(|disk| disk.dead = true);
        pair.compare();
        assert_eq!(pair.disk(|disk| disk.killed), 4);
    }
}

/// If the second try has reached the disk before it killed, it is done.
#[test]
fn a_change_that_kills_and_is_done_is_done() {
    let mut pair: Pair = Pair::new(7, 1 << 20);
    let create = Action::Create {
        name: b"deadly".to_vec(),
        kind: Kind::File,
        mode: 0o644,
    };
    pair.disk(|disk| {
        disk.deadly = Some((b"deadly".to_vec(), true));
        disk.choice = Choice::Nth(usize::MAX);
    });
    assert!(matches!(pair.result_of(create, 2), Ok(Outcome::Made(_))));
    assert_eq!(pair.disk(|disk| disk.killed), 1);
}

/// An acknowledged change that kills who makes it again: it is lost, and said to be, and no other
/// one is.
#[test]
fn an_acknowledged_change_that_kills_each_time_is_left_out() {
    let mut pair: Pair = Pair::new(1, 1 << 20);
    for name in [b"a", b"b", b"c"] {
        let create = Action::Create {
            name: name.to_vec(),
            kind: Kind::File,
            mode: 0o644,
        };
        assert!(pair.result_of(create, 2).is_ok());
    }
    let id = pair.disk(|disk| {
        (disk.deadly, disk.choice) = (Some((b"b".to_vec(), false)), Choice::Nth(0));
        disk.dead = true;
        disk.id
    });
    pair.engine.revive(&pair.site, id).expect("it works");
    assert_eq!(pair.disk(|disk| disk.killed), 5);
    let report = *pair.site.reports.borrow().last().expect("one");
    assert_eq!((report.entries, report.refused), (3, 1));
    let tree = pair.disk(|disk| disk.live.tree());
    let names: Vec<_> = tree.lines().map(|line| &line[..2]).collect();
    assert_eq!(names, ["/a", "/c"]);
}

#[test]
fn trouble_during_recovery_loses_nothing() {
    for seed in 1..100 {
        let mut pair: Pair = Pair::new(seed, 1 << 20);
        let mut random = Random(seed);
        (0..50).for_each(|_| pair.step(&mut random));
        pair.disk(|disk| disk.dead = true);
        pair.disk(|disk| disk.trouble = 1 + seed as usize % 5);
        for _ in 0..6 {
            let id = pair.site.reports.borrow().len() as u32;
            let _ = pair.engine.revive(&pair.site, 1 + id);
        }
        pair.compare();
    }
}

#[test]
fn answers_of_the_file_system_are_passed_on_and_not_repeated() {
    let mut pair: Pair = Pair::new(3, 1 << 20);
    let create = |name: &[u8]| Action::Create {
        name: name.to_vec(),
        kind: Kind::Directory,
        mode: 0o755,
    };
    assert!(matches!(
        pair.result_of(create(b"d"), 2),
        Ok(Outcome::Made(_))
    ));
    assert_eq!(pair.result_of(create(b"d"), 2), Err(Error::Exists));
    let unlink = Action::Unlink {
        name: b"d".to_vec(),
    };
    assert_eq!(pair.result_of(unlink, 2), Err(Error::IsDirectory));
    let id = pair.disk(|disk| {
        disk.dead = true;
        disk.id
    });
    pair.disk(|disk| disk.choice = Choice::Nth(0));
    pair.engine.revive(&pair.site, id).expect("it works");
    let reports = pair.site.reports.borrow();
    assert_eq!(
        (reports[0].entries, reports[0].found, reports[0].repeated),
        (1, Some(0), 1)
    );
}

/// Without a journal: a later change is on the disk, an earlier one is not.
#[test]
fn a_disk_that_is_no_prefix_is_completed_as_well_as_can_be() {
    let mut pair: Pair = Pair::new(1, 1 << 20);
    let create = |name: &[u8]| Action::Create {
        name: name.to_vec(),
        kind: Kind::File,
        mode: 0o644,
    };
    let write = |data: &[u8]| Action::Write {
        offset: 0,
        data: data.to_vec(),
    };
    for name in [b"a", b"b"] {
        let Ok(Outcome::Made(file)) = pair.result_of(create(name), 2) else {
            panic!("it can be made");
        };
        pair.result_of(write(name), file)
            .expect("it can be written");
    }
    let id = pair.disk(|disk| {
        disk.states.truncate(1);
        let made = disk.states[0].perform(&create(b"b"), [2; 2]);
        assert!(made.is_ok());
        disk.dead = true;
        disk.id
    });
    pair.engine.revive(&pair.site, id).expect("it works");
    let report = pair.site.reports.borrow()[0];
    assert_eq!((report.found, report.refused), (None, 0));
    let tree = pair.disk(|disk| disk.live.tree());
    let times = [NOW; 2];
    assert_eq!(
        tree,
        format!("/a 644 1 {times:?} File([97])\n/b 644 1 {times:?} File([98])\n")
    );
}

/// A change that was acknowledged and that the next instance refuses is counted, and the others are
/// made.
#[test]
fn what_is_refused_is_said() {
    let mut pair: Pair = Pair::new(1, 1 << 20);
    let create = |name: &[u8]| Action::Create {
        name: name.to_vec(),
        kind: Kind::File,
        mode: 0o644,
    };
    let made = [b"a", b"b"].map(|name| pair.result_of(create(name), 2));
    let [Ok(Outcome::Made(lost)), Ok(Outcome::Made(kept))] = made else {
        panic!("they can be made");
    };
    let seen = |pair: &Pair, name: &[u8]| {
        pair.site
            .front(|front| front.names.recall(&Place::new(2, name)))
    };
    assert_eq!(seen(&pair, b"a"), Some(Some(lost)));
    let id = pair.disk(|disk| {
        disk.states.truncate(1);
        disk.refusals = 1;
        disk.dead = true;
        disk.id
    });
    pair.engine.revive(&pair.site, id).expect("it works");
    let report = pair.site.reports.borrow()[0];
    assert_eq!((report.refused, report.repeated), (1, 1));
    // What was remembered is not, so nobody is led to what was lost.
    assert_eq!((seen(&pair, b"a"), seen(&pair, b"b")), (None, None));
    let write = |data: &[u8]| Action::Write {
        offset: 0,
        data: data.to_vec(),
    };
    // The number of the one leads to nothing; the other one has the number on the disk that the
    // first had.
    assert_eq!(pair.result_of(write(b"x"), lost), Err(Error::Missing));
    assert!(pair.result_of(write(b"y"), kept).is_ok());
    let tree = pair.disk(|disk| disk.live.tree());
    let times = [NOW; 2];
    assert_eq!(tree, format!("/b 644 1 {times:?} File([121])\n"));
}
