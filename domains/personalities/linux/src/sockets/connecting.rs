//! Names and connections of sockets of this machine.

use super::local::{End, Local, Phase, effective, wait};
use super::names::{NamedSockets, Names};
use super::{COST, Patience};
use crate::bells::{Bell, READS, WRITES};
use crate::errno::{
    EADDRINUSE, EAGAIN, ECONNREFUSED, EEXIST, EINVAL, EISCONN, ENOBUFS, ENOMEM, EOPNOTSUPP, EPERM,
    EPROTOTYPE, Error,
};
use crate::task::Task;
use alloc::sync::Arc;
use linux::socket::address::{Name, family};

/// The most connections that wait, whatever was asked for.
const MOST_BACKLOG: usize = 4096;

/// The name in an address.
pub fn name_in(address: &[u8]) -> Result<Name, Error> {
    match Name::from_bytes(address)? {
        Name::Unnamed => Err(EINVAL),
        name => Ok(name),
    }
}

impl Local {
    /// See [`Socket::bind`](super::Socket::bind).
    pub fn bind(&self, task: &Task, address: &[u8]) -> Result<(), Error> {
        let name = Name::from_bytes(address)?;
        if self.end.state.lock().name.is_some() {
            // Without a name of its own choice it keeps the one that it has.
            return if name == Name::Unnamed {
                Ok(())
            } else {
                Err(EINVAL)
            };
        }
        let system = &task.process.system;
        let (name, bound) = match name {
            Name::Unnamed => Names::bind_any(system, &self.end)?,
            Name::Abstract(bytes) => {
                let bound = Names::bind(system, &bytes, &self.end)?;
                (Name::Abstract(bytes), bound)
            }
            Name::Path(path) => {
                let made = task.make_socket(&path);
                let (disk, seat) = made.map_err(|error| match error {
                    EEXIST => EADDRINUSE,
                    error => error,
                })?;
                let bound = NamedSockets::bind(&disk, seat, &self.end);
                (Name::Path(path), bound)
            }
        };
        let mut state = self.end.state.lock();
        // Another thread was faster.
        if state.name.is_some() {
            drop(state);
            drop(bound);
            return Err(EINVAL);
        }
        (state.name, state.bound) = (Some(Arc::new(name)), Some(bound));
        Ok(())
    }

    /// The end that has a name.
    pub fn find(&self, task: &Task, name: &Name) -> Result<Arc<End>, Error> {
        match name {
            Name::Unnamed => Err(EINVAL),
            Name::Abstract(name) => {
                let names = &task.process.system.names_of_sockets;
                names.find(self.end.kind, name)
            }
            Name::Path(path) => task.find_socket(path),
        }
    }

    /// See [`Socket::listen`](super::Socket::listen).
    pub fn listen(&self, task: &Task, backlog: u32) -> Result<(), Error> {
        if !self.end.kind.connects() {
            return Err(EOPNOTSUPP);
        }
        let mut state = self.end.state.lock();
        if state.name.is_none() || !matches!(state.phase, Phase::New | Phase::Listening) {
            return Err(EINVAL);
        }
        state.phase = Phase::Listening;
        state.other = effective(task);
        state.backlog = (backlog as usize).min(MOST_BACKLOG);
        let rung = state.room.take(WRITES);
        drop(state);
        rung.ring();
        Ok(())
    }

    /// See [`Socket::accept`](super::Socket::accept).
    pub fn accept(&self, task: &Task, patience: Patience) -> Result<Local, Error> {
        if !self.end.kind.connects() {
            return Err(EOPNOTSUPP);
        }
        let bell = Bell::of(&task.ears);
        wait(task, patience, || {
            let mut state = self.end.state.lock();
            if state.phase != Phase::Listening {
                return Some(Err(EINVAL));
            }
            match state.pending.pop_front() {
                Some(mut local) => {
                    let rung = state.room.take(WRITES);
                    drop(state);
                    rung.ring();
                    local.held = None;
                    Some(Ok(local))
                }
                None if state.shut[0] => Some(Err(EINVAL)),
                None if patience.never_waits => Some(Err(EAGAIN)),
                None => state.waiters.add(&bell, READS).err().map(Err),
            }
        })
    }

    /// See [`Socket::connect`](super::Socket::connect).
    pub fn connect(&self, task: &Task, address: &[u8], patience: Patience) -> Result<(), Error> {
        if family(address) == Some(0) && !self.end.kind.connects() {
            let mut state = self.end.state.lock();
            let before = state.peer.take();
            state.phase = Phase::New;
            drop(state);
            drop(before);
            return Ok(());
        }
        let target = self.find(task, &name_in(address)?)?;
        if target.kind != self.end.kind {
            return Err(EPROTOTYPE);
        }
        if !self.end.kind.connects() {
            let allowed = {
                let other = target.state.lock();
                other.peer.is_none() || other.is_peer(&self.end)
            };
            if !allowed {
                return Err(EPERM);
            }
            let mut state = self.end.state.lock();
            let before = state.peer.replace(target);
            state.phase = Phase::Connected;
            let rung = state.waiters.take(WRITES);
            drop(state);
            drop(before);
            rung.ring();
            return Ok(());
        }
        self.connect_to(task, &target, patience)
    }

    /// Connects to an end that listens. The connection is whole before it is accepted.
    fn connect_to(&self, task: &Task, to: &Arc<End>, patience: Patience) -> Result<(), Error> {
        let mut server = Local::new(self.end.kind);
        let user = task.process.owner.user();
        server.held = Some(user.hold(COST).map_err(|_| ENOBUFS)?);
        server.join(&self.end, effective(task));
        server.tell_senders(true);
        self.claim(&server.end)?;
        let (bell, mut server) = (Bell::of(&task.ears), Some(server));
        let connected = wait(task, patience, || {
            let mut other = to.state.lock();
            if other.phase != Phase::Listening || other.shut[0] {
                return Some(Err(ECONNREFUSED));
            }
            if other.pending.len() > other.backlog {
                return match patience.never_waits {
                    true => Some(Err(EAGAIN)),
                    false => other.room.add(&bell, WRITES).err().map(Err),
                };
            }
            let (name, listener) = (other.name.clone(), other.other);
            if other.pending.try_reserve(1).is_err() {
                return Some(Err(ENOMEM));
            }
            // Its lock is taken within that of the one that listens, and by nobody else yet.
            if let Some(server) = &server {
                server.end.state.lock().name = name;
            }
            other.pending.extend(server.take());
            let rung = other.waiters.take(READS);
            drop(other);
            rung.ring();
            Some(Ok(listener))
        });
        match connected {
            Ok(listener) => self.end.state.lock().other = listener,
            Err(error) => {
                self.unclaim();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Connects this side, so that nobody else does meanwhile.
    fn claim(&self, peer: &Arc<End>) -> Result<(), Error> {
        let mut state = self.end.state.lock();
        match state.phase {
            Phase::New => {}
            Phase::Connected => return Err(EISCONN),
            _ => return Err(EINVAL),
        }
        state.phase = Phase::Connected;
        state.peer = Some(peer.clone());
        Ok(())
    }

    fn unclaim(&self) {
        let mut state = self.end.state.lock();
        state.phase = Phase::New;
        let peer = state.peer.take();
        drop(state);
        drop(peer);
    }
}
