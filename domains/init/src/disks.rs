//! Disks that are mounted on demand: their domains are in the manifest like all others (`like` made
//! them), and are started and ended here.

use crate::failure::Failure;
use crate::instances::grants;
use crate::service;
use crate::steward;
use crate::system::System;
use alloc::string::String;
use alloc::sync::Arc;
use interfaces::{
    Block, DiskError, DiskInfo, Disks, Geometry, Handle, Office, Respawn, RpcError, RpcResult, Text,
};
use manifest::{Disk, DomainIndex, Grant};

/// What a domain is told that is to read only.
const READ_ONLY: &str = "ro";
/// What it is told where it may write without a journal: said on the command line, for all disks.
const UNJOURNALED: &str = "rw";

/// The disks, as the domain `holder` has them.
pub struct DiskList {
    /// The system.
    pub system: Arc<System>,
    /// Who holds this.
    pub holder: DomainIndex,
}

impl DiskList {
    fn named(&self, name: &str) -> Result<&Disk, DiskError> {
        let mut disks = self.system.manifest.disks.iter();
        let disk = disks.find(|disk| disk.name == name && disk.on_demand);
        disk.ok_or(DiskError::NoSuchDisk)
    }

    fn geometry(&self, disk: &Disk) -> Option<Geometry> {
        let offer = grants::instance_offer(&self.system, disk.device, None, None);
        let (_, device) = offer.ok()?;
        device.downcast::<dyn Block>().ok()?.geometry().ok()
    }
}

impl Disks for DiskList {
    fn disk(&self, index: u32) -> RpcResult<Option<DiskInfo>> {
        let Some(disk) = self.system.manifest.disks.get(index as usize) else {
            return Ok(None);
        };
        let geometry = self.geometry(disk);
        Ok(Some(DiskInfo {
            name: Text::new(&disk.name),
            present: geometry.is_some(),
            sectors: geometry.map_or(0, |geometry| geometry.sectors),
            read_only: geometry.is_some_and(|geometry| geometry.read_only),
            on_demand: disk.on_demand,
        }))
    }

    fn mount(&self, name: Text<32>, read_only: bool) -> Result<Handle<dyn Respawn>, DiskError> {
        let disk = self.named(name.as_str())?;
        self.system.stop_disk(disk)?;
        let mut of_disk = self.system.read_only_disks.lock();
        of_disk.retain(|other| *other != disk.name);
        if read_only {
            of_disk.push(disk.name.clone());
        }
        drop(of_disk);
        if let Err(failure) = self.system.with_instance(disk.files, None, |_| ()) {
            self.system.stop_disk(disk)?;
            return Err(DiskError::Failed(Text::new(&cause(&failure))));
        }
        let key = steward::read_only_key(&disk.name);
        self.system.note(&key, u64::from(read_only));
        let granted = self
            .system
            .lasting(Office::Respawn, self.holder, Some(disk.files), None);
        let granted = granted.map_err(|failure| DiskError::Failed(Text::new(&cause(&failure))))?;
        let handle = granted.handle.downcast();
        handle.map_err(|_| DiskError::Rpc(RpcError::Refused))
    }

    fn unmount(&self, name: Text<32>) -> Result<(), DiskError> {
        let disk = self.named(name.as_str())?;
        Ok(self.system.stop_disk(disk)?)
    }
}

/// What was said, without the name of the domain that said it: who mounts knows disks, not domains.
fn cause(failure: &Failure) -> String {
    let text = failure.text();
    match text.split_once(": ") {
        Some((_, said)) => said.into(),
        None => text,
    }
}

impl System {
    /// Ends the domains of a disk, those first that need others, and forgets their crashes.
    ///
    /// `Interrupted` if the caller is ended while he waits for a start to end.
    fn stop_disk(self: &Arc<Self>, disk: &Disk) -> RpcResult<()> {
        // Nothing to be done but once more, if a former personality has left it running.
        self.services[disk.files].sync(&disk.name)?;
        let of_disk = |&index: &DomainIndex| self.manifest[index].disk.as_ref() == Some(&disk.name);
        for index in self.order.iter().rev().copied().filter(of_disk) {
            let service = &self.services[index];
            let state = service.state.lock_interruptible();
            let mut state = state.ok_or(RpcError::Interrupted)?;
            // From here on nobody starts it unasked.
            service.status.lock().forget();
            if let Some(running) = state.running.take() {
                self.retire(index, running, &mut state);
            }
            state.budget = service::budget(self.manifest[index].limits);
            state.refused = None;
            service.detach_all();
            drop(state);
            self.leave_nobody(index);
        }
        Ok(())
    }

    /// The disk whose file system the domain is granted from the start.
    pub fn root_disk(&self, index: DomainIndex) -> Option<&str> {
        let grants = &self.manifest[index].grants;
        let has = |disk: &&Disk| {
            let files = &self.manifest[disk.files].name;
            let from = |grant: &Grant| grant.source.domain() == Some(files.as_str());
            !disk.on_demand && grants.iter().any(from)
        };
        let disk = self.manifest.disks.iter().find(has);
        disk.map(|disk| disk.name.as_str())
    }

    /// What a word in the `pass` of a domain adds to its options. The words of the command line are
    /// for what is there from the start; a disk that is mounted later is told by who mounts it.
    pub fn passed<'a>(&'a self, index: DomainIndex, word: &'a str) -> Option<&'a str> {
        match &self.manifest[index].disk {
            None => self.words.passed(word),
            Some(_) if word == UNJOURNALED => self.words.passed(word),
            Some(disk) => {
                let is_read_only = self.read_only_disks.lock().contains(disk);
                (word == READ_ONLY && is_read_only).then_some(word)
            }
        }
    }
}
