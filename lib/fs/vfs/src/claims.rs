//! Which pages of a file are being loaded, and which somebody has for himself.
//!
//! A page is *claimed* from before its load begins until it has its content, or nobody waits for it
//! any more. Who changes a file has some of its pages *alone*: no claim begins there meanwhile, and
//! he goes on when those have ended that had begun. So a load that ends is always the one that its
//! page waits for, and brings what was there before a change only into pages that the change takes
//! away.

use alloc::vec::Vec;
use core::ops::Range;

/// Pages that nobody has.
const NONE: Range<u64> = 0..0;
/// The most pages of a file that are claimed at a time. An object has 4,096 loads at most, and who
/// changes the file may need some as well.
pub const MOST_CLAIMED: u64 = 2048;

/// What one can do about a page that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chance {
    /// Claim it, and so many from it on in all.
    Free(u64),
    /// Wait: it is being loaded.
    Claimed,
    /// Wait: somebody has it alone.
    Closed,
    /// Wait: so much of the file is being loaded that nothing can be added.
    Full,
    /// Find out how many pages the file has.
    Unknown,
    /// Nothing: it lies behind the end.
    Behind,
}

/// Who has what of a file.
#[derive(Debug)]
pub struct Claims {
    claimed: Vec<Range<u64>>,
    alone: Range<u64>,
    pages: Option<u64>,
}

