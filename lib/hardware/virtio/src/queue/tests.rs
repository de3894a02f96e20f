//! The driver's side beside a device that a test plays, step by step.

use super::*;
use core::cell::RefCell;

/// Memory with a view for the test's device.
pub struct Shared(RefCell<Vec<u8>>);

impl Shared {
    pub fn new(bytes: usize) -> Self {
        Shared(RefCell::new(vec![0; bytes]))
    }

    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0.borrow()[offset..offset + N]
            .try_into()
            .expect("N bytes")
    }

    fn set(&self, offset: usize, bytes: &[u8]) {
        self.0.borrow_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn read_u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.get(offset))
    }

    /// The device puts an entry into the used ring.
    fn complete(&self, layout: Layout, id: u32, written: u32) {
        let index = self.read_u16(layout.used + 2);
        let slot = usize::from(index % layout.size);
        self.write_u32(layout.used + 4 + 8 * slot, id);
        self.write_u32(layout.used + 8 + 8 * slot, written);
        self.write_u16(layout.used + 2, index.wrapping_add(1));
    }
}

impl Memory for Shared {
    fn read_u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.get(offset))
    }
    fn read_u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.get(offset))
    }
    fn write_u16(&self, offset: usize, value: u16) {
        self.set(offset, &value.to_le_bytes());
    }
    fn write_u32(&self, offset: usize, value: u32) {
        self.set(offset, &value.to_le_bytes());
    }
    fn write_words(&self, offset: usize, words: [u64; 2]) {
        self.set(offset, words.map(u64::to_le_bytes).as_flattened());
    }
    fn fence(&self) {}
}

fn queue(size: u16) -> (Layout, Shared, Queue) {
    let layout = Layout::new(size).expect("a power of two");
    let memory = Shared::new(layout.bytes);
    let queue = Queue::new(layout, &memory, 0);
    (layout, memory, queue)
}

fn out(length: u32) -> Buffer {
    Buffer {
        address: 0x1000,
        length,
        device_writes: false,
    }
}

fn into(length: u32) -> Buffer {
    Buffer {
        address: 0x2000,
        length,
        device_writes: true,
    }
}

#[test]
fn the_layout_follows_the_alignments() {
    let layout = Layout::new(8).expect("a power of two");
    assert_eq!(
        (layout.available, layout.used, layout.bytes),
        (128, 152, 222)
    );
    for size in [0, 3, 0x8001] {
        assert_eq!(Layout::new(size), None);
    }
}

#[test]
fn the_device_sees_the_chain() {
    let (layout, memory, mut queue) = queue(8);
    let chain = queue
        .add(&memory, &[out(16), into(512), into(1)])
        .expect("room");
    assert_eq!(memory.read_u16(layout.available + 2), 1);
    assert_eq!(memory.read_u16(layout.available + 4), chain.0);
    assert_eq!(
        (
            memory.read_u64(0),
            memory.read_u32(8),
            memory.read_u16(12),
            memory.read_u16(14)
        ),
        (0x1000, 16, NEXT, 1)
    );
    assert_eq!(
        (
            memory.read_u64(16),
            memory.read_u16(28),
            memory.read_u16(30)
        ),
        (0x2000, NEXT | WRITE, 2)
    );
    assert_eq!((memory.read_u32(40), memory.read_u16(44)), (1, WRITE));
}

#[test]
fn completions_in_any_order_free_the_descriptors() {
    let (layout, memory, mut queue) = queue(4);
    let first = queue.add(&memory, &[out(1), into(8)]).expect("room");
    let second = queue.add(&memory, &[into(8), into(8)]).expect("room");
    assert_eq!(queue.add(&memory, &[out(1)]), Err(AddError::Full));
    memory.complete(layout, second.0.into(), 16);
    memory.complete(layout, first.0.into(), 0);
    assert_eq!(
        queue.take(&memory),
        Ok(Some(Completion {
            chain: second,
            written: 16
        }))
    );
    assert_eq!(
        queue.take(&memory),
        Ok(Some(Completion {
            chain: first,
            written: 0
        }))
    );
    assert_eq!(queue.take(&memory), Ok(None));
    assert_eq!((queue.free(), queue.with_device()), (4, 0));
    queue
        .add(&memory, &[out(1), out(1), out(1), into(1)])
        .expect("all are free again");
}

