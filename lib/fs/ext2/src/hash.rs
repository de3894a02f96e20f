//! Hashes of names, by which directories are indexed on disk (Linux kernel documentation, "ext4
//! Data Structures and Algorithms", "Hash Tree Directories").
//!
//! The superblock chooses: which of three functions new indexes use, a seed that differs from one
//! file system to the next, and whether bytes of names are signed numbers, as they were on the
//! machine that made it.

/// Superblock flag: bytes of names are unsigned.
const UNSIGNED: u32 = 2;
/// A hash that no name has: it would say that the directory ends.
const END: u32 = 0xFFFF_FFFE;

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The first one.
    Legacy,
    /// Three rounds of MD4 with half of its input.
    HalfMd4,
    /// Sixteen rounds of the Tiny Encryption Algorithm.
    Tea,
}

impl Version {
    /// The function of number `byte`, if it is known.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Version::Legacy),
            1 => Some(Version::HalfMd4),
            2 => Some(Version::Tea),
            _ => None,
        }
    }

    /// Its number.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Version::Legacy => 0,
            Version::HalfMd4 => 1,
            Version::Tea => 2,
        }
    }
}

/// What the superblock says of hashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashing {
    /// The function of new indexes.
    pub(crate) version: Version,
    seed: [u32; 4],
    unsigned: bool,
}

impl Hashing {
    /// From the fields of the superblock; none if the function is not known.
    pub(crate) fn new(version: u8, seed: [u32; 4], flags: u32) -> Option<Self> {
        let standard = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
        Some(Hashing {
            version: Version::from_byte(version)?,
            seed: if seed == [0; 4] { standard } else { seed },
            unsigned: flags & UNSIGNED != 0,
        })
    }

    /// The hash of `name`: an even number.
    pub(crate) fn hash(&self, version: Version, name: &[u8]) -> u32 {
        let hash = match version {
            Version::Legacy => self.legacy(name),
            Version::HalfMd4 => {
                let mix = |state, piece: &[u8]| half_md4(state, self.words(piece));
                rests(name, 32).fold(self.seed, mix)[1]
            }
            Version::Tea => {
                let mix = |state, piece: &[u8]| tea(state, self.words(piece));
                rests(name, 16).fold(self.seed, mix)[0]
            }
        };
        match hash & !1 {
            END => END - 2,
            hash => hash,
        }
    }

    /// A byte of a name as a number of 32 bits.
    fn widen(&self, byte: u8) -> u32 {
        match self.unsigned {
            true => byte.into(),
            false => i32::from(byte as i8) as u32,
        }
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut now, mut before) = (0x12A3_FE2D_u32, 0x37AB_E8F9_u32);
        for byte in name {
            let product = self.widen(*byte).wrapping_mul(7_152_373);
            let mut next = before.wrapping_add(now ^ product);
            if next & 0x8000_0000 != 0 {
                next = next.wrapping_sub(0x7FFF_FFFF);
            }
            (now, before) = (next, now);
        }
        now << 1
    }

    /// The first bytes of what is left of a name, `N` words of four; how many bytes are left stands
    /// where there are none.
    fn words<const N: usize>(&self, rest: &[u8]) -> [u32; N] {
        let length = rest.len() as u32 & 0xFF;
        let pad = length * 0x0101_0101;
        let mut words = [pad; N];
        for (word, piece) in words.iter_mut().zip(rest.chunks(4)) {
            let add = |word: u32, byte: &u8| self.widen(*byte).wrapping_add(word << 8);
            *word = piece.iter().fold(pad, add);
        }
        words
    }
}

/// What is left of a name at every `step` bytes.
fn rests(name: &[u8], step: usize) -> impl Iterator<Item = &[u8]> {
    (0..name.len()).step_by(step).map(|at| &name[at..])
}

