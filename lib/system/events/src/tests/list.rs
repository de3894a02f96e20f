//! The row of raised slots against the plainest thing that does the same.

use crate::ready::{MOST_BOUND, Plan, Raised, Ready, Rings, room};
use core::num::NonZeroU64;
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn grow(ready: &mut Ready<()>) {
    if let Plan::Grow(chunks) = ready.plan() {
        let mut more = room(chunks, ()).expect("the host has memory");
        ready.extend(&mut more);
    }
}

/// What was raised, by slot, and in which order.
#[derive(Default)]
struct Plain {
    bound: BTreeMap<u32, (u64, Raised)>,
    row: VecDeque<u32>,
}

impl Plain {
    fn queue(&mut self, slot: u32) -> Rings {
        if self.row.contains(&slot) {
            return Rings::No;
        }
        self.row.push_back(slot);
        match self.row.len() {
            1 => Rings::Yes,
            _ => Rings::No,
        }
    }

    fn take(&mut self, slot: u32) -> Raised {
        self.row.retain(|&other| other != slot);
        let raised = &mut self.bound.get_mut(&slot).expect("it is bound").1;
        core::mem::take(raised)
    }

    fn any(&self, dice: &mut Dice) -> Option<u32> {
        let count = self.bound.len() as u64;
        let at = (count > 0).then(|| dice.below(count) as usize)?;
        self.bound.keys().nth(at).copied()
    }
}

fn step(dice: &mut Dice, ready: &mut Ready<()>, plain: &mut Plain, tag: u64) {
    let slot = plain.any(dice);
    match (dice.below(8), slot) {
        (0 | 1, _) => {
            grow(ready);
            let count = dice.below(2);
            let raised = Raised {
                count,
                ended: false,
            };
            let (slot, rings) = ready.bind(tag, raised).expect("there is room");
            assert!(plain.bound.insert(slot, (tag, raised)).is_none());
            let expected = match count {
                0 => Rings::No,
                _ => plain.queue(slot),
            };
            assert_eq!(rings, expected);
        }
        (2 | 3, Some(slot)) => {
            let times = NonZeroU64::MIN.saturating_add(dice.below(3));
            plain.bound.get_mut(&slot).expect("it is bound").1.count += times.get();
            assert_eq!(ready.raise(slot, times), plain.queue(slot));
        }
        (4, Some(slot)) => {
            plain.bound.get_mut(&slot).expect("it is bound").1.ended = true;
            assert_eq!(ready.end(slot), plain.queue(slot));
        }
        (5, Some(slot)) => assert_eq!(ready.take(slot), plain.take(slot)),
        (6, Some(slot)) => {
            assert_eq!(ready.unbind(slot), plain.take(slot));
            plain.bound.remove(&slot);
        }
        _ => {
            let expected = plain.row.front().copied().map(|slot| {
                let tag = plain.bound[&slot].0;
                (tag, plain.take(slot))
            });
            assert_eq!(ready.next(), expected);
        }
    }
    assert_eq!(ready.is_empty(), plain.row.is_empty());
}

#[test]
fn does_what_the_plain_one_does() {
    for seed in 0..50 {
        let (mut dice, mut ready) = (Dice(seed), Ready::new());
        let mut plain = Plain::default();
        for tag in 0..2_000 {
            step(&mut dice, &mut ready, &mut plain, tag);
        }
    }
}

#[test]
fn holds_so_many_and_no_more() {
    let mut ready = Ready::<()>::new();
    assert_eq!(ready.bind(0, Raised::default()), None);
    let mut slots = Vec::new();
    while ready.plan() != Plan::Full {
        grow(&mut ready);
        let bound = ready.bind(slots.len() as u64, Raised::default());
        slots.push(bound.expect("there is room").0);
    }
    assert_eq!(slots.len(), MOST_BOUND);
    for &slot in slots.iter().rev() {
        let _ = ready.raise(slot, NonZeroU64::MIN);
    }
    let last = (MOST_BOUND - 1) as u64;
    assert_eq!(ready.next().map(|(tag, _)| tag), Some(last));
    ready.unbind(slots[7]);
    assert_eq!(ready.plan(), Plan::Fits);
}

#[test]
fn counts_stay_at_the_largest_number() {
    let mut ready = Ready::<()>::new();
    grow(&mut ready);
    let raised = Raised {
        count: u64::MAX,
        ended: false,
    };
    let (slot, rings) = ready.bind(1, raised).expect("there is room");
    assert_eq!(
        (rings, ready.raise(slot, NonZeroU64::MIN)),
        (Rings::Yes, Rings::No)
    );
    assert_eq!(ready.next(), Some((1, raised)));
}