impl Default for Claims {
    fn default() -> Self {
        Claims {
            claimed: Vec::new(),
            alone: NONE,
            pages: None,
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Claims {
    /// How many pages the file has, from now on; `None`: nobody knows, so that nothing is claimed.
    pub fn set_pages(&mut self, pages: Option<u64>) {
        self.pages = pages;
    }

    /// How many pages the file has, if that is known.
    pub fn pages(&self) -> Option<u64> {
        self.pages
    }

    /// Whether it is known how many pages the file has.
    pub fn is_known(&self) -> bool {
        self.pages.is_some()
    }

    /// What one can do about the page `first`, where `count` pages from there on are wanted.
    pub fn chance(&self, first: u64, count: u64) -> Chance {
        let Some(pages) = self.pages else {
            return Chance::Unknown;
        };
        if first >= pages {
            return Chance::Behind;
        }
        if self.alone.contains(&first) {
            return Chance::Closed;
        }
        let mut end = first.saturating_add(count).min(pages);
        if !self.alone.is_empty() && self.alone.start > first {
            end = end.min(self.alone.start);
        }
        for claimed in &self.claimed {
            if claimed.contains(&first) {
                return Chance::Claimed;
            }
            if claimed.start > first {
                end = end.min(claimed.start);
            }
        }
        let claimed = self.claimed.iter().map(|pages| pages.end - pages.start);
        match MOST_CLAIMED.saturating_sub(claimed.sum()) {
            0 => Chance::Full,
            room => Chance::Free(room.min(end - first)),
        }
    }

    /// Sees to it that there is memory for one more claim; whether there is.
    #[must_use]
    pub fn has_room(&mut self) -> bool {
        self.claimed.try_reserve(1).is_ok()
    }

    /// Claims pages that are free, where there is room.
    pub fn claim(&mut self, pages: Range<u64>) {
        debug_assert!(!self.is_claimed(&pages), "each page has one load");
        if self.claimed.len() < self.claimed.capacity() && !pages.is_empty() {
            self.claimed.push(pages);
        }
    }

    /// Only so many pages of the claim that begins with `first` are claimed still, at least one.
    pub fn keep(&mut self, first: u64, count: u64) {
        let found = self.claimed.iter_mut().find(|pages| pages.start == first);
        if let Some(pages) = found {
            pages.end = pages.end.min(first.saturating_add(count.max(1)));
        }
    }

    /// Ends the claim that begins with `first`.
    pub fn end(&mut self, first: u64) {
        self.claimed.retain(|pages| pages.start != first);
    }

    /// Whether a page of these is claimed.
    pub fn is_claimed(&self, pages: &Range<u64>) -> bool {
        self.claimed.iter().any(|claimed| overlap(claimed, pages))
    }

    /// Somebody has pages alone from now on, when [`is_claimed`](Self::is_claimed) says no. Only
    /// one at a time has some.
    pub fn close(&mut self, pages: Range<u64>) {
        debug_assert!(self.alone.is_empty(), "one at a time");
        self.alone = pages;
    }

    /// Nobody has pages alone any more.
    pub fn open(&mut self) {
        self.alone = NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pages: u64) -> Claims {
        let mut claims = Claims::default();
        claims.set_pages(Some(pages));
        claims
    }

    fn claim(claims: &mut Claims, pages: Range<u64>) {
        assert!(claims.has_room());
        assert_eq!(
            claims.chance(pages.start, pages.end - pages.start),
            Chance::Free(pages.end - pages.start)
        );
        claims.claim(pages);
    }

    #[test]
    fn several_parts_of_a_file_are_loaded_at_a_time_and_each_page_once() {
        let mut claims = of(100);
        claim(&mut claims, 10..20);
        claim(&mut claims, 30..40);
        claim(&mut claims, 20..25);
        assert_eq!(claims.chance(0, 100), Chance::Free(10));
        assert_eq!(claims.chance(25, 100), Chance::Free(5));
        assert_eq!(claims.chance(19, 1), Chance::Claimed);
        assert_eq!(claims.chance(39, 100), Chance::Claimed);
        assert_eq!(claims.chance(40, 100), Chance::Free(60));
        assert_eq!(claims.chance(99, u64::MAX), Chance::Free(1));
        assert_eq!(claims.chance(100, 1), Chance::Behind);
        claims.end(10);
        assert_eq!(claims.chance(0, 100), Chance::Free(20));
        assert_eq!(claims.chance(22, 1), Chance::Claimed);
    }

    #[test]
    fn what_fails_as_a_whole_leaves_all_but_its_first_page_to_others() {
        let mut claims = of(100);
        claim(&mut claims, 10..20);
        claims.keep(10, 1);
        assert_eq!(claims.chance(10, 5), Chance::Claimed);
        assert_eq!(claims.chance(11, 5), Chance::Free(5));
        claim(&mut claims, 11..20);
        claims.end(10);
        assert_eq!(claims.chance(10, 5), Chance::Free(1));
        claims.end(11);
        assert!(!claims.is_claimed(&(0..100)));
    }

    #[test]
    fn nothing_is_claimed_of_what_somebody_has_alone_or_waits_for() {
        let mut claims = of(100);
        claim(&mut claims, 10..20);
        claims.close(15..60);
        assert!(claims.is_claimed(&(15..60)));
        assert_eq!(claims.chance(20, 1), Chance::Closed);
        assert_eq!(claims.chance(5, 100), Chance::Free(5));
        assert_eq!(claims.chance(60, 100), Chance::Free(40));
        claim(&mut claims, 60..70);
        claims.end(10);
        assert!(!claims.is_claimed(&(15..60)));
        assert_eq!(claims.chance(10, 100), Chance::Free(5));
        claims.open();
        assert_eq!(claims.chance(20, 100), Chance::Free(40));
        claims.close(0..u64::MAX);
        assert_eq!(claims.chance(99, 1), Chance::Closed);
        assert!(claims.is_claimed(&(0..u64::MAX)));
    }

    #[test]
    fn of_a_file_whose_length_nobody_knows_nothing_is_claimed() {
        let mut claims = Claims::default();
        assert_eq!(claims.chance(0, 1), Chance::Unknown);
        claims.set_pages(Some(0));
        assert_eq!(claims.chance(0, 1), Chance::Behind);
        claims.set_pages(Some(2));
        assert_eq!(claims.chance(0, 9), Chance::Free(2));
        claims.set_pages(None);
        assert!(!claims.is_known());
        assert_eq!(claims.chance(0, 1), Chance::Unknown);
    }

    #[test]
    fn no_more_of_a_file_is_loaded_at_a_time_than_an_object_takes() {
        let mut claims = of(100_000);
        for number in 0..MOST_CLAIMED / 64 - 1 {
            claim(&mut claims, number * 100..number * 100 + 64);
        }
        assert_eq!(claims.chance(50_000, 100), Chance::Free(64));
        claim(&mut claims, 50_000..50_064);
        assert_eq!(claims.chance(60_000, 1), Chance::Full);
        assert_eq!(claims.chance(50_000, 1), Chance::Claimed);
        claims.keep(50_000, 60);
        assert_eq!(claims.chance(60_000, 100), Chance::Free(4));
        claims.end(100);
        assert_eq!(claims.chance(60_000, 100), Chance::Free(68));
    }

    /// At random: no page has two loads, none is loaded that somebody has alone, and none behind
    /// the end.
    #[test]
    fn a_page_has_one_load_whatever_is_asked_for() {
        let (mut claims, mut seed) = (of(64), 7_u64);
        let (mut loads, mut alone) = (Vec::<Range<u64>>::new(), NONE);
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            (seed >> 33) % below
        };
        for _ in 0..20_000 {
            match next(5) {
                0 | 1 => {
                    let (first, count) = (next(70), 1 + next(20));
                    if let Chance::Free(free) = claims.chance(first, count) {
                        assert!((1..=count).contains(&free));
                        let pages = first..first + free;
                        assert!(pages.end <= 64 && !overlap(&pages, &alone));
                        assert!(!loads.iter().any(|load| overlap(load, &pages)));
                        assert!(claims.has_room());
                        claims.claim(pages.clone());
                        loads.push(pages);
                    }
                }
                2 if !loads.is_empty() => {
                    let at = next(loads.len() as u64) as usize;
                    claims.end(loads.swap_remove(at).start);
                }
                3 if alone.is_empty() => {
                    let first = next(64);
                    let pages = first..first + 1 + next(64);
                    if !claims.is_claimed(&pages) {
                        alone = pages.clone();
                        claims.close(pages);
                    }
                }
                _ => {
                    alone = NONE;
                    claims.open();
                }
            }
        }
    }
}
