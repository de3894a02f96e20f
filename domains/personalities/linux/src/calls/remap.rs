//! `mremap`: a mapping becomes longer or shorter, or goes elsewhere.
//!
//! What has pages of its own is copied to its new place, as far as its pages are there, and each
//! part is given back as soon as it is copied: so it takes little more memory than before. Nobody
//! may write to the old place meanwhile, and whoever tries waits until it is gone.

use super::Result;
use crate::delivery::by_kernel;
use crate::errno::{EFAULT, EINTR, EINVAL, ENOMEM, SIGKILL};
use crate::memory::PAGE;
use crate::shared::Source;
use crate::space::Space;
use crate::task::Task;
use alloc::vec::Vec;
use core::ops::Range;
use domain_rt::log;
use linux::areas::Area;
use linux::layout::whole;
use linux::memory::{Memory, READ, WRITE};
use linux::program::USER_END;

const MAYMOVE: u64 = 1;
const FIXED: u64 = 2;
/// The most bytes of pages of its own that are moved: each of them is looked at.
const MOST: u64 = 16 << 30;
/// So many bytes are copied before those in the old place are given back.
const PART: u64 = 2 << 20;

impl Task {
    /// `mremap`: address, length, new length, flags, new address.
    pub(super) fn remap(&mut self, [at, bytes, new, flags, to]: [u64; 5]) -> Result<u64> {
        let (may_move, is_fixed) = (flags & MAYMOVE != 0, flags & FIXED != 0);
        let is_odd = flags & !(MAYMOVE | FIXED) != 0 || is_fixed && !may_move;
        if is_odd || !at.is_multiple_of(PAGE) || bytes == 0 {
            return Err(EINVAL);
        }
        let (bytes, new) = (whole(bytes)?, whole(new)?);
        let mm = self.program.mm.clone();
        let space = &mm.space;
        let _layout = space.layout();
        let area = space.area(at).ok_or(EFAULT)?;
        if !is_fixed && new <= bytes {
            return match new < bytes {
                true => self.unmap_parts(at + new, bytes - new).map(|()| at),
                false => Ok(at),
            };
        }
        let kept = bytes.min(new);
        if area.end - at < kept {
            return Err(EFAULT);
        }
        if is_own(&area) && area.bits & WRITE != 0 && new > bytes.max(self.process.system.total) {
            return Err(ENOMEM);
        }
        let end = at.checked_add(new).filter(|end| *end <= USER_END);
        if let Some(end) = end
            && !is_fixed
            && area.end == at + bytes
            && space.is_free(area.end..end)
        {
            map_like(space, &area, area.end, area.end..end, area.bits)?;
            return Ok(at);
        }
        let place = match is_fixed {
            true => self.clear_place(at..at + bytes, to, new)?,
            false if may_move => space.place(0, new)?,
            false => return Err(ENOMEM),
        };
        self.go(space, &area, (at, kept), place..place + new)?;
        self.unmap_parts(at, bytes)?;
        Ok(place)
    }

    /// The place that a program wants for what is at `old`, with nothing there any more.
    fn clear_place(&self, old: Range<u64>, to: u64, bytes: u64) -> Result<u64> {
        let end = to.checked_add(bytes).filter(|end| *end <= USER_END);
        let end = end.ok_or(EINVAL)?;
        if !to.is_multiple_of(PAGE) || to < old.end && old.start < end {
            return Err(EINVAL);
        }
        self.unmap_parts(to, bytes).map(|()| to)
    }

    /// Has a part of an area, which begins at `at`, be at another place, too.
    fn go(
        &mut self,
        space: &Space,
        area: &Area<Source>,
        (at, bytes): (u64, u64),
        to: Range<u64>,
    ) -> Result<()> {
        if !is_own(area) {
            return map_like(space, area, at, to, area.bits);
        }
        if bytes > MOST {
            return Err(ENOMEM);
        }
        let (place, new) = (to.start, to.end - to.start);
        map_like(space, area, at, to, READ | WRITE)?;
        if let Err(why) = space.protect(at, bytes, READ) {
            self.unmap_parts(place, new)?;
            return Err(why);
        }
        if let Err(why) = self.copy_pages(space, (at, bytes), place) {
            // A part is gone from the one place, and there is no memory for the rest at the other.
            if why != EINTR {
                let id = self.process.id;
                log!("out of memory: process {id} is ended, whose pages were to be moved");
                self.process.signal(by_kernel(SIGKILL), None);
            }
            return Err(why);
        }
        space.protect(place, new, area.bits)
    }

    /// Copies the pages of a range that are there, and gives those of the range back.
    fn copy_pages(&mut self, space: &Space, (at, bytes): (u64, u64), to: u64) -> Result<()> {
        let mut page = Vec::new();
        page.try_reserve_exact(PAGE as usize).map_err(|_| ENOMEM)?;
        page.resize(PAGE as usize, 0);
        for part in (0..bytes).step_by(PART as usize) {
            if self.is_ending() {
                return Err(EINTR);
            }
            let end = bytes.min(part + PART);
            for next in (part..end).step_by(PAGE as usize) {
                // Others are zeros, or as the file has them.
                if space.peek(at + next, &mut page) == page.len() {
                    space.fill_page(to + next, &page)?;
                }
            }
            space.discard(at + part, end - part)?;
        }
        Ok(())
    }
}

/// Whether its pages are a program's own once they are written to.
fn is_own(area: &Area<Source>) -> bool {
    !area.file.as_ref().is_some_and(Source::is_shared)
}

/// Maps what an area has from `at` on, at a place where nothing is.
fn map_like(
    space: &Space,
    area: &Area<Source>,
    at: u64,
    place: Range<u64>,
    bits: u64,
) -> Result<()> {
    match &area.file {
        Some(source) => space.map_source(place, (source, area.page_at(at)), bits),
        None => space.map_zero(place.start, place.end - place.start, bits),
    }
}
