//! Memory of a program in ring 3, lent for the time of a call.

use crate::api::api;
use crate::{Handle, Interface};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

/// A run of bytes in the memory of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserSegment {
    /// Its address.
    pub start: u64,
    /// How many bytes.
    pub length: u64,
}

/// What may be done with memory that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserDirection {
    /// Bytes may be read from it.
    FromProgram,
    /// Bytes may be written to it.
    ToProgram,
}

/// Runs of bytes in the memory of a program, one behind the other, to read from or to write to. Who
/// has the program's address space makes it and lends it as an argument, as `&UserBuf<'_>`, from
/// domain to domain; whoever is lent it copies straight to or from the program's pages, or lends it
/// on. It can be kept by nobody, since a borrow ends with its call, and used by no other thread.
///
/// # Why what it points to is there
/// It borrows the handle and the segments of who has made it, and lies there. They go with that
/// domain at the earliest. If that dies during the call, what it owns, the proxy behind the handle
/// too, is taken back when no record names it any more: so not before the call has ended.
pub struct UserBuf<'a> {
    /// The data pointer of a handle that is borrowed for `'a`; none: there is no program.
    space: Option<*const u8>,
    segments: &'a [UserSegment],
    direction: UserDirection,
    _borrowed: PhantomData<&'a ()>,
}

impl<'a> UserBuf<'a> {
    /// The most segments that one has.
    pub const MOST_SEGMENTS: usize = 1024;

    /// These bytes of the program of an address space. With any handle but one of an address space
    /// of the kernel's nothing is ever copied. `None`: there are more segments than may be.
    pub fn new<I: ?Sized + Interface>(
        space: &'a Handle<I>,
        segments: &'a [UserSegment],
        direction: UserDirection,
    ) -> Option<Self> {
        (segments.len() <= Self::MOST_SEGMENTS).then(|| UserBuf {
            space: Some(space.as_raw().data.cast_const()),
            segments,
            direction,
            _borrowed: PhantomData,
        })
    }

    /// No bytes of no program.
    pub const fn empty(direction: UserDirection) -> UserBuf<'static> {
        UserBuf {
            space: None,
            segments: &[],
            direction,
            _borrowed: PhantomData,
        }
    }

    /// How many bytes there are in all; the largest number, if there are more.
    pub fn len(&self) -> u64 {
        let lengths = self.segments.iter().map(|segment| segment.length);
        lengths.fold(0, u64::saturating_add)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What may be done with it.
    pub fn direction(&self) -> UserDirection {
        self.direction
    }

    /// Copies from the program, from byte `at` of the whole on; how many bytes, up to the end or
    /// the first page that the program may not read now. 0, if nothing may be read from it. Waits
    /// for nobody: the page is the lender's to make ready, who then calls again.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> usize {
        let Some(space) = self.if_meant(UserDirection::FromProgram) else {
            return 0;
        };
        self.each(at, bytes.len(), |from, part| {
            let bytes = &mut bytes[part];
            // SAFETY: the handle is borrowed as long as this is, and live so long (see the type);
            // the bytes are lent for the call.
            unsafe { (api().user_read)(space, from, bytes.as_mut_ptr(), bytes.len()) }
        })
    }

    /// Copies to the program, from byte `at` of the whole on; how many bytes, up to the end or the
    /// first page that the program may not write to now. Else as [`read`](Self::read).
    pub fn write(&self, at: u64, bytes: &[u8]) -> usize {
        let Some(space) = self.if_meant(UserDirection::ToProgram) else {
            return 0;
        };
        self.each(at, bytes.len(), |to, part| {
            let bytes = &bytes[part];
            // SAFETY: as in `read`; nobody writes to the bytes.
            unsafe { (api().user_write)(space, to, bytes.as_ptr(), bytes.len()) }
        })
    }

    fn if_meant(&self, direction: UserDirection) -> Option<*const u8> {
        self.space.filter(|_| self.direction == direction)
    }

    /// The data pointer of the handle that it borrows; none: there is no program. For the kernel,
    /// which looks what is behind it.
    pub fn space(&self) -> Option<*const u8> {
        self.space
    }

    /// Has `copy` do parts of `length` bytes from byte `at` of the whole on, each in one segment:
    /// with its address in the program, and which of the bytes they are. It says how many it did;
    /// how many were done before one that was short. For the kernel, which can reach them.
    pub fn each(
        &self,
        mut at: u64,
        length: usize,
        mut copy: impl FnMut(u64, Range<usize>) -> usize,
    ) -> usize {
        let mut done = 0;
        for segment in self.segments {
            if at >= segment.length {
                at -= segment.length;
                continue;
            }
            let room = usize::try_from(segment.length - at).unwrap_or(usize::MAX);
            let count = room.min(length - done);
            let Some(address) = segment.start.checked_add(at).filter(|_| count > 0) else {
                break;
            };
            let copied = copy(address, done..done + count).min(count);
            done += copied;
            if copied < count {
                break;
            }
            at = 0;
        }
        done
    }
}

