//! Threads that wait at words of their program's memory (`futex(2)`), and the list of locks that a
//! thread holds when it ends (`set_robust_list(2)`).
//!
//! A word in memory that processes share is known by what is mapped there, so that they meet at it
//! whatever addresses they have for it; any other word by its memory and address. The list of
//! waiters is in [`crate::waiters`].

use crate::errno::{EAGAIN, EFAULT, EINTR, EINVAL, ENOSYS, ETIMEDOUT, Error};
use crate::memory;
use crate::task::Task;
use crate::waiters::Key;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use domain_rt::time;
use linux::memory::Memory;
use linux::program::USER_END;

type Result<T> = core::result::Result<T, Error>;

/// Of what is asked, these bits say how.
const PRIVATE: u64 = 128;
const REALTIME: u64 = 256;
/// The most locks that are looked at when a thread ends, as on Linux.
const MOST_LOCKS: usize = 2048;
/// How often one looks at a word that other threads change, or whose page goes as soon as it has
/// come.
const ATTEMPTS: usize = 1024;
/// In the word of such a lock: others wait; who held it has ended; the number of who holds it.
const WAITED_FOR: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const OWNER: u32 = OWNER_DIED - 1;

impl Task {
    /// `futex`: `a` are its arguments.
    pub fn futex(&mut self, a: [u64; 6]) -> Result<u64> {
        let [at, how, value, time, to, last] = a;
        let key = self.key(at, how)?;
        let waiters = &self.process.system.waiters;
        // As on Linux one is woken where fewer are asked for.
        let count = (value as i32).max(1) as u64;
        match how & !(PRIVATE | REALTIME) {
            0 => {
                let deadline = self.deadline(time, |length| time::now().saturating_add(length))?;
                self.wait_at((key, at), value as u32, deadline, u32::MAX)
            }
            9 => {
                let system = &self.process.system;
                let deadline = self.deadline(time, |point| match how & REALTIME {
                    0 => point,
                    _ => system.until_wall(point),
                })?;
                self.wait_at((key, at), value as u32, deadline, last as u32)
            }
            1 => Ok(waiters.wake(key, count, u32::MAX)),
            10 if last as u32 != 0 => Ok(waiters.wake(key, count, last as u32)),
            10 => Err(EINVAL),
            3 => self.requeue([key, self.key(to, how)?], [value, time], None),
            4 => {
                let expected = Some((at, last as u32));
                self.requeue([key, self.key(to, how)?], [value, time], expected)
            }
            _ => Err(ENOSYS),
        }
    }

    /// What a word is known by. A page of one that is not said to be private has to be there.
    fn key(&self, at: u64, how: u64) -> Result<Key> {
        let space = &self.program.mm.space;
        if !at.is_multiple_of(4) {
            return Err(EINVAL);
        }
        if at >= USER_END {
            return Err(EFAULT);
        }
        if how & PRIVATE == 0 {
            self.word(at)?;
        }
        Ok(space.key(at, how & PRIVATE != 0))
    }

    /// Wakes some and has others wait at another word, if the first holds what is expected.
    fn requeue(
        &self,
        keys: [Key; 2],
        counts: [u64; 2],
        expected: Option<(u64, u32)>,
    ) -> Result<u64> {
        let counts = counts.map(|count| count as i32);
        if counts.iter().any(|count| *count < 0) {
            return Err(EINVAL);
        }
        let counts = counts.map(|count| count as u64);
        let waiters = &self.process.system.waiters;
        let Some((at, value)) = expected else {
            return waiters.requeue(keys, counts, || Ok(()));
        };
        self.in_turn(at, || {
            waiters.requeue(keys, counts, || self.holds(at, value))
        })
    }

    /// Whether a word holds what is expected.
    ///
    /// # Errors
    /// `EAGAIN`: it does not. `EFAULT`: its page is not ready.
    fn holds(&self, at: u64, value: u32) -> Result<()> {
        match self.program.mm.space.load(at) {
            Some(found) if found == value => Ok(()),
            Some(_) => Err(EAGAIN),
            None => Err(EFAULT),
        }
    }

