//! Tables that grow and never move, so that who reads them needs no lock.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Parts of a table; part `n` has 2^`n` items.
const PARTS: usize = 31;

/// A table of items that stay where they are until the table is dropped.
pub struct Grown<T> {
    /// Each null, or what `Box<[T]>` of its length left.
    parts: [AtomicPtr<T>; PARTS],
}

// SAFETY: it owns its items, as a `Vec` does.
unsafe impl<T: Send> Send for Grown<T> {}
// SAFETY: it gives shared references to its items alone.
unsafe impl<T: Send + Sync> Sync for Grown<T> {}

/// The part that item `index` is in, and its place there.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let one_more = index.saturating_add(1);
    let part = one_more.ilog2() as usize;
    (part, one_more - (1 << part))
}

impl<T> Grown<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Grown {
            parts: [const { AtomicPtr::new(null_mut()) }; PARTS],
        }
    }

    /// Item `index`, if the table has grown so far.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (part, at) = place(index);
        let start = self.parts.get(part)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a part that is there has 2^`part` items, more than `at`, and stays as long as the
        // table, which is borrowed.
        Some(unsafe { &*start.add(at) })
    }

    /// How many items the part has that item `index` is in: what it grows by then.
    pub fn step(index: usize) -> usize {
        1 << place(index).0
    }

    /// Has the part come into being that item `index` is in, if it is not there, with items made by
    /// `item`. Returns whether it is there; otherwise there is no memory, or the table would be too
    /// large.
    pub fn grow(&self, index: usize, item: impl Fn() -> T) -> bool {
        let (part, _) = place(index);
        let Some(cell) = self.parts.get(part) else {
            return false;
        };
        if !cell.load(Ordering::Acquire).is_null() {
            return true;
        }
        let mut items = Vec::new();
        if items.try_reserve_exact(1 << part).is_err() {
            return false;
        }
        items.resize_with(1 << part, item);
        let start = Box::into_raw(items.into_boxed_slice()).cast::<T>();
        let put = cell.compare_exchange(null_mut(), start, Ordering::AcqRel, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: nobody else has seen these, and they are as many as the part has.
            drop(unsafe { boxed(start, part) });
        }
        true
    }
}

impl<T> Default for Grown<T> {
    fn default() -> Self {
        Grown::new()
    }
}

/// 2^`part` items in one allocation, again.
///
/// # Safety
/// `start` is what a box of so many items left, and nobody has taken it back.
unsafe fn boxed<T>(start: *mut T, part: usize) -> Box<[T]> {
    // SAFETY: by the caller's duty a box of this very length.
    unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(start, 1 << part)) }
}

impl<T> Drop for Grown<T> {
    fn drop(&mut self) {
        for (part, start) in self.parts.iter_mut().enumerate() {
            let start = *start.get_mut();
            if !start.is_null() {
                // SAFETY: the part is there, and the table goes.
                drop(unsafe { boxed(start, part) });
            }
        }
    }
}

/// A value that comes once, and stays.
pub struct Settled<T>(AtomicPtr<T>);

// SAFETY: it owns its value, as a `Box` does.
unsafe impl<T: Send> Send for Settled<T> {}
// SAFETY: it gives shared references to its value alone, which came from any thread.
unsafe impl<T: Send + Sync> Sync for Settled<T> {}

impl<T> Settled<T> {
    /// Without a value so far.
    pub const fn none() -> Self {
        Settled(AtomicPtr::new(null_mut()))
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: what is not null is a value that `settle` left, and stays as long as this does.
        unsafe { value.as_ref() }
    }

    /// Gives it its value, if it has none; whether it did. `None`: there is no memory.
    pub fn settle(&self, value: T) -> Option<bool> {
        let mut one = Vec::new();
        one.try_reserve_exact(1).ok()?;
        one.push(value);
        let value = Box::into_raw(one.into_boxed_slice()).cast::<T>();
        let put = self
            .0
            .compare_exchange(null_mut(), value, Ordering::AcqRel, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: nobody else has seen it, and it is one.
            drop(unsafe { boxed(value, 0) });
        }
        Some(put.is_ok())
    }
}

impl<T> Drop for Settled<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: `settle` left one value there, and nobody sees it any more.
            drop(unsafe { boxed(value, 0) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;
    use std::sync::Arc;

    #[test]
    fn items_stay_where_they_are() {
        let table = Grown::new();
        assert!(table.get(0).is_none());
        assert!(table.grow(0, || AtomicUsize::new(7)));
        let first = table.get(0).expect("it has grown");
        for index in 0..100 {
            assert!(table.grow(index, || AtomicUsize::new(7)));
            table
                .get(index)
                .expect("it has grown")
                .store(index, Ordering::Relaxed);
        }
        assert!(core::ptr::eq(first, table.get(0).expect("it is there")));
        let kept =
            (0..100).all(|at| table.get(at).map(|item| item.load(Ordering::Relaxed)) == Some(at));
        assert!(kept);
        assert!(table.get(127).is_none());
        assert!(table.get(usize::MAX).is_none());
        assert!(!table.grow(usize::MAX, || AtomicUsize::new(0)));
    }

    #[test]
    fn a_value_comes_once() {
        let counted = Arc::new(());
        let value = Settled::none();
        assert!(value.get().is_none());
        assert!(value.settle(counted.clone()) == Some(true));
        assert!(value.settle(Arc::new(())) == Some(false));
        assert!(Arc::ptr_eq(value.get().expect("it is there"), &counted));
        drop(value);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn each_item_is_dropped_once() {
        let counted = Arc::new(());
        let table = Grown::new();
        for index in [0, 1, 3, 30] {
            assert!(table.grow(index, || counted.clone()));
        }
        assert_eq!(Arc::strong_count(&counted), 1 + 1 + 2 + 4 + 16);
        drop(table);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn many_may_grow_it_at_once() {
        let table = Grown::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for index in 0..200 {
                        assert!(table.grow(index, || AtomicUsize::new(0)));
                        let item = table.get(index).expect("it has grown");
                        item.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        for index in 0..200 {
            let item = table.get(index).expect("it is there");
            assert_eq!(item.load(Ordering::Relaxed), 4);
        }
    }
}
