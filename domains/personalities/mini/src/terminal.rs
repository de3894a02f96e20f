//! The console as a terminal (`termios(3)`): lines that are edited, or bytes as they are typed;
//! keys that are signals for the group in the foreground.
//!
//! What a line is, is `lib/unix/tty`'s affair. A thread of this domain reads the keyboard; it alone
//! calls the console's `read`, so no program's thread waits in there.

use crate::errno::{EINTR, EIO, ENOMEM, ENOTTY, ESRCH, Error, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN};
use crate::files::ring;
use crate::memory;
use crate::signals::{Ears, bit};
use crate::system::System;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{thread, time};
use interfaces::{Console, Handle, RVec, RpcError, RpcResult};
use tty::{Event, Tty};

type Result<T> = core::result::Result<T, Error>;

/// Most bytes that are written to the console, or read from it, in one call.
const CHUNK: usize = 4096;
/// How long the keyboard waits for memory, in nanoseconds.
const SHORTAGE: u64 = 10_000_000;
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

/// `struct termios` as system calls have it: four words of flags, a byte, and keys.
#[derive(Clone, Copy)]
struct Settings {
    /// Of input, output, the line, and how lines are made.
    flags: [u32; 4],
    keys: [u8; 20],
}

impl Settings {
    /// A line that is edited and shown, and keys as everywhere.
    const USUAL: Self = Settings {
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
}

struct State {
    tty: Tty,
    settings: Settings,
    /// Rows and columns.
    size: [u16; 2],
    /// The group that reads, and that keys are signals for.
    foreground: u32,
    waiting: Vec<Arc<Ears>>,
    /// The console is gone: input is at its end.
    is_over: bool,
}

/// The terminal.
pub struct Terminal {
    console: Handle<dyn Console>,
    state: Mutex<State>,
}

impl Terminal {
    /// One at this console, of 24 lines.
    pub fn new(console: Handle<dyn Console>) -> Self {
        Terminal {
            console,
            state: Mutex::new(State {
                tty: Tty::new(true),
                settings: Settings::USUAL,
                size: [24, 80],
                foreground: 0,
                waiting: Vec::new(),
                is_over: false,
            }),
        }
    }

    /// Begins a session whose first process has this number.
    pub fn begin(&self, id: u32) {
        let mut state = self.state.lock();
        state.foreground = id;
        state.apply(Settings::USUAL, &mut Vec::new());
    }

    /// Has a thread read the keyboard, for as long as there is a console.
    ///
    /// # Errors
    /// There is no memory for a thread.
    pub fn attend(self: &Arc<Self>, system: &Arc<System>) -> RpcResult<()> {
        let (terminal, system) = (self.clone(), system.clone());
        thread::spawn("keyboard", move || {
            while let Some(bytes) = terminal.typed() {
                bytes.iter().for_each(|byte| terminal.take(&system, *byte));
            }
            let mut state = terminal.state.lock();
            state.is_over = true;
            let waiting = core::mem::take(&mut state.waiting);
            drop(state);
            ring(waiting);
        })
    }

    /// What is typed next; `None`: the console is gone. Where there is no memory, there may be some
    /// later.
    fn typed(&self) -> Option<RVec<u8>> {
        loop {
            let buffer = RVec::filled(0, CHUNK);
            match buffer.and_then(|buffer| self.console.read(buffer)) {
                Ok(bytes) => return Some(bytes),
                Err(RpcError::NoMemory) => time::sleep(SHORTAGE),
                Err(_) => return None,
            }
        }
    }

    /// Takes a key.
    fn take(&self, system: &System, byte: u8) {
        let mut echo = Vec::new();
        let mut state = self.state.lock();
        // As on Linux, what is typed ahead of all bounds is lost.
        if state.tty.is_full() && state.settings.signal(byte).is_none() {
            return;
        }
        let signal = state.feed(byte, &mut echo);
        let foreground = state.foreground;
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        self.show(&echo);
        if let Some(signal) = signal {
            system.signal_group(foreground, signal);
        }
        ring(waiting);
    }

    fn show(&self, text: &[u8]) {
        if let Ok(text) = RVec::from_slice(text)
            && !text.is_empty()
        {
            // Who reads meets a console that is gone.
            let _ = self.console.write(&text);
        }
    }

    /// Writes, with a carriage return in front of each line feed if that is set.
    pub fn write(&self, text: &[u8]) -> Result<usize> {
        let output = self.state.lock().settings.flags[1];
        let mut rest = text;
        while !rest.is_empty() {
            let (taken, chunk) = match output & (OPOST | ONLCR) == OPOST | ONLCR {
                true => {
                    let room = rest.len().saturating_mul(2).min(CHUNK);
                    let mut chunk = RVec::filled(0, room).map_err(|_| ENOMEM)?;
                    let (taken, filled) = tty::with_carriage_returns(rest, &mut chunk);
                    (taken, chunk.truncated(filled))
                }
                false => {
                    let taken = rest.len().min(CHUNK);
                    let chunk = RVec::from_slice(&rest[..taken]).map_err(|_| ENOMEM)?;
                    (taken, chunk)
                }
            };
            self.console.write(&chunk).map_err(|_| EIO)?;
            rest = &rest[taken..];
        }
        Ok(text.len())
    }

