//! A hash table of a fixed size from 64-bit keys to 64-bit values: open addressing, linear probing,
//! FNV hash.
//!
//! Keys are not zero, so that an entry and the lack of one fit into 16 bytes. There is no removal.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::num::NonZeroU64;

/// A key with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    key: NonZeroU64,
    value: u64,
}

/// The table.
#[derive(Debug)]
pub struct Table {
    /// A power of two.
    slots: Box<[Option<Entry>]>,
    used: usize,
}

/// The table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// FNV-1a, 64 bits, over the bytes of `key`.
fn hash(key: NonZeroU64) -> u64 {
    let bytes = key.get().to_le_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl Table {
    /// An empty table with room for two to the power of `bits` entries. Its memory has been
    /// touched.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(bits: u32) -> Result<Self, TryReserveError> {
        let mut slots = Vec::new();
        let count = 1usize.checked_shl(bits).unwrap_or(usize::MAX);
        slots.try_reserve_exact(count)?;
        slots.resize(count, None);
        Ok(Table {
            slots: slots.into_boxed_slice(),
            used: 0,
        })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.slots.fill(None);
        self.used = 0;
    }

    /// The places where `key` may be, in the order in which they are looked at.
    #[inline]
    fn places(&self, key: NonZeroU64) -> impl Iterator<Item = usize> + use<> {
        let (count, start) = (self.slots.len(), hash(key) as usize);
        (0..count).map(move |step| start.wrapping_add(step) & (count - 1))
    }

    /// Sets the value of `key`; the value that it had.
    ///
    /// # Errors
    /// [`Full`] if there is no room for one more key.
    #[inline]
    pub fn insert(&mut self, key: NonZeroU64, value: u64) -> Result<Option<u64>, Full> {
        for place in self.places(key) {
            match &mut self.slots[place] {
                Some(entry) if entry.key == key => {
                    return Ok(Some(core::mem::replace(&mut entry.value, value)));
                }
                Some(_) => {}
                empty => {
                    *empty = Some(Entry { key, value });
                    self.used += 1;
                    return Ok(None);
                }
            }
        }
        Err(Full)
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: NonZeroU64) -> Option<u64> {
        for place in self.places(key) {
            match &self.slots[place] {
                Some(entry) if entry.key == key => return Some(entry.value),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).expect("not zero")
    }

    #[test]
    fn an_entry_or_none_takes_sixteen_bytes() {
        assert_eq!(size_of::<Option<Entry>>(), 16);
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // The published value for the eight bytes "foobar\0\0" in little-endian order is the hash
        // of "foobar" with two more rounds of the zero byte.
        let foobar = 0x8594_4171_f739_67e8u64;
        let prime = 0x100_0000_01b3u64;
        let expected = foobar.wrapping_mul(prime).wrapping_mul(prime);
        assert_eq!(hash(key(u64::from_le_bytes(*b"foobar\0\0"))), expected);
    }

    #[test]
    fn what_was_inserted_is_found_and_nothing_else() {
        let mut table = Table::new(8).expect("memory");
        for number in 1..=192 {
            assert_eq!(table.insert(key(number * 7), number), Ok(None));
        }
        assert_eq!(table.len(), 192);
        assert!((1..=192).all(|number| table.get(key(number * 7)) == Some(number)));
        assert!((1..=192).all(|number| table.get(key(number * 7 + 1)).is_none()));
        assert_eq!(table.insert(key(7), 0), Ok(Some(1)));
        table.clear();
        assert!(table.is_empty() && table.get(key(7)).is_none());
    }

    #[test]
    fn a_full_table_takes_no_more_keys() {
        let mut table = Table::new(2).expect("memory");
        assert!((1..=4).all(|number| table.insert(key(number), 0) == Ok(None)));
        assert_eq!(table.insert(key(5), 0), Err(Full));
        assert_eq!(table.insert(key(4), 9), Ok(Some(0)));
        assert_eq!((table.get(key(4)), table.get(key(5))), (Some(9), None));
    }
}
