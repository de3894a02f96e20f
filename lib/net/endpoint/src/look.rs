//! What can be seen of a socket.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::making::BUFFER;
use crate::stream::Failure;

/// How far a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has a port.
    Idle,
    /// It waits for its peer to answer.
    Opening,
    /// It is connected, perhaps one way only.
    Open,
    /// It was connected, or was to be.
    Over,
    /// It listens.
    Listening,
}

/// What can be seen of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// How far it is.
    pub phase: Phase,
    /// Bytes that can be read; connections that can be accepted.
    pub readable: usize,
    /// Bytes for which there is room; 0 if nothing can be sent.
    pub room: usize,
    /// The peer has sent all it will.
    pub has_ended: bool,
    /// Why it is over before its time.
    pub failure: Option<Failure>,
    /// Where it is.
    pub own: SocketAddrV4,
    /// Where its peer is; nowhere (0.0.0.0:0) without one.
    pub peer: SocketAddrV4,
}

/// 0.0.0.0:0.
pub const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);

/// What the owner of a new socket knows of it.
pub const UNTOLD: Look = Look {
    phase: Phase::Idle,
    readable: 0,
    room: 0,
    has_ended: false,
    failure: None,
    own: NOWHERE,
    peer: NOWHERE,
};

impl Look {
    /// Whether a quarter of the room for what is to be sent is free: for less nobody is woken.
    pub fn is_roomy(&self) -> bool {
        self.room >= BUFFER / 4
    }
}
