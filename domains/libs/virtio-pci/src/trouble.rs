//! Why a device cannot be used.

use core::fmt;
use domain_rt::log;
use interfaces::{HardwareError, PciError, RpcError};
use lanes::start;
use virtio::capability::CapabilityError;
use virtio::device::SetupError;

/// See the module.
#[derive(Debug)]
pub enum Trouble {
    /// A call failed.
    Rpc(RpcError),
    /// The kernel did not give a resource.
    Hardware(HardwareError),
    /// The PCI domain did not do what it was asked.
    Pci(PciError),
    /// It is no virtio 1.x device.
    Capability(CapabilityError),
    /// A structure lies outside of its region.
    BadPlace,
    /// It lacks what its driver cannot do without, as this says.
    Unfit(&'static str),
    /// Its blocks have so many bytes, and a sector is not one.
    Blocks(u32),
    /// It did not come up.
    Setup(SetupError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Rpc(error) => write!(f, "{error}"),
            Trouble::Hardware(error) => write!(f, "a resource is not to be had: {error:?}"),
            Trouble::Pci(error) => write!(f, "the PCI bus says: {error:?}"),
            Trouble::Capability(error) => write!(f, "it is no virtio 1.x device: {error:?}"),
            Trouble::BadPlace => f.write_str("a structure lies outside of its memory region"),
            Trouble::Unfit(why) => f.write_str(why),
            Trouble::Blocks(bytes) => write!(
                f,
                "its blocks have {bytes} bytes; only such of 512 are served"
            ),
            Trouble::Setup(error) => write!(f, "{error}"),
        }
    }
}

macro_rules! wrap {
    ($($variant:ident($type:ty)),*) => { $(
        impl From<$type> for Trouble {
            fn from(error: $type) -> Self {
                Trouble::$variant(error)
            }
        }
    )* };
}

wrap!(
    Rpc(RpcError),
    Hardware(HardwareError),
    Pci(PciError),
    Capability(CapabilityError),
    Setup(SetupError)
);

/// What the start of a driver answers. The log says why.
pub fn refuse(trouble: Trouble) -> RpcError {
    log!("the device cannot be used: {trouble}");
    match trouble {
        Trouble::Rpc(error) | Trouble::Hardware(HardwareError::Rpc(error)) => error,
        Trouble::Pci(error) => start::refusal(&error),
        _ => RpcError::Refused,
    }
}
