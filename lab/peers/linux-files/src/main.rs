//! The work of `cargo xtask bench files` (see `lib/testing/filework`) on Linux: the peer of
//! `domains/testing/filebench`. It is linked statically, and runs in the initial disk of the kernel
//! that is measured.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use filework::{CHUNK, Mode, Names, SMALL, SYNCS, System, WRITERS, storm_of, synced};

/// The system calls, with a buffer to read into and one to write from.
struct Linux {
    start: Instant,
    buffer: Vec<u8>,
    data: Vec<u8>,
}

impl System for Linux {
    type File = File;
    type Error = io::Error;

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn open(&mut self, path: &str, mode: Mode) -> io::Result<File> {
        match mode {
            Mode::Read => File::open(path),
            Mode::Write => OpenOptions::new().write(true).open(path),
            Mode::Create => File::create(path),
        }
    }

    fn read(&mut self, file: &File, offset: u64, length: usize) -> io::Result<[u8; 8]> {
        file.read_exact_at(&mut self.buffer[..length], offset)?;
        Ok(self.buffer[..8].try_into().expect("eight bytes"))
    }

    fn write(&mut self, file: &File, offset: u64, length: usize, start: [u8; 8]) -> io::Result<()> {
        self.data[..8].copy_from_slice(&start);
        file.write_all_at(&self.data[..length], offset)
    }

    fn close(&mut self, file: File) -> io::Result<()> {
        drop(file);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        rustix::fs::sync();
        Ok(())
    }

    fn make_directory(&mut self, path: &str) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn stat(&mut self, path: &str) -> io::Result<u64> {
        Ok(rustix::fs::stat(path)?.st_size as u64)
    }

    fn write_and_sync(&mut self, writers: u64) -> io::Result<()> {
        at_once(writers, append_and_sync)
    }

    fn storm(&mut self, threads: u64) -> io::Result<()> {
        at_once(threads, |thread| storm_of(&Calls, thread))
    }

    fn wrong(&self, path: &str, offset: u64) -> io::Error {
        io::Error::other(format!("{path}: wrong content at {offset}"))
    }

    fn report(&mut self, phase: &str, amount: u64, nanoseconds: u64) -> io::Result<()> {
        println!("filebench \"{phase}\" {amount} {nanoseconds}");
        Ok(())
    }
}

/// Has so many threads do `work`, each with its number.
fn at_once(count: u64, work: impl Fn(u64) -> io::Result<()> + Copy + Send) -> io::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let mut joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .try_for_each(|result| result.map_err(|_| io::Error::other("a thread has panicked"))?)
    })
}

/// The system calls of a thread that goes by names.
struct Calls;

impl Names for Calls {
    type Error = io::Error;

    fn make(&self, path: &str) -> io::Result<()> {
        File::create(path).map(drop)
    }

    fn ask(&self, path: &str) -> io::Result<()> {
        Ok(rustix::fs::stat(path).map(drop)?)
    }

    fn visit(&self, path: &str) -> io::Result<()> {
        File::open(path).map(drop)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// The work of one thread that writes.
fn append_and_sync(writer: u64) -> io::Result<()> {
    let mut file = File::create(synced(writer))?;
    for _ in 0..SYNCS {
        file.write_all(&[writer as u8; SMALL])?;
        file.sync_all()?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut linux = Linux {
        start: Instant::now(),
        buffer: vec![0; CHUNK],
        data: vec![0; CHUNK],
    };
    match std::env::args().nth(1).as_deref() {
        Some("-n") => filework::run_names(&mut linux),
        Some("-m") => filework::run_storm(&mut linux),
        Some("-y") => filework::run_synced(&mut linux, WRITERS),
        _ => filework::run(&mut linux),
    }
}
