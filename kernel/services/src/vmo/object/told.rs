//! Who is told that pages become dirty, and who waits for a load.

use super::super::payer::Payer;
use super::{Result, Vmo};
use crate::event::Raiser;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use interfaces::{MemoryError, PageKind, RpcError};
use isolation::platform::{self, WaitResult, platform};
use pages::Bytes;

/// How long who waits for a load sleeps at most before he looks whether the loader lives; in
/// nanoseconds. Deaths ring for nobody.
const LOADER_SEEN: u64 = 10_000_000;
/// Who waits for loads is woken so many at a time, and so often at most.
const AT_ONCE: u32 = 64;
const ROUNDS: u32 = 64;

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Has `raiser` raised when a page becomes dirty, from now on, and no other any more.
    pub fn tell_dirty(&self, raiser: Option<Arc<Raiser>>) {
        let before = core::mem::replace(&mut self.state.lock().raiser, raiser);
        drop(before);
        if self.next(0, PageKind::Dirty).is_some() {
            self.marked();
        }
    }

    /// A page was marked as dirty that was clean. Without the lock.
    pub(in crate::vmo) fn marked(&self) {
        if !self.alarm.marked() {
            return;
        }
        let raiser = self.state.lock().raiser.clone();
        if let Some(raiser) = raiser {
            raiser.raise();
        }
    }

    /// Waits until `page` is not being loaded, until `deadline` at most; whether it is not.
    ///
    /// # Errors
    /// [`MemoryError::Beyond`]. `Rpc(Interrupted)`: who waits is to go.
    pub fn await_load(&self, page: u64, deadline: Option<u64>) -> Result<bool> {
        loop {
            let seen = self.ended.load(Ordering::Acquire);
            self.is_within(page)?;
            self.break_off_dead(page);
            if self.with_page(page, |entry| entry.tags().loading) != Some(true) {
                return Ok(true);
            }
            let now = platform().now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            let next = now.saturating_add(LOADER_SEEN);
            let next = deadline.map_or(next, |deadline| deadline.min(next));
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let result = platform::wait(&self.ended, seen, Some(next));
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            if result == WaitResult::Interrupted {
                return Err(MemoryError::Rpc(RpcError::Interrupted));
            }
        }
    }

    /// Loads have ended, whatever they brought. Without the lock.
    pub(super) fn loads_ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        // Some at a time, since a lock is held for it. Whoever is still left then looks by himself.
        for _ in 0..ROUNDS {
            if platform().wake(&self.ended, AT_ONCE) < AT_ONCE {
                break;
            }
        }
    }
}
