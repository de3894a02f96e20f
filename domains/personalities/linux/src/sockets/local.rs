//! Sockets of this machine (`unix(7)`): streams, packets and datagrams.
//!
//! # Locks
//! Each end has a lock of its own, and no two are held at once: who sends looks at the own end,
//! then puts the message into the other one. What is received is dropped when nothing is locked, as
//! it may be the last of a socket.
//!
//! # Lives
//! A socket's file has its end; names lead to it weakly. Ends that are connected have each other
//! until they are closed, and one that is closed has nothing: neither messages nor another end.

use super::connecting::name_in;
use super::names::Bound;
use super::rights::{self, Paid, Right};
use super::sending::Post;
use super::{Patience, Sending};
use crate::bells::{ALL, BROKEN, Bell, ENDED, HALF_ENDED, READS, Rung, WRITES, Waiters};
use crate::errno::{
    EAGAIN, ECONNRESET, EINVAL, EISCONN, EMSGSIZE, ENOTCONN, EOPNOTSUPP, EPIPE, Error,
};
use crate::task::Task;
use crate::users::Held;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use domain_rt::sync::Mutex;
use linux::socket::address::Name;
use linux::socket::inbox::{Contents, How, Inbox, Taken};
use linux::socket::options::{self, Options, Value};
use linux::socket::{Kind, NOBODY, Sender};

/// The most bytes of a stream that are sent as one piece.
const PIECE: usize = 32 << 10;
/// The most bytes of a message that are no stream's.
const MOST_BYTES: usize = 256 << 10;
/// What of its buffer a socket keeps for itself.
const KEPT: usize = 32;

/// A socket.
pub struct Local {
    pub end: Arc<End>,
    /// What the connecting side pays for it until it is accepted.
    pub held: Option<Held>,
}

/// What others know of a socket.
pub struct End {
    pub kind: Kind,
    /// Whether its messages say who has sent them.
    pub tells_sender: AtomicBool,
    /// What it has sent and nobody received, in bytes as they are paid for.
    pub out: AtomicUsize,
    pub state: Mutex<State>,
}

/// What has become of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    New,
    Connected,
    Listening,
    Closed,
}

/// What changes of an end.
pub struct State {
    pub inbox: Inbox<Right, Paid>,
    pub phase: Phase,
    pub name: Option<Arc<Name>>,
    pub bound: Option<Bound>,
    pub peer: Option<Arc<End>>,
    /// Who is on the other side; of one that listens, who listens.
    pub other: Sender,
    /// Nothing is received, or sent, any more.
    pub shut: [bool; 2],
    /// What went wrong and nobody was told.
    pub error: Option<Error>,
    pub waiters: Waiters,
    /// Those who wait to put something here, which is not what this one writes.
    pub room: Waiters,
    /// Those that have connected, and how many of them may wait.
    pub pending: VecDeque<Local>,
    pub backlog: usize,
}

impl State {
    fn new(kind: Kind) -> Self {
        State {
            inbox: Inbox::new(kind),
            phase: Phase::New,
            name: None,
            bound: None,
            peer: None,
            other: NOBODY,
            shut: [false; 2],
            error: None,
            waiters: Waiters::default(),
            room: Waiters::default(),
            pending: VecDeque::new(),
            backlog: 0,
        }
    }

    pub fn is_peer(&self, end: &End) -> bool {
        self.peer
            .as_ref()
            .is_some_and(|it| core::ptr::eq(&**it, end))
    }
}

/// The identity of a task for the peer that it connects to: the effective user and group.
pub fn effective(task: &Task) -> Sender {
    let cred = task.process.cred();
    Sender {
        process: task.process.id,
        user: cred.user.effective,
        group: cred.group.effective,
    }
}

/// The identity of a task for receivers of its messages: the real user and group.
pub fn real(task: &Task) -> Sender {
    let cred = task.process.cred();
    Sender {
        process: task.process.id,
        user: cred.user.real,
        group: cred.group.real,
    }
}

impl End {
    fn new(kind: Kind) -> Arc<Self> {
        Arc::new(End {
            kind,
            tells_sender: AtomicBool::new(false),
            out: AtomicUsize::new(0),
            state: Mutex::new(State::new(kind)),
        })
    }

    /// Whether sockets wait in it.
    pub fn has_sockets(&self) -> bool {
        let state = self.state.lock();
        let in_messages = |right: &Right| rights::local_of(right).is_some();
        !state.pending.is_empty() || state.inbox.has_right(in_messages)
    }

