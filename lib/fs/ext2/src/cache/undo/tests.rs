//! What is taken back, what is kept, and what others see of a change.

use super::*;
use alloc::vec;

fn cache() -> Cache {
    let mut cache = Cache::new(8, || false);
    (0..6).for_each(|block| cache.insert_clean(block, &[block as u8; 8]));
    cache.get_dirty(4, Kind::Directory);
    cache.get_dirty(5, Kind::Writing);
    cache
}

/// All that can be seen of the blocks.
fn seen(cache: &Cache) -> Vec<(u32, Option<Kind>, Vec<u8>)> {
    let of = |block| {
        let slot = &cache.slots[cache.slot_of(block)?];
        Some((block, slot.dirty, slot.data.to_vec()))
    };
    (0..100).filter_map(of).collect()
}

fn set(cache: &mut Cache, block: u32, kind: Kind, part: Range<usize>, to: u8) {
    cache.change(block, kind, part).expect("memory").fill(to);
}

/// Changes of all sorts, several of the same bytes.
fn change(cache: &mut Cache) {
    set(cache, 1, Kind::Inode, 2..4, 90);
    set(cache, 1, Kind::Inode, 3..6, 91);
    set(cache, 4, Kind::Inode, 0..8, 92);
    set(cache, 5, Kind::Bitmap, 7..8, 93);
    set(cache, 1, Kind::Bitmap, 0..8, 94);
    cache.change_all(50, Kind::Map, 8).expect("memory")[1] = 95;
    set(cache, 50, Kind::Map, 0..4, 96);
    cache.change_all(2, Kind::Map, 8).expect("memory")[1] = 97;
}

#[test]
fn what_is_taken_back_is_as_it_was() {
    let mut cache = cache();
    let before = seen(&cache);
    change(&mut cache);
    assert!(cache.is_changing() && seen(&cache) != before);
    let mut changing: Vec<u32> = cache.changing().collect();
    changing.sort_unstable();
    assert_eq!(changing, [1, 2, 4, 5, 50]);
    cache.take_back();
    assert!(!cache.is_changing());
    assert_eq!(seen(&cache), before);
    // It can be done again, and is then taken back to the same.
    change(&mut cache);
    cache.take_back();
    assert_eq!(seen(&cache), before);
    for kind in [Kind::Bitmap, Kind::Map, Kind::Inode] {
        assert_eq!(cache.dirty_count(kind), 0);
    }
}

#[test]
fn what_is_kept_stays_and_is_dirty() {
    let mut cache = cache();
    change(&mut cache);
    cache.keep();
    let kept = seen(&cache);
    let of = |block| kept.iter().find(|(it, ..)| *it == block).expect("cached");
    // By the kind of the first change, or by an earlier one.
    assert_eq!(of(1), &(1, Some(Kind::Inode), vec![94; 8]));
    assert_eq!(of(2), &(2, Some(Kind::Map), vec![0, 97, 0, 0, 0, 0, 0, 0]));
    assert_eq!(of(4), &(4, Some(Kind::Inode), vec![92; 8]));
    assert_eq!(
        of(5),
        &(5, Some(Kind::Bitmap), vec![5, 5, 5, 5, 5, 5, 5, 93])
    );
    assert_eq!(
        of(50),
        &(50, Some(Kind::Map), vec![96, 96, 96, 96, 0, 0, 0, 0])
    );
    // The next set begins with that.
    set(&mut cache, 50, Kind::Map, 0..8, 1);
    cache.take_back();
    assert_eq!(seen(&cache), kept);
}

#[test]
fn a_block_that_is_changed_stays_in_the_cache() {
    let mut cache = cache();
    set(&mut cache, 0, Kind::Inode, 0..1, 9);
    (100..200).for_each(|block| cache.insert_clean(block, &[1]));
    assert!(cache.contains(0) && !cache.contains(1));
    cache.take_back();
    assert_eq!(cache.peek(0), Some(&[0u8; 8][..]));
}

#[test]
fn who_reads_a_block_that_is_changed_reads_what_is_old() {
    let mut cache = cache();
    let reading = cache.begin_reading(50, 2).expect("memory");
    cache.change_all(51, Kind::Map, 8).expect("memory");
    cache.take_back();
    assert_eq!(cache.end_reading(&reading), 0b10);
}

#[test]
fn what_is_freed_in_the_set_is_gone_afterwards() {
    let mut cache = cache();
    set(&mut cache, 3, Kind::Map, 0..1, 9);
    cache.keep();
    cache.forget(3);
    assert!(!cache.contains(3) && cache.dirty_count(Kind::Map) == 0);
    // The slot that it had is another block's, which is no part of the set.
    cache.insert_clean(60, &[6; 8]);
    set(&mut cache, 60, Kind::Map, 0..8, 7);
    cache.take_back();
    assert_eq!(cache.peek(60), Some(&[6u8; 8][..]));
}
