//! The driver of the null network device: serves `nullnet_device` to others.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Handle, Net, RpcResult};
use nullnet_device::NullNet;

/// Makes the device.
///
/// # Errors
/// There is no memory for it.
pub fn start() -> RpcResult<Handle<dyn Net>> {
    Handle::new(NullNet::new())
}
