//! A small personality, which `docs/guide/write-a-personality.md` explains: it runs static Linux
//! programs, each by itself, on the files of the boot archive. [`program`] runs one, [`calls`]
//! answers it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod calls;
mod program;

use alloc::vec::Vec;
use domain_rt::memory;
use guests::archive::Files;
use interfaces::{
    AddressSpaces, Archive, Console, Errno, ExitStatus, FsError, Handle, Personality, RVec, Random,
    RpcError, RpcResult,
};
use linux::errno::{ENOMEM, Error};
use program::Process;

/// What all programs share. They can change nothing of it.
struct System {
    spaces: Handle<dyn AddressSpaces>,
    files: Files,
    random: Handle<dyn Random>,
    console: Handle<dyn Console>,
}

/// Starts the personality.
///
/// # Errors
/// There is no ring 3, or no memory.
pub fn start(
    spaces: Option<Handle<dyn AddressSpaces>>,
    archive: Handle<dyn Archive>,
    random: Handle<dyn Random>,
    console: Handle<dyn Console>,
) -> RpcResult<Handle<dyn Personality>> {
    memory::reserve(memory::SERVICE)?;
    Handle::<dyn Personality>::new(System {
        spaces: spaces.ok_or(RpcError::Refused)?,
        files: Files::new(archive, b"busybox")?,
        random,
        console,
    })
}

impl Personality for System {
    /// Runs a program on the thread of whoever asks, from its begin to its end.
    fn run(&self, path: RVec<u8>, arguments: RVec<u8>) -> Result<ExitStatus, Errno> {
        let file = self.files.program(&path);
        let file = file.ok_or(Errno::Fs(FsError::NotFound))?;
        let words: Vec<Vec<u8>> = arguments.split(|byte| *byte == 0).map(Vec::from).collect();
        // Each word ends with a zero byte, so the last piece is none.
        let words = &words[..words.len() - 1];
        let process = Process::load(self, file, &path, words).map_err(|error| match error {
            ENOMEM => Errno::Rpc(RpcError::NoMemory),
            _ => Errno::Invalid,
        })?;
        Ok(ExitStatus::Exited(process.run()))
    }
}

impl System {
    /// Prints bytes, of which the console has all or none.
    fn print(&self, text: &RVec<u8>) -> Result<(), Error> {
        self.console.write(text).map_err(|_| linux::errno::EIO)
    }
}
