//! The work of `cargo xtask bench memory` (see `lib/testing/memorywork`) on Linux: the peer of
//! `domains/testing/memorybench`. Its memory is a file of tmpfs, read and written by `pread` and
//! `pwrite`. It is linked statically, and runs in the initial disk of the kernel that is measured.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;

use memorywork::{Memory, PAGE, PAGES};
use rustix::time::{ClockId, clock_gettime};

/// A file, and what is read into and written from.
struct Shared {
    file: File,
    buffer: Vec<u8>,
}

impl Memory for Shared {
    type Error = io::Error;

    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<()> {
        self.file
            .read_at(&mut self.buffer[..length], offset)
            .map(drop)
    }

    fn write(&mut self, offset: u64, length: usize) -> io::Result<()> {
        self.file.write_at(&self.buffer[..length], offset).map(drop)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.set_len(PAGES * PAGE)
    }
}

fn work(path: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let buffer = vec![1; PAGE as usize];
    memorywork::run(&mut Shared { file, buffer }, &mut |line| println!("{line}"))
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: memorybench FILE");
        return ExitCode::from(2);
    };
    match work(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memorybench: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
