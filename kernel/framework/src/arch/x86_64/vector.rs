//! The registers of floating point and vectors, which programs use and the kernel does not.
//!
//! They are kept as XSAVE does it (SDM volume 1, 13.4), with a fixed list of components: x87, SSE,
//! and AVX and AVX-512 where the processor has them. A processor without XSAVE has FXSAVE, of which
//! the same place holds the first two.

use alloc::boxed::Box;
use alloc::vec;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::slice::{from_raw_parts, from_raw_parts_mut};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::cpu::{Features, features};
use super::regs;

const X87: u64 = 1;
const SSE: u64 = 1 << 1;
const AVX: u64 = 1 << 2;
/// The masks, the upper halves of the first 16 registers, and the other 16.
const AVX_512: u64 = 7 << 5;

/// Where the two words lie that are not zero in the first state: control of x87, and of SSE.
const CONTROL: usize = 0;
const MXCSR: usize = 24;
/// All exceptions masked (SDM volume 1, 8.1.5 and 10.2.3).
const FIRST_CONTROL: [u8; 2] = 0x37f_u16.to_le_bytes();
const FIRST_MXCSR: [u8; 4] = 0x1f80_u32.to_le_bytes();

/// Where the processor says which bits of MXCSR it knows, and what it knows if it says nothing
/// (SDM volume 1, 11.6.6).
const MXCSR_MASK: usize = 28;
const USUAL_MXCSR_MASK: u32 = 0xffbf;
/// The header of XSAVE (SDM volume 1, 13.4.2): which components are there, and 56 bytes that are
/// zero in the standard form.
const HEADER: usize = 512;
const HEADER_END: usize = HEADER + 64;

/// Bytes that the state takes; set at boot.
static BYTES: AtomicUsize = AtomicUsize::new(512);
/// The bits of MXCSR that this processor knows; set at boot.
static MXCSR_BITS: AtomicU32 = AtomicU32::new(USUAL_MXCSR_MASK);

/// The components that this processor has, of those on the list, as a value of XCR0. It has XSAVE.
fn components() -> u64 {
    let has = u64::from(regs::cpuid(0xd, 0).eax);
    let [avx, wide] = [AVX, AVX | AVX_512].map(|some| has & some == some);
    let basic = X87 | SSE;
    match (avx, wide) {
        (_, true) => basic | AVX | AVX_512,
        (true, _) => basic | AVX,
        _ => basic,
    }
}

/// Lets programs on this processor use what is on the list.
pub(super) fn enable() {
    MXCSR_BITS.store(mxcsr_bits(), Ordering::Relaxed);
    if !features().has(Features::XSAVE) {
        return;
    }
    // SAFETY: CR4.OSXSAVE is on, x87 and SSE exist everywhere, and AVX and AVX-512 are taken with
    // all that belongs to each, as the processor announces them.
    unsafe { regs::set_xcr0(components()) };
    let bytes = regs::cpuid(0xd, 0).ebx as usize;
    BYTES.store(bytes, Ordering::Relaxed);
}

/// The bits of MXCSR that this processor knows.
fn mxcsr_bits() -> u32 {
    let mut lines = [Line([0; 64]); 8];
    // SAFETY: FXSAVE writes 512 bytes, and the place has as many, aligned to 16.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut lines, options(nostack, preserves_flags)) };
    match word(&lines[0].0, MXCSR_MASK) {
        0 => USUAL_MXCSR_MASK,
        bits => bits,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..].first_chunk().copied();
    bytes.map_or(0, u32::from_le_bytes)
}

/// Whether the processor loads a state that somebody has written, but for components that it lacks:
/// XRSTOR of the standard form refuses a header that is not zero behind the list of components, and
/// unknown bits of MXCSR (SDM volume 2, XRSTOR); FXRSTOR the last alone.
fn is_loadable(state: &[u8], has_header: bool, mxcsr_bits: u32) -> bool {
    let rest = HEADER + 8..HEADER_END;
    let rest_is_zero = || state[rest].iter().all(|byte| *byte == 0);
    word(state, MXCSR) & !mxcsr_bits == 0 && (!has_header || rest_is_zero())
}

