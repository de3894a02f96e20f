//! `lsblk`: lists the disks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use interfaces::DiskInfo;
use textutil::mounts::{self, Mounted};
use textutil::table::{Side, Table};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: lsblk
Lists the disks: name, size, whether they can only be read, and over which directory their file system is mounted.";

/// Units of size, each 1,024 times the one before.
const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];

/// Bytes in a sector.
const SECTOR: u64 = 512;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    env.options_alone(USAGE, "")?;
    // Without `/proc` it lists the disks all the same.
    let text = env
        .open(b"/proc/mounts")
        .and_then(|mut file| file.read_to_end());
    let mounts = text.map_or_else(|_| alloc::vec::Vec::new(), |text| mounts::parse(&text));
    let mut table = Table::new(&[
        ("NAME", Side::Left),
        ("SIZE", Side::Right),
        ("RO", Side::Right),
        ("MOUNTPOINT", Side::Left),
    ]);
    let mut index = 0;
    while let Some(disk) = env.process().disk(index)? {
        if disk.present {
            table.row(row(&disk, &mounts).into());
        }
        index += 1;
    }
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(0)
}

fn row(disk: &DiskInfo, mounts: &[Mounted]) -> [String; 4] {
    let name = disk.name.as_str();
    let mounted = mounts.iter().find(|mount| mount.device == name.as_bytes());
    let path = mounted.map(|mount| String::from_utf8_lossy(&mount.path).into_owned());
    [
        name.into(),
        size(disk.sectors * SECTOR),
        u8::from(disk.read_only).to_string(),
        path.unwrap_or_default(),
    ]
}

/// A size in the largest unit of which there is at least one, with one decimal place if that is not
/// zero.
fn size(bytes: u64) -> String {
    let unit = (1..UNITS.len())
        .rev()
        .find(|&unit| bytes >> (10 * unit) > 0);
    let unit = unit.unwrap_or(0);
    let tenths = (u128::from(bytes) * 10) >> (10 * unit);
    match tenths % 10 {
        0 => format!("{}{}", tenths / 10, UNITS[unit]),
        tenth => format!("{}.{tenth}{}", tenths / 10, UNITS[unit]),
    }
}
