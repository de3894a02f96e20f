//! The block function of ChaCha20, RFC 8439, section 2.3.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;
/// Words of a key.
pub(crate) const KEY_WORDS: usize = 8;

/// A key, as words in little-endian order.
pub(crate) type Key = [u32; KEY_WORDS];

/// "expand 32-byte k", section 2.3.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Two rounds are done ten times, section 2.3.
const DOUBLE_ROUNDS: usize = 10;

/// Section 2.1.
#[inline(always)]
fn quarter_round(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (x, y, z, bits) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        state[x] = state[x].wrapping_add(state[y]);
        state[z] = (state[z] ^ state[x]).rotate_left(bits);
    }
}

/// The words of block number `counter` under `key` and `nonce`.
pub(crate) fn block(key: &Key, counter: u32, nonce: [u32; 3]) -> [u32; 16] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&CONSTANTS);
    start[4..12].copy_from_slice(key);
    start[12] = counter;
    start[13..].copy_from_slice(&nonce);
    let mut state = start;
    for _ in 0..DOUBLE_ROUNDS {
        for column in 0..4 {
            quarter_round(&mut state, [column, column + 4, column + 8, column + 12]);
        }
        for at in 0..4 {
            let (b, c, d) = ((at + 1) % 4, (at + 2) % 4, (at + 3) % 4);
            quarter_round(&mut state, [at, 4 + b, 8 + c, 12 + d]);
        }
    }
    for (word, first) in state.iter_mut().zip(start) {
        *word = word.wrapping_add(first);
    }
    state
}

/// A block as bytes, section 2.3: each word in little-endian order.
pub(crate) fn bytes(words: &[u32; 16]) -> [u8; BLOCK] {
    let mut all = [0; BLOCK];
    for (place, word) in all.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key 00 01 02 ... 1f.
    fn counting_key() -> Key {
        core::array::from_fn(|at| {
            let at = 4 * at as u8;
            u32::from_le_bytes([at, at + 1, at + 2, at + 3])
        })
    }

    #[test]
    fn quarter_round_of_section_2_1_1() {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x1111_1111, 0x0102_0304, 0x9b8d_6f43, 0x0123_4567]);
        quarter_round(&mut state, [0, 1, 2, 3]);
        let expected = [0xea2a_92f4, 0xcb1c_f8ce, 0x4581_472e, 0x5881_c4bb];
        assert_eq!(state[..4], expected);
    }

    #[test]
    fn block_of_section_2_3_2() {
        let nonce = [0x0900_0000, 0x4a00_0000, 0];
        let made = bytes(&block(&counting_key(), 1, nonce));
        let expected = [
            0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20,
            0x71, 0xc4, 0xc7, 0xd1, 0xf4, 0xc7, 0x33, 0xc0, 0x68, 0x03, 0x04, 0x22, 0xaa, 0x9a,
            0xc3, 0xd4, 0x6c, 0x4e, 0xd2, 0x82, 0x64, 0x46, 0x07, 0x9f, 0xaa, 0x09, 0x14, 0xc2,
            0xd7, 0x05, 0xd9, 0x8b, 0x02, 0xa2, 0xb5, 0x12, 0x9c, 0xd1, 0xde, 0x16, 0x4e, 0xb9,
            0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e,
        ];
        assert_eq!(made, expected);
    }

    #[test]
    fn first_vector_of_appendix_a_1() {
        let made = bytes(&block(&[0; 8], 0, [0; 3]));
        let expected = [
            0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86,
            0xbd, 0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc,
            0x8b, 0x77, 0x0d, 0xc7,
        ];
        assert_eq!(made[..32], expected);
    }
}
