//! The frames that have come and those that are to go, around smoltcp's device.
//!
//! A device of one's own has an associated type with a lifetime in it, which the gate refuses. So
//! the device is smoltcp's loopback, a queue: a frame is put into it and at once taken in by the
//! interface, and what the interface has put there is taken out before the next. Both queues
//! outside have a bound, so neither a flood nor a peer that acknowledges much at once takes more
//! memory than that.
//!
//! What goes to the end's own hardware address, or asks for it, never leaves it: it is put in front
//! of what comes. So the end talks to itself, at its own address and at those of the loopback
//! network, as to others. From outside nothing is taken that says it came from one of these.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::phy::{Device, FaultInjector, Loopback, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Ipv4Packet,
};

use crate::sums;

/// Bytes of an Ethernet header.
pub const HEADER: usize = 14;
/// The longest frame: a header and 1,500 bytes.
pub const LONGEST: usize = HEADER + 1500;
/// Frames that wait, each way.
pub const WAITING: usize = 256;
/// How often what the end says to itself is taken in, in one go.
const ROUNDS: usize = 16;

/// See the module.
pub struct Wire {
    hardware: [u8; 6],
    interface: Interface,
    queue: Loopback,
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Wire {
    /// An interface, with nothing to come or to go.
    pub fn new(hardware: [u8; 6], seed: u64, now: Instant) -> Self {
        let mut config = Config::new(EthernetAddress(hardware).into());
        config.random_seed = seed;
        // A frame of the loopback may be longer than Ethernet's; around it, this bounds it. It
        // injects nothing, and is not used again.
        let mut bounded = FaultInjector::new(Loopback::new(Medium::Ethernet), 1);
        Wire {
            hardware,
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
            && !self.is_from_self(frame)
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
    /// What it says to itself takes [`ROUNDS`] rounds at most; the rest is left.
    pub fn poll(&mut self, now: Instant, sockets: &mut SocketSet<'static>) {
        self.interface.poll_maintenance(now);
        for _ in 0..ROUNDS {
            while self.outgoing.len() < WAITING {
                let Some(frame) = self.incoming.pop_front() else {
                    break;
                };
                self.take_in(&frame, now, sockets);
            }
            // Each round makes a frame for each socket at most.
            while self.outgoing.len() < WAITING && self.incoming.len() < WAITING {
                let done = self.interface.poll_egress(now, &mut self.queue, sockets);
                self.collect_outgoing(now);
                if matches!(done, PollResult::None) {
                    break;
                }
            }
            if self.incoming.is_empty() {
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
            frame.consume(|bytes| self.sort(bytes));
        }
    }

    /// Puts a frame among those that go, or that come.
    fn sort(&mut self, bytes: &[u8]) {
        let stays = self.is_to_self(bytes);
        let queue = match stays {
            true => &mut self.incoming,
            false => &mut self.outgoing,
        };
        let mut frame = Vec::new();
        let fits = bytes.len() <= LONGEST && queue.len() < 2 * WAITING;
        if fits && frame.try_reserve_exact(bytes.len()).is_ok() {
            frame.extend_from_slice(bytes);
            match stays {
                true => sums::clamp(&mut frame),
                false => sums::make(&mut frame),
            }
            queue.push_back(frame);
        }
    }

    /// Whether a frame that is to go is for this end itself.
    fn is_to_self(&self, frame: &[u8]) -> bool {
        frame.starts_with(&self.hardware)
            || asked(frame).is_some_and(|(_, address)| self.has(address))
    }

    /// Whether a frame that has come says that it is from this end itself, or from the loopback
    /// network or to it.
    fn is_from_self(&self, frame: &[u8]) -> bool {
        let ends = packet(frame).map(|packet| (packet.src_addr(), packet.dst_addr()));
        let Some((from, to)) = ends.or_else(|| asked(frame)) else {
            return false;
        };
        from.is_loopback() || to.is_loopback() || self.has(from)
    }

    fn has(&self, address: Ipv4Addr) -> bool {
        self.interface.has_ip_addr(address)
    }
}

/// The IPv4 packet of a frame that has one.
fn packet(frame: &[u8]) -> Option<Ipv4Packet<&[u8]>> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let is_packet = ethernet.ethertype() == EthernetProtocol::Ipv4;
    Ipv4Packet::new_checked(frame.get(HEADER..).filter(|_| is_packet)?).ok()
}

/// The sender and the target of a question for a hardware address, or of an answer, if it is one.
fn asked(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let is_question = ethernet.ethertype() == EthernetProtocol::Arp;
    let packet = ArpPacket::new_checked(ethernet.payload()).ok();
    match ArpRepr::parse(&packet.filter(|_| is_question)?) {
        Ok(ArpRepr::EthernetIpv4 {
            source_protocol_addr,
            target_protocol_addr,
            ..
        }) => Some((source_protocol_addr, target_protocol_addr)),
        _ => None,
    }
}
