//! Fairness, balance, latency and limits over loads that are made up.

mod sim;

use fairshare::{Attributes, Class, Left, Moment, PERIOD, SLICE, Why};
use sim::{Does, MS, Machine, Random, Ref, SECOND, near, ran};
use std::sync::atomic::Ordering;

fn of(group: u32) -> Attributes {
    Attributes {
        group,
        ..Attributes::NORMAL
    }
}

fn spin(machine: &mut Machine, group: u32, count: usize) -> Vec<Ref> {
    (0..count)
        .map(|_| machine.spawn(of(group), Does::Spin, false))
        .collect()
}

fn total(threads: &[Ref]) -> u64 {
    threads.iter().map(ran).sum()
}

#[test]
fn groups_share_by_weight_whatever_their_threads() {
    for seed in 1..=24 {
        let online = [1, 2, 4, 8][seed as usize % 4];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed + 77);
        let count = random.from(2, 9) as u32;
        let mut groups = Vec::new();
        let mut weights = Vec::new();
        for group in 1..=count {
            let weight = random.from(512, 4096) as u32;
            machine.group(group, weight, 0);
            let threads = online + random.from(0, 60) as usize;
            groups.push(spin(&mut machine, group, threads));
            weights.push(u64::from(weight));
        }
        machine.run(20 * SECOND);
        let all = 20 * SECOND * online as u64;
        let sum: u64 = weights.iter().sum();
        for (threads, weight) in groups.iter().zip(&weights) {
            let wanted = (u128::from(all) * u128::from(*weight) / u128::from(sum)) as u64;
            // Nobody can run on more processors than there are, and all have threads for each.
            let is = total(threads);
            assert!(near(is, wanted, 1.0), "seed {seed}: {is} of {wanted}");
        }
    }
}

#[test]
fn threads_of_a_group_share_by_weight_on_all_processors() {
    for seed in 1..=12 {
        let online = [1, 2, 4][seed as usize % 3];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed + 5);
        let count = 3 * online + random.from(0, 9) as usize;
        let mut threads = Vec::new();
        for _ in 0..count {
            let weight = random.from(700, 1500) as u32;
            let asked = Attributes { weight, ..of(3) };
            threads.push((machine.spawn(asked, Does::Spin, false), u64::from(weight)));
        }
        machine.run(60 * SECOND);
        let sum: u64 = threads.iter().map(|(_, weight)| weight).sum();
        for (thread, weight) in &threads {
            let wanted = 60 * SECOND * online as u64 / sum * weight;
            let is = ran(thread);
            assert!(
                near(is, wanted, 1.0),
                "seed {seed}, {online}: {is} of {wanted}"
            );
        }
    }
}

#[test]
fn three_equal_threads_on_two_processors_get_two_thirds_each() {
    let mut machine = Machine::new(2, 9);
    let threads = spin(&mut machine, 1, 3);
    machine.run(30 * SECOND);
    for thread in &threads {
        assert!(near(ran(thread), 20 * SECOND, 1.0), "{}", ran(thread));
    }
}

#[test]
fn threads_that_do_not_divide_by_the_processors_get_equal_parts() {
    for online in 2..=8 {
        for count in online..=3 * online {
            let mut machine = Machine::new(online, count as u64);
            // One after the other, as a program makes them.
            let threads: Vec<_> = (0..count)
                .map(|_| {
                    machine.run(MS / 3);
                    spin(&mut machine, 1, 1).remove(0)
                })
                .collect();
            let before: Vec<_> = threads.iter().map(ran).collect();
            machine.run(20 * SECOND);
            let wanted = 20 * SECOND * online as u64 / count as u64;
            for (thread, before) in threads.iter().zip(before) {
                let is = ran(thread) - before;
                assert!(
                    near(is, wanted, 1.0),
                    "{count} on {online}: {is} of {wanted}"
                );
            }
        }
    }
}

#[test]
fn what_a_late_end_of_a_slice_takes_is_made_up_for() {
    // As on an emulated machine, from which its host takes processors away: each slice is up to
    // five times as long as it should be.
    for seed in 1..=20 {
        let mut machine = Machine::new(2, seed);
        machine.late = 4 * SLICE;
        let threads = spin(&mut machine, 1, 10);
        machine.run(2 * SECOND);
        for thread in &threads {
            // No more than the longest slice.
            let off = ran(thread).abs_diff(400 * MS);
            assert!(off <= 5 * SLICE, "seed {seed}: {off}");
        }
    }
}

