//! The clients: threads that write to sectors of their own, read them again, and know what must be
//! there.

use crate::ledger::Found;
use crate::plan::Random;
use crate::store::SECTOR;
use crate::supervisor::Supervisor;
use abi::{Handle, Text};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use interfaces::{Block, BlockError};
use isolation::call::thread::with_root;
use isolation::lock::Lock;
use isolation::platform::{Attributes, platform};
use line::{Line, LineError};

/// Clients.
pub const CLIENTS: usize = 3;
/// Sectors of each.
pub const REGION: usize = 48;
/// Operations of each in one run.
const OPERATIONS: u32 = 8;
/// Most sectors of one operation.
const MOST_SECTORS: u64 = 8;
/// Bytes of one operation.
pub const ROOM: usize = MOST_SECTORS as usize * SECTOR;

/// What a client found in one run. Without memory of its own, so that none is missing while it is
/// kept.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Calls that it made.
    pub calls: u32,
    /// Calls that gave an error, and the last one.
    pub errors: u32,
    /// The last error.
    pub error: Option<Text<64>>,
    /// What was read and is not what was written.
    pub wrong: Option<Text<64>>,
    /// Start and end of the first good call that ended after a driver was found dead, in
    /// nanoseconds.
    pub first_good: Option<(u64, u64)>,
    /// The longest call, in nanoseconds.
    pub longest: u64,
}

impl Outcome {
    /// What goes into the ledger of it.
    pub fn found(&self) -> Found {
        Found {
            calls: self.calls,
            errors: self.errors,
            is_wrong: self.wrong.is_some(),
            longest: self.longest,
            note: self.wrong.or(self.error),
        }
    }
}

/// The device that the clients call, and its queue, if there is one.
pub struct Device {
    /// The device.
    pub block: Handle<dyn Block>,
    /// Its queue.
    pub line: Option<Line<CLIENTS>>,
}

/// The device of a run, and its seed.
type Work = (Arc<Device>, u64);

/// What the clients and the campaign share.
pub struct Clients {
    /// The number of the run; waited for.
    round: AtomicU32,
    /// Clients that are done with it; waited for.
    done: AtomicU32,
    next: AtomicUsize,
    work: Lock<Option<Work>>,
    outcomes: Lock<[Outcome; CLIENTS]>,
    supervisor: &'static Supervisor,
}

impl Clients {
    /// Clients that wait for their first run.
    pub fn new(supervisor: &'static Supervisor) -> Self {
        Clients {
            round: AtomicU32::new(0),
            done: AtomicU32::new(0),
            next: AtomicUsize::new(0),
            work: Lock::new(None),
            outcomes: Lock::new(Default::default()),
            supervisor,
        }
    }

    /// Starts the threads; whether there was memory for them.
    pub fn spawn(&'static self) -> bool {
        let argument = core::ptr::from_ref(self) as usize;
        (0..CLIENTS).all(|_| {
            platform()
                .spawn("client", client, argument, &Attributes::KERNEL)
                .is_some()
        })
    }

    /// Lets all of them do one run's work.
    pub fn begin(&self, device: Arc<Device>, seed: u64) {
        *self.work.lock() = Some((device, seed));
        self.done.store(0, Ordering::Relaxed);
        self.round.fetch_add(1, Ordering::Release);
        platform().wake(&self.round, u32::MAX);
    }

    /// Waits until they are done, at most until `deadline`; what they found, or `None` if they are
    /// not done.
    pub fn finish(&self, deadline: u64) -> Option<[Outcome; CLIENTS]> {
        loop {
            let done = self.done.load(Ordering::Acquire);
            if done as usize == CLIENTS {
                break;
            }
            if platform().now() > deadline {
                return None;
            }
            platform().wait(&self.done, done, Some(deadline));
        }
        let work = self.work.lock().take();
        drop(work);
        Some(core::mem::take(&mut *self.outcomes.lock()))
    }
}

/// The first function of a client's thread. `argument` is the address of a `&'static Clients`.
extern "C" fn client(argument: usize) {
    // SAFETY: `spawn` passed it.
    let shared = unsafe { &*(argument as *const Clients) };
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    with_root(|| {
        let mut client = Client::new(number);
        let mut seen = 0;
        loop {
            while shared.round.load(Ordering::Acquire) == seen {
                platform().wait(&shared.round, seen, None);
            }
            seen = shared.round.load(Ordering::Acquire);
            let work = shared.work.lock().clone();
            if let Some((device, seed)) = work {
                let outcome = client.batch(&device, seed, shared.supervisor);
                drop(device);
                shared.outcomes.lock()[number] = outcome;
            }
            shared.done.fetch_add(1, Ordering::Release);
            platform().wake(&shared.done, 1);
        }
    })
}

/// What a sector may hold: the last version that was written without an error comes first; the
/// others perhaps arrived although there was an error.
#[derive(Clone, Debug, Default)]
struct Versions {
    known: [u64; MOST_VERSIONS],
    count: usize,
    /// There were so many that some are forgotten: until the next good write nothing is known.
    forgotten: bool,
}

