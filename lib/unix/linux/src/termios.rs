//! A terminal as Linux programs set it (`termios(3)`), on a line discipline that edits by the usual
//! keys whatever is set: it knows lines and raw bytes, and which keys are signals.

use crate::errno::{SIGINT, SIGQUIT, SIGTSTP};
use alloc::vec::Vec;
use tty::{Event, Tty};

/// Bytes of `struct termios` as system calls have it.
pub const BYTES: usize = 36;

/// Flags of input, output and the rest (`asm-generic/termbits.h`).
const ICRNL: u32 = 0x100;
const ONLCR: u32 = 0x4;
const OPOST: u32 = 0x1;
const ISIG: u32 = 0x1;
const ICANON: u32 = 0x2;
const ECHO: u32 = 0x8;
/// Places of keys in the settings.
const VINTR: usize = 0;
const VQUIT: usize = 1;
const VTIME: usize = 5;
const VMIN: usize = 6;
const VSUSP: usize = 10;
/// A tenth of a second, in nanoseconds.
const TENTH: u64 = 100_000_000;

/// `struct termios` as system calls have it: four words of flags, a byte, and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Of input, output, the line, and how lines are made.
    flags: [u32; 4],
    keys: [u8; 20],
}

impl Settings {
    /// A line that is edited and shown, and keys as everywhere.
    pub const USUAL: Self = Settings {
        flags: [
            ICRNL | 0x400,
            OPOST | ONLCR,
            0xbf,
            ISIG | ICANON | ECHO | 0x8a30,
        ],
        keys: [
            0, 3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0,
        ],
    };

    /// From the structure.
    pub fn new(bytes: &[u8; BYTES]) -> Self {
        let mut settings = Settings::USUAL;
        for (flag, word) in settings.flags.iter_mut().zip(bytes.as_chunks().0) {
            *flag = u32::from_le_bytes(*word);
        }
        settings.keys.copy_from_slice(&bytes[16..]);
        settings
    }

    /// The structure.
    pub fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (place, flag) in bytes.chunks_mut(4).zip(self.flags) {
            place.copy_from_slice(&flag.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.keys);
        bytes
    }

    fn has(&self, flag: u32) -> bool {
        self.flags[3] & flag != 0
    }

    /// The key at a place; what is first in `keys` is the byte before them.
    fn key(&self, place: usize) -> u8 {
        self.keys[place + 1]
    }

    /// The signal that a key is.
    fn signal(&self, byte: u8) -> Option<u32> {
        let keys = [(VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)];
        let found = keys.into_iter().find(|(place, _)| self.key(*place) == byte);
        found.filter(|_| byte != 0 && self.has(ISIG)).map(|it| it.1)
    }

    /// Whether a carriage return goes out in front of each line feed.
    pub fn adds_carriage_returns(&self) -> bool {
        self.flags[1] & (OPOST | ONLCR) == OPOST | ONLCR
    }

    /// How long a read waits for a first byte, in nanoseconds; `None`: until there is one.
    pub fn patience(&self) -> Option<u64> {
        match self.has(ICANON) || self.key(VMIN) > 0 {
            true => None,
            false => Some(u64::from(self.key(VTIME)) * TENTH),
        }
    }
}

/// The input side of a terminal.
pub struct Input {
    tty: Tty,
    settings: Settings,
}

impl Default for Input {
    fn default() -> Self {
        Self::new()
    }
}

impl Input {
    /// One with the usual settings.
    pub fn new() -> Self {
        Input {
            tty: Tty::new(true),
            settings: Settings::USUAL,
        }
    }

    /// How it is set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets it; `echo` gets what is to be shown. What was typed before counts as it did, and a line
    /// that was begun is gone on with.
    pub fn set(&mut self, settings: Settings, echo: &mut Vec<u8>) {
        self.settings = settings;
        self.tty.set_echo(settings.has(ECHO));
        // Keys among what was typed are signals no more.
        let _ = self.tty.set_raw(!settings.has(ICANON), echo);
    }

