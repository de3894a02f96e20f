//! A submitter of a block queue that checks all that it reads: see `queue-writer.idl`.
//!
//! One life of it: it opens the queue, which ends what the life before has left under way; reads
//! the whole region, where each sector must be what the ledger allows; and from then on knows
//! exactly what is there. It keeps up to [`MOST`] requests under way, reads and writes that
//! overlap a write under way only where a barrier stands between, flushes, some durable, now and
//! then a group of writes, of which the next life must find all or nothing, and checks every
//! answer: each once, none an error, no byte of what was read another than the last write that was
//! acknowledged. Each second life takes answers by event, the others look for them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ledger;
mod work;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use domain_rt::{log, memory, thread, time};
use interfaces::{
    Block, BlockCompletion, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Events, Fired,
    Handle, MemoryObjects, RVec, RpcResult, VmoFill, VmoOwner, VmoRights, VmoView, WaitWord,
};
use queuework::{REGION, SECTOR, SUM, generation, is_possible, stamp, sum};

use crate::ledger::Ledger;

/// Requests under way.
const MOST: usize = 24;
/// Sectors of a request of the usual kind, and pages that each has for itself.
const SECTORS: u64 = 24;
const PAGES: u64 = 4;
/// Pages of the object: those of the requests, and some for the whole region.
const WHOLE: u64 = MOST as u64 * PAGES;
const OBJECT: u64 = WHOLE + REGION / 8 + 1;
/// The object's slot.
const SLOT: u32 = 3;
/// How long an answer may take, in nanoseconds.
const PATIENCE: u64 = 30_000_000_000;

/// Starts the thread that does the work.
///
/// # Errors
/// There is no memory for it.
pub fn start(
    device: Handle<dyn Block>,
    ledger: Handle<dyn VmoView>,
    objects: Handle<dyn MemoryObjects>,
    events: Handle<dyn Events>,
) -> RpcResult<()> {
    memory::reserve(memory::SERVICE)?;
    thread::spawn("writer", move || {
        let ledger = Ledger(ledger);
        let done = run(&device, &ledger, &objects, &events);
        if let Err(what) = done {
            log!("WRONG: {what}");
            let _ = ledger.write(queuework::ledger::WRONG, 1, 1);
        }
    })
}

fn run(
    device: &Handle<dyn Block>,
    ledger: &Ledger,
    objects: &Handle<dyn MemoryObjects>,
    events: &Handle<dyn Events>,
) -> Result<(), String> {
    let life = ledger.count(queuework::ledger::LIVES, 1)?;
    let mut line = Line::open(device, objects, (life % 2 == 0).then_some(events))?;
    let known = line.survey(ledger)?;
    let mut work = work::Work::new(known, life);
    while ledger.number(queuework::ledger::STOP)? == 0 {
        for _ in 0..16 {
            work.step(&mut line, ledger)?;
        }
    }
    work.finish(&mut line, ledger)?;
    let again = line.read_region()?;
    if again != work.known {
        return Err("the region is not as it was written last".into());
    }
    log!(
        "at the end the sum of the region is {:016x}",
        region_sum(&again)
    );
    ledger.write(queuework::ledger::ENDED, 1, 1)
}

fn region_sum(generations: &[u64]) -> u64 {
    let mut bytes = [0; SECTOR];
    let stamps = generations.iter().zip(0..);
    stamps.fold(SUM, |so_far, (generation, sector)| {
        stamp(sector, *generation, &mut bytes);
        sum(so_far, &bytes)
    })
}

/// The queue, its memory, and how answers are waited for.
struct Line {
    queue: Handle<dyn BlockQueue>,
    view: Handle<dyn VmoView>,
    word: Option<Handle<dyn WaitWord>>,
    _owner: Handle<dyn VmoOwner>,
    _event: Option<Handle<dyn interfaces::Event>>,
}

