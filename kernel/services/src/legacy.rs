//! `Legacy`: what the first domain leaves to its next instance.

use alloc::sync::Arc;
use interfaces::{AnyHandle, Legacy, RpcResult};
use isolation::lock::Lock;

/// Where the handle is kept. It belongs to the kernel while it is here.
pub type Left = Lock<Option<Arc<AnyHandle>>>;

/// The way to it.
pub struct Bequest(pub &'static Left);

impl Legacy for Bequest {
    fn leave(&self, handle: AnyHandle) -> RpcResult<()> {
        let handle = Arc::new(handle);
        let before = self.0.lock().replace(handle);
        // Dropping a handle may call whom it leads to, which nobody does with a lock.
        drop(before);
        Ok(())
    }

    fn left(&self) -> RpcResult<Option<AnyHandle>> {
        let handle = self.0.lock().clone();
        handle.map(|handle| handle.duplicate()).transpose()
    }
}
