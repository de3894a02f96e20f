//! Descriptors in messages, and what messages cost.
//!
//! # No circles
//! What is in a message lives as long as the message. If sockets could wait in each other in a
//! circle they would live for ever, though nobody could reach them. So a socket may be sent only
//! while no socket waits in it, and never into itself: then each new way from a socket into another
//! one ends there, and no way leads back. One lock is held from the look to the end of the sending.

use super::local::{End, Local};
use super::{Backend, Socket};
use crate::bells::WRITES;
use crate::errno::{ETOOMANYREFS, Error};
use crate::files::Open;
use crate::users::{Flying, Held};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux::socket::inbox::{Charge, Contents};

/// A descriptor in a message: what it leads to.
pub type Right = Arc<Open>;

/// What is paid for messages: their bytes by the socket that sent them, and by its user; and the
/// descriptors in them.
pub struct Paid {
    pub sender: Arc<End>,
    pub bytes: usize,
    pub held: Held,
    pub flying: Option<Flying>,
}

impl Charge for Paid {
    fn join(&mut self, mut more: Self) {
        self.bytes += core::mem::take(&mut more.bytes);
        self.held.join(&mut more.held);
        match (&mut self.flying, &mut more.flying) {
            (Some(flying), Some(more)) => flying.join(more),
            (flying @ None, more) => *flying = more.take(),
            _ => {}
        }
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.sender.out.fetch_sub(self.bytes, Ordering::Relaxed);
            let rung = self.sender.state.lock().waiters.take(WRITES);
            rung.ring();
        }
    }
}

/// The socket of this machine that something is.
pub fn local_of(open: &Open) -> Option<&Local> {
    match open {
        Open::Socket(Socket {
            backend: Backend::Local(local),
            ..
        }) => Some(local),
        _ => None,
    }
}

/// Whether sockets are among descriptors.
pub fn has_sockets(rights: &[Right]) -> bool {
    rights.iter().any(|right| local_of(right).is_some())
}

/// Whether these descriptors may be sent to a socket.
///
/// # Errors
/// `ETOOMANYREFS`: they might lead back to it.
pub fn check(rights: &[Right], to: &Arc<End>) -> Result<(), Error> {
    let mut ends = rights.iter().filter_map(|right| local_of(right));
    match ends.any(|it| Arc::ptr_eq(&it.end, to) || it.end.has_sockets()) {
        true => Err(ETOOMANYREFS),
        false => Ok(()),
    }
}

/// Drops what was in a socket, and what was in the sockets in that, one after the other: a chain of
/// them may be longer than a stack is deep.
pub fn dispose(contents: Contents<Right, Paid>, pending: VecDeque<Local>) {
    let mut heap = Vec::new();
    let add = |heap: &mut Vec<Contents<Right, Paid>>, more: Contents<Right, Paid>| {
        if !more.is_empty() && heap.try_reserve(1).is_ok() {
            heap.push(more);
        }
    };
    add(&mut heap, contents);
    for local in pending {
        add(&mut heap, local.close().0);
    }
    while let Some(last) = heap.last_mut() {
        let Some(right) = last.next_right() else {
            heap.pop();
            continue;
        };
        let Some(open) = Arc::into_inner(right) else {
            continue;
        };
        if let Some(local) = local_of(&open) {
            let (contents, pending) = local.close();
            add(&mut heap, contents);
            for local in pending {
                add(&mut heap, local.close().0);
            }
        }
    }
}