    /// Closes it; what was in it is to be dropped. If it was not accepted yet, the other side's
    /// connection is broken and not just at its end.
    fn close(&self, is_early: bool) -> (Contents<Right, Paid>, VecDeque<Local>) {
        let mut state = self.state.lock();
        state.phase = Phase::Closed;
        state.shut = [true; 2];
        let pending = core::mem::take(&mut state.pending);
        let contents = state.inbox.empty();
        let (bound, peer) = (state.bound.take(), state.peer.take());
        let rung = [state.waiters.take(ALL), state.room.take(ALL)];
        drop(state);
        drop(bound);
        rung.into_iter().for_each(Rung::ring);
        if let Some(peer) = peer.filter(|_| self.kind.connects()) {
            let mut other = peer.state.lock();
            if other.is_peer(self) {
                other.shut = [true; 2];
                if is_early || !contents.is_empty() {
                    other.error = Some(ECONNRESET);
                }
                let rung = other.waiters.take(ALL);
                drop(other);
                rung.ring();
            }
        }
        (contents, pending)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let (contents, pending) = self.close();
        if !contents.is_empty() || !pending.is_empty() {
            rights::dispose(contents, pending);
        }
    }
}

impl Local {
    /// Closes it before it is dropped; what was in it is to be dropped.
    pub fn close(&self) -> (Contents<Right, Paid>, VecDeque<Local>) {
        self.end.close(self.held.is_some())
    }

    /// One that is connected to nobody.
    pub fn new(kind: Kind) -> Self {
        Local {
            end: End::new(kind),
            held: None,
        }
    }

    /// Two that are connected to each other.
    pub fn pair(task: &Task, kind: Kind) -> [Self; 2] {
        let pair = [Local::new(kind), Local::new(kind)];
        let [one, other] = &pair;
        for (it, peer) in [(one, other), (other, one)] {
            it.join(&peer.end, effective(task));
        }
        pair
    }

    pub fn join(&self, peer: &Arc<End>, other: Sender) {
        let mut state = self.end.state.lock();
        state.phase = Phase::Connected;
        state.peer = Some(peer.clone());
        state.other = other;
    }

    /// Sets whether messages say who has sent them.
    pub fn tell_senders(&self, tells_sender: bool) {
        self.end.tells_sender.store(tells_sender, Ordering::Relaxed);
    }

    /// An option that is about what happens here.
    pub fn option(&self, option: u64) -> Option<Value> {
        let mut state = self.end.state.lock();
        match option {
            options::SO_ERROR => {
                let error = state.error.take();
                Some(Value::number(error.map_or(0, |error| error.0 as u32)))
            }
            options::SO_ACCEPTCONN => {
                Some(Value::number(u32::from(state.phase == Phase::Listening)))
            }
            options::SO_PEERCRED => {
                let mut other = state.other;
                // Of nobody the numbers are those of no user.
                if other == NOBODY {
                    (other.user, other.group) = (u32::MAX, u32::MAX);
                }
                Some(Value::of(&other.bytes()))
            }
            _ => None,
        }
    }

    /// See [`Socket::address`](super::Socket::address).
    pub fn address(&self, of_peer: bool) -> Result<Vec<u8>, Error> {
        let name = match of_peer {
            false => self.end.state.lock().name.clone(),
            true => {
                let peer = self.end.state.lock().peer.clone();
                peer.ok_or(ENOTCONN)?.state.lock().name.clone()
            }
        };
        name.as_deref().unwrap_or(&Name::Unnamed).bytes()
    }

    /// See [`Socket::waiting`](super::Socket::waiting).
    pub fn waiting(&self) -> Result<[usize; 2], Error> {
        let state = self.end.state.lock();
        match state.phase {
            Phase::Listening => Err(EINVAL),
            _ => Ok([state.inbox.bytes(), self.end.out.load(Ordering::Relaxed)]),
        }
    }

    /// See [`Socket::shut`](super::Socket::shut).
    pub fn shut(&self, receives: bool, sends: bool) -> Result<(), Error> {
        let mut state = self.end.state.lock();
        let [no_receiving, no_sending] = &mut state.shut;
        *no_receiving |= receives;
        *no_sending |= sends;
        let peer = state.peer.clone().filter(|_| self.end.kind.connects());
        let rung = [state.waiters.take(ALL), state.room.take(ALL)];
        drop(state);
        rung.into_iter().for_each(Rung::ring);
        if let Some(peer) = peer {
            let mut other = peer.state.lock();
            let [no_receiving, no_sending] = &mut other.shut;
            *no_receiving |= sends;
            *no_sending |= receives;
            let rung = other.waiters.take(ALL);
            drop(other);
            rung.ring();
        }
        Ok(())
    }

    /// See [`Socket::ready`](super::Socket::ready).
    pub fn ready(&self, bell: &Bell, options: &Options) -> u64 {
        let mut state = self.end.state.lock();
        let is_listening = state.phase == Phase::Listening;
        let mut found = 0;
        let mut tell = |is_so, event| found |= if is_so { event } else { 0 };
        tell(!state.inbox.is_empty() || !state.pending.is_empty(), READS);
        tell(state.shut[0], READS | HALF_ENDED);
        tell(state.shut == [true; 2], ENDED);
        let connects = self.end.kind.connects();
        tell(
            connects && matches!(state.phase, Phase::New | Phase::Closed),
            ENDED,
        );
        tell(state.error.is_some(), BROKEN);
        let out = self.end.out.load(Ordering::Relaxed);
        let has_room = !is_listening && out.saturating_mul(4) <= options.send_buffer as usize;
        let peer = state.peer.clone().filter(|_| !connects);
        let found = match has_room && peer.is_none() {
            true => found | WRITES,
            false => found,
        };
        let found = state.waiters.look(bell, READS | WRITES, found);
        drop(state);
        match peer {
            Some(peer) if has_room && peer.takes_from(&self.end, bell) => found | WRITES,
            _ => found,
        }
    }