/// Versions of one sector that are kept.
const MOST_VERSIONS: usize = 12;

impl Versions {
    /// This version and no other.
    fn only(version: u64) -> Self {
        let mut versions = Versions::default();
        (versions.known[0], versions.count) = (version, 1);
        versions
    }

    /// This one, too.
    fn or(&mut self, version: u64) {
        match self.known.get_mut(self.count) {
            Some(place) => (*place, self.count) = (version, self.count + 1),
            None => self.forgotten = true,
        }
    }

    fn all(&self) -> &[u64] {
        &self.known[..self.count]
    }
}

struct Client {
    number: usize,
    sectors: Vec<Versions>,
    last: u64,
    /// Room for one operation, so that no memory is wanted meanwhile.
    data: Vec<u8>,
}

/// What a sector holds in this version; version 0 is zeros.
fn content(sector: u64, version: u64) -> impl Iterator<Item = [u8; 8]> {
    let mut random = Random::new(sector << 40 ^ version);
    (0..SECTOR / 8).map(move |_| match version {
        0 => [0; 8],
        _ => random.next_number().to_le_bytes(),
    })
}

fn holds(bytes: &[u8], sector: u64, version: u64) -> bool {
    let words = bytes.chunks_exact(8);
    words.eq(content(sector, version))
}

impl Client {
    fn new(number: usize) -> Self {
        Client {
            number,
            sectors: (0..REGION).map(|_| Versions::only(0)).collect(),
            last: 0,
            data: alloc::vec![0; ROOM],
        }
    }

    fn batch(&mut self, device: &Device, seed: u64, supervisor: &Supervisor) -> Outcome {
        let mut random = Random::new(seed ^ (self.number as u64 + 1) << 56);
        let mut outcome = Outcome::default();
        for _ in 0..OPERATIONS {
            let start = platform().now();
            let result = self.operation(device, &mut random, &mut outcome);
            let end = platform().now();
            outcome.calls += 1;
            outcome.longest = outcome.longest.max(end - start);
            match result {
                Ok(()) => {
                    if outcome.first_good.is_none() && supervisor.asked.load(Ordering::Relaxed) != 0
                    {
                        outcome.first_good = Some((start, end));
                    }
                }
                Err(error) => {
                    outcome.errors += 1;
                    outcome.error = Some(Text::new(&format!("{error:?}")));
                }
            }
        }
        outcome
    }

    fn operation(
        &mut self,
        device: &Device,
        random: &mut Random,
        outcome: &mut Outcome,
    ) -> Result<(), LineError> {
        let gone = LineError::Device(BlockError::Gone);
        let line = device.line.as_ref().ok_or(gone)?;
        let what = random.below(20);
        let count = 1 + random.below(MOST_SECTORS) as usize;
        let first = random.below((REGION - count + 1) as u64) as usize;
        match what {
            0 => line.flush(self.number),
            1 => device.block.geometry().map(drop).map_err(LineError::Device),
            2..10 => self.write(line, first, count),
            _ => self.read(line, first, count, outcome),
        }
    }

    fn sector(&self, index: usize) -> u64 {
        (self.number * REGION + index) as u64
    }

    fn write(&mut self, line: &Line<CLIENTS>, first: usize, count: usize) -> Result<(), LineError> {
        let begin = self.sector(first);
        let data = &mut self.data[..count * SECTOR];
        self.last += 1;
        let version = self.last;
        for (sector, bytes) in (begin..).zip(data.chunks_exact_mut(SECTOR)) {
            let words = content(sector, version);
            bytes
                .chunks_exact_mut(8)
                .zip(words)
                .for_each(|(bytes, word)| bytes.copy_from_slice(&word));
        }
        let result = line.write(self.number, begin, data);
        for versions in &mut self.sectors[first..first + count] {
            match result {
                Ok(()) => *versions = Versions::only(version),
                Err(_) => versions.or(version),
            }
        }
        result
    }

    fn read(
        &mut self,
        line: &Line<CLIENTS>,
        first: usize,
        count: usize,
        outcome: &mut Outcome,
    ) -> Result<(), LineError> {
        let begin = self.sector(first);
        let data = &mut self.data[..count * SECTOR];
        data.fill(0xa5);
        line.read(self.number, begin, data)?;
        let sectors = self.sectors[first..].iter_mut().zip(begin..);
        for ((versions, sector), bytes) in sectors.zip(data.chunks_exact(SECTOR)) {
            let found = versions
                .all()
                .iter()
                .find(|version| holds(bytes, sector, **version));
            match found {
                Some(&version) => *versions = Versions::only(version),
                None if versions.forgotten => {}
                None => {
                    let what = format!("sector {sector} holds none of {:?}", versions.all());
                    outcome.wrong = Some(Text::new(&what));
                }
            }
        }
        Ok(())
    }
}
