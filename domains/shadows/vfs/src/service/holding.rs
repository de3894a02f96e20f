//! Inodes that clients have open: each stays, and is counted, until its [`Held`] is dropped.

use alloc::sync::Arc;

use interfaces::{FsError, Handle, Hold, RVec, RpcResult, Taken};

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
    pub(super) fn hold_for_client(
        &self,
        inode: u64,
        life: Option<u32>,
    ) -> Result<Handle<dyn Hold>, FsError> {
        let client = lanes::client_of(self.lane);
        let known = self.shadow.count_client(inode, client);
        // From here on `held` gives the hold back, also if there is no such inode.
        let held = self.held(inode, client);
        let now = match known {
            Some(now) => now,
            None => match self.told_of(inode) {
                Err(FsError::NotFound) if life.is_some() => return Err(FsError::Stale),
                told => told?.generation,
            },
        };
        if life.is_some_and(|life| life != now) {
            return Err(FsError::Stale);
        }
        Ok(Handle::<dyn Hold>::new(held)?)
    }

    /// See `FileSystem::take`.
    pub(super) fn take_for_client(
        &self,
        directory: u64,
        life: Option<u32>,
        name: &RVec<u8>,
    ) -> Result<Taken, FsError> {
        let client = lanes::client_of(self.lane);
        let taken = self.look_alone(directory, life, name, |front, of| {
            // Nobody is just removing it.
            front.hold_for_client(of.inode, client).then_some(of)
        });
        let of = taken?.ok_or(FsError::NotFound)?.ok_or(FsError::Stale)?;
        let held = self.held(of.inode, client);
        let hold = Handle::<dyn Hold>::new(held)?;
        Ok(Taken { of, hold })
    }

    /// Gives a hold back that was counted for a client.
    fn held(&self, inode: u64, client: usize) -> Held {
        Held {
            shadow: self.shadow.clone(),
            pages: self.pages.clone(),
            inode,
            client,
        }
    }
}
