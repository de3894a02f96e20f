//! A split virtqueue (virtio 1.2, section 2.7).
//!
//! Three areas lie in memory that the device reads and writes: the descriptor table, the available
//! ring (driver to device) and the used ring (device to driver), laid out by [`Layout`]. The queue
//! never reads back what it wrote there. Which descriptors are free, which chains are with the
//! device and how many bytes each may be given lies in the driver's own memory, so a device that
//! writes nonsense into the rings gets a [`Fault`], and nothing else happens.
//!
//! States of a chain: free -> [`Queue::add`] -> with the device -> [`Queue::take`] -> free. The
//! number of its first descriptor is its name in between. A chain can also stand in a table of its
//! own ([`Queue::add_indirect`]); then it takes one descriptor of the queue, however long it is.
//!
//! # Who tells whom, and when
//! Driver and device can spare each other notifications (2.7.7, 2.7.10), by flags or, with
//! [`EVENT_INDEX`], by the number of the chain from which on one is wanted. The driver asks
//! [`Queue::wants_notification`] after it has added chains, and says by
//! [`Queue::want_interrupt`] and [`Queue::want_no_interrupt`] what it wants itself. What a device
//! writes there can only make it wait for a notification that does not come.

#[cfg(test)]
pub(crate) mod tests;

use alloc::vec;
use alloc::vec::Vec;

/// Memory shared with the device. Offsets count from its start; numbers are little-endian; every
/// access is done once, as it stands.
pub trait Memory {
    /// Reads 16 bits.
    fn read_u16(&self, offset: usize) -> u16;
    /// Reads 32 bits.
    fn read_u32(&self, offset: usize) -> u32;
    /// Writes 16 bits.
    fn write_u16(&self, offset: usize, value: u16);
    /// Writes 32 bits.
    fn write_u32(&self, offset: usize, value: u32);
    /// Writes two words of 64 bits, which follow each other.
    fn write_words(&self, offset: usize, words: [u64; 2]);
    /// Orders all accesses before it before all after it, for the device as well.
    fn fence(&self);
}

/// Feature: chains may stand in tables of their own (2.7.5.3).
pub const INDIRECT: u64 = 1 << 28;
/// Feature: notifications are wanted by number (2.7.7, 2.7.10).
pub const EVENT_INDEX: u64 = 1 << 29;

/// Descriptor flag: the chain goes on (2.7.5).
const NEXT: u16 = 1;
/// Descriptor flag: the device writes.
const WRITE: u16 = 2;
/// Descriptor flag: what it names is a table of descriptors.
const TABLE: u16 = 4;
/// Flag of a ring: whoever reads the ring needs no notification.
const NO_NOTIFICATION: u16 = 1;
/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 16;
/// The largest queue that virtio allows.
pub const LARGEST: u16 = 0x8000;

/// Where the three areas of a queue lie, as offsets from the start of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of descriptors, a power of two.
    pub size: u16,
    /// The descriptor table.
    pub descriptors: usize,
    /// The available ring.
    pub available: usize,
    /// The used ring.
    pub used: usize,
    /// Length of all three, in bytes.
    pub bytes: usize,
}

impl Layout {
    /// The layout of a queue of `size` descriptors; `None` if that is not a power of two up to
    /// [`LARGEST`].
    pub fn new(size: u16) -> Option<Self> {
        if !size.is_power_of_two() || size > LARGEST {
            return None;
        }
        let count = usize::from(size);
        // Alignments: 16 for the table, 2 for the available and 4 for the used ring (2.7). The two
        // event fields are there whether their feature is used or not.
        let available = count * DESCRIPTOR;
        let used = (available + 6 + 2 * count).next_multiple_of(4);
        Some(Layout {
            size,
            descriptors: 0,
            available,
            used,
            bytes: used + 6 + 8 * count,
        })
    }

    /// Where the driver says from which completion on it wants an interrupt (2.7.6).
    const fn used_event(&self) -> usize {
        self.available + 4 + 2 * self.size as usize
    }

    /// Where the device says from which chain on it wants a notification (2.7.8).
    const fn available_event(&self) -> usize {
        self.used + 4 + 8 * self.size as usize
    }
}

