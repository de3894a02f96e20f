//! Bytes that come and go.

use super::{Inet, State};
use crate::errno::{ECONNRESET, EIO, ENOMEM, ENOTCONN, EPIPE, Error};
use crate::sockets::Patience;
use crate::sockets::local::wait;
use crate::sockets::network::why;
use crate::task::Task;
use interfaces::{Failure, RVec, SocketError, SocketPhase};

type Result<T> = core::result::Result<T, Error>;

/// The most bytes that go to the stack, or come from it, in one call.
const CHUNK: usize = 64 << 10;

impl Inet {
    /// Receives some bytes, `least` if it can; how many, none at the end. `looks`: they stay.
    pub fn receive(
        &self,
        task: &Task,
        to: &mut [u8],
        looks: bool,
        (least, patience): (usize, Patience),
    ) -> Result<usize> {
        let mut done = 0;
        loop {
            let rest = to.get_mut(done..).unwrap_or_default();
            let received = wait(task, patience, || {
                let found = self
                    .watch(task)
                    .and_then(|()| self.receive_now(rest, looks));
                self.settle(found.transpose(), patience)
            });
            match received {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
            if received == Ok(0) || looks || done >= least || task.is_ending() {
                return Ok(done);
            }
        }
    }

    /// Puts back what was received and could not be handed over.
    pub fn give_back(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        if state.back.try_reserve(bytes.len()).is_ok() {
            state.back.extend_from_slice(bytes);
            state.back.rotate_right(bytes.len());
        }
    }

    fn receive_now(&self, to: &mut [u8], looks: bool) -> Result<Option<usize>> {
        let mut state = self.state.lock();
        if !state.back.is_empty() {
            return Ok(Some(state.take_back(to, looks)));
        }
        let seen = self.look(&mut state);
        let (line, seen) = match (&state.line, seen) {
            _ if state.no_reads || to.is_empty() => return Ok(Some(0)),
            (Some(line), Some(seen)) => (line, seen),
            _ => return state.told_at_end(),
        };
        let count = to.len().min(CHUNK).min(seen.readable as usize);
        if count > 0 && !matches!(seen.phase, SocketPhase::Listening) {
            let room = RVec::filled(0, count).map_err(|_| ENOMEM)?;
            let bytes = line.socket.receive(room, looks);
            let bytes = bytes.map_err(|error| self.refused(&mut state, error))?;
            let to = to.get_mut(..bytes.len()).ok_or(EIO)?;
            to.copy_from_slice(&bytes);
            return Ok(Some(bytes.len()).filter(|count| *count > 0));
        }
        match seen.phase {
            SocketPhase::Opening => Ok(None),
            SocketPhase::Open if seen.has_ended => Ok(Some(0)),
            SocketPhase::Open => Ok(None),
            SocketPhase::Over => state.told_at_end(),
            SocketPhase::Idle | SocketPhase::Listening => Err(ENOTCONN),
        }
    }

    /// Sends bytes, all of them if it waits; how many.
    pub fn send(&self, task: &Task, bytes: &[u8], patience: Patience) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let sent = wait(task, patience, || {
                let sent = self.watch(task).and_then(|()| self.send_now(rest));
                self.settle(sent.transpose(), patience)
            });
            match sent {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn send_now(&self, bytes: &[u8]) -> Result<Option<usize>> {
        let mut state = self.state.lock();
        let seen = self.look(&mut state);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let (Some(line), Some(seen)) = (&state.line, seen) else {
            return Err(EPIPE);
        };
        match seen.phase {
            _ if state.no_writes => Err(EPIPE),
            SocketPhase::Opening => Ok(None),
            SocketPhase::Open => {
                let count = bytes.len().min(CHUNK).min(seen.room as usize);
                if count == 0 {
                    return Ok(None);
                }
                let bytes = RVec::from_slice(&bytes[..count]).map_err(|_| ENOMEM)?;
                let sent = line.socket.send(&bytes);
                let sent = sent.map_err(|error| self.refused(&mut state, error))?;
                Ok(Some(count.min(sent as usize)).filter(|count| *count > 0))
            }
            _ => Err(EPIPE),
        }
    }

    /// What is told of an error of the stack's while bytes move.
    fn refused(&self, state: &mut State, error: SocketError) -> Error {
        match error {
            SocketError::Wrong => EPIPE,
            error if error.is_gone() => {
                self.lose(state);
                state.error.take().unwrap_or(ECONNRESET)
            }
            error => why(error),
        }
    }
}

impl State {
    /// Takes of what was put back, or shows it.
    fn take_back(&mut self, to: &mut [u8], looks: bool) -> usize {
        let count = to.len().min(self.back.len());
        for (to, from) in to.iter_mut().zip(&self.back) {
            *to = *from;
        }
        if !looks {
            self.back.drain(..count);
        }
        count
    }

    /// What a reader is told at the end: the error, if nobody was told.
    fn told_at_end(&mut self) -> Result<Option<usize>> {
        match self.error.take() {
            Some(error) => Err(error),
            None if self.was_open => Ok(Some(0)),
            None => Err(ENOTCONN),
        }
    }
}
