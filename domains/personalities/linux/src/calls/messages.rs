//! What is sent and received over sockets (`send(2)`, `recv(2)`, `cmsg(3)`).

use super::Result;
use super::io::MOST_BYTES;
use crate::errno::{EBADF, EINVAL, EMSGSIZE, ENOMEM, EOPNOTSUPP, EPERM, EPIPE, SIGPIPE};
use crate::lent::run;
use crate::memory;
use crate::sockets::rights::{Paid, Right};
use crate::sockets::{Sending, Socket, socket_of};
use crate::task::Task;
use alloc::vec::Vec;
use domain_rt::time;
use domain_rt::user::UserSegment;
use linux::socket::inbox::{How, Taken};
use linux::socket::message::{Beside, Header, MOST_RIGHTS, Told};
use linux::socket::{
    Kind, MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
    Sender,
};

/// Waits for one message of several only (`recvmmsg`).
const MSG_WAITFORONE: u64 = 0x1_0000;
/// Bytes of a message in a list of them, and where the count of its bytes is.
const STRIDE: u64 = 64;
const COUNT: u64 = 56;
/// The most messages of a call.
const MOST_MESSAGES: u64 = 1024;

/// What goes with the bytes of a message that is sent.
#[derive(Default)]
struct With {
    to: Vec<u8>,
    rights: Vec<Right>,
    sender: Option<Sender>,
}

fn total(runs: &[UserSegment]) -> u64 {
    runs.iter().map(|run| run.length).sum()
}

impl Task {
    /// Sends runs of the program's memory.
    pub(super) fn send_runs(
        &mut self,
        socket: &Socket,
        runs: &[UserSegment],
        flags: u64,
    ) -> Result<u64> {
        self.send_with(socket, runs, flags, With::default())
    }

    /// Sends runs of the program's memory: of a stream a part after the other, and others whole.
    fn send_with(
        &mut self,
        socket: &Socket,
        runs: &[UserSegment],
        flags: u64,
        mut with: With,
    ) -> Result<u64> {
        if flags & MSG_OOB != 0 {
            return Err(EOPNOTSUPP);
        }
        let (total, is_stream) = (total(runs), socket.kind == Kind::Stream);
        if !is_stream && total > MOST_BYTES {
            return Err(EMSGSIZE);
        }
        let patience = socket.patience(flags, false);
        let mut done = 0;
        for _ in 0..=total / MOST_BYTES {
            let part = MOST_BYTES.min(total - done);
            let now = core::mem::take(&mut with);
            let sent = self.with_buffer(part, |task, buffer| {
                task.gather(runs, done, buffer)?;
                let message = Sending {
                    bytes: buffer,
                    to: &now.to,
                    rights: now.rights,
                    sender: now.sender,
                };
                socket.send(task, message, patience)
            });
            match sent {
                Ok(count) => done += count as u64,
                Err(_) if done > 0 => break,
                Err(EPIPE) if is_stream && flags & MSG_NOSIGNAL == 0 => {
                    let info = self.by_self(SIGPIPE);
                    self.process.signal_thread(self.id, info, Some(self));
                    return Err(EPIPE);
                }
                Err(error) => return Err(error),
            }
            if done == total || sent != Ok(part as usize) {
                break;
            }
        }
        Ok(done)
    }

    /// Receives to runs of the program's memory.
    pub(super) fn receive_runs(
        &mut self,
        socket: &Socket,
        runs: &[UserSegment],
        flags: u64,
    ) -> Result<usize> {
        let taken = self.receive_taken(socket, runs, flags)?;
        Ok(told_count(socket, &taken, flags))
    }