/// A piece of memory for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its address, as the device sees it.
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The device writes it (otherwise reads it).
    pub device_writes: bool,
}

/// The name of a chain that is with the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(pub u16);

/// A chain that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The chain.
    pub chain: Chain,
    /// How many bytes the device says it wrote; not more than it was given.
    pub written: u32,
}

/// Why a chain was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// Not enough descriptors are free now.
    Full,
    /// No buffers, more than the queue has descriptors, or one to be read behind one to be written.
    BadChain,
}

/// A device broke the rules of the queue. Nothing it says can be used any more; it has to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It says that it completed more chains than it has.
    TooManyCompletions,
    /// It names a descriptor that does not exist.
    NoSuchDescriptor(u32),
    /// It names a chain that it does not have: never given, or completed before.
    NotWithDevice(u16),
    /// It says that it wrote more bytes than the chain has room for.
    WroteTooMuch(u32),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Fault::TooManyCompletions => f.write_str("it completed more requests than it has"),
            Fault::NoSuchDescriptor(id) => {
                write!(f, "it completed descriptor {id}, which does not exist")
            }
            Fault::NotWithDevice(id) => {
                write!(f, "it completed descriptor {id}, which it does not have")
            }
            Fault::WroteTooMuch(bytes) => {
                write!(f, "it wrote {bytes} bytes, more than it was given")
            }
        }
    }
}

/// What the driver remembers of the chain that starts at a descriptor.
#[derive(Clone, Copy)]
struct Head {
    /// Descriptors in the chain; 0: the chain is not with the device.
    length: u16,
    /// The last one.
    last: u16,
    /// Bytes that the device may write.
    room: u32,
}

/// The driver's side of a queue.
pub struct Queue {
    layout: Layout,
    heads: Vec<Head>,
    /// The next descriptor, of a chain or in the list of free ones.
    next: Vec<u16>,
    first_free: u16,
    free: u16,
    with_device: u16,
    /// Chains ever made available, modulo 2^16.
    available: u16,
    /// Chains ever taken back, modulo 2^16.
    taken: u16,
    /// Chains that were available when somebody asked last whether to notify the device.
    told: u16,
    /// [`EVENT_INDEX`] is in force.
    by_number: bool,
}

/// A table for one chain: memory that is shared with the device.
pub struct Table<'a, M> {
    /// The memory that it lies in.
    pub memory: &'a M,
    /// Where in that.
    pub offset: usize,
    /// Its address, as the device sees it.
    pub address: u64,
    /// How many descriptors it has room for.
    pub room: usize,
}

impl Queue {
    /// An empty queue over fresh memory, which the device does not use yet. The memory is set up:
    /// an interrupt is wanted for the first completion. `features` are those in force.
    pub fn new(layout: Layout, memory: &impl Memory, features: u64) -> Self {
        memory.write_u32(layout.available, 0);
        memory.write_u32(layout.used, 0);
        memory.write_u16(layout.used_event(), 0);
        memory.write_u16(layout.available_event(), 0);
        let count = usize::from(layout.size);
        Queue {
            layout,
            heads: vec![
                Head {
                    length: 0,
                    last: 0,
                    room: 0
                };
                count
            ],
            next: (1..=layout.size).collect(),
            first_free: 0,
            free: layout.size,
            with_device: 0,
            available: 0,
            taken: 0,
            told: 0,
            by_number: features & EVENT_INDEX != 0,
        }
    }

    /// Descriptors that are free.
    pub fn free(&self) -> u16 {
        self.free
    }

    /// Chains that are with the device.
    pub fn with_device(&self) -> u16 {
        self.with_device
    }

    /// Gives a chain of buffers to the device; what it reads has to come before what it writes
    /// (2.7.4.2). The device must be notified afterwards.
    ///
    /// # Errors
    /// See [`AddError`]; nothing was done.
    pub fn add(&mut self, memory: &impl Memory, buffers: &[Buffer]) -> Result<Chain, AddError> {
        let room = self.check_chain(buffers)?;
        if buffers.len() > usize::from(self.free) {
            return Err(AddError::Full);
        }
        let head = self.first_free;
        self.write_descriptors(memory, buffers, room);
        self.publish(memory, head);
        Ok(Chain(head))
    }

