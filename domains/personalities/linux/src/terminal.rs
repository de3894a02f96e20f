//! The console as a terminal (`termios(3)`): lines that are edited, or bytes as they are typed;
//! keys that are signals for the group in the foreground.
//!
//! What a line is, is `lib/unix/tty`'s affair, how a terminal is set `linux::termios`'. A thread
//! of this domain reads the keyboard; it alone calls the console's `read`, so no program's thread
//! waits in there.

use crate::bells::{Bell, READS, WRITES, Waiters};
use crate::errno::{EINTR, EINVAL, EIO, ENOMEM, ENOTTY, EPERM, ESRCH, Error, SIGTTIN, SIGTTOU};
use crate::memory;
use crate::signals::bit;
use crate::system::System;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{thread, time};
use interfaces::{Console, Handle, RVec, RpcError, RpcResult};
use linux::termios::{self, Input, Settings};

type Result<T> = core::result::Result<T, Error>;

/// Most bytes that are written to the console, or read from it, in one call.
const CHUNK: usize = 4096;
/// How long the keyboard waits for memory, in nanoseconds.
const SHORTAGE: u64 = 10_000_000;
struct State {
    input: Input,
    /// Rows and columns.
    size: [u16; 2],
    /// The group that reads, and that keys are signals for.
    foreground: u32,
    /// The session whose terminal it is.
    session: u32,
    waiting: Waiters,
    /// The console is gone: input is at its end.
    is_over: bool,
}

/// Whether a task does nothing at a signal, as it ignores it or puts it off.
fn is_deaf(task: &Task, signal: u32) -> bool {
    let ignored = task.process.signals.ignored() | task.ears.mask();
    ignored & bit(signal) != 0
}

