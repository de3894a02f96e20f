//! The console where it is no terminal: bytes as they come.
//!
//! A thread of this domain reads when a program wants to, and waits in the console for it: whoever
//! reads can be killed meanwhile. What has come then is there for the next one.

use crate::bells::{Bell, READS, WRITES, Waiters};
use crate::errno::{EIO, ENOMEM, Error};
use crate::task::Task;
use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{thread, time};
use interfaces::{Console, Handle, RVec, RpcError, RpcResult};

/// Most bytes that are read at once.
const CHUNK: usize = 4096;
/// How long the thread waits for memory, in nanoseconds.
const SHORTAGE: u64 = 10_000_000;

/// The console.
pub struct Stream {
    console: Handle<dyn Console>,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    /// What has come, and how many bytes of it are taken; of no bytes: the end.
    came: Option<RVec<u8>>,
    taken: usize,
    /// Somebody wants more than has come.
    is_asked: bool,
    waiting: Waiters,
}

impl Stream {
    /// This console.
    pub fn new(console: Handle<dyn Console>) -> Arc<Self> {
        Arc::new(Stream {
            console,
            state: Mutex::default(),
            bell: Condvar::new(),
        })
    }

    /// Has a thread read for those that want to.
    ///
    /// # Errors
    /// There is no memory for a thread.
    pub fn attend(self: &Arc<Self>) -> RpcResult<()> {
        let stream = self.clone();
        thread::spawn("input", move || {
            while stream.is_asked() {
                let came = stream.next();
                let mut state = stream.state.lock();
                (state.came, state.taken, state.is_asked) = (came, 0, false);
                let rung = state.waiting.take(READS);
                drop(state);
                rung.ring();
            }
        })
    }

    /// Waits until somebody wants to read; `false`: the wait was ended.
    fn is_asked(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.is_asked {
                return true;
            }
            let (again, why) = self.bell.wait(state);
            state = again;
            if why == Wait::Interrupted {
                return false;
            }
        }
    }

    /// What comes next; nothing where the console is gone, as at the end. Where there is no memory,
    /// there may be some later.
    fn next(&self) -> Option<RVec<u8>> {
        loop {
            let buffer = RVec::filled(0, CHUNK);
            match buffer.and_then(|buffer| self.console.read(buffer)) {
                Ok(bytes) => return Some(bytes),
                Err(RpcError::NoMemory) => time::sleep(SHORTAGE),
                Err(_) => return RVec::filled(0, 0).ok(),
            }
        }
    }

    /// Reads what has come, or waits for some; how many bytes, none at the end.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize, Error> {
        if to.is_empty() {
            return Ok(0);
        }
        let bell = Bell::of(&task.ears);
        task.until(|| {
            let mut state = self.state.lock();
            state.take(to).map(Ok).or_else(|| {
                let ready = self.ask(&mut state, &bell);
                ready.err().map(Err)
            })
        })?
    }

    /// Has more come, of which `bell` hears.
    fn ask(&self, state: &mut State, bell: &Bell) -> Result<(), Error> {
        state.waiting.add(bell, READS)?;
        if !core::mem::replace(&mut state.is_asked, true) {
            self.bell.notify_all();
        }
        Ok(())
    }

    /// Writes.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Error> {
        let text = RVec::from_slice(bytes).map_err(|_| ENOMEM)?;
        self.console.write(&text).map_err(|_| EIO)?;
        Ok(bytes.len())
    }

    /// Whether there is something to read (1), and that one can write (4); if not, `bell` hears of
    /// a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        let mut state = self.state.lock();
        match state.came.is_some() {
            true => WRITES | state.waiting.look(bell, READS, READS),
            false => WRITES | self.ask(&mut state, bell).map_or(READS, |()| 0),
        }
    }
}

impl State {
    /// Takes some of what has come, if something has.
    fn take(&mut self, to: &mut [u8]) -> Option<usize> {
        let came = self.came.as_ref()?;
        let rest = &came[self.taken..];
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        if self.taken == came.len() {
            (self.came, self.taken) = (None, 0);
        }
        Some(count)
    }
}
