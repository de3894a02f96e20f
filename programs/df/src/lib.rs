//! `df [-h] [PATH...]`: shows how much room there is on file systems.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::FsStatistics;
use textutil::mounts::{Mounted, parse};
use textutil::path::is_inside;
use textutil::table::{Side, Table, human_bytes};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: df [-h] [-i] [PATH...]
Shows how much room there is on the file system of each PATH, or on all. In KiB; -h: in larger units; -i: inodes.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "hik")?;
    let mounts = mounts(env);
    let all: Vec<Vec<u8>> = mounts.iter().map(|mount| mount.path.clone()).collect();
    let paths = match options.operands.as_slice() {
        [] => &all,
        paths => paths,
    };
    let heads = match (options.has('i'), options.has('h')) {
        (true, _) => ["Inodes", "IUsed", "IFree", "IUse%"],
        (_, true) => ["Size", "Used", "Avail", "Use%"],
        _ => ["1K-blocks", "Used", "Available", "Use%"],
    };
    let mut columns = Vec::from([("Filesystem", Side::Left)]);
    columns.extend(heads.map(|head| (head, Side::Right)));
    columns.push(("Mounted on", Side::Left));
    let mut table = Table::new(&columns);
    for path in paths {
        match room(env, path) {
            Ok((room, place)) => {
                let mount = mounts.iter().filter(|mount| is_inside(&place, &mount.path));
                let mount = mount.max_by_key(|mount| mount.path.len());
                table.row(row(&room, mount, options.has('h'), options.has('i')));
            }
            // Some of those that are mounted are no stores.
            Err(_) if options.operands.is_empty() => {}
            Err(error) => env.fail(path, &error),
        }
    }
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(env.status())
}

/// What is mounted; only the root if the system does not tell.
fn mounts(env: &Env) -> Vec<Mounted> {
    let text = env
        .open(b"/proc/mounts")
        .and_then(|mut reader| reader.read_to_end());
    let mut mounts = parse(&text.unwrap_or_default());
    if mounts.is_empty() {
        mounts.push(Mounted {
            device: b"root".to_vec(),
            path: b"/".to_vec(),
            kind: Vec::new(),
            options: Vec::new(),
        });
    }
    mounts
}

/// The room on the file system of a path, and the path from the root.
fn room(env: &Env, path: &[u8]) -> Result<(FsStatistics, Vec<u8>), Error> {
    let room = env.with_path(path, |process, path| process.statistics(path))?;
    let place = match path.first() {
        Some(b'/') => path.to_vec(),
        _ => {
            let here = env.process().working_directory()?;
            textutil::path::join(&here, path)
        }
    };
    Ok((room, place))
}

fn row(room: &FsStatistics, mount: Option<&Mounted>, human: bool, inodes: bool) -> Vec<String> {
    let (all, free) = match inodes {
        true => (room.inodes, room.free_inodes),
        false => (
            room.blocks * u64::from(room.block_size),
            room.free_blocks * u64::from(room.block_size),
        ),
    };
    let used = all.saturating_sub(free);
    let shown = |amount: u64| match (inodes, human) {
        (true, _) => amount.to_string(),
        (_, true) => human_bytes(amount),
        _ => (amount / 1024).to_string(),
    };
    let share = match used + free {
        0 => "-".to_string(),
        whole => format!("{}%", (used * 100).div_ceil(whole)),
    };
    let (source, path) = mount.map_or(("-".to_string(), "-".to_string()), |mount| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&mount.device), text(&mount.path))
    });
    Vec::from([source, shown(all), shown(used), shown(free), share, path])
}
