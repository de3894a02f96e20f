//! Sockets of IPv4 (`ip(7)`, `tcp(7)`): TCP, by way of the network stack.
//!
//! Whoever is about to wait says so first, and looks after that, so nothing is missed.
//!
//! # When the stack dies
//! Its connections are gone: a program is told `ECONNRESET`, once. A socket that listens does so
//! again at the next stack, and its program notices nothing but the connections that it had not
//! accepted.

mod moving;
mod options;

use super::Patience;
use super::local::wait;
use super::network::{Line, Network, failed, why};
use crate::bells::{ALL, BROKEN, Bell, ENDED, HALF_ENDED, READS, WRITES, Waiters};
use crate::errno::{
    EACCES, EAGAIN, EALREADY, ECONNRESET, EINPROGRESS, EINVAL, EISCONN, ENOMEM, ENOTCONN, Error,
};
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::{Failure, Place, SocketPhase, SocketState};
use linux::socket::address;

type Result<T> = core::result::Result<T, Error>;

/// Bytes that the stack takes to be sent, at most.
const BUFFER: usize = 64 << 10;
/// The first port that everybody may have.
const FREE: u16 = 1024;
/// The protocol, and the level of its options.
pub const TCP: u64 = 6;

/// All addresses, any port.
const ANYWHERE: Place = Place {
    address: [0; 4],
    port: 0,
};

/// A socket.
pub struct Inet {
    network: Arc<Network>,
    /// The tag of its event.
    number: u64,
    /// Held during calls to the stack.
    state: Mutex<State>,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct State {
    /// `None` before it has a place, and after what it had is gone.
    line: Option<Line>,
    /// Where it was put.
    at: Option<Place>,
    /// How many connections may wait, if it listens.
    listens: Option<u32>,
    /// It was told to connect, and nobody was told what came of it.
    connects: bool,
    /// It has been connected.
    was_open: bool,
    /// What went wrong is, or was, in `error`.
    has_failed: bool,
    hurries: bool,
    /// What was received and could not be handed over.
    back: Vec<u8>,
    /// It reads, or writes, no more.
    no_reads: bool,
    no_writes: bool,
    /// What went wrong, until somebody is told.
    error: Option<Error>,
}

/// The place in an address.
fn place(address: &[u8]) -> Result<Place> {
    let name = address::Inet::from_bytes(address)?;
    Ok(Place {
        address: name.host,
        port: name.port,
    })
}

impl Inet {
    /// A socket that has no place yet.
    pub fn new(network: &Arc<Network>) -> Arc<Self> {
        network.add(|number| {
            Arc::new(Inet {
                network: network.clone(),
                number,
                state: Mutex::default(),
                waiters: Mutex::default(),
            })
        })
    }

    /// Tells those who wait.
    pub fn ring(&self) {
        let rung = self.waiters.lock().take(ALL);
        rung.ring();
    }

    /// The stack has died: see the module.
    pub fn meet_the_end(&self) {
        self.look(&mut self.state.lock());
    }

    /// Has a thread hear of what changes.
    fn watch(&self, task: &Task) -> Result<()> {
        let bell = Bell::of(&task.ears);
        self.waiters.lock().add(&bell, READS | WRITES)
    }

    /// What can be seen of it, if the stack has it.
    fn look(&self, state: &mut State) -> Option<SocketState> {
        for _ in 0..2 {
            let line = state.line.as_ref()?;
            match line.socket.look() {
                Ok(seen) => {
                    if let Some(failure) = seen.failure.as_ref().filter(|_| !state.has_failed) {
                        state.error = Some(failed(failure));
                        state.has_failed = true;
                    }
                    state.was_open |= matches!(seen.phase, SocketPhase::Open);
                    return Some(seen);
                }
                Err(error) if error.is_gone() => self.lose(state),
                Err(_) => return None,
            }
        }
        None
    }

    fn lose(&self, state: &mut State) {
        state.line = None;
        match state.listens {
            Some(backlog) => {
                let again = self.listen_at(state.at.unwrap_or(ANYWHERE), backlog);
                match again {
                    Ok(line) => state.line = Some(line),
                    Err(error) => state.error = Some(error),
                }
            }
            None if !state.has_failed && (state.connects || state.was_open) => {
                state.error = Some(ECONNRESET);
                state.has_failed = true;
            }
            None => {}
        }
    }

