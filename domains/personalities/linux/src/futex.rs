//! Threads that wait at words of their program's memory (`futex(2)`), and the list of locks that a
//! thread holds when it ends (`set_robust_list(2)`).
//!
//! No memory is shared by two processes, so a word is one process's, private or not. Who waits
//! looks at the word with the list locked; who wakes has changed it before, and locks the list
//! then: so none is missed.

use crate::errno::{EAGAIN, EFAULT, EINTR, EINVAL, ENOMEM, ENOSYS, ETIMEDOUT, Error};
use crate::memory;
use crate::signals::Ears;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use domain_rt::sync::Mutex;
use domain_rt::time;
use linux::memory::Memory;

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

/// Who waits, in the order in which they came. There are as many at most as threads.
#[derive(Default)]
pub struct Futexes(Mutex<Vec<Waiter>>);

struct Waiter {
    at: u64,
    /// It is woken by who has one of these bits.
    bits: u32,
    ears: Arc<Ears>,
}

impl Futexes {
    /// Wakes those that wait at a word, `count` at most; how many.
    fn wake(&self, at: u64, count: u64, bits: u32) -> u64 {
        let mut waiters = self.0.lock();
        let mut woken = 0;
        waiters.retain(|waiter| {
            let is_meant = waiter.at == at && waiter.bits & bits != 0 && woken < count;
            if is_meant {
                woken += 1;
                waiter.ears.is_woken.store(true, Ordering::Release);
                waiter.ears.ring();
            }
            !is_meant
        });
        woken
    }

    /// Has those that wait at a word wait at another one, `count` at most; how many.
    fn move_to(&self, at: u64, to: u64, count: u64) -> u64 {
        let mut waiters = self.0.lock();
        let meant = waiters.iter_mut().filter(|waiter| waiter.at == at);
        let mut moved = 0;
        for waiter in meant.take(count as usize) {
            waiter.at = to;
            moved += 1;
        }
        moved
    }

    /// Takes out who does not wait any more; whether he was still there.
    fn take_out(&self, ears: &Arc<Ears>) -> bool {
        let mut waiters = self.0.lock();
        let place = waiters.iter().position(|it| Arc::ptr_eq(&it.ears, ears));
        place.map(|place| waiters.remove(place)).is_some()
    }
}

impl Task {
    /// `futex`: `a` are its arguments.
    pub fn futex(&mut self, a: [u64; 6]) -> Result<u64> {
        let [at, how, value, time, to, last] = a;
        if !at.is_multiple_of(4) {
            return Err(EINVAL);
        }
        let futexes = &self.program.mm.futexes;
        match how & !(PRIVATE | REALTIME) {
            0 => {
                let deadline = self.deadline(time, |length| time::now().saturating_add(length))?;
                self.wait_at(at, value as u32, deadline, u32::MAX)
            }
            9 => {
                let system = &self.process.system;
                let deadline = self.deadline(time, |point| match how & REALTIME {
                    0 => point,
                    _ => system.until_wall(point),
                })?;
                self.wait_at(at, value as u32, deadline, last as u32)
            }
            1 => Ok(futexes.wake(at, value, u32::MAX)),
            10 if last as u32 != 0 => Ok(futexes.wake(at, value, last as u32)),
            10 => Err(EINVAL),
            3 => Ok(futexes.wake(at, value, u32::MAX) + futexes.move_to(at, to, time)),
            4 if self.word(at)? != last as u32 => Err(EAGAIN),
            4 => Ok(futexes.wake(at, value, u32::MAX) + futexes.move_to(at, to, time)),
            _ => Err(ENOSYS),
        }
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
    fn wait_at(&self, at: u64, value: u32, deadline: Option<u64>, bits: u32) -> Result<u64> {
        if bits == 0 {
            return Err(EINVAL);
        }
        let futexes = &self.program.mm.futexes;
        self.ears.is_woken.store(false, Ordering::Relaxed);
        let expects = || self.begin_to_wait(at, value, bits).transpose();
        let begun = (0..ATTEMPTS).find_map(|_| expects());
        begun.unwrap_or(Err(EFAULT))?;
        let is_woken = || self.ears.is_woken.load(Ordering::Acquire).then_some(());
        let ended = self.until_timed(deadline, is_woken);
        if ended == Ok(Some(())) || !futexes.take_out(&self.ears) {
            return Ok(0);
        }
        Err(ended.map_or(EINTR, |_| ETIMEDOUT))
    }

    /// Puts this thread among those that wait, if the word holds what is expected. `None`: its page
    /// was not ready, and one is to look again.
    fn begin_to_wait(&self, at: u64, value: u32, bits: u32) -> Result<Option<()>> {
        let mut waiters = self.program.mm.futexes.0.lock();
        let found = self.program.mm.space.load(at);
        if found == Some(value) {
            waiters.try_reserve(1).map_err(|_| ENOMEM)?;
            let ears = self.ears.clone();
            waiters.push(Waiter { at, bits, ears });
            return Ok(Some(()));
        }
        drop(waiters);
        match found.is_some() || self.word(at)? != value {
            true => Err(EAGAIN),
            false => Ok(None),
        }
    }

    /// What a thread leaves behind for the others of its process: locks that nobody holds any more,
    /// and the word by which they know that it has ended. Memory that nobody else sees needs none.
    pub fn leave_words(&self) {
        if Arc::strong_count(&self.program.mm) == 1 {
            return;
        }
        if self.robust != 0 {
            let _ = self.leave_locks();
        }
        if self.clear_at != 0
            && memory::write(&self.program.mm.space, self.clear_at, &[0; 4]).is_ok()
        {
            self.program.mm.futexes.wake(self.clear_at, 1, u32::MAX);
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
            self.leave_lock((pending & !1).wrapping_add(offset))?;
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
                        self.program.mm.futexes.wake(at, 1, u32::MAX);
                    }
                    return Ok(());
                }
                found => seen = found,
            }
        }
        Ok(())
    }
}