/// Without addresses of the kernel.
impl fmt::Debug for UserBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserBuf")
            .field("segments", &self.segments)
            .field("direction", &self.direction)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn buffer(segments: &[UserSegment]) -> UserBuf<'_> {
        UserBuf {
            space: None,
            segments,
            direction: UserDirection::ToProgram,
            _borrowed: PhantomData,
        }
    }

    fn segment(start: u64, length: u64) -> UserSegment {
        UserSegment { start, length }
    }

    /// The parts that are copied, where each is done.
    fn parts(segments: &[UserSegment], at: u64, length: usize) -> (usize, Vec<(u64, usize)>) {
        let mut parts = Vec::new();
        let done = buffer(segments).each(at, length, |address, part| {
            parts.push((address, part.len()));
            part.len()
        });
        (done, parts)
    }

    #[test]
    fn parts_lie_in_one_segment_each() {
        let segments = [segment(100, 10), segment(7, 0), segment(200, 5)];
        assert_eq!(buffer(&segments).len(), 15);
        assert_eq!(parts(&segments, 0, 15), (15, [(100, 10), (200, 5)].into()));
        assert_eq!(parts(&segments, 4, 8), (8, [(104, 6), (200, 2)].into()));
        assert_eq!(parts(&segments, 10, 3), (3, [(200, 3)].into()));
        assert_eq!(parts(&segments, 12, 99), (3, [(202, 3)].into()));
        for at in [15, 16, u64::MAX] {
            assert_eq!(parts(&segments, at, 1), (0, Vec::new()), "at {at}");
        }
        assert_eq!(parts(&segments, 3, 0), (0, Vec::new()));
    }

    #[test]
    fn numbers_at_the_ends_do_no_harm() {
        let segments = [segment(u64::MAX, u64::MAX), segment(5, u64::MAX)];
        assert_eq!(buffer(&segments).len(), u64::MAX);
        // The first byte has an address, the one behind it has none.
        assert_eq!(parts(&segments, 0, 1).0, 1);
        assert_eq!(parts(&segments, 1, 1).0, 0);
        assert_eq!(parts(&segments, u64::MAX, 4), (4, [(5, 4)].into()));
    }

    #[test]
    fn a_short_part_is_the_last() {
        let segments = [segment(100, 10), segment(200, 5)];
        let mut calls = 0;
        let done = buffer(&segments).each(0, 15, |_, _| {
            calls += 1;
            3
        });
        assert_eq!((done, calls), (3, 1));
        // And one that claims more than it was asked for.
        let done = buffer(&segments).each(0, 12, |_, _| usize::MAX);
        assert_eq!(done, 12);
    }

    #[test]
    fn nothing_is_copied_of_nobody_or_the_wrong_way() {
        let empty = UserBuf::empty(UserDirection::ToProgram);
        assert_eq!(empty.write(0, &[1]), 0);
        assert_eq!(empty.read(0, &mut [0]), 0);
        assert!(empty.is_empty());
    }
}
