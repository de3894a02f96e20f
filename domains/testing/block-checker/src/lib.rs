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
use interfaces::{Block, Handle, RVec, RpcResult};

const SECTOR: usize = 512;
/// Threads, and with them regions.
const THREADS: u64 = 2;
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
/// No memory.
pub fn start(device: Handle<dyn Block>) -> RpcResult<()> {
    let device = Arc::new(device);
    for number in 0..THREADS {
        let device = device.clone();
        thread::spawn("checker", move || Checker::new(number).run(&device))?;
    }
    Ok(())
}

struct Checker {
    /// The first sector of the region.
    first: u64,
    /// Of each sector; 0: not written yet.
    generations: Vec<u32>,
    generation: u32,
    random: u64,
}

impl Checker {
    fn new(number: u64) -> Self {
        Checker {
            first: number * REGION,
            generations: vec![0; REGION as usize],
            generation: 0,
            random: 0x7ef011 + number,
        }
    }

    /// A number below `limit` (xorshift).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % limit
    }

    fn run(&mut self, device: &Handle<dyn Block>) {
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

    fn step(&mut self, device: &Handle<dyn Block>) -> Result<(), String> {
        let start = self.below(REGION - MOST);
        let count = 1 + self.below(MOST);
        match self.below(3) {
            0 => self.write(device, start, count),
            _ => self.read(device, start, count),
        }
    }

    fn write(&mut self, device: &Handle<dyn Block>, start: u64, count: u64) -> Result<(), String> {
        self.generation += 1;
        let range = start as usize..(start + count) as usize;
        self.generations[range].fill(self.generation);
        let expected = self.expected(start, count);
        let data = RVec::from_slice(&expected).map_err(|error| format!("{error}"))?;
        let written = device.write(self.first + start, &data);
        written.map_err(|error| format!("a write failed: {error:?}"))
    }

    fn read(&mut self, device: &Handle<dyn Block>, start: u64, count: u64) -> Result<(), String> {
        let buffer = RVec::filled(0xff, count as usize * SECTOR);
        let buffer = buffer.map_err(|error| format!("{error}"))?;
        let data = device.read(self.first + start, buffer);
        let data = data.map_err(|error| format!("a read failed: {error:?}"))?;
        match *data == self.expected(start, count) {
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
