//! Counting lines, words and bytes, as `wc` does.

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Line breaks.
    pub lines: u64,
    /// Runs of bytes without white space, with something printable in them.
    pub words: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counts over text that comes in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    counts: Counts,
    in_word: bool,
}

impl Counter {
    /// Counts a further piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.add_lines(piece);
        for &byte in piece {
            match byte {
                b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' => self.in_word = false,
                0x21..=0x7e | 0x80.. if !self.in_word => {
                    self.in_word = true;
                    self.counts.words += 1;
                }
                _ => {}
            }
        }
    }

    /// Counts a further piece without looking for words.
    pub fn add_lines(&mut self, piece: &[u8]) {
        self.counts.bytes += piece.len() as u64;
        self.counts.lines += piece
            .iter()
            .map(|&byte| u64::from(byte == b'\n'))
            .sum::<u64>();
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.lines += other.lines;
        self.words += other.words;
        self.bytes += other.bytes;
    }
}

/// How wide `wc` prints its numbers: wide enough for the `total` length of all regular files, and
/// for 7 digits if there is an input whose length is not known in advance.
pub fn width(total: u64, unknown_lengths: bool) -> usize {
    let digits = total.checked_ilog10().map_or(1, |log| log as usize + 1);
    if unknown_lengths {
        digits.max(7)
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pieces: &[&str]) -> (u64, u64, u64) {
        let mut counter = Counter::default();
        pieces
            .iter()
            .for_each(|piece| counter.add(piece.as_bytes()));
        let counts = counter.counts();
        (counts.lines, counts.words, counts.bytes)
    }

    #[test]
    fn counts_over_pieces() {
        assert_eq!(count(&["one two\nthree\n"]), (2, 3, 14));
        assert_eq!(count(&["one t", "wo\nth", "ree"]), (1, 3, 13));
        assert_eq!(count(&["wörter\u{b} \t x"]), (0, 2, 12));
    }

    #[test]
    fn nothing_and_only_blanks() {
        assert_eq!(count(&[]), (0, 0, 0));
        assert_eq!(count(&[" \n\t", "\n"]), (2, 0, 4));
        assert_eq!(count(&["\0\u{1}"]), (0, 0, 2));
    }

    #[test]
    fn widths() {
        assert_eq!(
            (width(0, false), width(9, false), width(10, false)),
            (1, 1, 2)
        );
        assert_eq!((width(5, true), width(123_456_789, true)), (7, 9));
    }
}
