//! Who runs next, and where: services, who gives way or is woken, and processors.

use std::sync::atomic::Ordering::Relaxed;

use fairshare::{Attributes, Left, Moment, Why};

use crate::sim::{Does, MS, Machine, Ref, SECOND, near, of, ran, spin, total};

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

/// A thread runs alone for long; then it gets siblings. It is not what it has used before that
/// decides who goes first now.
fn new_siblings(service: bool, online: usize) -> (u64, u64) {
    let mut machine = Machine::new(online, 5);
    let first = spin(&mut machine, 1, online);
    machine.run(SECOND);
    let before = total(&first);
    for _ in 0..online {
        machine.spawn(of(1), Does::Spin, service);
    }
    machine.run(200 * MS);
    (total(&first) - before, 200 * MS * online as u64)
}

#[test]
fn who_ran_alone_does_not_wait_for_new_siblings() {
    for online in [1, 2, 4] {
        let (old, all) = new_siblings(false, online);
        assert!(near(old, all / 2, 10.0), "{old} of {all} on {online}");
    }
    // A thread in a service has 24 slices in a row, with a grace of half a slice for each.
    let (old, all) = new_siblings(true, 1);
    assert!(old > 4 * MS, "{old} of {all} beside a service");
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

/// How late a thread that wants little is at the most, which was alone until others begin who want
/// all there is.
fn late_beside_beginners(online: usize) -> u64 {
    let mut machine = Machine::new(online, 7);
    machine.group(1, 1024, 0);
    machine.group(2, 1024, 0);
    let little = machine.spawn(of(1), Does::Periodic(20_000, MS / 4), false);
    machine.run(100 * MS);
    spin(&mut machine, 2, 4 * online);
    machine.run(20 * MS);
    little.0.latency.load(Relaxed)
}

#[test]
fn who_wants_little_is_not_behind_who_begins() {
    for online in [1, 2, 4] {
        let late = late_beside_beginners(online);
        // A slice: it woke when the other had begun just before.
        assert!(late <= 2 * MS, "{late} on {online}");
    }
}

/// A thread that was woken for a processor which is late waits there, before all others by right.
/// The processor whose own thread of that group has just begun to wait takes it.
#[test]
fn who_waits_at_a_late_processor_is_fetched_by_one_that_has_time() {
    let mut machine = Machine::new(2, 1);
    machine.group(1, 1024, 0);
    machine.group(2, 1024, 0);
    let pinned = |group, cpu| Attributes {
        affinity: 1_u64 << cpu,
        ..of(group)
    };
    let spinner = machine.spawn(pinned(1, 0), Does::Spin, false);
    machine.spawn(pinned(1, 1), Does::Spin, false);
    let waker = machine.spawn(pinned(2, 0), Does::Spin, false);
    let woken = machine.spawn(of(2), Does::Spin, false);
    let policy = &machine.policy;
    let at = |cpu, now| Moment {
        now,
        cpu,
        online: 2,
    };
    let mut now = MS;
    // Runs others in turn at a processor until it is this one's turn, who goes on.
    let pick = |cpu, wanted: Option<&Ref>, now: &mut u64| loop {
        let picked = policy.pick::<Ref>(at(cpu, *now)).task.expect("some wait");
        picked.0.cpu.store(cpu, Relaxed);
        if wanted.is_some_and(|it| it.0.id == picked.0.id) {
            break picked;
        }
        let used = if picked.0.id < waker.0.id {
            3 * MS
        } else {
            1_000
        };
        *now += used;
        policy.ran::<Ref, _>(&picked, used, Left::Preempted, false, at(cpu, *now));
        let kept = policy.enqueue(picked.clone(), Why::Ran, at(cpu, *now));
        assert!(kept.is_ok(), "there was room");
        if wanted.is_none() && used > MS {
            break picked;
        }
    };
    (0..10).for_each(|_| drop(pick(0, None, &mut now)));
    let sleeper = pick(1, Some(&woken), &mut now);
    policy.ran::<Ref, _>(&sleeper, 1_000, Left::Waits, false, at(1, now));
    let waker = pick(0, Some(&waker), &mut now);
    let late = policy.pick::<Ref>(at(1, now)).task.expect("a spinner");
    assert_eq!(late.0.asked.lock().expect("whole").group, 1);
    now += 10_000;
    let placed = policy.enqueue(sleeper, Why::Woken, at(0, now));
    assert!(placed.is_ok_and(|placed| placed.cpu == 1 && placed.preempt));
    now += 10_000;
    policy.ran::<Ref, _>(&waker, 20_000, Left::Waits, false, at(0, now));
    let next = policy.pick::<Ref>(at(0, now)).task.expect("two wait");
    assert_ne!(next.0.id, spinner.0.id, "the late one is waited for");
    assert_eq!(next.0.id, woken.0.id);
}
