//! What was called how often, and what a foe did last.

use crate::random::Random;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::log;
use hostile_calls::{METHODS, Outcome};
use interfaces::{DmaAllocator, DmaMemory, DmaWindow, Interface, Referee, RpcResult};

/// Methods that no foe calls, and why.
pub const EXCLUDED: &[(&str, &str, &str)] = &[
    ("Power", "off", "ends the run"),
    ("Power", "reset", "ends the run"),
    ("Foe", "arm", "drives the run itself"),
    ("Foe", "attack", "drives the run itself"),
    ("Referee", "begins", "counts the calls of the run itself"),
    ("Referee", "ended", "counts the calls of the run itself"),
    ("Referee", "left", "counts the calls of the run itself"),
    (
        "HeapAudit",
        "audit",
        "judges the run itself, and stops all allocation meanwhile",
    ),
    (
        "HeapAudit",
        "keeps",
        "judges runs, and holds a lock while it counts",
    ),
    (
        "HeapAudit",
        "refuse_memory",
        "has the kernel refuse memory to a test, also to the run itself",
    ),
    ("Medium", "sectors", OF_CAMPAIGN),
    ("Medium", "read", OF_CAMPAIGN),
    ("Medium", "write", OF_CAMPAIGN),
    ("Medium", "flush", OF_CAMPAIGN),
    (
        "FsVolume",
        "begin",
        "ends the service in front of the volume, by right",
    ),
    ("Household", "fulfil", OF_INIT),
    ("Household", "present", OF_INIT),
    ("Steward", "serve", OF_INIT),
    ("Steward", "stand_in", OF_INIT),
    ("Steward", "keep", OF_INIT),
    ("Steward", "kept", OF_INIT),
    ("Steward", "note", OF_INIT),
    ("Steward", "noted", OF_INIT),
    ("Steward", "run", OF_INIT),
    ("Steward", "ended", OF_INIT),
    ("Steward", "gate", OF_INIT),
];

/// Why what the fault campaign's driver drives is not called.
const OF_CAMPAIGN: &str = "is the fault campaign's alone, which no domain here is a part of";

const OF_INIT: &str = "between `init` and its steward alone, who trust each other";

/// The whole name of method number `index`.
pub fn name(index: usize) -> String {
    let method = METHODS.get(index);
    method.map_or_else(String::new, |it| format!("{}.{}", it.of, it.name))
}

/// Whether method number `index` is to be called.
pub fn is_called(index: usize) -> bool {
    let method = METHODS.get(index);
    method.is_some_and(|it| {
        !EXCLUDED
            .iter()
            .any(|(of, name, _)| (it.of, it.name) == (*of, *name))
    })
}

/// Whether it takes what a driver has to call method number `index`.
pub fn is_of_drivers(index: usize) -> bool {
    let of_drivers = [
        <dyn DmaAllocator>::NUMBER,
        <dyn DmaMemory>::NUMBER,
        <dyn DmaWindow>::NUMBER,
    ];
    let method = METHODS.get(index);
    method.is_some_and(|it| of_drivers.contains(&it.interface))
}

/// Methods in a line of the log.
const IN_A_LINE: usize = 24;
/// Most threads of a foe.
pub const THREADS: usize = 4;
/// No method.
const NONE: u32 = u32::MAX;

/// The calls of a whole run.
pub struct Score {
    /// Calls of each method: begun, ended, successful.
    calls: Vec<[AtomicU64; 3]>,
    /// Which methods were ever called.
    reached: Vec<AtomicBool>,
}

impl Score {
    /// Nothing yet.
    pub fn new() -> Arc<Self> {
        let calls = METHODS.iter().map(|_| <[AtomicU64; 3]>::default());
        Arc::new(Score {
            calls: calls.collect(),
            reached: METHODS.iter().map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// A method to be called alone: one that nobody has called, half of the time.
    pub fn choose(&self, random: &mut Random) -> usize {
        let is_missing = |it: &usize| is_called(*it) && !self.reached[*it].load(Ordering::Relaxed);
        let missing: Vec<usize> = (0..METHODS.len()).filter(is_missing).collect();
        match missing.get(random.below(missing.len())) {
            Some(method) if random.once_in(2) => *method,
            _ => random.below(METHODS.len()),
        }
    }

    /// Writes down what was called since the last time: `counts FIRST BEGUN/ENDED/SUCCESSFUL ...`,
    /// of methods in their order.
    pub fn tell(&self) {
        for (line, methods) in self.calls.chunks(IN_A_LINE).enumerate() {
            let mut text = format!("counts {}", line * IN_A_LINE);
            for counts in methods {
                let [begun, ended, done] =
                    [0, 1, 2].map(|it| counts[it].swap(0, Ordering::Relaxed));
                text.push_str(&format!(" {begun}/{ended}/{done}"));
            }
            log!("{text}");
        }
    }

    fn count(&self, method: u32, which: usize) {
        if let Some(counts) = self.calls.get(method as usize) {
            counts[which].fetch_add(1, Ordering::Relaxed);
            if which == 0 {
                self.reached[method as usize].store(true, Ordering::Relaxed);
            }
        }
    }
}

/// What is known of one foe.
pub struct Watch {
    score: Arc<Score>,
    /// The method that each thread is in.
    inside: [AtomicU32; THREADS],
    left: AtomicU32,
    calls: AtomicU64,
}

impl Watch {
    /// A foe that has done nothing yet.
    pub fn new(score: Arc<Score>) -> Arc<Self> {
        Arc::new(Watch {
            score,
            inside: [const { AtomicU32::new(NONE) }; THREADS],
            left: AtomicU32::new(0),
            calls: AtomicU64::new(0),
        })
    }

    /// How many threads have made all of their calls.
    pub fn left(&self) -> u32 {
        self.left.load(Ordering::Acquire)
    }

    /// Calls that were begun.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The methods that the threads are in, or were in last.
    pub fn last(&self) -> String {
        let names = self.inside.iter().filter_map(|it| {
            let method = it.load(Ordering::Relaxed);
            (method != NONE).then(|| format!(" {}", name(method as usize)))
        });
        names.collect()
    }
}

/// The object through which a foe tells what it does.
pub struct Whistle(pub Arc<Watch>);

impl Referee for Whistle {
    fn begins(&self, thread: u32, method: u32) -> RpcResult<()> {
        if let Some(inside) = self.0.inside.get(thread as usize) {
            inside.store(method, Ordering::Relaxed);
        }
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        self.0.score.count(method, 0);
        Ok(())
    }

    fn ended(&self, _: u32, method: u32, outcome: u32) -> RpcResult<()> {
        self.0.score.count(method, 1);
        if outcome == Outcome::Done as u32 {
            self.0.score.count(method, 2);
        }
        Ok(())
    }

    fn left(&self, _: u32) -> RpcResult<()> {
        self.0.left.fetch_add(1, Ordering::Release);
        Ok(())
    }
}
