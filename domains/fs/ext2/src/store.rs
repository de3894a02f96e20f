//! Pages of files that others keep: the device writes what they have.
//!
//! What is stored is given a place under the volume's lock, and goes there without it; a commit
//! that would name the place waits for it ([`Disk::begin_content`](crate::device::Disk)). As with
//! loads ([`Loads`](crate::load::Loads)) who stores holds the inode, and a cut waits.

use alloc::vec::Vec;
use core::ops::Range;

use domain_rt::log;
use ext2::{DeviceError, Mapped, Time};
use interfaces::{Handle, PageRun, VmoView};
use vfs::fence::Service;

use crate::device::Piece;
use crate::errors::Error;
use crate::load::PAGE;
use crate::volume::{Mounted, Volume};

/// Pages that are stored in one call.
const MOST: u64 = 256;

/// Bytes that pages have of a file that is to end at `end`, in rising order.
fn ranges(runs: &[PageRun], end: u64) -> Result<Vec<Range<u64>>, Error> {
    let mut ranges = Vec::new();
    ranges
        .try_reserve_exact(runs.len().min(MOST as usize))
        .map_err(|_| DeviceError::NoMemory)?;
    let (mut behind, mut pages) = (0, 0u64);
    for run in runs {
        pages = pages.saturating_add(run.count);
        let start = run.first.checked_mul(PAGE);
        let is_next = run.first >= behind && run.count > 0 && pages <= MOST;
        match start.filter(|start| is_next && *start < end) {
            Some(start) => ranges.push(start..end.min(start.saturating_add(run.count * PAGE))),
            None => return Err(ext2::Error::Invalid("pages are stored in rising order").into()),
        }
        behind = run.first + run.count;
    }
    match ranges.is_empty() {
        true => Err(ext2::Error::Invalid("no page is to be stored").into()),
        false => Ok(ranges),
    }
}

/// Where on the device and in the object the bytes are that have a place.
fn pieces(ranges: &[Range<u64>], mapped: &Mapped) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    pieces
        .try_reserve_exact(mapped.extents.len())
        .map_err(|_| DeviceError::NoMemory)?;
    let mut extents = mapped.extents.iter();
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let Some(extent) = extents.next() else {
                return Ok(pieces);
            };
            let (sector, bytes) = (extent.sector, extent.bytes);
            pieces.push(Piece { sector, at, bytes });
            at += bytes as u64;
        }
    }
    Ok(pieces)
}

/// How many pages are whole of which the first `bytes` bytes are stored.
fn whole(ranges: &[Range<u64>], mut bytes: u64) -> u64 {
    let mut pages = 0;
    for range in ranges {
        let length = range.end - range.start;
        match bytes.checked_sub(length) {
            Some(left) => (pages, bytes) = (pages + length.div_ceil(PAGE), left),
            None => return pages + bytes / PAGE,
        }
    }
    pages
}

impl Volume {
    /// Stores pages of a file, see [`FileSystem::store`](interfaces::FileSystem::store); how many.
    ///
    /// # Errors
    /// The library's.
    pub fn store(
        &self,
        service: Service,
        ino: u32,
        runs: &[PageRun],
        end: u64,
        modified: Time,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let ranges = ranges(runs, end)?;
        let _store = self.begin_load(service, ino)?;
        self.view(service, |fs| fs.open(ino))?;
        let stored = self.store_held(service, ino, &ranges, modified, view);
        if let Err(error) = self.close(ino) {
            log!("letting go of inode {ino}: {error}");
        }
        match whole(&ranges, stored?) {
            0 => Err(ext2::Error::NoSpace.into()),
            pages => Ok(pages),
        }
    }

    fn store_held(
        &self,
        service: Service,
        ino: u32,
        ranges: &[Range<u64>],
        modified: Time,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let mut arriving = None;
        let map = |fs: &mut Mounted| {
            let mapped = fs.map_content(ino, ranges, modified)?;
            arriving = Some(self.disk().begin_content());
            Ok(mapped)
        };
        let mapped = self.change_content(service, map, |content, _| content.forget(&[ino]))?;
        let written = pieces(ranges, &mapped)
            .and_then(|pieces| Ok(self.disk().write_out_of(view, &pieces)?));
        // Before the lock, which may be with somebody who waits for this.
        match (arriving, &written) {
            (Some(arriving), Err(_)) => arriving.fail(),
            (arriving, _) => drop(arriving),
        }
        self.renew_content(ino, &mapped, written.is_err());
        written.map(|()| mapped.bytes)
    }
}
