//! A null network device: what it is to send it discards, and what it receives it makes up.
//!
//! It does what every driver does with a batch (it takes the lock of its queue, looks at every
//! packet's length, counts), and nothing that would need a device. So it shows what calls into a
//! driver cost. The driver `nullnet` serves it to others; the benchmark's program also has it
//! linked into itself.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::sync::Mutex;
use interfaces::{Batch, Handle, Net, NetError, RRef, Raiser, Traffic};

/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// The longest frame: header and 1,500 bytes.
const LONGEST: usize = HEADER + 1500;
/// Bytes of each packet that is made up.
const MADE_UP: u32 = 64;
/// The hardware address: one of those that everybody may use.
const ADDRESS: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

/// The device.
pub struct NullNet {
    /// What a real driver's queue of descriptors would be.
    queue: Mutex<Traffic>,
}

impl Default for NullNet {
    fn default() -> Self {
        Self::new()
    }
}

impl NullNet {
    /// A device that nothing has passed through.
    pub const fn new() -> Self {
        NullNet {
            queue: Mutex::new(Traffic {
                sent: 0,
                sent_bytes: 0,
                received: 0,
                received_bytes: 0,
                dropped: 0,
            }),
        }
    }
}

impl Net for NullNet {
    fn address(&self) -> Result<[u8; 6], NetError> {
        Ok(ADDRESS)
    }

    fn send(&self, mut batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        let used = batch.packets.get(..batch.count as usize);
        let mut bytes = 0;
        for packet in used.ok_or(NetError::BadLength)? {
            let length = packet.length as usize;
            if !(HEADER..=LONGEST).contains(&length) {
                return Err(NetError::BadLength);
            }
            bytes += length as u64;
        }
        let mut queue = self.queue.lock();
        queue.sent += u64::from(batch.count);
        queue.sent_bytes += bytes;
        batch.count = 0;
        Ok(batch)
    }

    fn receive(&self, mut batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        let count = batch.packets.len();
        for packet in batch.packets.iter_mut() {
            packet.length = MADE_UP;
            packet.bytes[..6].copy_from_slice(&ADDRESS);
        }
        batch.count = count as u32;
        let mut queue = self.queue.lock();
        queue.received += count as u64;
        queue.received_bytes += count as u64 * u64::from(MADE_UP);
        Ok(batch)
    }

    /// There are packets at any time, and none ever arrives: there is nothing to tell of. To raise
    /// it would call whoever made it, in the middle of a call that may hold the locks of a shadow.
    fn tell(&self, _: Handle<dyn Raiser>) -> Result<(), NetError> {
        Ok(())
    }

    fn traffic(&self) -> Result<Traffic, NetError> {
        Ok(*self.queue.lock())
    }
}
