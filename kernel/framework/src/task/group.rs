//! Groups of threads that share processor time: numbers for the policy, counted here.
//!
//! Outside the framework a group has a key that is never used again; inside, a small number, which
//! is free for another key when its last thread and its last [`Group`] are gone.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::policy::Share;
use super::sched;
use crate::sync::{IrqOff, SpinLock};

/// Most groups at a time.
pub const MAX_GROUPS: usize = 1024;
/// The kernel's own threads.
const SYSTEM: u32 = 0;
/// Those groups together that came when there were no numbers left.
const CROWD: u32 = 1;
/// The first number that is given out.
const FIRST: usize = 2;

/// Guards which key has which number.
static NAMING: SpinLock<()> = SpinLock::new(());
/// Key by number.
static KEYS: [AtomicU64; MAX_GROUPS] = [const { AtomicU64::new(0) }; MAX_GROUPS];
/// No number from here on was ever given.
static END: AtomicUsize = AtomicUsize::new(FIRST);
/// Holders by number; 0: it is free.
static HOLDERS: [AtomicU32; MAX_GROUPS] = [const { AtomicU32::new(0) }; MAX_GROUPS];

/// A counted reference to a group.
#[derive(Debug)]
pub struct Group(u32);

impl Group {
    /// Of the kernel's own threads.
    pub const fn system() -> Self {
        Self(SYSTEM)
    }

    /// The group with this key; if it has no threads, it begins with this share. 0 is the kernel's
    /// own.
    ///
    /// Where there are too many groups, some share what one of them gets.
    pub fn of(key: u64, share: Share) -> Self {
        if key == 0 {
            return Self::system();
        }
        let _naming = NAMING.lock();
        let held = |index: &usize| HOLDERS[*index].load(Ordering::Relaxed) != 0;
        let same = |index: &usize| held(index) && KEYS[*index].load(Ordering::Relaxed) == key;
        if let Some(index) = (FIRST..END.load(Ordering::Relaxed)).find(same) {
            // It may have become free since it was looked at, which makes it a new one.
            if HOLDERS[index].fetch_add(1, Ordering::AcqRel) == 0 {
                sched::policy().open_group(index as u32, share);
            }
            return Self(index as u32);
        }
        let Some(index) = (FIRST..MAX_GROUPS).find(|index| !held(index)) else {
            return Self(CROWD);
        };
        END.fetch_max(index + 1, Ordering::Relaxed);
        KEYS[index].store(key, Ordering::Relaxed);
        HOLDERS[index].store(1, Ordering::Release);
        sched::policy().open_group(index as u32, share);
        Self(index as u32)
    }

    /// Its number, with the count.
    pub(super) fn into_number(self) -> u32 {
        let number = self.0;
        core::mem::forget(self);
        number
    }

    /// Takes a number back that `into_number` gave.
    pub(super) fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.0 as usize >= FIRST {
            HOLDERS[self.0 as usize].fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The key of a group that is held.
pub(super) fn key_of(number: u32) -> u64 {
    match number {
        SYSTEM | CROWD => 0,
        _ => KEYS[number as usize % MAX_GROUPS].load(Ordering::Relaxed),
    }
}

/// Puts the running thread into `group` for good. What it has used until now may be counted there.
///
/// It gives way at once: the slice that it has was its old group's right, and a hundred threads
/// that go over one after the other would have a hundred slices before anybody else.
pub fn join_group(group: Group) {
    {
        let _irq = IrqOff::new();
        if let Some(thread) = sched::current() {
            let old = thread.group.swap(group.into_number(), Ordering::Relaxed);
            drop(Group::from_number(old));
        }
    }
    sched::give_way();
}
