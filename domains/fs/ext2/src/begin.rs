//! How a service begins: what one before it has under way ends, and nothing of it comes any more.
//!
//! A service that has died may have threads here that wait for a lock or for the disk
//! ([`vfs::fence`]). The fence is raised under the volume's lock and that of the loads. Then the
//! loads and stores end that have entered before; their threads are told that they are ended, so
//! they do not wait for the device, but what they have asked it for is *abandoned*: it may still
//! write into a page. So at last the line is waited for, until nothing abandoned is under way.
//!
//! Each of these waits is for a device in the end, whose driver is replaced if it does not answer
//! within half a minute. They end after [`PATIENCE`], and then the service does not begin.

use alloc::sync::Arc;

use domain_rt::sync::Wait;
use domain_rt::{log, time};
use ext2::DeviceError;
use interfaces::{FileSystem, FsError, FsVolume, Handle};
use vfs::fence;

use crate::errors::Error;
use crate::service::Service;
use crate::volume::Volume;

/// How long what is older is waited for, in nanoseconds.
const PATIENCE: u64 = 60_000_000_000;

/// What the domain offers.
pub struct Entrance(pub Arc<Volume>);

impl FsVolume for Entrance {
    fn begin(&self, service: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        let caller = fence::Service::new(service).ok_or(FsError::Invalid)?;
        self.0.begin(caller)?;
        let files = Service::new(self.0.clone(), caller);
        Ok(Handle::<dyn FileSystem>::new(files)?)
    }

    fn sync(&self) -> Result<(), FsError> {
        Ok(self.0.sync().map_err(Error::from)?)
    }
}

impl Volume {
    /// Has `service` serve from now on.
    fn begin(&self, service: fence::Service) -> Result<(), Error> {
        let deadline = time::now() + PATIENCE;
        self.raise(service, deadline)?;
        in_time(
            self.loads.await_older(deadline)?,
            "pages go between it and the disk",
        )?;
        in_time(
            self.disk().await_abandoned(deadline)?,
            "the disk does not answer what it has asked for",
        )?;
        // Another one may have begun meanwhile.
        Ok(self.fence.admit(service)?)
    }

    fn raise(&self, service: fence::Service, deadline: u64) -> Result<(), Error> {
        let state = match self.state.lock_until(deadline) {
            Ok(state) => state,
            Err(Wait::Interrupted) => return Err(DeviceError::Interrupted.into()),
            Err(_) => return in_time(false, "somebody has the volume"),
        };
        let mut loads = self.loads.state.lock();
        self.fence.raise(service)?;
        loads.raised(service);
        drop(loads);
        drop(state);
        // Cuts that wait.
        self.loads.changed.notify_all();
        Ok(())
    }
}

/// Fails, and says why, if a wait for the service before did not end `in_time`.
fn in_time(in_time: bool, why: &str) -> Result<(), Error> {
    if in_time {
        return Ok(());
    }
    let seconds = PATIENCE / 1_000_000_000;
    log!("no service begins: that before has not ended within {seconds} s: {why}");
    Err(DeviceError::Io.into())
}
