//! Threads for tests, of two kinds behind one set of functions: those of the model checker, which
//! runs one at a time and chooses at every [`point`] which goes on, and those of Linux.
//!
//! Each has the words that GS points to, so that the very trampolines, proxies and error stubs run
//! that the system runs. What the model assumes of the machine:
//!
//! - The processor delays stores (x86-TSO), but an interrupt makes a processor's earlier stores
//!   visible. So a stop of the world sees each thread's top record as the thread itself does. With
//!   [`Broken::StopIsNoFence`](crate::sync::Broken) it sees one that may be old.
//! - A stop finds a thread at one of its points: before an access to an atomic, a lock, or in a
//!   step of domain code. Whatever lies between two points is one thread's own affair.
//! - Domain code is at one known place. A thread that is stopped there goes on in the error stub.

mod stop;

pub use stop::stop;

use crate::call::resume;
use crate::call::thread::top;
use crate::platform::WaitResult;
use crate::sync::{Broken, is_broken};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use shuttle::rand::Rng;
use std::boxed::Box;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// Bytes of stack of a thread of the model.
pub const MODEL_STACK: usize = 512 * 1024;
/// Bytes of stack of a Linux thread.
const NATIVE_STACK: usize = 4 * 1024 * 1024;

/// What a thread is to those who stop the world.
pub struct Thread {
    /// What GS points to: top record, lowest address of the stack, and as word 4 the place where it
    /// counts.
    words: [Cell<usize>; 5],
    /// The top record as another processor may see it.
    seen: Cell<usize>,
    /// Where in a domain's code it stands, or 0.
    place: Cell<usize>,
    landed: Cell<bool>,
    blocked: Cell<bool>,
    interrupted: Cell<bool>,
}

// SAFETY: another thread looks at it only while this one stands still: in the model always,
// otherwise as `stop_native` has it.
unsafe impl Sync for Thread {}
// SAFETY: as above.
unsafe impl Send for Thread {}

std::thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(core::ptr::null()) };
    static EXECUTION: Cell<Option<&'static Execution>> = const { Cell::new(None) };
    static DICE: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// What an execution of the model needs of the checker.
#[derive(Default)]
struct Execution {
    /// Its accesses are where the checker may change threads.
    step: shuttle::sync::atomic::AtomicU32,
    sleepers: shuttle::sync::Mutex<()>,
    wakes: shuttle::sync::Condvar,
}

fn execution() -> &'static Execution {
    EXECUTION.get().expect("an execution is under way")
}

/// All threads, and how a stop of those of Linux stands.
struct World {
    threads: Vec<Arc<Thread>>,
    parked: usize,
}

static WORLD: Mutex<World> = Mutex::new(World {
    threads: Vec::new(),
    parked: 0,
});
static CHANGED: Condvar = Condvar::new();
static STOP: AtomicBool = AtomicBool::new(false);

fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the running thread is one of the model checker's.
pub fn in_model() -> bool {
    EXECUTION.get().is_some()
}

/// Plays `scene` as one execution of the model.
pub fn as_model<R>(scene: impl FnOnce() -> R) -> R {
    let execution = Box::into_raw(Box::<Execution>::default());
    // SAFETY: it is freed below, when all threads of the execution have ended.
    EXECUTION.set(Some(unsafe { &*execution }));
    CURRENT.set(core::ptr::null());
    *world() = World {
        threads: Vec::new(),
        parked: 0,
    };
    let result = scene();
    EXECUTION.set(None);
    // SAFETY: from the box above.
    drop(unsafe { Box::from_raw(execution) });
    result
}

fn current() -> Option<&'static Thread> {
    // SAFETY: set only by `run`, for as long as the thread runs its body.
    unsafe { CURRENT.get().as_ref() }
}

/// Makes GS point to the words of `thread`, which runs, if another one ran before.
fn become_current(thread: *const Thread) {
    if CURRENT.replace(thread) == thread {
        return;
    }
    // SAFETY: the words are those of the thread that runs; the kernel of the host only remembers
    // the address.
    let done = unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1001, thread) };
    assert_eq!(done, 0, "GS can be set");
}

/// Another thread may run here.
pub fn point() {
    let Some(me) = current() else { return };
    if in_model() {
        if is_broken(Broken::StopIsNoFence) && shuttle::rand::thread_rng().gen_range(0..8) == 0 {
            me.seen.set(me.words[0].get());
        }
        execution().step.fetch_add(1, Ordering::SeqCst);
        become_current(me);
    } else {
        if STOP.load(Ordering::Acquire) {
            park();
        }
        if roll(64) {
            std::thread::yield_now();
        }
    }
}

/// Stays for a while that the checker, or chance, chooses: up to `most` points.
pub fn dawdle(most: u32) {
    let count = match in_model() {
        true => shuttle::rand::thread_rng().gen_range(0..most),
        false => {
            roll(1);
            DICE.get() % most
        }
    };
    (0..count).for_each(|_| point());
}

/// True once in `sides` times.
fn roll(sides: u32) -> bool {
    let mut dice = DICE.get();
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    DICE.set(dice);
    dice.is_multiple_of(sides)
}

/// Another thread has to run before this one can go on.
pub fn spin() {
    let Some(me) = current() else {
        return std::thread::yield_now();
    };
    if in_model() {
        shuttle::thread::yield_now();
        become_current(me);
    } else {
        point();
        std::thread::yield_now();
    }
}

