//! Files: many open ones, large ones, a full disk.

use alloc::vec::Vec;
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, READ, Stop, println};

/// For writing, made if need be.
const WRITE: OpenFlags = OpenFlags {
    write: true,
    create: true,
    ..READ
};

/// Bytes that are written at once.
const CHUNK: usize = 128 * 1024;

/// Opens a file many times, reads through the last descriptor, and closes all.
pub fn open_many(env: &Env, count: u64, path: &[u8]) -> Result<i32, Stop> {
    let mut open = Vec::new();
    let mut failure = None;
    for _ in 0..count {
        match open_file(env, path, READ) {
            Ok(descriptor) => open.push(descriptor),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let last = open.last().copied().unwrap_or(0);
    let read = env.process().read(last, RVec::filled(0, 64)?)?.len();
    let opened = open.len();
    for descriptor in open {
        env.process().close(descriptor)?;
    }
    match failure {
        None => println!(env, "{opened} open, {read} bytes read")?,
        Some(error) => println!(env, "{opened} open, {read} bytes read: {error}")?,
    }
    Ok(0)
}

/// Writes at a position, and brings it to the disk.
pub fn write(env: &Env, path: &[u8], at: u64, text: &[u8]) -> Result<i32, Stop> {
    let done = || -> Result<(), Error> {
        let descriptor = open_file(env, path, WRITE)?;
        env.process().seek(descriptor, at)?;
        let data = RVec::from_slice(text)?;
        let written = env.process().write(descriptor, &data);
        let synced = written.and_then(|_| env.process().sync_file(descriptor));
        env.process().close(descriptor)?;
        Ok(synced?)
    };
    done().map_err(|error| Stop::about(path, error))?;
    Ok(0)
}

/// Prints some bytes.
pub fn read(env: &Env, path: &[u8], at: u64, count: u64) -> Result<i32, Stop> {
    let done = || -> Result<RVec<u8>, Error> {
        let descriptor = open_file(env, path, READ)?;
        env.process().seek(descriptor, at)?;
        let read = env
            .process()
            .read(descriptor, RVec::filled(0, count as usize)?);
        env.process().close(descriptor)?;
        Ok(read?)
    };
    let bytes = done().map_err(|error| Stop::about(path, error))?;
    env.write(&bytes)?;
    Ok(0)
}

/// Sets the size of a file.
pub fn cut(env: &Env, path: &[u8], size: u64) -> Result<i32, Stop> {
    let done = || -> Result<(), Error> {
        let descriptor = open_file(env, path, WRITE)?;
        let cut = env.process().truncate(descriptor, size);
        env.process().close(descriptor)?;
        Ok(cut?)
    };
    done().map_err(|error| Stop::about(path, error))?;
    Ok(0)
}

/// What is free on the file system of a path.
pub fn room(env: &Env, path: &[u8]) -> Result<i32, Stop> {
    let room = env
        .with_path(path, |process, path| process.statistics(path))
        .map_err(|error| Stop::about(path, error))?;
    println!(
        env,
        "{} blocks {} inodes", room.free_blocks, room.free_inodes
    )?;
    Ok(0)
}

/// Writes until there is no room, byte by byte at the end; says what it met.
pub fn fill(env: &Env, path: &[u8]) -> Result<i32, Stop> {
    let about = |error: Error| Stop::about(path, error);
    let descriptor = open_file(env, path, WRITE).map_err(about)?;
    let mut size = CHUNK;
    let failure = loop {
        let data = RVec::filled(b'x', size)?;
        match env.process().write(descriptor, &data) {
            Ok(_) => {}
            Err(_) if size > 1 => size /= 2,
            Err(error) => break error,
        }
    };
    let synced = env.process().sync_file(descriptor);
    env.process().close(descriptor)?;
    synced?;
    println!(env, "{}", Error::from(failure))?;
    Ok(0)
}

fn open_file(env: &Env, path: &[u8], flags: OpenFlags) -> Result<u32, Error> {
    Ok(env.process().open(&RVec::from_slice(path)?, flags)?)
}
