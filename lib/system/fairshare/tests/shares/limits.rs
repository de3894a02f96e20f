//! What a group may have at the most, and attributes that nobody should ask for.

use fairshare::{Attributes, Class, SLICE};

use crate::sim::{Does, MS, Machine, Random, SECOND, near, of, ran, spin, total};

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