    /// Has `work` look at the word at `at`, again where its page was not ready.
    fn in_turn<T>(&self, at: u64, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
            match work() {
                Err(EFAULT) => self.word(at).map(drop)?,
                done => return done,
            }
        }
        Err(EFAULT)
    }

    /// The time that is meant by a structure in the program's memory, if there is one.
    fn deadline(&self, at: u64, from: impl FnOnce(u64) -> u64) -> Result<Option<u64>> {
        if at == 0 {
            return Ok(None);
        }
        let [seconds, rest] = self.get(at)?;
        if rest >= 1_000_000_000 || seconds > i64::MAX as u64 {
            return Err(EINVAL);
        }
        let length = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Ok(Some(from(length)))
    }

    /// What a word holds.
    fn word(&self, at: u64) -> Result<u32> {
        let space = &self.program.mm.space;
        // A list of locks may have any address in it, and there is no such word to wait for.
        if !at.is_multiple_of(4) {
            return Err(EINVAL);
        }
        for _ in 0..ATTEMPTS {
            if let Some(found) = space.load(at) {
                return Ok(found);
            }
            space.touch(at, false).map_err(|_| EFAULT)?;
        }
        Err(EFAULT)
    }

    /// Waits until it is woken, if the word holds what is expected.
    fn wait_at(
        &self,
        (key, at): (Key, u64),
        value: u32,
        deadline: Option<u64>,
        bits: u32,
    ) -> Result<u64> {
        if bits == 0 {
            return Err(EINVAL);
        }
        let waiters = &self.process.system.waiters;
        self.in_turn(at, || {
            waiters.enter((key, bits), &self.ears, || self.holds(at, value))
        })?;
        let is_woken = || self.ears.is_woken.load(Ordering::Acquire).then_some(());
        let ended = self.until_timed(deadline, is_woken);
        if ended == Ok(Some(())) || !waiters.take_out(key, &self.ears) {
            return Ok(0);
        }
        Err(ended.map_or(EINTR, |_| ETIMEDOUT))
    }

    /// Wakes those that wait at a word that the kernel itself changes, which is never said to be
    /// private.
    fn wake_at(&self, at: u64) {
        let key = self.program.mm.space.key(at, false);
        self.process.system.waiters.wake(key, 1, u32::MAX);
    }

    /// What a thread leaves behind for others: locks that nobody holds any more, which may lie in
    /// memory that processes share, and the word by which those that have its memory know that it
    /// has ended.
    pub fn leave_words(&self) {
        if self.robust != 0 {
            let _ = self.leave_locks();
        }
        // Memory that nobody else sees needs no such word.
        let mm = &self.program.mm;
        if self.clear_at != 0
            && Arc::strong_count(mm) > 1
            && memory::write(&mm.space, self.clear_at, &[0; 4]).is_ok()
        {
            self.wake_at(self.clear_at);
        }
    }

    /// Goes through the list of its locks, which ends where it began, and the one that it was about
    /// to take or leave.
    fn leave_locks(&self) -> Result<()> {
        let [first, offset, pending] = self.get(self.robust)?;
        let mut at = first;
        for _ in 0..MOST_LOCKS {
            if at & !1 == self.robust {
                break;
            }
            let [next] = self.get(at & !1)?;
            if at != pending {
                self.leave_lock((at & !1).wrapping_add(offset))?;
            }
            at = next;
        }
        if pending & !1 != 0 {
            let at = (pending & !1).wrapping_add(offset);
            match self.word(at)? {
                // It has left the lock, and not woken anybody yet.
                0 => self.wake_at(at),
                _ => self.leave_lock(at)?,
            }
        }
        Ok(())
    }

    /// Marks a lock, if it was this thread's, and wakes one who waits for it.
    fn leave_lock(&self, at: u64) -> Result<()> {
        let mut seen = self.word(at)?;
        for _ in 0..ATTEMPTS {
            if seen & OWNER != self.id {
                break;
            }
            let left = seen & WAITED_FOR | OWNER_DIED;
            let space = &self.program.mm.space;
            let Some(found) = space.compare_exchange(at, seen, left) else {
                space.touch(at, true).map_err(|_| EFAULT)?;
                continue;
            };
            match found {
                found if found == seen => {
                    if seen & WAITED_FOR != 0 {
                        self.wake_at(at);
                    }
                    return Ok(());
                }
                found => seen = found,
            }
        }
        Ok(())
    }
}
