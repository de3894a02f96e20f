//! What a descriptor leads to. Several descriptors, also of several processes, may share one
//! description, and with it the position in the file.

use domain_rt::sync::Mutex;
use interfaces::{DescriptorKind, Errno, FsError, Metadata, OpenFlags, RVec};
use respawn::Buffer;

use crate::errors;
use crate::held::Held;
use crate::listing::Listing;
use crate::pipes::PipeEnd;
use crate::process::Process;
use crate::special::Special;
use crate::system::System;
use crate::terminal::Stream;
use crate::volumes::Volume;

/// Something open.
pub enum Description {
    /// A file.
    File(OpenFile),
    /// A directory.
    Directory(OpenDirectory),
    /// An end of a pipe.
    Pipe(PipeEnd),
    /// The console.
    Console(Stream),
    /// A device that is on no disk.
    Special(Special),
}

/// A file and the position in it.
pub struct OpenFile {
    held: Held,
    flags: OpenFlags,
    /// Locked while the file is read or written, so that users of one position take turns.
    position: Mutex<u64>,
}

/// A directory and the position in it.
pub struct OpenDirectory {
    held: Held,
    listing: Mutex<Listing>,
}

impl Description {
    /// Its kind, as programs see it.
    pub fn kind(&self) -> DescriptorKind {
        match self {
            Description::File(_) | Description::Directory(_) | Description::Special(_) => {
                DescriptorKind::File
            }
            Description::Pipe(_) => DescriptorKind::Pipe,
            Description::Console(_) => DescriptorKind::Console,
        }
    }

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// Those of the file, pipe or console.
    pub fn read(
        &self,
        system: &System,
        process: &Process,
        buffer: RVec<u8>,
    ) -> Result<RVec<u8>, Errno> {
        match self {
            Description::File(file) => file.read(buffer),
            Description::Directory(_) => Err(Errno::Fs(FsError::IsDirectory)),
            Description::Pipe(end) => end.read(buffer),
            Description::Console(_) => system.terminal.read(process, buffer),
            Description::Special(special) => special.read(buffer, system.random()),
        }
    }

    /// Writes; how many bytes.
    ///
    /// # Errors
    /// Those of the file, pipe or console.
    pub fn write(&self, system: &System, data: &RVec<u8>) -> Result<u64, Errno> {
        match self {
            Description::File(file) => file.write(data),
            Description::Directory(_) => Err(Errno::BadDescriptor),
            Description::Pipe(end) => end.write(data),
            Description::Console(stream) => {
                system.terminal.write(*stream, data)?;
                Ok(data.len() as u64)
            }
            Description::Special(_) => Ok(data.len() as u64),
        }
    }

    /// The position.
    ///
    /// # Errors
    /// `Invalid` for what has none.
    pub fn position(&self) -> Result<u64, Errno> {
        match self {
            Description::File(file) => Ok(*file.position.lock()),
            _ => Err(Errno::Invalid),
        }
    }

    /// Moves the position. In a directory only the start can be found again.
    ///
    /// # Errors
    /// `Invalid` for what has no position.
    pub fn seek(&self, offset: u64) -> Result<u64, Errno> {
        match self {
            Description::File(file) => *file.position.lock() = offset,
            Description::Directory(directory) if offset == 0 => {
                *directory.listing.lock() = Listing::default();
            }
            _ => return Err(Errno::Invalid),
        }
        Ok(offset)
    }

    /// What is known of a file or directory.
    ///
    /// # Errors
    /// Those of the file system; `Invalid` for what is none.
    pub fn metadata(&self, system: &System) -> Result<Metadata, Errno> {
        let held = match self {
            Description::File(file) => &file.held,
            Description::Directory(directory) => &directory.held,
            Description::Special(special) => return Ok(special.metadata()),
            Description::Pipe(_) | Description::Console(_) => return Err(Errno::Invalid),
        };
        let volumes = &system.volumes;
        let metadata = match held.node().volume {
            Volume::EMPTY => volumes.metadata(held.node()),
            _ => held.ask(|live| live.fs.metadata(held.node().inode)),
        };
        metadata.map_err(errors::fs)
    }

    /// Makes a file shorter, or longer by zeros.
    ///
    /// # Errors
    /// Those of the file system; `Invalid` for what is no file, `BadDescriptor` if it is not open
    /// for writing.
    pub fn truncate(&self, size: u64) -> Result<(), Errno> {
        match self {
            Description::File(file) => file.truncate(size),
            _ => Err(Errno::Invalid),
        }
    }

    /// Returns when what was written to this file is on the disk; if it is of `data_only`, perhaps
    /// without what that is found without.
    ///
    /// # Errors
    /// Those of the file system; `Invalid` for what is on no disk.
    pub fn sync(&self, system: &System, data_only: bool) -> Result<(), Errno> {
        match self {
            Description::File(file) => file.held.flush(data_only).map_err(errors::fs),
            Description::Directory(_) => system.volumes.sync().map_err(errors::fs),
            _ => Err(Errno::Invalid),
        }
    }

    /// The next entries of a directory.
    ///
    /// # Errors
    /// Those of the file system; `NotDirectory`.
    pub fn read_directory(&self, system: &System, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        match self {
            Description::Directory(directory) => directory.read(system, buffer),
            _ => Err(Errno::Fs(FsError::NotDirectory)),
        }
    }
}

impl OpenFile {
    /// An open file at position 0.
    pub fn new(held: Held, flags: OpenFlags) -> Self {
        OpenFile {
            held,
            flags,
            position: Mutex::new(0),
        }
    }

    fn read(&self, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        if !self.flags.read {
            return Err(Errno::BadDescriptor);
        }
        let inode = self.held.node().inode;
        let mut position = self.position.lock();
        let mut buffer = Buffer::new(buffer);
        let read = self
            .held
            .ask(|live| live.fs.read(inode, *position, buffer.take()?));
        let buffer = read.map_err(errors::fs)?;
        *position = position.saturating_add(buffer.len() as u64);
        Ok(buffer)
    }

    fn write(&self, data: &RVec<u8>) -> Result<u64, Errno> {
        if !self.flags.write {
            return Err(Errno::BadDescriptor);
        }
        let inode = self.held.node().inode;
        let mut position = self.position.lock();
        let (held, at) = (&self.held, *position);
        let written = match self.flags.append {
            true => held.append(data),
            false => held.ask(|live| {
                let count = live.fs.write(inode, at, data)?;
                Ok((at, count))
            }),
        };
        let (start, count) = written.map_err(errors::fs)?;
        *position = start.saturating_add(count);
        self.held.note_written();
        Ok(count)
    }

    fn truncate(&self, size: u64) -> Result<(), Errno> {
        if !self.flags.write {
            return Err(Errno::BadDescriptor);
        }
        let inode = self.held.node().inode;
        let cut = self.held.ask(|live| live.fs.truncate(inode, size));
        cut.map_err(errors::fs)?;
        self.held.note_written();
        Ok(())
    }
}

impl OpenDirectory {
    /// An open directory at its start.
    pub fn new(held: Held) -> Self {
        OpenDirectory {
            held,
            listing: Mutex::new(Listing::default()),
        }
    }

    fn read(&self, system: &System, buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        let mut listing = self.listing.lock();
        let read = listing.next(&system.volumes, &self.held, buffer);
        read.map_err(errors::fs)
    }
}
