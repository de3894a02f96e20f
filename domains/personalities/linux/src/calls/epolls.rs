//! Sets of what a program waits for, and counters (`epoll(7)`, `eventfd(2)`).

use super::{O_CLOEXEC, O_NONBLOCK, Result};
use crate::counters::EventCounter;
use crate::epoll::{Epoll, set_of};
use crate::errno::{EINVAL, ENOMEM};
use crate::files::Open;
use crate::memory;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::time;
use linux::counter::Counter;
use linux::epoll::Wish;

/// What `epoll_ctl` is asked for.
const ADD: u64 = 1;
const DELETE: u64 = 2;
const MODIFY: u64 = 3;
/// Each read of a counter takes one.
const EFD_SEMAPHORE: u64 = 1;
/// Bytes of a `struct epoll_event`.
const EVENT: u64 = 12;
/// The most events that are told at once; a program may ask for more.
const MOST_EVENTS: usize = 4096;

impl Task {
    /// `epoll_create1`, and `epoll_create` with a size that means nothing but must be one.
    pub(super) fn make_set(&mut self, size: i32, flags: u64) -> Result<u64> {
        if size <= 0 || flags & !O_CLOEXEC != 0 {
            return Err(EINVAL);
        }
        let user = self.process.owner.user();
        let set = Epoll::new(&self.process.system.sets, &user)?;
        let open = Arc::new(Open::Epoll(Arc::new(set)));
        self.place(open, 0, flags & O_CLOEXEC != 0)
    }

    /// `epoll_ctl`: set, what is asked for, descriptor, and what is wanted of it.
    pub(super) fn change_set(&mut self, a: [u64; 4]) -> Result<u64> {
        let what = a[1] & 0xffff_ffff;
        let mut bytes = [0; EVENT as usize];
        if what != DELETE {
            memory::read(&self.program.mm.space, a[3], &mut bytes)?;
        }
        let wish = Wish::from_bytes(&bytes);
        let holder = self.opened(a[0])?;
        let descriptor = a[2] & 0xffff_ffff;
        let open = self.opened(descriptor)?;
        if Arc::ptr_eq(&holder, &open) {
            return Err(EINVAL);
        }
        let set = set_of(&holder)?;
        match what {
            ADD => set.add(&self.process.owner.user(), (descriptor, &open), wish),
            DELETE => set.remove(descriptor, &open),
            MODIFY => set.change((descriptor, &open), wish),
            _ => Err(EINVAL),
        }?;
        Ok(0)
    }

    /// `epoll_wait`: set, where events go to, how many at most, for how long; and `epoll_pwait`,
    /// with a mask of signals.
    pub(super) fn wait_for_set(&mut self, a: [u64; 6], mask: Option<u64>) -> Result<u64> {
        let holder = self.opened(a[0])?;
        let set = set_of(&holder)?;
        let most = usize::try_from(a[2] as i32).map_err(|_| EINVAL)?;
        if most == 0 {
            return Err(EINVAL);
        }
        let milliseconds = a[3] as i32;
        let length = milliseconds.max(0) as u64 * 1_000_000;
        let deadline = (milliseconds >= 0).then(|| time::now().saturating_add(length));
        let most = most.min(MOST_EVENTS);
        let found = self.masked_by(mask.unwrap_or(0), a[5], |task| {
            set.wait(task, most, deadline)
        })?;
        let mut bytes = Vec::new();
        let room = found.len() * EVENT as usize;
        bytes.try_reserve_exact(room).map_err(|_| ENOMEM)?;
        for event in &found {
            bytes.extend_from_slice(&event.bytes());
        }
        let put = memory::write(&self.program.mm.space, a[1], &bytes);
        put.inspect_err(|_| set.tell_again())?;
        Ok(found.len() as u64)
    }

    /// `eventfd2`.
    pub(super) fn counter(&mut self, value: u64, flags: u64) -> Result<u64> {
        if flags & !(EFD_SEMAPHORE | O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(EINVAL);
        }
        let counter = Counter::new(value as u32, flags & EFD_SEMAPHORE != 0);
        let user = self.process.owner.user();
        let counter = EventCounter::new(&user, counter, flags & O_NONBLOCK != 0)?;
        let open = Arc::new(Open::Counter(counter));
        self.place(open, 0, flags & O_CLOEXEC != 0)
    }
}
