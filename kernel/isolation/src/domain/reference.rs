//! Shares in control blocks, and the one of the kernel.

use super::{ControlBlock, Limits};
use abi::Text;
use alloc::sync::Arc;

pub(super) static KERNEL: ControlBlock = ControlBlock::new(
    abi::shared::KERNEL_OWNER,
    0,
    Text::empty(),
    Limits {
        call_ms: u32::MAX,
        ..Limits::NONE
    },
    None,
    None,
);

/// The kernel's own control block: callee of calls to kernel objects. It never dies.
pub fn kernel_block() -> *const ControlBlock {
    &raw const KERNEL
}

/// A share in a control block; for the kernel's own, which is static, none is needed.
#[derive(Clone)]
pub enum BlockRef {
    /// The kernel.
    Kernel,
    /// A domain.
    Domain(Arc<ControlBlock>),
}

impl BlockRef {
    /// The block's address.
    pub fn as_ptr(&self) -> *const ControlBlock {
        match self {
            BlockRef::Kernel => kernel_block(),
            BlockRef::Domain(block) => Arc::as_ptr(block),
        }
    }

    /// The block.
    pub(crate) fn block(&self) -> &ControlBlock {
        match self {
            BlockRef::Kernel => &KERNEL,
            BlockRef::Domain(block) => block,
        }
    }

    /// The domain, unless it is the kernel.
    pub fn domain(&self) -> Option<&Arc<ControlBlock>> {
        match self {
            BlockRef::Kernel => None,
            BlockRef::Domain(block) => Some(block),
        }
    }
}
