//! A device that carries requests out as the specification says, in any order, with event indices
//! and tables; and one that lies. Random steps of the driver beside both.

use crate::queue::tests::Shared;
use crate::queue::{
    AddError, Buffer, Chain, DESCRIPTOR, EVENT_INDEX, INDIRECT, Layout, Memory, Queue, Table,
};
use alloc::vec::Vec;

/// Descriptors of the queue.
const SIZE: u16 = 8;
/// Chains that can have a table.
const TABLES: usize = 8;
/// Descriptors of a table.
const TABLE: usize = 6;

/// A number below `limit` (xorshift).
fn below(random: &mut u64, limit: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 11) % limit
}

/// Rings, and tables behind them. The device's addresses are offsets.
struct Rig {
    layout: Layout,
    memory: Shared,
    queue: Queue,
    by_number: bool,
    device: Device,
}

/// What the device knows.
#[derive(Default)]
struct Device {
    /// Chains that it has seen.
    seen: u16,
    /// Chains that it has seen and not completed: the head, and what it may write.
    has: Vec<(u16, u32)>,
    /// It was told that there is something to see.
    is_notified: bool,
    /// Interrupts that it has raised.
    interrupts: u32,
}

impl Rig {
    fn new(features: u64) -> Self {
        let layout = Layout::new(SIZE).expect("a power of two");
        let memory = Shared::new(layout.bytes.next_multiple_of(16) + TABLES * TABLE * DESCRIPTOR);
        Rig {
            queue: Queue::new(layout, &memory, features),
            layout,
            memory,
            by_number: features & EVENT_INDEX != 0,
            device: Device::default(),
        }
    }

    fn table(&self, number: usize) -> usize {
        self.layout.bytes.next_multiple_of(16) + number * TABLE * DESCRIPTOR
    }

    fn add(&mut self, table: Option<usize>, buffers: &[Buffer]) -> Result<Chain, AddError> {
        let Some(number) = table else {
            return self.queue.add(&self.memory, buffers);
        };
        let offset = self.table(number);
        let table = Table {
            memory: &self.memory,
            offset,
            address: offset as u64,
            room: TABLE,
        };
        self.queue.add_indirect(&self.memory, &table, buffers)
    }

    /// Tells the device what the driver has to tell it.
    fn notify(&mut self) {
        self.device.is_notified |= self.queue.wants_notification(&self.memory);
    }

    /// The device looks at all chains that there are, and says from which on it wants to be told.
    fn look(&mut self) {
        let available = self.memory.read_u16(self.layout.available + 2);
        while self.device.seen != available {
            let slot = usize::from(self.device.seen % SIZE);
            let head = self.memory.read_u16(self.layout.available + 4 + 2 * slot);
            let room = self.walk(head);
            self.device.has.push((head, room));
            self.device.seen = self.device.seen.wrapping_add(1);
        }
        self.device.is_notified = false;
        let event = self.layout.used + 4 + 8 * usize::from(SIZE);
        self.memory.write_u16(event, self.device.seen);
    }

    /// What may be written of the chain at `head`, whose descriptors have to be in order.
    fn walk(&self, head: u16) -> u32 {
        let descriptor = |offset: usize| {
            (
                self.memory.read_u32(offset),
                self.memory.read_u32(offset + 8),
                self.memory.read_u16(offset + 12),
                self.memory.read_u16(offset + 14),
            )
        };
        let mut base = self.layout.descriptors;
        let mut at = descriptor(base + usize::from(head) * DESCRIPTOR);
        let mut left = u32::from(SIZE);
        if at.2 & 4 != 0 {
            assert_eq!(at.2, 4, "a table is no buffer, and nothing follows");
            (base, left) = (at.0 as usize, at.1 / DESCRIPTOR as u32);
            at = descriptor(base);
        }
        let (mut room, mut writes) = (0, false);
        loop {
            let (_, length, flags, next) = at;
            assert!(flags & 2 != 0 || !writes, "to be read behind to be written");
            writes = flags & 2 != 0;
            room += if writes { length } else { 0 };
            left -= 1;
            if flags & 1 == 0 {
                return room;
            }
            assert!(left > 0, "the chain leaves its table");
            at = descriptor(base + usize::from(next) * DESCRIPTOR);
        }
    }

    /// The device completes one of its chains; what it wrote.
    fn complete(&mut self, number: usize) -> (u16, u32) {
        let (head, room) = self.device.has.swap_remove(number);
        let index = self.memory.read_u16(self.layout.used + 2);
        self.say(u32::from(head), room);
        let wanted = if self.by_number {
            let offset = self.layout.available + 4 + 2 * usize::from(SIZE);
            self.memory.read_u16(offset) == index
        } else {
            self.memory.read_u16(self.layout.available) & 1 == 0
        };
        self.device.interrupts += u32::from(wanted);
        (head, room)
    }

    fn say(&mut self, id: u32, written: u32) {
        let index = self.memory.read_u16(self.layout.used + 2);
        let slot = usize::from(index % SIZE);
        self.memory.write_u32(self.layout.used + 4 + 8 * slot, id);
        self.memory
            .write_u32(self.layout.used + 8 + 8 * slot, written);
        self.memory
            .write_u16(self.layout.used + 2, index.wrapping_add(1));
    }

    /// A random chain, in a table that is free if tables are in force.
    fn random_chain(&mut self, free: &mut Vec<usize>, random: &mut u64) -> Option<(Chain, usize)> {
        let count = 1 + below(random, TABLE as u64);
        let read = below(random, count + 1);
        let buffers: Vec<Buffer> = (0..count)
            .map(|number| Buffer {
                address: 0x1000 * number,
                length: 1 + below(random, 4096) as u32,
                device_writes: number >= read,
            })
            .collect();
        let table = free.pop();
        match self.add(table, &buffers) {
            Ok(chain) => Some((chain, table.unwrap_or(usize::MAX))),
            Err(why) => {
                assert_eq!(why, AddError::Full);
                free.extend(table);
                None
            }
        }
    }
}

