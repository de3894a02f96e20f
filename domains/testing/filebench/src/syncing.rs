//! Threads that write a file each, and after each write wait until it is on the disk.

use filework::{SMALL, SYNCS, synced};
use interfaces::{OpenFlags, RVec};
use ulib::{Error, Handle, Process, READ, Stop};

use crate::threads;

const MOST: u64 = 64;
const NEW: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    truncate: true,
    ..READ
};

/// How many threads the option asks for.
///
/// # Errors
/// It makes no sense.
pub fn parse(text: &[u8]) -> Result<u64, Stop> {
    let number = core::str::from_utf8(text).ok();
    match number.and_then(|text| text.parse().ok()) {
        Some(writers @ 1..=MOST) => Ok(writers),
        _ => Err(Stop::usage("-y is followed by a number from 1 to 64")),
    }
}

/// The work of all threads.
///
/// # Errors
/// One of theirs.
pub fn write_and_sync(process: &Handle<dyn Process>, writers: u64) -> Result<(), Error> {
    threads::at_once(process, writers, append)
}

/// The work of one.
fn append(process: &Handle<dyn Process>, writer: u64) -> Result<(), Error> {
    let path = RVec::from_slice(synced(writer).as_bytes())?;
    let file = process.open(&path, NEW)?;
    let data = RVec::filled(writer as u8, SMALL)?;
    for _ in 0..SYNCS {
        if process.write(file, &data)? != SMALL as u64 {
            return Err(Error::text("the disk is full"));
        }
        process.sync_file(file)?;
    }
    process.close(file)?;
    Ok(())
}