    /// As [`add`](Self::add), with the chain in a table, which has to stay as it is until the chain
    /// is back. Only for devices with which [`INDIRECT`] is in force.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`AddError::BadChain`] also if the table has no room for it.
    pub fn add_indirect<M: Memory>(
        &mut self,
        memory: &impl Memory,
        table: &Table<'_, M>,
        buffers: &[Buffer],
    ) -> Result<Chain, AddError> {
        // A chain must not be longer than the queue, also in a table (2.7.5.3.1).
        let room = self.check_chain(buffers)?;
        if buffers.len() > table.room {
            return Err(AddError::BadChain);
        }
        if self.free == 0 {
            return Err(AddError::Full);
        }
        for (number, buffer) in buffers.iter().enumerate() {
            let next = (number + 1 < buffers.len()).then_some(number as u16 + 1);
            let offset = table.offset + number * DESCRIPTOR;
            write_descriptor(table.memory, offset, buffer, flags(buffer), next);
        }
        let head = self.first_free;
        let whole = Buffer {
            address: table.address,
            length: (buffers.len() * DESCRIPTOR) as u32,
            device_writes: false,
        };
        let offset = self.layout.descriptors + usize::from(head) * DESCRIPTOR;
        write_descriptor(memory, offset, &whole, TABLE, None);
        let (length, last) = (1, head);
        let free = self.next[usize::from(head)];
        self.take_descriptors(head, Head { length, last, room }, free);
        self.publish(memory, head);
        Ok(Chain(head))
    }

    /// Checks a chain; how many bytes of it the device may write.
    #[inline]
    fn check_chain(&self, buffers: &[Buffer]) -> Result<u32, AddError> {
        if buffers.is_empty() || buffers.len() > usize::from(self.layout.size) {
            return Err(AddError::BadChain);
        }
        let (mut room, mut is_written) = (0u32, false);
        for buffer in buffers {
            if buffer.device_writes {
                room = room.saturating_add(buffer.length);
                is_written = true;
            } else if is_written {
                return Err(AddError::BadChain);
            }
        }
        Ok(room)
    }

    /// Fills free descriptors from the first on and takes them off the free list.
    fn write_descriptors(&mut self, memory: &impl Memory, buffers: &[Buffer], room: u32) {
        let head = self.first_free;
        let (mut at, mut last) = (head, head);
        for (number, buffer) in buffers.iter().enumerate() {
            let following = self.next[usize::from(at)];
            let next = (number + 1 < buffers.len()).then_some(following);
            let offset = self.layout.descriptors + usize::from(at) * DESCRIPTOR;
            write_descriptor(memory, offset, buffer, flags(buffer), next);
            (last, at) = (at, following);
        }
        let length = buffers.len() as u16;
        self.take_descriptors(head, Head { length, last, room }, at);
    }

    /// Remembers a chain, and takes its descriptors off the free list, which begins at `free` now.
    #[inline]
    fn take_descriptors(&mut self, head: u16, chain: Head, free: u16) {
        self.heads[usize::from(head)] = chain;
        self.first_free = free;
        self.free -= chain.length;
    }

    /// Puts a chain into the available ring (2.7.13).
    fn publish(&mut self, memory: &impl Memory, head: u16) {
        let slot = usize::from(self.available & (self.layout.size - 1));
        memory.write_u16(self.layout.available + 4 + 2 * slot, head);
        // The descriptors and the entry must be visible before the index is (2.7.13.3).
        memory.fence();
        self.available = self.available.wrapping_add(1);
        self.with_device += 1;
        memory.write_u16(self.layout.available + 2, self.available);
        memory.fence();
    }

