//! A connection, from its beginning or from when it was accepted: what has become of it.

use core::net::SocketAddrV4;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::wire::{IpAddress, IpEndpoint};

use crate::look::{Look, NOWHERE, Phase};
use crate::making::CONNECTS;

/// Why a connection is over before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody listens there.
    Refused,
    /// The peer has ended it, or has forgotten it.
    Reset,
    /// The peer does not answer.
    TimedOut,
    /// No way leads there.
    Unreachable,
    /// There was no memory for it.
    NoMemory,
}

/// See the module.
pub struct Stream {
    pub handle: SocketHandle,
    /// When it was begun.
    since: u64,
    /// How far it was when it was looked at last.
    before: State,
    failure: Option<Failure>,
    own: SocketAddrV4,
    peer: SocketAddrV4,
}

fn place(end: Option<IpEndpoint>) -> SocketAddrV4 {
    match end {
        Some(IpEndpoint {
            addr: IpAddress::Ipv4(address),
            port,
        }) => SocketAddrV4::new(address, port),
        None => NOWHERE,
    }
}

impl Stream {
    /// One that was just begun, by us.
    pub fn opening(handle: SocketHandle, peer: SocketAddrV4, since: u64) -> Self {
        Stream {
            handle,
            since,
            before: State::SynSent,
            failure: None,
            own: NOWHERE,
            peer,
        }
    }

    /// One that a peer has opened.
    pub fn open(handle: SocketHandle, set: &SocketSet<'static>) -> Self {
        let socket = set.get::<Socket<'static>>(handle);
        Stream {
            handle,
            since: 0,
            before: State::Established,
            failure: None,
            own: place(socket.local_endpoint()),
            peer: place(socket.remote_endpoint()),
        }
    }

    /// What can be seen of it.
    pub fn look(&self, set: &SocketSet<'static>) -> Look {
        let socket = set.get::<Socket<'static>>(self.handle);
        let room = socket.send_capacity() - socket.send_queue();
        let is_opening = matches!(socket.state(), State::SynSent | State::SynReceived);
        Look {
            phase: match socket.state() {
                _ if self.failure.is_some() => Phase::Over,
                _ if is_opening => Phase::Opening,
                State::Closed => Phase::Over,
                _ => Phase::Open,
            },
            readable: if is_opening { 0 } else { socket.recv_queue() },
            room: if socket.may_send() { room } else { 0 },
            has_ended: !is_opening && !is_receiving(socket.state()),
            failure: self.failure,
            own: self.own,
            peer: self.peer,
        }
    }

    /// Sends no more.
    pub fn close(&mut self, set: &mut SocketSet<'static>) {
        let socket = set.get_mut::<Socket<'static>>(self.handle);
        socket.close();
        self.before = socket.state();
    }

    /// Notes what has become of it. One that was `closed` by its owner resets a peer that goes on
    /// sending. Whether there is something to send.
    pub fn follow(&mut self, set: &mut SocketSet<'static>, now: u64, closed: bool) -> bool {
        let socket = set.get_mut::<Socket<'static>>(self.handle);
        let state = socket.state();
        let (before, is_new) = (self.before, state != self.before);
        self.before = state;
        if socket.local_endpoint().is_some() {
            self.own = place(socket.local_endpoint());
        }
        if is_new && state == State::Closed {
            self.failure = match before {
                State::SynSent | State::SynReceived
                    if now < self.since.saturating_add(CONNECTS) =>
                {
                    Some(Failure::Refused)
                }
                State::SynSent | State::SynReceived => Some(Failure::TimedOut),
                // It was over both ways.
                State::LastAck | State::Closing | State::TimeWait | State::Closed => None,
                _ => Some(Failure::Reset),
            };
        }
        let is_unread = closed && socket.can_recv();
        if is_unread {
            socket.abort();
            self.before = State::Closed;
        }
        is_unread
    }

    /// Whether it is over both ways, and is kept for segments that come late.
    pub fn only_waits(&self, set: &SocketSet<'static>) -> bool {
        set.get::<Socket<'static>>(self.handle).state() == State::TimeWait
    }

    /// Whether smoltcp has nothing to do for it any more.
    pub fn is_done(&self, set: &SocketSet<'static>) -> bool {
        let socket = set.get::<Socket<'static>>(self.handle);
        // As long as a reset is to be sent it knows where to.
        socket.state() == State::Closed && socket.remote_endpoint().is_none()
    }
}

/// Whether the peer may send more.
fn is_receiving(state: State) -> bool {
    matches!(
        state,
        State::Established | State::FinWait1 | State::FinWait2
    )
}
