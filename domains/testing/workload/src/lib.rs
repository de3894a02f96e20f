//! `workload SEED COUNT`: does the first operations of `lib/testing/workload` in the working
//! directory, and prints after each that brings something to the disk how many were done and
//! acknowledged.
//!
//! Files stay open over many operations, also those that are renamed and removed meanwhile.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, Program, READ, RpcResult, Stop, println};
use workload::{Operation, Workload};

const USAGE: &str = "
usage: workload [-vw] SEED COUNT
Does COUNT operations on files in the working directory, drawn from SEED. With -v it says before each what it will do, with
-w it waits for a line of input after each that is acknowledged.";

/// Most files that are open at a time.
const MOST_OPEN: usize = 24;

const WRITE: OpenFlags = OpenFlags {
    read: false,
    write: true,
    ..READ
};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "vw")?;
    let numbers: Vec<Option<u64>> = options.operands.iter().map(|text| number(text)).collect();
    let [Some(seed), Some(count)] = numbers[..] else {
        return Err(Stop::about(
            b"arguments",
            Error::text("two numbers are needed"),
        ));
    };
    let mut work = Workload::new(seed);
    let mut input = env.stdin();
    let mut files = Files {
        env,
        open: BTreeMap::new(),
    };
    for done in 1..=count {
        let operation = work.advance();
        if options.has('v') {
            println!(env, "{done}: {}", short(&operation))?;
            env.flush()?;
        }
        files.perform(&operation).map_err(|error| {
            let name = format!("operation {done}, {}", short(&operation));
            Stop::about(name.as_bytes(), error)
        })?;
        if matches!(operation, Operation::Sync | Operation::SyncFile { .. }) {
            println!(env, "acknowledged {done}")?;
            env.flush()?;
            if options.has('w') {
                let mut line = Vec::new();
                let read = input.read_line(&mut line);
                read.map_err(|error| Stop::about(b"input", error))?;
                if line.is_empty() {
                    return Err(Stop::about(b"input", Error::text("it has ended")));
                }
            }
        }
    }
    println!(env, "ended {count}")?;
    Ok(env.status())
}

fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// An operation without what it writes.
fn short(operation: &Operation) -> alloc::string::String {
    match operation {
        Operation::Write { path, offset, .. } => format!("write to {path} at {offset}"),
        other => format!("{other:?}"),
    }
}

/// The files that are open, by number.
struct Files<'a> {
    env: &'a Env,
    open: BTreeMap<u32, u32>,
}

impl Files<'_> {
    fn perform(&mut self, operation: &Operation) -> Result<(), Error> {
        let process = self.env.process();
        let path = |path: &str| RVec::from_slice(path.as_bytes());
        match operation {
            Operation::Create { file, path } => {
                let create = OpenFlags {
                    create: true,
                    exclusive: true,
                    ..WRITE
                };
                self.descriptor(*file, path, create)?;
            }
            Operation::Write {
                file,
                path,
                offset,
                data,
            } => {
                let descriptor = self.descriptor(*file, path, WRITE)?;
                self.write(descriptor, *offset, data)?;
            }
            Operation::Truncate { file, path, size } => {
                let descriptor = self.descriptor(*file, path, WRITE)?;
                self.env.process().truncate(descriptor, *size as u64)?;
            }
            Operation::SyncFile { file, path } => {
                let descriptor = self.descriptor(*file, path, WRITE)?;
                self.env.process().sync_file(descriptor)?;
            }
            Operation::SyncData { file, path } => {
                let descriptor = self.descriptor(*file, path, WRITE)?;
                self.env.process().sync_data(descriptor)?;
            }
            Operation::Close { file } => self.close(*file)?,
            Operation::Sync => process.sync()?,
            Operation::Rename { from, to } => process.rename(&path(from)?, &path(to)?)?,
            Operation::Remove { path: name } => process.unlink(&path(name)?)?,
            Operation::MakeDirectory { path: name } => process.make_directory(&path(name)?)?,
            Operation::RemoveDirectory { path: name } => process.remove_directory(&path(name)?)?,
            Operation::Link { path: name, new } => process.link(&path(name)?, &path(new)?)?,
            Operation::Symlink { path: name, target } => {
                process.symlink(&path(name)?, &path(target)?)?
            }
        }
        Ok(())
    }

    /// The descriptor of a file, which is opened if it is not open.
    fn descriptor(&mut self, file: u32, path: &str, flags: OpenFlags) -> Result<u32, Error> {
        if let Some(descriptor) = self.open.get(&file) {
            return Ok(*descriptor);
        }
        if self.open.len() >= MOST_OPEN
            && let Some(oldest) = self.open.keys().next().copied()
        {
            self.close(oldest)?;
        }
        let path = RVec::from_slice(path.as_bytes())?;
        let descriptor = self.env.process().open(&path, flags)?;
        self.open.insert(file, descriptor);
        Ok(descriptor)
    }

    fn close(&mut self, file: u32) -> Result<(), Error> {
        match self.open.remove(&file) {
            Some(descriptor) => Ok(self.env.process().close(descriptor)?),
            None => Ok(()),
        }
    }

    fn write(&self, descriptor: u32, offset: usize, data: &[u8]) -> Result<(), Error> {
        let process = self.env.process();
        process.seek(descriptor, offset as u64)?;
        match process.write(descriptor, &RVec::from_slice(data)?)? {
            count if count == data.len() as u64 => Ok(()),
            _ => Err(Error::text("not all was written")),
        }
    }
}
