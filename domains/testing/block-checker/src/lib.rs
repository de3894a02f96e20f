//! A client of a block device that works all the time and knows what must come back: see
//! `block-checker.idl`.
//!
//! Each thread has a region of its own. Every sector of it holds its number and its generation; the
//! thread knows the generations, and in every step writes some sectors anew or reads some and
//! compares.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use domain_rt::{log, thread, time};
use interfaces::{Block, Handle, MemoryObjects, RpcError, RpcResult};
use line::Line;

type Device = Line<THREADS>;

const SECTOR: usize = 512;
/// Nanoseconds after which an answer is looked for again.
const PERIOD: u64 = 50_000;
/// Threads, and with them regions.
const THREADS: usize = 2;
/// Sectors of a region.
const REGION: u64 = 2048;
/// Sectors of a step, at most.
const MOST: u64 = 64;
/// Steps after which a thread rests, so that others get something done.
const BATCH: u64 = 16;
/// Steps after which it says that they were right.
const REPORT: u64 = 256;

/// Starts the threads.
///
/// # Errors
/// No memory, or no queue.
pub fn start(device: Handle<dyn Block>, objects: Handle<dyn MemoryObjects>) -> RpcResult<()> {
    let room = MOST as usize * SECTOR;
    let device = Line::open(&device, &objects, room, || time::sleep(PERIOD));
    let device = device.map_err(|error| {
        log!("there is no queue: {error:?}");
        RpcError::Refused
    })?;
    let device = Arc::new(device);
    for number in 0..THREADS {
        let device = device.clone();
        thread::spawn("checker", move || Checker::new(number).run(&device))?;
    }
    Ok(())
}

struct Checker {
    number: usize,
    /// The first sector of the region.
    first: u64,
    /// Of each sector; 0: not written yet.
    generations: Vec<u32>,
    generation: u32,
    random: u64,
}

impl Checker {
    fn new(number: usize) -> Self {
        Checker {
            number,
            first: number as u64 * REGION,
            generations: vec![0; REGION as usize],
            generation: 0,
            random: 0x7ef011 + number as u64,
        }
    }

    /// A number below `limit` (xorshift).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % limit
    }

    fn run(&mut self, device: &Device) {
        let mut right = 0;
        for step in 1.. {
            match self.step(device) {
                Ok(()) => right += 1,
                Err(what) => log!("WRONG in step {step}: {what}"),
            }
            if step % BATCH == 0 {
                time::sleep(2_000_000);
            }
            if step % REPORT == 0 {
                log!("region {}: {right} of {step} steps right", self.first);
            }
        }
    }

    fn step(&mut self, device: &Device) -> Result<(), String> {
        let start = self.below(REGION - MOST);
        let count = 1 + self.below(MOST);
        match self.below(3) {
            0 => self.write(device, start, count),
            _ => self.read(device, start, count),
        }
    }

    fn write(&mut self, device: &Device, start: u64, count: u64) -> Result<(), String> {
        self.generation += 1;
        let range = start as usize..(start + count) as usize;
        self.generations[range].fill(self.generation);
        let expected = self.expected(start, count);
        let written = device.write(self.number, self.first + start, &expected);
        written.map_err(|error| format!("a write failed: {error:?}"))
    }

    fn read(&mut self, device: &Device, start: u64, count: u64) -> Result<(), String> {
        let mut data = vec![0xff; count as usize * SECTOR];
        let read = device.read(self.number, self.first + start, &mut data);
        read.map_err(|error| format!("a read failed: {error:?}"))?;
        match data == self.expected(start, count) {
            true => Ok(()),
            false => Err(format!(
                "{count} sectors from {start} on are not as written"
            )),
        }
    }

    /// What the sectors hold.
    fn expected(&self, start: u64, count: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count as usize * SECTOR);
        for sector in start..start + count {
            let generation = self.generations[sector as usize];
            let word = match generation {
                0 => 0,
                _ => (self.first + sector) << 32 | u64::from(generation),
            };
            (0..SECTOR / 8).for_each(|_| bytes.extend(word.to_le_bytes()));
        }
        bytes
    }
}
