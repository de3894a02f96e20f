//! The system calls: the object that a program has in its hands. Each method checks what it was
//! given and passes on; the work is done in the modules behind it.

use alloc::sync::Arc;
use interfaces::{
    AnyHandle, DescriptorKind, DiskInfo, Errno, ExitStatus, FsError, FsStatistics, Job, Metadata,
    OpenFlags, ProcessInfo, ProcessTimes, RVec, SpawnRequest, Text,
};
use vfs::walk::PATH_LIMIT;

use crate::description::Description;
use crate::launch::{Launch, launch};
use crate::process::{Directory, Process};
use crate::special::Special;
use crate::system::System;
use crate::{errors, files, mounting, names, pipes};

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
        self.process.gate()?;
        self.process.descriptors.get(descriptor)
    }

    fn add(&self, description: Description) -> Result<u32, Errno> {
        self.process.descriptors.add(Arc::new(description))
    }

    /// The working directory.
    fn directory(&self) -> Arc<Directory> {
        // A process that is ended while it is stopped finds that out soon enough.
        let _ = self.process.gate();
        self.process.directory()
    }

    /// The job of a new process; `None`: a new one. Only the first process of a session can have
    /// new ones, so that a program does not get out of its own by what it starts.
    fn job(&self, job: Job) -> Result<Option<u32>, Errno> {
        let table = &self.system.table;
        match job {
            Job::New if self.process.session == self.process.pid => Ok(None),
            Job::New | Job::Same => Ok(Some(self.process.job)),
            Job::Of(child) => table.job_of_child(self.process.pid, child).map(Some),
        }
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
    if path.len() > PATH_LIMIT {
        return Err(Errno::Fs(FsError::NameTooLong));
    }
    if path.contains(&0) {
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
        self.process.descriptors.close(descriptor)
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

    fn position(&self, descriptor: u32) -> Result<u64, Errno> {
        self.description(descriptor)?.position()
    }

    fn seek(&self, descriptor: u32, offset: u64) -> Result<u64, Errno> {
        self.description(descriptor)?.seek(offset)
    }

    fn truncate(&self, descriptor: u32, size: u64) -> Result<(), Errno> {
        self.description(descriptor)?.truncate(size)
    }

    fn pipe(&self) -> Result<(u32, u32), Errno> {
        let (reader, writer) = pipes::new(&self.process.ledger)?;
        let reader = self.add(Description::Pipe(reader))?;
        match self.add(Description::Pipe(writer)) {
            Ok(writer) => Ok((reader, writer)),
            Err(error) => {
                self.process.descriptors.close(reader)?;
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

    fn metadata_of(&self, descriptor: u32) -> Result<Metadata, Errno> {
        self.description(descriptor)?.metadata(&self.system)
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

    fn link(&self, path: &RVec<u8>, new: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        check(new)?;
        names::link(&self.system, &self.directory().place, path, new)
    }

    fn symlink(&self, path: &RVec<u8>, target: &RVec<u8>) -> Result<(), Errno> {
        check(path)?;
        check(target)?;
        names::symlink(&self.system, &self.directory().place, path, target)
    }

    fn set_mode(&self, path: &RVec<u8>, mode: u16) -> Result<(), Errno> {
        check(path)?;
        names::set_mode(&self.system, &self.directory().place, path, mode)
    }

    fn set_modified(&self, path: &RVec<u8>, time: u64) -> Result<(), Errno> {
        check(path)?;
        names::set_modified(&self.system, &self.directory().place, path, time)
    }

    fn statistics(&self, path: &RVec<u8>) -> Result<FsStatistics, Errno> {
        check(path)?;
        names::statistics(&self.system, &self.directory().place, path)
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

    fn sync_file(&self, descriptor: u32) -> Result<(), Errno> {
        self.description(descriptor)?.sync(&self.system, false)
    }

    fn sync_data(&self, descriptor: u32) -> Result<(), Errno> {
        self.description(descriptor)?.sync(&self.system, true)
    }

    fn mount(&self, disk: Text<32>, path: &RVec<u8>, read_only: bool) -> Result<(), Errno> {
        check(path)?;
        let place = &self.directory().place;
        mounting::mount(&self.system, &self.process, place, disk, path, read_only)
    }

    fn unmount(&self, path: &RVec<u8>, forced: bool) -> Result<(), Errno> {
        check(path)?;
        mounting::unmount(
            &self.system,
            &self.process,
            &self.directory().place,
            path,
            forced,
        )
    }

    fn disk(&self, index: u32) -> Result<Option<DiskInfo>, Errno> {
        mounting::disk(&self.system, &self.process, index)
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
            background: request.background || self.process.is_background(),
            job: self.job(request.job)?,
        };
        launch(&self.system, start)
    }

    fn wait(&self, pid: u32) -> Result<(u32, ExitStatus), Errno> {
        let ended = self.system.table.wait(self.process.pid, pid)?;
        self.process.gate()?;
        Ok(ended)
    }

    fn wait_or_stop(&self, pid: u32) -> Result<Option<ExitStatus>, Errno> {
        self.system.table.wait_or_stop(self.process.pid, pid)
    }

    fn resume(&self, pid: u32, background: bool) -> Result<(), Errno> {
        self.system.table.resume(pid, background)
    }

    fn kill(&self, pid: u32) -> Result<(), Errno> {
        self.system.table.get(pid)?.kill();
        Ok(())
    }

    fn kill_job(&self, child: u32) -> Result<(), Errno> {
        let members = self.system.table.close_job(&self.process, child)?;
        members.iter().for_each(|member| member.kill());
        Ok(())
    }

    fn process(&self, index: u32) -> Result<Option<ProcessInfo>, Errno> {
        Ok(self.system.process(index as usize))
    }

    fn times(&self) -> Result<ProcessTimes, Errno> {
        let own = self.process.times(self.system.monitor());
        Ok(self.process.account.with_children(own))
    }

    fn sleep(&self, nanoseconds: u64) -> Result<(), Errno> {
        self.process.sleep(nanoseconds)?;
        self.process.gate()
    }

    fn service(&self, name: Text<32>) -> Result<AnyHandle, Errno> {
        self.system.service(&self.process, name)
    }

    fn catch_interrupts(&self, on: bool) -> Result<(), Errno> {
        self.process.catch_interrupts(on);
        Ok(())
    }

    fn interrupts(&self) -> Result<u32, Errno> {
        Ok(self.process.heed_interrupts())
    }

    fn set_raw(&self, on: bool) -> Result<bool, Errno> {
        Ok(self.system.set_raw(&self.process, on))
    }
}
