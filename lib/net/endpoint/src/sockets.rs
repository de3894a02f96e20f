//! TCP for others: sockets that they open, connect, or have listen at a port.
//!
//! # States of a socket
//! It begins with a port of its own (`Idle`). `connect` makes it a connection, which waits for the
//! interface to have an address (`Waiting`), and then is smoltcp's (`Stream`); `listen` makes it a
//! listener, and `accept` takes sockets out of that one, which are connections from the beginning.
//! Its owner closes it: what is to be sent is still sent, for a minute at most, and a peer that
//! goes on sending is reset, for nobody will read it.
//!
//! A listener has some sockets of smoltcp's wait for peers in advance, since each takes one. They
//! hold its buffers already, so their number is small.

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use smoltcp::iface::SocketSet;

use crate::entry::{ADDRESS, Around, Entry, Role};
use crate::listener::Listener;
use crate::look::{Look, UNTOLD};
use crate::making::{PATIENCE, set_up};
use crate::stream::Stream;

/// Sockets at once, those that were closed and are not done included.
pub const MOST: usize = 256;
/// Connections that may come to a listener before they are accepted.
pub const BACKLOG: usize = 32;
/// How long a socket that its owner has closed may go on, in nanoseconds.
const LINGERS: u64 = 60_000_000_000;
/// Ports of those who do not care which one they have.
const ANY: core::ops::Range<u16> = 32_768..61_000;

/// A socket. Whoever has one closes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(u16);

impl Id {
    /// Its number, less than [`MOST`]. It is another one's when it was closed and is done.
    pub fn number(self) -> usize {
        self.0.into()
    }
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are [`MOST`] sockets.
    Full,
    /// There is no memory for its buffers.
    NoMemory,
    /// Another socket has the port.
    InUse,
    /// The address is not the end's.
    NotOurs,
    /// No way leads to that address.
    Unreachable,
    /// It is not in the state for that.
    Wrong,
}

/// See the module.
pub struct Sockets {
    entries: Vec<Option<Entry>>,
    /// From which the next port is looked for.
    next: u16,
}

impl Sockets {
    /// None. `seed` is random.
    pub fn new(seed: u64) -> Self {
        let mut entries = Vec::with_capacity(MOST);
        entries.resize_with(MOST, || None);
        Sockets {
            entries,
            next: ANY.start + (seed % u64::from(ANY.end - ANY.start)) as u16,
        }
    }

    /// A socket at `at`, whose port is 0 for any that is free.
    ///
    /// # Errors
    /// [`Refusal::Full`], [`Refusal::InUse`].
    pub fn open(&mut self, at: SocketAddrV4, set: &mut SocketSet<'static>) -> Result<Id, Refusal> {
        let number = self.free(set)?;
        let port = match at.port() {
            0 => self.free_port(),
            _ if self.has_owner(&at) => return Err(Refusal::InUse),
            port => port,
        };
        let at = SocketAddrV4::new(*at.ip(), port);
        Ok(self.put(number, at, Role::Idle))
    }

    /// Has a socket connect to `to`; [`look`](Self::look) tells what comes of it.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is connected, or listens.
    pub fn connect(&mut self, id: Id, to: SocketAddrV4, now: u64) -> Result<(), Refusal> {
        let entry = self.entry(id)?;
        match entry.role {
            Role::Idle | Role::Failed(_) => {
                entry.role = Role::Waiting { to, since: now };
                Ok(())
            }
            _ => Err(Refusal::Wrong),
        }
    }

    /// Has a socket listen, for `backlog` connections that were not accepted, [`BACKLOG`] at most.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is connected; [`Refusal::NoMemory`].
    pub fn listen(&mut self, id: Id, backlog: usize) -> Result<(), Refusal> {
        let backlog = backlog.clamp(1, BACKLOG);
        let entry = self.entry(id)?;
        match &mut entry.role {
            Role::Listener(listener) => listener.backlog = backlog,
            Role::Idle => {
                let listener = Listener::new(backlog).ok_or(Refusal::NoMemory)?;
                entry.role = Role::Listener(listener);
            }
            _ => return Err(Refusal::Wrong),
        }
        Ok(())
    }

