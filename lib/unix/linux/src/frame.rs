//! What stands on a program's stack while a handler of a signal runs (`asm/ucontext.h`,
//! `asm/sigcontext.h`, `asm-generic/siginfo.h`): a program may look at it and change it, and the
//! return from the handler takes what it finds.
//!
//! ```text
//!   high   vector state, 64-byte aligned, then MAGIC2
//!          siginfo             128 bytes
//!          ucontext            304 bytes: registers, mask, where the vector state is
//!   rsp -> address that the handler returns to
//! ```
//!
//! Nothing that comes back is believed: segments are ignored, flags are the kernel's affair, and
//! the kernel checks the vector state before the processor sees it.

use crate::errno::{EFAULT, Error};
use crate::memory::{Memory, read, read_words, write};

/// Bytes below the stack pointer that a program may use without saying so (System V ABI, 3.2.2).
const RED_ZONE: u64 = 128;
/// Words of a context, of information, and of the whole with the address in front.
const CONTEXT: usize = 38;
const INFO: usize = 16;
const WORDS: usize = 1 + CONTEXT + INFO;
/// Where things are in a context, by words: flags, stack, registers, vector state, mask.
const FLAGS: usize = 0;
const STACK: usize = 2;
const REGISTERS: usize = 5;
const VECTOR: usize = 28;
const MASK: usize = 37;
/// The vector state is of the form with a header, and the stack segment is told.
const CONTEXT_FLAGS: u64 = 1 | 2 | 4;
/// Segments of programs: CS, and SS in the highest 16 bits.
const SEGMENTS: u64 = 0x33 | 0x2b << 48;
/// The part of the vector state that every processor has, where Linux says in it how it goes on,
/// and the header of what does (SDM volume 1, 13.4).
const LEGACY: usize = 512;
const SAID: usize = 464;
const HEADER: usize = 64;
/// What says that there is more, in front and at the end.
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// x87 and SSE, of the components.
const BASIC: u64 = 3;

/// The general registers in the order of a context.
pub type General = [u64; 18];

/// What a handler interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// R8 to R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP, flags.
    pub registers: General,
    /// Signals that waited.
    pub mask: u64,
    /// The stack for handlers: address, flags, bytes.
    pub stack: [u64; 3],
    /// Of the exception that the signal comes from: error code, vector, address.
    pub trap: [u64; 3],
}

/// Why a signal has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// The signal.
    pub signal: u32,
    /// How it came: 0 by a process, above that by the kernel.
    pub code: i32,
    /// By the kind of signal: two numbers of 32 bits, and two of 64.
    pub pair: [u32; 2],
    /// See `pair`.
    pub rest: [u64; 2],
}

impl Info {
    /// As `siginfo_t`.
    pub fn words(&self) -> [u64; INFO] {
        let mut words = [0; INFO];
        words[0] = self.signal.into();
        words[1] = u64::from(self.code as u32);
        words[2] = u64::from(self.pair[0]) | u64::from(self.pair[1]) << 32;
        (words[3], words[4]) = (self.rest[0], self.rest[1]);
        words
    }

    /// An exception at an address, as `code` says why.
    pub fn fault(signal: u32, code: i32, address: u64) -> Self {
        Info {
            signal,
            code,
            pair: [address as u32, (address >> 32) as u32],
            rest: [0; 2],
        }
    }
}

/// Where the parts of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it begins, and so the stack pointer of the handler.
    pub at: u64,
    /// Information and context.
    pub info: u64,
    /// See `info`.
    pub context: u64,
}

/// Bytes in front of a vector state, and behind it, that a frame takes at most.
pub const FRONT: usize = 8 * WORDS + 24;
/// See [`FRONT`].
pub const BEHIND: usize = 4;

