//! What is kept, what is given up, and what is written when.

use super::*;
use core::sync::atomic::{AtomicBool, Ordering};

fn filled(count: u32) -> Cache {
    let mut cache = Cache::new(8, || false);
    (0..count).for_each(|block| cache.insert_clean(block, &[block as u8]));
    cache
}

#[test]
fn the_least_recently_used_is_evicted() {
    let mut cache = filled(8);
    cache.get(0);
    cache.insert_clean(100, &[1]);
    assert!(cache.contains(0) && !cache.contains(1) && cache.len() == 8);
}

#[test]
fn while_memory_is_short_few_blocks_are_kept() {
    static SHORT: AtomicBool = AtomicBool::new(false);
    let mut cache = Cache::new(1000, || SHORT.load(Ordering::Relaxed));
    (0..500).for_each(|block| cache.insert_clean(block, &[1]));
    assert_eq!(cache.len(), 500);
    SHORT.store(true, Ordering::Relaxed);
    cache.insert_clean(500, &[1]);
    assert_eq!(cache.len(), SHORT_CAPACITY);
    assert!(cache.contains(500) && cache.contains(499) && !cache.contains(0));
    (500..600).for_each(|block| cache.insert_clean(block, &[1]));
    assert_eq!((cache.len(), cache.slots.len()), (SHORT_CAPACITY, 500));
    SHORT.store(false, Ordering::Relaxed);
    (1000..1900).for_each(|block| cache.insert_clean(block, &[1]));
    assert_eq!(cache.slots.len(), 900 + SHORT_CAPACITY);
    assert!((1000..1900).all(|block| cache.contains(block)));
}

#[test]
fn dirty_blocks_stay_and_the_reserve_too() {
    let mut cache = filled(8);
    (0..8).for_each(|block| assert!(cache.get_dirty(block, Kind::Data).is_some()));
    (20..24).for_each(|block| cache.insert_clean(block, &[1]));
    assert!((0..8).all(|block| cache.contains(block)));
    assert!(cache.contains(22) && cache.contains(23));
    (0..8).for_each(|block| cache.mark_clean(block));
    cache.shrink();
    assert_eq!(cache.len(), 8);
}

#[test]
fn runs_are_sorted_and_split_at_gaps_and_limits() {
    let mut cache = filled(8);
    [6, 2, 3, 1]
        .iter()
        .for_each(|block| assert!(cache.get_dirty(*block, Kind::Map).is_some()));
    assert_eq!(cache.dirty_run(Kind::Map, 0, 10), Some((1, 3)));
    assert_eq!(cache.dirty_run(Kind::Map, 0, 2), Some((1, 2)));
    assert_eq!(cache.dirty_run(Kind::Map, 4, 10), Some((6, 1)));
    assert_eq!(cache.dirty_run(Kind::Map, 7, 10), None);
    assert_eq!(cache.dirty_run(Kind::Data, 0, 10), None);
}

#[test]
fn a_logged_block_that_changes_is_logged_no_more() {
    let mut cache = filled(4);
    cache.get_dirty(1, Kind::Inode);
    cache.mark_logged(1);
    cache.mark_logged(77);
    assert!(cache.dirty_blocks(Kind::Logged).eq([1]));
    assert_eq!(cache.dirty_count(Kind::Inode), 0);
    cache.get_dirty(1, Kind::Inode);
    assert_eq!(cache.dirty_count(Kind::Logged), 0);
    assert!(cache.dirty_blocks(Kind::Inode).eq([1]));
}

#[test]
fn the_earlier_kind_wins_and_forgotten_blocks_are_gone() {
    let mut cache = filled(4);
    cache.get_dirty(1, Kind::Directory);
    cache.get_dirty(1, Kind::Map);
    cache.get_dirty(1, Kind::Directory);
    assert_eq!(
        (
            cache.dirty_count(Kind::Map),
            cache.dirty_count(Kind::Directory)
        ),
        (1, 0)
    );
    cache.forget(1);
    cache.forget(77);
    assert_eq!((cache.dirty_count(Kind::Map), cache.len()), (0, 3));
}

#[test]
fn a_slot_that_was_given_to_another_block_is_not_found_by_the_old_number() {
    let mut cache = Cache::new(8, || false);
    // Numbers that are found in the same way.
    let alike = |n: u32| 5 + n * NEAR as u32;
    let is_own = |cache: &Cache, n: u32| {
        let content = cache.peek(alike(n));
        content.is_none_or(|content| content == [n as u8; 16])
    };
    for n in 0..100 {
        cache.insert_clean(alike(n), &[n as u8; 16]);
        assert_eq!(cache.get(alike(n)), Some(&[n as u8; 16][..]));
        assert!((0..n).all(|other| is_own(&cache, other)));
        if n % 3 == 0 {
            cache.forget(alike(n));
            assert!(!cache.contains(alike(n)) && cache.get(alike(n)).is_none());
        }
    }
    let cached = (0..100).filter(|n| cache.contains(alike(*n))).count();
    assert_eq!(cached, cache.len());
}

#[test]
fn what_is_done_to_a_block_makes_old_what_is_read_of_it() {
    let mut cache = Cache::new(8, || false);
    let one = cache.begin_reading(10, 4).expect("memory");
    cache.insert_dirty(11, Box::from([1; 16]), Kind::Map);
    let other = cache.begin_reading(12, 2).expect("memory");
    cache.forget(13);
    assert_eq!(cache.end_reading(&other), 0b10);
    assert_eq!(cache.end_reading(&one), 0b1010);
    // What another one has read as well is not old.
    let one = cache.begin_reading(20, 1).expect("memory");
    cache.insert_clean(20, &[2; 16]);
    assert_eq!(cache.end_reading(&one), 0);
}
