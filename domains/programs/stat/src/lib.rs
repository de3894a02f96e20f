//! `stat [-L] [-c FORMAT] FILE...`: shows what is known of files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use interfaces::{FileKind, Metadata};
use textutil::clock::format;
use textutil::directory::Kind;
use textutil::listing::{mode_text, owner};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, print};

const USAGE: &str = "
usage: stat [-L] [-c FORMAT] FILE...
Shows what is known of each FILE. -L: of what a symbolic link leads to.
  -c FORMAT  %n name, %s length, %F kind, %a %A permissions, %h links, %i inode, %u %g %U %G owner and group,
             %b blocks of %B bytes, %Y %y date of the last change, %% a percent sign";

/// Bytes in the unit of `%b`.
const BLOCK: u64 = 512;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "Lc:")?;
    if options.operands.is_empty() {
        return Err(Stop::usage("a file is missing; `stat --help` says more"));
    }
    let own = "  File: %n\n  Size: %s\tBlocks: %b\t%F\nInode: %i\tLinks: %h\n\
               Access: (%a/%A)  Uid: (%u/%U)  Gid: (%g/%G)\nModify: %y";
    let format = options.value('c').unwrap_or(own.as_bytes());
    for file in &options.operands {
        match env.metadata(file, options.has('L')) {
            Ok(metadata) => show(env, file, &metadata, format)?,
            Err(error) => env.fail(file, &error),
        }
    }
    Ok(env.status())
}

fn show(env: &Env, file: &[u8], metadata: &Metadata, format: &[u8]) -> Result<(), Stop> {
    let mut rest = format;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let letter = rest.first().copied().filter(|_| byte == b'%');
        match letter {
            None => env.write(&[byte])?,
            Some(b'n') => env.write(file)?,
            Some(letter) => match field(letter, metadata) {
                Some(text) => print!(env, "{text}")?,
                None => env.write(b"?")?,
            },
        }
        rest = &rest[usize::from(letter.is_some())..];
    }
    env.write(b"\n")
}

fn field(letter: u8, metadata: &Metadata) -> Option<String> {
    let number = match letter {
        b'F' => return Some(String::from(kind_text(metadata))),
        b'A' => return Some(mode_text(kind(metadata), metadata.mode)),
        b'a' => return Some(alloc::format!("{:o}", metadata.mode & 0o7777)),
        b'U' => return Some(owner(metadata.user)),
        b'G' => return Some(owner(metadata.group)),
        b'y' => return format(b"%F %T.000000000 +0000", metadata.modified),
        b'%' => return Some(String::from("%")),
        b's' => metadata.size,
        b'h' => u64::from(metadata.links),
        b'i' => metadata.inode,
        b'u' => u64::from(metadata.user),
        b'g' => u64::from(metadata.group),
        b'b' => metadata.allocated.div_ceil(BLOCK),
        b'B' => BLOCK,
        b'Y' => metadata.modified,
        _ => return None,
    };
    Some(alloc::format!("{number}"))
}

fn kind(metadata: &Metadata) -> Kind {
    match metadata.kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Other => Kind::Other,
    }
}

fn kind_text(metadata: &Metadata) -> &'static str {
    match metadata.kind {
        FileKind::Regular if metadata.size == 0 => "regular empty file",
        FileKind::Regular => "regular file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::Other => "special file",
    }
}
