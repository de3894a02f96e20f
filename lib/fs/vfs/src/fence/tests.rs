//! A model of the locks around a fence: calls of a dead service, frozen before each of their steps,
//! while the next service begins. All orders of steps are tried.

extern crate std;

use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::{Fence, Fenced, Loads, Part, Service};

/// What a thread does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Takes the volume's lock, or waits.
    Lock,
    Unlock,
    /// Is compared with the fence, under the lock that the thread has; ends the call if it is late.
    Admit,
    /// Changes names or places, under the volume's lock.
    Change,
    /// Enters a load, compared under the lock of the loads, or waits for a cut.
    Load,
    /// As `Load`, and nobody compares: what a mistake would be.
    LoadUnseen,
    /// Enters a cut.
    Cut,
    /// Waits until no load of the file is under way.
    AwaitLoads,
    /// The device moves bytes of a page.
    Device,
    /// The load or the cut has ended.
    End,
    /// Raises the fence, with both locks.
    Raise,
    /// As `Raise`, without the volume's lock: what a mistake would be.
    RaiseUnlocked,
    /// Waits until nothing older is under way.
    AwaitOlder,
    /// The next service has begun: it looks.
    Begun,
}
use Step::*;

const FILE: u32 = 7;

#[derive(Clone, Debug)]
struct Thread {
    service: Service,
    steps: Vec<Step>,
    at: usize,
    part: Option<Part>,
}

#[derive(Debug)]
struct World {
    fence: Fence,
    loads: Loads,
    /// Which thread has the volume's lock.
    holder: Option<usize>,
    has_begun: bool,
    threads: Vec<Thread>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        let fence = Fence::default();
        let present = self.fence.0.load(super::Ordering::Relaxed);
        fence.0.store(present, super::Ordering::Relaxed);
        World {
            fence,
            loads: self.loads.clone(),
            holder: self.holder,
            has_begun: self.has_begun,
            threads: self.threads.clone(),
        }
    }
}

fn service(number: u32) -> Service {
    Service::new(number).expect("it is not 0")
}

const OLD: u32 = 3;
const NEW: u32 = 5;

impl World {
    /// Calls of the old service, and the next one that begins by `begin`.
    fn new(calls: &[&[Step]], begin: &[Step]) -> Self {
        let thread = |number, steps: &[Step]| Thread {
            service: service(number),
            steps: steps.to_vec(),
            at: 0,
            part: None,
        };
        let mut world = World {
            fence: Fence::default(),
            loads: Loads::default(),
            holder: None,
            has_begun: false,
            threads: calls.iter().map(|steps| thread(OLD, steps)).collect(),
        };
        world.threads.push(thread(NEW, begin));
        world.fence.raise(service(OLD)).expect("it is the first");
        world.loads.raised(service(OLD));
        world
    }

    /// The call of a thread is refused: it lets go of all that it has.
    fn leave(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        if let Some(part) = thread.part.take() {
            self.loads.end(part);
        }
        thread.at = thread.steps.len();
        if self.holder == Some(index) {
            self.holder = None;
        }
    }

    /// Something happens by a thread.
    fn happens(&self, index: usize) -> Result<(), String> {
        let thread = &self.threads[index];
        match self.has_begun && thread.service == service(OLD) {
            true => Err(format!(
                "late: {:?} of {:?}",
                thread.steps[thread.at], thread.steps
            )),
            false => Ok(()),
        }
    }

    /// Lets a thread do its next step. `false`: it waits, or is done.
    fn run(&mut self, index: usize) -> Result<bool, String> {
        let Thread {
            service,
            ref steps,
            at,
            ..
        } = self.threads[index];
        let Some(&step) = steps.get(at) else {
            return Ok(false);
        };
        let is_admitted = self.fence.admit(service).is_ok();
        match step {
            Lock if self.holder.is_some() => return Ok(false),
            Lock => self.holder = Some(index),
            Unlock => self.holder = None,
            Admit | Load | Cut if !is_admitted => {
                self.leave(index);
                return Ok(true);
            }
            Admit => {}
            Change => {
                assert_eq!(self.holder, Some(index));
                self.happens(index)?;
            }
            Load | LoadUnseen => match self.loads.begin(FILE, service) {
                Some(part) => self.threads[index].part = Some(part),
                None => return Ok(false),
            },
            Cut => self.threads[index].part = Some(self.loads.begin_cut(FILE, service)),
            // Who waits is woken by a fence that is raised, and leaves.
            AwaitLoads if !is_admitted => {
                self.leave(index);
                return Ok(true);
            }
            AwaitLoads if self.loads.has_loads(FILE) => return Ok(false),
            AwaitLoads => {}
            Device => self.happens(index)?,
            End => {
                let part = self.threads[index].part.take();
                self.loads.end(part.expect("it has begun"));
            }
            Raise | RaiseUnlocked => {
                assert!(step == RaiseUnlocked || self.holder == Some(index));
                self.fence.raise(service).expect("it is the last");
                self.loads.raised(service);
            }
            AwaitOlder if self.loads.has_older() => return Ok(false),
            AwaitOlder => {}
            Begun => self.has_begun = true,
        }
        self.threads[index].at += 1;
        Ok(true)
    }