    /// Reads a line, or what was typed. Who is not in the foreground stops.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        self.expect_foreground(task)?;
        let settings = self.state.lock().settings;
        let deadline = match settings.has(ICANON) || settings.key(VMIN) > 0 {
            true => None,
            false => {
                let tenths = u64::from(settings.key(VTIME));
                Some(time::now() + tenths * 100_000_000)
            }
        };
        let read = task.until_timed(deadline, || {
            let mut state = self.state.lock();
            match state.tty.read(to) {
                None if state.is_over => Some(Ok(0)),
                None => state.watch(&task.ears).err().map(Err),
                Some(count) => Some(Ok(count)),
            }
        })?;
        read.unwrap_or(Ok(0))
    }

    fn expect_foreground(&self, task: &Task) -> Result<()> {
        let own = task.group_of(0)?;
        if own == self.state.lock().foreground {
            return Ok(());
        }
        let ignored = task.process.signals.ignored() | task.ears.mask();
        if ignored & bit(SIGTTIN) != 0 {
            return Err(EIO);
        }
        task.process.system.signal_group(own, SIGTTIN);
        Err(EINTR)
    }

    /// Whether there is something to read (1), and that one can write (4); if not, `ears` hear of a
    /// change.
    pub fn ready(&self, ears: &Arc<Ears>) -> u64 {
        let mut state = self.state.lock();
        let is_there = state.tty.has_input() || state.is_over || state.watch(ears).is_err();
        4 | u64::from(is_there)
    }

    /// `ioctl`.
    pub fn control(&self, task: &Task, what: u64, at: u64) -> Result<u64> {
        let space = &task.program.space;
        match what {
            0x5401 => {
                let Settings { flags, keys } = self.state.lock().settings;
                let mut bytes = [0; 36];
                for (place, flag) in bytes.chunks_mut(4).zip(flags) {
                    place.copy_from_slice(&flag.to_le_bytes());
                }
                bytes[16..].copy_from_slice(&keys);
                memory::write(space, at, &bytes)?;
            }
            0x5402..=0x5404 => {
                let mut bytes = [0; 36];
                memory::read(space, at, &mut bytes)?;
                self.set(&bytes, what == 0x5404);
            }
            // Whose terminal it is, is settled; and nothing waits to be written.
            0x5409 | 0x540e => {}
            0x540b => self.state.lock().tty.clear(),
            0x540f | 0x5429 => {
                let foreground = self.state.lock().foreground;
                memory::write(space, at, &foreground.to_le_bytes())?;
            }
            0x5410 => {
                let mut group = [0; 4];
                memory::read(space, at, &mut group)?;
                let group = u32::from_le_bytes(group);
                if !task.process.system.has_group(group) {
                    return Err(ESRCH);
                }
                self.state.lock().foreground = group;
            }
            0x5413 => {
                let [rows, columns] = self.state.lock().size.map(u64::from);
                let size = rows | columns << 16;
                memory::write(space, at, &size.to_le_bytes())?;
            }
            0x5414 => {
                let mut size = [0; 8];
                memory::read(space, at, &mut size)?;
                let [a, b, c, d, ..] = size;
                let size = [[a, b], [c, d]].map(u16::from_le_bytes);
                self.state.lock().size = size;
            }
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }

    /// Sets what was asked for; `clears`: what was typed before does not count.
    fn set(&self, bytes: &[u8; 36], clears: bool) {
        let mut settings = Settings::USUAL;
        for (flag, word) in settings.flags.iter_mut().zip(bytes.as_chunks().0) {
            *flag = u32::from_le_bytes(*word);
        }
        settings.keys.copy_from_slice(&bytes[16..]);
        let mut echo = Vec::new();
        let mut state = self.state.lock();
        if clears {
            state.tty.clear();
        }
        state.apply(settings, &mut echo);
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        self.show(&echo);
        ring(waiting);
    }
}

impl State {
    fn apply(&mut self, settings: Settings, echo: &mut Vec<u8>) {
        self.settings = settings;
        self.tty.set_echo(settings.has(ECHO));
        // A line that was begun is gone on with; keys among what was typed are signals no more.
        let _ = self.tty.set_raw(!settings.has(ICANON), echo);
    }

    /// Takes a byte; the signal that it is.
    fn feed(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<u32> {
        let byte = match byte {
            b'\r' if self.settings.flags[0] & ICRNL != 0 => b'\n',
            byte => byte,
        };
        let signal = self.settings.signal(byte);
        if self.tty.is_raw() {
            if signal.is_none() {
                self.tty.feed(byte, echo);
            }
            return signal;
        }
        match self.tty.feed(byte, echo) {
            Some(Event::Interrupt) => signal.filter(|it| *it == SIGINT),
            Some(Event::Suspend) => signal.filter(|it| *it == SIGTSTP),
            _ => signal.filter(|it| *it == SIGQUIT),
        }
    }

    fn watch(&mut self, ears: &Arc<Ears>) -> Result<()> {
        if !self.waiting.iter().any(|other| Arc::ptr_eq(other, ears)) {
            self.waiting.try_reserve(1).map_err(|_| ENOMEM)?;
            self.waiting.push(ears.clone());
        }
        Ok(())
    }
}
