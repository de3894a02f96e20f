//! Throughput of a block device behind the block shadow while its driver crashes (P6, RedLeaf's
//! figure 11): never, once a second, and ten times a second.
//!
//! Driver and medium are those of the fault campaign (`lab/faults`): the medium outlives the
//! driver, so that every sector that is read can be checked.

use super::{launch, prepare, say, tell};
use crate::frames::POOL;
use abi::Handle;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use faults::Line;
use faults::store::{SECTOR, Store, pause};
use faults::supervisor::{Respawner, Supervisor};
use interfaces::{Block, MemoryObjects, Respawn};
use isolation::Reason;
use isolation::death::kill::{CrashRequest, ask_to_crash, kill};
use isolation::platform::platform;
use services::KernelObjects;

/// Bytes of a transfer, and of what is transferred again and again.
const TRANSFER: usize = 32 * 1024;
const SPAN: usize = 8 << 20;
/// Seconds that the device is watched for each figure, a second at a time in turns; and the
/// nanoseconds that one value is the mean of.
const SECONDS: u64 = 10;
const SECOND: u64 = 1_000_000_000;
const SAMPLE: u64 = 100_000_000;
/// Nanoseconds after which an answer is looked for again.
const PERIOD: u64 = 1_000;
/// Crashes a second.
const CRASHES: [u64; 3] = [0, 1, 10];

/// What is done with the device.
#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// Both directions, with no crashes and with many.
pub fn disk() -> Result<(), String> {
    // Both live as long as the process, since drivers that are being cleared away still name them.
    let store: &'static Store = Box::leak(Box::new(Store::new(SPAN / SECTOR)));
    let supervisor = Supervisor::new(prepare("domains/frail-disk")?, store, 1);
    let supervisor: &'static Supervisor = Box::leak(Box::new(supervisor));
    let grant = Handle::<dyn Respawn>::new(Respawner(supervisor)).map_err(say)?;
    let shadow = prepare("domains/block-shadow")?;
    let (shadow, device) = launch::<dyn Block>(&shadow, Some(grant.into_any()), None)?;
    let objects = Handle::<dyn MemoryObjects>::new(KernelObjects(POOL)).map_err(say)?;
    let device = Line::open(&device, &objects, TRANSFER, || pause(PERIOD));
    let device = device.map_err(|error| format!("no queue: {error:?}"))?;
    for (direction, name) in [(Direction::Write, "write"), (Direction::Read, "read")] {
        let mut samples = [const { Vec::new() }; CRASHES.len()];
        for _ in 0..SECONDS {
            for (crashes, samples) in CRASHES.into_iter().zip(&mut samples) {
                watch(&device, supervisor, direction, crashes, samples)?;
            }
        }
        for (crashes, samples) in CRASHES.into_iter().zip(&samples) {
            let id = format!("P6{}{crashes}", &name[..1]);
            let name = format!("block {name}, {crashes} crashes a second");
            tell(&id, &name, "MB/s", samples, SAMPLE / 1000);
        }
    }
    kill(&shadow.block, Reason::Exited);
    supervisor.end();
    Ok(())
}

/// Transfers for a second; adds the bytes that went through in each part of it.
fn watch(
    device: &Line<1>,
    supervisor: &Supervisor,
    direction: Direction,
    crashes: u64,
    samples: &mut Vec<u64>,
) -> Result<(), String> {
    let mut buffer = alloc::vec![1u8; TRANSFER];
    let begin = platform().now();
    let (mut bytes, mut crashed, mut at, mut end) = (0, 0, 0, SAMPLE);
    while end <= SECOND {
        let sector = (at / SECTOR) as u64;
        match direction {
            Direction::Write => {
                buffer[..8].copy_from_slice(&sector.to_le_bytes());
                let written = device.write(0, sector, &buffer);
                written.map_err(|error| format!("a write: {error:?}"))?;
            }
            Direction::Read => {
                let read = device.read(0, sector, &mut buffer);
                read.map_err(|error| format!("a read: {error:?}"))?;
                if buffer[..8] != sector.to_le_bytes() || buffer[8..].iter().any(|&byte| byte != 1)
                {
                    return Err(format!("sector {sector} is not as it was written"));
                }
            }
        }
        bytes += TRANSFER as u64;
        at = (at + TRANSFER) % SPAN;
        let passed = platform().now() - begin;
        // The first crash comes after half a period, so that each second has as many as it should.
        if 2 * passed * crashes / SECOND > 2 * crashed {
            crashed += 1;
            if !supervisor
                .current()
                .is_some_and(|block| ask_to_crash(&block) == CrashRequest::Noted)
            {
                return Err("the driver is dead already".into());
            }
        }
        if passed >= end {
            samples.push(core::mem::take(&mut bytes));
            end += SAMPLE;
        }
    }
    Ok(())
}
