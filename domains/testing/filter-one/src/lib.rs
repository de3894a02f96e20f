//! A text filter as a plug-in, version one: puts text into capitals and counts the lines.
//!
//! The request `crash` makes it index out of bounds, `hang` makes it loop; `count` is answered with
//! how many lines have passed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{Handle, PlugIn, PlugInError, RVec, RpcResult, Text};

/// The plug-in's entry.
///
/// # Errors
/// When there is no memory.
pub fn start(_options: RVec<u8>) -> RpcResult<Handle<dyn PlugIn>> {
    Handle::new(Filter {
        lines: AtomicU64::new(0),
    })
}

struct Filter {
    lines: AtomicU64,
}

impl PlugIn for Filter {
    fn handle(&self, mut request: RVec<u8>) -> Result<RVec<u8>, PlugInError> {
        match &*request {
            b"crash" => request[black_box(1 << 20)] = 0,
            b"hang" => loop {
                self.lines.fetch_add(0, Ordering::Relaxed);
            },
            b"count" => {
                let lines = self.lines.load(Ordering::Relaxed);
                return Ok(RVec::from_slice(alloc::format!("{lines}").as_bytes())?);
            }
            _ => {}
        }
        self.lines.fetch_add(1, Ordering::Relaxed);
        request.make_ascii_uppercase();
        Ok(request)
    }

    fn hand_over(&self) -> Result<RVec<u8>, PlugInError> {
        let lines = self.lines.load(Ordering::Relaxed);
        Ok(RVec::from_slice(&lines.to_le_bytes())?)
    }

    fn take_over(&self, state: RVec<u8>) -> Result<(), PlugInError> {
        let lines = state.first_chunk().filter(|_| state.len() == 8);
        let lines = lines.ok_or(PlugInError::Refused(Text::new("not a count of lines")))?;
        self.lines
            .store(u64::from_le_bytes(*lines), Ordering::Relaxed);
        Ok(())
    }
}
