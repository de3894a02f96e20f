//! What the isolation half asks of the machine: pages, threads, time, and a way to stop the world.

use abi::UserBuf;
use abi::user::{UserEvent, UserRegisters};
use core::any::Any;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// What a range of image pages may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
    /// Reading and executing.
    ReadExecute,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// Another thread woke this one.
    Woken,
    /// The word did not hold the expected value.
    Mismatch,
    /// The deadline passed.
    TimedOut,
    /// [`Platform::stop_world`]'s visitor asked for it.
    Interrupted,
}

/// Pages for an image, mapped somewhere with guard pages around. Dropping it unmaps and frees them.
pub trait ImageSpace: Send + Sync {
    /// Its first byte.
    fn start(&self) -> NonNull<u8>;
    /// Its length in pages.
    fn pages(&self) -> usize;
    /// Restricts `count` pages from page `first` on.
    fn protect(&self, first: usize, count: usize, protection: Protection);
}

/// The registers to continue an interrupted thread with.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// Where to go on.
    pub ip: usize,
    /// Stack pointer.
    pub sp: usize,
    /// First argument register.
    pub rdi: usize,
    /// The callee-saved registers rbx, rbp, r12, r13, r14, r15.
    pub saved: [usize; 6],
}

pub use abi::stack::Place;

/// Where whoever calls this is.
#[inline(always)]
pub(crate) fn here() -> Place {
    let (ip, sp, bp);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp, options(nomem, nostack, preserves_flags))
    };
    Place { ip, sp, bp }
}

/// The registers of a thread that was interrupted or took a fault.
pub trait Frame {
    /// Where it was.
    fn ip(&self) -> usize;
    /// Whether interrupts were enabled there, so that no lock was held; false where nobody can
    /// tell.
    fn interruptible(&self) -> bool {
        false
    }
    /// Whether it was in ring 3, where any program may have put the instruction pointer anywhere.
    /// Such a frame is never redirected.
    fn is_user(&self) -> bool {
        false
    }
    /// Where it was, and its stack; `None` where nobody can tell.
    fn place(&self) -> Option<Place> {
        None
    }
    /// Makes it go on elsewhere instead.
    fn redirect(&mut self, landing: &Landing);
}

/// A thread as [`Platform::stop_world`] shows it: it does not run while it is looked at.
pub struct ThreadView<'a> {
    /// Its top call record (word 0 of its block), which only calls look into.
    pub top: *mut (),
    /// Its registers, if it was interrupted somewhere; `None` if it gave up the processor by
    /// itself.
    pub frame: Option<&'a mut dyn Frame>,
    /// The lowest address of its stack.
    pub stack_low: usize,
    /// It waits for a word or a time.
    pub blocked: bool,
    /// Out: end its wait with [`WaitResult::Interrupted`].
    pub interrupt: bool,
}

/// What the scheduler is told of a new thread.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// The group that its processor time is charged to, by the group's own number; 0: the kernel.
    pub group: u64,
    /// The group's share of the processors, beside those of others.
    pub weight: u32,
    /// The group's processor time in all, in percent of one processor; 0: no limit.
    pub percent: u32,
    /// Others wait for it, and it runs only for a moment at a time: it goes before all others.
    pub urgent: bool,
    /// It is to have so much of each period, or is not to be made.
    pub deadline: Option<Deadline>,
    /// Bytes of its stack.
    pub stack: usize,
}

/// What a thread asks to be promised: nanoseconds in each period, which is in nanoseconds, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// For so long it may run in each period, before threads without a deadline.
    pub runtime: u64,
    /// How long a period is.
    pub period: u64,
}

/// The weight of a group whose starter says nothing.
pub const USUAL_WEIGHT: u32 = 1024;

impl Attributes {
    /// Of a thread of the kernel's own.
    pub const KERNEL: Attributes = Attributes {
        group: 0,
        weight: USUAL_WEIGHT,
        percent: 0,
        urgent: false,
        deadline: None,
        stack: STACK_BYTES,
    };
    /// Of one of the kernel's that all others wait for.
    pub const URGENT: Attributes = Attributes {
        urgent: true,
        ..Attributes::KERNEL
    };
}

