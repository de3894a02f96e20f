//! Deadlines that were promised, and real time: who goes before all others, and for how long.

use fairshare::{Attributes, Class, PERIOD, SLICE};
use std::sync::atomic::Ordering;

use crate::sim::{Does, MS, Machine, Random, SECOND, near, of, ran, spin, total};

#[test]
fn admitted_deadlines_are_kept() {
    for seed in 1..=20 {
        let online = [1, 2, 4][seed as usize % 3];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed + 400);
        spin(&mut machine, 1, 50);
        machine.spawn(
            Attributes {
                class: Class::Fifo(9),
                ..of(2)
            },
            Does::Spin,
            false,
        );
        let (mut kept, mut refused) = (Vec::new(), 0);
        while refused < 5 {
            let period = random.from(2, 100) * MS;
            let runtime = period * random.from(5, 40) / 100;
            let Some(cpu) = machine.policy.promise(runtime, period, online) else {
                refused += 1;
                continue;
            };
            let class = Class::Deadline { runtime, period };
            let asked = Attributes {
                class,
                affinity: 1 << cpu,
                ..of(3)
            };
            kept.push(machine.spawn(asked, Does::Periodic(runtime * 9 / 10, period), false));
        }
        machine.run(10 * SECOND);
        for thread in &kept {
            assert_eq!(thread.0.missed.load(Ordering::Relaxed), 0, "seed {seed}");
            assert!(ran(thread) > 0);
        }
    }
}

#[test]
fn promises_are_bounded_and_come_back() {
    let machine = Machine::new(2, 1);
    let promise = |runtime| machine.policy.promise(runtime, 10 * MS, 2);
    assert_eq!(promise(9 * MS), None);
    let given: Vec<_> = (0..9).map_while(|_| promise(4 * MS)).collect();
    assert_eq!(given.len(), 4);
    machine.policy.release(given[0], 4 * MS, 10 * MS);
    assert_eq!(promise(4 * MS), Some(given[0]));
    for (runtime, period) in [(0, 10 * MS), (2, 1), (1, 0), (u64::MAX, u64::MAX), (5, 10)] {
        assert_eq!(machine.policy.promise(runtime, period, 2), None);
    }
}

#[test]
fn a_deadline_thread_that_never_stops_takes_no_more_than_its_budget() {
    let mut machine = Machine::new(1, 6);
    let fair = spin(&mut machine, 1, 2);
    let (runtime, period) = (3 * MS, 10 * MS);
    let cpu = machine
        .policy
        .promise(runtime, period, 1)
        .expect("nothing is promised yet");
    let class = Class::Deadline { runtime, period };
    let greedy = Attributes {
        class,
        affinity: 1 << cpu,
        ..of(2)
    };
    let greedy = machine.spawn(greedy, Does::Spin, false);
    machine.run(10 * SECOND);
    assert!(near(ran(&greedy), 3 * SECOND, 2.0), "{}", ran(&greedy));
    assert!(near(total(&fair), 7 * SECOND, 2.0), "{}", total(&fair));
}

#[test]
fn a_deadline_thread_pays_for_what_it_ran_beyond_its_budget() {
    for seed in 1..=8 {
        let mut machine = Machine::new(1, seed);
        machine.late = 2 * SLICE;
        spin(&mut machine, 1, 2);
        let class = Class::Deadline {
            runtime: 2 * MS,
            period: 10 * MS,
        };
        let greedy = machine.spawn(Attributes { class, ..of(2) }, Does::Spin, false);
        machine.run(10 * SECOND);
        // The end of its rest is noticed late, too.
        let is = ran(&greedy);
        assert!(
            (SECOND..=2 * SECOND + 20 * MS).contains(&is),
            "seed {seed}: {is}"
        );
    }
}

/// With another budget whenever one ends in a service, it would have the whole processor, if
/// it only waits for a moment now and then.
#[test]
fn a_deadline_thread_that_keeps_to_services_has_its_budget_and_a_fair_part() {
    for seed in 1..=8 {
        let mut machine = Machine::new(1, seed);
        let fair = spin(&mut machine, 1, 3);
        let class = Class::Deadline {
            runtime: 2 * MS,
            period: 10 * MS,
        };
        let does = Does::Sleep(3 * MS, 10_000);
        let inside = machine.spawn(Attributes { class, ..of(2) }, does, true);
        machine.run(10 * SECOND);
        let is = ran(&inside);
        assert!((2 * SECOND..7 * SECOND).contains(&is), "seed {seed}: {is}");
        assert!(total(&fair) > 3 * SECOND, "{}", total(&fair));
    }
}

/// What it runs beyond its budget in a service costs it no later period.
#[test]
fn a_deadline_thread_is_back_in_its_class_after_a_service() {
    let mut machine = Machine::new(1, 3);
    spin(&mut machine, 1, 50);
    let class = Class::Deadline {
        runtime: 2 * MS,
        period: 10 * MS,
    };
    let asked = Attributes { class, ..of(2) };
    let inside = machine.spawn(asked, Does::Sleep(4 * MS, 6 * MS), true);
    machine.run(10 * SECOND);
    assert!(ran(&inside) > 19 * SECOND / 10, "{}", ran(&inside));
}

#[test]
fn real_time_goes_first_but_leaves_a_tenth() {
    let mut machine = Machine::new(1, 6);
    let fair = spin(&mut machine, 1, 3);
    let at = |class| Attributes { class, ..of(2) };
    let low = machine.spawn(at(Class::Fifo(1)), Does::Spin, false);
    let turns: Vec<_> = (0..3)
        .map(|_| machine.spawn(at(Class::RoundRobin(7)), Does::Spin, false))
        .collect();
    machine.run(10 * SECOND);
    assert_eq!(ran(&low), 0);
    let most = 9 * SECOND + 10 * SECOND / PERIOD * SLICE;
    assert!(
        (9 * SECOND..=most).contains(&total(&turns)),
        "{}",
        total(&turns)
    );
    for turn in &turns {
        assert!(near(ran(turn), total(&turns) / 3, 1.0), "{}", ran(turn));
    }
    assert!(total(&fair) >= 10 * SECOND - most, "{}", total(&fair));
}

#[test]
fn first_in_first_out_is_not_preempted_by_its_like() {
    let mut machine = Machine::new(1, 6);
    let fifo = Attributes {
        class: Class::Fifo(5),
        ..of(0)
    };
    let first = machine.spawn(fifo, Does::Spin, false);
    let second = machine.spawn(fifo, Does::Spin, false);
    machine.run(SECOND);
    assert_eq!((ran(&first), ran(&second)), (SECOND, 0));
}
