//! Areas compared with a map from pages to what is behind them.

use super::*;
use std::collections::BTreeMap;
use std::vec;

/// A thing that has pages, what may be done with them, and the first one that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing(u32, u32, u64);

impl Backing for Thing {
    fn skip(&mut self, pages: u64) {
        self.2 += pages;
    }
    fn goes_on(&self, pages: u64, next: &Self) -> bool {
        (self.0, self.1, self.2 + pages) == (next.0, next.1, next.2)
    }
}

fn room(areas: &mut Areas<Thing>, more: usize) {
    drop(areas.lengthen(Vec::with_capacity(areas.len() + more)));
}

fn area(first: u64, count: u64, backing: Thing) -> Area<Thing> {
    Area {
        first,
        count,
        backing,
    }
}

impl From<Refused> for u32 {
    fn from(refused: Refused) -> u32 {
        1000 + refused as u32
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    *state >> 33
}

/// Page by page the same as a map from pages to things, and never more areas than there are runs.
#[test]
fn areas_are_as_a_map_of_pages() {
    let (mut areas, mut map) = (Areas::new(), BTreeMap::new());
    let mut state = 11;
    for step in 0..40_000_u32 {
        room(&mut areas, 4);
        let first = random(&mut state) % 60;
        let count = 1 + random(&mut state) % 9;
        let pages = first..first + count;
        match random(&mut state) % 4 {
            0 | 1 => {
                let thing = Thing(random(&mut state) as u32 % 2, 0, first);
                let added = areas.insert(area(first, count, thing.clone())).is_ok();
                let free = pages.clone().all(|page| !map.contains_key(&page));
                assert_eq!(added, free, "step {step}");
                if free {
                    map.extend(pages.map(|page| (page, Thing(thing.0, 0, page))));
                }
            }
            2 => {
                let taken = areas.take(&pages).expect("there is room");
                if let Some(taken) = taken {
                    for page in taken.first..taken.end() {
                        assert!(map.remove(&page).is_some(), "step {step}: page {page}");
                    }
                }
            }
            _ => {
                let how = random(&mut state) as u32 % 2;
                let change = |thing: &mut Thing| {
                    thing.1 = how;
                    Ok::<_, u32>(())
                };
                if let Some(changed) = areas.change(&pages, change).expect("there is room") {
                    changed.for_each(|page| map.get_mut(&page).expect("it is there").1 = how);
                }
            }
        }
        for page in 0..70 {
            assert_eq!(areas.at(page), map.get(&page).cloned(), "step {step}");
        }
        let runs = (0..70_u64).filter(|page| {
            let before = page.checked_sub(1).and_then(|before| map.get(&before));
            let here = map.get(page);
            here.is_some() && before.map(|it| (it.0, it.1)) != here.map(|it| (it.0, it.1))
        });
        assert_eq!(areas.len(), runs.count(), "step {step}");
    }
}

#[test]
fn without_room_nothing_is_lost() {
    let mut areas = Areas::new();
    let full = areas.insert(area(0, 10, Thing(0, 0, 0)));
    assert!(matches!(full, Err((Refused::Full, _))));
    drop(areas.lengthen(Vec::with_capacity(1)));
    areas
        .insert(area(0, 10, Thing(0, 0, 0)))
        .expect("there is room for one");
    assert_eq!(areas.take(&(3..4)), Err(Refused::Full));
    assert_eq!(
        areas.change(&(3..4), |_| Ok(())),
        Err(u32::from(Refused::Full))
    );
    assert_eq!(areas.at(3), Some(Thing(0, 0, 3)));
    // The ends can be taken.
    let taken = areas.take(&(8..100)).expect("nothing is split");
    assert_eq!(taken, Some(area(8, 2, Thing(0, 0, 8))));
    areas
        .insert(area(8, 5, Thing(0, 0, 8)))
        .expect("it goes on with the first");
    assert_eq!(areas.from(9), Some(&area(0, 13, Thing(0, 0, 0))));
}

#[test]
fn a_refused_change_leaves_all_as_it_was() {
    let mut areas = Areas::new();
    room(&mut areas, 4);
    areas
        .insert(area(5, 10, Thing(1, 0, 0)))
        .expect("there is room");
    assert_eq!(areas.change(&(7..8), |_| Err(7)), Err(7));
    assert_eq!(areas.change(&(0..5), |_| Err(7)), Ok(None));
    assert_eq!(areas.take_all(), vec![area(5, 10, Thing(1, 0, 0))]);
    assert!(areas.is_empty());
}

#[test]
fn a_shorter_list_is_not_taken() {
    let mut areas = Areas::<Thing>::new();
    room(&mut areas, 8);
    let back = areas.lengthen(Vec::with_capacity(4));
    assert!(back.capacity() == 4 && areas.capacity() == 8);
}
