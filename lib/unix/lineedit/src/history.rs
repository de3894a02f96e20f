//! The lines that were typed before, and how they stand in a file: one in each line.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Lines in the order in which they were typed, up to a number.
pub struct History {
    entries: VecDeque<Vec<u8>>,
    limit: usize,
}

impl History {
    /// An empty history that keeps the last `limit` lines.
    pub fn new(limit: usize) -> Self {
        History {
            entries: VecDeque::new(),
            limit,
        }
    }

    /// Adds a line, unless it is blank, or the same as the one before; whether it was added. Line
    /// breaks in it become blanks.
    pub fn add(&mut self, line: &[u8]) -> bool {
        let mut line = line.trim_ascii_end().to_vec();
        for byte in &mut line {
            if *byte < 0x20 {
                *byte = b' ';
            }
        }
        if line.trim_ascii().is_empty() || self.entries.back() == Some(&line) {
            return false;
        }
        self.entries.push_back(line);
        while self.entries.len() > self.limit {
            self.entries.pop_front();
        }
        true
    }

    /// Adds the lines of a file.
    pub fn load(&mut self, text: &[u8]) {
        for line in text.split(|&byte| byte == b'\n') {
            self.add(line);
        }
    }

    /// All entries as they stand in a file.
    pub fn to_text(&self) -> Vec<u8> {
        let lines = self.entries.iter();
        lines
            .flat_map(|entry| [entry.as_slice(), b"\n"].concat())
            .collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this number, the oldest being 0.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.entries.get(at).map(Vec::as_slice)
    }

    /// The last entry before number `end` in which `what` stands.
    pub fn find_before(&self, end: usize, what: &[u8]) -> Option<usize> {
        let has = |at: &usize| {
            let entry = &self.entries[*at];
            what.is_empty() || entry.windows(what.len()).any(|window| window == what)
        };
        (0..end.min(self.entries.len())).rev().find(has)
    }
}