/// Has a group in the background stop; one that nobody could let go on is told of an error.
fn stop(task: &Task, group: u32, signal: u32) -> Result<()> {
    let system = &task.process.system;
    if system.is_orphaned(group) {
        return Err(EIO);
    }
    system.signal_group(group, signal);
    Err(EINTR)
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
                input: Input::new(),
                size: [24, 80],
                foreground: 0,
                session: 0,
                waiting: Waiters::default(),
                is_over: false,
            }),
        }
    }

    /// Begins a session whose first process has this number.
    pub fn begin(&self, id: u32) {
        let mut state = self.state.lock();
        (state.foreground, state.session) = (id, id);
        state.input.set(Settings::USUAL, &mut Vec::new());
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
            let rung = state.waiting.take(READS);
            drop(state);
            rung.ring();
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
        let Some(signal) = state.input.feed(byte, &mut echo) else {
            return;
        };
        let foreground = state.foreground;
        let rung = state.waiting.take(READS);
        drop(state);
        self.show(&echo);
        if let Some(signal) = signal {
            system.signal_group(foreground, signal);
        }
        rung.ring();
    }

    fn show(&self, text: &[u8]) {
        if let Ok(text) = RVec::from_slice(text)
            && !text.is_empty()
        {
            // Who reads meets a console that is gone.
            let _ = self.console.write(&text);
        }
    }

    /// Writes, with a carriage return in front of each line feed if that is set; how many bytes. A
    /// program that is to end writes no more.
    pub fn write(&self, task: &Task, text: &[u8]) -> Result<usize> {
        let adds = self.state.lock().input.settings().adds_carriage_returns();
        let mut rest = text;
        while !rest.is_empty() && !task.is_ending() {
            let (taken, chunk) = match adds {
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
        Ok(text.len() - rest.len())
    }

    /// Reads a line, or what was typed. Who is not in the foreground stops.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        self.expect_foreground(task)?;
        let patience = self.state.lock().input.settings().patience();
        let deadline = patience.map(|patience| time::now() + patience);
        let bell = Bell::of(&task.ears);
        let read = task.until_timed(deadline, || {
            let mut state = self.state.lock();
            match state.input.read(to) {
                None if state.is_over => Some(Ok(0)),
                None => state.waiting.add(&bell, READS).err().map(Err),
                Some(count) => Some(Ok(count)),
            }
        })?;
        read.unwrap_or(Ok(0))
    }

    fn expect_foreground(&self, task: &Task) -> Result<()> {
        match self.behind(task)? {
            None => Ok(()),
            Some(_) if is_deaf(task, SIGTTIN) => Err(EIO),
            Some(group) => stop(task, group, SIGTTIN),
        }
    }

    /// Has whoever is not in the foreground and sets the terminal stop, unless that is ignored.
    fn expect_change(&self, task: &Task) -> Result<()> {
        match self.behind(task)? {
            Some(group) if !is_deaf(task, SIGTTOU) => stop(task, group, SIGTTOU),
            _ => Ok(()),
        }
    }

    /// The group of a task that is in the background of this terminal's session.
    fn behind(&self, task: &Task) -> Result<Option<u32>> {
        let (group, session) = (task.group_of(0)?, task.session_of(0)?);
        let state = self.state.lock();
        Ok((session == state.session && group != state.foreground).then_some(group))
    }

    /// Whether it is the terminal of a session.
    pub fn is_of(&self, session: Option<u32>) -> bool {
        session == Some(self.state.lock().session)
    }

    /// A process has ended: if its session was this terminal's and its own, nobody has it any more.
    /// The group that was in the foreground, then.
    pub fn leave(&self, id: u32) -> Option<u32> {
        let mut state = self.state.lock();
        let is_meant = state.session == id;
        if is_meant {
            state.session = 0;
        }
        is_meant.then(|| core::mem::take(&mut state.foreground))
    }

    /// `tcsetpgrp`.
    fn set_foreground(&self, task: &Task, group: u32) -> Result<()> {
        if !self.is_of(task.session_of(0).ok()) {
            return Err(ENOTTY);
        }
        self.expect_change(task)?;
        if group as i32 <= 0 {
            return Err(EINVAL);
        }
        let session = task.process.system.session_of_group(group).ok_or(ESRCH)?;
        if session != task.session_of(0)? {
            return Err(EPERM);
        }
        self.state.lock().foreground = group;
        Ok(())
    }

    /// Whether there is something to read (1), and that one can write (4); if not, `bell` hears of
    /// a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        let mut state = self.state.lock();
        let is_there = state.input.has_input() || state.is_over;
        WRITES | state.waiting.look(bell, READS, u64::from(is_there))
    }

    /// `ioctl`.
    pub fn control(&self, task: &Task, what: u64, at: u64) -> Result<u64> {
        let space = &task.program.mm.space;
        match what {
            0x5401 => {
                let bytes = self.state.lock().input.settings().bytes();
                memory::write(space, at, &bytes)?;
            }
            0x5402..=0x5404 => {
                let mut bytes = [0; termios::BYTES];
                memory::read(space, at, &mut bytes)?;
                self.expect_change(task)?;
                self.set(Settings::new(&bytes), what == 0x5404);
            }
            // Whose terminal it is, is settled; and nothing waits to be written.
            0x5409 | 0x540e => {}
            0x540b => self.state.lock().input.clear(),
            0x540f | 0x5429 => {
                if !self.is_of(task.session_of(0).ok()) {
                    return Err(ENOTTY);
                }
                let state = self.state.lock();
                let (foreground, session) = (state.foreground, state.session);
                drop(state);
                let told = if what == 0x540f { foreground } else { session };
                memory::write(space, at, &told.to_le_bytes())?;
            }
            0x5410 => {
                let mut group = [0; 4];
                memory::read(space, at, &mut group)?;
                self.set_foreground(task, u32::from_le_bytes(group))?;
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
    fn set(&self, settings: Settings, clears: bool) {
        let mut echo = Vec::new();
        let mut state = self.state.lock();
        if clears {
            state.input.clear();
        }
        state.input.set(settings, &mut echo);
        let rung = state.waiting.take(READS);
        drop(state);
        self.show(&echo);
        rung.ring();
    }
}