/// One piece of a name, eight words, mixed into the state.
fn half_md4(state: [u32; 4], input: [u32; 8]) -> [u32; 4] {
    type Mix = fn(u32, u32, u32) -> u32;
    let choose: Mix = |x, y, z| z ^ (x & (y ^ z));
    let majority: Mix = |x, y, z| (x & y).wrapping_add((x ^ y) & z);
    let parity: Mix = |x, y, z| x ^ y ^ z;
    // The order of the input's words, what is added, and by how much is rotated, in each round.
    let rounds: [(Mix, u32, [usize; 8], [u32; 4]); 3] = [
        (choose, 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (
            majority,
            0x5A82_7999,
            [1, 3, 5, 7, 0, 2, 4, 6],
            [3, 5, 9, 13],
        ),
        (
            parity,
            0x6ED9_EBA1,
            [3, 7, 2, 6, 1, 5, 0, 4],
            [3, 9, 11, 15],
        ),
    ];
    let [mut a, mut b, mut c, mut d] = state;
    for (mix, constant, order, shifts) in rounds {
        for (n, word) in order.into_iter().enumerate() {
            let sum = a
                .wrapping_add(mix(b, c, d))
                .wrapping_add(input[word])
                .wrapping_add(constant);
            (a, b, c, d) = (d, sum.rotate_left(shifts[n % 4]), b, c);
        }
    }
    let mixed = [a, b, c, d];
    core::array::from_fn(|n| state[n].wrapping_add(mixed[n]))
}

/// One piece of a name, four words, mixed into the first half of the state.
fn tea(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let half = |from: u32, sum: u32, low: u32, high: u32| {
        (from << 4).wrapping_add(low) ^ from.wrapping_add(sum) ^ (from >> 5).wrapping_add(high)
    };
    let ([mut x, mut y, ..], mut sum) = (state, 0_u32);
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9E37_79B9);
        x = x.wrapping_add(half(y, sum, key[0], key[1]));
        y = y.wrapping_add(half(x, sum, key[2], key[3]));
    }
    [
        state[0].wrapping_add(x),
        state[1].wrapping_add(y),
        state[2],
        state[3],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As debugfs 1.47.0 says with `dx_hash`, with and without a seed.
    #[test]
    fn hashes_are_those_of_the_host() {
        let seed = [0x0302_0100, 0x0706_0504, 0x0B0A_0908, 0x0F0E_0D0C];
        let seeded = Hashing::new(1, seed, 1).expect("known");
        let plain = Hashing::new(1, [0; 4], 1).expect("known");
        let long = b"a name of more than thirty-two bytes, so that there are pieces";
        for (hashing, version, name, hash) in [
            (&seeded, Version::Legacy, &b"hello"[..], 0x3225_2546),
            (&seeded, Version::HalfMd4, b"hello", 0xAF3D_0524),
            (&seeded, Version::Tea, b"hello", 0xF73B_8F7C),
            (&plain, Version::Legacy, long, LONG[0]),
            (&plain, Version::HalfMd4, long, LONG[1]),
            (&plain, Version::Tea, long, LONG[2]),
        ] {
            assert_eq!(hashing.hash(version, name), hash, "{version:?} {name:?}");
        }
    }

    const LONG: [u32; 3] = [0x54B6_4D92, 0x8B01_B204, 0x0087_B352];

    #[test]
    fn the_sign_of_bytes_matters_to_names_beyond_ascii_only() {
        let signed = Hashing::new(1, [1; 4], 1).expect("known");
        let unsigned = Hashing::new(1, [1; 4], 2).expect("known");
        for version in [Version::Legacy, Version::HalfMd4, Version::Tea] {
            let hashes = |name| (signed.hash(version, name), unsigned.hash(version, name));
            let (one, other) = hashes(b"ascii");
            assert_eq!(one, other);
            let (one, other) = hashes("Grüße".as_bytes());
            assert_ne!(one, other);
        }
    }

    #[test]
    fn unknown_functions_are_refused_and_known_have_their_number() {
        assert!(Hashing::new(6, [0; 4], 0).is_none());
        for byte in 0..3 {
            assert_eq!(Version::from_byte(byte).map(Version::byte), Some(byte));
        }
    }
}
