//! Completion: what could stand where the cursor is.

use alloc::vec::Vec;

/// The possible ends of a word.
pub struct Candidates {
    /// Where the word's last part (behind the last slash) begins in the line, in bytes.
    pub(crate) start: usize,
    /// What could stand there, sorted, each with what follows it if it is the only one: a blank, or
    /// a slash.
    names: Vec<(Vec<u8>, u8)>,
}

/// Characters that end a word.
const BREAKS: &[u8] = b" \t|&;<>()'\"`$=";

/// Where the word that ends at byte `at` begins, and whether it is a command: it stands at the
/// start of the line, or behind something that a command follows.
pub fn word_start(line: &[u8], at: usize) -> (usize, bool) {
    let before = &line[..at.min(line.len())];
    let mut start = before.len();
    while start > 0 {
        let escaped = start >= 2 && before[start - 2] == b'\\';
        if BREAKS.contains(&before[start - 1]) && !escaped {
            break;
        }
        start -= 1;
    }
    let front = before[..start].trim_ascii_end();
    let is_command = match front.last() {
        None => true,
        Some(last) => b"|&;(`".contains(last),
    };
    (start, is_command)
}

impl Candidates {
    /// Those of `names` that begin as `typed` does, which begins at byte `start` of the line. Each
    /// comes with the byte that follows it.
    pub fn new(start: usize, typed: &[u8], names: impl IntoIterator<Item = (Vec<u8>, u8)>) -> Self {
        let fitting = names
            .into_iter()
            .filter(|(name, _)| name.starts_with(typed));
        let mut names: Vec<(Vec<u8>, u8)> = fitting.collect();
        names.sort();
        names.dedup_by(|a, b| a.0 == b.0);
        Candidates { start, names }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What can be added to `typed` without a choice, as it is to be typed.
    pub(crate) fn addition(&self, typed: &[u8]) -> Vec<u8> {
        let Some(((first, end), rest)) = self.names.split_first() else {
            return Vec::new();
        };
        let mut common = first.len();
        for (name, _) in rest {
            let same = first.iter().zip(name).take_while(|(a, b)| a == b).count();
            common = common.min(same);
        }
        while first.get(common).is_some_and(|&byte| byte & 0xc0 == 0x80) {
            common -= 1;
        }
        let mut addition = escaped(first.get(typed.len()..common).unwrap_or_default());
        if rest.is_empty() {
            addition.push(*end);
        }
        addition
    }

    /// All of them in columns, read downwards.
    pub(crate) fn table(&self, columns: usize, out: &mut Vec<u8>) {
        let width = |name: &[u8]| alloc::string::String::from_utf8_lossy(name).chars().count();
        let shown = |(name, end): &(Vec<u8>, u8)| match end {
            b'/' => [name, &b"/"[..]].concat(),
            _ => name.clone(),
        };
        let names: Vec<Vec<u8>> = self.names.iter().map(shown).collect();
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0) + 2;
        let across = (columns / widest).max(1);
        let rows = names.len().div_ceil(across);
        for row in 0..rows {
            for (place, name) in names.iter().skip(row).step_by(rows).enumerate() {
                if place > 0 {
                    let before = &names[row + (place - 1) * rows];
                    out.extend(core::iter::repeat_n(b' ', widest - width(before)));
                }
                out.extend(
                    name.iter()
                        .map(|&byte| if byte < 0x20 { b'?' } else { byte }),
                );
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A name with backslashes in front of what is special to a shell.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for &byte in name {
        if BREAKS.contains(&byte) || b"\\*?[]#~!{}".contains(&byte) {
            text.push(b'\\');
        }
        text.push(byte);
    }
    text
}

/// A word as it was typed, without its backslashes.
pub fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bytes = word.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next()),
            _ => text.push(byte),
        }
    }
    text
}
