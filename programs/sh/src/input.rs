//! Lines from the shell's standard input.
//!
//! The programs that the shell starts read the same input. So from a file or pipe the shell takes
//! one byte at a time and never more than its line; the console gives at most a line anyway.

use alloc::rc::Rc;
use alloc::vec::Vec;
use interfaces::{DescriptorKind, Errno, Handle, Process, RVec};
use shell::Line;

/// Bytes that are asked of the console at once.
const CONSOLE_CHUNK: usize = 4096;

/// The shell's standard input.
pub struct Input {
    process: Rc<Handle<dyn Process>>,
    chunk: usize,
    /// What was read and does not belong to a line that was given out.
    pending: Vec<u8>,
}

impl Input {
    /// Lines from descriptor 0 of `process`.
    pub fn new(process: Rc<Handle<dyn Process>>) -> Self {
        let chunk = match process.kind(0) {
            Ok(DescriptorKind::Console) => CONSOLE_CHUNK,
            _ => 1,
        };
        Input {
            process,
            chunk,
            pending: Vec::new(),
        }
    }

    /// Whether something was read that belongs to no line that was given out.
    pub fn is_ahead(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next line. `interrupts` are counted by the process; a change while nothing comes is
    /// Ctrl-C.
    pub fn next_line(&mut self) -> Line {
        let before = self.interrupts();
        loop {
            if let Some(at) = self.pending.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.pending.drain(..=at).collect();
                line.pop();
                return Line::Text(line);
            }
            let read = RVec::filled(0, self.chunk).map_err(Errno::from);
            let read = read.and_then(|buffer| self.process.read(0, buffer));
            match read {
                // Not asked here: a Ctrl-C behind a line is meant for what the line starts.
                Ok(bytes) if !bytes.is_empty() => self.pending.extend_from_slice(&bytes),
                Ok(_) | Err(Errno::Killed) if self.interrupts() != before => {
                    self.pending.clear();
                    return Line::Interrupted;
                }
                Ok(_) if !self.pending.is_empty() => {
                    return Line::Text(core::mem::take(&mut self.pending));
                }
                Ok(_) | Err(_) => return Line::End,
            }
        }
    }

    /// The next line for `read`, and whether a line break ended it.
    pub fn plain_line(&mut self) -> (Vec<u8>, bool) {
        if self.pending.is_empty() && self.chunk == 1 {
            return line_of(&self.process, 0);
        }
        loop {
            if let Some(at) = self.pending.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.pending.drain(..=at).collect();
                line.pop();
                return (line, true);
            }
            let read = RVec::filled(0, self.chunk).map_err(Errno::from);
            match read.and_then(|buffer| self.process.read(0, buffer)) {
                Ok(bytes) if !bytes.is_empty() => self.pending.extend_from_slice(&bytes),
                _ => return (core::mem::take(&mut self.pending), false),
            }
        }
    }

    fn interrupts(&self) -> u32 {
        self.process.interrupts().unwrap_or(0)
    }
}

/// Bytes that are read at once where what is too much can be given back.
const FILE_CHUNK: usize = 512;

/// A line from a descriptor, and whether a line break ended it. Nothing behind the line is taken:
/// of a file what was read too far is given back, from a pipe it is read byte by byte.
pub fn line_of(process: &Handle<dyn Process>, descriptor: u32) -> (Vec<u8>, bool) {
    let mut line = Vec::new();
    let mut position = process.position(descriptor).ok();
    loop {
        let size = position.map_or(1, |_| FILE_CHUNK);
        let read = RVec::filled(0, size).map_err(Errno::from);
        let Ok(bytes) = read.and_then(|buffer| process.read(descriptor, buffer)) else {
            return (line, false);
        };
        if bytes.is_empty() {
            return (line, false);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        position = position.map(|at| at + end.map_or(bytes.len(), |end| end + 1) as u64);
        if end.is_some() {
            if let Some(position) = position {
                // A file that could be read has a position that can be set.
                let _ = process.seek(descriptor, position);
            }
            return (line, true);
        }
    }
}
