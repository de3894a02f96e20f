//! Images in memory, and what is kept of them for the next instance.
//!
//! When an instance is gone its image stays mapped, with the verified file that it was made from
//! ([`Kept`]), if no other is there yet: the next instance then need not be mapped, copied and
//! relocated. What the dead one could write is filled anew by the loader; code and constants cannot
//! have been changed, because they are mapped without the right to. So they are what was verified
//! as much as the file is, which the kernel keeps in its own memory.
//!
//! At most one is kept for each file, and no longer than the file, nor when somebody gets no memory
//! ([`give_up`]).

use crate::lock::Lock;
use crate::platform::ImageSpace;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// What is kept, each with the number of its [`Kept`]. Unmapping waits for other processors, so it
/// is not done under the lock.
static ALL: Lock<Vec<(u64, Box<dyn ImageSpace>)>> = Lock::new(Vec::new());

/// Where the image of a former instance of one file is kept, if there is one.
pub(crate) struct Kept(u64);

impl Kept {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Kept(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes it, to be used by another instance.
    pub(crate) fn take(&self) -> Option<Box<dyn ImageSpace>> {
        let mut all = ALL.lock();
        let index = all.iter().position(|(home, _)| *home == self.0)?;
        Some(all.swap_remove(index).1)
    }

    /// Keeps `space` if nothing is kept yet.
    fn keep(&self, space: Box<dyn ImageSpace>) {
        let mut all = ALL.lock();
        let is_first = all.iter().all(|(home, _)| *home != self.0);
        if is_first && all.try_reserve(1).is_ok() {
            all.push((self.0, space));
            return;
        }
        drop(all);
        drop(space);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// What [`give_up`] has brought.
#[must_use = "where nothing was kept it is in vain to try again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// Memory.
    Something,
    /// Nothing was kept.
    Nothing,
}

/// Frees all that is kept. To be called without a lock.
pub(crate) fn give_up() -> GivenUp {
    let all = core::mem::take(&mut *ALL.lock());
    match all.is_empty() {
        true => GivenUp::Nothing,
        false => GivenUp::Something,
    }
}

/// An image in memory that an instance uses.
pub(crate) struct Loaded {
    space: Box<dyn ImageSpace>,
    /// Where it is kept afterwards.
    home: Weak<Kept>,
}

impl Loaded {
    /// An image in `space` that is kept at `home` afterwards.
    pub(crate) fn new(space: Box<dyn ImageSpace>, home: &Arc<Kept>) -> Self {
        let home = Arc::downgrade(home);
        Loaded { space, home }
    }

    /// An image that is not kept.
    #[cfg(test)]
    pub(crate) fn for_once(space: Box<dyn ImageSpace>) -> Self {
        let home = Weak::new();
        Loaded { space, home }
    }

    /// Where it is.
    pub(crate) fn space(&self) -> &dyn ImageSpace {
        &*self.space
    }

    /// It is not what was loaded any more, so it must not be kept.
    #[cfg(feature = "faults")]
    pub(crate) fn is_altered(&mut self) {
        self.home = Weak::new();
    }

    /// Nobody uses it any more: keeps it, or frees it.
    pub(crate) fn retire(self) {
        if let Some(home) = self.home.upgrade() {
            home.keep(self.space);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::group::Seat;
    use crate::domain::{self, Limits};
    use crate::model::machine;
    use crate::platform::Protection;
    use abi::RpcError;
    use core::ptr::NonNull;
    use core::sync::atomic::AtomicUsize;
    use std::sync::Mutex;

    /// A space of no pages that counts how many of them are mapped.
    struct Space(Arc<AtomicUsize>);

    impl ImageSpace for Space {
        fn start(&self) -> NonNull<u8> {
            NonNull::dangling()
        }

        fn pages(&self) -> usize {
            0
        }

        fn protect(&self, _: usize, _: usize, _: Protection) {}
    }

    impl Drop for Space {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// There is one place for all that is kept.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_start_takes_nothing_from_the_reserve() {
        let _alone = ALONE.lock();
        machine::set_up();
        let (mapped, home) = (Arc::new(AtomicUsize::new(1)), Arc::new(Kept::new()));
        Loaded::new(Box::new(Space(mapped.clone())), &home).retire();
        let own = Loaded::for_once(Box::new(Space(Arc::new(AtomicUsize::new(1)))));
        let seat = Seat::new(None, &Limits::NONE.group).expect("memory");
        machine::SHORT.set(true);
        let refused = domain::create("late", Limits::NONE, None, seat, own);
        machine::SHORT.set(false);
        assert_eq!(refused.err(), Some(RpcError::NoMemory));
        assert_eq!(mapped.load(Ordering::Relaxed), 0, "what was kept is left");
    }

    #[test]
    fn one_is_kept_for_each_file_until_it_is_needed_or_given_up() {
        let _alone = ALONE.lock();
        let mapped = Arc::new(AtomicUsize::new(0));
        let load = |home: &Arc<Kept>| {
            mapped.fetch_add(1, Ordering::Relaxed);
            Loaded::new(Box::new(Space(mapped.clone())), home)
        };
        let are_mapped = |count: usize| assert_eq!(mapped.load(Ordering::Relaxed), count);
        let (home, other) = (Arc::new(Kept::new()), Arc::new(Kept::new()));
        assert!(home.take().is_none());
        let instances = [load(&home), load(&home), load(&other)];
        are_mapped(3);
        instances.into_iter().for_each(Loaded::retire);
        are_mapped(2);
        assert!(home.take().is_some() && home.take().is_none());
        are_mapped(1);
        // The file goes: what is kept goes with it, and what still runs is not kept.
        let last = load(&other);
        drop(other);
        are_mapped(1);
        last.retire();
        are_mapped(0);
        load(&home).retire();
        are_mapped(1);
        assert_eq!(give_up(), GivenUp::Something);
        assert_eq!(give_up(), GivenUp::Nothing);
        are_mapped(0);
        assert!(home.take().is_none());
    }
}
