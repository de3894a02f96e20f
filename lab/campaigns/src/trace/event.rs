//! The events as the kernel writes them.

use abi::events::EVENT_BYTES;

/// One event; see `abi::events`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since boot.
    pub time: u64,
    /// What happened.
    pub kind: u32,
    /// On which processor.
    pub processor: usize,
    /// Something small about it.
    pub small: u32,
    /// The running thread, by the page in which its stack ends.
    pub stack: u32,
    /// The domain whose code runs; 0: the kernel.
    pub domain: u32,
    /// Another domain.
    pub other: u32,
    /// What the kind says.
    pub value: u64,
    /// Likewise.
    pub bytes: [u8; BYTES],
}

/// Bytes of text in an event.
const BYTES: usize = 32;

impl Event {
    /// The event in `bytes`, and how often the ring was full before it, modulo 256; `None` where
    /// nothing was ever written.
    pub(super) fn decode(bytes: &[u8; EVENT_BYTES]) -> Option<(Self, u8)> {
        let word = |at: usize| {
            let bytes = bytes[at * 8..at * 8 + 8].try_into();
            u64::from_le_bytes(bytes.expect("eight bytes"))
        };
        let (head, time, domains, value) = (word(0), word(1), word(2), word(3));
        let event = Event {
            time,
            kind: (head & 0xf) as u32,
            processor: (head >> 4 & 0xf) as usize,
            small: (head >> 16) as u32 & 0xffff,
            stack: (head >> 32) as u32,
            domain: domains as u32,
            other: (domains >> 32) as u32,
            value,
            bytes: bytes[32..].try_into().expect("so many are left"),
        };
        (head != 0).then_some((event, (head >> 8) as u8))
    }

    /// The bytes as a name.
    pub fn text(&self) -> String {
        let text = self.bytes.split(|byte| *byte == 0).next();
        String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
    }

    /// The bytes as numbers.
    pub fn numbers(&self) -> Vec<u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }
}

/// Events that were overwritten before they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// After so many events that were read.
    pub after: usize,
    /// How many are missing.
    pub lost: u64,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// In the order in which they were begun.
    pub events: Vec<Event>,
    /// What is missing of them.
    pub gaps: Vec<Gap>,
}

impl Recording {
    /// How many events are missing.
    pub fn lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.lost).sum()
    }
}