    /// See [`Socket::receive`](super::Socket::receive).
    pub fn receive(
        &self,
        task: &Task,
        to: &mut [u8],
        how: How,
        (least, patience): (usize, Patience),
    ) -> Result<Taken<Right, Paid>, Error> {
        let mut taken = self.receive_some(task, to, how, patience)?;
        // Bytes of another sender would be lost to whoever asks for them by themselves.
        let is_whole = how.looks || how.by_sender || taken.count == 0;
        let goes_on = self.end.kind == Kind::Stream && !is_whole;
        while goes_on && taken.count < least && taken.rights.is_empty() && !task.is_ending() {
            let rest = to.get_mut(taken.count..).unwrap_or_default();
            match self.receive_some(task, rest, how, patience) {
                Ok(more) if more.count > 0 => {
                    taken.count += more.count;
                    taken.rights = more.rights;
                }
                _ => break,
            }
        }
        Ok(taken)
    }

    fn receive_some(
        &self,
        task: &Task,
        to: &mut [u8],
        how: How,
        patience: Patience,
    ) -> Result<Taken<Right, Paid>, Error> {
        let bell = Bell::of(&task.ears);
        wait(task, patience, || {
            let mut state = self.end.state.lock();
            match (self.end.kind, state.phase) {
                (Kind::Datagram, _) | (_, Phase::Connected) => {}
                (Kind::Stream, _) => return Some(Err(EINVAL)),
                (Kind::Packets, _) => return Some(Err(ENOTCONN)),
            }
            match state.inbox.take(to, how) {
                Ok(Some(taken)) => {
                    let rung = state.room.take(WRITES);
                    drop(state);
                    rung.ring();
                    return Some(Ok(taken));
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            let is_datagram = self.end.kind == Kind::Datagram;
            if state.shut[0] && !(is_datagram && patience.never_waits) {
                return Some(Ok(nothing()));
            }
            match patience.never_waits {
                true => Some(Err(EAGAIN)),
                false => state.waiters.add(&bell, READS).err().map(Err),
            }
        })
    }

    /// See [`Socket::give_back`](super::Socket::give_back).
    pub fn give_back(&self, bytes: &[u8], taken: &mut Taken<Right, Paid>) {
        if self.end.kind == Kind::Stream {
            let mut state = self.end.state.lock();
            state.inbox.give_back(bytes, taken);
            let rung = state.waiters.take(READS);
            drop(state);
            rung.ring();
        }
    }

    /// See [`Socket::send`](super::Socket::send).
    pub fn send(
        &self,
        task: &Task,
        message: Sending<'_>,
        options: &Options,
        patience: Patience,
    ) -> Result<usize, Error> {
        let connects = self.end.kind.connects();
        let to = match message.to {
            [] => None,
            _ if self.end.kind == Kind::Stream => {
                let is_connected = self.end.state.lock().phase == Phase::Connected;
                return Err(if is_connected { EISCONN } else { EOPNOTSUPP });
            }
            // Packets go where the connection leads.
            _ if connects => None,
            address => Some(self.find(task, &name_in(address)?)?),
        };
        let Sending {
            bytes,
            rights,
            sender,
            ..
        } = message;
        let mut post = Post {
            local: self,
            task,
            to,
            rights,
            sender,
            buffer: options.send_buffer as usize,
            patience,
        };
        if self.end.kind != Kind::Stream {
            if bytes.len() > (post.buffer - KEPT).min(MOST_BYTES) {
                return Err(EMSGSIZE);
            }
            return post.put(bytes).map(|()| bytes.len());
        }
        if bytes.is_empty() {
            return self.can_send().map(|()| 0);
        }
        let mut done = 0;
        for piece in bytes.chunks(PIECE.min(post.buffer / 2 - 64)) {
            match post.put(piece) {
                Ok(()) => done += piece.len(),
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Whether a stream can send at all.
    fn can_send(&self) -> Result<(), Error> {
        let state = self.end.state.lock();
        match state.phase {
            Phase::Connected if state.shut[1] => Err(EPIPE),
            Phase::Connected => Ok(()),
            _ => Err(ENOTCONN),
        }
    }
}

/// What is received at the end.
fn nothing() -> Taken<Right, Paid> {
    Taken {
        count: 0,
        whole: 0,
        from: None,
        sender: NOBODY,
        rights: Vec::new(),
        charge: None,
    }
}

/// Waits until something can be done, as long as there is patience.
pub fn wait<T>(
    task: &Task,
    patience: Patience,
    ready: impl FnMut() -> Option<Result<T, Error>>,
) -> Result<T, Error> {
    let done = task.until_timed(patience.deadline, ready)?;
    done.unwrap_or(Err(EAGAIN))
}