/// As XSAVE wants it aligned.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// What a program has in these registers while it is not on a processor.
pub(crate) struct VectorState(UnsafeCell<Box<[Line]>>);

// SAFETY: who saves and loads has the state for himself, by the duty of both functions.
unsafe impl Sync for VectorState {}

impl VectorState {
    /// As a new program finds it.
    pub(crate) fn new() -> Self {
        let mut lines = vec![Line([0; 64]); Self::bytes().div_ceil(64)].into_boxed_slice();
        let first = &mut lines[0].0;
        first[CONTROL..][..2].copy_from_slice(&FIRST_CONTROL);
        first[MXCSR..][..4].copy_from_slice(&FIRST_MXCSR);
        Self(UnsafeCell::new(lines))
    }

    /// Bytes of memory that a state takes.
    pub(crate) fn bytes() -> usize {
        BYTES.load(Ordering::Relaxed)
    }

    /// The state as bytes, in the standard form of XSAVE.
    ///
    /// # Safety
    /// As of [`save`](Self::save); the result is not kept beyond that.
    pub(crate) unsafe fn as_bytes(&self) -> &[u8] {
        // SAFETY: by the caller's duty nobody writes meanwhile. Lines are bytes without gaps, and
        // there are as many as the state has, rounded up.
        unsafe {
            let lines = &*self.0.get();
            from_raw_parts(lines.as_ptr().cast(), Self::bytes())
        }
    }

    /// Puts another state in place of this one; whether the processor would load it. If not, this
    /// one stays.
    ///
    /// # Safety
    /// As of [`save`](Self::save).
    pub(crate) unsafe fn replace(&self, bytes: &[u8]) -> bool {
        let has_header = features().has(Features::XSAVE);
        let known = MXCSR_BITS.load(Ordering::Relaxed);
        let Some(bytes) = bytes.get(..Self::bytes()) else {
            return false;
        };
        if !is_loadable(bytes, has_header, known) {
            return false;
        }
        // SAFETY: by the caller's duty nobody else uses it. Lines are bytes without gaps, and there
        // are as many as the state has, rounded up.
        let state = unsafe {
            let lines = &mut *self.0.get();
            from_raw_parts_mut(lines.as_mut_ptr().cast::<u8>(), Self::bytes())
        };
        state.copy_from_slice(bytes);
        if has_header && let Some(list) = state[HEADER..].first_chunk_mut() {
            *list = (u64::from_le_bytes(*list) & components()).to_le_bytes();
        }
        true
    }

    /// Keeps what is in the registers, which stay as they are.
    ///
    /// # Safety
    /// Interrupts are off, and nobody else saves or loads this state.
    pub(crate) unsafe fn save(&self) {
        // SAFETY: by the caller's duty the place is ours. It is aligned, and as large as the
        // processor says that the components in XCR0 need.
        unsafe {
            let place = (*self.0.get()).as_mut_ptr();
            match features().has(Features::XSAVE) {
                true => asm!(
                    "xsave64 [{}]", in(reg) place, in("eax") u32::MAX, in("edx") u32::MAX,
                    options(nostack, preserves_flags),
                ),
                false => asm!("fxsave64 [{}]", in(reg) place, options(nostack, preserves_flags)),
            }
        }
    }

    /// Loads the registers.
    ///
    /// # Safety
    /// As of [`save`](Self::save).
    pub(crate) unsafe fn load(&self) {
        // SAFETY: as above. The state is what `new` or `save` has written, or what `is_loadable`
        // has nothing against, so the processor accepts it: what `new` leaves as zeros says that
        // all components are as after a reset. FNINIT, since loading leaves the pointers to the
        // last x87 instruction of another program on some processors (AMD APM volume 2, 11.4.4).
        unsafe {
            let place = (*self.0.get()).as_ptr();
            match features().has(Features::XSAVE) {
                true => asm!(
                    "fninit", "xrstor64 [{}]", in(reg) place, in("eax") u32::MAX,
                    in("edx") u32::MAX, options(nostack),
                ),
                false => asm!("fninit", "fxrstor64 [{}]", in(reg) place, options(nostack)),
            }
        }
    }
}