    /// The next connection that has come to a listener, if there is one.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it does not listen; [`Refusal::Full`].
    pub fn accept(&mut self, id: Id, set: &mut SocketSet<'static>) -> Result<Option<Id>, Refusal> {
        let Role::Listener(listener) = &self.entry(id)?.role else {
            return Err(Refusal::Wrong);
        };
        if listener.ready.is_empty() {
            return Ok(None);
        }
        let number = self.free(set)?;
        let entry = self.entry(id)?;
        let (at, hurries) = (entry.at, entry.hurries);
        let handle = match &mut entry.role {
            Role::Listener(listener) => listener.ready.pop_front(),
            _ => None,
        };
        let Some(handle) = handle else {
            return Ok(None);
        };
        set_up(set.get_mut(handle), PATIENCE, hurries);
        let stream = Role::Stream(Stream::open(handle, set));
        self.entry(id)?.show(set);
        let accepted = self.put(number, at, stream);
        self.entry(accepted)?.hurries = hurries;
        Ok(Some(accepted))
    }

    /// What can be seen of a socket; [`changes`](Self::changes) goes by it from now on. `None`: it
    /// was closed.
    pub fn look(&mut self, id: Id, set: &SocketSet<'static>) -> Option<Look> {
        self.entry(id).ok().map(|entry| entry.show(set))
    }

    /// Takes bytes that have come into `to`, or only shows them; how many, and none if none are
    /// there.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it was never connected.
    pub fn read(
        &mut self,
        id: Id,
        set: &mut SocketSet<'static>,
        to: &mut [u8],
        only_shows: bool,
    ) -> Result<usize, Refusal> {
        let entry = self.entry(id)?;
        let socket = entry.socket(set)?;
        let count = match only_shows {
            true => socket.peek_slice(to),
            false => socket.recv_slice(to),
        };
        entry.show(set);
        Ok(count.unwrap_or(0))
    }

    /// Takes bytes to be sent; how many, for which there was room.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: nothing can be sent, or not any more.
    pub fn write(
        &mut self,
        id: Id,
        set: &mut SocketSet<'static>,
        from: &[u8],
    ) -> Result<usize, Refusal> {
        let entry = self.entry(id)?;
        let taken = entry.socket(set)?.send_slice(from);
        entry.show(set);
        taken.map_err(|_| Refusal::Wrong)
    }

    /// Nothing more will be sent; the peer learns of it when all was.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is not connected.
    pub fn finish(&mut self, id: Id, set: &mut SocketSet<'static>) -> Result<(), Refusal> {
        match &mut self.entry(id)?.role {
            Role::Stream(stream) => {
                stream.close(set);
                Ok(())
            }
            _ => Err(Refusal::Wrong),
        }
    }

    /// Whether small pieces are sent at once, and not held back until those before were received.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it was closed.
    pub fn hurry(
        &mut self,
        id: Id,
        set: &mut SocketSet<'static>,
        hurries: bool,
    ) -> Result<(), Refusal> {
        let entry = self.entry(id)?;
        entry.hurries = hurries;
        if let Role::Stream(stream) = &entry.role {
            set_up(set.get_mut(stream.handle), PATIENCE, hurries);
        }
        Ok(())
    }

    /// Its owner is done with a socket.
    pub fn close(&mut self, id: Id, set: &mut SocketSet<'static>, now: u64) {
        let Some(place) = self.entries.get_mut(usize::from(id.0)) else {
            return;
        };
        let is_done = place.as_mut().is_none_or(|entry| match &mut entry.role {
            Role::Stream(stream) => {
                stream.close(set);
                entry.until = Some(now.saturating_add(LINGERS));
                false
            }
            Role::Listener(listener) => {
                listener.close(set);
                true
            }
            _ => true,
        });
        if is_done {
            *place = None;
        }
    }

