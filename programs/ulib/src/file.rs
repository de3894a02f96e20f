//! Files: buffered reading, unbuffered writing.

use crate::Error;
use crate::output::write_all;
use alloc::rc::Rc;
use alloc::vec::Vec;
use interfaces::{DescriptorKind, Handle, OpenFlags, Process, RVec, RpcError};

/// Bytes that are read from a file at once.
const FILE_CHUNK: usize = 128 * 1024;
/// Bytes that are read from a pipe or the console at once.
const STREAM_CHUNK: usize = 16 * 1024;

/// Flags to read a file or directory.
pub const READ: OpenFlags = OpenFlags {
    read: true,
    write: false,
    create: false,
    truncate: false,
    append: false,
    exclusive: false,
};

/// Flags to write a file from the start.
const WRITE: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    truncate: true,
    ..READ
};

/// An open descriptor that is closed with this value, if it is to be.
struct Descriptor {
    process: Rc<Handle<dyn Process>>,
    number: u32,
    owned: bool,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.owned {
            // Nobody is left to tell; a writer that cares calls `close` first.
            let _ = self.process.close(self.number);
        }
    }
}

/// Reads a descriptor through a buffer on the shared heap, which the file system fills directly.
pub struct Reader {
    descriptor: Descriptor,
    chunk: Option<RVec<u8>>,
    at: usize,
    chunk_size: usize,
}

impl Reader {
    pub(crate) fn new(process: Rc<Handle<dyn Process>>, number: u32, owned: bool) -> Self {
        let chunk_size = match process.kind(number) {
            Ok(DescriptorKind::File) => FILE_CHUNK,
            _ => STREAM_CHUNK,
        };
        let descriptor = Descriptor {
            process,
            number,
            owned,
        };
        Reader {
            descriptor,
            chunk: None,
            at: 0,
            chunk_size,
        }
    }

    /// What is in the buffer; if that is nothing, the next bytes are read first. Empty at the end.
    ///
    /// # Errors
    /// The descriptor's.
    pub fn fill(&mut self) -> Result<&[u8], Error> {
        if self
            .chunk
            .as_ref()
            .is_none_or(|chunk| self.at >= chunk.len())
        {
            self.next_chunk()?;
        }
        Ok(self.chunk.as_ref().map_or(&[], |chunk| &chunk[self.at..]))
    }

    /// Takes the first `count` bytes out of the buffer.
    pub fn consume(&mut self, count: usize) {
        self.at += count;
    }

    /// Reads the next bytes into a whole new buffer; what was in the old one is gone.
    fn next_chunk(&mut self) -> Result<(), Error> {
        // A buffer that came back short cannot grow again.
        let old = self
            .chunk
            .take()
            .filter(|chunk| chunk.len() == self.chunk_size);
        let buffer = match old {
            Some(buffer) => buffer,
            None => RVec::filled(0, self.chunk_size)?,
        };
        self.at = 0;
        self.chunk = Some(
            self.descriptor
                .process
                .read(self.descriptor.number, buffer)?,
        );
        Ok(())
    }

    /// The next bytes as they came, to be passed on; `None` at the end.
    ///
    /// # Errors
    /// The descriptor's.
    pub fn shared(&mut self) -> Result<Option<&RVec<u8>>, Error> {
        self.next_chunk()?;
        Ok(self.chunk.as_ref().filter(|chunk| !chunk.is_empty()))
    }

    /// Appends the next line to `line`, with its line break if it has one; how many bytes, 0 at the
    /// end. The line may be as long as there is memory.
    ///
    /// # Errors
    /// The descriptor's, or that there is no memory for so long a line.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Result<usize, Error> {
        let before = line.len();
        loop {
            let bytes = self.fill()?;
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            line.try_reserve(taken).map_err(|_| RpcError::NoMemory)?;
            line.extend_from_slice(&bytes[..taken]);
            self.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok(line.len() - before);
            }
        }
    }

    /// Everything up to the end.
    ///
    /// # Errors
    /// The descriptor's, or that there is no memory for so much.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        loop {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Ok(all);
            }
            all.try_reserve(bytes.len())
                .map_err(|_| RpcError::NoMemory)?;
            all.extend_from_slice(bytes);
            let taken = bytes.len();
            self.consume(taken);
        }
    }

    /// Whether a file is being read, rather than a pipe or the console.
    pub fn is_file(&self) -> bool {
        self.chunk_size == FILE_CHUNK
    }
}

/// Writes a new file, unbuffered.
pub struct FileWriter {
    descriptor: Descriptor,
}

impl FileWriter {
    /// Makes (or empties) the file at `path`.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn create(process: Rc<Handle<dyn Process>>, path: &[u8]) -> Result<Self, Error> {
        let number = process.open(&RVec::from_slice(path)?, WRITE)?;
        Ok(FileWriter {
            descriptor: Descriptor {
                process,
                number,
                owned: true,
            },
        })
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&mut self, data: &RVec<u8>) -> Result<(), Error> {
        write_all(&self.descriptor.process, self.descriptor.number, data)
    }

    /// Closes the file.
    ///
    /// # Errors
    /// The file system's.
    pub fn close(mut self) -> Result<(), Error> {
        self.descriptor.owned = false;
        Ok(self.descriptor.process.close(self.descriptor.number)?)
    }
}
