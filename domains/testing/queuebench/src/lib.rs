//! `queuebench`: what 4 KiB read from a disk and written to it take, in guest instructions, for
//! `cargo xtask bench queue`: through a block queue, polled and by event, one request at a time and
//! 32.
//!
//! Polled is the time of the calls that submit and of those that find answers. What is looked for
//! in vain is not counted, nor the time between, when the device is at work. Else it is all that
//! the processor does from before the requests are submitted until after their answers are taken,
//! other threads included, but not the time that it is idle.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use domain_rt::time;
use interfaces::{
    Block, BlockCompletion, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Events, Fired,
    Handle, MemoryObjects, Monitor, RVec, VmoFill, VmoOwner, VmoRights, WaitWord,
};
use ulib::{Env, Error, Process, Program, RpcResult, Stop, println};

/// Sectors of a request, and the slot.
const SECTORS: u32 = 8;
const SLOT: u32 = 0;
/// Requests in a round, and rounds; the best one counts.
const REQUESTS: u64 = 64;
const ROUNDS: usize = 12;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let lab = Lab {
        disk: env.service::<dyn Block>("disk")?,
        objects: env.service::<dyn MemoryObjects>("objects")?,
        events: env.service::<dyn Events>("events")?,
        monitor: env.service::<dyn Monitor>("monitor")?,
    };
    let rows = lab.rows();
    let rows = rows.map_err(|why| {
        let why: &'static str = alloc::boxed::Box::leak(why.into_boxed_str());
        Stop::about(b"queuebench", Error::text(why))
    })?;
    for (name, value) in rows {
        println!(env, "queuebench instructions \"{name}\" {value}")?;
    }
    Ok(env.status())
}

type Result<T, E = String> = core::result::Result<T, E>;

fn words<E: core::fmt::Debug>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error:?}")
}

struct Lab {
    disk: Handle<dyn Block>,
    objects: Handle<dyn MemoryObjects>,
    events: Handle<dyn Events>,
    monitor: Handle<dyn Monitor>,
}

impl Lab {
    fn rows(&self) -> Result<Vec<(String, u64)>> {
        let mut rows = Vec::new();
        for (operation, verb) in [
            (BlockOperation::Read, "read"),
            (BlockOperation::Write, "write"),
        ] {
            for (by_event, how) in [(false, "polled"), (true, "by event")] {
                for batch in [1, 32] {
                    let line = Line::open(self, by_event)?;
                    let value = self.best(|| line.round(self, operation, batch))?;
                    rows.push((format!("{verb} of 4 KiB, batch {batch}, {how}"), value));
                }
            }
        }
        Ok(rows)
    }

    /// The least that a request took in a round.
    fn best(&self, mut round: impl FnMut() -> Result<u64>) -> Result<u64> {
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            best = best.min(round()? / REQUESTS);
        }
        Ok(best)
    }

    /// What the processor has done so far.
    fn busy(&self) -> Result<u64> {
        Ok(self.monitor.time().map_err(words("no time"))?.busy)
    }
}

/// A queue, and how answers are waited for.
struct Line {
    queue: Handle<dyn BlockQueue>,
    word: Option<Handle<dyn WaitWord>>,
    _owner: Handle<dyn VmoOwner>,
    _event: Option<Handle<dyn interfaces::Event>>,
}

impl Line {
    fn open(lab: &Lab, by_event: bool) -> Result<Self> {
        let owner = lab.objects.create(REQUESTS, VmoFill::Zero);
        let owner = owner.map_err(words("no object"))?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights).map_err(words("no view"))?;
        let (mut word, mut event, mut raiser) = (None, None, None);
        if by_event {
            let new = lab.events.event().map_err(words("no event"))?;
            let waits = lab.events.word().map_err(words("no word"))?;
            let handle = waits.duplicate().map_err(words("no word"))?;
            new.event.bind(handle, 0).map_err(words("no binding"))?;
            (word, event, raiser) = (Some(waits), Some(new.event), Some(new.raiser));
        }
        let queue = lab.disk.open(raiser).map_err(words("no queue"))?;
        queue.register(SLOT, view).map_err(words("no slot"))?;
        Ok(Line {
            queue,
            word,
            _owner: owner,
            _event: event,
        })
    }

    /// What all requests took together, submitted in batches.
    fn round(&self, lab: &Lab, operation: BlockOperation, batch: u64) -> Result<u64> {
        let mut took = 0;
        for first in (0..REQUESTS).step_by(batch as usize) {
            let request = |number| BlockRequest {
                tag: number,
                operation,
                sector: number * u64::from(SECTORS),
                sectors: SECTORS,
                slot: SLOT,
                at: number * u64::from(SECTORS),
                durable: false,
                barrier: false,
            };
            let requests: Vec<_> = (first..first + batch).map(request).collect();
            let requests = RVec::from_slice(&requests).map_err(words("no batch"))?;
            took += match &self.word {
                None => self.polled(&requests)?,
                Some(word) => self.by_event(lab, &requests, word)?,
            };
        }
        Ok(took)
    }

    fn polled(&self, requests: &RVec<BlockRequest>) -> Result<u64> {
        let mut room = Some(room()?);
        let begin = time::now();
        let taken = self.queue.submit(requests, requests.len() as u32);
        let mut took = time::now() - begin;
        let mut left = taken.map_err(words("not submitted"))?;
        while left > 0 {
            time::sleep(1_000_000);
            let given = room.take().ok_or("no room")?;
            let begin = time::now();
            let answers = self.queue.completions(given);
            let after = time::now();
            let (back, count) = answers.map_err(words("no answers"))?;
            if count > 0 {
                took += after - begin;
            }
            check(&back, count)?;
            left -= count;
            room = Some(back);
        }
        Ok(took)
    }

    fn by_event(
        &self,
        lab: &Lab,
        requests: &RVec<BlockRequest>,
        word: &Handle<dyn WaitWord>,
    ) -> Result<u64> {
        let mut answers = Some(room()?);
        let nothing = Fired {
            tag: 0,
            count: 0,
            ended: false,
        };
        let begin = lab.busy()?;
        let taken = self.queue.submit(requests, requests.len() as u32);
        let mut left = taken.map_err(words("not submitted"))?;
        while left > 0 {
            let fired = RVec::filled(nothing, 1).map_err(words("no room"))?;
            word.wait(None, fired).map_err(words("no wait"))?;
            let given = answers.take().ok_or("no room")?;
            let (back, count) = self.queue.completions(given).map_err(words("no answers"))?;
            check(&back, count)?;
            left -= count;
            answers = Some(back);
        }
        Ok(lab.busy()? - begin)
    }
}

/// Room for more answers than there are requests, so that all are taken at once.
fn room() -> Result<RVec<BlockCompletion>> {
    let nothing = BlockCompletion {
        tag: 0,
        outcome: BlockOutcome::Done,
    };
    RVec::filled(nothing, REQUESTS as usize + 1).map_err(words("no room"))
}

fn check(answers: &[BlockCompletion], count: u32) -> Result<()> {
    let answers = answers.iter().take(count as usize);
    let mut wrong = answers.filter(|answer| answer.outcome != BlockOutcome::Done);
    match wrong.next() {
        Some(answer) => Err(format!("{answer:?}")),
        None => Ok(()),
    }
}
