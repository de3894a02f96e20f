//! Names: many of them, and long ones.

use alloc::format;
use alloc::vec::Vec;
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, READ, Stop, println};

/// For a new file.
const NEW: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    exclusive: true,
    ..READ
};

/// Makes `count` files and looks whether all are listed.
pub fn make(env: &Env, directory: &[u8], count: u64) -> Result<i32, Stop> {
    for number in 0..count {
        let path = [directory, format!("/file {number}").as_bytes()].concat();
        create(env, &path).map_err(|error| Stop::about(&path, error))?;
    }
    let listed = env
        .read_directory(directory)
        .map_err(|error| Stop::about(directory, error))?;
    println!(env, "{} listed", listed.len() - 2)?;
    Ok(0)
}

/// Removes everything in a directory.
pub fn clear(env: &Env, directory: &[u8]) -> Result<i32, Stop> {
    let listed = env
        .read_directory(directory)
        .map_err(|error| Stop::about(directory, error))?;
    let mut removed = 0;
    for entry in listed
        .iter()
        .filter(|entry| !matches!(entry.name.as_slice(), b"." | b".."))
    {
        let path = [directory, b"/", entry.name.as_slice()].concat();
        env.with_path(&path, |process, path| process.unlink(path))
            .map_err(|error| Stop::about(&path, error))?;
        removed += 1;
    }
    println!(env, "{removed} removed")?;
    Ok(0)
}

/// Names and paths at their limits, and one byte over.
pub fn limits(env: &Env, directory: &[u8]) -> Result<i32, Stop> {
    for length in [255, 256] {
        let path = [directory, b"/", &Vec::from_iter((0..length).map(|_| b'n'))].concat();
        say(env, "name", length, create(env, &path))?;
    }
    let deep = Vec::from_iter((0..255).map(|_| b'd'));
    let mut path = directory.to_vec();
    while path.len() + 256 < 4096 {
        path.push(b'/');
        path.extend_from_slice(&deep);
        env.with_path(&path, |process, path| process.make_directory(path))
            .map_err(|error| Stop::about(b"a directory", error))?;
    }
    for length in [4095, 4096] {
        let mut path = path.clone();
        path.push(b'/');
        while path.len() < length {
            // `.` changes nothing; the last name is of what is left.
            let left = length - path.len();
            path.extend_from_slice(if left > 3 { b"./" } else { &deep[..left] });
        }
        say(env, "path", length, create(env, &path))?;
    }
    Ok(0)
}

fn say(env: &Env, what: &str, length: usize, result: Result<(), Error>) -> Result<(), Stop> {
    match result {
        Ok(()) => println!(env, "{what} of {length}: made"),
        Err(error) => println!(env, "{what} of {length}: {error}"),
    }
}

fn create(env: &Env, path: &[u8]) -> Result<(), Error> {
    let descriptor = env.process().open(&RVec::from_slice(path)?, NEW)?;
    Ok(env.process().close(descriptor)?)
}