    /// Tries all orders of steps from here on.
    fn explore(&self, seen: &mut BTreeSet<String>) -> Result<(), String> {
        if !seen.insert(format!("{self:?}")) {
            return Ok(());
        }
        let mut goes_on = false;
        for index in 0..self.threads.len() {
            let mut next = self.clone();
            if next.run(index)? {
                goes_on = true;
                next.explore(seen)?;
            }
        }
        let is_done = |thread: &Thread| thread.at == thread.steps.len();
        match goes_on || self.threads.iter().all(is_done) {
            true => Ok(()),
            false => Err(format!("nobody goes on: {self:?}")),
        }
    }
}

/// A change of names, which is begun anew once, as one that reads metadata without the lock.
const NAMES: &[Step] = &[Lock, Admit, Unlock, Lock, Admit, Change, Unlock];
/// Pages are loaded: their places are asked for under the lock.
const LOADED: &[Step] = &[Load, Lock, Admit, Unlock, Device, End];
/// Pages are stored: they get places, and the content of those is renewed when they are there.
const STORED: &[Step] = &[Load, Lock, Admit, Change, Unlock, Device, Lock, Unlock, End];
/// A file is cut, or a hole made.
const SHRUNK: &[Step] = &[Cut, AwaitLoads, Lock, Admit, Change, Unlock, End];
const CALLS: [&[Step]; 4] = [NAMES, LOADED, STORED, SHRUNK];

const BEGIN: &[Step] = &[Lock, Raise, Unlock, AwaitOlder, Begun];

fn explore(calls: &[&[Step]], begin: &[Step]) -> Result<(), String> {
    World::new(calls, begin).explore(&mut BTreeSet::new())
}

#[test]
fn nothing_of_an_earlier_service_happens_after_the_next_has_begun() {
    for one in CALLS {
        for other in CALLS {
            assert_eq!(explore(&[one, other], BEGIN), Ok(()));
        }
    }
}

#[test]
fn each_part_of_it_is_needed() {
    // The lock is taken again, and nobody compares.
    assert!(explore(&[&[Lock, Admit, Unlock, Lock, Change, Unlock]], BEGIN).is_err());
    // A load enters late, and has its places from before.
    assert!(explore(&[&[Lock, Admit, Unlock, LoadUnseen, Device, End]], BEGIN).is_err());
    // Loads are not waited for.
    let hasty = [Lock, Raise, Unlock, Begun];
    assert!(explore(&[LOADED], &hasty).is_err());
    assert!(explore(&[STORED], &hasty).is_err());
    // The fence is raised beside a change that was compared already.
    let beside = [RaiseUnlocked, AwaitOlder, Begun];
    assert!(explore(&[NAMES], &beside).is_err());
}

#[test]
fn a_service_that_begins_late_is_refused() {
    let fence = Fence::default();
    let [old, new] = [OLD, NEW].map(service);
    assert_eq!(fence.admit(old), Err(Fenced));
    assert_eq!(fence.raise(new), Ok(()));
    assert_eq!(fence.raise(old), Err(Fenced));
    assert_eq!((fence.admit(old), fence.admit(new)), (Err(Fenced), Ok(())));
    assert_eq!(fence.raise(new), Ok(()));
    assert_eq!(
        (fence.admit(new), fence.admit(Service::OWN)),
        (Ok(()), Ok(()))
    );
    assert_eq!(Service::new(0), None);
}

#[test]
fn what_is_older_is_counted_until_it_ends() {
    let [old, new, newest] = [1, 2, 3].map(service);
    let mut loads = Loads::default();
    loads.raised(old);
    let load = loads.begin(FILE, old).expect("nobody cuts");
    let cut = loads.begin_cut(FILE, old);
    assert_eq!(loads.begin(FILE, old), None);
    assert!(loads.has_loads(FILE) && !loads.has_older());
    loads.raised(new);
    loads.raised(new);
    let other = loads.begin(FILE + 1, new).expect("nobody cuts");
    assert!(loads.has_older());
    loads.end(load);
    assert!(loads.has_older() && !loads.has_loads(FILE));
    loads.end(cut);
    assert!(!loads.has_older());
    loads.raised(newest);
    assert!(loads.has_older());
    loads.end(other);
    assert!(!loads.has_older() && loads.files.is_empty());
}
