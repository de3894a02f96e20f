//! SHA-256 (FIPS 180-4; the section numbers below are its).

use alloc::string::String;
use core::fmt::Write;

/// The cube roots of the first 64 primes, section 4.2.2.
const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The initial hash value, section 5.3.3.
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// A digest being computed over bytes that come in pieces.
#[derive(Clone)]
pub struct Sha256 {
    state: [u32; 8],
    block: [u8; 64],
    used: usize,
    length: u64,
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl Sha256 {
    /// The digest of nothing yet.
    pub fn new() -> Self {
        Sha256 {
            state: START,
            block: [0; 64],
            used: 0,
            length: 0,
        }
    }

    /// Goes on over a further piece.
    pub fn update(&mut self, mut piece: &[u8]) {
        self.length = self.length.wrapping_add(piece.len() as u64);
        if self.used > 0 {
            let taken = piece.len().min(64 - self.used);
            self.block[self.used..self.used + taken].copy_from_slice(&piece[..taken]);
            self.used += taken;
            piece = &piece[taken..];
            if self.used < 64 {
                return;
            }
            compress(&mut self.state, &self.block);
            self.used = 0;
        }
        let (blocks, rest) = piece.as_chunks::<64>();
        for block in blocks {
            compress(&mut self.state, block);
        }
        self.block[..rest.len()].copy_from_slice(rest);
        self.used = rest.len();
    }

    /// The digest of all pieces.
    pub fn finish(mut self) -> [u8; 32] {
        let bits = self.length.wrapping_mul(8);
        // Section 5.1.1: a one bit, zeros, and the length in the last eight bytes of a block.
        self.update(&[0x80]);
        let zeros = (64 + 56 - self.used) % 64;
        self.update(&[0; 64][..zeros]);
        self.update(&bits.to_be_bytes());
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

/// Works one block into the state, section 6.2.2. The schedule is kept as a ring of 16 words.
fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut w = [0_u32; 16];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for t in 0..64 {
        if t >= 16 {
            let (w2, w15) = (w[(t + 14) & 15], w[(t + 1) & 15]);
            let small0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
            let small1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
            let sum = small1.wrapping_add(w[(t + 9) & 15]).wrapping_add(small0);
            w[t & 15] = w[t & 15].wrapping_add(sum);
        }
        let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = g ^ (e & (f ^ g));
        let t1 = h
            .wrapping_add(big1)
            .wrapping_add(choice)
            .wrapping_add(K[t])
            .wrapping_add(w[t & 15]);
        let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) | (c & (a | b));
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(big0).wrapping_add(majority));
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(new);
    }
}

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A line as `sha256sum` prints it. A name with a backslash or a line break in it is escaped, and
/// the line then starts with a backslash.
pub fn sum_line(digest: &[u8; 32], name: &[u8]) -> alloc::vec::Vec<u8> {
    let special = name
        .iter()
        .any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
    let mut line = alloc::vec::Vec::new();
    line.extend(special.then_some(b'\\'));
    line.extend_from_slice(hexadecimal(digest).as_bytes());
    line.extend_from_slice(b"  ");
    for &byte in name {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            _ => line.push(byte),
        }
    }
    line.push(b'\n');
    line
}

/// Takes a line that [`sum_line`] could have made apart: digest in hexadecimal, name.
pub fn parse_sum_line(line: &[u8]) -> Option<(&[u8], alloc::vec::Vec<u8>)> {
    let (escaped, line) = match line {
        [b'\\', rest @ ..] => (true, rest),
        _ => (false, line),
    };
    let (digest, rest) = line.split_at_checked(64)?;
    let name = rest.strip_prefix(b"  ").or(rest.strip_prefix(b" *"))?;
    if !digest.iter().all(u8::is_ascii_hexdigit) || name.is_empty() {
        return None;
    }
    let mut plain = alloc::vec::Vec::new();
    let mut bytes = name.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' if escaped => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                other => other,
            },
            other => other,
        });
    }
    Some((digest, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(pieces: &[&[u8]]) -> String {
        let mut sum = Sha256::new();
        pieces.iter().for_each(|piece| sum.update(piece));
        hexadecimal(&sum.finish())
    }

    #[test]
    fn known_answers() {
        assert_eq!(
            digest(&[]),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            digest(&[b"abc"]),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(
            digest(&[long]),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        let million = alloc::vec![b'a'; 1_000_000];
        assert_eq!(
            digest(&[&million]),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }

    #[test]
    fn pieces_of_any_length_give_the_same() {
        let text: alloc::vec::Vec<u8> = (0..300_u32).map(|n| n as u8).collect();
        for len in [1, 3, 55, 56, 63, 64, 65, 127] {
            let pieces: alloc::vec::Vec<&[u8]> = text.chunks(len).collect();
            assert_eq!(digest(&pieces), digest(&[&text]), "{len}");
        }
    }

    #[test]
    fn lines() {
        let line = sum_line(&[0xab; 32], b"a\\b\nc");
        assert!(line.starts_with(b"\\abab") && line.ends_with(b"  a\\\\b\\nc\n"));
        let (digest, name) = parse_sum_line(&line[..line.len() - 1]).unwrap();
        assert_eq!((digest.len(), name.as_slice()), (64, &b"a\\b\nc"[..]));
        assert!(sum_line(&[0; 32], b"x").ends_with(b"00  x\n"));
    }

    #[test]
    fn lines_that_are_none() {
        let good = sum_line(&[0xab; 32], b"name");
        for len in 0..67 {
            assert_eq!(parse_sum_line(&good[..len]), None, "{len}");
        }
        assert_eq!(parse_sum_line(&[b'z'; 80]), None);
    }
}
