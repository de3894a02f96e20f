//! Where a program's heap and its mappings are. The heap grows up from behind the program; mappings
//! lie as high as there is room below [`MAPPINGS_END`].

use crate::areas::Areas;
use crate::errno::{EINVAL, ENOMEM, Error};
use crate::memory::{Memory, PAGE, READ, WRITE};
use crate::program::USER_END;

/// Mappings whose place the program leaves open lie below this, as long as there is room.
pub const MAPPINGS_END: u64 = 0x7f00_0000_0000;
/// Nothing is put below this where a program leaves the place open.
const LOWEST: u64 = 0x1_0000;

/// Where a program's heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the heap begins, and where it ends.
    heap: u64,
    heap_end: u64,
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
    /// Of a program behind which the heap begins at `heap`.
    pub fn new(heap: u64) -> Self {
        Layout {
            heap,
            heap_end: heap,
        }
    }

    /// Where the heap begins.
    pub fn heap(&self) -> u64 {
        self.heap
    }

    /// `brk`: where the heap ends now, whatever was asked.
    pub fn set_heap(&mut self, space: &impl Memory, to: u64) -> u64 {
        if to < self.heap || to > MAPPINGS_END {
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
}

/// Where a mapping of so many bytes is put for which a program says no place, or `hint` if that is
/// free.
///
/// # Errors
/// `ENOMEM`: there are not as many addresses.
pub fn place<F: Clone + PartialEq>(areas: &Areas<F>, hint: u64, bytes: u64) -> Result<u64, Error> {
    let hint = hint.checked_next_multiple_of(PAGE).unwrap_or(0);
    let end = hint.checked_add(bytes).filter(|end| *end <= USER_END);
    if let Some(end) = end
        && hint >= LOWEST
        && areas.is_free(hint..end)
    {
        return Ok(hint);
    }
    areas
        .gap(bytes, LOWEST, MAPPINGS_END)
        .or_else(|| areas.gap(bytes, LOWEST, USER_END))
        .ok_or(ENOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::areas::Area;
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
    }

    /// What is mapped far below leaves the room above it; a hint is taken if it can be.
    #[test]
    fn mappings_are_put_where_there_is_room() {
        let mut areas = Areas::<()>::default();
        let put = |areas: &mut Areas<()>, start: u64, pages: u64| {
            areas.put(Area {
                start,
                end: start + pages * PAGE,
                bits: READ,
                page: 0,
                file: None,
            });
        };
        put(&mut areas, LOWEST, 1);
        let first = place(&areas, 0, 2 * PAGE);
        assert_eq!(first, Ok(MAPPINGS_END - 2 * PAGE));
        put(&mut areas, MAPPINGS_END - 2 * PAGE, 2);
        let second = MAPPINGS_END - 3 * PAGE;
        assert_eq!(place(&areas, 0, PAGE), Ok(second));
        assert_eq!(place(&areas, MAPPINGS_END - PAGE, PAGE), Ok(second));
        assert_eq!(place(&areas, HEAP - 1, PAGE), Ok(HEAP));
        for odd in [1, u64::MAX, USER_END, USER_END - PAGE + 1] {
            assert_eq!(place(&areas, odd, 2 * PAGE), Ok(second - PAGE), "{odd:x}");
        }
        assert_eq!(place(&areas, 0, MAPPINGS_END - LOWEST), Err(ENOMEM));
        assert_eq!(place(&areas, 0, u64::MAX), Err(ENOMEM));
        put(&mut areas, LOWEST, (MAPPINGS_END - LOWEST) / PAGE);
        assert_eq!(place(&areas, 0, PAGE), Ok(USER_END - PAGE));
    }

    #[test]
    fn whole_pages_are_some() {
        assert_eq!(whole(1), Ok(PAGE));
        assert_eq!(whole(PAGE), Ok(PAGE));
        assert_eq!(whole(0), Err(EINVAL));
        assert_eq!(whole(u64::MAX), Err(EINVAL));
    }
}