    fn listen_at(&self, at: Place, backlog: u32) -> Result<Line> {
        let line = self.network.open(at, self.number)?;
        line.socket.listen(backlog).map_err(why)?;
        Ok(line)
    }

    /// The stack's socket, which is opened at the first use.
    fn line<'a>(&self, state: &'a mut State) -> Result<&'a Line> {
        if state.line.is_none() {
            let at = state.at.unwrap_or(ANYWHERE);
            let line = self.network.open(at, self.number)?;
            line.socket.hurry(state.hurries).map_err(why)?;
            state.line = Some(line);
        }
        state.line.as_ref().ok_or(ENOMEM)
    }

    /// See [`Socket::bind`](super::Socket::bind).
    pub fn bind(&self, task: &Task, address: &[u8]) -> Result<()> {
        let at = place(address)?;
        if (1..FREE).contains(&at.port) && !task.process.cred().is_root() {
            return Err(EACCES);
        }
        let mut state = self.state.lock();
        if state.has_failed && !state.was_open {
            // A connection that has failed leaves it as it was.
            state.line = None;
        }
        if state.at.is_some() || state.line.is_some() {
            return Err(EINVAL);
        }
        state.line = Some(self.network.open(at, self.number)?);
        state.at = self.look(&mut state).map(|seen| seen.own).or(Some(at));
        Ok(())
    }

    /// See [`Socket::listen`](super::Socket::listen).
    pub fn listen(&self, backlog: u32) -> Result<()> {
        let mut state = self.state.lock();
        if state.connects || state.was_open {
            return Err(EINVAL);
        }
        let line = self.line(&mut state)?;
        line.socket.listen(backlog).map_err(why)?;
        state.listens = Some(backlog);
        let own = self.look(&mut state).map(|seen| seen.own);
        state.at = state.at.or(own);
        Ok(())
    }

    /// See [`Socket::connect`](super::Socket::connect).
    pub fn connect(&self, task: &Task, address: &[u8], patience: Patience) -> Result<()> {
        self.begin(place(address)?, patience)?;
        let done = task.until_timed(patience.deadline, || {
            if let Err(error) = self.watch(task) {
                return Some(Err(error));
            }
            let mut state = self.state.lock();
            let seen = self.look(&mut state);
            if let Some(error) = state.error.take() {
                state.connects = false;
                return Some(Err(error));
            }
            match seen.map(|seen| seen.phase) {
                Some(SocketPhase::Opening) => patience.never_waits.then_some(Err(EINPROGRESS)),
                _ => {
                    state.connects = false;
                    Some(Ok(()))
                }
            }
        })?;
        done.unwrap_or(Err(EINPROGRESS))
    }

    /// Has the stack connect, unless it does so already.
    fn begin(&self, to: Place, patience: Patience) -> Result<()> {
        let mut state = self.state.lock();
        let seen = self.look(&mut state);
        if state.listens.is_some() || state.was_open && !state.connects {
            return Err(EISCONN);
        }
        if state.connects {
            let is_opening = seen.is_some_and(|it| matches!(it.phase, SocketPhase::Opening));
            let is_early = is_opening && patience.never_waits;
            return if is_early { Err(EALREADY) } else { Ok(()) };
        }
        if state.has_failed {
            // What has failed before may be tried again.
            state.line = None;
            (state.has_failed, state.error) = (false, None);
        }
        let line = self.line(&mut state)?;
        line.socket.connect(to).map_err(why)?;
        state.connects = true;
        Ok(())
    }

    /// See [`Socket::accept`](super::Socket::accept).
    pub fn accept(&self, task: &Task, patience: Patience) -> Result<Arc<Inet>> {
        wait(task, patience, || {
            let found = self.watch(task).and_then(|()| self.accept_now());
            self.settle(found.transpose(), patience)
        })
    }

    /// What comes of a try: nothing if it waits for more.
    fn settle<T>(&self, tried: Option<Result<T>>, patience: Patience) -> Option<Result<T>> {
        tried.or_else(|| patience.never_waits.then_some(Err(EAGAIN)))
    }

    fn accept_now(&self) -> Result<Option<Arc<Inet>>> {
        let mut state = self.state.lock();
        if state.listens.is_none() {
            return Err(EINVAL);
        }
        self.look(&mut state);
        let line = state.line.as_ref().ok_or(EINVAL)?;
        let Some(new) = line.socket.accept().map_err(why)? else {
            return Ok(None);
        };
        let hurries = state.hurries;
        drop(state);
        let accepted = Inet::new(&self.network);
        let mut own = accepted.state.lock();
        own.line = Some(self.network.line(new, accepted.number)?);
        (own.was_open, own.hurries) = (true, hurries);
        drop(own);
        Ok(Some(accepted))
    }

    /// See [`Socket::shut`](super::Socket::shut).
    pub fn shut(&self, reads: bool, writes: bool) -> Result<()> {
        let mut state = self.state.lock();
        let seen = self.look(&mut state);
        let is_open = seen.is_some_and(|seen| matches!(seen.phase, SocketPhase::Open));
        let Some(line) = state.line.as_ref().filter(|_| is_open) else {
            return Err(ENOTCONN);
        };
        if writes {
            line.socket.finish().map_err(why)?;
        }
        state.no_reads |= reads;
        state.no_writes |= writes;
        drop(state);
        self.ring();
        Ok(())
    }

    /// See [`Socket::address`](super::Socket::address).
    pub fn address(&self, of_peer: bool) -> Result<Vec<u8>> {
        let mut state = self.state.lock();
        let seen = self.look(&mut state);
        let place = match (of_peer, seen) {
            (true, Some(seen)) if matches!(seen.phase, SocketPhase::Open) => seen.peer,
            (true, _) => return Err(ENOTCONN),
            (false, seen) => seen.map(|seen| seen.own).or(state.at).unwrap_or(ANYWHERE),
        };
        let Place { address, port } = place;
        let mut bytes = Vec::new();
        let name = address::Inet {
            host: address,
            port,
        };
        bytes.try_reserve_exact(16).map_err(|_| ENOMEM)?;
        bytes.extend_from_slice(&name.bytes());
        Ok(bytes)
    }

    /// See [`Socket::waiting`](super::Socket::waiting).
    pub fn waiting(&self) -> Result<[usize; 2]> {
        let mut state = self.state.lock();
        let back = state.back.len();
        match self.look(&mut state) {
            Some(seen) if matches!(seen.phase, SocketPhase::Listening) => Err(EINVAL),
            Some(seen) => {
                let free = seen.room as usize;
                let sent = if free > 0 {
                    BUFFER.saturating_sub(free)
                } else {
                    0
                };
                Ok([back + seen.readable as usize, sent])
            }
            None => Ok([back, 0]),
        }
    }

    /// See [`Socket::ready`](super::Socket::ready).
    pub fn ready(&self, bell: &Bell) -> u64 {
        if self.waiters.lock().add(bell, READS | WRITES).is_err() {
            // The next call says why it is not so.
            return READS | WRITES;
        }
        let mut state = self.state.lock();
        let seen = self.look(&mut state);
        let mut ready = 0;
        let mut tell = |is_so, mark| ready |= if is_so { mark } else { 0 };
        tell(state.error.is_some(), BROKEN);
        tell(!state.back.is_empty(), READS);
        let Some(seen) = seen else {
            tell(state.was_open || state.error.is_some(), READS | HALF_ENDED);
            tell(true, WRITES | ENDED);
            return ready;
        };
        match seen.phase {
            SocketPhase::Idle => tell(true, WRITES | ENDED),
            SocketPhase::Opening => {}
            SocketPhase::Listening => tell(seen.readable > 0, READS),
            SocketPhase::Open => {
                let has_read = state.no_reads || seen.has_ended;
                tell(seen.readable > 0, READS);
                tell(has_read, READS | HALF_ENDED);
                tell(seen.is_roomy || state.no_writes, WRITES);
                tell(has_read && state.no_writes, ENDED);
            }
            SocketPhase::Over => tell(true, READS | WRITES | ENDED | HALF_ENDED),
        }
        ready
    }
}

impl Drop for Inet {
    fn drop(&mut self) {
        self.network.forget(self.number);
    }
}
