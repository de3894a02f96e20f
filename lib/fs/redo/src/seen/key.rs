//! A name in words, so that it is hashed and compared by a few of them.

/// Words of a name that is remembered.
const WORDS: usize = 5;
/// Bytes of a name that is remembered.
pub(super) const LONGEST: usize = 8 * WORDS;

/// What a name is looked for by.
#[derive(Clone, Copy)]
pub(super) struct Key {
    directory: u64,
    length: u64,
    /// Its bytes, behind them zeros; of a name that is longer the first ones.
    words: [u64; WORDS],
}

impl Key {
    /// The key of `name` in a directory.
    #[inline]
    pub(super) fn new(directory: u64, name: &[u8]) -> Self {
        let (whole, rest) = name.as_chunks::<8>();
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(whole) {
            *word = u64::from_le_bytes(*bytes);
        }
        if let Some(word) = words.get_mut(whole.len()) {
            *word = padded(rest);
        }
        Key {
            directory,
            length: name.len() as u64,
            words,
        }
    }

    /// Whether it is ever remembered: not if it is long, and not if it is what leads to a directory
    /// itself or above it, which changes without a change of that name.
    pub(super) fn fits(&self) -> bool {
        const DOT: u64 = b'.' as u64;
        match (self.length, self.words[0]) {
            (1, DOT) => false,
            (2, first) => first != DOT << 8 | DOT,
            (length, _) => (1..=LONGEST as u64).contains(&length),
        }
    }

    /// Where it stands.
    pub(super) fn directory(&self) -> u64 {
        self.directory
    }

    /// Whether it is the same one, if neither is longer than [`LONGEST`].
    pub(super) fn is(&self, other: &Key) -> bool {
        let words = self.words.iter().zip(&other.words);
        (self.directory, self.length) == (other.directory, other.length)
            && words.fold(0, |differs, (own, other)| differs | (own ^ other)) == 0
    }

    /// Its hash.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let used = self.length.div_ceil(8) as usize;
        let words = self.words.iter().take(used);
        let hash = words.fold(mix(0, self.directory), |hash, word| mix(hash, *word));
        mix(hash, self.length)
    }
}

/// Fewer than eight bytes as a word, behind them zeros.
fn padded(bytes: &[u8]) -> u64 {
    // Two halves that overlap say the same where they do.
    let half = |at: usize| {
        let half = bytes.get(at..)?.first_chunk()?;
        Some(u64::from(u32::from_le_bytes(*half)) << (8 * at))
    };
    match (bytes.len(), half(0)) {
        (length, Some(low)) => low | half(length - 4).unwrap_or(0),
        (_, None) => {
            let all = bytes.iter().rev();
            all.fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    }
}

/// Mixes `word` into a hash.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}
