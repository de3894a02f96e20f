//! The console as processes see it: a terminal with line editing, or, in `exec` mode, a plain
//! stream.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Console, Errno, Handle, RVec, Respawn, RpcResult};
use tty::{Event, Tty};

use crate::device::Device;
use crate::errors;
use crate::process::Process;

/// Most bytes that are written to the console in one call, so that Ctrl-C is not kept waiting for
/// long.
const CHUNK: usize = 4096;

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// To the terminal.
    Output,
    /// To the console for errors, if there is one and the terminal is a plain stream.
    Errors,
}

/// The terminal.
pub struct Terminal {
    device: Device,
    errors: Option<Handle<dyn Console>>,
    /// The console for errors crashed; the terminal takes its place.
    errors_lost: AtomicBool,
    /// A person sits there: lines end in CR LF, input is edited and echoed.
    interactive: bool,
    input: Mutex<Tty>,
    /// The process that has switched to raw mode; 0 if it is off. Changed under the lock of
    /// `input`.
    raw_for: AtomicU32,
    /// How many times something was taken whose echo is not written yet: until then nobody reads
    /// it, or an answer might be seen before its question. Changed under the lock of `input`.
    unshown: AtomicU32,
    /// Notified when there is something to read, and on Ctrl-C.
    ready: Condvar,
    /// Notified when something was read.
    drained: Condvar,
}

impl Terminal {
    /// The console behind `console` is not asked for before it is needed.
    pub fn new(
        console: Handle<dyn Respawn>,
        errors: Option<Handle<dyn Console>>,
        interactive: bool,
    ) -> Self {
        Terminal {
            device: Device::new(console),
            errors: errors.filter(|_| !interactive),
            errors_lost: AtomicBool::new(false),
            interactive,
            input: Mutex::new(Tty::new(true)),
            raw_for: AtomicU32::new(0),
            unshown: AtomicU32::new(0),
            ready: Condvar::new(),
            drained: Condvar::new(),
        }
    }

    /// The device, for who reads the keyboard.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Writes a text. Texts that are written at the same time may be mixed, by chunks.
    ///
    /// # Errors
    /// If the console is down for good, or there is no memory.
    pub fn write(&self, stream: Stream, text: &RVec<u8>) -> Result<(), Errno> {
        let written = match self.interactive {
            true => self.write_lines(text),
            false => self.write_plain(stream, text),
        };
        written.map_err(Errno::Rpc)
    }

    /// Writes what was typed, as the line discipline wants it shown.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn echo(&self, text: &RVec<u8>) -> RpcResult<()> {
        self.device.call(|console| console.write(text))
    }

    /// Writes with a carriage return in front of each line feed.
    fn write_lines(&self, text: &[u8]) -> RpcResult<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let mut chunk = RVec::filled(0, rest.len().saturating_mul(2).min(CHUNK))?;
            let (taken, filled) = tty::with_carriage_returns(rest, &mut chunk);
            let chunk = chunk.truncated(filled);
            self.device.call(|console| console.write(&chunk))?;
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn write_plain(&self, stream: Stream, text: &RVec<u8>) -> RpcResult<()> {
        if text.len() <= CHUNK {
            return self.put(stream, text);
        }
        for chunk in text.chunks(CHUNK) {
            self.put(stream, &RVec::from_slice(chunk)?)?;
        }
        Ok(())
    }

    fn put(&self, stream: Stream, chunk: &RVec<u8>) -> RpcResult<()> {
        if let (Stream::Errors, Some(errors)) = (stream, &self.errors)
            && !self.errors_lost.load(Ordering::Relaxed)
        {
            if errors.write(chunk).is_ok() {
                return Ok(());
            }
            self.errors_lost.store(true, Ordering::Relaxed);
        }
        self.device.call(|console| console.write(chunk))
    }

    /// Takes a byte from the keyboard; what is to be echoed is appended to `echo`. Waits while more
    /// is typed ahead than the terminal keeps. If something comes of the byte, who has written the
    /// echo says so by [`shown`](Self::shown), and readers wait for that.
    pub fn feed(&self, byte: u8, echo: &mut Vec<u8>) -> Option<Event> {
        let mut input = self.input.lock();
        while input.is_full() {
            let (guard, _) = self.drained.wait(input);
            input = guard;
        }
        let event = input.feed(byte, echo);
        if event.is_some() {
            self.unshown.fetch_add(1, Ordering::Relaxed);
        }
        event
    }

    /// Switches raw mode on or off for process `pid`. What comes of keys that are looked at again
    /// is appended to `echo` and returned; [`shown`](Self::shown) is to follow.
    pub fn set_raw(&self, pid: u32, on: bool, echo: &mut Vec<u8>) -> Vec<Event> {
        let mut input = self.input.lock();
        let on = on && self.interactive;
        self.raw_for
            .store(if on { pid } else { 0 }, Ordering::SeqCst);
        self.unshown.fetch_add(1, Ordering::Relaxed);
        input.set_raw(on, echo)
    }

    /// Whether raw mode is on.
    pub fn is_raw(&self) -> bool {
        self.raw_for.load(Ordering::SeqCst) != 0
    }

    /// Whether process `pid` has switched raw mode on.
    pub fn is_raw_for(&self, pid: u32) -> bool {
        self.raw_for.load(Ordering::SeqCst) == pid
    }

    /// The echo of what was taken is written.
    pub fn shown(&self) {
        let input = self.input.lock();
        self.unshown.fetch_sub(1, Ordering::Relaxed);
        drop(input);
        self.ready.notify_all();
    }

    /// Wakes readers: there is something to read, or an interrupt to be told of.
    pub fn wake(&self) {
        // A reader that has looked already and does not wait yet holds the lock: pass it first.
        drop(self.input.lock());
        self.ready.notify_all();
    }

    /// Reads at most a line; nothing at the end of input. For a process in the background, and in
    /// `exec` mode, the input is always at its end.
    ///
    /// # Errors
    /// `Killed` if the process asked to be told of Ctrl-C and it was pressed while this waited;
    /// `Interrupted` if the process is ended.
    pub fn read(&self, process: &Process, mut buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        if !self.interactive || buffer.is_empty() {
            return Ok(buffer.truncated(0));
        }
        let before = process.interrupts();
        let mut input = self.input.lock();
        loop {
            if process.is_stopped() {
                drop(input);
                process.gate()?;
                input = self.input.lock();
                continue;
            }
            if process.is_background() {
                return Ok(buffer.truncated(0));
            }
            let is_shown = self.unshown.load(Ordering::Relaxed) == 0;
            if is_shown && let Some(count) = input.read(&mut buffer) {
                // A Ctrl-C before this text is not meant for what comes of it; one behind it is.
                process.heed_interrupts();
                drop(input);
                self.drained.notify_all();
                return Ok(buffer.truncated(count));
            }
            if process.interrupts() != before {
                return Err(Errno::Killed);
            }
            let (guard, wait) = self.ready.wait(input);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            input = guard;
        }
    }
}
