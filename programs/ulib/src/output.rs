//! Buffered output to a descriptor.

use crate::Error;
use alloc::rc::Rc;
use alloc::vec::Vec;
use interfaces::{DescriptorKind, Errno, FsError, Handle, Process, RVec};

/// Bytes that are collected before they are written: the largest object that shares a chunk of the
/// shared heap with others.
const CAPACITY: usize = 32 * 1024;

/// A buffered writer. To the console it writes whole lines at once, elsewhere whole buffers.
pub struct Output {
    process: Rc<Handle<dyn Process>>,
    descriptor: u32,
    buffer: Vec<u8>,
    by_line: Option<bool>,
}

impl Output {
    /// A writer to an open descriptor, which stays open when the writer goes.
    pub fn new(process: Rc<Handle<dyn Process>>, descriptor: u32) -> Self {
        Output {
            process,
            descriptor,
            buffer: Vec::new(),
            by_line: None,
        }
    }

    /// Writes `bytes`, perhaps later.
    ///
    /// # Errors
    /// The descriptor's; what was in the buffer is lost then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = rest.len().min(CAPACITY - self.buffer.len());
            self.buffer.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.buffer.len() == CAPACITY {
                self.flush()?;
            }
        }
        if bytes.contains(&b'\n') && self.is_by_line() {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes `data` without copying it, behind what is in the buffer.
    ///
    /// # Errors
    /// The descriptor's.
    pub fn write_shared(&mut self, data: &RVec<u8>) -> Result<(), Error> {
        self.flush()?;
        write_all(&self.process, self.descriptor, data)
    }

    /// Writes what is in the buffer.
    ///
    /// # Errors
    /// The descriptor's; what was in the buffer is lost then.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let data = RVec::from_slice(&self.buffer);
        self.buffer.clear();
        write_all(&self.process, self.descriptor, &data?)
    }

    fn is_by_line(&mut self) -> bool {
        let kind = || self.process.kind(self.descriptor);
        *self
            .by_line
            .get_or_insert_with(|| matches!(kind(), Ok(DescriptorKind::Console)))
    }
}

/// Writes all of `data`, in as many calls as it takes.
///
/// # Errors
/// The descriptor's.
pub fn write_all(
    process: &Handle<dyn Process>,
    descriptor: u32,
    data: &RVec<u8>,
) -> Result<(), Error> {
    let mut done = process.write(descriptor, data)? as usize;
    while done < data.len() {
        let rest = RVec::from_slice(&data[done..])?;
        match process.write(descriptor, &rest)? {
            0 => return Err(Errno::Fs(FsError::NoSpace).into()),
            more => done += more as usize,
        }
    }
    Ok(())
}
