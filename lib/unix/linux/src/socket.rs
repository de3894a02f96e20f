//! Sockets as programs see them (`socket(2)`, `unix(7)`), without whoever waits at them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`address`] | names of sockets (`sockaddr_un`, `sockaddr_in`) |
//! | [`message`] | messages in several pieces, and what goes beside their bytes (`struct msghdr`) |
//! | [`options`] | what `setsockopt` sets and `getsockopt` tells |
//! | [`inbox`] | what was sent to a socket and is still to be received |
//!
//! All of it comes from programs, and each number in it may be wrong.

use crate::errno::{EINVAL, ESOCKTNOSUPPORT, Error};

pub mod address;
pub mod inbox;
pub mod message;
pub mod options;

/// Sockets of this machine, and those of IPv4.
pub const AF_UNIX: u16 = 1;
/// See [`AF_UNIX`].
pub const AF_INET: u16 = 2;

/// Flags of the type that `socket` is given: what would wait is an error; `exec` closes it.
pub const SOCK_NONBLOCK: u64 = 0x800;
/// See [`SOCK_NONBLOCK`].
pub const SOCK_CLOEXEC: u64 = 0x8_0000;

/// Flags of calls that send and receive: the bytes stay where they are.
pub const MSG_PEEK: u64 = 2;
/// The rest of control data had no room.
pub const MSG_CTRUNC: u64 = 8;
/// The message was longer, or is told of as it was.
pub const MSG_TRUNC: u64 = 0x20;
/// What would wait is an error.
pub const MSG_DONTWAIT: u64 = 0x40;
/// Here a record ends.
pub const MSG_EOR: u64 = 0x80;
/// All bytes that are asked for, not some.
pub const MSG_WAITALL: u64 = 0x100;
/// No SIGPIPE.
pub const MSG_NOSIGNAL: u64 = 0x4000;
/// More follows.
pub const MSG_MORE: u64 = 0x8000;
/// `exec` closes descriptors that come.
pub const MSG_CMSG_CLOEXEC: u64 = 0x4000_0000;
/// A byte out of turn, which no socket of ours has.
pub const MSG_OOB: u64 = 1;

/// How a socket moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A stream without boundaries.
    Stream,
    /// Messages, each for itself.
    Datagram,
    /// Messages over a connection.
    Packets,
}

impl Kind {
    /// The type that `socket` is given, and its flags.
    ///
    /// # Errors
    /// `EINVAL`, `ESOCKTNOSUPPORT`: no such type.
    pub fn of(kind: u64) -> Result<(Self, u64), Error> {
        let flags = kind & !0xf;
        if flags & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
            return Err(EINVAL);
        }
        match kind & 0xf {
            1 => Ok((Kind::Stream, flags)),
            // A raw socket of this machine has always been one of datagrams.
            2 | 3 => Ok((Kind::Datagram, flags)),
            5 => Ok((Kind::Packets, flags)),
            0 | 4 | 6 | 10 => Err(ESOCKTNOSUPPORT),
            _ => Err(EINVAL),
        }
    }

    /// As `SO_TYPE` tells it.
    pub fn number(self) -> u32 {
        match self {
            Kind::Stream => 1,
            Kind::Datagram => 2,
            Kind::Packets => 5,
        }
    }

    /// Whether it has connections.
    pub fn connects(self) -> bool {
        self != Kind::Datagram
    }
}

/// The sender of something (`struct ucred`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The process.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// Of nobody: 65534 is the user that has no other number.
pub const NOBODY: Sender = Sender {
    process: 0,
    user: 65534,
    group: 65534,
};

impl Sender {
    /// As the structure.
    pub fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let numbers = [self.process, self.user, self.group];
        for (place, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        bytes
    }

    /// From the structure.
    pub fn from_bytes(bytes: &[u8; 12]) -> Self {
        let (words, _) = bytes.as_chunks();
        let number = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        Sender {
            process: number(0),
            user: number(1),
            group: number(2),
        }
    }
}