    /// Takes in what has happened, and does what has been waiting for it. Whether the interface
    /// has something to send for it.
    pub fn follow(&mut self, around: &mut Around<'_>) -> bool {
        let mut any = false;
        for place in &mut self.entries {
            let Some(entry) = place else {
                continue;
            };
            any |= entry.follow(around);
            if entry.is_done(around.set, around.now) {
                if let Role::Stream(stream) = &entry.role {
                    around.set.remove(stream.handle);
                }
                *place = None;
            }
        }
        any
    }

    /// Names each socket of which there is more to see than when its owner looked at it, read or
    /// wrote, or when it was named, whichever was last.
    pub fn changes(&mut self, set: &SocketSet<'static>, mut tell: impl FnMut(Id)) {
        for (number, place) in (0..).zip(&mut self.entries) {
            let Some(entry) = place.as_mut().filter(|entry| entry.until.is_none()) else {
                continue;
            };
            let look = entry.look(set);
            let told = core::mem::replace(&mut entry.told, look);
            let has_come = look.readable > told.readable || look.has_ended != told.has_ended;
            if has_come || look.is_roomy() && !told.is_roomy() || look.phase != told.phase {
                tell(Id(number));
            }
        }
    }

    /// When something is to be done although nothing has happened.
    pub fn next(&self) -> Option<u64> {
        let entries = self.entries.iter().filter_map(Option::as_ref);
        let ends = entries.filter_map(|entry| match entry.role {
            Role::Waiting { since, .. } => Some(since.saturating_add(ADDRESS)),
            _ => entry.until,
        });
        ends.min()
    }

    /// A place for one more. Where all are taken, that of a socket goes that its owner has closed,
    /// and which only waits for segments that come late.
    fn free(&mut self, set: &mut SocketSet<'static>) -> Result<usize, Refusal> {
        if let Some(number) = self.entries.iter().position(Option::is_none) {
            return Ok(number);
        }
        let ages = self.entries.iter().enumerate().filter_map(|(number, it)| {
            let entry = it.as_ref()?;
            match &entry.role {
                Role::Stream(stream) if stream.only_waits(set) => Some((entry.until?, number)),
                _ => None,
            }
        });
        let (_, number) = ages.min().ok_or(Refusal::Full)?;
        if let Some(Entry {
            role: Role::Stream(stream),
            ..
        }) = self.entries[number].take()
        {
            set.remove(stream.handle);
        }
        Ok(number)
    }

    fn put(&mut self, number: usize, at: SocketAddrV4, role: Role) -> Id {
        self.entries[number] = Some(Entry {
            role,
            at,
            hurries: false,
            told: UNTOLD,
            until: None,
        });
        Id(number as u16)
    }

    fn entry(&mut self, id: Id) -> Result<&mut Entry, Refusal> {
        let place = self.entries.get_mut(usize::from(id.0));
        place.and_then(Option::as_mut).ok_or(Refusal::Wrong)
    }

    /// Whether a socket that nobody has closed was opened there. Those that came to it by a
    /// listener, and those that are closing, are in nobody's way.
    fn has_owner(&self, at: &SocketAddrV4) -> bool {
        let mut entries = self.entries.iter().filter_map(Option::as_ref);
        entries.any(|entry| {
            let hosts = [entry.at.ip(), at.ip()];
            let meets = hosts[0] == hosts[1] || hosts.iter().any(|host| host.is_unspecified());
            let is_owner = entry.until.is_none() && !matches!(entry.role, Role::Stream(_));
            is_owner && meets && entry.at.port() == at.port()
        })
    }

    /// A port that no socket has. There are more ports than sockets.
    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next;
            self.next = if port + 1 < ANY.end {
                port + 1
            } else {
                ANY.start
            };
            let mut entries = self.entries.iter().filter_map(Option::as_ref);
            if entries.all(|entry| entry.at.port() != port) {
                return port;
            }
        }
    }
}
