//! The heap against a map of deadlines, and its ends.

use crate::{CHUNK, Deadlines, Due, MOST_TIMERS, NoPlace, Room, State, Timer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use std::collections::BTreeMap;

type All = Deadlines<usize>;

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

fn timer(all: &mut All, number: usize) -> Arc<Timer<usize>> {
    while let Err(why) = all.book() {
        let NoPlace::Grow(chunks) = why else {
            panic!("{why:?}");
        };
        all.extend(&mut Room::new(chunks).expect("the host has memory"));
    }
    Arc::new(Timer::new(number))
}

fn period(ns: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(ns)
}

/// Each timer that is due at `now`, and how often.
fn due(all: &mut All, now: u64) -> Vec<(usize, u64)> {
    let mut taken = Vec::new();
    loop {
        let mut batch = [const { None }; 3];
        let count = all.take_due(now, &mut batch);
        assert!(batch[count..].iter().all(Option::is_none));
        let told = |Due { timer, times }: Due<usize>| (*timer.value(), times.get());
        taken.extend(batch.into_iter().flatten().map(told));
        if count < 3 {
            return taken;
        }
    }
}

/// What the timers are set to, by number: deadline, period, overruns.
type Plain = BTreeMap<usize, (u64, u64)>;

fn earliest(plain: &Plain) -> Option<u64> {
    plain.values().map(|&(deadline, _)| deadline).min()
}

/// Takes one that is due out of the plain map, as the rules say; how often it was.
fn plain_due(plain: &mut Plain, number: usize, now: u64) -> u64 {
    let (deadline, period) = plain[&number];
    assert!(deadline <= now, "it is due too early");
    assert_eq!(Some(deadline), earliest(plain), "another was due before");
    let (mut next, mut times) = (deadline, 0);
    while next <= now {
        times += 1;
        if period == 0 {
            plain.remove(&number);
            return 1;
        }
        next += period;
    }
    plain.insert(number, (next, period));
    times
}

struct Scene {
    all: All,
    timers: Vec<Option<Arc<Timer<usize>>>>,
    plain: Plain,
    overruns: BTreeMap<usize, u64>,
    now: u64,
}

impl Scene {
    fn set(&mut self, dice: &mut Dice, number: usize) {
        let deadline = (self.now + dice.below(400)).saturating_sub(100);
        let every = [0, 0, 1 + dice.below(90)][dice.below(3) as usize];
        let before = earliest(&self.plain);
        let timer = self.timers[number].as_ref().expect("it was made");
        let is_first = self.all.set(timer, deadline, period(every));
        assert_eq!(is_first, before.is_none_or(|before| deadline < before));
        self.plain.insert(number, (deadline, every));
        self.overruns.insert(number, 0);
    }

    fn forget(&mut self, number: usize) {
        let timer = self.timers[number].take().expect("it was made");
        drop(self.all.forget(&timer));
        assert_eq!(Arc::strong_count(&timer), 1);
        self.plain.remove(&number);
        self.overruns.remove(&number);
    }

    fn pass(&mut self, dice: &mut Dice) {
        self.now += dice.below(120);
        let mut batch = [const { None }; 2];
        let count = self.all.take_due(self.now, &mut batch);
        for Due { timer, times } in batch.into_iter().flatten() {
            let number = *timer.value();
            assert_eq!(times.get(), plain_due(&mut self.plain, number, self.now));
            *self.overruns.entry(number).or_default() += times.get() - 1;
        }
        let left = earliest(&self.plain);
        assert!(count == 2 || left.is_none_or(|left| left > self.now));
    }

    fn step(&mut self, dice: &mut Dice) {
        let number = dice.below(self.timers.len() as u64) as usize;
        match (&self.timers[number], dice.below(16)) {
            (None, _) => self.timers[number] = Some(timer(&mut self.all, number)),
            (Some(_), 0) => self.forget(number),
            (Some(timer), 1..=4) => {
                let was_set = self.all.cancel(timer).is_some();
                assert_eq!(was_set, self.plain.remove(&number).is_some());
            }
            (Some(_), 5..=9) => self.pass(dice),
            _ => self.set(dice, number),
        }
        assert_eq!(self.all.next(), earliest(&self.plain));
        if let Some(timer) = &self.timers[number] {
            let expected = State {
                deadline: self.plain.get(&number).map(|&(deadline, _)| deadline),
                overruns: self.overruns.get(&number).copied().unwrap_or(0),
            };
            assert_eq!(self.all.state(timer), expected);
        }
    }
}

#[test]
fn it_does_what_a_map_does() {
    // Sanitizers, which say how often a scene is to run, make each step many times slower.
    let steps = match std::env::var_os("TREFOIL_STRESS_RUNS") {
        Some(_) => 1_000,
        None => 40_000,
    };
    for (seed, timers) in [(1, 5), (2, 40), (3, 3 * CHUNK), (4, 1)] {
        let dice = &mut Dice(seed);
        let mut scene = Scene {
            all: All::new(),
            timers: Vec::new(),
            plain: Plain::new(),
            overruns: BTreeMap::new(),
            now: 1000,
        };
        scene.timers.resize_with(timers, || None);
        (0..steps).for_each(|_| scene.step(dice));
        for number in 0..timers {
            if scene.timers[number].is_some() {
                scene.forget(number);
            }
        }
        assert_eq!(scene.all.next(), None);
        assert_eq!(scene.all.heap.room(), 0, "memory is kept");
    }
}

#[test]
fn ten_thousand_come_in_their_order() {
    let (mut all, mut dice) = (All::new(), Dice(7));
    let timers: Vec<_> = (0..10_000).map(|number| timer(&mut all, number)).collect();
    let deadlines: Vec<u64> = timers.iter().map(|_| dice.below(1 << 30)).collect();
    for (timer, deadline) in timers.iter().zip(&deadlines) {
        let _ = all.set(timer, *deadline, None);
    }
    for timer in timers.iter().step_by(2) {
        assert!(all.cancel(timer).is_some());
        assert!(all.cancel(timer).is_none());
    }
    let told = due(&mut all, 1 << 30);
    let mut expected: Vec<usize> = (1..10_000).step_by(2).collect();
    assert!(told.is_sorted_by_key(|&(number, _)| deadlines[number]));
    let mut numbers: Vec<usize> = told.iter().map(|told| told.0).collect();
    numbers.sort_unstable();
    expected.sort_unstable();
    assert_eq!(numbers, expected);
}

#[test]
fn periods_at_the_end_of_time() {
    let mut all = All::new();
    let one = timer(&mut all, 1);
    assert!(all.set(&one, 0, period(u64::MAX)));
    assert_eq!(due(&mut all, 0), [(1, 1)]);
    assert_eq!(all.next(), Some(u64::MAX));
    assert_eq!(due(&mut all, u64::MAX - 1), []);
    // There is no deadline after this one.
    assert_eq!(due(&mut all, u64::MAX), [(1, 1)]);
    assert_eq!(all.next(), None);
    assert!(all.set(&one, 1, period(1)));
    assert_eq!(due(&mut all, u64::MAX), [(1, u64::MAX)]);
    assert_eq!(all.next(), None);
    let _ = all.set(&one, u64::MAX - 5, period(2));
    assert_eq!(due(&mut all, u64::MAX), [(1, 3)]);
    assert_eq!(all.state(&one).overruns, 2);
    drop(all.forget(&one));
}

#[test]
fn room_that_came_too_late_is_left() {
    let mut all = All::new();
    assert_eq!(all.book(), Err(NoPlace::Grow(1)));
    let (mut first, mut second) = (Room::new(1).unwrap(), Room::new(1).unwrap());
    all.extend(&mut first);
    all.extend(&mut second);
    assert_eq!(all.heap.room(), 2 * CHUNK - CHUNK);
    for _ in 0..CHUNK {
        assert_eq!(all.book(), Ok(()));
    }
    assert_eq!(all.book(), Err(NoPlace::Grow(2)));
    // It was made for the first chunk, and the table has no room for a second one.
    all.extend(&mut second);
    assert_eq!(all.book(), Err(NoPlace::Grow(2)));
    all.extend(&mut Room::new(2).unwrap());
    assert_eq!(all.book(), Ok(()));
    // It would do, but there are places enough by now.
    all.extend(&mut Room::new(3).unwrap());
    assert_eq!(all.heap.room(), 2 * CHUNK);
}

#[test]
fn a_chunk_is_kept_and_more_are_not() {
    let mut all = All::new();
    let mut timers: Vec<_> = (0..4 * CHUNK).map(|it| timer(&mut all, it)).collect();
    for (at, timer) in timers.iter().enumerate() {
        let _ = all.set(timer, at as u64, None);
    }
    while let Some(timer) = timers.pop() {
        drop(all.forget(&timer));
        let spare = all.heap.room() - timers.len();
        assert!(spare < 2 * CHUNK, "{spare} places are kept");
        assert_eq!(all.next(), (!timers.is_empty()).then_some(0));
    }
    assert_eq!(all.heap.room(), 0);
}

#[test]
fn there_is_a_most() {
    let mut all = All::new();
    let mut made = 0;
    loop {
        match all.book() {
            Ok(()) => made += 1,
            Err(NoPlace::Grow(chunks)) => all.extend(&mut Room::new(chunks).unwrap()),
            Err(NoPlace::Full) => break,
        }
    }
    assert_eq!(made, MOST_TIMERS);
}

#[test]
#[should_panic = "a place was booked for each timer"]
fn who_books_nothing_sets_nothing() {
    let mut all = All::new();
    let one = Arc::new(Timer::new(1));
    let _ = all.set(&one, 1, None);
}
