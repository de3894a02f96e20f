//! Starts the first domain, with the core's services that it wants by name.

use crate::host::{bytes, host};
use crate::machine::{file, service};
use abi::image::PORT_OFFER;
use abi::{RVec, RpcResult};
use alloc::format;
use alloc::string::String;
use hosted_core::{PROFILED, TRACED};
use interfaces::Counting;
use isolation::call::count;
use isolation::domain::Limits;
use isolation::domain::group::GroupSpec;
use isolation::load::loader::{self, Instance, MOST_GRANTS, Prepared};
use isolation::{Reason, klog};

/// See [`hosted_core::Core::run`].
///
/// # Safety
/// `options` is the address of `len` bytes.
pub unsafe extern "C" fn run(options: usize, len: usize) -> u32 {
    // SAFETY: by the caller's duty.
    let options = unsafe { bytes(options, len) };
    let counted = |why| format!("nothing is noted: {why}");
    let started = || {
        watched()
            .map_err(counted)
            .and_then(|()| start_first(options))
    };
    isolation::call::thread::with_root(|| match started() {
        Ok(instance) => {
            // The core's own thread is never interrupted.
            let _ = instance.block.wait_gone();
            u32::from(instance.block.reason() != Reason::Exited)
        }
        Err(why) => {
            klog!("nothing runs: {why}");
            1
        }
    })
}

/// Notes what somebody outside wants to see.
fn watched() -> RpcResult<()> {
    match (host().watch)() {
        TRACED => count::set(Counting::Traced),
        PROFILED => count::set(Counting::Profiled),
        _ => Ok(()),
    }
}

fn start_first(options: &[u8]) -> Result<Instance, String> {
    let file = file(0).ok_or("no image was named")?;
    let bytes =
        RVec::from_slice(file.content).map_err(|error| format!("{}: {error}", file.name))?;
    let prepared =
        loader::prepare(bytes).map_err(|error| format!("{} is refused: {error:?}", file.name))?;
    start(&prepared, options).map_err(|why| format!("{} does not start: {why}", file.name))
}

/// Starts `prepared` with the services that it wants.
fn start(prepared: &Prepared, options: &[u8]) -> Result<Instance, String> {
    let mut grants = [const { None }; MOST_GRANTS];
    let file = prepared.file().ok_or("its file is gone")?;
    let image = file.image();
    let wants = image.ports().filter(|port| port.flags & PORT_OFFER == 0);
    for (grant, port) in grants.iter_mut().zip(wants) {
        *grant = service(port.name).map_err(|error| format!("{error}"))?;
    }
    let options = RVec::from_slice(options).map_err(|error| format!("{error}"))?;
    let limits = Limits {
        // It looks at others that take all there is.
        reserve: usize::MAX,
        group: GroupSpec::FIRST,
        ..Limits::NONE
    };
    prepared
        .start(image.name(), limits, grants, options)
        .map_err(|error| format!("{error:?}"))
}