#[test]
fn indices_wrap_around() {
    let (layout, memory, mut queue) = queue(2);
    for round in 0..0x1_0010u32 {
        let chain = queue.add(&memory, &[into(4)]).expect("room");
        memory.complete(layout, chain.0.into(), round % 5);
        assert_eq!(
            queue.take(&memory),
            Ok(Some(Completion {
                chain,
                written: round % 5
            }))
        );
    }
}

#[test]
fn bad_chains_are_refused() {
    let (_, memory, mut queue) = queue(2);
    for bad in [&[][..], &[into(1), out(1)], &[out(1), out(1), out(1)]] {
        assert_eq!(queue.add(&memory, bad), Err(AddError::BadChain));
    }
    assert_eq!(queue.free(), 2);
}

#[test]
fn a_completion_out_of_nothing_is_a_fault() {
    let (layout, memory, mut queue) = queue(4);
    memory.complete(layout, 0, 0);
    assert_eq!(queue.take(&memory), Err(Fault::TooManyCompletions));
}

#[test]
fn a_jump_of_the_index_is_a_fault() {
    let (layout, memory, mut queue) = queue(4);
    queue.add(&memory, &[out(1)]).expect("room");
    memory.write_u16(layout.used + 2, 0x8000);
    assert_eq!(queue.take(&memory), Err(Fault::TooManyCompletions));
    memory.write_u16(layout.used + 2, 0xffff);
    assert_eq!(queue.take(&memory), Err(Fault::TooManyCompletions));
}

#[test]
fn a_descriptor_out_of_range_is_a_fault() {
    let (layout, memory, mut queue) = queue(4);
    queue.add(&memory, &[out(1)]).expect("room");
    memory.complete(layout, 4, 0);
    assert_eq!(queue.take(&memory), Err(Fault::NoSuchDescriptor(4)));
    memory.write_u32(layout.used + 4, 0x1_0000);
    assert_eq!(queue.take(&memory), Err(Fault::NoSuchDescriptor(0x1_0000)));
}

#[test]
fn a_chain_completed_twice_is_a_fault() {
    let (layout, memory, mut queue) = queue(4);
    let first = queue.add(&memory, &[out(1)]).expect("room");
    queue.add(&memory, &[out(1)]).expect("room");
    memory.complete(layout, first.0.into(), 0);
    memory.complete(layout, first.0.into(), 0);
    assert!(queue.take(&memory).is_ok());
    assert_eq!(queue.take(&memory), Err(Fault::NotWithDevice(first.0)));
    assert_eq!(queue.with_device(), 1);
}

#[test]
fn the_middle_of_a_chain_is_not_its_name() {
    let (layout, memory, mut queue) = queue(4);
    queue.add(&memory, &[out(1), into(1)]).expect("room");
    memory.complete(layout, 1, 0);
    assert_eq!(queue.take(&memory), Err(Fault::NotWithDevice(1)));
}

#[test]
fn a_length_beyond_the_room_is_a_fault() {
    let (layout, memory, mut queue) = queue(4);
    let chain = queue
        .add(&memory, &[out(100), into(8), into(1)])
        .expect("room");
    memory.complete(layout, chain.0.into(), 10);
    assert_eq!(queue.take(&memory), Err(Fault::WroteTooMuch(10)));
}

#[test]
fn scribbling_over_the_descriptors_changes_nothing() {
    let (layout, memory, mut queue) = queue(4);
    let chain = queue.add(&memory, &[out(1), into(4)]).expect("room");
    memory.set(0, &[0xff; 64]);
    memory.write_u32(layout.available, 0xffff_ffff);
    memory.complete(layout, chain.0.into(), 4);
    assert_eq!(
        queue.take(&memory),
        Ok(Some(Completion { chain, written: 4 }))
    );
    assert_eq!(queue.free(), 4);
    queue
        .add(&memory, &[out(1), out(1), out(1), out(1)])
        .expect("the free list is intact");
}
