//! What the launcher (a Linux program) and the core (built for the bare target) say to each other.
//!
//! The two are compiled for different targets, so nothing crosses but integers and addresses, in C
//! layout, through `extern "C"` functions: [`Host`] is what the core may ask of the launcher,
//! [`Core`] what the launcher may ask of the core.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::CrashReason;

/// Changes whenever one of the structures here does.
pub const VERSION: u64 = 11;

/// `deadline` of [`Host::wait`] that means: none.
pub const NO_DEADLINE: u64 = u64::MAX;

/// [`Host::wait`]: another thread woke this one.
pub const WOKEN: u32 = 0;
/// [`Host::wait`]: the word did not hold the expected value.
pub const MISMATCH: u32 = 1;
/// [`Host::wait`]: the deadline passed.
pub const TIMED_OUT: u32 = 2;
/// [`Host::wait`]: the visitor of a stopped world asked for it.
pub const INTERRUPTED: u32 = 3;

/// [`Host::image_protect`]: reading.
pub const READ: u32 = 0;
/// [`Host::image_protect`]: reading and writing.
pub const READ_WRITE: u32 = 1;
/// [`Host::image_protect`]: reading and executing.
pub const READ_EXECUTE: u32 = 2;

/// [`Core::fault`]: memory that is not there or not for this.
pub const PAGE_FAULT: u32 = CrashReason::PageFault.number() as u32;
/// [`Core::fault`]: the guard page of the stack.
pub const STACK_OVERFLOW: u32 = CrashReason::StackOverflow.number() as u32;
/// [`Core::fault`]: a division.
pub const DIVIDE: u32 = CrashReason::DivideError.number() as u32;
/// [`Core::fault`]: an instruction that does not exist.
pub const INVALID_OPCODE: u32 = CrashReason::InvalidOpcode.number() as u32;
/// [`Core::fault`]: anything else.
pub const EXCEPTION: u32 = CrashReason::Exception.number() as u32;

/// [`Core::plug_call`] and its like: it is done.
pub const DONE: u32 = 0;
/// [`Core::plug_call`]: the plug-in crashed; another instance is there for the next call.
pub const CRASHED: u32 = 1;
/// [`Core::plug_call`]: the plug-in refuses; the text says why.
pub const REFUSED: u32 = 2;
/// [`Core::plug_call`]: there is no memory.
pub const NO_MEMORY: u32 = 3;
/// [`Core::plug_call`] and its like: the text says why it is not done.
pub const FAILED: u32 = 4;

/// [`Host::watch`]: nobody looks in from outside.
pub const UNWATCHED: u32 = 0;
/// [`Host::watch`]: calls, deaths and starts are taken.
pub const TRACED: u32 = 1;
/// [`Host::watch`]: stacks are taken at the ticks.
pub const PROFILED: u32 = 2;

/// [`Host::step`]: the thread stands still after the number of instructions.
pub const REACHED: u32 = 1;
/// [`Host::step`]: it has come so far, but holds a lock of the core, and goes on.
pub const REACHED_LOCKED: u32 = 2;
/// [`Host::step`]: it stood still, but the others could not do their part meanwhile, and it went
/// on.
pub const REACHED_ALONE: u32 = 3;

/// What GS points to on every thread that runs core or domain code.
pub use abi::words::{self, Counts, ThreadWords};

/// The registers of an interrupted thread, in the order in which Linux keeps them (`gregs` of
/// `mcontext_t`, x86-64); what follows the flags is left out.
#[derive(Debug)]
#[repr(C)]
pub struct Registers {
    /// r8 to r15.
    pub r: [u64; 8],
    /// First argument.
    pub rdi: u64,
    /// Second argument.
    pub rsi: u64,
    /// Callee-saved.
    pub rbp: u64,
    /// Callee-saved.
    pub rbx: u64,
    /// Third argument.
    pub rdx: u64,
    /// Result.
    pub rax: u64,
    /// Fourth argument.
    pub rcx: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// Instruction pointer.
    pub rip: u64,
    /// Flags.
    pub flags: u64,
}

