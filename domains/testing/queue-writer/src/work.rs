//! The requests of one life, and what must come of each.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use interfaces::{BlockOperation, BlockOutcome, BlockRequest, RVec};
use queuework::{REGION, Random, SECTOR, ledger, stamp};

use crate::ledger::Ledger;
use crate::{Line, MOST, PAGES, SECTORS, SLOT};

/// Most members of a group.
const MEMBERS: u64 = 6;

/// A request under way. Its number is that of its pages.
struct Asked {
    /// All members of a group have the same.
    tag: u64,
    request: BlockRequest,
    /// What a write brings.
    generation: u64,
    /// What a read must bring: what was submitted before it.
    wanted: Vec<u64>,
}

/// What was asked, and what is known of the region.
pub struct Work {
    /// The generation of each sector that was acknowledged or found.
    pub known: Vec<u64>,
    /// The generation of each sector that will be there when all that is under way is done.
    expected: Vec<u64>,
    asked: [Option<Asked>; MOST],
    tag: u64,
    /// The last request with a barrier: what was submitted before it ends before what comes after
    /// it begins.
    barrier: u64,
    /// The group that is under way.
    group: Option<u64>,
    random: Random,
}

impl Work {
    /// Nothing is under way, and the region is as `known`.
    pub fn new(known: Vec<u64>, life: u64) -> Self {
        Work {
            expected: known.clone(),
            known,
            asked: [const { None }; MOST],
            tag: life << 32,
            barrier: 0,
            group: None,
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
        if self.group.is_none() && self.random.below(8) == 0 {
            self.begin_group(line, ledger)?;
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
        let operation = match self.random.below(12) {
            0 => BlockOperation::Flush,
            1..=5 => BlockOperation::Read,
            _ => BlockOperation::Write,
        };
        let durable = self.random.below(8) == 0;
        // Beside a group none may have a barrier.
        let barrier = self.group.is_none() && self.random.below(10) == 0;
        let drawn = self.draw(operation);
        let Some((place, request)) = drawn else {
            return Ok(None);
        };
        let request = BlockRequest {
            durable,
            barrier,
            ..request
        };
        if self.is_in_the_way(&request) {
            return Ok(None);
        }
        let generation = match operation {
            BlockOperation::Write => ledger.generation(false)?,
            _ => 0,
        };
        self.ask(place, request, generation, line, ledger)?;
        if barrier {
            self.barrier = self.tag;
        }
        self.tag += 1;
        Ok(Some(request))
    }

    /// Submits some writes as a group, if there are places and their sectors are free.
    fn begin_group(&mut self, line: &mut Line, ledger: &Ledger) -> Result<(), String> {
        let generation = ledger.generation(true)?;
        let mut members = Vec::new();
        for _ in 0..=self.random.below(MEMBERS) {
            let barrier = self.random.below(3) == 0;
            let drawn = self.draw(BlockOperation::Write);
            let free = drawn.filter(|(_, member)| !self.collides(member, 0));
            let Some((place, member)) = free else {
                continue;
            };
            let member = BlockRequest { barrier, ..member };
            self.ask(place, member, generation, line, ledger)?;
            members.push(member);
        }
        if members.is_empty() {
            return Ok(());
        }
        line.submit_group(self.tag, &members)?;
        self.group = Some(self.tag);
        self.tag += 1;
        Ok(())
    }

    /// Some sectors, and a place that is free.
    fn draw(&mut self, operation: BlockOperation) -> Option<(usize, BlockRequest)> {
        let place = self.asked.iter().position(Option::is_none)?;
        let sectors = 1 + self.random.below(SECTORS);
        let request = BlockRequest {
            tag: self.tag,
            operation,
            sector: self.random.below(REGION - sectors),
            sectors: sectors as u32,
            slot: SLOT,
            // Not always at the beginning of a page.
            at: place as u64 * PAGES * 8 + self.random.below(8),
            durable: false,
            barrier: false,
        };
        Some((place, request))
    }

    /// Whether something is under way that has to end before this request is begun, and need not:
    /// behind a barrier it does, but for a read that this would write over. That may be done again
    /// after a crash.
    fn is_in_the_way(&self, request: &BlockRequest) -> bool {
        let is_read = |it: &&Asked| matches!(it.request.operation, BlockOperation::Read);
        let mut reads = self.asked.iter().flatten().filter(is_read);
        reads.any(|read| collide(&read.request, request))
            || !request.barrier && self.collides(request, self.barrier)
    }

    /// Whether the request collides with one that was submitted after the one called `after`, or
    /// with a member of the group.
    fn collides(&self, request: &BlockRequest, after: u64) -> bool {
        let counts = |it: &&Asked| it.tag > after || Some(it.tag) == self.group;
        let mut under_way = self.asked.iter().flatten().filter(counts);
        under_way.any(|it| collide(&it.request, request))
    }

    /// A request is under way from now on.
    fn ask(
        &mut self,
        place: usize,
        request: BlockRequest,
        generation: u64,
        line: &Line,
        ledger: &Ledger,
    ) -> Result<(), String> {
        prepare(line, ledger, &request, generation)?;
        let range = sectors_of(&request);
        let wanted = match request.operation {
            BlockOperation::Read => self.expected[range].to_vec(),
            BlockOperation::Write => {
                self.expected[range].fill(generation);
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.asked[place] = Some(Asked {
            tag: self.tag,
            request,
            generation,
            wanted,
        });
        Ok(())
    }

    fn take(&mut self, line: &Line, ledger: &Ledger) -> Result<(), String> {
        if self.asked.iter().all(Option::is_none) {
            return Ok(());
        }
        let answers = line.answers()?;
        for answer in &answers {
            let is_it = |it: &Option<Asked>| it.as_ref().is_some_and(|it| it.tag == answer.tag);
            let mut done = Vec::new();
            for asked in self.asked.iter_mut().filter(|it| is_it(it)) {
                done.extend(asked.take());
            }
            if done.is_empty() {
                return Err(format!("an answer to nothing: {answer:?}"));
            }
            self.group.take_if(|group| *group == answer.tag);
            for asked in done {
                if answer.outcome != BlockOutcome::Done {
                    return Err(format!("{:?}: {answer:?}", asked.request));
                }
                self.check(line, ledger, &asked)?;
            }
        }
        ledger
            .count(ledger::ANSWERS, answers.len() as u64)
            .map(drop)
    }

    fn check(&mut self, line: &Line, ledger: &Ledger, asked: &Asked) -> Result<(), String> {
        let BlockRequest { sector, at, .. } = asked.request;
        match asked.request.operation {
            BlockOperation::Write => self.acknowledge(ledger, asked),
            BlockOperation::Read => {
                let found = line.generations(sector, asked.request.sectors.into(), at)?;
                match found == asked.wanted {
                    true => Ok(()),
                    false => Err(format!(
                        "from sector {sector} on: {found:?} in place of {:?}",
                        asked.wanted
                    )),
                }
            }
            _ => Ok(()),
        }
    }

    /// A write is done. What was submitted after it may have been acknowledged before.
    fn acknowledge(&mut self, ledger: &Ledger, asked: &Asked) -> Result<(), String> {
        for sector in sectors_of(&asked.request) {
            if self.known[sector] < asked.generation {
                self.known[sector] = asked.generation;
                ledger.write(
                    ledger::ACKNOWLEDGED + 8 * sector as u64,
                    asked.generation,
                    1,
                )?;
            }
        }
        Ok(())
    }
}

fn sectors_of(request: &BlockRequest) -> Range<usize> {
    let sector = request.sector as usize;
    sector..sector + request.sectors as usize
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
