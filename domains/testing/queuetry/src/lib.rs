//! `queuetry WORD ...`: submits requests to the block queue of the service `disk`, and prints what
//! the answers are. For tests.
//!
//! A word is `r:SECTOR:COUNT`, or the same with `w` (write), `W` (durable write), `d` (discard) or
//! `z` (write zeroes); or `f` (flush). All words up to `then` are one batch, whose answers are
//! waited for. Request number N of all, from 0 on, has memory of its own, which begins N sectors
//! into a page, and writes bytes of the value 64 + N. Behind the answer to a read stands the byte
//! that all that was read consists of, or `mixed`. `limits` prints what the queue takes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use domain_rt::time;
use interfaces::{
    Block, BlockCompletion, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Handle,
    MemoryObjects, RVec, VmoFill, VmoOwner, VmoRights, VmoView,
};
use ulib::{Env, Error, Process, Program, RpcResult, Stop, println};

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Sectors of memory that a request has, and how many there can be.
const ROOM: u64 = 2048;
const MOST: usize = 64;
/// How long answers may take, in nanoseconds.
const PATIENCE: u64 = 60_000_000_000;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let disk = env.service::<dyn Block>("disk")?;
    let objects = env.service::<dyn MemoryObjects>("objects")?;
    let lines = Line::open(&disk, &objects).and_then(|line| line.all(env.arguments()));
    let lines = lines.map_err(|why| {
        let why: &'static str = alloc::boxed::Box::leak(why.into_boxed_str());
        Stop::about(b"queuetry", Error::text(why))
    })?;
    for line in lines {
        println!(env, "{line}")?;
    }
    Ok(env.status())
}

type Result<T, E = String> = core::result::Result<T, E>;

fn words<E: core::fmt::Debug>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error:?}")
}

/// The queue and its memory.
struct Line {
    queue: Handle<dyn BlockQueue>,
    view: Handle<dyn VmoView>,
    _owner: Handle<dyn VmoOwner>,
}

/// A request by its word, and its answer.
struct Asked<'a> {
    word: &'a str,
    request: BlockRequest,
    outcome: Option<BlockOutcome>,
}

