//! Messages in several pieces, and what goes beside their bytes (`sendmsg(2)`, `cmsg(3)`).

use super::address::LONGEST;
use super::{MSG_CTRUNC, Sender};
use crate::errno::{EBADF, EINVAL, EMSGSIZE, ENOBUFS, ENOMEM, Error};
use crate::memory::{Memory, read_words, write};
use alloc::vec::Vec;

/// The most pieces of a message.
pub const MOST_PIECES: u64 = 1024;
/// The most descriptors that go with a message (`SCM_MAX_FD`).
pub const MOST_RIGHTS: usize = 253;
/// The most bytes of control data that are sent.
const MOST_CONTROL: u64 = 20_480;
/// The most that are received: both kinds that there are, each with as much as it can have.
const MOST_TOLD: usize = 4096;
/// Words of the header, and where the flags are among its bytes.
const WORDS: usize = 7;
const LENGTH_OF_NAME: u64 = 8;
const LENGTH_OF_CONTROL: u64 = 40;
const FLAGS: u64 = 48;
/// Bytes in front of each part of control data.
const FRONT: usize = 16;
/// The level of what concerns all sockets, and the kinds of control data there.
pub const SOL_SOCKET: u32 = 1;
const SCM_RIGHTS: u32 = 1;
const SCM_CREDENTIALS: u32 = 2;

/// A `struct msghdr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where the structure stands.
    at: u64,
    /// Where the address stands or goes to (0: nowhere), and its bytes.
    pub name: u64,
    /// See `name`.
    pub name_length: usize,
    /// Where the list of pieces stands, and how many there are.
    pub pieces: u64,
    /// See `pieces`.
    pub count: u64,
    /// Where control data stands or goes to, and its bytes.
    pub control: u64,
    /// See `control`.
    pub control_length: u64,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// `EFAULT`; `EINVAL`, `EMSGSIZE`: a length is wrong; too many pieces.
    pub fn read(space: &impl Memory, at: u64) -> Result<Self, Error> {
        let [name, length, pieces, count, control, control_length, _] =
            read_words::<WORDS>(space, at)?;
        let length = length as u32;
        if length as i32 <= -1 {
            return Err(EINVAL);
        }
        if count > MOST_PIECES {
            return Err(EMSGSIZE);
        }
        Ok(Header {
            at,
            name,
            name_length: if name == 0 {
                0
            } else {
                (length as usize).min(LONGEST)
            },
            pieces,
            count,
            control,
            control_length: if control == 0 { 0 } else { control_length },
        })
    }

    /// Writes what a receiver is told: the length of the address that the message came from, if it
    /// asked for one; bytes of control data; flags.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn tell(
        &self,
        space: &impl Memory,
        name: u32,
        control: u64,
        flags: u64,
    ) -> Result<(), Error> {
        let at = |offset| self.at.wrapping_add(offset);
        if self.name != 0 {
            write(space, at(LENGTH_OF_NAME), &name.to_le_bytes())?;
        }
        write(space, at(LENGTH_OF_CONTROL), &control.to_le_bytes())?;
        write(space, at(FLAGS), &(flags as u32).to_le_bytes())
    }

    /// Reads the control data that is to be sent.
    ///
    /// # Errors
    /// `EFAULT`, `ENOMEM`; `ENOBUFS`: too much.
    pub fn control(&self, space: &impl Memory) -> Result<Vec<u8>, Error> {
        if self.control_length > MOST_CONTROL {
            return Err(ENOBUFS);
        }
        let length = self.control_length as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| ENOMEM)?;
        bytes.resize(length, 0);
        crate::memory::read(space, self.control, &mut bytes)?;
        Ok(bytes)
    }
}

/// What a sender asks to go beside the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Descriptors.
    pub rights: Vec<u32>,
    /// Whom the message is said to be from.
    pub sender: Option<Sender>,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

