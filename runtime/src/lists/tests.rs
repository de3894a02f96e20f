//! Objects from runs, runs from objects, and the reserve.

use super::*;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::vec::Vec;

/// Runs for a heap; freed at the end.
struct Runs(Vec<*mut u8>);

impl Runs {
    const LAYOUT: Layout = match Layout::from_size_align(RUN, RUN) {
        Ok(layout) => layout,
        Err(_) => panic!("a run is aligned to its size"),
    };

    fn add(&mut self) -> *mut u8 {
        // SAFETY: the size is not 0.
        let run = unsafe { alloc_zeroed(Self::LAYOUT) };
        assert!(!run.is_null());
        self.0.push(run);
        run
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        for &run in &self.0 {
            // SAFETY: from `add`.
            unsafe { dealloc(run, Self::LAYOUT) };
        }
    }
}

/// A heap with `reserve` spare runs and one to cut from.
fn heap(runs: &mut Runs, reserve: usize) -> Lists {
    let mut lists = Lists::EMPTY;
    lists.want_spare(reserve);
    while lists.lacks_spare() {
        let run = runs.add();
        assert_eq!(lists.keep_spare(run), Spare::Kept);
    }
    // SAFETY: a run of ours.
    unsafe { lists.add_run(runs.add()) };
    lists
}

fn class(size: usize) -> usize {
    class_of(size).expect("a small object")
}

/// An object, when the kernel gives no runs.
fn get(lists: &mut Lists, class: usize) -> *mut u8 {
    match lists.take(class) {
        object if object.is_null() => lists.scrape(class),
        object => object,
    }
}

fn all(lists: &mut Lists, size: usize) -> Vec<*mut u8> {
    core::iter::from_fn(|| {
        let object = get(lists, class(size));
        (!object.is_null()).then_some(object)
    })
    .collect()
}

fn free(lists: &mut Lists, size: usize, objects: Vec<*mut u8>) {
    for object in objects {
        // SAFETY: from `all` with this size.
        unsafe { lists.put(class(size), object) };
    }
}

#[test]
fn classes_are_powers_of_two() {
    assert_eq!(class_of(0), Some(0));
    assert_eq!(class_of(17), Some(1));
    assert_eq!(class_of(LARGEST), Some(CLASSES - 1));
    assert_eq!(class_of(LARGEST + 1), None);
    assert_eq!(class_of(usize::MAX), None);
}

#[test]
fn objects_do_not_overlap_and_lie_at_multiples_of_their_size() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    let mut seen = Vec::new();
    let sizes = [16usize, 4096, 48, 32_768, 16, 700, 64, 4096, 16];
    for size in sizes.iter().cycle() {
        let size = size.next_power_of_two();
        let object = get(&mut lists, class(size)) as usize;
        if object == 0 {
            break;
        }
        assert_eq!(object % size, 0);
        seen.push((object, size));
    }
    seen.sort_unstable();
    assert!(
        seen.windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
    );
    assert!(seen.len() > 8);
}

#[test]
fn nothing_of_a_run_is_lost() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    assert!(!get(&mut lists, class(16)).is_null());
    assert!(!get(&mut lists, class(LARGEST)).is_null());
    // What stands between them, and behind, is there for small ones.
    assert_eq!(all(&mut lists, 16).len(), (RUN - LARGEST) / 16 - 1);
}

#[test]
fn what_was_freed_in_small_pieces_serves_large_ones() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    let small = all(&mut lists, 64);
    assert_eq!(small.len(), RUN / 64);
    assert!(get(&mut lists, class(LARGEST)).is_null());
    free(&mut lists, 64, small);
    assert_eq!(all(&mut lists, LARGEST).len(), 2);
}

