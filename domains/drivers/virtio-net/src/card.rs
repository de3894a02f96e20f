//! The device.
//!
//! A receiver that gets a batch that is not full wants an interrupt for the next packet. The
//! interrupt switches interrupts off again and has the receiver told, so that a flood raises one.

use crate::bring_up::Parts;
use crate::lane::{LONGEST, Lane, SHORTEST};
use alloc::sync::Arc;
use domain_rt::sync::{Mutex, MutexGuard};
use domain_rt::{log, time};
use interfaces::{Batch, Handle, NetError, Packet, PciDevice, RRef, Raiser, Traffic};
use virtio::device;
use virtio::queue::Fault;
use virtio_pci::Window;

/// A device that has no room for so long, in nanoseconds, does not work any more.
const PATIENCE: u64 = 10_000_000_000;
/// Cells that one call looks at: a device may fill them with what is no packet, for ever.
const MOST_LOOKS: usize = 1024;

/// What the lock guards.
struct State {
    receive: Lane,
    transmit: Lane,
    traffic: Traffic,
    /// Since when there has been no room for packets to be sent.
    full_since: Option<u64>,
    /// The device was stopped.
    is_gone: bool,
}

/// See the module.
pub struct Card {
    address: [u8; 6],
    common: Window,
    state: Mutex<State>,
    /// Nothing is called, and nothing let go of, while it is locked, or the state: whoever made it
    /// may call the device again.
    raiser: Mutex<Option<Arc<Handle<dyn Raiser>>>>,
    _function: Handle<dyn PciDevice>,
}

impl Card {
    /// A device that was just brought up.
    pub fn new(parts: Parts) -> Self {
        let traffic = Traffic {
            sent: 0,
            sent_bytes: 0,
            received: 0,
            received_bytes: 0,
            dropped: 0,
        };
        Card {
            address: parts.address,
            common: parts.common,
            state: Mutex::new(State {
                receive: parts.receive,
                transmit: parts.transmit,
                traffic,
                full_since: None,
                is_gone: false,
            }),
            raiser: Mutex::new(None),
            _function: parts.function,
        }
    }

    /// Its hardware address.
    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// What has passed so far.
    pub fn traffic(&self) -> Traffic {
        self.state.lock().traffic
    }

    /// See `Net::send`.
    pub fn send(&self, mut batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        let packets = batch.packets.get(..batch.count as usize);
        let packets = packets.ok_or(NetError::BadLength)?;
        let fits = |packet: &Packet| (SHORTEST..=LONGEST).contains(&(packet.length as usize));
        if !packets.iter().all(fits) {
            return Err(NetError::BadLength);
        }
        let mut state = self.working()?;
        if let Err(fault) = state.reclaim() {
            return Err(self.broke(state, &fault));
        }
        let is_stuck = state.send_all(packets, time::now());
        if is_stuck {
            log!("the device sends nothing");
            return Err(self.give_up(state));
        }
        drop(state);
        batch.count = 0;
        Ok(batch)
    }

    /// See `Net::receive`.
    pub fn receive(&self, mut batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        let mut state = self.working()?;
        match state.receive_into(&mut batch.packets) {
            Ok((count, is_looking)) => {
                drop(state);
                batch.count = count;
                if is_looking {
                    self.raise();
                }
                Ok(batch)
            }
            Err(fault) => Err(self.broke(state, &fault)),
        }
    }

    /// See `Net::tell`.
    pub fn tell(&self, raiser: Handle<dyn Raiser>) -> Result<(), NetError> {
        let state = self.working()?;
        let old = self.raiser.lock().replace(Arc::new(raiser));
        drop(state);
        drop(old);
        self.raise();
        Ok(())
    }

    /// An interrupt came.
    pub fn interrupted(&self) {
        let mut state = self.state.lock();
        if state.is_gone {
            return;
        }
        let any = state.receive.want_interrupt();
        state.receive.want_no_interrupt();
        // An interrupt without a packet may be the device's call for help. It may also be one for
        // what was received before it came.
        if !any && !device::is_healthy(&self.common) {
            log!("the device asks for a reset");
            self.give_up(state);
            return;
        }
        drop(state);
        self.raise();
    }

    /// The state of a device that works.
    fn working(&self) -> Result<MutexGuard<'_, State>, NetError> {
        let state = self.state.lock();
        match state.is_gone {
            false => Ok(state),
            true => Err(NetError::Gone),
        }
    }

    /// Tells who wants to know that there may be packets.
    fn raise(&self) {
        let raiser = self.raiser.lock().clone();
        if let Some(raiser) = raiser {
            // It fails only if nobody listens.
            let _ = raiser.raise();
        }
    }

    /// The device breaks the rules.
    fn broke(&self, state: MutexGuard<'_, State>, fault: &Fault) -> NetError {
        log!("the device breaks the rules: {fault}");
        self.give_up(state)
    }

    /// Stops the device. The event that told of packets ends.
    fn give_up(&self, mut state: MutexGuard<'_, State>) -> NetError {
        state.is_gone = true;
        if device::reset(&self.common, 1000, || ()).is_err() {
            log!("and it does not even finish a reset");
        }
        drop(state);
        let raiser = self.raiser.lock().take();
        drop(raiser);
        NetError::Gone
    }
}

impl State {
    /// Takes back the cells that were sent.
    fn reclaim(&mut self) -> Result<(), Fault> {
        while let Some(back) = self.transmit.take()? {
            self.transmit.release(&back);
            self.full_since = None;
        }
        Ok(())
    }

    /// Gives the device packets as long as it has room; whether it has had none for too long.
    fn send_all(&mut self, packets: &[Packet], now: u64) -> bool {
        let mut sent = 0;
        for packet in packets {
            if !self.transmit.send(packet) {
                break;
            }
            self.traffic.sent_bytes += u64::from(packet.length);
            sent += 1;
        }
        self.transmit.notify();
        self.traffic.sent += sent;
        let dropped = packets.len() as u64 - sent;
        self.traffic.dropped += dropped;
        if dropped == 0 {
            return false;
        }
        let since = *self.full_since.get_or_insert(now);
        now.saturating_sub(since) > PATIENCE
    }

    /// Fills packets with what has arrived: how many, and whether there may be more of which no
    /// interrupt will tell although there was room.
    fn receive_into(&mut self, packets: &mut [Packet]) -> Result<(u32, bool), Fault> {
        let (mut count, mut looks) = (0, 0);
        while let Some(packet) = packets.get_mut(count) {
            looks += 1;
            if looks > MOST_LOOKS {
                break;
            }
            match self.receive.take()? {
                None if self.receive.want_interrupt() => {}
                None => break,
                Some(back) => {
                    if self.receive.read(&back, packet) {
                        self.traffic.received_bytes += u64::from(packet.length);
                        count += 1;
                    }
                    self.receive.refill(back);
                }
            }
        }
        self.receive.notify();
        self.traffic.received += count as u64;
        Ok((count as u32, looks > MOST_LOOKS))
    }
}
