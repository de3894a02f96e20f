//! What is done at the start of a driver, and by its threads.

use domain_rt::{log, time};
use interfaces::{Handle, HardwareError, Interrupt, PciError, RpcError};

/// How long a resource is waited for, and how long between two attempts, in nanoseconds.
const WAIT: u64 = 2_000_000_000;
const PAUSE: u64 = 1_000_000;

/// Asks for a resource until it is free: a driver that died may have lost the function already, and
/// not yet all that it had of it.
///
/// # Errors
/// That of the last attempt.
pub fn patiently<T>(mut ask: impl FnMut() -> Result<T, PciError>) -> Result<T, PciError> {
    let deadline = time::now() + WAIT;
    loop {
        match ask() {
            Err(PciError::Resource(HardwareError::InUse)) if time::now() < deadline => {
                time::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

/// What the start of a driver answers when a call has failed. It is told as such, whoever made it:
/// where memory was wanting the start is worth another try.
pub fn refusal(error: &PciError) -> RpcError {
    match error {
        PciError::Rpc(error) | PciError::Resource(HardwareError::Rpc(error)) => *error,
        _ => RpcError::Refused,
    }
}

/// Calls `take` at each interrupt, for as long as the domain lives. The count is read before it is
/// looked at the device, so an interrupt in between ends the next wait at once.
pub fn at_interrupts(interrupt: &Handle<dyn Interrupt>, take: impl Fn()) {
    let Ok(mut seen) = interrupt.count() else {
        return;
    };
    loop {
        take();
        match interrupt.wait(seen, None) {
            Ok(count) => seen = count,
            Err(error) => {
                log!("no more interrupts: {error}");
                return;
            }
        }
    }
}