/// A thread as the visitor of a stopped world sees it.
#[derive(Debug)]
#[repr(C)]
pub struct View {
    /// Its top call record.
    pub top: usize,
    /// The lowest address of its stack.
    pub stack_low: usize,
    /// Address of its [`Registers`] if it was interrupted, otherwise 0.
    pub registers: usize,
    /// 1 if it waits.
    pub blocked: u32,
    /// Out: not 0 to end its wait.
    pub interrupt: u32,
}

/// A file of the archive.
#[derive(Debug, Default)]
#[repr(C)]
pub struct File {
    /// Address and length of its name.
    pub name: [usize; 2],
    /// Address and length of its content.
    pub content: [usize; 2],
}

/// What was measured, round by round.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Figure {
    /// Address and length of its number in the list of benchmarks.
    pub id: [usize; 2],
    /// Address and length of what it is.
    pub name: [usize; 2],
    /// Address and length of its unit: `ticks` of the time-stamp counter, or something a second.
    pub unit: [usize; 2],
    /// Address and number of the values, each an `u64`, in the order in which they were measured.
    pub values: [usize; 2],
    /// What each value is to be divided by.
    pub divisor: u64,
}

/// What a plug-in is to do.
#[derive(Debug)]
#[repr(C)]
pub struct PlugWish {
    /// Which.
    pub number: u32,
    /// Address and length of an image or of a request.
    pub input: [usize; 2],
    /// Address and length of its options.
    pub options: [usize; 2],
    /// Where an answer or an explanation goes: the address of an `extern "C" fn(context, address,
    /// length)`, and its context.
    pub sink: [usize; 2],
}

/// What the core may ask of the launcher. All of it stays valid as long as the process lives.
///
/// # Safety
/// Of those that are `unsafe`: addresses are valid for the call and lead to what is said, functions
/// have the types that are said, and what is given back came from the counterpart and is not used
/// any more.
#[derive(Debug)]
#[repr(C)]
pub struct Host {
    /// [`VERSION`].
    pub version: u64,
    /// `count` zeroed pages, aligned to `count` if that is a power of two; 0: there are none.
    pub pages: extern "C" fn(count: usize) -> usize,
    /// Gives them back.
    pub free_pages: unsafe extern "C" fn(start: usize, count: usize),
    /// Memory for the core's own bookkeeping; 0: there is none.
    pub heap_take: extern "C" fn(bytes: usize, alignment: usize) -> usize,
    /// Gives it back.
    pub heap_give: unsafe extern "C" fn(start: usize, bytes: usize, alignment: usize),
    /// Zeroed pages for an image between two guard pages; 0: there are none.
    pub image_take: extern "C" fn(pages: usize) -> usize,
    /// Restricts `count` of them.
    pub image_protect: unsafe extern "C" fn(start: usize, count: usize, protection: u32),
    /// Gives all of them back.
    pub image_give: unsafe extern "C" fn(start: usize, pages: usize),
    /// Starts a thread in `entry(argument)`, an `extern "C" fn(usize)`, with `stack` bytes of
    /// stack; its number, 0: there is none.
    pub spawn: unsafe extern "C" fn(entry: usize, argument: usize, stack: usize) -> u64,
    /// Blocks while the word at `word` is `expected`; [`WOKEN`] and its like.
    pub wait: unsafe extern "C" fn(word: usize, expected: u32, deadline: u64) -> u32,
    /// Wakes up to `count` threads that wait for `word`; how many.
    pub wake: extern "C" fn(word: usize, count: u32) -> u32,
    /// Lets another thread run.
    pub yield_now: extern "C" fn(),
    /// Nanoseconds since the start.
    pub now: extern "C" fn() -> u64,
    /// Seconds since 1970-01-01 UTC.
    pub wall: extern "C" fn() -> u64,
    /// Writes random words of the system to the `count` words at `words`, without waiting; how
    /// many.
    pub random: unsafe extern "C" fn(words: usize, count: usize) -> usize,
    /// The running thread, which then sets its trap flag, is stopped after `count` instructions:
    /// the word at `reached` becomes [`REACHED`] and is woken, and once the world has been stopped,
    /// the thread goes on at full speed.
    pub step: unsafe extern "C" fn(count: u64, reached: usize),
    /// Prints text.
    pub write: unsafe extern "C" fn(text: usize, len: usize),
    /// Stops every other thread, shows all of them (as [`View`]) to `visit`, an `extern "C"
    /// fn(context: usize, view: usize)`, and lets them go on. The visitor must not ask the host for
    /// anything.
    pub stop_world: unsafe extern "C" fn(visit: usize, context: usize),
    /// Calls that all threads have counted in their cell number `cell`, also those that have ended.
    pub counted: extern "C" fn(cell: usize) -> u64,
    /// Bytes of memory for domains: all (0) or free (1).
    pub memory: extern "C" fn(which: u32) -> u64,
    /// Processors.
    pub processors: extern "C" fn() -> u32,
    /// Nanoseconds of processor time that the process (0) or the running thread (1) has used.
    pub processor_time: extern "C" fn(which: u32) -> u64,
    /// Ends the process.
    pub exit: extern "C" fn(status: u32) -> !,
    /// Writes file number `index` of the archive to the [`File`] at `file`; 0 if there is none.
    pub file: unsafe extern "C" fn(index: usize, file: usize) -> u32,
    /// Takes the [`Figure`] at `figure`.
    pub figure: unsafe extern "C" fn(figure: usize),
    /// 1 to keep log lines to the ring, 0 to print them, too.
    pub quiet: extern "C" fn() -> u32,
    /// What another process takes out of this one's memory: [`TRACED`] and its like.
    pub watch: extern "C" fn() -> u32,
}

