//! Raises, waits, bindings and ends at the same time, under the model checker, which takes a thread
//! that waits for ever for a failure; then each with a step left out, which must be noticed.

use crate::{Bell, Kit, Locked, Slept, Step, Waiter, WordOwner, event};
use core::marker::PhantomData;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::vec::Vec;

/// The model checker's locks and waits, with step `BROKEN` left out.
struct Checked<const BROKEN: u8>(PhantomData<()>);

struct Guarded<T>(Mutex<T>);

impl<T: Send> Locked<T> for Guarded<T> {
    fn new(value: T) -> Self {
        Guarded(Mutex::new(value))
    }
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.lock().expect("nobody panics with it"))
    }
}

struct Rung(Mutex<u32>, Condvar);

impl Bell for Rung {
    fn new() -> Self {
        Rung(Mutex::new(0), Condvar::new())
    }
    fn rings(&self) -> u32 {
        *self.0.lock().expect("nobody panics with it")
    }
    fn ring(&self) {
        *self.0.lock().expect("nobody panics with it") += 1;
        self.1.notify_one();
    }
    fn wake_another(&self) {
        self.1.notify_one();
    }
    fn wait(&self, seen: u32, _: Option<u64>) -> Slept {
        let rings = self.0.lock().expect("nobody panics with it");
        if *rings == seen {
            drop(self.1.wait(rings).expect("nobody panics with it"));
        }
        Slept::Woken
    }
}

const STEPS: [Step; 4] = [
    Step::FirstRings,
    Step::RingsBeforeLook,
    Step::LeaverWakes,
    Step::CountReturns,
];
/// No step.
const WHOLE: u8 = 4;

impl<const BROKEN: u8> Kit for Checked<BROKEN> {
    type Lock<T: Send> = Guarded<T>;
    type Bell = Rung;
    type Payment = ();

    fn breaks(step: Step) -> bool {
        STEPS.get(usize::from(BROKEN)) == Some(&step)
    }
}

/// Waits one by one until `wanted` raises and `ends` ends are told; no more are.
fn drain<K: Kit>(word: &WordOwner<K>, wanted: u64, ends: u64) {
    let (mut raises, mut ended) = (0, 0);
    while raises < wanted || ended < ends {
        let told = word.word().wait(None, 1, &mut |fired| {
            raises += fired.raised.count;
            ended += u64::from(fired.raised.ended);
        });
        assert_eq!(told, Some(1));
    }
    assert_eq!((raises, ended), (wanted, ends));
}

fn bound<K: Kit<Payment = ()>>(waiter: &Waiter<K>, word: &WordOwner<K>, tag: u64) {
    waiter.bind(word.word(), tag, &|_| Some(())).expect("room");
}

/// Two raisers, each of an event of its own, and one who waits for both.
fn two_raisers<K: Kit<Payment = ()>>() {
    let word = WordOwner::<K>::new(());
    let mut threads = Vec::new();
    let mut waiters = Vec::new();
    for tag in 0..2 {
        let (raiser, waiter) = event::<K>(());
        bound(&waiter, &word, tag);
        waiters.push(waiter);
        threads.push(thread::spawn(move || {
            raiser.raise();
            raiser.raise();
        }));
    }
    drain(&word, 4, 2);
    for thread in threads {
        thread.join().expect("it ends well");
    }
    assert_eq!(word.word().take(1, &mut |_| ()), 0, "told twice");
}

/// Two who wait for one each, and one who raises both events: neither is left asleep.
fn two_waits<K: Kit<Payment = ()>>() {
    let word = Arc::new(WordOwner::<K>::new(()));
    let pairs: Vec<_> = (0..2).map(|_| event::<K>(())).collect();
    for (tag, (_, waiter)) in (0..).zip(&pairs) {
        bound(waiter, &word, tag);
    }
    let wait = || {
        let word = word.clone();
        thread::spawn(move || assert_eq!(word.word().wait(None, 1, &mut |_| ()), Some(1)))
    };
    let threads = [wait(), wait()];
    for (raiser, _) in &pairs {
        raiser.raise();
    }
    for thread in threads {
        thread.join().expect("it ends well");
    }
}

/// A binding that ends and begins again while somebody raises: each raise is told once.
fn moving<K: Kit<Payment = ()>>() {
    let word = WordOwner::<K>::new(());
    let (raiser, waiter) = event::<K>(());
    bound(&waiter, &word, 1);
    let raising = thread::spawn(move || (0..3).for_each(|_| raiser.raise()));
    assert!(waiter.unbind());
    bound(&waiter, &word, 2);
    drain(&word, 3, 1);
    raising.join().expect("it ends well");
}

/// A word that ends while somebody raises: the event can be bound to another.
fn closing<K: Kit<Payment = ()>>() {
    let (word, other) = (WordOwner::<K>::new(()), WordOwner::<K>::new(()));
    let (raiser, waiter) = event::<K>(());
    bound(&waiter, &word, 1);
    let ending = thread::spawn(move || drop(word));
    let raising = thread::spawn(move || {
        raiser.raise();
        raiser
    });
    ending.join().expect("it ends well");
    bound(&waiter, &other, 2);
    let raiser = raising.join().expect("it ends well");
    raiser.raise();
    let mut count = 0;
    other
        .word()
        .wait(None, 1, &mut |fired| count += fired.raised.count);
    assert!((1..=2).contains(&count), "{count}");
}

fn explore(scene: fn()) {
    shuttle::check_random(scene, 2_000);
    shuttle::check_pct(scene, 2_000, 3);
}

#[test]
fn nothing_is_lost_and_nothing_told_twice() {
    explore(two_raisers::<Checked<WHOLE>>);
    explore(two_waits::<Checked<WHOLE>>);
    explore(moving::<Checked<WHOLE>>);
    explore(closing::<Checked<WHOLE>>);
}

#[test]
fn each_step_is_needed() {
    let broken: [(Step, fn()); 4] = [
        (Step::FirstRings, two_raisers::<Checked<0>>),
        (Step::RingsBeforeLook, two_raisers::<Checked<1>>),
        (Step::LeaverWakes, two_waits::<Checked<2>>),
        (Step::CountReturns, moving::<Checked<3>>),
    ];
    for (step, scene) in broken {
        let found = catch_unwind(|| explore(scene));
        assert!(found.is_err(), "nobody noticed that {step:?} is missing");
    }
}
