//! Eviction, budget, pressure, stale loads, writes, and a comparison with a plain model of files.

use super::*;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Deref;

/// A buffer from an allocator of powers of two, in which larger ones have a head of their own.
#[derive(Debug, PartialEq)]
struct Pages(Vec<u8>);

impl Deref for Pages {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Buffer for Pages {
    fn footprint(bytes: usize) -> usize {
        match bytes > SMALL {
            true => (bytes + PAGE).next_power_of_two().max(64 * PAGE),
            false => bytes.next_power_of_two(),
        }
    }
}

type Cache = PageCache<Pages>;

/// What a file has at `offset`, as a device would tell.
fn byte(file: u64, offset: u64) -> u8 {
    (file * 7 + offset / PAGE as u64 * 13 + offset % 251) as u8
}

fn content(file: u64, offset: u64, bytes: usize) -> Pages {
    let all = offset..offset + bytes as u64;
    Pages(all.map(|at| byte(file, at)).collect())
}

const SIZE: u64 = 64 << 20;

/// Loads what is missing; how much it was.
fn load(cache: &mut Cache, miss: Miss) -> usize {
    let buffer = Arc::new(content(miss.file, miss.offset, miss.bytes));
    let bytes = miss.bytes;
    assert_eq!(cache.insert(miss, buffer, SIZE), Inserted::Kept);
    bytes
}

/// Reads like a file system without reading ahead. How many bytes were loaded.
fn read(cache: &mut Cache, file: u64, offset: u64, length: usize) -> (Vec<u8>, usize) {
    let (mut out, mut loaded) = (Vec::new(), 0);
    while out.len() < length {
        let at = offset + out.len() as u64;
        match cache.find(file, at, length - out.len()) {
            Found::Hit(piece) => out.extend(&piece.buffer[piece.range]),
            Found::End => break,
            Found::Miss(miss) => loaded += load(cache, miss),
            Found::Busy => panic!("nobody else loads"),
        }
        assert!(cache.bytes() <= cache.budget());
    }
    (out, loaded)
}

/// As [`read`], and then reads ahead; how many bytes the reader waited for, and how many he did
/// not.
fn read_ahead(cache: &mut Cache, file: u64, offset: u64, length: usize) -> (usize, usize) {
    let (bytes, waited) = read(cache, file, offset, length);
    assert_eq!(bytes, content(file, offset, length).0);
    if !cache.went(file, offset, offset + length as u64) {
        return (waited, 0);
    }
    let ahead = cache.take_ahead().expect("there is one");
    let mut loaded = 0;
    while let Some(miss) = cache.begin(ahead, ahead.offset) {
        loaded += load(cache, miss);
    }
    cache.end_ahead(ahead);
    (waited, loaded)
}

/// The load that a question comes to.
fn missed(cache: &mut Cache, file: u64, offset: u64, length: usize) -> Miss {
    match cache.find(file, offset, length) {
        Found::Miss(miss) => miss,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_read_is_there_and_right() {
    let mut cache = Cache::new(1 << 20);
    let (first, loaded) = read(&mut cache, 1, 5000, 10_000);
    assert_eq!(first, content(1, 5000, 10_000).0);
    assert_eq!(loaded, 3 * PAGE);
    let (second, loaded) = read(&mut cache, 1, 5001, 9000);
    assert_eq!((second, loaded), (content(1, 5001, 9000).0, 0));
    assert!(matches!(cache.find(1, SIZE, 1), Found::End));
}

#[test]
fn a_sequential_reader_waits_for_the_first_pages_only() {
    let mut cache = Cache::new(16 << 20);
    let steps: Vec<_> = (0..64)
        .map(|n| read_ahead(&mut cache, 1, n * 65_536, 65_536))
        .collect();
    assert_eq!(steps[0], (65_536, LARGE));
    assert!(
        steps[1..].iter().all(|(waited, _)| *waited == 0),
        "{steps:?}"
    );
    let windows: Vec<_> = steps
        .iter()
        .map(|step| step.1)
        .filter(|bytes| *bytes > 0)
        .collect();
    assert_eq!(windows[..4], [LARGE, 2 * LARGE, 4 * LARGE, 4 * LARGE]);
}

#[test]
fn a_random_reader_gets_what_it_asked_for_and_no_more() {
    let mut cache = Cache::new(16 << 20);
    for n in [100, 7, 300, 21, 20, 5] {
        assert_eq!(read_ahead(&mut cache, 1, n * 65_536, 4096), (PAGE, 0));
    }
    // Going on is sequential, jumping away ends it. Of the window the pages are left out that are
    // there.
    let step = read_ahead(&mut cache, 1, 5 * 65_536 + 4096, 4096);
    assert_eq!(step, (SMALL, LARGE - (SMALL - PAGE) - PAGE));
    assert_eq!(read_ahead(&mut cache, 1, 200 * 65_536, 4096), (PAGE, 0));
}

#[test]
fn four_readers_of_one_file_do_not_disturb_each_other() {
    let mut cache = Cache::new(32 << 20);
    let waits = (0..16 * 4).filter(|n| {
        let place = (n % 4) * (8 << 20) + (n / 4) * 65_536;
        read_ahead(&mut cache, 1, place, 65_536).0 > 0
    });
    // Three of them do not begin at the start of the file, so they are known by their second step.
    assert_eq!(waits.count(), 1 + 3 * 2);
}

#[test]
fn nothing_is_read_ahead_behind_the_end() {
    let mut cache = Cache::new(1 << 20);
    let size = 100_000;
    let miss = missed(&mut cache, 1, 0, 50_000);
    assert_eq!(miss.bytes, SMALL);
    let buffer = Arc::new(content(1, 0, miss.bytes));
    cache.insert(miss, buffer, size);
    assert!(cache.went(1, 0, 10_000));
    let ahead = cache.take_ahead().expect("there is one");
    assert_eq!((ahead.offset, ahead.end), (12_288, size));
    let lengths: Vec<_> = core::iter::from_fn(|| cache.begin(ahead, ahead.offset))
        .map(|miss| miss.bytes)
        .collect();
    assert_eq!(lengths, [SMALL, SMALL, PAGE]);
    assert!(!cache.went(1, 10_000, 50_000));
    assert!(!cache.went(1, 50_000, size));
    cache.resize(1, 10_000);
    assert!(cache.begin(ahead, ahead.offset).is_none());
}

/// Memory is so short that each chunk of a window takes the place of the one before.
#[test]
fn a_window_larger_than_the_room_for_it_is_loaded_once() {
    let mut cache = Cache::new(8 << 20);
    read(&mut cache, 1, 0, SMALL);
    assert!(cache.went(1, 0, SMALL as u64));
    let ahead = cache.take_ahead().expect("there is one");
    let (mut at, mut loads) = (ahead.offset, 0);
    while let Some(miss) = cache.begin(ahead, at) {
        assert!(miss.offset >= at, "it went back");
        let _ = cache.recycle(SMALL, false);
        let bytes = miss.bytes.min(SMALL);
        at = miss.offset + bytes as u64;
        let buffer = Arc::new(content(1, miss.offset, bytes));
        assert_eq!(cache.insert(miss, buffer, SIZE), Inserted::Kept);
        loads += 1;
    }
    assert_eq!(at, ahead.end);
    assert_eq!(loads, ((ahead.end - ahead.offset) as usize).div_ceil(SMALL));
    assert!(cache.bytes() <= 2 * SMALL);
    // Who begins anew finds the start missing for ever.
    let again = cache.begin(ahead, ahead.offset).map(|miss| miss.offset);
    assert_eq!(again, Some(ahead.offset));
}

#[test]
fn who_needs_what_is_on_its_way_waits() {
    let mut cache = Cache::new(1 << 20);
    let miss = missed(&mut cache, 1, 5000, 10);
    assert!(matches!(cache.find(1, 4096, 1), Found::Busy) && cache.is_busy(1, 8191));
    assert!(!matches!(cache.find(1, 8192, 1), Found::Busy));
    load(&mut cache, miss);
    assert!(matches!(cache.find(1, 4096, 1), Found::Hit(_)));
    // A load that fails: who waited loads it.
    let miss = missed(&mut cache, 1, 1 << 20, 10);
    assert!(matches!(cache.find(1, 1 << 20, 10), Found::Busy));
    cache.give_up(miss);
    missed(&mut cache, 1, 1 << 20, 10);
}

#[test]
fn a_window_that_the_device_does_not_give_is_asked_for_by_its_reader() {
    let mut cache = Cache::new(4 << 20);
    read(&mut cache, 1, 0, SMALL);
    assert!(cache.went(1, 0, SMALL as u64));
    // Waiting, taken, being loaded: all the same to the reader.
    assert!(matches!(cache.find(1, SMALL as u64, 1), Found::Busy));
    let ahead = cache.take_ahead().expect("there is one");
    assert!(matches!(cache.find(1, SMALL as u64, 1), Found::Busy));
    let miss = cache.begin(ahead, ahead.offset).expect("it is missing");
    assert!(matches!(cache.find(1, SMALL as u64, 1), Found::Busy));
    cache.give_up(miss);
    assert!(matches!(cache.find(1, SMALL as u64, 1), Found::Busy));
    cache.end_ahead(ahead);
    let step = read_ahead(&mut cache, 1, SMALL as u64, SMALL);
    assert_eq!(step, (SMALL, LARGE));
}

#[test]
fn a_window_that_a_change_overtakes_is_refused_and_loaded_anew() {
    for change in [
        (|cache| cache.write(1, 1 << 20, &[1], |_| None)) as fn(&mut Cache),
        |cache| cache.resize(1, 1 << 20),
        |cache| cache.remove(1),
    ] {
        let mut cache = Cache::new(4 << 20);
        read(&mut cache, 1, 0, SMALL);
        assert!(cache.went(1, 0, SMALL as u64));
        let ahead = cache.take_ahead().expect("there is one");
        let miss = cache.begin(ahead, ahead.offset).expect("it is missing");
        change(&mut cache);
        let old = Arc::new(Pages(vec![0xee; miss.bytes]));
        assert_eq!(cache.insert(miss, old, SIZE), Inserted::Stale);
        cache.end_ahead(ahead);
        let place = ahead.offset;
        assert_eq!(read(&mut cache, 1, place, 10).0, content(1, place, 10).0);
    }
}

#[test]
fn the_windows_that_wait_are_bounded() {
    let mut cache = Cache::new(64 << 20);
    for file in 0..100 {
        read(&mut cache, file, 0, SMALL);
        cache.went(file, 0, SMALL as u64);
    }
    let taken: Vec<_> = core::iter::from_fn(|| cache.take_ahead()).collect();
    assert_eq!(taken.len(), 16);
    // Those that found no room are not waited for.
    missed(&mut cache, 99, SMALL as u64, 1);
}

#[test]
fn memory_is_counted_as_it_is_taken() {
    let mut cache = Cache::new(1 << 20);
    let miss = missed(&mut cache, 1, 0, 20 * PAGE);
    assert_eq!(miss.bytes, SMALL);
    load(&mut cache, miss);
    assert_eq!(cache.bytes(), SMALL);
    let cache = Cache::new(8 << 20);
    assert_eq!(
        [1, 8, 9, 32, 33, 63, 64].map(|pages| cache.piece(pages * PAGE) / PAGE),
        [1, 8, 8, 8, 33, 63, 63]
    );
}

#[test]
fn what_goes_is_used_again() {
    let mut cache = Cache::new(1 << 20);
    assert!(cache.recycle(SMALL, true).is_none());
    read(&mut cache, 1, 0, 1 << 20);
    assert_eq!(cache.bytes(), 1 << 20);
    assert_eq!(
        cache.recycle(SMALL, true).map(|buffer| buffer.len()),
        Some(SMALL)
    );
    // There is room now.
    assert!(cache.recycle(SMALL, true).is_none());
    // A buffer that a reader holds is not taken from under him.
    read(&mut cache, 1, 1 << 20, SMALL);
    let held: Vec<_> = (0..40)
        .map(|n| cache.find(1, n * SMALL as u64, SMALL))
        .collect();
    assert!(cache.recycle(SMALL, true).is_none());
    drop(held);
}

#[test]
fn without_room_for_more_memory_the_cache_stays_as_large() {
    let mut cache = Cache::new(1 << 20);
    assert!(cache.recycle(SMALL, false).is_none());
    read(&mut cache, 1, 0, 4 * SMALL);
    for n in 4..16 {
        let buffer = cache.recycle(SMALL, false).expect("one of the same size");
        assert_eq!(cache.bytes(), 3 * SMALL);
        drop(buffer);
        read(&mut cache, 1, n * SMALL as u64, SMALL);
        assert_eq!(cache.bytes(), 4 * SMALL);
    }
}

#[test]
fn a_stream_does_not_flush_out_what_is_used_again() {
    let mut cache = Cache::new(1 << 20);
    let mut hot = || {
        (0..4)
            .map(|n| read(&mut cache, 1, n * (SMALL as u64), SMALL).1)
            .sum::<usize>()
    };
    assert_eq!(hot(), 4 * SMALL);
    assert_eq!(hot(), 0);
    for n in 0..256 {
        read_ahead(&mut cache, 2, n * 65_536, 65_536);
    }
    let again = (0..4).map(|n| read(&mut cache, 1, n * (SMALL as u64), SMALL).1);
    assert_eq!(again.sum::<usize>(), 0);
}

#[test]
fn a_stream_alone_has_the_whole_budget() {
    let mut cache = Cache::new(1 << 20);
    for n in 0..16 {
        read(&mut cache, 2, n * 65_536, 65_536);
    }
    assert_eq!(cache.bytes(), 1 << 20);
}

#[test]
fn what_comes_back_soon_stays() {
    let mut cache = Cache::new(10 * PAGE);
    // Random pages, each read once, so that page 0 has gone when it comes back.
    for n in 0..12 {
        read(&mut cache, 1, n * 2 * PAGE as u64, 1);
    }
    assert_eq!(read(&mut cache, 1, 0, 1).1, PAGE);
    for n in 20..24 {
        read(&mut cache, 1, n * 2 * PAGE as u64, 1);
    }
    assert_eq!(read(&mut cache, 1, 0, 1).1, 0);
}

#[test]
fn pressure_shrinks_to_the_last_byte() {
    let mut cache = Cache::new(1 << 20);
    read(&mut cache, 1, 0, 1 << 20);
    cache.shrink(300_000);
    assert!(cache.bytes() <= 300_000 && cache.bytes() > 0);
    cache.shrink(0);
    assert_eq!(cache.bytes(), 0);
    cache.shrink(0);
    assert_eq!(read(&mut cache, 1, 77, 5).0, content(1, 77, 5).0);
}

#[test]
fn a_load_that_something_has_overtaken_is_refused() {
    let load = |change: fn(&mut Cache)| {
        let mut cache = Cache::new(1 << 20);
        let miss = missed(&mut cache, 1, 0, 10);
        change(&mut cache);
        let buffer = Arc::new(Pages(vec![1; PAGE]));
        let result = cache.insert(miss, buffer, 4096);
        if result == Inserted::Stale {
            assert!(!matches!(cache.find(1, 0, 10), Found::Hit(_)));
        }
        result
    };
    assert_eq!(load(|_| ()), Inserted::Kept);
    assert_eq!(
        load(|cache| cache.write(1, 9000, &[1], |_| None)),
        Inserted::Stale
    );
    assert_eq!(load(|cache| cache.resize(1, 100)), Inserted::Stale);
    assert_eq!(load(|cache| cache.remove(1)), Inserted::Stale);
    // Removed and made again.
    let again = |cache: &mut Cache| {
        cache.remove(1);
        cache.find(1, 0, 1);
    };
    assert_eq!(load(again), Inserted::Stale);
    assert_eq!(load(|cache| cache.clear()), Inserted::Stale);
}

#[test]
fn a_load_of_what_was_written_meanwhile_is_refused_and_a_second_one_unneeded() {
    let mut cache = Cache::new(1 << 20);
    let miss = missed(&mut cache, 1, 0, PAGE);
    cache.write(1, 0, &[5; PAGE], |bytes| Some(Pages(vec![0; bytes])));
    let buffer = Arc::new(content(1, 0, PAGE));
    assert_eq!(cache.insert(miss, buffer, SIZE), Inserted::Stale);
    assert!(matches!(cache.find(1, 0, 1), Found::Hit(piece) if piece.buffer[0] == 5));
    // Larger than all that may be cached.
    let mut cache = Cache::new(100);
    let miss = missed(&mut cache, 1, 0, PAGE);
    let buffer = Arc::new(content(1, 0, PAGE));
    assert_eq!(cache.insert(miss, buffer, SIZE), Inserted::Unneeded);
}

#[test]
fn a_buffer_in_use_is_not_changed_by_a_write() {
    let mut cache = Cache::new(1 << 20);
    read(&mut cache, 1, 0, PAGE);
    let Found::Hit(piece) = cache.find(1, 0, 10) else {
        panic!("it was just read");
    };
    cache.write(1, 0, &[0xee; 10], |_| None);
    assert_eq!(piece.buffer[..10], content(1, 0, 10).0);
    assert!(matches!(cache.find(1, 0, 10), Found::Miss(_)));
}

#[test]
fn a_cut_file_ends_there_and_grows_by_what_is_loaded_anew() {
    let mut cache = Cache::new(1 << 20);
    read(&mut cache, 1, 0, 3 * PAGE);
    cache.resize(1, 5000);
    assert!(matches!(cache.find(1, 5000, 1), Found::End));
    cache.resize(1, 9000);
    assert!(matches!(cache.find(1, 5000, 1), Found::Miss(_)));
}

#[test]
fn no_memory_for_a_written_page_costs_nothing_but_a_load() {
    let mut cache = Cache::new(1 << 20);
    let miss = missed(&mut cache, 1, 0, 1);
    cache.give_up(miss);
    cache.write(1, 0, &[1; 2 * PAGE], |_| None);
    let miss = missed(&mut cache, 1, 0, 1);
    cache.give_up(miss);
    cache.write(1, 0, &[2; 2 * PAGE], |bytes| Some(Pages(vec![0; bytes])));
    assert!(matches!(cache.find(1, 100, 1), Found::Hit(piece) if piece.buffer[100] == 2));
}

/// Files as plain vectors, and a cache in front of them, under random work with failing devices.
#[test]
fn the_cache_never_tells_anything_but_the_file() {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut files: Vec<Vec<u8>> = (0..3).map(|file| content(file, 0, 100_000).0).collect();
    let mut cache = Cache::new(20 * PAGE);
    for _ in 0..20_000 {
        let number = random(3);
        let file = &mut files[number as usize];
        let (offset, length) = (random(130_000), 1 + random(9000) as usize);
        match random(10) {
            0..6 => check(&mut cache, number, file, offset, length, random(5) == 0),
            6..8 => {
                let data = vec![random(256) as u8; length];
                let end = offset as usize + length;
                file.resize(file.len().max(end), 0);
                file[offset as usize..end].copy_from_slice(&data);
                let has_memory = random(4) > 0;
                cache.write(number, offset, &data, |bytes| {
                    has_memory.then(|| Pages(vec![9; bytes]))
                });
            }
            8 => {
                file.resize(offset as usize, 0);
                cache.resize(number, offset);
            }
            _ if random(10) == 0 => {
                *file = Vec::new();
                cache.remove(number);
            }
            _ => cache.shrink(random(90_000) as usize),
        }
        assert!(cache.bytes() <= cache.budget());
    }
}

#[test]
fn offsets_at_the_very_end_are_numbers_like_others() {
    let ends = [u64::MAX, u64::MAX - 1, u64::MAX - 4095, u64::MAX - 4096];
    for offset in ends {
        let mut cache = Cache::new(1 << 20);
        let make = |bytes| Some(Pages(vec![0; bytes]));
        read(&mut cache, 1, 0, PAGE);
        cache.write(1, offset, b"", make);
        assert_eq!(read(&mut cache, 1, 0, PAGE).1, 0, "nothing was written");
        assert!(matches!(cache.find(1, offset, 1), Found::End));
        for _ in 0..3 {
            assert!(!cache.went(1, offset, offset));
        }
        let Found::Miss(miss) = cache.find(2, offset, 1) else {
            panic!("nothing is known of the file");
        };
        cache.give_up(miss);
        cache.write(1, offset, &[7; 2 * PAGE], make);
        assert_ne!(read(&mut cache, 1, 0, PAGE).1, 0, "it was forgotten");
    }
}

#[test]
fn nothing_that_is_written_behind_the_end_makes_no_file_longer() {
    let mut cache = Cache::new(1 << 20);
    let whole = read(&mut cache, 1, 0, PAGE).0;
    cache.write(1, 2 * SIZE, b"", |bytes| Some(Pages(vec![0; bytes])));
    assert!(matches!(cache.find(1, SIZE, 1), Found::End));
    assert_eq!(read(&mut cache, 1, 0, PAGE), (whole, 0));
}

/// What a load of `file` gives.
fn loaded(file: &[u8], miss: &Miss) -> Arc<Pages> {
    let mut buffer = vec![0; miss.bytes];
    let from = &file[(miss.offset as usize).min(file.len())..];
    let there = from.len().min(buffer.len());
    buffer[..there].copy_from_slice(&from[..there]);
    Arc::new(Pages(buffer))
}

/// Reads and compares, and reads ahead. With `fails` the device does not answer, and nothing is
/// brought.
fn check(cache: &mut Cache, number: u64, file: &[u8], offset: u64, length: usize, fails: bool) {
    let mut at = offset;
    let size = file.len() as u64;
    let end = (offset + length as u64).min(size);
    while at < end {
        match cache.find(number, at, (end - at) as usize) {
            Found::Hit(piece) => {
                let bytes = &piece.buffer[piece.range];
                assert_eq!(bytes, &file[at as usize..][..bytes.len()]);
                at += bytes.len() as u64;
            }
            Found::Miss(miss) if fails => return cache.give_up(miss),
            Found::Miss(miss) => {
                let buffer = loaded(file, &miss);
                assert_eq!(cache.insert(miss, buffer, size), Inserted::Kept);
            }
            other => panic!("{at} of {size} is {other:?}"),
        }
    }
    if offset >= size {
        match cache.find(number, offset, 1) {
            Found::Hit(_) => panic!("{offset} of {size} is there"),
            Found::Miss(miss) => cache.give_up(miss),
            _ => {}
        }
    }
    cache.went(number, offset, at);
    while let Some(ahead) = cache.take_ahead() {
        // Sometimes the first load of a window fails, sometimes the second.
        for fails in [fails, !fails, false] {
            match cache.begin(ahead, ahead.offset) {
                Some(miss) if fails => cache.give_up(miss),
                Some(miss) => {
                    let buffer = loaded(file, &miss);
                    assert_eq!(cache.insert(miss, buffer, size), Inserted::Kept);
                }
                None => break,
            }
        }
        cache.end_ahead(ahead);
    }
}
