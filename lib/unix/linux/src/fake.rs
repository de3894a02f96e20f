//! A program's memory for tests: pages are there once they are touched.

use crate::errno::{EFAULT, EINVAL, ENOMEM, Error};
use crate::memory::{Memory, PAGE, READ, WRITE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// Addresses of programs end here.
const END: u64 = 1 << 47;
/// The most pages of a space.
const MOST: usize = 1 << 14;

/// What may be done with a page, and what is in it once it is there.
type Page = (u64, Option<Vec<u8>>);

/// The pages by their numbers.
#[derive(Default)]
pub struct Fake {
    pub pages: RefCell<BTreeMap<u64, Page>>,
    /// What `touch` answers.
    pub fails: Cell<Option<Error>>,
    /// Pages go as soon as they have come.
    pub is_fickle: Cell<bool>,
}

impl Fake {
    /// What may be done with the page at an address.
    pub fn bits(&self, at: u64) -> Option<u64> {
        self.pages.borrow().get(&(at / PAGE)).map(|page| page.0)
    }

    /// Does something with each piece of a range that lies in one page that is there.
    fn pieces(
        &self,
        at: u64,
        count: usize,
        wanted: u64,
        mut act: impl FnMut(&mut [u8], usize),
    ) -> usize {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < count {
            let Some(from) = at.checked_add(done as u64) else {
                break;
            };
            let length = ((PAGE - from % PAGE) as usize).min(count - done);
            match pages.get_mut(&(from / PAGE)) {
                Some((bits, Some(page))) if *bits & wanted != 0 && !self.is_fickle.get() => {
                    let start = (from % PAGE) as usize;
                    act(&mut page[start..start + length], done);
                }
                _ => break,
            }
            done += length;
        }
        done
    }

    fn range(&self, at: u64, bytes: u64) -> Result<core::ops::Range<u64>, Error> {
        let end = at.checked_add(bytes).filter(|end| *end <= END);
        match (at.is_multiple_of(PAGE), end) {
            (true, Some(end)) => Ok(at / PAGE..end.div_ceil(PAGE)),
            _ => Err(EINVAL),
        }
    }
}

impl Memory for Fake {
    fn peek(&self, at: u64, bytes: &mut [u8]) -> usize {
        let count = bytes.len();
        self.pieces(at, count, READ, |page, done| {
            bytes[done..done + page.len()].copy_from_slice(page);
        })
    }

    fn poke(&self, at: u64, bytes: &[u8]) -> usize {
        self.pieces(at, bytes.len(), WRITE, |page, done| {
            page.copy_from_slice(&bytes[done..done + page.len()]);
        })
    }

    fn compare_exchange(&self, at: u64, old: u32, new: u32) -> Option<u32> {
        let mut word = [0; 4];
        if !at.is_multiple_of(4) || self.peek(at, &mut word) != 4 {
            return None;
        }
        let found = u32::from_le_bytes(word);
        let next = if found == old { new } else { found };
        (self.poke(at, &next.to_le_bytes()) == 4).then_some(found)
    }

    fn touch(&self, at: u64, write: bool) -> Result<(), Error> {
        if let Some(error) = self.fails.get() {
            return Err(error);
        }
        let mut pages = self.pages.borrow_mut();
        let (bits, page) = pages.get_mut(&(at / PAGE)).ok_or(EFAULT)?;
        if *bits & if write { WRITE } else { READ } == 0 {
            return Err(EFAULT);
        }
        page.get_or_insert_with(|| alloc::vec![0; PAGE as usize]);
        Ok(())
    }

    fn map_zero(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        let range = self.range(at, bytes)?;
        let mut pages = self.pages.borrow_mut();
        if pages.len() + (range.end - range.start) as usize > MOST {
            return Err(ENOMEM);
        }
        if range.clone().any(|page| pages.contains_key(&page)) {
            return Err(EINVAL);
        }
        pages.extend(range.map(|page| (page, (bits, None))));
        Ok(())
    }

    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let range = self.range(at, bytes)?;
        let mut pages = self.pages.borrow_mut();
        pages.retain(|page, _| !range.contains(page));
        Ok(())
    }

    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        let range = self.range(at, bytes)?;
        let mut pages = self.pages.borrow_mut();
        for (_, page) in pages.range_mut(range) {
            page.0 = bits;
        }
        Ok(())
    }
}