/// Random steps with an honest device, until everything is back.
fn honest(features: u64, seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut rig = Rig::new(features);
    let with_tables = features & INDIRECT != 0;
    let mut free: Vec<usize> = (0..if with_tables { TABLES } else { 0 }).collect();
    let mut driver: Vec<(Chain, usize)> = Vec::new();
    let mut device: Vec<(u16, u32)> = Vec::new();
    for step in 0..600 {
        match below(&mut random, 4) {
            0 if step < 500 => {
                driver.extend(rig.random_chain(&mut free, &mut random));
                rig.notify();
            }
            // A device that was told looks; one that was not may look as well.
            1 if rig.device.is_notified || below(&mut random, 4) == 0 => rig.look(),
            2 if !rig.device.has.is_empty() => {
                let number = below(&mut random, rig.device.has.len() as u64) as usize;
                device.push(rig.complete(number));
            }
            _ => {
                while let Some(back) = rig.queue.take(&rig.memory).expect("it is honest") {
                    assert_eq!((back.chain.0, back.written), device.remove(0));
                    let at = driver.iter().position(|it| it.0 == back.chain);
                    let (_, table) = driver.swap_remove(at.expect("it was given"));
                    free.extend((table != usize::MAX).then_some(table));
                }
                assert!(!rig.queue.want_interrupt(&rig.memory));
            }
        }
        // Whatever waits, the device was told of it or has seen it.
        let available = rig.memory.read_u16(rig.layout.available + 2);
        assert!(rig.device.is_notified || rig.device.seen == available);
    }
    assert_eq!(usize::from(rig.queue.with_device()), driver.len());
}

#[test]
fn random_chains_go_to_the_device_and_back() {
    for seed in 0..60 {
        for features in [0, EVENT_INDEX, INDIRECT, INDIRECT | EVENT_INDEX] {
            honest(features, seed);
        }
    }
}

#[test]
fn an_interrupt_comes_for_the_first_completion_after_it_was_wanted() {
    for features in [EVENT_INDEX, 0] {
        let mut rig = Rig::new(features);
        let buffer = Buffer {
            address: 0,
            length: 8,
            device_writes: true,
        };
        for _ in 0..4 {
            rig.add(None, &[buffer]).expect("room");
        }
        rig.look();
        rig.complete(0);
        assert_eq!(rig.device.interrupts, 1);
        rig.complete(0);
        // By number there is one, by flags one for each.
        assert_eq!(rig.device.interrupts, 2 - u32::from(features != 0));
        assert!(rig.queue.want_interrupt(&rig.memory), "two are there");
        while rig.queue.take(&rig.memory).expect("honest").is_some() {}
        assert!(!rig.queue.want_interrupt(&rig.memory));
        let before = rig.device.interrupts;
        rig.complete(0);
        assert_eq!(rig.device.interrupts, before + 1);
        rig.queue.want_no_interrupt(&rig.memory);
        rig.complete(0);
        assert_eq!(rig.device.interrupts, before + 1);
    }
}

#[test]
fn a_table_takes_one_descriptor_and_has_its_limits() {
    let mut rig = Rig::new(INDIRECT);
    let buffer = Buffer {
        address: 0,
        length: 8,
        device_writes: false,
    };
    for number in 0..usize::from(SIZE) {
        rig.add(Some(number), &[buffer; TABLE]).expect("room");
    }
    assert_eq!(rig.add(Some(0), &[buffer]), Err(AddError::Full));
    assert_eq!(
        Rig::new(INDIRECT).add(Some(0), &[buffer; TABLE + 1]),
        Err(AddError::BadChain)
    );
    assert_eq!(
        Rig::new(INDIRECT).add(Some(0), &[]),
        Err(AddError::BadChain)
    );
}

/// A device that writes anything anywhere in the rings: the driver gets chains that it gave, each
/// once, with no more bytes than there is room for, or a fault.
#[test]
fn a_device_that_lies_is_found_out_or_believed_in_what_it_could_have_done() {
    for seed in 1..2000u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut rig = Rig::new(INDIRECT | EVENT_INDEX);
        let mut free: Vec<usize> = (0..TABLES).collect();
        let mut given = Vec::new();
        for _ in 0..60 {
            match below(&mut random, 6) {
                0 | 1 => given.extend(rig.random_chain(&mut free, &mut random)),
                2 => {
                    let id = below(&mut random, 10) as u32;
                    let written = below(&mut random, 9000) as u32;
                    rig.say(id, written);
                }
                3 => {
                    // Only what the device may write by the rules of the queue, and all of it.
                    let end = rig.layout.bytes as u64 / 2;
                    let offset = 2 * below(&mut random, end) as usize;
                    rig.memory.write_u16(offset, random as u16);
                }
                4 => {
                    rig.queue.wants_notification(&rig.memory);
                    rig.queue.want_interrupt(&rig.memory);
                }
                _ => match rig.queue.take(&rig.memory) {
                    Ok(None) => {}
                    Ok(Some(back)) => {
                        let at = given.iter().position(|(chain, _)| *chain == back.chain);
                        let (_, table) = given.swap_remove(at.expect("it was with the device"));
                        free.push(table);
                        assert!(back.written <= 4096 * TABLE as u32);
                    }
                    Err(_) => break,
                },
            }
            assert_eq!(usize::from(rig.queue.with_device()), given.len());
            assert_eq!(
                usize::from(rig.queue.free()) + given.len(),
                usize::from(SIZE)
            );
        }
    }
}