#[test]
fn of_much_that_is_free_whole_runs_are_given_back_and_the_rest_is_looked_at_seldom() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 1);
    let mut objects = all(&mut lists, LARGEST);
    for _ in 0..40 {
        // SAFETY: a run of ours.
        unsafe { lists.add_run(runs.add()) };
        objects.extend(all(&mut lists, LARGEST));
    }
    assert!(!lists.has_much());
    // Every tenth stays.
    let (kept, freed): (Vec<_>, Vec<_>) = objects
        .drain(..)
        .enumerate()
        .partition(|(at, _)| at % 10 == 0);
    free(
        &mut lists,
        LARGEST,
        freed.into_iter().map(|(_, object)| object).collect(),
    );
    assert!(lists.has_much());
    lists.merge();
    assert!(!lists.has_much());
    let mut whole: Vec<_> = core::iter::from_fn(|| lists.take_whole()).collect();
    assert_eq!(whole.len(), 41 - kept.len());
    assert!(whole.iter().all(|run| runs.0.contains(run)));
    whole.dedup();
    assert_eq!(whole.len(), 41 - kept.len());
    // The other halves are there.
    assert_eq!(all(&mut lists, LARGEST).len(), kept.len());
}

#[test]
fn neighbours_that_are_not_halves_of_one_stay_apart() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    let mut small = all(&mut lists, 4096);
    small.sort_unstable();
    let ends = [small.pop().expect("many"), small.remove(0)];
    free(&mut lists, 4096, small);
    lists.merge();
    // 4 KiB at both ends are held: 8, 16 in one half, 16, 8 in the other.
    assert_eq!(all(&mut lists, LARGEST).len(), 0);
    assert_eq!(all(&mut lists, LARGEST / 2).len(), 2);
    assert_eq!(all(&mut lists, LARGEST / 4).len(), 2);
    free(&mut lists, 4096, ends.into());
}

#[test]
fn the_reserve_serves_small_objects_alone_and_says_when_it_gets_low() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 4);
    assert_eq!(all(&mut lists, LARGEST).len(), 2);
    assert!(!lists.lacks_spare() && !lists.is_short());
    let mut held = Vec::new();
    while !lists.is_short() {
        held.push(get(&mut lists, class(LARGEST_FROM_RESERVE)));
        assert!(!held.contains(&null_mut()));
    }
    // The second of four runs was begun.
    assert_eq!(held.len(), RUN / LARGEST_FROM_RESERVE + 1);
    let rest = all(&mut lists, 16);
    assert_eq!(rest.len(), (3 * RUN - LARGEST_FROM_RESERVE) / 16);
    free(&mut lists, 16, rest);
    free(&mut lists, LARGEST_FROM_RESERVE, held);
    (0..3).for_each(|_| lists.merge());
    assert!(!lists.lacks_spare());
}

#[test]
fn a_merge_looks_at_so_many_only_and_loses_none() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    let mut small = all(&mut lists, 16);
    for _ in 0..3 {
        // SAFETY: a run of ours.
        unsafe { lists.add_run(runs.add()) };
        small.extend(all(&mut lists, 16));
    }
    let count = small.len();
    assert!(count > MERGED_AT_ONCE);
    free(&mut lists, 16, small);
    lists.merge();
    assert_eq!(all(&mut lists, 16).len(), count);
}

#[test]
fn a_magazine_gives_what_it_took_and_gives_all_back() {
    let mut runs = Runs(Vec::new());
    let mut lists = heap(&mut runs, 0);
    let (class, mut magazine) = (class(64), Magazine::EMPTY);
    assert!(Magazine::has(class) && !Magazine::has(class + 4));
    assert!(magazine.take(class).is_null(), "it is empty");
    let mut objects = std::vec![magazine.fill(class, &mut lists)];
    objects.extend(core::iter::from_fn(|| {
        Some(magazine.take(class)).filter(|it| !it.is_null())
    }));
    let mut different = objects.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!((objects.len(), different.len()), (16, 16));
    let more = (0..20).map(|_| get(&mut lists, class));
    objects.extend(more);
    let mut full = 0;
    for object in objects {
        // SAFETY: an object of this class that nobody uses.
        if unsafe { magazine.put(class, object) } {
            full += 1;
            magazine.empty(class, &mut lists);
        }
    }
    assert_eq!(full, 1, "32 are the most");
    magazine.empty_all(&mut lists);
    assert!(magazine.take(class).is_null());
    lists.merge();
    // SAFETY: a run of ours. What was cut from the first one has become one again with this.
    unsafe { lists.add_run(runs.add()) };
    lists.merge();
    assert!(
        lists.take_whole().is_some(),
        "something is missing of a run"
    );
}