    fn receive_taken(
        &mut self,
        socket: &Socket,
        runs: &[UserSegment],
        flags: u64,
    ) -> Result<Taken<Right, Paid>> {
        if flags & MSG_OOB != 0 {
            // Nothing ever comes out of turn.
            let is_stream = socket.kind == Kind::Stream;
            return Err(if is_stream { EINVAL } else { EOPNOTSUPP });
        }
        let options = socket.options();
        let how = How {
            looks: flags & MSG_PEEK != 0,
            by_sender: options.tells_sender(),
        };
        let room = total(runs).min(MOST_BYTES) as usize;
        let least = match flags & MSG_WAITALL {
            0 => room.min(options.low_water as usize),
            _ => room,
        };
        let patience = socket.patience(flags, true);
        self.with_buffer(room as u64, |task, buffer| {
            let mut taken = socket.receive(task, buffer, how, (least, patience))?;
            let bytes = &buffer[..taken.count];
            if let Err(error) = task.scatter(runs, 0, bytes) {
                if !how.looks {
                    socket.give_back(bytes, &mut taken);
                }
                return Err(error);
            }
            Ok(taken)
        })
    }

    /// `sendto`: socket, bytes, how many, flags, address, its bytes.
    pub(super) fn send_to(&mut self, a: [u64; 6]) -> Result<u64> {
        let open = self.opened(a[0])?;
        let socket = socket_of(&open)?;
        let with = With {
            to: match a[4] {
                0 => Vec::new(),
                at => self.address(at, a[5])?,
            },
            ..With::default()
        };
        let run = run(a[1], a[2].min(super::io::MOST_MOVED));
        self.send_with(socket, &[run], a[3], with)
    }

    /// `recvfrom`, likewise: the address goes there, and how many bytes it has.
    pub(super) fn receive_from(&mut self, a: [u64; 6]) -> Result<u64> {
        let open = self.opened(a[0])?;
        let socket = socket_of(&open)?;
        let run = run(a[1], a[2].min(super::io::MOST_MOVED));
        let taken = self.receive_taken(socket, &[run], a[3])?;
        if a[4] != 0 {
            self.put_address(&from(&taken)?, (a[4], a[5]))?;
        }
        Ok(told_count(socket, &taken, a[3]) as u64)
    }

    /// `sendmsg`.
    pub(super) fn send_message(&mut self, descriptor: u64, at: u64, flags: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let socket = socket_of(&open)?;
        let header = Header::read(&self.program.mm.space, at)?;
        let pieces = self.pieces(header.pieces, header.count)?;
        let to = match header.name_length {
            0 => Vec::new(),
            length => self.address(header.name, length as u64)?,
        };
        let control = header.control(&self.program.mm.space)?;
        let beside = Beside::from_bytes(&control)?;
        if let Some(sender) = beside.sender {
            self.check_sender(sender)?;
        }
        let mut rights = Vec::new();
        let count = beside.rights.len();
        rights.try_reserve_exact(count).map_err(|_| ENOMEM)?;
        for descriptor in beside.rights {
            rights.push(self.opened(descriptor.into()).map_err(|_| EBADF)?);
        }
        let sender = beside.sender;
        let with = With { to, rights, sender };
        self.send_with(socket, &pieces, flags, with)
    }

    /// Whether this one may say that it is that one.
    fn check_sender(&self, sender: Sender) -> Result<()> {
        let cred = self.process.cred();
        let is_own = |ids: &linux::cred::Ids, id: u32| {
            id == ids.real || id == ids.effective || id == ids.saved
        };
        let may = sender.process == self.process.id
            && is_own(&cred.user, sender.user)
            && is_own(&cred.group, sender.group);
        match may || cred.is_root() {
            true => Ok(()),
            false => Err(EPERM),
        }
    }