/// A step of the code of a domain whose image holds `place`. Does not return if the domain died:
/// the thread leaves it as one does whose instruction pointer the reaper has found in the image.
pub fn domain_step(place: usize, patient: bool) {
    let me = current().expect("a thread of the harness");
    me.place.set(place);
    if patient {
        spin()
    } else {
        point()
    };
    me.place.set(0);
    if me.landed.take() {
        // SAFETY: the thread is inside the callee of the top record, and its frames there own
        // nothing.
        unsafe { resume(top()) };
    }
}

/// Waits as [`Platform::wait`](crate::platform::Platform::wait) does, until `over` or, if
/// `briefly`, a moment. Whoever makes it true calls [`unblock`].
pub fn block(over: &dyn Fn() -> bool, briefly: bool) -> WaitResult {
    let me = current().expect("a thread of the harness");
    if over() {
        return WaitResult::Mismatch;
    }
    me.blocked.set(true);
    if in_model() {
        block_in_model(me, over, briefly);
    } else {
        block_natively(me, over, briefly);
    }
    me.blocked.set(false);
    match (me.interrupted.take(), over()) {
        (true, _) => WaitResult::Interrupted,
        (_, true) => WaitResult::Woken,
        _ => WaitResult::TimedOut,
    }
}

fn block_in_model(me: &Thread, over: &dyn Fn() -> bool, briefly: bool) {
    if briefly {
        return spin();
    }
    let execution = execution();
    let mut sleepers = execution.sleepers.lock().expect("not poisoned");
    while !me.interrupted.get() && !over() {
        sleepers = execution.wakes.wait(sleepers).expect("not poisoned");
    }
    drop(sleepers);
    become_current(me);
}

fn block_natively(me: &Thread, over: &dyn Fn() -> bool, briefly: bool) {
    let mut world = world();
    world.parked += 1;
    CHANGED.notify_all();
    if briefly {
        let moment = core::time::Duration::from_micros(100);
        let waited = CHANGED.wait_timeout(world, moment);
        world = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    while STOP.load(Ordering::Acquire) || !(briefly || me.interrupted.get() || over()) {
        world = CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    world.parked -= 1;
}

/// Has all who wait look again.
pub fn unblock() {
    let Some(me) = current() else { return };
    if in_model() {
        let execution = execution();
        drop(execution.sleepers.lock());
        execution.wakes.notify_all();
        become_current(me);
    } else {
        drop(world());
        CHANGED.notify_all();
    }
}

/// A thread that was started.
pub enum Join {
    Model(shuttle::thread::JoinHandle<()>),
    Native(std::thread::JoinHandle<()>),
}

/// Starts a thread in `body`, of the same kind as the running one.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> Join {
    if in_model() {
        let me = CURRENT.get();
        let join = Join::Model(shuttle::thread::spawn(|| run(body)));
        become_current(me);
        join
    } else {
        let builder = std::thread::Builder::new().stack_size(NATIVE_STACK);
        Join::Native(builder.spawn(|| run(body)).expect("a thread"))
    }
}

impl Join {
    /// Waits for its end.
    pub fn join(self) {
        match self {
            Join::Model(join) => {
                let me = CURRENT.get();
                join.join().expect("it ended well");
                become_current(me);
            }
            Join::Native(join) => {
                // Who waits here cannot be stopped, and need not be.
                let me = current().map(leave_world);
                join.join().expect("it ended well");
                if let Some(me) = me {
                    enter_world(me);
                }
            }
        }
    }
}

/// Runs `body` as a thread that can be seen.
pub fn run(body: impl FnOnce()) {
    let here = 0_u8;
    let room = if in_model() {
        MODEL_STACK
    } else {
        NATIVE_STACK
    };
    let low = (&raw const here as usize) - room * 3 / 4;
    let word = |value| Cell::new(value);
    let thread = Arc::new(Thread {
        words: [word(0), word(low), word(0), word(0), word(0)],
        seen: Cell::new(0),
        place: Cell::new(0),
        landed: Cell::new(false),
        blocked: Cell::new(false),
        interrupted: Cell::new(false),
    });
    enter_world(thread.clone());
    DICE.set((&raw const here as usize >> 4) as u32 | 1);
    become_current(&raw const *thread);
    let ended = std::panic::catch_unwind(core::panic::AssertUnwindSafe(body));
    CURRENT.set(core::ptr::null());
    leave_world(&thread);
    if ended.is_err() {
        super::machine::wrong(format_args!("a thread panicked"));
    }
}

fn enter_world(thread: Arc<Thread>) {
    let mut world = world();
    while !in_model() && STOP.load(Ordering::Acquire) {
        world = CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    world.threads.push(thread);
}

fn leave_world(thread: &Thread) -> Arc<Thread> {
    let mut world = world();
    let index = world
        .threads
        .iter()
        .position(|other| core::ptr::eq(&**other, thread));
    let thread = world.threads.swap_remove(index.expect("it is there"));
    drop(world);
    CHANGED.notify_all();
    thread
}

/// Stands still until the world goes on.
fn park() {
    let mut world = world();
    world.parked += 1;
    CHANGED.notify_all();
    while STOP.load(Ordering::Acquire) {
        world = CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner);
    }
    world.parked -= 1;
}
