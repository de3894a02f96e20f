//! Areas compared with a table of pages.

use super::*;
use alloc::collections::BTreeMap;

const PAGES: u64 = 24;

/// What is behind each page: bits, file, and which page of that.
type Model = BTreeMap<u64, (u64, Option<char>, u64)>;

fn model(areas: &Areas<char>) -> Model {
    let page = |number: u64| {
        let area = areas.find(number * PAGE)?;
        let at = area.page_at(number * PAGE);
        Some((number, (area.bits, area.file, at)))
    };
    (0..PAGES).filter_map(page).collect()
}

/// They are in order, none is empty, and no two could be one.
fn check(areas: &Areas<char>) {
    for area in areas.iter() {
        assert!(area.start < area.end, "{area:?}");
    }
    for (own, next) in areas.0.iter().zip(&areas.0[1.min(areas.0.len())..]) {
        assert!(own.end <= next.start, "{own:?} {next:?}");
        assert!(!own.clone().absorbs(next), "{own:?} {next:?}");
    }
}

/// Numbers that look random.
fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn areas_are_as_a_table_of_pages() {
    let (mut areas, mut right, mut seed) = (Areas::default(), Model::new(), 7);
    for _ in 0..10_000 {
        let start = random(&mut seed, PAGES);
        let end = start + 1 + random(&mut seed, (PAGES - start).min(9));
        let range = start * PAGE..end * PAGE;
        let bits = random(&mut seed, 2);
        areas.reserve().expect("there is room");
        match random(&mut seed, 4) {
            0 => {
                areas.take(range.clone());
                right.retain(|page, _| !(start..end).contains(page));
            }
            1 => {
                areas.protect(range.clone(), bits);
                let meant = right.range_mut(start..end);
                meant.for_each(|(_, page)| page.0 = bits);
            }
            which => {
                let file = (which == 2).then_some(if bits == 0 { 'a' } else { 'b' });
                let first = if file.is_some() { start + 3 } else { 0 };
                areas.put(Area {
                    start: range.start,
                    end: range.end,
                    bits,
                    page: first,
                    file,
                });
                for page in start..end {
                    let of = if file.is_some() { page + 3 } else { 0 };
                    right.insert(page, (bits, file, of));
                }
            }
        }
        check(&areas);
        assert_eq!(model(&areas), right);
        let is_mapped = |page: &u64| right.contains_key(page);
        let pages = || start..end;
        let reach = pages().find(|it| !is_mapped(it)).unwrap_or(end) * PAGE;
        assert_eq!(areas.reach(range.clone()), reach);
        assert_eq!(
            areas.is_free(range.clone()),
            !pages().any(|it| is_mapped(&it))
        );
        let first = pages().find(is_mapped).map(|page| page * PAGE);
        let next = areas.next(range.start, range.end);
        assert_eq!(next.map(|area| area.start), first);
        let count = end - start;
        let fits = |at: &u64| (*at..*at + count).all(|page| !right.contains_key(&page));
        let highest = (2..=PAGES - 1 - count).rev().find(fits);
        let gap = areas.gap(count * PAGE, 2 * PAGE, (PAGES - 1) * PAGE);
        assert_eq!(gap, highest.map(|page| page * PAGE), "{areas:?}");
    }
}

#[test]
fn there_is_a_most_of_them() {
    let mut areas = Areas::default();
    let mut count = 0;
    while areas.reserve().is_ok() {
        let start = 2 * count * PAGE;
        areas.put(Area {
            start,
            end: start + PAGE,
            bits: 1,
            page: 0,
            file: None::<char>,
        });
        count += 1;
    }
    assert_eq!(count as usize, MOST - 1);
    areas.take(0..3 * PAGE);
    assert_eq!(areas.reserve(), Ok(()));
    let copy = areas.copy().expect("there is memory");
    assert_eq!(copy.iter().count(), areas.iter().count());
}

#[test]
fn no_place_is_too_large_or_wraps() {
    let areas = Areas::<char>::default();
    assert_eq!(areas.gap(u64::MAX, 0, 10 * PAGE), None);
    assert_eq!(areas.gap(10 * PAGE, 0, 10 * PAGE), Some(0));
    assert_eq!(areas.gap(10 * PAGE, PAGE, 10 * PAGE), None);
}
