//! The requests of one life, and what must come of each.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use interfaces::{BlockOperation, BlockOutcome, BlockRequest, RVec};
use queuework::{REGION, Random, SECTOR, ledger, stamp};

use crate::ledger::Ledger;
use crate::{Line, MOST, PAGES, SECTORS, SLOT};

/// A request under way. Its number is that of its pages.
#[derive(Clone, Copy)]
struct Asked {
    tag: u64,
    request: BlockRequest,
    generation: u64,
}

/// What was asked, and what is known of the region.
pub struct Work {
    /// The generation of each sector that was acknowledged or found.
    pub known: Vec<u64>,
    asked: [Option<Asked>; MOST],
    tag: u64,
    random: Random,
}

impl Work {
    /// Nothing is under way, and the region is as `known`.
    pub fn new(known: Vec<u64>, life: u64) -> Self {
        Work {
            known,
            asked: [None; MOST],
            tag: life << 32,
            random: Random::new(life),
        }
    }

    /// Submits some requests, and takes answers while there is no room for more.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn step(&mut self, line: &mut Line, ledger: &Ledger) -> Result<(), String> {
        let mut batch = Vec::new();
        for _ in 0..=self.random.below(6) {
            batch.extend(self.next(line, ledger)?);
        }
        if !batch.is_empty() {
            line.submit(&batch)?;
        }
        let full = self.asked.iter().all(Option::is_some);
        if full || batch.is_empty() || self.random.below(3) == 0 {
            self.take(line, ledger)?;
        }
        Ok(())
    }

    /// Takes all answers that are still to come.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(&mut self, line: &mut Line, ledger: &Ledger) -> Result<(), String> {
        while self.asked.iter().any(Option::is_some) {
            self.take(line, ledger)?;
        }
        Ok(())
    }

    /// The next request, if there is a place and its sectors are free.
    fn next(&mut self, line: &Line, ledger: &Ledger) -> Result<Option<BlockRequest>, String> {
        let Some(place) = self.asked.iter().position(Option::is_none) else {
            return Ok(None);
        };
        let sectors = 1 + self.random.below(SECTORS);
        let sector = self.random.below(REGION - sectors);
        let operation = match self.random.below(12) {
            0 => BlockOperation::Flush,
            1..=5 => BlockOperation::Read,
            _ => BlockOperation::Write,
        };
        let request = BlockRequest {
            tag: self.tag,
            operation,
            sector,
            sectors: sectors as u32,
            slot: SLOT,
            // Not always at the beginning of a page.
            at: place as u64 * PAGES * 8 + self.random.below(8),
            durable: self.random.below(8) == 0,
            barrier: self.random.below(10) == 0,
        };
        if self
            .asked
            .iter()
            .flatten()
            .any(|it| collide(&it.request, &request))
        {
            return Ok(None);
        }
        let generation = match operation {
            BlockOperation::Write => ledger.generation()?,
            _ => 0,
        };
        prepare(line, ledger, &request, generation)?;
        self.asked[place] = Some(Asked {
            tag: self.tag,
            request,
            generation,
        });
        self.tag += 1;
        Ok(Some(request))
    }

    fn take(&mut self, line: &Line, ledger: &Ledger) -> Result<(), String> {
        if self.asked.iter().all(Option::is_none) {
            return Ok(());
        }
        let answers = line.answers()?;
        for answer in &answers {
            let is_it = |it: &Option<Asked>| it.is_some_and(|it| it.tag == answer.tag);
            let place = self.asked.iter().position(is_it);
            let asked = place.and_then(|place| self.asked[place].take());
            let asked = asked.ok_or_else(|| format!("an answer to nothing: {answer:?}"))?;
            if answer.outcome != BlockOutcome::Done {
                return Err(format!("{:?}: {answer:?}", asked.request));
            }
            self.check(line, ledger, &asked)?;
        }
        ledger
            .count(ledger::ANSWERS, answers.len() as u64)
            .map(drop)
    }

    fn check(&mut self, line: &Line, ledger: &Ledger, asked: &Asked) -> Result<(), String> {
        let BlockRequest {
            sector,
            sectors,
            at,
            ..
        } = asked.request;
        let range = sector as usize..sector as usize + sectors as usize;
        match asked.request.operation {
            BlockOperation::Write => {
                self.known[range].fill(asked.generation);
                let offset = ledger::ACKNOWLEDGED + 8 * sector;
                ledger.write(offset, asked.generation, sectors.into())
            }
            BlockOperation::Read => {
                let found = line.generations(sector, sectors.into(), at)?;
                match found == self.known[range.clone()] {
                    true => Ok(()),
                    false => Err(format!(
                        "from sector {sector} on: {found:?} in place of {:?}",
                        &self.known[range]
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}

/// Whether one of two requests writes what the other one reads or writes.
fn collide(one: &BlockRequest, other: &BlockRequest) -> bool {
    let of = |it: &BlockRequest| it.sector..it.sector + u64::from(it.sectors);
    let (one_range, other_range) = (of(one), of(other));
    let overlap = one_range.start < other_range.end && other_range.start < one_range.end;
    let writes = |it: &BlockRequest| matches!(it.operation, BlockOperation::Write);
    let flushes = |it: &BlockRequest| matches!(it.operation, BlockOperation::Flush);
    overlap && (writes(one) || writes(other)) && !flushes(one) && !flushes(other)
}

/// Fills the memory of a request: with what is to be written, which the ledger is told, or with
/// what must not be left after a read.
fn prepare(
    line: &Line,
    ledger: &Ledger,
    request: &BlockRequest,
    generation: u64,
) -> Result<(), String> {
    let mut bytes = RVec::filled(0xee, request.sectors as usize * SECTOR);
    let bytes = bytes.as_mut().map_err(|error| format!("{error}"))?;
    if let BlockOperation::Write = request.operation {
        for (bytes, sector) in bytes.chunks_exact_mut(SECTOR).zip(request.sector..) {
            stamp(sector, generation, bytes);
        }
        let offset = ledger::SUBMITTED + 8 * request.sector;
        ledger.write(offset, generation, request.sectors.into())?;
    }
    let written = line.view.write(request.at * SECTOR as u64, bytes);
    written
        .map(drop)
        .map_err(|error| format!("its own memory: {error:?}"))
}
