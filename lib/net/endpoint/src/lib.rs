//! An end of an IPv4 network on Ethernet: ARP, ICMP echo, an address by DHCP or a fixed one,
//! sockets for TCP, and a service that gives back what it is sent by TCP.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`settings`] | the text of options |
//! | [`wire`] | the frames that have come and those that are to go |
//! | [`sums`] | checksums |
//! | [`sockets`] | what others connect and listen with |
//! | [`entry`] | one of these: [`stream`] if connected, [`listener`], and how it [`look`]s |
//! | [`making`] | how sockets of smoltcp's are made |
//! | [`echo`] | the service |
//!
//! The protocols are those of smoltcp. Nothing here waits or reads a clock: frames go in
//! ([`Endpoint::receive`]) and out ([`Endpoint::take`]), and time is an argument of
//! [`Endpoint::turn`]. All memory is taken at the start, but for the frames that wait and the
//! buffers of sockets, whose numbers are bounded.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod echo;
mod entry;
mod listener;
mod look;
mod making;
mod settings;
mod sockets;
mod stream;
mod sums;
#[cfg(test)]
mod tests;
mod wire;

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};

use echo::Echo;
use entry::Around;
use sockets::Sockets;
use wire::Wire;

pub use look::{Look, Phase};
pub use making::BUFFER;
pub use settings::{Fixed, Settings};
pub use sockets::{BACKLOG, Id, MOST, Refusal};
pub use stream::Failure;
pub use wire::{HEADER, LONGEST, WAITING};

/// How often frames and what follows from them are looked at, in one turn.
const ROUNDS: usize = 4;

/// See the module.
pub struct Endpoint {
    set: SocketSet<'static>,
    sockets: Sockets,
    wire: Wire,
    /// The client of DHCP, if the address is not fixed.
    lease: Option<SocketHandle>,
    echo: Option<Echo>,
    present: Option<Fixed>,
    dropped: u64,
}

/// When [`Endpoint::turn`] has something to do again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As soon as the frames that are to go have been taken.
    AtOnce,
    /// At this time, in nanoseconds, or when a frame comes.
    At(u64),
    /// When a frame comes.
    Never,
}

/// The hardware address cannot be that of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoUnicast;

impl Endpoint {
    /// An end behind the device with this hardware address, at time `now` (nanoseconds). `seed` is
    /// random: the first numbers of connections depend on it.
    ///
    /// # Errors
    /// [`NoUnicast`].
    pub fn new(
        hardware: [u8; 6],
        settings: &Settings,
        seed: u64,
        now: u64,
    ) -> Result<Self, NoUnicast> {
        if !EthernetAddress(hardware).is_unicast() || hardware == [0; 6] {
            return Err(NoUnicast);
        }
        let wire = Wire::new(hardware, seed, instant(now));
        // One more is that of DHCP.
        let mut set = SocketSet::new(Vec::with_capacity(making::ROOM + 1));
        let echo = settings.echo.map(|port| Echo::new(port, &mut set));
        let lease = match settings.fixed {
            None => Some(set.add(dhcpv4::Socket::new())),
            Some(_) => None,
        };
        let mut endpoint = Endpoint {
            set,
            sockets: Sockets::new(seed.rotate_left(32)),
            wire,
            lease,
            echo,
            present: None,
            dropped: 0,
        };
        endpoint.set(settings.fixed);
        Ok(endpoint)
    }

    /// Takes in a frame, from the destination address on. One that is too short or too long, or for
    /// which there is no room before the next [`turn`](Self::turn), is dropped.
    pub fn receive(&mut self, frame: &[u8]) {
        if !self.wire.receive(frame) {
            self.dropped += 1;
        }
    }

    /// Does what the frames that have come and the time `now` (nanoseconds) ask for.
    pub fn turn(&mut self, now: u64) -> Next {
        let at = instant(now);
        let mut has_more = true;
        for _ in 0..ROUNDS {
            self.wire.poll(at, &mut self.set);
            self.follow_lease();
            // What came of the frames is taken in before anybody looks.
            has_more = self.follow(now);
            if !has_more {
                break;
            }
        }
        if has_more || !self.wire.is_quiet() {
            return Next::AtOnce;
        }
        let next = self.wire.interface().poll_at(at, &self.set);
        let next = next.into_iter().map(nanoseconds).chain(self.sockets.next());
        match next.min() {
            None => Next::Never,
            Some(next) => Next::At(next.max(now)),
        }
    }

    /// Has sockets and the echo service go on; whether they have something to send.
    fn follow(&mut self, now: u64) -> bool {
        let mut around = Around {
            set: &mut self.set,
            interface: self.wire.interface(),
            has_address: self.present.is_some(),
            now,
        };
        let any = self.sockets.follow(&mut around);
        let echo = self.echo.as_mut();
        echo.is_some_and(|echo| echo.serve(&mut self.set)) || any
    }

