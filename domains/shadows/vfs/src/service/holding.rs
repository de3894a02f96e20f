//! Inodes that clients have open: each stays, and is counted, until its [`Held`] is dropped.

use alloc::sync::Arc;

use interfaces::{FsError, Handle, Hold, RpcResult};

use super::Service;
use crate::lanes;
use crate::pages::Pages;
use crate::shadow::Shadow;

/// Keeps an inode while a client has it open.
struct Held {
    shadow: Arc<Shadow>,
    pages: Arc<Pages>,
    inode: u64,
    client: usize,
}

impl Hold for Held {
    fn inode(&self) -> RpcResult<u64> {
        Ok(self.inode)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pages
            .release_of(&self.shadow, self.inode, Some(self.client));
    }
}

impl Service {
    /// See `FileSystem::hold`.
    pub(super) fn hold_for_client(&self, inode: u64) -> Result<Handle<dyn Hold>, FsError> {
        let client = lanes::client_of(self.lane);
        let is_known = self.shadow.count_client(inode, client);
        let held = Held {
            shadow: self.shadow.clone(),
            pages: self.pages.clone(),
            inode,
            client,
        };
        // From here on `held` gives the hold back, also if there is no such inode.
        if !is_known {
            self.told_of(inode)?;
        }
        Ok(Handle::<dyn Hold>::new(held)?)
    }
}
