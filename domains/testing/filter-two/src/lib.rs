//! A text filter as a plug-in, version two: puts the first letter of every word into capitals, and
//! counts on where version one stopped.
//!
//! The options are words that make it a version to which an update must not succeed: `start=HOW` or
//! `take_over=HOW`, where HOW is `panic`, `hang` (loops), `sleep` or `refuse`.
//!
//! The request `crash` makes it index out of bounds, `hang` makes it loop; `feign` has it take
//! [`FEIGNED`] bytes for good and say that it has crashed; `count` is answered with how many lines
//! have passed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{Handle, PlugIn, PlugInError, RVec, RpcError, RpcResult, Text};

/// The plug-in's entry.
///
/// # Errors
/// When there is no memory, or when it is told to refuse.
pub fn start(options: RVec<u8>) -> RpcResult<Handle<dyn PlugIn>> {
    if misbehave(&options, b"start=") {
        return Err(RpcError::Refused);
    }
    Handle::new(Filter {
        lines: AtomicU64::new(0),
        options,
    })
}

/// Does at `place` what the options say; whether that is to refuse.
fn misbehave(options: &[u8], place: &[u8]) -> bool {
    let mut words = options.split(|byte| *byte == b' ');
    match words.find_map(|word| word.strip_prefix(place)) {
        Some(b"panic") => panic!("told to panic"),
        Some(b"hang") => loop {
            black_box(place);
        },
        Some(b"sleep") => loop {
            domain_rt::time::sleep(u64::MAX / 2);
        },
        how => how == Some(b"refuse"),
    }
}

/// Bytes that are taken for good by one request.
const FEIGNED: usize = 1 << 20;

struct Filter {
    lines: AtomicU64,
    options: RVec<u8>,
}

impl PlugIn for Filter {
    fn handle(&self, mut request: RVec<u8>) -> Result<RVec<u8>, PlugInError> {
        match &*request {
            b"crash" => request[black_box(1 << 20)] = 0,
            b"hang" => loop {
                self.lines.fetch_add(0, Ordering::Relaxed);
            },
            b"feign" => {
                let mut kept = Vec::<u8>::new();
                let taken = kept.try_reserve_exact(FEIGNED);
                taken.map_err(|_| RpcError::NoMemory)?;
                core::mem::forget(kept);
                return Err(RpcError::DomainCrashed.into());
            }
            b"count" => {
                let lines = self.lines.load(Ordering::Relaxed);
                return Ok(RVec::from_slice(alloc::format!("{lines}").as_bytes())?);
            }
            _ => {}
        }
        self.lines.fetch_add(1, Ordering::Relaxed);
        let mut starts = true;
        for byte in request.iter_mut() {
            if starts {
                byte.make_ascii_uppercase();
            }
            starts = byte.is_ascii_whitespace();
        }
        Ok(request)
    }

    fn hand_over(&self) -> Result<RVec<u8>, PlugInError> {
        let lines = self.lines.load(Ordering::Relaxed);
        Ok(RVec::from_slice(&lines.to_le_bytes())?)
    }

    fn take_over(&self, state: RVec<u8>) -> Result<(), PlugInError> {
        if misbehave(&self.options, b"take_over=") {
            return Err(PlugInError::Refused(Text::new("told to refuse it")));
        }
        let lines = state.first_chunk().filter(|_| state.len() == 8);
        let lines = lines.ok_or(PlugInError::Refused(Text::new("not a count of lines")))?;
        self.lines
            .store(u64::from_le_bytes(*lines), Ordering::Relaxed);
        Ok(())
    }
}
