//! Who is told that pages have become dirty.

use super::*;
use crate::event::{Kernel, Raiser};
use ::events::{Waiter, event};

pub fn told(object: &Object) -> Waiter<Kernel> {
    let (raiser, waiter) = event::<Kernel>(None);
    object.tell_dirty(Some(Arc::new(raiser)));
    waiter
}

#[test]
fn the_first_dirty_page_is_told_until_somebody_looks() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Zero);
    let waiter = told(&object);
    assert_eq!(waiter.take().count, 0, "nothing is dirty");
    (0..10).for_each(|page| put(&object, page, 1).expect("there is memory"));
    assert_eq!(waiter.take().count, 1, "told once");
    assert_eq!(object.next(0, PageKind::Present), Some(0));
    put(&object, 10, 1).expect("there is memory");
    assert_eq!(waiter.take().count, 0, "nobody has looked for dirty ones");
    assert_eq!(object.clean(0, 1000), Ok(Some((0, 11))));
    put(&object, 3, 2).expect("there is memory");
    put(&object, 4, 2).expect("there is memory");
    assert_eq!(waiter.take().count, 1, "dirty again");
    assert_eq!(object.commit(0, 11), Ok(11));
    assert_eq!(object.clean(0, 1000), Ok(Some((3, 2))));
    assert_eq!(object.redo(3, 2), Ok(2));
    assert_eq!(waiter.take().count, 1, "what has to be done again is dirty");
}

#[test]
fn what_is_dirty_already_is_told_at_once() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Zero);
    put(&object, 700, 1).expect("there is memory");
    let first = told(&object);
    assert_eq!(first.take().count, 1);
    let second = told(&object);
    let replaced = first.take();
    assert_eq!((replaced.count, replaced.ended), (0, true), "replaced");
    assert_eq!(second.take().count, 1);
    // An event of which nobody learns any more is raised all the same.
    drop(second);
    object.clean(0, 1000).expect("it is within");
    put(&object, 1, 1).expect("there is memory");
    let third = told(&object);
    drop(object);
    assert!(third.take().ended, "it goes with its object");
    assert_eq!(purse.used(), 0);
}

/// Many write, and one who looks only when he is told: in the end nothing is dirty that he was not
/// told of.
#[test]
fn no_dirty_page_is_missed_among_threads() {
    const PAGES: u64 = 150;
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, PAGES, VmoFill::Zero);
    let (raiser, waiter): (Raiser, _) = event(None);
    object.tell_dirty(Some(Arc::new(raiser)));
    let writing = AtomicUsize::new(3);
    let collect = || {
        let count = waiter.take().count;
        while let Ok(Some((first, count))) = object.clean(0, PAGES) {
            object.commit(first, count).expect("it is within");
        }
        count
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (object, writing) = (&object, &writing);
            scope.spawn(move || {
                let mut state = seed;
                for _ in 0..3_000 {
                    put(object, random(&mut state) % PAGES, 1).expect("there is memory");
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while writing.load(Ordering::SeqCst) > 0 {
            match waiter.take().count {
                0 => std::thread::yield_now(),
                _ => _ = collect(),
            }
        }
    });
    let dirty = object.next(0, PageKind::Dirty);
    let told = waiter.take().count;
    assert!(dirty.is_none() || told > 0, "page {dirty:?} was never told");
}