/// The machine.
pub trait Platform: Sync {
    /// `count` zeroed pages that are contiguous; aligned to `count` pages if that is a power of
    /// two.
    fn pages(&self, count: usize) -> Option<NonNull<u8>>;
    /// Gives such pages back.
    ///
    /// # Safety
    /// They came from [`pages`](Platform::pages) with the same count and nobody uses them.
    unsafe fn free_pages(&self, start: NonNull<u8>, count: usize);
    /// Space for an image of `pages` pages, readable and writable, with whatever was there.
    fn image_space(&self, pages: usize) -> Option<alloc::boxed::Box<dyn ImageSpace>>;
    /// Starts a thread in `entry(argument)`; its number. The stack has at least as many bytes as
    /// the attributes say. `None` for lack of memory, or if it asks for a deadline that cannot be
    /// promised; where somebody else schedules, no deadline can.
    fn spawn(
        &self,
        name: &str,
        entry: extern "C" fn(usize),
        argument: usize,
        attributes: &Attributes,
    ) -> Option<u64>;
    /// Charges the processor time of the running thread, from now on and for good, to this group.
    fn join_group(&self, _attributes: &Attributes) {}
    /// Blocks while `*word == expected`; see [`WaitResult`]. `deadline` is in nanoseconds since
    /// boot.
    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Option<u64>) -> WaitResult;
    /// Wakes up to `count` threads that wait for `word`; how many. May be called anywhere.
    fn wake(&self, word: &AtomicU32, count: u32) -> u32;
    /// Wakes a thread that waits for `word` and whose work can wait until the running thread does.
    fn wake_later(&self, word: &AtomicU32) {
        self.wake(word, 1);
    }
    /// Pages that the machine has for domains, whoever has them now.
    fn memory(&self) -> usize;
    /// Whether a domain could be given `pages` pages now.
    fn can_spare(&self, pages: usize) -> bool;
    /// Whether `pages` pages can be given to a domain that is not needed for recovery. Some are
    /// kept for those that are when this already says no.
    fn is_ample(&self, _pages: usize) -> bool {
        true
    }
    /// Whether the kernel can spend a little of its own memory on what a domain wishes. It can for
    /// a while when [`can_spare`](Platform::can_spare) already says no.
    fn can_note(&self) -> bool {
        true
    }
    /// Runs a program in ring 3 until it traps or is interrupted, and says in `event` why: that of
    /// the user thread behind a handle. Where there is no ring 3, it is refused.
    ///
    /// # Safety
    /// `thread` is the data pointer of a handle that is live until this returns.
    unsafe fn run_user(
        &self,
        _thread: *const u8,
        _registers: &mut UserRegisters,
        event: &mut UserEvent,
    ) {
        *event = UserEvent::Refused;
    }
    /// Copies out the vector registers of the program of the user thread behind a handle; how many
    /// bytes they take. Nothing is copied where there is room for fewer. 0: somebody runs it now,
    /// it is no user thread, or there is no ring 3.
    ///
    /// # Safety
    /// As of [`run_user`](Self::run_user).
    unsafe fn vector_of_user(&self, _thread: *const u8, _bytes: &mut [u8]) -> usize {
        0
    }
    /// Sets these registers; whether that could be done.
    ///
    /// # Safety
    /// As of [`run_user`](Self::run_user).
    unsafe fn set_vector_of_user(&self, _thread: *const u8, _bytes: &[u8]) -> bool {
        false
    }
    /// Copies from the memory of a program: bytes from address `at` of the address space behind a
    /// handle on; how many, up to the first page that it may not read now. 0 on a platform without
    /// ring 3.
    ///
    /// # Safety
    /// `space` is the data pointer of a handle that is live until this returns.
    unsafe fn read_user(&self, _space: *const u8, _at: u64, _bytes: &mut [u8]) -> usize {
        0
    }
    /// Copies into the memory of a program, likewise.
    ///
    /// # Safety
    /// As of [`read_user`](Self::read_user).
    unsafe fn write_user(&self, _space: *const u8, _at: u64, _bytes: &[u8]) -> usize {
        0
    }
    /// The memory of the program that is lent, as what the platform's frames can be copied to.
    /// `None`: it is nobody's, and always on a platform without ring 3.
    fn program<'a>(&self, _memory: &'a UserBuf<'_>) -> Option<&'a dyn Any> {
        None
    }
    /// Puts `new` into a word of a program's memory if it holds `old`; what it held. `None` where
    /// the program may not write now, where no word begins, and on a platform without ring 3.
    ///
    /// # Safety
    /// As of [`read_user`](Self::read_user).
    unsafe fn exchange_user(&self, _space: *const u8, _: u64, _: u32, _: u32) -> Option<u32> {
        None
    }
    /// What a word of a program's memory holds. `None` where the program may not read now, where no
    /// word begins, and on a platform without ring 3.
    ///
    /// # Safety
    /// As of [`read_user`](Self::read_user).
    unsafe fn load_user(&self, _space: *const u8, _at: u64) -> Option<u32> {
        None
    }
    /// Lets another thread run.
    fn yield_now(&self);
    /// Nanoseconds that the running thread has been on a processor so far.
    fn thread_ns(&self) -> u64;
    /// Nanoseconds since boot.
    fn now(&self) -> u64;
    /// Seconds since 1970-01-01 UTC.
    fn wall(&self) -> u64;
    /// Calls that all processors (or threads) have counted in their cell number `cell`; see
    /// [`abi::words::Counts`]. It never falls.
    fn counted(&self, _cell: usize) -> u64 {
        0
    }
    /// Calls `watcher` for what threads and interrupts do, with a kind of [`abi::events`] and its
    /// value; or nobody.
    fn watch(&self, _watcher: Option<fn(u32, u64)>) {}
    /// The addresses of the kernel's code; none where nobody can tell.
    fn text(&self) -> Range<usize> {
        0..0
    }
    /// Writes a line to the log.
    fn log(&self, line: fmt::Arguments<'_>);
    /// Stops every other thread, shows all of them (the caller, too), and lets them go on.
    fn stop_world(&self, visit: &mut dyn FnMut(&mut ThreadView<'_>));
    /// Called when domain `id` has died and before anything that it owned is freed or restarted:
    /// devices that work for it must not touch memory any more.
    fn stop_devices(&self, id: u32);
}

/// Bytes of stack that a thread has where nothing else is asked for, and the most.
pub const STACK_BYTES: usize = abi::api::USUAL_STACK;

/// What a wait has to know of the calls that the running thread is in.
pub(crate) trait Chain: Sync {
    /// The thread is about to wait, or to let another one run: when this is to be asked again at
    /// the latest, in nanoseconds since boot.
    fn note_wait(&self) -> Option<u64>;
    /// Ends whoever had the thread wait for longer than that.
    fn end_late(&self);
    /// Whether some domain in the call chain is dead.
    fn has_dead(&self) -> bool;
}

static IS_SET: AtomicBool = AtomicBool::new(false);
static mut CHOSEN: Option<(&'static dyn Platform, &'static dyn Chain)> = None;

/// Tells the isolation half which machine it runs on, and who knows the calls of a thread.
pub(crate) fn set(platform: &'static dyn Platform, chain: &'static dyn Chain) {
    let is_first = !IS_SET.swap(true, Ordering::Relaxed);
    assert!(is_first, "the platform is set once");
    // SAFETY: whoever is first writes it, once, before any other thread of this crate exists.
    unsafe { CHOSEN = Some((platform, chain)) };
}

#[inline]
fn chosen() -> (&'static dyn Platform, &'static dyn Chain) {
    // SAFETY: written once before any reader exists (see `set`).
    let chosen = unsafe { CHOSEN };
    chosen.expect("the platform is set at boot")
}

/// The machine.
///
/// # Panics
/// If [`set_platform`](crate::set_platform) was not called.
#[inline]
pub fn platform() -> &'static dyn Platform {
    chosen().0
}

/// Waits as [`Platform::wait`] does, and answers [`WaitResult::Interrupted`] only if there is a
/// reason: some domain in the call chain of the running thread is dead. An interruption that comes
/// too late, when the thread has left the dead domain already, is nobody else's affair.
///
/// In the drop of an object on somebody else's thread it waits no longer than such a drop may take;
/// then the object's domain is ended (see [`crate::call::drops`]).
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<u64>) -> WaitResult {
    let (platform, chain) = chosen();
    loop {
        let patience = chain.note_wait();
        let soonest = [deadline, patience].into_iter().flatten().min();
        let result = platform.wait(word, expected, soonest);
        let is_early = deadline.is_none_or(|deadline| soonest < Some(deadline));
        let is_late = patience.is_some_and(|patience| platform.now() >= patience);
        if is_late {
            // Also where each of its waits is short.
            chain.end_late();
        }
        if result == WaitResult::TimedOut && is_early {
            if chain.has_dead() {
                return WaitResult::Interrupted;
            }
            continue;
        }
        if result != WaitResult::Interrupted || chain.has_dead() {
            return result;
        }
    }
}

/// Lets another thread run, on behalf of a domain. A drop on somebody else's thread that does so
/// for longer than it may take ends the object's domain, as in [`wait`].
pub(crate) fn yield_now() {
    let (platform, chain) = chosen();
    let patience = chain.note_wait();
    platform.yield_now();
    if patience.is_some_and(|patience| platform.now() >= patience) {
        chain.end_late();
    }
}

/// Writes a line to the kernel's log.
#[macro_export]
macro_rules! klog {
    ($($argument:tt)*) => { $crate::platform::platform().log(format_args!($($argument)*)) };
}
