//! Waiting for what is open: `poll`, `select` and their kin.

use super::Result;
use crate::bells::{BROKEN, Bell, ENDED, HALF_ENDED};
use crate::errno::{EBADF, EINVAL, ENOMEM};
use crate::memory;
use crate::process::MOST_FILES;
use crate::task::Task;
use alloc::vec::Vec;
use domain_rt::time;

/// What is wanted and told of a descriptor (`asm-generic/poll.h`), and what the file itself tells.
const IN: u64 = 1;
const OUT: u64 = 4;
const GONE: u64 = BROKEN | ENDED;
const NO_FILE: u64 = 32;
const IN_TOO: u64 = 0x40;
const OUT_TOO: u64 = 0x100;
/// Bits of a word of a set.
const BITS: usize = 64;
/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// A descriptor, what of it is wanted, and what there is.
#[derive(Clone, Copy)]
struct Watched {
    descriptor: i32,
    wanted: u64,
    found: u64,
}

impl Task {
    /// What there is of a descriptor, of what is wanted or comes unasked.
    fn found(&self, it: &Watched) -> u64 {
        if it.descriptor < 0 {
            return 0;
        }
        let Ok(open) = self.opened(it.descriptor as u64) else {
            return NO_FILE;
        };
        let ready = open.ready(&Bell::of(&self.ears));
        let mut told = ready & (IN | OUT | GONE | HALF_ENDED);
        told |= if ready & IN != 0 { IN_TOO } else { 0 };
        told |= if ready & OUT != 0 { OUT_TOO } else { 0 };
        told & (it.wanted & (IN | OUT | IN_TOO | OUT_TOO | HALF_ENDED) | GONE)
    }

    /// Waits until there is something; how many have it.
    fn watch(&mut self, list: &mut [Watched], deadline: Option<u64>) -> Result<u64> {
        let any = || list.iter().any(|it| self.found(it) != 0).then_some(());
        self.until_timed(deadline, any)?;
        let mut count = 0;
        for it in list {
            it.found = self.found(it);
            count += u64::from(it.found != 0);
        }
        Ok(count)
    }

