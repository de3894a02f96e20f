//! Bits in a bitmap block: bit `n` is bit `n % 8` of byte `n / 8`; set means used.

use core::ops::Range;

/// Whether bit `bit` is set. Panics if it is outside.
pub(crate) fn is_set(map: &[u8], bit: u32) -> bool {
    map[bit as usize / 8] & (1 << (bit % 8)) != 0
}

/// Sets `count` bits from `bit` on. Panics if they are not all inside.
pub(crate) fn set(map: &mut [u8], bit: u32, count: u32) {
    (bit..bit + count).for_each(|bit| map[bit as usize / 8] |= 1 << (bit % 8));
}

/// Clears `count` bits from `bit` on. Panics if they are not all inside.
pub(crate) fn clear(map: &mut [u8], bit: u32, count: u32) {
    (bit..bit + count).for_each(|bit| map[bit as usize / 8] &= !(1 << (bit % 8)));
}

/// Whether all of `count` bits from `bit` on are set. Panics if they are not all inside.
pub(crate) fn all_set(map: &[u8], bit: u32, count: u32) -> bool {
    (bit..bit + count).all(|bit| is_set(map, bit))
}

/// The bytes in which `count` bits from `bit` on are, one at least, and the first of them there.
pub(crate) fn part(bit: u32, count: u32) -> (Range<usize>, u32) {
    let (first, last) = (bit / 8, (bit + count - 1) / 8);
    (first as usize..last as usize + 1, bit % 8)
}

/// The first clear bit in `from..to`.
pub(crate) fn first_clear(map: &[u8], from: u32, to: u32) -> Option<u32> {
    let mut bit = from;
    while bit < to {
        if bit.is_multiple_of(8) && map[bit as usize / 8] == 0xFF {
            bit += 8;
        } else if is_set(map, bit) {
            bit += 1;
        } else {
            return Some(bit);
        }
    }
    None
}

/// The first bit in `from..to` that is clear in all of `maps`, which are equally long.
pub(crate) fn first_clear_in_all(maps: [&[u8]; 3], from: u32, to: u32) -> Option<u32> {
    // Most bits are set, and this is done for every file that is made: 64 at a time.
    let words = maps.map(|map| map.as_chunks::<8>().0);
    let whole = words[0].len() as u32 * 64;
    let mut bit = from;
    while bit < to.min(whole) {
        let at = bit as usize / 64;
        let all = words.map(|words| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)));
        let used = (all[0] | all[1] | all[2]) | ((1 << (bit % 64)) - 1);
        if used != u64::MAX {
            return Some(at as u32 * 64 + used.trailing_ones()).filter(|bit| *bit < to);
        }
        bit = (at as u32 + 1) * 64;
    }
    let is_clear = |bit: &u32| {
        let is_set = |map: &&[u8]| (*bit as usize) < map.len() * 8 && is_set(map, *bit);
        !maps.iter().any(is_set)
    };
    (bit..to).find(is_clear)
}

/// The first of eight clear bits that share a byte, in `from..to`.
pub(crate) fn first_clear_byte(map: &[u8], from: u32, to: u32) -> Option<u32> {
    let bytes = from.div_ceil(8)..to / 8;
    bytes
        .into_iter()
        .find(|byte| map[*byte as usize] == 0)
        .map(|byte| byte * 8)
}

/// How many bits from `bit` on are clear, at most `most` and not beyond `to`.
pub(crate) fn clear_run(map: &[u8], bit: u32, most: u32, to: u32) -> u32 {
    let end = to.min(bit.saturating_add(most));
    (bit..end).take_while(|bit| !is_set(map, *bit)).count() as u32
}

/// How many of the first `bits` bits are clear.
pub(crate) fn count_clear(map: &[u8], bits: u32) -> u32 {
    // 64 at a time: this is done for every group that is used.
    let whole = bits as usize / 64;
    let words = map.as_chunks::<8>().0[..whole].iter();
    let clear: u32 = words
        .map(|word| u64::from_le_bytes(*word).count_zeros())
        .sum();
    let rest = whole as u32 * 64..bits;
    clear + rest.filter(|bit| !is_set(map, *bit)).count() as u32
}

/// Sets in `map` what is set in `other`.
pub(crate) fn merge(map: &mut [u8], other: &[u8]) {
    // Eight bytes at a time: this is done for every change that frees something.
    let (words, rest) = map.as_chunks_mut::<8>();
    let (more_words, more_rest) = other.as_chunks::<8>();
    for (word, more) in words.iter_mut().zip(more_words) {
        *word = (u64::from_ne_bytes(*word) | u64::from_ne_bytes(*more)).to_ne_bytes();
    }
    rest.iter_mut()
        .zip(more_rest)
        .for_each(|(byte, more)| *byte |= more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clear_in_all_is_found_as_bit_by_bit() {
        let mut random = 7u64;
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as u32
        };
        for length in [3, 16, 29] {
            for _ in 0..500 {
                let mut maps = [[0xFFu8; 29]; 3];
                for _ in 0..next() % 4 {
                    let bit = next() % (length as u32 * 8);
                    (0..3).for_each(|map| clear(&mut maps[map], bit, 1));
                }
                clear(
                    &mut maps[next() as usize % 3],
                    next() % (length as u32 * 8),
                    1,
                );
                let (from, to) = (next() % 40, next() % (length as u32 * 8 + 1));
                let slices = [0, 1, 2].map(|map| &maps[map][..length]);
                let wanted = (from..to).find(|bit| !slices.iter().any(|map| is_set(map, *bit)));
                assert_eq!(first_clear_in_all(slices, from, to), wanted);
                // One that is missing has nothing set.
                let one = [slices[0], &[], &[]];
                let wanted = first_clear(slices[0], from, to);
                assert_eq!(first_clear_in_all(one, from, to), wanted);
            }
        }
    }

    #[test]
    fn searches_skip_used_bits() {
        let mut map = [0u8; 4];
        set(&mut map, 0, 19);
        assert_eq!(first_clear(&map, 0, 32), Some(19));
        assert_eq!(first_clear_byte(&map, 0, 32), Some(24));
        assert_eq!(clear_run(&map, 19, 100, 30), 11);
        assert_eq!(count_clear(&map, 25), 6);
        let long: [u8; 29] = core::array::from_fn(|n| (37 * n) as u8);
        for bits in 0..=29 * 8 {
            let clear = (0..bits).filter(|bit| !is_set(&long, *bit)).count();
            assert_eq!(count_clear(&long, bits), clear as u32);
        }
        clear(&mut map, 3, 2);
        assert_eq!(first_clear(&map, 0, 32), Some(3));
        assert_eq!(clear_run(&map, 3, 100, 32), 2);
        assert!(all_set(&map, 5, 14) && !all_set(&map, 4, 2));
    }

    #[test]
    fn a_merge_sets_what_either_has() {
        let mut map: [u8; 19] = core::array::from_fn(|n| n as u8);
        let other: [u8; 19] = core::array::from_fn(|n| 3 * n as u8);
        merge(&mut map, &other);
        let expected = core::array::from_fn(|n| n as u8 | (3 * n as u8));
        assert_eq!(map, expected);
    }

    #[test]
    fn searches_end_at_the_limit() {
        let map = [0xFFu8, 0xFF, 0x00];
        assert_eq!(first_clear(&map, 0, 16), None);
        assert_eq!(first_clear_byte(&map, 0, 23), None);
        assert_eq!(first_clear(&map, 20, 20), None);
    }
}