    /// The next frame that is to go.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.wire.take()
    }

    /// The address that it has now.
    pub fn address(&self) -> Option<Fixed> {
        self.present
    }

    /// Connections of the echo service.
    pub fn connections(&self) -> usize {
        let echo = self.echo.as_ref();
        echo.map_or(0, |echo| echo.connections(&self.set))
    }

    /// Frames that were dropped unread.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Opens a socket at `at`: 0.0.0.0 for all addresses of this end, port 0 for any that is free.
    ///
    /// # Errors
    /// [`Refusal::Full`], [`Refusal::InUse`], [`Refusal::NotOurs`].
    pub fn open(&mut self, at: SocketAddrV4) -> Result<Id, Refusal> {
        let is_ours = self.present.is_some_and(|own| own.address == *at.ip());
        let is_ours = is_ours || at.ip().is_unspecified() || *at.ip() == Ipv4Addr::LOCALHOST;
        match is_ours {
            false => Err(Refusal::NotOurs),
            true if self
                .echo
                .as_ref()
                .is_some_and(|echo| echo.port() == at.port()) =>
            {
                Err(Refusal::InUse)
            }
            true => self.sockets.open(at, &mut self.set),
        }
    }

    /// Has a socket connect to `to`, where 0.0.0.0 is this end itself. If there is no address yet
    /// it waits for one. [`look`](Self::look) tells what comes of it.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is connected, or listens; [`Refusal::Unreachable`].
    pub fn connect(&mut self, id: Id, to: SocketAddrV4, now: u64) -> Result<(), Refusal> {
        let to = match to.ip().is_unspecified() {
            true => SocketAddrV4::new(Ipv4Addr::LOCALHOST, to.port()),
            false => to,
        };
        let is_right = to.port() != 0 && settings::is_host(to.ip());
        if !is_right || !self.has_way(to.ip()) {
            return Err(Refusal::Unreachable);
        }
        self.sockets.connect(id, to, now)
    }

    /// Has a socket listen, for `backlog` connections that were not accepted, [`BACKLOG`] at most.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is connected; [`Refusal::NoMemory`].
    pub fn listen(&mut self, id: Id, backlog: usize) -> Result<(), Refusal> {
        self.sockets.listen(id, backlog)
    }

    /// The next connection that has come to a listener, if there is one.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it does not listen; [`Refusal::Full`].
    pub fn accept(&mut self, id: Id) -> Result<Option<Id>, Refusal> {
        self.sockets.accept(id, &mut self.set)
    }

    /// What can be seen of a socket. `None`: it was closed.
    pub fn look(&mut self, id: Id) -> Option<Look> {
        self.sockets.look(id, &self.set)
    }

    /// Takes bytes that have come into `to`, or only shows them; how many.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it was never connected.
    pub fn read(&mut self, id: Id, to: &mut [u8], only_shows: bool) -> Result<usize, Refusal> {
        self.sockets.read(id, &mut self.set, to, only_shows)
    }

    /// Takes bytes to be sent; how many, for which there was room.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: nothing can be sent, or not any more.
    pub fn write(&mut self, id: Id, from: &[u8]) -> Result<usize, Refusal> {
        self.sockets.write(id, &mut self.set, from)
    }

    /// Nothing more will be sent by a socket; its peer learns of it when all was.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it is not connected.
    pub fn finish(&mut self, id: Id) -> Result<(), Refusal> {
        self.sockets.finish(id, &mut self.set)
    }

    /// Says whether small pieces are sent at once, and not held back until those before were
    /// received.
    ///
    /// # Errors
    /// [`Refusal::Wrong`]: it was closed.
    pub fn hurry(&mut self, id: Id, hurries: bool) -> Result<(), Refusal> {
        self.sockets.hurry(id, &mut self.set, hurries)
    }

    /// Its owner is done with a socket. What is to be sent is still sent, for a minute at most.
    pub fn close(&mut self, id: Id, now: u64) {
        self.sockets.close(id, &mut self.set, now);
    }

    /// Names each socket of which there is more to see than when its owner looked at it, read or
    /// wrote, or when it was named, whichever was last.
    pub fn changes(&mut self, tell: impl FnMut(Id)) {
        self.sockets.changes(&self.set, tell);
    }

    /// Whether a way leads to an address, as far as that is known.
    fn has_way(&self, to: &Ipv4Addr) -> bool {
        let Some(own) = self.present else {
            return to.is_loopback() || self.lease.is_some();
        };
        let network = Ipv4Cidr::new(own.address, own.prefix);
        to.is_loopback() || own.router.is_some() || network.contains_addr(to)
    }

    /// Takes over what the server of DHCP has said.
    fn follow_lease(&mut self) {
        let Some(lease) = self.lease else {
            return;
        };
        let event = self.set.get_mut::<dhcpv4::Socket<'static>>(lease).poll();
        let lease = match event {
            None => return,
            Some(dhcpv4::Event::Deconfigured) => None,
            Some(dhcpv4::Event::Configured(config)) => Some(Fixed {
                address: config.address.address(),
                prefix: config.address.prefix_len(),
                router: config.router,
            }),
        };
        self.set(lease.filter(|lease| settings::is_host(&lease.address)));
    }

    /// Has this address, and no other one.
    fn set(&mut self, address: Option<Fixed>) {
        self.wire.interface().update_ip_addrs(|list| {
            list.clear();
            if let Some(Fixed {
                address, prefix, ..
            }) = address
            {
                // There is room for two in the list.
                let _ = list.push(IpCidr::Ipv4(Ipv4Cidr::new(address, prefix)));
            }
            let _ = list.push(IpCidr::Ipv4(Ipv4Cidr::new(Ipv4Addr::LOCALHOST, 8)));
        });
        let routes = self.wire.interface().routes_mut();
        routes.remove_default_ipv4_route();
        let router = address.and_then(|address| address.router);
        if let Some(router) = router.filter(settings::is_host) {
            // There is room: the table is empty.
            let _ = routes.add_default_ipv4_route(router);
        }
        self.present = address;
    }
}

fn instant(now: u64) -> Instant {
    Instant::from_micros((now / 1000) as i64)
}

fn nanoseconds(at: Instant) -> u64 {
    u64::try_from(at.total_micros())
        .unwrap_or(0)
        .saturating_mul(1000)
}
