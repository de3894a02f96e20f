//! The frames that have come and those that are to go, around smoltcp's device.
//!
//! A device of one's own has an associated type with a lifetime in it, which the gate refuses. So
//! the device is smoltcp's loopback, a queue: a frame is put into it and at once taken in by the
//! interface, and what the interface has put there is taken out before the next. Both queues
//! outside have a bound, so neither a flood nor a peer that acknowledges much at once takes more
//! memory than that.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::phy::{Device, FaultInjector, Loopback, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::sums;

/// Bytes of an Ethernet header.
pub const HEADER: usize = 14;
/// The longest frame: a header and 1,500 bytes.
pub const LONGEST: usize = HEADER + 1500;
/// Frames that wait, each way.
pub const WAITING: usize = 256;

/// See the module.
pub struct Wire {
    interface: Interface,
    queue: Loopback,
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Wire {
    /// An interface, with nothing to come or to go.
    pub fn new(config: Config, now: Instant) -> Self {
        // A frame of the loopback may be longer than Ethernet's; around it, this bounds it. It
        // injects nothing, and is not used again.
        let mut bounded = FaultInjector::new(Loopback::new(Medium::Ethernet), 1);
        Wire {
            interface: Interface::new(config, &mut bounded, now),
            queue: Loopback::new(Medium::Ethernet),
            incoming: VecDeque::with_capacity(WAITING),
            outgoing: VecDeque::with_capacity(WAITING),
        }
    }

    /// The interface.
    pub fn interface(&mut self) -> &mut Interface {
        &mut self.interface
    }

    /// Takes a frame in; whether it did. One that is too short or too long, whose checksums are
    /// wrong, or for which there is no room, is dropped.
    pub fn receive(&mut self, frame: &[u8]) -> bool {
        let fits = (HEADER..=LONGEST).contains(&frame.len());
        let mut bytes = Vec::new();
        let is_taken = fits
            && self.incoming.len() < WAITING
            && sums::are_right(frame)
            && bytes.try_reserve_exact(frame.len()).is_ok();
        if is_taken {
            bytes.extend_from_slice(frame);
            sums::clamp(&mut bytes);
            self.incoming.push_back(bytes);
        }
        is_taken
    }

    /// The next frame that is to go.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// Whether nothing is left that could be done now: no frames that have come, and none to go.
    pub fn is_quiet(&self) -> bool {
        self.incoming.is_empty() && self.outgoing.is_empty()
    }

    /// Has the interface take in what has come and make what is to go, as long as there is room.
    pub fn poll(&mut self, now: Instant, sockets: &mut SocketSet<'static>) {
        self.interface.poll_maintenance(now);
        while self.outgoing.len() < WAITING {
            let Some(frame) = self.incoming.pop_front() else {
                break;
            };
            self.take_in(&frame, now, sockets);
        }
        // Each round makes a frame for each socket at most.
        while self.outgoing.len() < WAITING {
            let done = self.interface.poll_egress(now, &mut self.queue, sockets);
            self.collect_outgoing(now);
            if matches!(done, PollResult::None) {
                break;
            }
        }
    }

    fn take_in(&mut self, frame: &[u8], now: Instant, sockets: &mut SocketSet<'static>) {
        let Some(room) = self.queue.transmit(now) else {
            return;
        };
        room.consume(frame.len(), |bytes| bytes.copy_from_slice(frame));
        // The only frame in the queue is this one.
        let _: PollIngressSingleResult =
            self.interface
                .poll_ingress_single(now, &mut self.queue, sockets);
        self.collect_outgoing(now);
    }

    /// Takes what the interface has put into the queue.
    fn collect_outgoing(&mut self, now: Instant) {
        while let Some((frame, _)) = self.queue.receive(now) {
            let outgoing = &mut self.outgoing;
            frame.consume(|bytes| {
                let mut frame = Vec::new();
                let fits = bytes.len() <= LONGEST && outgoing.len() < 2 * WAITING;
                if fits && frame.try_reserve_exact(bytes.len()).is_ok() {
                    frame.extend_from_slice(bytes);
                    sums::make(&mut frame);
                    outgoing.push_back(frame);
                }
            });
        }
    }
}
