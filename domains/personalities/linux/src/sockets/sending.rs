//! Sending over sockets of this machine: what each message costs, what goes with it, and where it
//! is put.

use super::Patience;
use super::local::{End, Local, Phase, real, wait};
use super::rights::{self, Paid, Right};
use crate::bells::{Bell, READS, WRITES};
use crate::errno::{
    EAGAIN, ECONNREFUSED, ENOBUFS, ENOTCONN, EPERM, EPIPE, EPROTOTYPE, ETOOMANYREFS, Error,
};
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux::socket::inbox::{Letter, cost};
use linux::socket::{Kind, NOBODY, Sender};

/// Datagrams that wait at most in a socket that is not connected to the sender.
const MOST_WAITING: usize = 10;
/// What a descriptor costs that goes with a message, in bytes.
const COST_OF_RIGHT: usize = 8;

/// A message that is on its way, or a stream's piece after piece.
pub struct Post<'a> {
    pub local: &'a Local,
    pub task: &'a Task,
    pub to: Option<Arc<End>>,
    /// They go with the first piece.
    pub rights: Vec<Right>,
    pub sender: Option<Sender>,
    pub buffer: usize,
    pub patience: Patience,
}

impl Post<'_> {
    /// Sends one piece.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (task, patience) = (self.task, self.patience);
        let bell = Bell::of(&task.ears);
        wait(task, patience, || {
            let target = match self.target(&bell) {
                Ok(Some(target)) => target,
                Ok(None) if patience.never_waits => return Some(Err(EAGAIN)),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            match self.put_into(&target, bytes, &bell) {
                Ok(true) => Some(Ok(())),
                Ok(false) if patience.never_waits => Some(Err(EAGAIN)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            }
        })
    }

    /// The end that it goes to; nothing: there is no room for more of this one's.
    fn target(&self, bell: &Bell) -> Result<Option<Arc<End>>, Error> {
        let end = &self.local.end;
        let mut state = end.state.lock();
        // A stream has ended, whatever else is wrong.
        if end.kind == Kind::Stream && state.shut[1] {
            return Err(EPIPE);
        }
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.shut[1] {
            return Err(EPIPE);
        }
        let target = match &self.to {
            Some(target) => target.clone(),
            None if state.phase == Phase::Connected => state.peer.clone().ok_or(ENOTCONN)?,
            None => return Err(ENOTCONN),
        };
        if end.out.load(Ordering::Relaxed) >= self.buffer {
            state.waiters.add(bell, WRITES)?;
            return Ok(None);
        }
        Ok(Some(target))
    }

    /// Puts it into an end; `false`: that takes no more for now.
    fn put_into(&mut self, to: &Arc<End>, bytes: &[u8], bell: &Bell) -> Result<bool, Error> {
        let end = &self.local.end;
        let system = &self.task.process.system;
        let _passing = rights::has_sockets(&self.rights).then(|| system.passing.lock());
        rights::check(&self.rights, to)?;
        let mut letter = Some(self.letter(to, bytes.len())?);
        let put = to.accept_from(end, bytes, &mut letter, bell);
        if let Some(letter) = letter {
            // It is tried again.
            self.rights = letter.rights;
        }
        match put {
            // A socket that has gone is not asked again.
            Err(ECONNREFUSED) if self.to.is_none() => {
                let mut state = end.state.lock();
                state.phase = Phase::New;
                let before = state.peer.take();
                drop(state);
                drop(before);
                Err(ECONNREFUSED)
            }
            put => put,
        }
    }

    /// The letter that goes with so many bytes, which is paid for.
    fn letter(&mut self, to: &End, length: usize) -> Result<Letter<Right, Paid>, Error> {
        let end = &self.local.end;
        let user = self.task.process.owner.user();
        let bytes = cost(length) + COST_OF_RIGHT * self.rights.len();
        let tells = |end: &End| end.tells_sender.load(Ordering::Relaxed);
        let sender = match self.sender {
            Some(sender) => sender,
            None if tells(end) || tells(to) => real(self.task),
            None => NOBODY,
        };
        let flying = match self.rights.len() {
            0 => None,
            count => {
                let most = self.task.most_files() as u64;
                Some(user.send_rights(count as u64, most).ok_or(ETOOMANYREFS)?)
            }
        };
        let held = user.hold(bytes as u64).map_err(|_| ENOBUFS)?;
        end.out.fetch_add(bytes, Ordering::Relaxed);
        let from = end.state.lock().name.clone();
        Ok(Letter {
            from,
            sender,
            rights: core::mem::take(&mut self.rights),
            charge: Paid {
                sender: end.clone(),
                bytes,
                held,
                flying,
            },
        })
    }
}

impl End {
    /// Whether a datagram of that end's can be put here; if not, `bell` hears of a change.
    pub fn takes_from(&self, from: &End, bell: &Bell) -> bool {
        let mut state = self.state.lock();
        let takes = state.is_peer(from) || state.inbox.len() <= MOST_WAITING;
        takes || state.room.add(bell, WRITES).is_err()
    }

    /// Takes a message of another end's; `false`: not now.
    fn accept_from(
        &self,
        from: &End,
        bytes: &[u8],
        letter: &mut Option<Letter<Right, Paid>>,
        bell: &Bell,
    ) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if state.phase == Phase::Closed {
            return Err(if self.kind.connects() {
                EPIPE
            } else {
                ECONNREFUSED
            });
        }
        if self.kind != from.kind {
            return Err(EPROTOTYPE);
        }
        if state.shut[0] {
            return Err(EPIPE);
        }
        if self.kind == Kind::Datagram {
            let is_own = core::ptr::eq(self, from);
            let is_peer = state.is_peer(from);
            if state.peer.is_some() && !is_peer {
                return Err(EPERM);
            }
            if !is_own && !is_peer && state.inbox.len() > MOST_WAITING {
                state.room.add(bell, WRITES)?;
                return Ok(false);
            }
        }
        state.inbox.push(bytes, letter)?;
        let rung = state.waiters.take(READS);
        drop(state);
        rung.ring();
        Ok(true)
    }
}
