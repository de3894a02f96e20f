//! The service that gives back what it is sent by TCP (RFC 862).

use alloc::vec;
use alloc::vec::Vec;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Duration;

/// Connections at once. One that is being opened has a place as well.
pub const CONNECTIONS: usize = 16;
/// Bytes that a connection holds each way.
const BUFFER: usize = 64 << 10;
/// A peer that does not answer for so long has lost its connection.
const PATIENCE: Duration = Duration::from_secs(60);
/// A silent peer is asked so often whether it is there.
const QUESTION: Duration = Duration::from_secs(20);

/// The sockets of the service.
pub struct Echo {
    port: u16,
    sockets: Vec<SocketHandle>,
    /// What is on its way from one queue of a socket to the other.
    between: Vec<u8>,
}

impl Echo {
    /// The service at `port`, with its sockets in `set`.
    pub fn new(port: u16, set: &mut SocketSet<'static>) -> Self {
        let sockets = (0..CONNECTIONS).map(|_| set.add(socket()));
        Echo {
            port,
            sockets: sockets.collect(),
            between: vec![0; BUFFER],
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Gives back what has come; whether there was anything to do.
    pub fn serve(&mut self, set: &mut SocketSet<'static>) -> bool {
        let mut any = false;
        for handle in &self.sockets {
            any |= serve(set.get_mut(*handle), self.port, &mut self.between);
        }
        any
    }

    /// How many connections are established or being opened or closed.
    pub fn connections(&self, set: &SocketSet<'static>) -> usize {
        let sockets = self.sockets.iter();
        let active = sockets.filter(|handle| set.get::<Socket<'static>>(**handle).is_active());
        active.count()
    }
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_timeout(Some(PATIENCE));
    socket.set_keep_alive(Some(QUESTION));
    socket.set_congestion_control(CongestionControl::Reno);
    // What is given back is complete as it is, however short.
    socket.set_nagle_enabled(false);
    socket
}

/// Does what there is to do for one socket; whether there was anything.
fn serve(socket: &mut Socket<'static>, port: u16, between: &mut [u8]) -> bool {
    if !socket.is_open() {
        return socket.listen(port).is_ok();
    }
    let room = socket.send_capacity() - socket.send_queue();
    let most = room.min(between.len());
    let mut any = false;
    if socket.can_recv() && socket.may_send() && most > 0 {
        let taken = socket.recv_slice(&mut between[..most]).unwrap_or(0);
        any = socket.send_slice(&between[..taken]) == Ok(taken) && taken > 0;
    }
    // The peer has ended its side, and all of it was given back.
    if !socket.may_recv() && socket.may_send() {
        socket.close();
        any = true;
    }
    any
}
