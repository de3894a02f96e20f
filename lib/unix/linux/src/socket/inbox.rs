//! What was sent to a socket and is still to be received: bytes, and what goes beside them.
//!
//! Nobody waits here, and nothing is dropped here that may be the last of its kind: descriptors and
//! charges are handed out, so that their owner can let go of them when nothing is locked.

use super::address::Name;
use super::{Kind, Sender};
use crate::errno::{ENOMEM, Error};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes of a stream that are kept as one piece at most, though they were sent in several.
const JOINED: usize = 16 << 10;
/// What each message costs but for its bytes.
const FRONT: usize = 256;

/// What a message of so many bytes costs its sender, as long as it is not received.
pub fn cost(bytes: usize) -> usize {
    bytes.saturating_add(FRONT)
}

/// What is paid for messages that wait; it is paid back when this is dropped.
pub trait Charge {
    /// Pays for both together.
    fn join(&mut self, more: Self);
}

/// What goes beside the bytes of a message.
pub struct Letter<R, C> {
    /// The name of the socket that it comes from.
    pub from: Option<Arc<Name>>,
    /// Its sender.
    pub sender: Sender,
    /// Descriptors.
    pub rights: Vec<R>,
    /// What is paid for it.
    pub charge: C,
}

struct Piece<R, C> {
    bytes: Vec<u8>,
    /// How many of them are received.
    taken: usize,
    letter: Letter<R, C>,
}

impl<R, C> Piece<R, C> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }
}

/// How somebody receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// What is received stays.
    pub looks: bool,
    /// Bytes of several senders do not come as one.
    pub by_sender: bool,
}

/// What was received.
pub struct Taken<R, C> {
    /// How many bytes.
    pub count: usize,
    /// How many the message had.
    pub whole: usize,
    /// See [`Letter`].
    pub from: Option<Arc<Name>>,
    /// See [`Letter`].
    pub sender: Sender,
    /// See [`Letter`].
    pub rights: Vec<R>,
    /// What was paid for those messages that are gone now.
    pub charge: Option<C>,
}

/// What was sent to a socket.
pub struct Inbox<R, C> {
    kind: Kind,
    pieces: VecDeque<Piece<R, C>>,
    bytes: usize,
}

/// What was in an inbox, to be dropped.
pub struct Contents<R, C>(VecDeque<Piece<R, C>>);

impl<R, C> Contents<R, C> {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a descriptor out. Messages that had none, or no more, are dropped on the way.
    pub fn next_right(&mut self) -> Option<R> {
        while let Some(piece) = self.0.front_mut() {
            if let Some(right) = piece.letter.rights.pop() {
                return Some(right);
            }
            self.0.pop_front();
        }
        None
    }
}