    /// `poll`, and `ppoll` behind its times and mask: a list of descriptors with what is wanted and
    /// what there is.
    fn poll_until(&mut self, at: u64, count: u64, deadline: Option<u64>) -> Result<u64> {
        // Linux has as many at most as there may be descriptors.
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= MOST_FILES);
        let count = count.ok_or(EINVAL)?;
        let mut list = Vec::new();
        list.try_reserve_exact(count).map_err(|_| ENOMEM)?;
        for index in 0..count as u64 {
            let entry = memory::read_word(&self.program.mm.space, at.wrapping_add(8 * index))?;
            list.push(Watched {
                descriptor: entry as i32,
                wanted: entry >> 32 & 0xffff,
                found: 0,
            });
        }
        let found = self.watch(&mut list, deadline)?;
        for (index, it) in (0..).zip(&list) {
            let place = at.wrapping_add(8 * index).wrapping_add(6);
            memory::write(
                &self.program.mm.space,
                place,
                &(it.found as u16).to_le_bytes(),
            )?;
        }
        Ok(found)
    }

    /// `poll`.
    pub(super) fn poll(&mut self, list: u64, count: u64, milliseconds: i32) -> Result<u64> {
        let wait = milliseconds.max(0) as u64 * 1_000_000;
        let deadline = (milliseconds >= 0).then(|| time::now().saturating_add(wait));
        self.poll_until(list, count, deadline)
    }

    /// The end of a wait whose length stands in the program's memory, as seconds and parts of them
    /// of which a second has `parts`.
    pub(super) fn end_of_wait(&self, at: u64, parts: u64) -> Result<Option<u64>> {
        if at == 0 {
            return Ok(None);
        }
        let [seconds, rest] = self.get(at)?;
        if seconds > i64::MAX as u64 || rest >= parts {
            return Err(EINVAL);
        }
        let rest = rest * (SECOND / parts);
        let length = seconds.saturating_mul(SECOND).saturating_add(rest);
        Ok(Some(time::now().saturating_add(length)))
    }

    /// Has other signals wait meanwhile. The mask of before comes back at once, or when a handler
    /// has been entered that ends the wait.
    pub(super) fn masked_by<T>(
        &mut self,
        mask: u64,
        bytes: u64,
        wait: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if mask == 0 {
            return wait(self);
        }
        if bytes != 8 {
            return Err(EINVAL);
        }
        let mask = memory::read_word(&self.program.mm.space, mask)?;
        let before = self.ears.mask();
        self.set_mask(mask);
        let result = wait(self);
        match result.is_err() && self.ears.ready() != 0 {
            true => self.mask_after = Some(before),
            false => self.set_mask(before),
        }
        result
    }

    /// `ppoll`: list, count, length of the wait, mask.
    pub(super) fn poll_masked(&mut self, a: [u64; 5]) -> Result<u64> {
        let deadline = self.end_of_wait(a[2], SECOND)?;
        self.masked_by(a[3], a[4], |task| task.poll_until(a[0], a[1], deadline))
    }

    /// `select`: how many descriptors, three sets of them, length of the wait.
    pub(super) fn select(&mut self, a: [u64; 5]) -> Result<u64> {
        let deadline = self.end_of_wait(a[4], 1_000_000)?;
        self.select_until(a[0], [a[1], a[2], a[3]], deadline)
    }

    /// `pselect6`: the same, and where a mask stands and how many bytes it has.
    pub(super) fn select_masked(&mut self, a: [u64; 6]) -> Result<u64> {
        let deadline = self.end_of_wait(a[4], SECOND)?;
        let [mask, bytes] = match a[5] {
            0 => [0, 8],
            at => self.get(at)?,
        };
        self.masked_by(mask, bytes, |task| {
            task.select_until(a[0], [a[1], a[2], a[3]], deadline)
        })
    }

    fn select_until(&mut self, count: u64, sets: [u64; 3], deadline: Option<u64>) -> Result<u64> {
        if count as i32 <= -1 {
            return Err(EINVAL);
        }
        let count = (count as usize).min(MOST_FILES);
        let words = count.div_ceil(BITS);
        let mut asked = [[0; MOST_FILES / BITS]; 3];
        for (set, at) in asked.iter_mut().zip(sets).filter(|(_, at)| *at != 0) {
            for (index, word) in (0..).zip(&mut set[..words]) {
                *word = memory::read_word(&self.program.mm.space, at.wrapping_add(8 * index))?;
            }
        }
        let has =
            |set: &[u64; MOST_FILES / BITS], at: usize| set[at / BITS] >> (at % BITS) & 1 != 0;
        let mut list = Vec::new();
        list.try_reserve_exact(count).map_err(|_| ENOMEM)?;
        for descriptor in (0..count).filter(|at| asked.iter().any(|set| has(set, *at))) {
            self.opened(descriptor as u64).map_err(|_| EBADF)?;
            let wanted = [(0, IN), (1, OUT)].map(|(set, bit)| match has(&asked[set], descriptor) {
                true => bit,
                false => 0,
            });
            list.push(Watched {
                descriptor: descriptor as i32,
                wanted: wanted[0] | wanted[1],
                found: 0,
            });
        }
        self.watch(&mut list, deadline)?;
        let (mut found, mut total) = ([[0_u64; MOST_FILES / BITS]; 3], 0);
        for it in &list {
            let at = it.descriptor as usize;
            // An end that is gone can be read, and written to, without a wait.
            for (set, bits) in [(0, IN | GONE), (1, OUT | 8)] {
                if it.found & bits != 0 && has(&asked[set], at) {
                    found[set][at / BITS] |= 1 << (at % BITS);
                    total += 1;
                }
            }
        }
        for (set, at) in found.iter().zip(sets).filter(|(_, at)| *at != 0) {
            self.put(at, &set[..words])?;
        }
        Ok(total)
    }
}
