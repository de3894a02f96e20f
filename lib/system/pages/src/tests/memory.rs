//! Frames with counts, in words that a model checker watches or in the host's.

use crate::{Alarm, Frames, Held, Page, Seal, Step, Word};
use core::sync::atomic::Ordering;
use std::boxed::Box;

/// What a frame holds that nobody has filled.
pub const POISON: u64 = 99;
/// What a page of the scene holds.
pub const OWN: u64 = 1;
/// What somebody else puts into a frame.
pub const FOREIGN: u64 = 2;

const UNUSED: u64 = 0;
const BUSY: u64 = 1 << 63;
const DEVICE: u64 = 1 << 32;
/// Frames 1 to 4.
const COUNT: usize = 4;

/// Words, threads and waiting, of one kind.
pub trait Kit: Word + 'static {
    /// Plain bytes are written so: no order with anything.
    fn put(&self, value: u64);
    /// Lets others run.
    fn pause();
    /// Runs all to their end, at the same time.
    fn together(bodies: std::vec::Vec<Box<dyn FnOnce() + Send>>);
}

/// The frames of a scene.
pub struct Memory<W> {
    slots: [W; COUNT],
    content: [W; COUNT],
    wakes: W,
    broken: Option<Step>,
}

impl<W: Kit> Memory<W> {
    fn slot(&self, frame: u64) -> &W {
        &self.slots[frame as usize - 1]
    }

    /// Replaces a slot's value by what `next` makes of it, until it says `None`.
    fn change(&self, frame: u64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let slot = self.slot(frame);
        let mut value = slot.load(Ordering::Relaxed);
        loop {
            match slot.replace(value, next(value)?) {
                Ok(before) => return Some(before),
                Err(now) => value = now,
            }
        }
    }

    pub fn get(&self, frame: u64) -> u64 {
        self.content[frame as usize - 1].load(Ordering::Relaxed)
    }

    pub fn put(&self, frame: u64, value: u64) {
        self.content[frame as usize - 1].put(value);
    }

    /// How often somebody was to look again.
    pub fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::Acquire)
    }
}

impl<W: Kit> Frames for &Memory<W> {
    fn claim(&self) -> Option<u64> {
        let free = |frame: &u64| self.slot(*frame).replace(UNUSED, BUSY).is_ok();
        let frame = (1..=COUNT as u64).find(free)?;
        self.put(frame, POISON);
        self.thaw(frame);
        Some(frame)
    }

    fn share(&self, frame: u64) -> bool {
        let more = |value| (value != UNUSED && value != BUSY).then_some(value + 1);
        self.change(frame, more).is_some()
    }

    fn release(&self, frame: u64) {
        let less = |value: u64| {
            let less = || value.checked_sub(1).expect("it is in use");
            (value != BUSY).then(less)
        };
        while self.change(frame, less).is_none() {
            W::pause();
        }
    }

    fn freeze(&self, frame: u64) -> bool {
        self.slot(frame).replace(1, BUSY).is_ok()
    }

    fn thaw(&self, frame: u64) {
        self.slot(frame).replace(BUSY, 1).expect("it is frozen");
    }

    fn lend(&self, frame: u64) -> bool {
        self.change(frame, |value| Some(value + DEVICE)).is_some()
    }

    fn take_back(&self, frame: u64) {
        self.change(frame, |value| Some(value - DEVICE));
    }

    fn end_loan(&self, frame: u64) {
        let less = |value: u64| {
            let less = || value.checked_sub(DEVICE + 1).expect("it is lent");
            (value != BUSY).then(less)
        };
        while self.change(frame, less).is_none() {
            W::pause();
        }
    }

    fn is_lent(&self, frame: u64) -> bool {
        let value = self.slot(frame).load(Ordering::Acquire);
        value != BUSY && value >= DEVICE
    }

    fn give_up(&self, frame: u64) {
        self.slot(frame)
            .replace(BUSY, UNUSED)
            .expect("it is frozen");
    }

    fn wake(&self) {
        let mut value = self.wakes();
        while let Err(now) = self.wakes.replace(value, value + 1) {
            value = now;
        }
    }

    fn pause(&self) {
        W::pause();
    }

    fn breaks(&self, step: Step) -> bool {
        self.broken == Some(step)
    }
}

/// What the threads of a scene share.
pub struct Shared<W> {
    pub memory: Memory<W>,
    pub pages: [Page<W>; 2],
    pub seal: Seal<W>,
    pub alarm: Alarm<W>,
    pub disk: W,
    /// What threads tell the end of the scene.
    pub note: W,
}

impl<W: Kit> Shared<W> {
    /// Two pages, of which the first has content.
    pub fn new(broken: Option<Step>) -> Self {
        let words = |value| core::array::from_fn(|_| W::new(value));
        let shared = Shared {
            memory: Memory {
                slots: words(UNUSED),
                content: words(POISON),
                wakes: W::new(0),
                broken,
            },
            pages: [Page::empty(), Page::empty()],
            seal: Seal::open(),
            alarm: Alarm::quiet(),
            disk: W::new(OWN),
            note: W::new(0),
        };
        assert!(shared.add(0, OWN), "it is empty");
        shared
    }

    /// Adds a page with this content; whether it had none.
    pub fn add(&self, index: usize, value: u64) -> bool {
        let held = self.frame();
        self.memory.put(held.frame(), value);
        self.pages[index].put(held).is_ok()
    }

    /// A new frame.
    pub fn frame(&self) -> Held<&Memory<W>> {
        Held::claim(&self.memory).expect("there is memory")
    }

    /// Takes a frame for somebody else, who finds later what he has put there.
    pub fn somebody_else(&self) {
        let held = self.frame();
        self.memory.put(held.frame(), FOREIGN);
        W::pause();
        let bytes = self.memory.get(held.frame());
        assert_eq!(bytes, FOREIGN, "somebody else's bytes");
    }

    /// Every frame is free when the pages are gone.
    pub fn is_empty_after(&self) {
        for page in &self.pages {
            page.cut(&self.memory);
        }
        let free = |slot: &W| slot.load(Ordering::Relaxed) == UNUSED;
        assert!(self.memory.slots.iter().all(free), "frames are lost");
    }
}
