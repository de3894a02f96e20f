//! The bytes of a file: an object, made when the first byte is written, and the size.
//!
//! Behind the last page that the size reaches into the object has no pages. In that last page the
//! bytes behind the size are anything; whoever makes the file longer writes zeros there first. So a
//! file becomes shorter by a note of its size alone, and what a write has left there that was not
//! finished is never seen.

use core::ops::DerefMut;

use crate::store::{Object, PAGE};
use crate::{Error, Result};

/// Largest size of a file.
pub const MAX_SIZE: u64 = 1 << 46;

/// The content of a file.
pub(crate) struct Content<O> {
    size: u64,
    object: Option<O>,
    /// Pages of the object that have memory.
    pages: u64,
    /// The journal says that there is an object.
    pub(crate) is_noted: bool,
}

/// How far a write got.
pub(crate) struct Wrote {
    /// Bytes.
    pub(crate) count: usize,
    /// Pages that have memory now and had none before.
    pub(crate) pages: u64,
}

impl<O: Object> Content<O> {
    /// Of a file that has `size` bytes of zeros, or those that an object has which is still to be
    /// [given](Self::give).
    pub(crate) fn new(size: u64, is_noted: bool) -> Self {
        Content {
            size,
            object: None,
            pages: 0,
            is_noted,
        }
    }

    /// Length in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Memory that it takes, in pages.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The object, if it has one.
    pub(crate) fn object(&self) -> Option<&O> {
        self.object.as_ref()
    }

    /// Gives it an object.
    pub(crate) fn give(&mut self, object: O) {
        self.object = Some(object);
    }

    /// Takes an object away that nothing was written to.
    pub(crate) fn take(&mut self) {
        (self.object, self.pages) = (None, 0);
    }

    /// Has the object, which another instance has left, hold nothing behind the size.
    ///
    /// # Errors
    /// `Broken`.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if let Some(object) = &self.object {
            object.cut(self.size.div_ceil(PAGE))?;
            self.pages = object.pages()?;
        }
        Ok(())
    }

    /// Reads from `offset` into `room`, which becomes as long as what was read: shorter only at the
    /// end.
    ///
    /// # Errors
    /// `Broken`.
    pub(crate) fn read(&self, offset: u64, mut room: O::Data) -> Result<O::Data> {
        let left = self.size.saturating_sub(offset).min(room.len() as u64) as usize;
        match &self.object {
            Some(object) if left > 0 => Ok(object.read(offset, room, left)?),
            _ => {
                room.deref_mut()[..left].fill(0);
                Ok(O::shorten(room, left))
            }
        }
    }

    /// Writes, with at most `most` pages more than it has; how much. The size stays.
    ///
    /// # Errors
    /// `NoSpace` if it is nothing; `Broken`.
    pub(crate) fn write(&mut self, offset: u64, data: &O::Data, most: u64) -> Result<Wrote> {
        self.clear_to(offset)?;
        let object = self.object.as_ref().ok_or(Error::Broken)?;
        let length = self.allowed(object, offset, data.len(), most)?;
        let count = match length {
            0 => return Err(Error::NoSpace),
            length if length == data.len() => object.write(offset, data)?,
            length => object.write_bytes(offset, &data[..length])?,
        };
        let before = self.pages;
        let end = (offset + count as u64).div_ceil(PAGE);
        // Without holes the pages need not be counted.
        let is_dense = self.is_dense() && offset / PAGE <= before && count == length;
        self.pages = match is_dense {
            true => before.max(end),
            false => object.pages()?,
        };
        Ok(Wrote {
            count,
            pages: self.pages - before,
        })
    }

    /// Whether every page that the size reaches into has memory.
    fn is_dense(&self) -> bool {
        self.pages == self.size.div_ceil(PAGE)
    }

    /// How many of `length` bytes from `offset` on may be written with `most` pages more.
    fn allowed(&self, object: &O, offset: u64, length: usize, most: u64) -> Result<usize> {
        let (first, end) = (offset / PAGE, (offset + length as u64).div_ceil(PAGE));
        let there = if self.is_dense() { self.pages } else { 0 };
        if end.saturating_sub(first.max(there)) <= most {
            return Ok(length);
        }
        let mut left = most;
        for page in first..end {
            if object.has(page)? {
                continue;
            }
            if left == 0 {
                let allowed = (page * PAGE).saturating_sub(offset);
                return Ok(allowed as usize);
            }
            left -= 1;
        }
        Ok(length)
    }

    /// Sets the size; how many pages less it takes. Shorter it is cut; before it becomes longer,
    /// [`clear_to`](Self::clear_to) has to be called.
    ///
    /// # Errors
    /// `Broken`. The size is what it should be.
    pub(crate) fn set_size(&mut self, size: u64) -> Result<u64> {
        let is_shorter = size < self.size;
        self.size = size;
        let Some(object) = self.object.as_ref().filter(|_| is_shorter) else {
            return Ok(0);
        };
        let before = self.pages;
        object.cut(size.div_ceil(PAGE))?;
        self.pages = object.pages()?;
        Ok(before.saturating_sub(self.pages))
    }

    /// Takes memory away behind the size, that a write has left whose size could not be noted; how
    /// many pages.
    ///
    /// # Errors
    /// `Broken`.
    pub(crate) fn trim(&mut self) -> Result<u64> {
        let before = self.pages;
        self.settle()?;
        Ok(before.saturating_sub(self.pages))
    }

    /// Writes zeros behind the size, up to `end` or the end of the page: the file is to become
    /// longer than `end`.
    ///
    /// # Errors
    /// `Broken`.
    pub(crate) fn clear_to(&self, end: u64) -> Result<()> {
        static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
        let Some(object) = &self.object else {
            return Ok(());
        };
        let end = end.min(self.size.next_multiple_of(PAGE));
        if end <= self.size || !object.has(self.size / PAGE)? {
            return Ok(());
        }
        let length = (end - self.size) as usize;
        match object.write_bytes(self.size, &ZEROS[..length])? {
            count if count == length => Ok(()),
            _ => Err(Error::Broken),
        }
    }
}
