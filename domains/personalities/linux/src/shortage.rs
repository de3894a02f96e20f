//! What is done when programs want more memory than there is: the one that has most is ended, and
//! its pages are taken at once, so that the others go on.
//!
//! Whoever is short does that by itself and tries again, one after the other. It has no lock of a
//! memory meanwhile, and allocates nothing.

use crate::delivery::by_kernel;
use crate::errno::SIGKILL;
use crate::parts::Mm;
use crate::process::Process;
use crate::space::Space;
use crate::system::System;
use alloc::string::String;
use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use domain_rt::{log, time};

/// How long whoever is short waits for the end of the one that it has ended, of which a part of the
/// memory comes back only then, and how often it looks, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const TURN: u64 = 2_000_000;

/// Locked by whoever is short, so that no more are ended than have to be.
#[derive(Default)]
pub struct Shortage(Mutex<()>);

/// A process that may be ended.
struct Victim {
    process: Arc<Process>,
    mm: Arc<Mm>,
    pages: u64,
}

impl System {
    /// Has memory come back, if there is still none: `is_there` says that. Whether one may try
    /// again; `false`: nobody is left who could be ended, or it is `own` that is.
    pub fn relieve(&self, own: &Space, is_there: impl Fn() -> bool) -> bool {
        let _one = self.shortage.0.lock();
        if is_there() {
            return true;
        }
        let Some(victim) = self.largest() else {
            return false;
        };
        let path = victim.process.told.lock().path.clone();
        log!(
            "out of memory: process {} ({}) is ended, which had {} KiB",
            victim.process.id,
            String::from_utf8_lossy(&path),
            4 * victim.pages
        );
        let Victim { mm, .. } = victim;
        mm.space.doom();
        self.each_process(|process| {
            let own = process.mm.lock().upgrade();
            if own.is_some_and(|own| Arc::ptr_eq(&own, &mm)) {
                process.signal(by_kernel(SIGKILL), None);
            }
        });
        mm.space.empty();
        if mm.space.is(own) {
            return false;
        }
        let gone = Arc::downgrade(&mm);
        drop(mm);
        let end = time::now().saturating_add(PATIENCE);
        while !is_there() && gone.strong_count() > 0 && time::now() < end {
            time::sleep(TURN);
        }
        true
    }

    /// The process that has most, of those that are not about to end.
    fn largest(&self) -> Option<Victim> {
        let mut largest: Option<Victim> = None;
        self.each_process(|process| {
            let Some(mm) = process.mm.lock().upgrade() else {
                return;
            };
            let pages = mm.space.pages();
            let most = largest.as_ref().map_or(0, |victim| victim.pages);
            if pages > most && !mm.space.is_doomed() {
                largest = Some(Victim { process, mm, pages });
            }
        });
        largest
    }

    /// Does something with each process that lives. The table is not locked meanwhile.
    fn each_process(&self, mut work: impl FnMut(Arc<Process>)) {
        let mut from = 0;
        while let Some((id, process)) = self.next_process(from) {
            work(process);
            from = id + 1;
        }
    }
}