impl Beside {
    /// From control data.
    ///
    /// # Errors
    /// `EINVAL`: a length is wrong, or the kind is not known; too many descriptors. `EBADF`: one is
    /// negative. `ENOMEM`.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut beside = Beside::default();
        while let (Some(length), Some(level), Some(kind)) =
            (long(bytes, 0), number(bytes, 8), number(bytes, 12))
        {
            let length = usize::try_from(length).map_err(|_| EINVAL)?;
            let data = bytes.get(FRONT..length).ok_or(EINVAL)?;
            match (level, kind) {
                (SOL_SOCKET, SCM_RIGHTS) => beside.add_rights(data)?,
                (SOL_SOCKET, SCM_CREDENTIALS) => {
                    let data: &[u8; 12] = data.try_into().map_err(|_| EINVAL)?;
                    beside.sender = Some(Sender::from_bytes(data));
                }
                (SOL_SOCKET, _) => return Err(EINVAL),
                // It is for a protocol that this socket does not have.
                _ => {}
            }
            bytes = bytes.get(length.next_multiple_of(8)..).unwrap_or_default();
        }
        Ok(beside)
    }

    fn add_rights(&mut self, data: &[u8]) -> Result<(), Error> {
        let (words, _) = data.as_chunks();
        if self.rights.len() + words.len() > MOST_RIGHTS {
            return Err(EINVAL);
        }
        self.rights.try_reserve(words.len()).map_err(|_| ENOMEM)?;
        for word in words {
            let descriptor = i32::from_le_bytes(*word);
            self.rights
                .push(u32::try_from(descriptor).map_err(|_| EBADF)?);
        }
        Ok(())
    }
}

/// Control data for a receiver, of as much room as that has.
#[derive(Debug)]
pub struct Told {
    bytes: Vec<u8>,
    room: usize,
    is_cut: bool,
}

impl Told {
    /// None yet.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(room: u64) -> Result<Self, Error> {
        let room = room.min(MOST_TOLD as u64) as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(room).map_err(|_| ENOMEM)?;
        Ok(Told {
            bytes,
            room,
            is_cut: false,
        })
    }

    fn left(&self) -> usize {
        self.room - self.bytes.len()
    }

    /// How many of `count` descriptors there is room for.
    pub fn room_for_rights(&mut self, count: usize) -> usize {
        let room = self.left().saturating_sub(FRONT) / 4;
        self.is_cut |= room < count;
        room.min(count)
    }

    /// Tells of descriptors, for which there is room.
    pub fn rights(&mut self, descriptors: &[u32]) {
        let (mut data, mut length) = ([0; 4 * MOST_RIGHTS], 0);
        for (place, it) in data.as_chunks_mut().0.iter_mut().zip(descriptors) {
            *place = it.to_le_bytes();
            length += 4;
        }
        self.put(SCM_RIGHTS, data.get(..length).unwrap_or_default());
    }

    /// Tells who has sent it.
    pub fn sender(&mut self, sender: Sender) {
        self.put(SCM_CREDENTIALS, &sender.bytes());
    }

    /// Some descriptors that came could not be told of.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    fn put(&mut self, kind: u32, data: &[u8]) {
        let room = self.left();
        if room < FRONT {
            self.is_cut = true;
            return;
        }
        let told = data.len().min(room - FRONT);
        self.is_cut |= told < data.len();
        let length = (FRONT + told) as u64;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&SOL_SOCKET.to_le_bytes());
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes
            .extend_from_slice(data.get(..told).unwrap_or_default());
        let end = self.bytes.len().next_multiple_of(8).min(self.room);
        self.bytes.resize(end, 0);
    }

    /// What is to be written, and the flags that go with it.
    pub fn bytes(&self) -> (&[u8], u64) {
        (&self.bytes, if self.is_cut { MSG_CTRUNC } else { 0 })
    }
}

#[cfg(test)]
mod tests;
