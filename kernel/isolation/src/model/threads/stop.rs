//! How all threads are stopped, and what is seen of them then.

use super::{CHANGED, CURRENT, STOP, Thread, in_model, park, point, unblock, world};
use crate::call::Record;
use crate::platform::{Frame, Landing, ThreadView};
use crate::sync::{Broken, is_broken};
use core::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Stops every other thread and shows all.
pub fn stop(visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
    if in_model() {
        point();
        let threads = world().threads.clone();
        show_all(&threads, visit);
    } else {
        stop_native(visit);
    }
}

pub(super) fn stop_native(visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
    while STOP.swap(true, Ordering::AcqRel) {
        park();
    }
    let mut world = world();
    // Those of an earlier stop that have not gone on yet count as well: they stand still.
    while world.parked + 1 < world.threads.len() {
        world = CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    let threads = world.threads.clone();
    show_all(&threads, visit);
    STOP.store(false, Ordering::Release);
    drop(world);
    CHANGED.notify_all();
}

/// Shows all threads. There are no points meanwhile: the world stands still.
fn show_all(threads: &[Arc<Thread>], visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
    let me = CURRENT.replace(core::ptr::null());
    threads.iter().for_each(|thread| show(thread, visit));
    CURRENT.set(me);
    if threads.iter().any(|thread| thread.interrupted.get()) && in_model() {
        unblock();
    }
}

struct Stopped<'a>(&'a Thread);

impl Frame for Stopped<'_> {
    fn ip(&self) -> usize {
        self.0.place.get()
    }

    fn redirect(&mut self, landing: &Landing) {
        assert_ne!(landing.ip, 0, "a stub to land in");
        self.0.landed.set(true);
    }
}

fn show(thread: &Thread, visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
    let top = match is_broken(Broken::StopIsNoFence) {
        true => stale_top(thread),
        false => thread.words[0].get(),
    };
    let mut frame = Stopped(thread);
    let mut view = ThreadView {
        top: top as *mut _,
        frame: Some(&mut frame),
        stack_low: 0,
        blocked: thread.blocked.get(),
        interrupt: false,
    };
    visit(&mut view);
    let interrupt = view.interrupt;
    thread.interrupted.set(thread.interrupted.get() | interrupt);
}

/// The top record of `thread` as another processor may see it as long as stores wait: an older one
/// of the same chain.
fn stale_top(thread: &Thread) -> usize {
    let newest = thread.words[0].get();
    let seen = thread.seen.get();
    let mut record = newest as *const Record;
    while !record.is_null() {
        if record as usize == seen {
            return seen;
        }
        // SAFETY: a record in the chain of a thread that stands still.
        record = unsafe { (*record).previous };
    }
    newest
}
