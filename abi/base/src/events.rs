//! What the kernel notes for a time line while calls are traced, for those who read its memory; a
//! `Tracer` shows what is noted of calls.
//!
//! It is a ring of [`EVENTS`] events of eight words, the newest over the oldest. An event is
//! - what happened, in bits 0 to 3; the processor, in 4 to 7; how often the ring was full before,
//!   in 8 to 15; something small about what happened, in 16 to 31; the running thread, in 32 to 63,
//!   by the page in which its stack ends;
//! - nanoseconds since boot;
//! - the numbers of the domain whose code runs (lower half; 0 where it does not matter) and of
//!   another (upper half);
//! - a value;
//! - 32 bytes of text.
//!
//! Who writes an event takes its number first and writes its first word last: between the two, a
//! reader sees that of the event before it in the same place, or 0.

/// Events in the ring.
pub const EVENTS: usize = 1 << 16;
/// Bytes of an event.
pub const EVENT_BYTES: usize = 64;

/// The running thread was put on the processor. Value: its number.
pub const RUNS: u32 = 1;
/// The running thread is taken off. Value: why, as `Left` of the scheduler counts: 1 and 2, it
/// would go on; 3, it waits; 4, it is over.
pub const LEAVES: u32 = 2;
/// An interrupt, or an exception that is no fault, began. Value: its number.
pub const INTERRUPT: u32 = 3;
/// It is over. Value: its number. Left out where it ends with another thread.
pub const INTERRUPT_OVER: u32 = 4;
/// A thread may go on. Value: its number.
pub const READY: u32 = 5;
/// A call begins. Small: the number of the method. Other: the callee. Value: the interface.
/// Text: up to four numbers of the arguments, as `idlc` has chosen them.
pub const CALL: u32 = 6;
/// A call is over. Small: 1 if it failed with an `RpcError`. Other: the callee. Value: the time at
/// which it began.
pub const RETURN: u32 = 7;
/// A domain is in another state. Small: the state, and by 256 the reason of its end. Other: which.
/// Value: who started it. Text: its name.
pub const STATE: u32 = 8;
