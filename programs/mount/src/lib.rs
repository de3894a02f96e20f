//! `mount [-r] [DISK DIRECTORY]`: mounts the file system on a disk, or lists what is mounted.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use interfaces::{FileKind, Text};
use textutil::mounts;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: mount [-r] DISK DIRECTORY
       mount
Mounts the file system on DISK (lsblk lists disks) over DIRECTORY, with -r only to be read.
Without operands, lists what is mounted.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "r")?;
    match options.operands.as_slice() {
        [] => list(env),
        [disk, directory] => {
            let name = disk.strip_prefix(b"/dev/").unwrap_or(disk);
            let name = Text::new(&String::from_utf8_lossy(name));
            let read_only = options.has('r');
            let mounted = env.with_path(directory, |process, path| {
                process.mount(name, path, read_only)
            });
            mounted.map_err(|error| {
                // The error says what is wrong, not with which of the two.
                let subject = match is_directory(env, directory) {
                    true => disk,
                    false => directory,
                };
                Stop::about(subject, error)
            })?;
            if !read_only {
                tell_if_only_read(env, name.as_str());
            }
            Ok(0)
        }
        _ => Err(Stop::usage(
            "a disk and a directory are needed; `mount --help` says more",
        )),
    }
}

/// Says so if a disk that was to be written to can only be read. It is mounted all the same.
fn tell_if_only_read(env: &Env, disk: &str) {
    let mounts = env.open(b"/proc/mounts");
    let Ok(text) = mounts.and_then(|mut file| file.read_to_end()) else {
        return;
    };
    let mut mounts = mounts::parse(&text).into_iter();
    if mounts.any(|it| it.device == disk.as_bytes() && it.options == b"ro") {
        let name = env.name();
        env.report(format_args!(
            "{name}: {disk}: it can only be read, and is mounted so; dmesg says why"
        ));
    }
}

fn is_directory(env: &Env, path: &[u8]) -> bool {
    let metadata = env.metadata(path, true);
    metadata.is_ok_and(|it| matches!(it.kind, FileKind::Directory))
}

fn list(env: &Env) -> Result<i32, Stop> {
    let text = env
        .open(b"/proc/mounts")
        .and_then(|mut file| file.read_to_end());
    let text = text.map_err(|error| Stop::about(b"/proc/mounts", error))?;
    for mount in mounts::parse(&text) {
        let [device, path, kind, options] =
            [&mount.device, &mount.path, &mount.kind, &mount.options]
                .map(|field| String::from_utf8_lossy(field));
        println!(env, "{device} on {path} type {kind} ({options})")?;
    }
    Ok(0)
}