    /// Takes back one chain that the device completed; `None` if there is none.
    ///
    /// # Errors
    /// The device broke the rules. No chain was taken back; the device has to be reset.
    pub fn take(&mut self, memory: &impl Memory) -> Result<Option<Completion>, Fault> {
        let used = memory.read_u16(self.layout.used + 2);
        let waiting = used.wrapping_sub(self.taken);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.with_device {
            return Err(Fault::TooManyCompletions);
        }
        // The entry must be read after the index (2.7.14).
        memory.fence();
        let slot = usize::from(self.taken & (self.layout.size - 1));
        let id = memory.read_u32(self.layout.used + 4 + 8 * slot);
        let written = memory.read_u32(self.layout.used + 8 + 8 * slot);
        let completion = self.check(id, written)?;
        self.release(completion.chain);
        Ok(Some(completion))
    }

    /// Whether the device wants to be notified of what was added since this was asked last. Whoever
    /// asks has to notify it if so.
    pub fn wants_notification(&mut self, memory: &impl Memory) -> bool {
        let added = self.available.wrapping_sub(self.told);
        if added == 0 {
            return false;
        }
        self.told = self.available;
        // The index, which `publish` has written, must be visible before this is read (2.7.13.4).
        memory.fence();
        if self.by_number {
            let from = memory.read_u16(self.layout.available_event());
            is_passed(from, self.available, added)
        } else {
            memory.read_u16(self.layout.used) & NO_NOTIFICATION == 0
        }
    }

    /// Wants an interrupt for the next completion. Whether there is one already that was not taken:
    /// then it may be that no interrupt comes.
    pub fn want_interrupt(&mut self, memory: &impl Memory) -> bool {
        match self.by_number {
            true => memory.write_u16(self.layout.used_event(), self.taken),
            false => memory.write_u16(self.layout.available, 0),
        }
        // It must be visible before the index is looked at once more (2.7.14).
        memory.fence();
        memory.read_u16(self.layout.used + 2) != self.taken
    }

    /// Wants no interrupts: completions are looked for. One may come nevertheless. To be said again
    /// after every 2^15 completions at the latest.
    pub fn want_no_interrupt(&mut self, memory: &impl Memory) {
        match self.by_number {
            // The number is half a round away.
            true => {
                let far = self.taken.wrapping_add(0x8000);
                memory.write_u16(self.layout.used_event(), far);
            }
            false => memory.write_u16(self.layout.available, NO_NOTIFICATION),
        }
    }

    fn check(&self, id: u32, written: u32) -> Result<Completion, Fault> {
        let number = u16::try_from(id)
            .ok()
            .filter(|&number| number < self.layout.size);
        let number = number.ok_or(Fault::NoSuchDescriptor(id))?;
        let head = self.heads[usize::from(number)];
        if head.length == 0 {
            return Err(Fault::NotWithDevice(number));
        }
        if written > head.room {
            return Err(Fault::WroteTooMuch(written));
        }
        Ok(Completion {
            chain: Chain(number),
            written,
        })
    }

    fn release(&mut self, chain: Chain) {
        let head = core::mem::replace(
            &mut self.heads[usize::from(chain.0)],
            Head {
                length: 0,
                last: 0,
                room: 0,
            },
        );
        self.next[usize::from(head.last)] = self.first_free;
        self.first_free = chain.0;
        self.free += head.length;
        self.with_device -= 1;
        self.taken = self.taken.wrapping_add(1);
    }
}

/// What a descriptor of a buffer says of it.
fn flags(buffer: &Buffer) -> u16 {
    match buffer.device_writes {
        true => WRITE,
        false => 0,
    }
}

/// Writes a descriptor (2.7.5), after which the chain goes on with `next`.
#[inline]
fn write_descriptor(
    memory: &impl Memory,
    offset: usize,
    buffer: &Buffer,
    flags: u16,
    next: Option<u16>,
) {
    let more = if next.is_some() { NEXT } else { 0 };
    let (flags, next) = (u64::from(flags | more), u64::from(next.unwrap_or(0)));
    let rest = u64::from(buffer.length) | flags << 32 | next << 48;
    memory.write_words(offset, [buffer.address, rest]);
}

/// Whether the last `added` numbers before `now` have one that is `from` (2.7.7.2, 2.7.10.1).
const fn is_passed(from: u16, now: u16, added: u16) -> bool {
    now.wrapping_sub(from).wrapping_sub(1) < added
}