    /// `recvmsg`.
    pub(super) fn receive_message(&mut self, descriptor: u64, at: u64, flags: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let socket = socket_of(&open)?;
        let header = Header::read(&self.program.mm.space, at)?;
        let pieces = self.pieces(header.pieces, header.count)?;
        let mut taken = self.receive_taken(socket, &pieces, flags)?;
        let mut name = 0;
        if header.name != 0 {
            let from = from(&taken)?;
            let room = from.len().min(header.name_length);
            memory::write(&self.program.mm.space, header.name, &from[..room])?;
            name = from.len() as u32;
        }
        let mut told = Told::new(header.control_length)?;
        if socket.options().tells_sender() {
            told.sender(taken.sender);
        }
        let rights = core::mem::take(&mut taken.rights);
        let placed = self.place_rights(&mut told, rights, flags);
        let (control, cut) = told.bytes();
        let is_cut = socket.kind != Kind::Stream && taken.whole > total(&pieces) as usize;
        let cut = cut | if is_cut { MSG_TRUNC } else { 0 } | flags & MSG_CMSG_CLOEXEC;
        let space = &self.program.mm.space;
        let tell = memory::write(space, header.control, control)
            .and_then(|()| header.tell(space, name, control.len() as u64, cut));
        if let Err(error) = tell {
            // Nobody knows of them.
            for descriptor in placed {
                let _ = self.close(descriptor.into());
            }
            return Err(error);
        }
        Ok(told_count(socket, &taken, flags) as u64)
    }

    /// Gives the program descriptors for what has come, as many as it can have.
    fn place_rights(&mut self, told: &mut Told, rights: Vec<Right>, flags: u64) -> Vec<u32> {
        let mut placed = Vec::new();
        if rights.is_empty() {
            return placed;
        }
        let room = told.room_for_rights(rights.len());
        if placed.try_reserve_exact(room.min(MOST_RIGHTS)).is_err() {
            told.cut();
            return placed;
        }
        let closes = flags & MSG_CMSG_CLOEXEC != 0;
        for right in rights.into_iter().take(room) {
            match self.place(right, 0, closes) {
                Ok(descriptor) => placed.push(descriptor as u32),
                Err(_) => {
                    told.cut();
                    break;
                }
            }
        }
        if !placed.is_empty() {
            told.rights(&placed);
        }
        placed
    }

    /// Does something with each message of a list; how many, unless it was none.
    fn each_message(
        &mut self,
        at: u64,
        count: u64,
        mut act: impl FnMut(&mut Self, u64, u64) -> Result<u64>,
    ) -> Result<u64> {
        let mut done = 0;
        for index in 0..count.min(MOST_MESSAGES) {
            let place = at.wrapping_add(STRIDE * index);
            let result = act(self, place, index).and_then(|count| {
                let count = count as u32;
                memory::write(
                    &self.program.mm.space,
                    place.wrapping_add(COUNT),
                    &count.to_le_bytes(),
                )
            });
            match result {
                Ok(()) => done += 1,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// `sendmmsg`: socket, list, how many, flags.
    pub(super) fn send_messages(&mut self, a: [u64; 4]) -> Result<u64> {
        self.each_message(a[1], a[2] & 0xffff_ffff, |task, at, _| {
            task.send_message(a[0], at, a[3])
        })
    }

    /// `recvmmsg`: socket, list, how many, flags, how long at most.
    pub(super) fn receive_messages(&mut self, a: [u64; 5]) -> Result<u64> {
        let deadline = self.end_of_wait(a[4], super::waits::SECOND)?;
        self.each_message(a[1], a[2] & 0xffff_ffff, |task, at, index| {
            let is_over = deadline.is_some_and(|end| time::now() >= end);
            let waits = index == 0 || a[3] & MSG_WAITFORONE == 0;
            if is_over && index > 0 {
                return Err(EINVAL);
            }
            let flags = a[3] & !MSG_WAITFORONE | if waits { 0 } else { MSG_DONTWAIT };
            task.receive_message(a[0], at, flags)
        })
    }
}

/// What a call says that it has received.
fn told_count(socket: &Socket, taken: &Taken<Right, Paid>, flags: u64) -> usize {
    match flags & MSG_TRUNC != 0 && socket.kind != Kind::Stream {
        true => taken.whole,
        false => taken.count,
    }
}

/// The address that something came from; nothing: of no name.
fn from(taken: &Taken<Right, Paid>) -> Result<Vec<u8>> {
    match &taken.from {
        Some(name) => name.bytes(),
        None => Ok(Vec::new()),
    }
}
