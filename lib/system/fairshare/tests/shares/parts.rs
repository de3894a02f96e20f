//! Which part of the processors a group has, and a thread of it.

use fairshare::{Attributes, SHORTEST_SLICE, SLICE};
use std::sync::atomic::Ordering;

use crate::sim::{Does, MS, Machine, Random, SECOND, near, of, ran, spin, total};

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
fn many_threads_of_a_group_have_equal_parts_soon() {
    // Five milliseconds for each: two slices more or less would be 40 % of that, and with slices of
    // 2 ms were.
    for (count, online) in [(1000, 1), (1000, 2), (300, 1), (100, 4)] {
        let mut machine = Machine::new(online, 7);
        let threads = spin(&mut machine, 1, count);
        machine.run(5 * MS * count as u64 / online as u64);
        for thread in &threads {
            let off = ran(thread).abs_diff(5 * MS);
            assert!(off <= SHORTEST_SLICE, "{count} on {online}: {off}");
        }
        let slices = 5 * MS / SHORTEST_SLICE + 1;
        let most = slices * count as u64 + 2 * online as u64;
        assert!(machine.switches <= most, "{} switches", machine.switches);
    }
}

#[test]
fn two_groups_on_two_processors_have_equal_parts_beside_what_interrupts_one() {
    // What the system has to do besides comes to one processor alone: a console, a clock.
    for (seed, work) in (1..=12).flat_map(|seed| [20_000, 300_000, MS].map(|work| (seed, work))) {
        let mut machine = Machine::new(2, seed);
        machine.group(3, 4096, 0);
        let here = Attributes {
            affinity: 1,
            ..of(3)
        };
        machine.spawn(here, Does::Sleep(work, 4 * MS), false);
        let threads = [1, 2].map(|group| spin(&mut machine, group, 1).remove(0));
        machine.run(100 * MS);
        let before = threads.each_ref().map(ran);
        machine.run(2 * SECOND);
        let [one, other] = [0, 1].map(|index| ran(&threads[index]) - before[index]);
        assert!(
            near(one, (one + other) / 2, 1.0),
            "seed {seed}: {one} and {other}"
        );
    }
}

#[test]
fn few_threads_have_long_slices() {
    for (count, online) in [(2, 1), (6, 1), (12, 2)] {
        let mut machine = Machine::new(online, 7);
        spin(&mut machine, 1, count);
        machine.run(SECOND);
        let slices = SECOND / SLICE * online as u64;
        let most = slices + 2 * online as u64;
        assert!(machine.switches <= most, "{} switches", machine.switches);
    }
}

#[test]
fn a_group_of_many_threads_shortens_nobody_elses_slices() {
    let mut machine = Machine::new(1, 7);
    spin(&mut machine, 1, 1000);
    spin(&mut machine, 2, 2);
    machine.run(SECOND);
    // Half of the time in slices of each length.
    let most = SECOND / 2 / SHORTEST_SLICE + SECOND / 2 / SLICE + 4;
    assert!(machine.switches <= most, "{} switches", machine.switches);
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
