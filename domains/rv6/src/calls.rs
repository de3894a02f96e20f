//! The system calls: the object that a program has in its hands. Each method checks what it was given and
//! passes on; the work is done in the modules behind it.

use alloc::sync::Arc;
use interfaces::{
    AnyHandle, DescriptorKind, Errno, ExitStatus, Metadata, OpenFlags, ProcessInfo, RVec,
    SpawnRequest, Text,
};
use vfs::walk::PATH_LIMIT;

use crate::description::Description;
use crate::launch::{Launch, launch};
use crate::process::{Directory, Process};
use crate::special::Special;
use crate::system::System;
use crate::{errors, files, names, pipes};

/// In [`SpawnRequest::descriptors`]: the new process does not get this one.
const NO_DESCRIPTOR: u32 = u32::MAX;

/// The system calls of one process.
pub struct Calls {
    system: Arc<System>,
    process: Arc<Process>,
}

impl Calls {
    /// Those of `process`.
    pub fn new(system: Arc<System>, process: Arc<Process>) -> Self {
        Calls { system, process }
    }

    fn description(&self, descriptor: u32) -> Result<Arc<Description>, Errno> {
        self.process.descriptors.get(descriptor)
    }

    fn add(&self, description: Description) -> Result<u32, Errno> {
        self.process.descriptors.add(Arc::new(description))
    }

    /// The working directory.
    fn directory(&self) -> Arc<Directory> {
        self.process.directory(&self.system.volumes)
    }

    /// What a new process gets for one of the caller's descriptors.
    fn inherited(&self, descriptor: u32) -> Result<Option<Arc<Description>>, Errno> {
        match descriptor {
            NO_DESCRIPTOR => Ok(None),
            descriptor => self.description(descriptor).map(Some),
        }
    }
}

/// Refuses paths that no file system could take, before they are copied about.
fn check(path: &RVec<u8>) -> Result<(), Errno> {
    if path.len() > PATH_LIMIT || path.contains(&0) {
        return Err(Errno::Invalid);
    }
    Ok(())
}

impl interfaces::Process for Calls {
    fn pid(&self) -> Result<u32, Errno> {
        Ok(self.process.pid)
    }

    fn arguments(&self) -> Result<RVec<u8>, Errno> {
        Ok(RVec::from_slice(&self.process.arguments)?)
    }

    fn environment(&self) -> Result<RVec<u8>, Errno> {
        Ok(RVec::from_slice(&self.process.environment)?)
    }

    fn open(&self, path: &RVec<u8>, flags: OpenFlags) -> Result<u32, Errno> {
        check(path)?;
        let directory = self.directory();
        self.add(files::open(&self.system, &directory.place, path, flags)?)
    }

    fn close(&self, descriptor: u32) -> Result<(), Errno> {
        self.process.descriptors.close(&self.system, descriptor)
    }

    fn duplicate_descriptor(&self, descriptor: u32) -> Result<u32, Errno> {
        self.process.descriptors.add(self.description(descriptor)?)
    }

    fn kind(&self, descriptor: u32) -> Result<DescriptorKind, Errno> {
        Ok(self.description(descriptor)?.kind())
    }

    fn read(&self, descriptor: u32, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        self.description(descriptor)?
            .read(&self.system, &self.process, buffer)
    }

    fn write(&self, descriptor: u32, data: &RVec<u8>) -> Result<u64, Errno> {
        self.description(descriptor)?.write(&self.system, data)
    }

    fn seek(&self, descriptor: u32, offset: u64) -> Result<u64, Errno> {
        self.description(descriptor)?.seek(offset)
    }

    fn pipe(&self) -> Result<(u32, u32), Errno> {
        let (reader, writer) = pipes::new();
        let reader = self.add(Description::Pipe(reader))?;
        match self.add(Description::Pipe(writer)) {
            Ok(writer) => Ok((reader, writer)),
            Err(error) => {
                self.process.descriptors.close(&self.system, reader)?;
                Err(error)
            }
        }
    }

    fn metadata(&self, path: &RVec<u8>, follow: bool) -> Result<Metadata, Errno> {
        check(path)?;
        if let Some(special) = Special::at(path) {
            return Ok(special.metadata());
        }
        names::metadata(&self.system, &self.directory().place, path, follow)
    }

    fn read_directory(&self, descriptor: u32, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        self.description(descriptor)?
            .read_directory(&self.system, buffer)
    }

    fn read_link(&self, path: &RVec<u8>, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        check(path)?;
        names::read_link(&self.system, &self.directory().place, path, buffer)
    }

    fn make_directory(&self, path: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        names::make_directory(&self.system, &self.directory().place, path)
    }

    fn unlink(&self, path: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        names::unlink(&self.system, &self.directory().place, path)
    }

    fn remove_directory(&self, path: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        names::remove_directory(&self.system, &self.directory().place, path)
    }

    fn rename(&self, from: &RVec<u8>, to: &RVec<u8>) -> Result<(), Errno> {
        check(from)?;
        check(to)?;
        names::rename(&self.system, &self.directory().place, from, to)
    }

    fn working_directory(&self) -> Result<RVec<u8>, Errno> {
        Ok(RVec::from_slice(&self.directory().place.path)?)
    }

    fn change_directory(&self, path: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        let here = self.directory();
        self.process
            .set_directory(names::directory(&self.system, &here.place, path)?);
        Ok(())
    }

    fn sync(&self) -> Result<(), Errno> {
        self.system.volumes.sync().map_err(errors::fs)
    }

    fn spawn(&self, request: SpawnRequest) -> Result<u32, Errno> {
        check(&request.path)?;
        let [input, output, errors] = request.descriptors;
        let descriptors = [
            self.inherited(input)?,
            self.inherited(output)?,
            self.inherited(errors)?,
        ];
        let start = Launch {
            parent: self.process.pid,
            session: Some(self.process.session),
            directory: self.directory(),
            path: request.path,
            arguments: request.arguments,
            environment: request.environment,
            descriptors,
            background: request.background || self.process.background,
        };
        launch(&self.system, start)
    }

    fn wait(&self, pid: u32) -> Result<(u32, ExitStatus), Errno> {
        self.system.table.wait(self.process.pid, pid)
    }

    fn kill(&self, pid: u32) -> Result<(), Errno> {
        self.system.table.get(pid)?.kill();
        Ok(())
    }

    fn process(&self, index: u32) -> Result<Option<ProcessInfo>, Errno> {
        Ok(self.system.table.info(index as usize))
    }

    fn sleep(&self, nanoseconds: u64) -> Result<(), Errno> {
        self.process.sleep(nanoseconds)
    }

    fn service(&self, name: Text<32>) -> Result<AnyHandle, Errno> {
        self.system.service(&self.process, name.as_str())
    }

    fn catch_interrupts(&self, on: bool) -> Result<(), Errno> {
        self.process.catch_interrupts(on);
        Ok(())
    }

    fn interrupts(&self) -> Result<u32, Errno> {
        Ok(self.process.interrupts())
    }
}