#[test]
fn a_thousand_threads_take_no_more_than_the_share_of_their_group() {
    for online in [1, 2, 4] {
        let mut machine = Machine::new(online, 3);
        spin(&mut machine, 1, 1000);
        let one = spin(&mut machine, 2, 1);
        machine.run(5 * SECOND);
        let is = ran(&one[0]);
        let wanted = if online == 1 {
            5 * SECOND / 2
        } else {
            5 * SECOND
        };
        assert!(near(is, wanted, 1.0), "{online}: {is}");
    }
}

#[test]
fn who_wants_less_than_its_share_gets_it_and_at_once() {
    for seed in 1..=12 {
        let online = [1, 2, 4][seed as usize % 3];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed);
        spin(&mut machine, 1, 300);
        spin(&mut machine, 2, 40);
        let work = random.from(20, 1000) * 1000;
        let sleeper = machine.spawn(of(5), Does::Sleep(work, 9 * work), false);
        machine.run(10 * SECOND);
        let latency = sleeper.0.latency.load(Ordering::Relaxed);
        assert!(latency <= SLICE, "seed {seed}: waited {latency}");
        let is = ran(&sleeper);
        assert!(is > 8 * SECOND / 10, "seed {seed}: {is}");
    }
}

#[test]
fn sleep_earns_nothing() {
    // Whoever sleeps now and then must not get more than one that never does.
    for seed in 1..=12 {
        let mut machine = Machine::new(1, seed);
        let mut random = Random(seed);
        let steady = spin(&mut machine, 1, 1);
        let (work, sleep) = (random.from(1, 12_000) * 1000, random.from(1, 3000) * 1000);
        let sly = machine.spawn(of(2), Does::Sleep(work, sleep), false);
        machine.run(20 * SECOND);
        let (steady, sly) = (ran(&steady[0]), ran(&sly));
        assert!(
            sly <= steady + steady / 100,
            "seed {seed}: {sly} against {steady}"
        );
    }
}

#[test]
fn nobody_starves_and_no_processor_idles_while_others_wait() {
    for seed in 1..=16 {
        let online = [1, 2, 4, 8][seed as usize % 4];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed + 1);
        for group in 1..=random.from(1, 20) as u32 {
            machine.group(group, random.from(1, 20_000) as u32, 0);
            for _ in 0..random.from(1, 12) {
                let does = match random.from(0, 3) {
                    0 => Does::Spin,
                    1 => Does::Yield(random.from(1_000, 3 * MS)),
                    _ => Does::Sleep(random.from(1_000, 9 * MS), random.from(1_000, 9 * MS)),
                };
                let weight = random.from(0, 100_000) as u32;
                machine.spawn(
                    Attributes {
                        weight,
                        ..of(group)
                    },
                    does,
                    false,
                );
            }
        }
        machine.run(60 * SECOND);
        let least = machine
            .threads
            .iter()
            .map(ran)
            .min()
            .expect("there are some");
        assert!(least > 0, "seed {seed}: one never ran");
        let all = 60 * SECOND * online as u64;
        assert!(
            machine.wasted < all / 200,
            "seed {seed}: wasted {}",
            machine.wasted
        );
    }
}

#[test]
fn one_thousand_threads_all_run_within_a_round() {
    let mut machine = Machine::new(2, 4);
    let threads = spin(&mut machine, 1, 1000);
    machine.run(1010 * SLICE / 2);
    assert!(threads.iter().all(|thread| ran(thread) > 0));
}

#[test]
fn long_standing_credit_is_bounded() {
    // One thread cannot use its group's half of four processors; what it did not use is not kept.
    let mut machine = Machine::new(4, 8);
    spin(&mut machine, 1, 8);
    spin(&mut machine, 2, 1);
    machine.run(10 * SECOND);
    let late = spin(&mut machine, 2, 8);
    let before: u64 = machine.threads[..8].iter().map(ran).sum();
    machine.run(SECOND);
    let others: u64 = machine.threads[..8].iter().map(ran).sum::<u64>() - before;
    assert!(others > 17 * SECOND / 10, "{others}");
    assert!(total(&late) > SECOND, "{}", total(&late));
}

