//! A socket that listens: the connections that have come to it, and the sockets of smoltcp's that
//! wait for others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::wire::IpListenEndpoint;

use crate::making::{GREETING, set_up, socket};
use crate::sockets::BACKLOG;

/// Sockets that wait for peers in advance, for one listener.
const POSTED: usize = 8;
/// See the module.
pub struct Listener {
    /// They listen, or a peer is about to open a connection.
    posted: Vec<SocketHandle>,
    /// To be accepted.
    pub ready: VecDeque<SocketHandle>,
    /// How many of these there may be.
    pub backlog: usize,
}

impl Listener {
    /// One that nobody has come to; `None`: there is no memory.
    pub fn new(backlog: usize) -> Option<Self> {
        let (mut posted, mut ready) = (Vec::new(), VecDeque::new());
        posted.try_reserve_exact(POSTED).ok()?;
        ready.try_reserve_exact(BACKLOG).ok()?;
        Some(Listener {
            posted,
            ready,
            backlog,
        })
    }

    /// Listens no more. The peers of connections that were not accepted are reset when they send.
    pub fn close(&mut self, set: &mut SocketSet<'static>) {
        for handle in self.posted.drain(..).chain(self.ready.drain(..)) {
            set.remove(handle);
        }
    }

    /// Sorts out those of the sockets that a peer has reached, and has others in their place. What
    /// fails for want of memory is tried again at the next turn.
    pub fn follow(&mut self, place: IpListenEndpoint, set: &mut SocketSet<'static>) -> bool {
        let mut at = 0;
        while let Some(handle) = self.posted.get(at).copied() {
            let socket = set.get_mut::<Socket<'static>>(handle);
            match socket.state() {
                State::Listen | State::SynReceived => at += 1,
                State::Closed => {
                    // The port is not 0, and the socket is not open.
                    let _ = socket.listen(place);
                    at += 1;
                }
                _ => {
                    self.posted.swap_remove(at);
                    self.ready.push_back(handle);
                }
            }
        }
        let most = POSTED.min(self.backlog.saturating_sub(self.ready.len()));
        while self.posted.len() < most {
            let Some(mut socket) = socket(set) else {
                break;
            };
            set_up(&mut socket, GREETING, false);
            if socket.listen(place).is_err() {
                break;
            }
            self.posted.push(set.add(socket));
        }
        false
    }
}