    /// Takes a byte; the signal that it is, and `echo` gets what is to be shown. As on Linux, what
    /// is typed ahead of all bounds is lost, but for signals: `None` outside then.
    pub fn feed(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Option<u32>> {
        if self.tty.is_full() && self.settings.signal(byte).is_none() {
            return None;
        }
        let byte = match byte {
            b'\r' if self.settings.flags[0] & ICRNL != 0 => b'\n',
            byte => byte,
        };
        let signal = self.settings.signal(byte);
        if self.tty.is_raw() {
            if signal.is_none() {
                self.tty.feed(byte, echo);
            }
            return Some(signal);
        }
        Some(match self.tty.feed(byte, echo) {
            Some(Event::Interrupt) => signal.filter(|it| *it == SIGINT),
            Some(Event::Suspend) => signal.filter(|it| *it == SIGTSTP),
            _ => signal.filter(|it| *it == SIGQUIT),
        })
    }

    /// Reads what there is: a line, or bytes; `None`: nothing yet.
    pub fn read(&mut self, to: &mut [u8]) -> Option<usize> {
        self.tty.read(to)
    }

    /// Whether there is something to read.
    pub fn has_input(&self) -> bool {
        self.tty.has_input()
    }

    /// Forgets what was typed and not read.
    pub fn clear(&mut self) {
        self.tty.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input: &mut Input, text: &[u8]) -> (Vec<u8>, Vec<u32>) {
        let (mut echo, mut signals) = (Vec::new(), Vec::new());
        for byte in text {
            signals.extend(input.feed(*byte, &mut echo).flatten());
        }
        (echo, signals)
    }

    fn read(input: &mut Input) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        let count = input.read(&mut bytes)?;
        Some(bytes[..count].to_vec())
    }

    /// The usual settings with some flags of the fourth word, and of the first, taken away.
    fn without(local: u32, input: u32) -> Settings {
        let mut settings = Settings::USUAL;
        settings.flags[3] &= !local;
        settings.flags[0] &= !input;
        settings
    }

    #[test]
    fn the_structure_is_what_was_set() {
        let bytes: [u8; BYTES] = core::array::from_fn(|at| at as u8);
        assert_eq!(Settings::new(&bytes).bytes(), bytes);
        assert_eq!(Settings::new(&Settings::USUAL.bytes()), Settings::USUAL);
        assert_eq!(Settings::USUAL.bytes()[17..20], [3, 28, 127]);
    }

    #[test]
    fn usual_lines_are_edited_and_keys_are_signals() {
        let mut input = Input::new();
        assert_eq!(typed(&mut input, b"on\x7fk\r").1, []);
        assert_eq!(read(&mut input), Some(b"ok\n".to_vec()));
        let signals = typed(&mut input, b"lost\x03more\x1a\x1c").1;
        assert_eq!(signals, [SIGINT, SIGTSTP, SIGQUIT]);
        assert_eq!(read(&mut input), None);
        assert_eq!(typed(&mut input, b"\x04").1, []);
        assert_eq!(read(&mut input), Some(Vec::new()));
    }

    #[test]
    fn raw_bytes_come_at_once_and_keys_only_if_they_are_set() {
        let (mut input, mut echo) = (Input::new(), Vec::new());
        input.set(without(ICANON | ECHO, 0), &mut echo);
        assert_eq!(
            typed(&mut input, b"a\x7f\r\x03"),
            (Vec::new(), [SIGINT].to_vec())
        );
        assert_eq!(read(&mut input), Some(b"a\x7f\n".to_vec()));
        input.set(without(ICANON | ECHO | ISIG, ICRNL), &mut echo);
        assert_eq!(typed(&mut input, b"\x03\r").1, []);
        assert_eq!(read(&mut input), Some(b"\x03\r".to_vec()));
        // A key of its own, and the one that is none.
        let mut settings = without(ICANON | ECHO, 0);
        settings.keys[1 + VINTR] = b'q';
        settings.keys[1 + VQUIT] = 0;
        input.set(settings, &mut echo);
        assert_eq!(typed(&mut input, b"\x03q\0\x1c").1, [SIGINT]);
        assert_eq!(read(&mut input), Some(b"\x03\0\x1c".to_vec()));
    }

    #[test]
    fn reads_wait_as_long_as_is_set() {
        assert_eq!(Settings::USUAL.patience(), None);
        let mut settings = without(ICANON, 0);
        assert_eq!(settings.patience(), None);
        settings.keys[1 + VMIN] = 0;
        settings.keys[1 + VTIME] = 3;
        assert_eq!(settings.patience(), Some(3 * TENTH));
        settings.flags[3] |= ICANON;
        assert_eq!(settings.patience(), None);
        assert!(settings.adds_carriage_returns());
        settings.flags[1] &= !OPOST;
        assert!(!settings.adds_carriage_returns());
    }

    /// Nobody reads: memory has a bound, and a signal gets through.
    #[test]
    fn what_is_typed_ahead_of_all_bounds_is_lost() {
        let (mut input, mut echo) = (Input::new(), Vec::new());
        input.set(without(ICANON | ECHO, 0), &mut echo);
        let lost = (0..1 << 20).find(|_| input.feed(b'x', &mut echo).is_none());
        assert!(lost.is_some());
        assert_eq!(input.feed(3, &mut echo), Some(Some(SIGINT)));
        input.clear();
        assert!(!input.has_input());
        assert_eq!(input.feed(b'x', &mut echo), Some(None));
        assert!(input.has_input());
    }
}
