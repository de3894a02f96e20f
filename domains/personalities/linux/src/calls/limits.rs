//! Limits, what was used of the machine, and what of it there is.

use super::Result;
use crate::errno::{EFAULT, EINVAL, EPERM, ESRCH};
use crate::memory;
use crate::process::MOST_FILES;
use crate::process::Process;
use crate::special::system::log;
use crate::task::Task;
use domain_rt::time;

/// The kinds of limits (`asm-generic/resource.h`).
pub const COUNT: usize = 16;
const STACK: usize = 3;
const CORE: usize = 4;
const TASKS: usize = 6;
const FILES: usize = 7;
/// No limit.
const UNLIMITED: u64 = u64::MAX;
/// Nanoseconds of a second, and of a tick of `times`.
const SECOND: u64 = 1_000_000_000;
const TICK: u64 = SECOND / 100;

/// Soft and hard limits.
pub type Limits = [[u64; 2]; COUNT];

/// What a process begins with, of which a user may have so many tasks.
pub fn usual(tasks: u64) -> Limits {
    let mut limits = [[UNLIMITED; 2]; COUNT];
    limits[CORE] = [0, UNLIMITED];
    limits[STACK] = [8 << 20, UNLIMITED];
    limits[TASKS] = [tasks; 2];
    limits[FILES] = [MOST_FILES as u64; 2];
    limits
}

impl Process {
    /// How many tasks its user may have; for the system's own user there is no limit here.
    pub fn most_tasks(&self) -> u64 {
        let cred = self.cred();
        match cred.is_root() || cred.user.real == 0 {
            true => UNLIMITED,
            false => self.limits.lock()[TASKS][0],
        }
    }
}

impl Task {
    /// `prlimit64`, of this process alone.
    pub(super) fn limit(&self, id: u64, kind: u64, new: u64, old: u64) -> Result<u64> {
        if id as i32 != 0 && id as u32 != self.process.id {
            return Err(ESRCH);
        }
        let kind = usize::try_from(kind).ok().filter(|kind| *kind < COUNT);
        let kind = kind.ok_or(EINVAL)?;
        let wanted = match new {
            0 => None,
            at => Some(self.get::<2>(at)?),
        };
        let mut limits = self.process.limits.lock();
        let before = limits[kind];
        if let Some([soft, hard]) = wanted {
            if soft > hard {
                return Err(EINVAL);
            }
            // More descriptors than a table has room for nobody gets, and more than before only the
            // system's own user.
            let is_more = hard > before[1] && !self.process.cred().is_root();
            if is_more || kind == FILES && hard > MOST_FILES as u64 {
                return Err(EPERM);
            }
            limits[kind] = [soft, hard];
        }
        drop(limits);
        match old {
            0 => Ok(0),
            at => self.put(at, &before),
        }
    }

    /// How many descriptors the process may have.
    pub fn most_files(&self) -> usize {
        let [soft, _] = self.process.limits.lock()[FILES];
        usize::try_from(soft).map_or(MOST_FILES, |most| most.min(MOST_FILES))
    }

    /// `getrusage`: times are not counted yet, and neither is anything else.
    pub(super) fn usage(&self, whose: u64, at: u64) -> Result<u64> {
        match whose as i32 {
            -1..=1 => self.put(at, &[0; 18]),
            _ => Err(EINVAL),
        }
    }

    /// `times`: ticks since some moment; those that were used are not counted yet.
    pub(super) fn ticks(&self, at: u64) -> Result<u64> {
        if at != 0 {
            self.put(at, &[0; 4])?;
        }
        Ok(time::now() / TICK)
    }

    /// `sysinfo` (`linux/sysinfo.h`).
    pub(super) fn machine(&self, at: u64) -> Result<u64> {
        let (total, free) = self.process.system.memory();
        let processes = self.process.system.processes().len() as u64;
        let mut info = [0; 14];
        info[0] = time::now() / SECOND;
        (info[4], info[5]) = (total, free);
        info[10] = processes & 0xffff;
        // The unit of memory: a byte.
        info[13] = 1;
        self.put(at, &info[..14])
    }

    /// `syslog`: the size of the kernel's log, or the end of it.
    pub(super) fn kernel_log(&self, what: u64, at: u64, room: u64) -> Result<u64> {
        let monitor = self.process.system.authority.monitor.as_ref();
        let is_root = self.process.cred().is_root();
        let monitor = monitor.filter(|_| is_root).ok_or(EPERM)?;
        let text = log(monitor)?;
        match what {
            3 => {
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                let end = &text[text.len().saturating_sub(room)..];
                memory::write(&self.program.mm.space, at, end)?;
                Ok(end.len() as u64)
            }
            10 => Ok(text.len() as u64),
            _ => Err(EINVAL),
        }
    }

    /// `reboot`: switches the machine off, which is all that it can do.
    pub(super) fn reboot(&self, first: u64, second: u64, what: u64) -> Result<u64> {
        let is_meant = first as u32 == 0xfee1_dead
            && matches!(
                second as u32,
                0x2812_1969 | 0x0512_1996 | 0x1604_1998 | 0x2011_2000
            );
        if !self.process.cred().is_root() {
            return Err(EPERM);
        }
        if !is_meant {
            return Err(EINVAL);
        }
        match what as u32 {
            0x4321_fedc | 0xcdef_0123 => self.process.system.switch_off().map(|()| 0),
            // What keys do is not asked here.
            0 | 0x89ab_cdef => Ok(0),
            _ => Err(EINVAL),
        }
    }

    /// `getpriority`: all are equal, which the call says as 20.
    pub(super) fn priority(&self, which: u64, who: u64) -> Result<u64> {
        match which {
            0 if who != 0 && self.process.system.process(who as u32).is_none() => Err(ESRCH),
            0..=2 => Ok(20),
            _ => Err(EINVAL),
        }
    }

    /// `setpriority`: only what is so already can be had.
    pub(super) fn set_priority(&self, which: u64, who: u64, to: u64) -> Result<u64> {
        self.priority(which, who)?;
        match to as i32 {
            0 => Ok(0),
            _ => Err(EPERM),
        }
    }

    /// `sched_getaffinity`: all processors that there are.
    pub(super) fn processors(&self, room: u64, at: u64) -> Result<u64> {
        if room < 8 || !room.is_multiple_of(8) {
            return Err(EINVAL);
        }
        let count = self.process.system.processors().clamp(1, 63);
        self.put(at, &[(1 << count) - 1]).map(|_| 8)
    }

    /// `getcpu`: on which one it runs nobody may rely.
    pub(super) fn processor(&self, processor: u64, node: u64) -> Result<u64> {
        for at in [processor, node] {
            if at != 0 {
                memory::write(&self.program.mm.space, at, &[0; 4]).map_err(|_| EFAULT)?;
            }
        }
        Ok(0)
    }
}