/// Puts a frame below `top` (the stack of handlers, from its end on), or else below the stack
/// pointer of what is interrupted. `whole` has the vector state, as the processor keeps it, behind
/// [`FRONT`] bytes and before [`BEHIND`]; the frame is made there and copied at once.
///
/// # Errors
/// `EFAULT`, `ENOMEM`: there is no room, or no memory.
pub fn push(
    space: &impl Memory,
    top: Option<u64>,
    restorer: u64,
    of: &Interrupted,
    info: &Info,
    whole: &mut [u8],
) -> Result<Frame, Error> {
    let below = top.unwrap_or(of.registers[15].wrapping_sub(RED_ZONE));
    let length = whole.len().checked_sub(FRONT + BEHIND).ok_or(EFAULT)?;
    let with_header = length > LEGACY;
    let end = if with_header { length + BEHIND } else { length };
    let state = below.checked_sub(end as u64).ok_or(EFAULT)? & !63;
    let at = (state.checked_sub(8 * WORDS as u64).ok_or(EFAULT)? & !15).wrapping_sub(8);
    let (front, vector) = whole.split_at_mut(FRONT);
    if with_header {
        let (vector, behind) = vector.split_at_mut(length);
        say(vector);
        behind.copy_from_slice(&MAGIC2.to_le_bytes());
    }
    let begin = FRONT - state.wrapping_sub(at) as usize;
    let (words, gap) = front[begin..].split_at_mut(8 * WORDS);
    let all = [restorer].into_iter();
    let all = all.chain(context(of, state, with_header));
    let (places, _) = words.as_chunks_mut();
    for (place, word) in places.iter_mut().zip(all.chain(info.words())) {
        *place = word.to_le_bytes();
    }
    gap.fill(0);
    write(space, at, &whole[begin..FRONT + end])?;
    Ok(Frame {
        at,
        context: at + 8,
        info: at + 8 * (1 + CONTEXT as u64),
    })
}

fn context(of: &Interrupted, state: u64, with_header: bool) -> [u64; CONTEXT] {
    let mut words = [0; CONTEXT];
    words[FLAGS] = CONTEXT_FLAGS & if with_header { 7 } else { 6 };
    words[STACK..STACK + 3].copy_from_slice(&of.stack);
    words[REGISTERS..REGISTERS + 18].copy_from_slice(&of.registers);
    let [error, vector, address] = of.trap;
    let rest = [SEGMENTS, error, vector, of.mask, address, state];
    words[REGISTERS + 18..=VECTOR].copy_from_slice(&rest);
    words[MASK] = of.mask;
    words
}

/// Says in the part that programs of old do not use that there is more of the state, and how much.
fn say(vector: &mut [u8]) {
    let length = vector.len() as u32;
    let mut components = [0; 8];
    components.copy_from_slice(&vector[LEGACY..LEGACY + 8]);
    let said = &mut vector[SAID..LEGACY];
    said.fill(0);
    said[..4].copy_from_slice(&MAGIC1.to_le_bytes());
    said[4..8].copy_from_slice(&(length + 4).to_le_bytes());
    said[8..16].copy_from_slice(&components);
    said[16..20].copy_from_slice(&length.to_le_bytes());
}

/// Takes a frame back that begins at `at`: what is to go on, and its vector state in `vector`,
/// which has as many bytes as the processor's has and [`BEHIND`] more. `false` with it: there is
/// none, so the registers are to be as those of a new program.
///
/// # Errors
/// `EFAULT`: it cannot be read.
pub fn pop(space: &impl Memory, at: u64, vector: &mut [u8]) -> Result<(Interrupted, bool), Error> {
    let words: [u64; CONTEXT] = read_words(space, at.wrapping_add(8))?;
    let mut registers = [0; 18];
    registers.copy_from_slice(&words[REGISTERS..REGISTERS + 18]);
    let interrupted = Interrupted {
        registers,
        mask: words[MASK],
        stack: [
            words[STACK],
            words[STACK + 1] & 0xffff_ffff,
            words[STACK + 2],
        ],
        trap: [0; 3],
    };
    let state = words[VECTOR];
    if state == 0 {
        return Ok((interrupted, false));
    }
    take(space, state, vector)?;
    Ok((interrupted, true))
}

/// Reads a vector state; of one that does not say that there is more, the part that every processor
/// has. What says so may be at the very end of what can be read.
fn take(space: &impl Memory, at: u64, vector: &mut [u8]) -> Result<(), Error> {
    let length = vector.len().checked_sub(BEHIND).ok_or(EFAULT)?;
    if length < LEGACY + HEADER {
        return read(space, at, &mut vector[..length.min(LEGACY)]);
    }
    if read(space, at, vector).is_err() {
        read(space, at, &mut vector[..LEGACY])?;
        vector[LEGACY..].fill(0);
    }
    let number = |at: usize| {
        let bytes = vector
            .get(at..at + 4)
            .and_then(|it| it.first_chunk().copied());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let says_so = number(SAID) == MAGIC1 && number(SAID + 16) as usize == length;
    if !says_so || number(length) != MAGIC2 {
        vector[LEGACY..].fill(0);
        vector[LEGACY..LEGACY + 8].copy_from_slice(&BASIC.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