#[test]
fn limits_hold_to_a_slice() {
    for seed in 1..=9 {
        let online = [1, 2, 4][seed as usize % 3];
        let mut machine = Machine::new(online, seed);
        let percent = Random(seed + 30).from(5, 60) as u32;
        machine.group(1, 1024, percent);
        let held = spin(&mut machine, 1, 7);
        let free = spin(&mut machine, 2, online);
        machine.run(10 * SECOND);
        let wanted = 10 * SECOND / 100 * u64::from(percent);
        let is = total(&held);
        let most = wanted + online as u64 * SLICE;
        let least = wanted.min(5 * SECOND) * 95 / 100;
        assert!(
            (least..=most).contains(&is),
            "seed {seed}: {is} of {wanted}"
        );
        let rest = 10 * SECOND * online as u64 - is;
        assert!(near(total(&free), rest, 1.0), "{} of {rest}", total(&free));
    }
}

#[test]
fn a_limit_does_not_stop_who_is_in_a_service_but_is_made_up_for() {
    let mut machine = Machine::new(1, 2);
    machine.group(1, 1024, 10);
    let inside = machine.spawn(of(1), Does::Sleep(3 * MS, MS), true);
    let outside = machine.spawn(of(1), Does::Spin, false);
    machine.run(10 * SECOND);
    // Met in a service each time, so it runs; its group has a debt then, and the other gets
    // nothing.
    assert!(ran(&inside) > 5 * SECOND, "{}", ran(&inside));
    assert!(ran(&outside) <= SECOND, "{}", ran(&outside));
}

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

#[test]
fn affinity_holds_and_others_fill_the_rest() {
    let mut machine = Machine::new(4, 11);
    let pinned = Attributes {
        affinity: 1 << 2,
        ..of(1)
    };
    let pinned: Vec<_> = (0..4)
        .map(|_| machine.spawn(pinned, Does::Spin, false))
        .collect();
    let free = spin(&mut machine, 2, 3);
    machine.run(10 * SECOND);
    // The machine itself looks at each switch whether the processor is allowed.
    assert!(near(total(&pinned) + total(&free), 40 * SECOND, 1.0));
    assert!(total(&pinned) > 9 * SECOND, "{}", total(&pinned));
}

#[test]
fn a_thread_counts_in_the_group_that_it_went_to() {
    let mut machine = Machine::new(1, 5);
    let hogs = spin(&mut machine, 1, 20);
    let mover = machine.spawn(of(1), Does::Spin, false);
    machine.run(SECOND);
    mover.0.asked.lock().expect("no panic").group = 2;
    machine.run(SECOND / 2);
    let before = ran(&mover);
    machine.run(4 * SECOND);
    let got = ran(&mover) - before;
    assert!(near(got, 2 * SECOND, 2.0), "{got}");
    assert!(total(&hogs) > 2 * SECOND);
}

#[test]
fn hostile_attributes_are_brought_into_bounds() {
    for seed in 1..=40 {
        let online = [1, 3, 8][seed as usize % 3];
        let mut machine = Machine::new(online, seed);
        let mut random = Random(seed + 9);
        for _ in 0..60 {
            let extremes = [0, 1, u64::MAX, u64::MAX - 1, 1 << 31, 1 << 63, 1023, 1024];
            let mut value = || match random.from(0, 1) {
                0 => extremes[random.from(0, 7) as usize],
                _ => random.next(),
            };
            let class = match value() % 4 {
                0 => Class::Fifo(value() as u8),
                1 => Class::RoundRobin(value() as u8),
                2 => Class::Deadline {
                    runtime: value(),
                    period: value(),
                },
                _ => Class::Fair,
            };
            let (weight, affinity, group) = (value() as u32, value(), value() as u32);
            machine.group(group, value() as u32, value() as u32 % 300);
            let asked = Attributes {
                class,
                weight,
                affinity,
                group,
            };
            let does = match value() % 3 {
                0 => Does::Spin,
                1 => Does::Yield(50_000 + value() % MS),
                _ => Does::Sleep(50_000 + value() % MS, 50_000 + value() % MS),
            };
            let service = value() % 2 == 0;
            machine.spawn(asked, does, service);
        }
        machine.run(2 * SECOND);
        let all: u64 = total(&machine.threads);
        assert!(all > 0 && all <= 2 * SECOND * online as u64, "seed {seed}");
    }
}

