//! An end of an IPv4 network on Ethernet: ARP, ICMP echo, an address by DHCP or a fixed one, and a
//! service that gives back what it is sent by TCP.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`settings`] | the text of options |
//! | [`wire`] | the frames that have come and those that are to go |
//! | [`sums`] | checksums |
//! | [`echo`] | the service |
//!
//! The protocols are those of smoltcp. Nothing here waits or reads a clock: frames go in
//! ([`Endpoint::receive`]) and out ([`Endpoint::take`]), and time is an argument of
//! [`Endpoint::turn`]. All memory is taken at the start, but for the frames that wait, whose number
//! is bounded.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod echo;
mod settings;
mod sums;
#[cfg(test)]
mod tests;
mod wire;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};

use echo::Echo;
use wire::Wire;

pub use settings::{Fixed, Settings};
pub use wire::{HEADER, LONGEST, WAITING};

/// See the module.
pub struct Endpoint {
    sockets: SocketSet<'static>,
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
        let mut sockets = SocketSet::new(Vec::new());
        let echo = settings.echo.map(|port| Echo::new(port, &mut sockets));
        let lease = match settings.fixed {
            None => Some(sockets.add(dhcpv4::Socket::new())),
            Some(_) => None,
        };
        let mut endpoint = Endpoint {
            sockets,
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
        self.wire.poll(at, &mut self.sockets);
        self.follow_lease();
        let echo = self.echo.as_mut();
        if echo.is_some_and(|echo| echo.serve(&mut self.sockets)) {
            self.wire.poll(at, &mut self.sockets);
        }
        if !self.wire.is_quiet() {
            return Next::AtOnce;
        }
        match self.wire.interface().poll_at(at, &self.sockets) {
            None => Next::Never,
            Some(next) => Next::At(nanoseconds(next).max(now)),
        }
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
        echo.map_or(0, |echo| echo.connections(&self.sockets))
    }

    /// Frames that were dropped unread.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes over what the server of DHCP has said.
    fn follow_lease(&mut self) {
        let Some(lease) = self.lease else {
            return;
        };
        let event = self
            .sockets
            .get_mut::<dhcpv4::Socket<'static>>(lease)
            .poll();
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
