//! Programs in ring 3, for personalities.

pub use abi::user::{UserEvent, UserRegisters};
pub use abi::{UserBuf, UserDirection, UserSegment};

use abi::api::api;
use abi::{Handle, Interface};

/// Runs the program of a user thread with these registers until it traps; why, and then the
/// registers are as it has left them. Flags that are not a program's business are set as they
/// always are, whether it has run or not. Only the thread that is meant takes time for it: no
/// budget of a call counts what the program does.
///
/// The handle is one that [`AddressSpace::thread`](interfaces::AddressSpace::thread) gave; with any
/// other the answer is [`UserEvent::Refused`].
pub fn run<I: ?Sized + Interface>(thread: &Handle<I>, registers: &mut UserRegisters) -> UserEvent {
    let mut event = UserEvent::Refused;
    // SAFETY: the handle is live while it is borrowed, and both others are lent for the call.
    unsafe { (api().user_run)(thread.as_raw().data, registers, &raw mut event) };
    event
}

/// Copies from the memory of a program; how many bytes, up to the first page that the program may
/// not read now. There is no call record and nothing waits: what is missing is for
/// [`AddressSpace::touch`](interfaces::AddressSpace::touch), and then one asks again. With any
/// handle but one of an address space of the kernel's, 0.
pub fn read<I: ?Sized + Interface>(space: &Handle<I>, from: u64, bytes: &mut [u8]) -> usize {
    let (data, length) = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the handle is live while it is borrowed, and the bytes are lent for the call.
    unsafe { (api().user_read)(space.as_raw().data, from, data, length) }
}

/// Copies into the memory of a program; how many bytes, up to the first page that the program may
/// not write to now. Else as [`read`].
pub fn write<I: ?Sized + Interface>(space: &Handle<I>, to: u64, bytes: &[u8]) -> usize {
    let (data, length) = (bytes.as_ptr(), bytes.len());
    // SAFETY: as above; nobody writes to the bytes.
    unsafe { (api().user_write)(space.as_raw().data, to, data, length) }
}

/// Puts `new` into the word of a program's memory at `at` if it holds `old`, in one step, whatever
/// the program does meanwhile; what it held. `None`: the program may not write there now, or `at`
/// is no multiple of four. Else as [`read`].
pub fn compare_exchange<I: ?Sized + Interface>(
    space: &Handle<I>,
    at: u64,
    old: u32,
    new: u32,
) -> Option<u32> {
    // SAFETY: the handle is live while it is borrowed.
    let found = unsafe { (api().user_cas32)(space.as_raw().data, at, old, new) };
    u32::try_from(found).ok()
}

/// What the word of a program's memory at `at` holds, read in one step, whatever the program does
/// meanwhile. `None`: the program may not read there now, or `at` is no multiple of four. Else as
/// [`read`].
pub fn load<I: ?Sized + Interface>(space: &Handle<I>, at: u64) -> Option<u32> {
    // SAFETY: the handle is live while it is borrowed.
    let found = unsafe { (api().user_load32)(space.as_raw().data, at) };
    u32::try_from(found).ok()
}

/// Copies what the program of a user thread has in its vector registers, in the form in which the
/// processor keeps it (XSAVE, standard form; FXSAVE where there is no XSAVE); how many bytes that
/// takes. Where there is room for fewer, nothing is copied. 0: somebody runs the thread now, or the
/// handle is of another kind.
pub fn vector<I: ?Sized + Interface>(thread: &Handle<I>, bytes: &mut [u8]) -> usize {
    let (data, length) = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the handle is live while it is borrowed, and the bytes are lent for the call.
    unsafe { (api().user_vector)(thread.as_raw().data, data, length) }
}

/// Makes it a vector state as a new program finds it: all exceptions are masked (SDM volume 1,
/// 8.1.5 and 10.2.3).
pub fn first_vector(vector: &mut [u8]) {
    vector.fill(0);
    for (at, bytes) in [(0, 0x37f_u32), (24, 0x1f80)] {
        if let Some(place) = vector.get_mut(at..at + 4) {
            place.copy_from_slice(&bytes.to_le_bytes());
        }
    }
}

/// Sets what the program finds in its vector registers, in the same form. Components that the
/// processor lacks are left out. `false`: the processor would refuse it, there are too few bytes,
/// or somebody runs the thread now; then all stays as it is.
pub fn set_vector<I: ?Sized + Interface>(thread: &Handle<I>, bytes: &[u8]) -> bool {
    let (data, length) = (bytes.as_ptr(), bytes.len());
    // SAFETY: as above; nobody writes to the bytes.
    unsafe { (api().user_set_vector)(thread.as_raw().data, data, length) != 0 }
}