impl Line {
    fn open(
        device: &Handle<dyn Block>,
        objects: &Handle<dyn MemoryObjects>,
        events: Option<&Handle<dyn Events>>,
    ) -> Result<Self, String> {
        let owner = objects.create(OBJECT, VmoFill::Zero);
        let owner = owner.map_err(|error| format!("no object: {error:?}"))?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights).map_err(|error| format!("{error:?}"))?;
        let (mut word, mut event, mut raiser) = (None, None, None);
        if let Some(events) = events {
            let new = events.event().map_err(|error| format!("{error}"))?;
            let waits = events.word().map_err(|error| format!("{error}"))?;
            let handle = waits.duplicate().map_err(|error| format!("{error}"))?;
            let bound = new.event.bind(handle, 0);
            bound.map_err(|error| format!("no binding: {error:?}"))?;
            (word, event, raiser) = (Some(waits), Some(new.event), Some(new.raiser));
        }
        let queue = device.open(raiser);
        let queue = queue.map_err(|error| format!("no queue: {error:?}"))?;
        let registered = view.duplicate().map(|view| queue.register(SLOT, view));
        match registered {
            Ok(Ok(())) => {}
            error => return Err(format!("no slot: {error:?}")),
        }
        Ok(Line {
            queue,
            view,
            word,
            _owner: owner,
            _event: event,
        })
    }

    /// Submits all of `requests`.
    fn submit(&self, requests: &[BlockRequest]) -> Result<(), String> {
        let batch = RVec::from_slice(requests).map_err(|error| format!("{error}"))?;
        let count = requests.len() as u32;
        match self.queue.submit(&batch, count) {
            Ok(taken) if taken == count => Ok(()),
            other => Err(format!("{count} submitted: {other:?}")),
        }
    }

    /// Submits `members` as a group.
    fn submit_group(&self, tag: u64, members: &[BlockRequest]) -> Result<(), String> {
        let members = RVec::from_slice(members).map_err(|error| format!("{error}"))?;
        let submitted = self.queue.submit_group(tag, &members, members.len() as u32);
        submitted.map_err(|error| format!("a group: {error:?}"))
    }

    /// Some answers, at least one; waits for them.
    fn answers(&self) -> Result<Vec<BlockCompletion>, String> {
        let nothing = BlockCompletion {
            tag: u64::MAX,
            outcome: BlockOutcome::Done,
        };
        let deadline = time::now() + PATIENCE;
        loop {
            let room = RVec::filled(nothing, 8).map_err(|error| format!("{error}"))?;
            let answers = self.queue.completions(room);
            let (room, count) = answers.map_err(|error| format!("no answers: {error:?}"))?;
            if count > 0 {
                return Ok(room[..count as usize].to_vec());
            }
            if time::now() > deadline {
                return Err("an answer does not come".into());
            }
            match &self.word {
                None => thread::yield_now(),
                Some(word) => self.wait(word, deadline)?,
            }
        }
    }

    fn wait(&self, word: &Handle<dyn WaitWord>, deadline: u64) -> Result<(), String> {
        let nothing = Fired {
            tag: 0,
            count: 0,
            ended: false,
        };
        let room = RVec::filled(nothing, 1).map_err(|error| format!("{error}"))?;
        let fired = word.wait(Some(deadline), room);
        match fired.map_err(|error| format!("{error}"))?.first() {
            Some(_) => Ok(()),
            None => Err("nobody says that there are answers".into()),
        }
    }

    /// Reads the whole region: the generation of each sector.
    fn read_region(&self) -> Result<Vec<u64>, String> {
        let mut generations = Vec::new();
        let half = REGION / 2;
        for first in [0, half] {
            self.submit(&[BlockRequest {
                tag: first,
                operation: BlockOperation::Read,
                sector: first,
                sectors: half as u32,
                slot: SLOT,
                at: WHOLE * 8 + 3,
                durable: false,
                barrier: false,
            }])?;
            match self.answers()?[..] {
                [answer] if answer.outcome == BlockOutcome::Done && answer.tag == first => {}
                ref other => return Err(format!("a read of the region: {other:?}")),
            }
            generations.extend(self.generations(first, half, WHOLE * 8 + 3)?);
        }
        Ok(generations)
    }

    /// The generations of sectors that were read to `at`.
    fn generations(&self, first: u64, count: u64, at: u64) -> Result<Vec<u64>, String> {
        let length = count as usize * SECTOR;
        let room = RVec::zeroed(length).map_err(|error| format!("{error}"))?;
        let read = self.view.read(at * SECTOR as u64, room);
        let (bytes, _) = read.map_err(|error| format!("its own memory: {error:?}"))?;
        let sectors = bytes.chunks_exact(SECTOR).zip(first..);
        sectors
            .map(|(bytes, sector)| {
                generation(sector, bytes).map_err(|why| format!("sector {sector}: {why:?}"))
            })
            .collect()
    }

    /// What is there after the life before: exactly, and as the ledger allows.
    fn survey(&mut self, ledger: &Ledger) -> Result<Vec<u64>, String> {
        let found = self.read_region()?;
        let submitted = ledger.read(queuework::ledger::SUBMITTED, REGION as usize)?;
        let acknowledged = ledger.read(queuework::ledger::ACKNOWLEDGED, REGION as usize)?;
        whole_groups(&found, &submitted)?;
        for (sector, found) in found.iter().enumerate() {
            let (acknowledged, submitted) = (acknowledged[sector], submitted[sector]);
            if !is_possible(*found, acknowledged, submitted) {
                return Err(format!(
                    "sector {sector} has {found}, of {acknowledged} to {submitted}"
                ));
            }
            // From now on it is exactly this.
            let at = 8 * sector as u64;
            if acknowledged != *found {
                ledger.write(queuework::ledger::ACKNOWLEDGED + at, *found, 1)?;
            }
            if submitted != *found {
                ledger.write(queuework::ledger::SUBMITTED + at, *found, 1)?;
            }
        }
        Ok(found)
    }
}

/// An error if a group that was under way is there in part.
fn whole_groups(found: &[u64], submitted: &[u64]) -> Result<(), String> {
    for (sector, group) in submitted.iter().enumerate() {
        let is_group = group % 2 == 1;
        let of_it = || submitted.iter().zip(found).filter(|(it, _)| *it == group);
        let is_there = |(_, found): (&u64, &u64)| found == group;
        if is_group && of_it().any(is_there) && !of_it().all(is_there) {
            return Err(format!(
                "group {group} is there in part, of sector {sector}"
            ));
        }
    }
    Ok(())
}