impl Line {
    fn open(disk: &Handle<dyn Block>, objects: &Handle<dyn MemoryObjects>) -> Result<Self> {
        let pages = MOST as u64 * ROOM * SECTOR / 4096;
        let owner = objects.create(pages, VmoFill::Zero);
        let owner = owner.map_err(words("no object"))?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights).map_err(words("no view"))?;
        let queue = disk.open(None).map_err(words("no queue"))?;
        let of_queue = view.duplicate().map_err(words("no view"))?;
        queue.register(0, of_queue).map_err(words("no slot"))?;
        Ok(Line {
            queue,
            view,
            _owner: owner,
        })
    }

    /// What is to be printed.
    fn all(&self, arguments: &[Vec<u8>]) -> Result<Vec<String>> {
        let (mut lines, mut asked, mut number) = (Vec::new(), Vec::new(), 0);
        for word in arguments {
            let word = str::from_utf8(word).map_err(words("a word"))?;
            match word {
                "then" => {
                    self.batch(&mut asked)?;
                    lines.extend(self.told(&asked)?);
                    asked.clear();
                }
                "limits" => lines.push(format!("{:?}", self.queue.limits())),
                _ => {
                    let request = request(number, word).ok_or(format!("{word}?"))?;
                    asked.push(Asked {
                        word,
                        request,
                        outcome: None,
                    });
                    number += 1;
                }
            }
        }
        if !asked.is_empty() {
            self.batch(&mut asked)?;
            lines.extend(self.told(&asked)?);
        }
        Ok(lines)
    }

    /// Submits a batch and waits for its answers.
    fn batch(&self, asked: &mut [Asked<'_>]) -> Result<()> {
        for it in asked.iter() {
            self.prepare(&it.request)?;
        }
        let requests: Vec<_> = asked.iter().map(|it| it.request).collect();
        let batch = RVec::from_slice(&requests).map_err(words("no batch"))?;
        let count = requests.len() as u32;
        match self.queue.submit(&batch, count) {
            Ok(taken) if taken == count => {}
            other => return Err(format!("{count} submitted: {other:?}")),
        }
        let deadline = time::now() + PATIENCE;
        while asked.iter().any(|it| it.outcome.is_none()) {
            if time::now() > deadline {
                return Err("an answer does not come".into());
            }
            time::sleep(1_000_000);
            for answer in self.answers()? {
                let mut fitting = asked.iter_mut().filter(|it| it.request.tag == answer.tag);
                match fitting.next() {
                    Some(it) if it.outcome.is_none() => it.outcome = Some(answer.outcome),
                    _ => return Err(format!("nobody waits for {answer:?}")),
                }
            }
        }
        Ok(())
    }

    fn answers(&self) -> Result<Vec<BlockCompletion>> {
        let nothing = BlockCompletion {
            tag: u64::MAX,
            outcome: BlockOutcome::Done,
        };
        let room = RVec::filled(nothing, MOST).map_err(words("no room"))?;
        let (room, count) = self.queue.completions(room).map_err(words("no answers"))?;
        Ok(room.iter().take(count as usize).copied().collect())
    }

    /// Fills the memory of a write.
    fn prepare(&self, request: &BlockRequest) -> Result<()> {
        if request.operation != BlockOperation::Write {
            return Ok(());
        }
        let length = u64::from(request.sectors).min(ROOM - 64) * SECTOR;
        let bytes = RVec::filled(64 + request.tag as u8, length as usize);
        let bytes = bytes.map_err(words("no memory"))?;
        let written = self.view.write(request.at * SECTOR, &bytes);
        written.map(drop).map_err(words("its own memory"))
    }

    fn told(&self, asked: &[Asked<'_>]) -> Result<Vec<String>> {
        let line = |it: &Asked<'_>| {
            let outcome = it.outcome.as_ref().ok_or("no answer")?;
            let has_read =
                it.request.operation == BlockOperation::Read && *outcome == BlockOutcome::Done;
            let behind = if has_read {
                self.content(&it.request)?
            } else {
                String::new()
            };
            Ok(format!("{} {outcome:?}{behind}", it.word))
        };
        asked.iter().map(line).collect()
    }

    fn content(&self, request: &BlockRequest) -> Result<String> {
        let room = RVec::zeroed(request.sectors as usize * SECTOR as usize);
        let room = room.map_err(words("no memory"))?;
        let read = self.view.read(request.at * SECTOR, room);
        let (bytes, _) = read.map_err(words("its own memory"))?;
        let first = bytes.first().copied().unwrap_or_default();
        Ok(match bytes.iter().all(|byte| *byte == first) {
            true => format!(" {first}"),
            false => " mixed".into(),
        })
    }
}

fn request(number: usize, word: &str) -> Option<BlockRequest> {
    let (letter, rest) = word.split_at_checked(1)?;
    let (sector, sectors) = match letter {
        "f" => (0, 0),
        _ => {
            let (sector, sectors) = rest.strip_prefix(':')?.split_once(':')?;
            (sector.parse().ok()?, sectors.parse().ok()?)
        }
    };
    Some(BlockRequest {
        tag: number as u64,
        operation: match letter {
            "r" => BlockOperation::Read,
            "w" | "W" => BlockOperation::Write,
            "d" => BlockOperation::Discard,
            "z" => BlockOperation::WriteZeroes,
            "f" => BlockOperation::Flush,
            _ => return None,
        },
        sector,
        sectors,
        slot: 0,
        at: number as u64 * ROOM + number as u64 % 8,
        durable: letter == "W",
        barrier: false,
    })
    .filter(|_| number < MOST)
}