/// What the launcher may ask of the core. Every function is called on a thread whose GS register
/// points to its [`ThreadWords`].
///
/// # Safety
/// As of [`Host`]; and `fault` and `tick` get the registers of the thread that they are called on.
#[derive(Debug)]
#[repr(C)]
pub struct Core {
    /// A fault in the code at the [`Registers`]; 1 if it was a domain's and the registers were
    /// changed.
    pub fault: unsafe extern "C" fn(registers: usize, reason: u32, address: usize) -> u32,
    /// The running thread has used `ns` nanoseconds of processor time, ten milliseconds or a little
    /// more, since the last such call; the registers may be changed.
    pub tick: unsafe extern "C" fn(registers: usize, ns: u64),
    /// Kills a domain at every instruction of a call; the process's status.
    pub steps: extern "C" fn() -> u32,
    /// Starts the first file of the archive with these options, and waits for its end; the
    /// process's status.
    pub run: unsafe extern "C" fn(options: usize, len: usize) -> u32,
    /// Runs the benchmarks whose names contain the text; the process's status.
    pub bench: unsafe extern "C" fn(names: usize, len: usize) -> u32,
    /// Carries out the fault campaign that the text says; `report`, the address of an `extern "C"
    /// fn(address, length)`, gets a line for each run. The process's status.
    pub faults: unsafe extern "C" fn(plan: usize, len: usize, report: usize) -> u32,
    /// Starts a plug-in from the image `input` with `options`; `number` is set.
    pub plug_load: unsafe extern "C" fn(wish: *mut PlugWish) -> u32,
    /// Has plug-in `number` answer the request `input`; the answer goes to the sink.
    pub plug_call: unsafe extern "C" fn(wish: *mut PlugWish) -> u32,
    /// Replaces plug-in `number` by the version in the image `input`, with `options`.
    pub plug_update: unsafe extern "C" fn(wish: *mut PlugWish) -> u32,
    /// Ends a plug-in.
    pub plug_end: extern "C" fn(number: u32),
}
