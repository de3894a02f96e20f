//! How sockets of smoltcp's are made: with which buffers and times.

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Duration;
use smoltcp::wire::{IpAddress, IpListenEndpoint};

/// Bytes that a connection holds each way.
pub const BUFFER: usize = 64 << 10;
/// A peer that owes an answer for so long has lost its connection, in nanoseconds.
pub const CONNECTS: u64 = 120_000_000_000;
/// The same for smoltcp.
pub const PATIENCE: Duration = Duration::from_micros(CONNECTS / 1000);
/// The same while a peer opens one.
pub const GREETING: Duration = Duration::from_secs(20);
/// The most sockets of smoltcp's, the echo service's included: there is room for these from the
/// start.
pub const ROOM: usize = 512;

/// A place as smoltcp has it, where all addresses are none.
pub fn listening(at: &SocketAddrV4) -> IpListenEndpoint {
    let address = Some(*at.ip()).filter(|address| !address.is_unspecified());
    IpListenEndpoint {
        addr: address.map(IpAddress::Ipv4),
        port: at.port(),
    }
}

/// Sets how long a peer may be silent, and whether small pieces go at once.
pub fn set_up(socket: &mut Socket<'static>, patience: Duration, hurries: bool) {
    socket.set_timeout(Some(patience));
    socket.set_nagle_enabled(!hurries);
}

/// A socket of smoltcp's, with its buffers, if there is memory for them and room in the set.
pub fn socket(set: &SocketSet<'static>) -> Option<Socket<'static>> {
    if set.iter().count() >= ROOM {
        return None;
    }
    let buffer = || {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(BUFFER).ok()?;
        bytes.resize(BUFFER, 0);
        Some(SocketBuffer::new(bytes))
    };
    let mut socket = Socket::new(buffer()?, buffer()?);
    socket.set_congestion_control(CongestionControl::Reno);
    Some(socket)
}