#[test]
fn threads_in_a_service_go_before_their_siblings() {
    let mut machine = Machine::new(1, 3);
    spin(&mut machine, 1, 500);
    spin(&mut machine, 2, 1);
    // Works 20 ms inside at a time: taken off again and again, it must not wait for 500 others.
    let holder = machine.spawn(of(1), Does::Sleep(20 * MS, 1), true);
    machine.run(9 * SECOND);
    // Its first turn comes after everybody else's.
    assert!(ran(&holder) > 2 * SECOND, "{}", ran(&holder));
}

#[test]
fn who_computes_in_a_service_for_ever_leaves_its_siblings_their_part() {
    let mut machine = Machine::new(1, 5);
    let inside = machine.spawn(of(1), Does::Spin, true);
    let siblings = [0, 1].map(|_| machine.spawn(of(1), Does::Spin, false));
    // It waits for a moment, and is not far behind: this is who would end the one inside.
    let watcher = machine.spawn(of(1), Does::Sleep(MS, 100 * MS), false);
    machine.run(10 * SECOND);
    for thread in siblings.iter().chain([&inside]) {
        let part = ran(thread);
        assert!((2 * SECOND..5 * SECOND).contains(&part), "{part}");
    }
    assert!(ran(&watcher) > 40 * MS, "{}", ran(&watcher));
}

#[test]
fn who_gives_way_lets_another_go_first() {
    let mut machine = Machine::new(1, 3);
    let polite = machine.spawn(of(1), Does::Yield(1000), false);
    let other = machine.spawn(of(1), Does::Yield(1000), false);
    let third = machine.spawn(of(2), Does::Yield(1000), false);
    machine.run(SECOND);
    for thread in [&polite, &other, &third] {
        assert!(ran(thread) > SECOND / 10, "{}", ran(thread));
    }
    assert!(machine.switches > 900_000, "{}", machine.switches);
}

/// A thread that has had less than its sibling waits for a moment and is woken. Whether it runs at
/// once when it has waited for `slept` and the sibling has run that long, in group `group`.
fn preempts_after(slept: u64, group: u32) -> bool {
    let mut machine = Machine::new(1, 1);
    machine.group(1, 1024, 0);
    machine.group(2, 1024, 0);
    let runner = machine.spawn(of(1), Does::Spin, false);
    let waiter = machine.spawn(of(group), Does::Spin, false);
    let policy = &machine.policy;
    let (cpu, online) = (0, 1);
    let at = |now| Moment { now, cpu, online };
    let mut now = MS;
    let mut turns = 0;
    // Both have run, the one for long, the other for a moment.
    let waits_at = loop {
        let picked = policy.pick::<Ref>(at(now)).task.expect("both are ready");
        turns += 1;
        let is_waiter = picked.0.id == waiter.0.id;
        let used = if is_waiter { 1_000 } else { 3 * MS };
        now += used;
        if is_waiter && turns > 1 {
            policy.ran::<Ref, _>(&picked, used, Left::Waits, false, at(now));
            break now;
        }
        policy.ran::<Ref, _>(&picked, used, Left::Preempted, false, at(now));
        let kept = policy.enqueue(picked, Why::Ran, at(now));
        assert!(kept.is_ok(), "there was room");
    };
    let picked = policy.pick::<Ref>(at(waits_at)).task;
    assert_eq!(picked.map(|it| it.0.id), Some(runner.0.id));
    let placed = policy.enqueue(waiter, Why::Woken, at(waits_at + slept));
    placed.is_ok_and(|placed| placed.preempt)
}

#[test]
fn who_was_served_by_a_sibling_lets_it_go_on() {
    assert!(!preempts_after(10_000, 1), "one switch for each piece");
    assert!(preempts_after(MS, 1), "who slept is not served at once");
    assert!(preempts_after(10_000, 2), "another group waits");
}

#[test]
fn who_is_alone_need_not_give_way() {
    let mut machine = Machine::new(2, 1);
    machine.group(1, 1024, 0);
    let first = machine.spawn(of(1), Does::Spin, false);
    assert!(!machine.policy.is_alone(0, 2), "the first waits");
    assert!(!machine.policy.is_alone(1, 2), "the first waits elsewhere");
    machine.run(10 * MS);
    assert!(machine.policy.is_alone(0, 2) && machine.policy.is_alone(1, 2));
    spin(&mut machine, 1, 2);
    machine.run(10 * MS);
    assert!(ran(&first) > 0 && !machine.policy.is_alone(0, 2));
}
