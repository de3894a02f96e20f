//! Physical region pages (section 4.3): where the bytes of a command are, as whole pages but for
//! the beginning of the first and the end of the last.

use crate::PAGE;

/// The two pointers of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointers {
    /// The first byte, at a multiple of four.
    pub first: u64,
    /// Nothing, the second page, or the list of all further pages.
    pub second: u64,
}

impl Pointers {
    /// Bytes that do not leave the page that begins or lies at `at`.
    #[inline]
    pub fn page(at: u64) -> Self {
        Pointers {
            first: at,
            second: 0,
        }
    }
}

/// Why pages cannot be described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrpError {
    /// None, or more than the list has room for.
    Count,
    /// An address is not that of a page, or the first byte is none of the first page or not at a
    /// multiple of four.
    Alignment,
}

/// Room for a list of pages that one command can have. It does not cross the end of a page: there a
/// controller would take the last entry for a pointer to more of it.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Its address for the controller, at a multiple of eight.
    pub address: u64,
    /// How many entries it has room for.
    pub room: usize,
}

/// Describes the bytes that begin `inside` bytes into the first of `pages` and end in the last. The
/// entries of the list are handed to `put`, each with its number.
///
/// # Errors
/// Nothing of it can be used; why.
#[inline]
pub fn describe(
    pages: &[u64],
    inside: u64,
    list: impl FnOnce() -> List,
    mut put: impl FnMut(usize, u64),
) -> Result<Pointers, PrpError> {
    let aligned = |page: &u64| page.is_multiple_of(PAGE as u64);
    let is_inside = inside < PAGE as u64 && inside.is_multiple_of(4);
    let (first, rest) = pages.split_first().ok_or(PrpError::Count)?;
    if !is_inside || !aligned(first) || !rest.iter().all(aligned) {
        return Err(PrpError::Alignment);
    }
    let second = match rest {
        [] => 0,
        [second] => *second,
        rest => {
            let list = list();
            check(list, rest.len())?;
            for (number, page) in rest.iter().enumerate() {
                put(number, *page);
            }
            list.address
        }
    };
    Ok(Pointers {
        first: first + inside,
        second,
    })
}

fn check(list: List, count: usize) -> Result<(), PrpError> {
    if !list.address.is_multiple_of(8) {
        return Err(PrpError::Alignment);
    }
    let to_end = (PAGE - (list.address % PAGE as u64) as usize) / 8;
    match count <= list.room.min(to_end) {
        true => Ok(()),
        false => Err(PrpError::Count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const LIST: List = List {
        address: 0x9000 + 4096 - 1024,
        room: 128,
    };

    fn of(pages: &[u64], inside: u64, list: List) -> Result<(Pointers, Vec<u64>), PrpError> {
        let mut entries = Vec::new();
        let pointers = describe(
            pages,
            inside,
            || list,
            |number, page| {
                assert_eq!(number, entries.len());
                entries.push(page);
            },
        )?;
        Ok((pointers, entries))
    }

    #[test]
    fn one_two_and_many_pages() {
        let (pointers, entries) = of(&[0x5000], 512, LIST).expect("good");
        assert_eq!(pointers, Pointers::page(0x5200));
        assert!(entries.is_empty());
        let (pointers, entries) = of(&[0x5000, 0x8000], 0, LIST).expect("good");
        assert_eq!((pointers.first, pointers.second), (0x5000, 0x8000));
        assert!(entries.is_empty());
        let (pointers, entries) = of(&[0x5000, 0x8000, 0x2000], 3584, LIST).expect("good");
        assert_eq!(
            (pointers.first, pointers.second),
            (0x5000 + 3584, LIST.address)
        );
        assert_eq!(entries, [0x8000, 0x2000]);
    }

    #[test]
    fn as_many_as_there_is_room_for() {
        let pages: Vec<u64> = (1..=130).map(|number| number * 4096).collect();
        assert_eq!(of(&pages[..129], 0, LIST).expect("good").1.len(), 128);
        assert_eq!(of(&pages, 0, LIST), Err(PrpError::Count));
        assert_eq!(of(&[], 0, LIST), Err(PrpError::Count));
    }

    #[test]
    fn a_list_does_not_leave_its_page() {
        let list = List {
            address: 0x9000 + 4096 - 16,
            room: 128,
        };
        let pages = [0x1000, 0x2000, 0x3000, 0x4000];
        assert!(of(&pages[..3], 0, list).is_ok());
        assert_eq!(of(&pages, 0, list), Err(PrpError::Count));
    }

    #[test]
    fn what_is_not_aligned_is_refused() {
        assert_eq!(of(&[0x5004], 0, LIST), Err(PrpError::Alignment));
        assert_eq!(of(&[0x5000], 4096, LIST), Err(PrpError::Alignment));
        assert_eq!(of(&[0x5000], 2, LIST), Err(PrpError::Alignment));
        assert_eq!(of(&[0x5000, 0x6200], 0, LIST), Err(PrpError::Alignment));
        let list = List {
            address: 0x9004,
            room: 9,
        };
        let pages = [0x1000, 0x2000, 0x3000];
        assert_eq!(of(&pages, 0, list), Err(PrpError::Alignment));
    }
}
