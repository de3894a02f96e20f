//! Lines from the shell's standard input.
//!
//! The programs that the shell starts read the same input. So from a file or pipe the shell takes one byte
//! at a time and never more than its line; the console gives at most a line anyway.

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

    /// The next line. `interrupts` are counted by the process; a change while nothing comes is Ctrl-C.
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
            let interrupted = self.interrupts() != before;
            match read {
                Ok(bytes) if !bytes.is_empty() => self.pending.extend_from_slice(&bytes),
                Ok(_) | Err(Errno::Killed) if interrupted => {
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

    fn interrupts(&self) -> u32 {
        self.process.interrupts().unwrap_or(0)
    }
}
