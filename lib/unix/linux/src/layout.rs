//! Where a program's heap and its mappings are. The heap grows up from behind the program, mappings
//! down from [`MAPPINGS_END`].

use crate::errno::{EINVAL, ENOMEM, Error};
use crate::memory::{Memory, PAGE, READ, WRITE};

/// Mappings whose place the program leaves open lie below this.
pub const MAPPINGS_END: u64 = 0x7f00_0000_0000;

/// Where things are in a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the heap begins, and where it ends.
    heap: u64,
    heap_end: u64,
    /// Where the next mapping ends.
    mappings: u64,
}

/// Bytes of whole pages.
///
/// # Errors
/// `EINVAL`: none, or more than there are.
pub fn whole(bytes: u64) -> Result<u64, Error> {
    let bytes = bytes.checked_next_multiple_of(PAGE);
    bytes.filter(|bytes| *bytes > 0).ok_or(EINVAL)
}

impl Layout {
    /// Of a program behind which the heap begins at `heap`, and that has no mappings.
    pub fn new(heap: u64) -> Self {
        Layout {
            heap,
            heap_end: heap,
            mappings: MAPPINGS_END,
        }
    }

    /// Where the heap begins.
    pub fn heap(&self) -> u64 {
        self.heap
    }

    /// `brk`: where the heap ends now, whatever was asked.
    pub fn set_heap(&mut self, space: &impl Memory, to: u64) -> u64 {
        if to < self.heap || to > self.mappings {
            return self.heap_end;
        }
        let [old, new] = [self.heap_end, to].map(|end| end.next_multiple_of(PAGE));
        let done = match new > old {
            true => space.map_zero(old, new - old, READ | WRITE),
            false => space.unmap(new, old - new),
        };
        if new == old || done.is_ok() {
            self.heap_end = to;
        }
        self.heap_end
    }

    /// Where a mapping of so many bytes can be.
    ///
    /// # Errors
    /// `ENOMEM`: there are not as many addresses.
    pub fn place(&self, bytes: u64) -> Result<u64, Error> {
        self.mappings.checked_sub(bytes).ok_or(ENOMEM)
    }

    /// Something is mapped at such a place.
    pub fn mapped(&mut self, at: u64) {
        self.mappings = at;
    }

    /// Something was unmapped: the addresses of the last mapping can be given out again.
    pub fn unmapped(&mut self, at: u64, bytes: u64) {
        if at == self.mappings && bytes <= MAPPINGS_END - at {
            self.mappings += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    const HEAP: u64 = 0x50_0000;

    #[test]
    fn a_heap_grows_and_shrinks_by_pages() {
        let (space, mut layout) = (Fake::default(), Layout::new(HEAP));
        assert_eq!(layout.set_heap(&space, 0), HEAP);
        assert_eq!(layout.set_heap(&space, HEAP + 1), HEAP + 1);
        assert_eq!(space.bits(HEAP), Some(READ | WRITE));
        assert_eq!(space.bits(HEAP + PAGE), None);
        assert_eq!(layout.set_heap(&space, HEAP + PAGE), HEAP + PAGE);
        assert_eq!(layout.set_heap(&space, HEAP + 3 * PAGE), HEAP + 3 * PAGE);
        assert_eq!(layout.set_heap(&space, HEAP + PAGE + 1), HEAP + PAGE + 1);
        assert_eq!(space.bits(HEAP + PAGE), Some(READ | WRITE));
        assert_eq!(space.bits(HEAP + 2 * PAGE), None);
        assert_eq!(layout.set_heap(&space, HEAP), HEAP);
        assert!(space.pages.borrow().is_empty());
    }

    /// Below its begin, into mappings, where something is, and where memory ends, it stays.
    #[test]
    fn a_heap_stays_where_it_cannot_grow() {
        let (space, mut layout) = (Fake::default(), Layout::new(HEAP));
        for to in [HEAP - 1, MAPPINGS_END + 1, u64::MAX, MAPPINGS_END] {
            assert_eq!(layout.set_heap(&space, to), HEAP, "{to:x}");
        }
        space.map_zero(HEAP + PAGE, PAGE, READ).expect("it is free");
        assert_eq!(layout.set_heap(&space, HEAP + 2 * PAGE), HEAP);
        assert_eq!(layout.set_heap(&space, HEAP + PAGE), HEAP + PAGE);
        layout.mapped(HEAP + 2 * PAGE);
        assert_eq!(layout.set_heap(&space, HEAP + 3 * PAGE), HEAP + PAGE);
    }

    #[test]
    fn places_of_mappings_go_down_and_come_back() {
        let mut layout = Layout::new(HEAP);
        let first = layout.place(PAGE).expect("there is room");
        layout.mapped(first);
        let second = layout.place(2 * PAGE).expect("there is room");
        layout.mapped(second);
        assert_eq!((first, second), (MAPPINGS_END - PAGE, first - 2 * PAGE));
        // The one before the last is not given out again, nor more than there was.
        layout.unmapped(first, PAGE);
        assert_eq!(layout.place(0), Ok(second));
        layout.unmapped(second, u64::MAX);
        assert_eq!(layout.place(0), Ok(second));
        layout.unmapped(second, 2 * PAGE);
        assert_eq!(layout.place(0), Ok(first));
        assert_eq!(layout.place(u64::MAX), Err(ENOMEM));
    }

    #[test]
    fn whole_pages_are_some() {
        assert_eq!(whole(1), Ok(PAGE));
        assert_eq!(whole(PAGE), Ok(PAGE));
        assert_eq!(whole(0), Err(EINVAL));
        assert_eq!(whole(u64::MAX), Err(EINVAL));
    }
}