impl<R: Clone, C: Charge> Inbox<R, C> {
    /// An empty one.
    pub fn new(kind: Kind) -> Self {
        Inbox {
            kind,
            pieces: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether nothing is to be received.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// How many bytes can be received: of datagrams, those of the first.
    pub fn bytes(&self) -> usize {
        match self.kind {
            Kind::Datagram => self.pieces.front().map_or(0, |it| it.bytes.len()),
            _ => self.bytes,
        }
    }

    /// Whether a descriptor in it is of some sort.
    pub fn has_right(&self, is_so: impl Fn(&R) -> bool) -> bool {
        let mut rights = self.pieces.iter().map(|piece| &piece.letter.rights);
        rights.any(|rights| rights.iter().any(&is_so))
    }

    /// Adds a message; its letter is taken.
    ///
    /// # Errors
    /// `ENOMEM`: nothing is added, and the letter is left.
    pub fn push(&mut self, bytes: &[u8], letter: &mut Option<Letter<R, C>>) -> Result<(), Error> {
        let Some(given) = letter else {
            return Ok(());
        };
        let last = self.pieces.back_mut();
        if let Some(last) = last.filter(|last| joins(self.kind, last, bytes, given)) {
            last.bytes.try_reserve(bytes.len()).map_err(|_| ENOMEM)?;
            last.bytes.extend_from_slice(bytes);
            if let Some(given) = letter.take() {
                last.letter.charge.join(given.charge);
            }
        } else {
            self.pieces.try_reserve(1).map_err(|_| ENOMEM)?;
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len()).map_err(|_| ENOMEM)?;
            copy.extend_from_slice(bytes);
            let piece = letter.take().map(|letter| Piece {
                bytes: copy,
                taken: 0,
                letter,
            });
            self.pieces.extend(piece);
        }
        self.bytes += bytes.len();
        Ok(())
    }

    /// Receives; nothing where nothing is there. Of a stream come as many bytes as `to` has room
    /// for, but for those behind descriptors; of messages one.
    ///
    /// # Errors
    /// `ENOMEM`: to look at descriptors.
    pub fn take(&mut self, to: &mut [u8], how: How) -> Result<Option<Taken<R, C>>, Error> {
        let Some(first) = self.pieces.front() else {
            return Ok(None);
        };
        let mut taken = Taken {
            count: 0,
            whole: first.rest().len(),
            from: first.letter.from.clone(),
            sender: first.letter.sender,
            rights: Vec::new(),
            charge: None,
        };
        match how.looks {
            true => self.look(to, how, &mut taken)?,
            false => while self.take_piece(to, how, &mut taken) {},
        }
        Ok(Some(taken))
    }

    /// Whether the next bytes come together with those that are taken.
    fn follows(&self, piece: &Piece<R, C>, how: How, taken: &Taken<R, C>, room: usize) -> bool {
        let is_first = taken.count == 0 && taken.rights.is_empty();
        let is_same = !how.by_sender || piece.letter.sender == taken.sender;
        is_first || self.kind == Kind::Stream && room > 0 && is_same && taken.rights.is_empty()
    }

    /// Takes bytes of the first piece; whether more may come with them.
    fn take_piece(&mut self, to: &mut [u8], how: How, taken: &mut Taken<R, C>) -> bool {
        let room = to.get_mut(taken.count..).unwrap_or_default();
        match self.pieces.front() {
            Some(first) if self.follows(first, how, taken, room.len()) => {}
            _ => return false,
        }
        let Some(first) = self.pieces.front_mut() else {
            return false;
        };
        let count = copy(first.rest(), room);
        taken.count += count;
        taken.rights = core::mem::take(&mut first.letter.rights);
        first.taken += count;
        self.bytes -= count;
        let is_left = !first.rest().is_empty();
        if is_left && self.kind == Kind::Stream {
            return false;
        }
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes -= piece.rest().len();
            match &mut taken.charge {
                Some(charge) => charge.join(piece.letter.charge),
                none => *none = Some(piece.letter.charge),
            }
        }
        self.kind == Kind::Stream && taken.count > 0
    }

    fn look(&self, to: &mut [u8], how: How, taken: &mut Taken<R, C>) -> Result<(), Error> {
        for piece in &self.pieces {
            let room = to.get_mut(taken.count..).unwrap_or_default();
            if !self.follows(piece, how, taken, room.len()) {
                break;
            }
            let rights = &piece.letter.rights;
            taken
                .rights
                .try_reserve_exact(rights.len())
                .map_err(|_| ENOMEM)?;
            taken.rights.extend_from_slice(rights);
            taken.count += copy(piece.rest(), room);
            if self.kind != Kind::Stream || taken.count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Puts back what was taken of a stream and could not be handed over. It is left if there is no
    /// memory for that.
    pub fn give_back(&mut self, bytes: &[u8], taken: &mut Taken<R, C>) {
        let mut copy = Vec::new();
        let has_room = copy.try_reserve_exact(bytes.len()).is_ok();
        if !has_room || self.pieces.try_reserve(1).is_err() {
            return;
        }
        copy.extend_from_slice(bytes);
        let rights = core::mem::take(&mut taken.rights);
        // What is not paid for any more is the rest of a piece that still is.
        match (taken.charge.take(), self.pieces.front_mut()) {
            (Some(charge), _) => {
                let letter = Letter {
                    from: taken.from.take(),
                    sender: taken.sender,
                    rights,
                    charge,
                };
                self.pieces.push_front(Piece {
                    bytes: copy,
                    taken: 0,
                    letter,
                });
            }
            (None, Some(first)) if first.taken >= bytes.len() => {
                first.taken -= bytes.len();
                first.letter.rights = rights;
            }
            _ => return,
        }
        self.bytes += bytes.len();
    }

    /// Empties it.
    pub fn empty(&mut self) -> Contents<R, C> {
        self.bytes = 0;
        Contents(core::mem::take(&mut self.pieces))
    }
}

/// Whether bytes that are sent are added to those of the last piece.
fn joins<R, C>(kind: Kind, last: &Piece<R, C>, bytes: &[u8], letter: &Letter<R, C>) -> bool {
    kind == Kind::Stream
        && last.bytes.len() + bytes.len() <= JOINED
        && last.letter.sender == letter.sender
        && last.letter.rights.is_empty()
        && letter.rights.is_empty()
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..count), from.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

#[cfg(test)]
mod tests;
