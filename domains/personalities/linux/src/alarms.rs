//! Real-time alarms of processes (`setitimer(2)`): one thread waits for the earliest.

use crate::delivery::by_kernel;
use crate::errno::{SIGALRM, SIGKILL};
use crate::system::System;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{thread, time};
use interfaces::RpcResult;

/// The shortest time between two alarms of a process, in nanoseconds: one that asks for more gets
/// as many as are taken.
const SHORTEST: u64 = 100_000;

/// When a process is to get a signal, and how long after that again; 0: not again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    pub at: u64,
    pub again: u64,
}

/// The alarms, by process.
#[derive(Default)]
pub struct Alarms {
    set: Mutex<BTreeMap<u32, Alarm>>,
    bell: Condvar,
}

impl Alarms {
    /// Sets a process's alarm, or none; what there was.
    pub fn set(&self, process: u32, alarm: Option<Alarm>) -> Option<Alarm> {
        let mut set = self.set.lock();
        let before = match alarm {
            Some(alarm) => set.insert(process, alarm),
            None => set.remove(&process),
        };
        drop(set);
        if alarm.is_some() {
            self.bell.notify_all();
        }
        before
    }

    /// A process's alarm.
    pub fn get(&self, process: u32) -> Option<Alarm> {
        self.set.lock().get(&process).copied()
    }

    /// Waits for the next alarms, and takes them out; whose they are. `None`: the wait was ended.
    fn next(&self) -> Option<Vec<u32>> {
        let mut set = self.set.lock();
        loop {
            let now = time::now();
            let due: Vec<u32> = set
                .iter()
                .filter(|(_, it)| it.at <= now)
                .map(|(id, _)| *id)
                .collect();
            if !due.is_empty() {
                for id in &due {
                    renew(&mut set, *id, now);
                }
                return Some(due);
            }
            let first = set.values().map(|alarm| alarm.at).min();
            let (again, why) = match first {
                Some(at) => self.bell.wait_until(set, at),
                None => self.bell.wait(set),
            };
            set = again;
            if why == Wait::Interrupted {
                return None;
            }
        }
    }
}

/// Sets an alarm that has come for its next time, or takes it out.
fn renew(set: &mut BTreeMap<u32, Alarm>, id: u32, now: u64) {
    match set.get_mut(&id) {
        Some(alarm) if alarm.again > 0 => {
            alarm.at = now.saturating_add(alarm.again.max(SHORTEST));
        }
        _ => drop(set.remove(&id)),
    }
}

/// Has a thread send the signals.
///
/// # Errors
/// There is no memory for one.
pub fn attend(system: &Arc<System>) -> RpcResult<()> {
    let system = system.clone();
    thread::spawn("alarms", move || {
        while let Some(due) = system.alarms.next() {
            for process in due.into_iter().filter_map(|id| system.process(id)) {
                if process.signals.pending() & crate::signals::bit(SIGKILL) == 0 {
                    process.signal(by_kernel(SIGALRM), None);
                }
            }
        }
    })
}
