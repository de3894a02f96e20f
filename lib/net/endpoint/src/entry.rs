//! A socket, whichever role it has: what can be seen of it, and how it goes on.

use core::net::SocketAddrV4;

use smoltcp::iface::{Interface, SocketSet};
use smoltcp::socket::tcp::Socket;
use smoltcp::wire::{IpAddress, IpEndpoint};

use crate::listener::Listener;
use crate::look::{Look, Phase, UNTOLD};
use crate::making::{PATIENCE, listening, set_up, socket};
use crate::sockets::Refusal;
use crate::stream::{Failure, Stream};

/// How long a connection waits for an address to come from, in nanoseconds.
pub const ADDRESS: u64 = 10_000_000_000;

/// What a socket is just now.
pub enum Role {
    Idle,
    Waiting { to: SocketAddrV4, since: u64 },
    Stream(Stream),
    Listener(Listener),
    Failed(Failure),
}

/// A socket.
pub struct Entry {
    pub role: Role,
    /// Where it was opened. At 0.0.0.0 it is at all addresses.
    pub at: SocketAddrV4,
    /// Whether small pieces go at once.
    pub hurries: bool,
    /// What its owner was told last.
    pub told: Look,
    /// If its owner has closed it: until when it may go on.
    pub until: Option<u64>,
}

/// What sockets need to be set to work.
pub struct Around<'a> {
    pub set: &'a mut SocketSet<'static>,
    pub interface: &'a mut Interface,
    /// Whether it has an address that others know.
    pub has_address: bool,
    pub now: u64,
}

impl Entry {
    /// That of smoltcp's.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is not connected.
    pub fn socket<'a>(
        &self,
        set: &'a mut SocketSet<'static>,
    ) -> Result<&'a mut Socket<'static>, Refusal> {
        match &self.role {
            Role::Stream(stream) => Ok(set.get_mut(stream.handle)),
            _ => Err(Refusal::Wrong),
        }
    }

    /// What can be seen, and is seen by its owner.
    pub fn show(&mut self, set: &SocketSet<'static>) -> Look {
        self.told = self.look(set);
        self.told
    }

    /// What can be seen.
    pub fn look(&self, set: &SocketSet<'static>) -> Look {
        let plain = |phase, failure| Look {
            phase,
            failure,
            own: self.at,
            ..UNTOLD
        };
        match &self.role {
            Role::Idle => plain(Phase::Idle, None),
            Role::Waiting { to, .. } => Look {
                peer: *to,
                ..plain(Phase::Opening, None)
            },
            Role::Failed(why) => plain(Phase::Over, Some(*why)),
            Role::Listener(listener) => Look {
                readable: listener.ready.len(),
                ..plain(Phase::Listening, None)
            },
            Role::Stream(stream) => stream.look(set),
        }
    }

    /// Takes in what has happened, and does what has been waiting for it; whether the interface has
    /// something to send for it.
    pub fn follow(&mut self, around: &mut Around<'_>) -> bool {
        match &mut self.role {
            Role::Waiting { to, since } => {
                if !around.has_address && !to.ip().is_loopback() {
                    if around.now >= since.saturating_add(ADDRESS) {
                        self.role = Role::Failed(Failure::Unreachable);
                    }
                    return false;
                }
                let begun = begin(*to, self.at, self.hurries, around);
                self.role = begun.map_or_else(Role::Failed, Role::Stream);
                true
            }
            Role::Stream(stream) => {
                let closed = self.until.is_some();
                stream.follow(around.set, around.now, closed)
            }
            Role::Listener(listener) => listener.follow(listening(&self.at), around.set),
            Role::Idle | Role::Failed(_) => false,
        }
    }

    /// Whether nobody has to do with it any more.
    pub fn is_done(&self, set: &SocketSet<'static>, now: u64) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        match &self.role {
            Role::Stream(stream) => now >= until || stream.is_done(set),
            _ => true,
        }
    }
}

/// Has smoltcp open a connection.
fn begin(
    to: SocketAddrV4,
    at: SocketAddrV4,
    hurries: bool,
    around: &mut Around<'_>,
) -> Result<Stream, Failure> {
    let Some(mut socket) = socket(around.set) else {
        return Err(Failure::NoMemory);
    };
    set_up(&mut socket, PATIENCE, hurries);
    let remote = IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port());
    let context = around.interface.context();
    let begun = socket.connect(context, remote, listening(&at));
    begun.map_err(|_| Failure::Unreachable)?;
    Ok(Stream::opening(around.set.add(socket), to, around.now))
}
