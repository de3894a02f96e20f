//! The way to the network stack, and the thread that hears of what happens there.
//!
//! The stack never waits; who has to wait does so here. The thread waits for the events of all
//! sockets, and rings whoever waits at the one that has something new.

use super::inet::Inet;
use crate::errno::{
    EADDRINUSE, EADDRNOTAVAIL, ECONNREFUSED, ECONNRESET, EINVAL, EIO, ENETDOWN, ENETUNREACH,
    ENOBUFS, ENOMEM, ETIMEDOUT, Error,
};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::{log, thread, time};
use interfaces::{
    BindError, Event, Events, Failure, Fired, Handle, NewSocket, Place, RVec, Respawn, RpcError,
    RpcResult, SocketError, SocketFailure, Sockets, TcpSocket, WaitWord,
};
use respawn::Client;

/// Events that are told at once.
const TOLD: usize = 64;
/// How long the thread waits for memory, in nanoseconds.
const SHORTAGE: u64 = 10_000_000;

/// The way to the network.
pub struct Network {
    stack: Client<dyn Sockets>,
    word: Handle<dyn WaitWord>,
    /// Sockets by the tags of their events.
    sockets: Mutex<BTreeMap<u64, Weak<Inet>>>,
    next: AtomicU64,
}

/// A socket of the stack's.
pub struct Line {
    pub socket: Handle<dyn TcpSocket>,
    /// It is bound for as long as this lives.
    _event: Handle<dyn Event>,
}

impl Network {
    /// The way to this stack.
    ///
    /// # Errors
    /// No memory.
    pub fn new(stack: Handle<dyn Respawn>, events: &Handle<dyn Events>) -> RpcResult<Arc<Self>> {
        let word = events.word()?;
        Ok(Arc::new(Network {
            stack: Client::new(stack, "network"),
            word,
            sockets: Mutex::default(),
            next: AtomicU64::new(1),
        }))
    }

    /// Has a thread tell those who wait.
    ///
    /// # Errors
    /// No memory.
    pub fn attend(self: &Arc<Self>) -> RpcResult<()> {
        let network = self.clone();
        thread::spawn("network", move || {
            loop {
                match network.told() {
                    Ok(fired) => fired.iter().for_each(|fired| network.tell(fired)),
                    Err(RpcError::NoMemory) => time::sleep(SHORTAGE),
                    Err(error) => return log!("nobody hears of the network any more: {error}"),
                }
            }
        })
    }

    fn told(&self) -> RpcResult<RVec<Fired>> {
        let none = Fired {
            tag: 0,
            count: 0,
            ended: false,
        };
        self.word.wait(None, RVec::filled(none, TOLD)?)
    }

    fn tell(&self, fired: &Fired) {
        let socket = self.sockets.lock().get(&fired.tag).and_then(Weak::upgrade);
        if let Some(socket) = socket {
            if fired.ended {
                socket.meet_the_end();
            }
            socket.ring();
        }
    }

    /// Notes a socket: the number that is the tag of its event.
    pub fn add(&self, make: impl FnOnce(u64) -> Arc<Inet>) -> Arc<Inet> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let socket = make(number);
        let weak = Arc::downgrade(&socket);
        self.sockets.lock().insert(number, weak);
        socket
    }

    /// A socket is no more.
    pub fn forget(&self, number: u64) {
        self.sockets.lock().remove(&number);
    }

    /// A socket of the stack's at a place, whose event is told under `tag`.
    ///
    /// # Errors
    /// The stack's.
    pub fn open(&self, at: Place, tag: u64) -> Result<Line, Error> {
        let new = self.stack.call(|stack| stack.open(at)).map_err(why)?;
        self.line(new, tag)
    }

    /// The same of one that the stack has made.
    ///
    /// # Errors
    /// No memory, or too many sockets.
    pub fn line(&self, new: NewSocket, tag: u64) -> Result<Line, Error> {
        let NewSocket { socket, event } = new;
        let word = self.word.duplicate().map_err(|_| ENOMEM)?;
        match event.bind(word, tag) {
            Ok(()) => {}
            Err(BindError::Full) => return Err(ENOBUFS),
            Err(BindError::Rpc(error)) if !error.is_gone() => return Err(ENOMEM),
            Err(_) => return Err(ENETDOWN),
        }
        Ok(Line {
            socket,
            _event: event,
        })
    }
}

/// What a program is told of an error of the stack's.
pub fn why(error: SocketError) -> Error {
    match error {
        SocketError::Rpc(RpcError::NoMemory) => ENOMEM,
        SocketError::Rpc(_) => EIO,
        SocketError::Full => ENOBUFS,
        SocketError::InUse => EADDRINUSE,
        SocketError::NotOurs => EADDRNOTAVAIL,
        SocketError::Unreachable => ENETUNREACH,
        SocketError::Wrong => EINVAL,
        SocketError::Gone => ENETDOWN,
    }
}

/// What a program is told of a connection's end.
pub fn failed(failure: &SocketFailure) -> Error {
    match failure {
        SocketFailure::Refused => ECONNREFUSED,
        SocketFailure::Reset => ECONNRESET,
        SocketFailure::TimedOut => ETIMEDOUT,
        SocketFailure::Unreachable => ENETUNREACH,
        SocketFailure::NoMemory => ENOMEM,
    }
}
