//! `stat [-L] [-c FORMAT] FILE...`: shows what is known of files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{FileKind, Metadata};
use textutil::clock::format;
use textutil::directory::Kind;
use textutil::listing::{mode_text, owner};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: stat [-L] [-c FORMAT] FILE...
Shows what is known of each FILE. -L: of what a symbolic link leads to.
  -c FORMAT  %n %N name, %s length, %F kind, %a %A %f permissions, %h links, %i inode, %u %g %U %G owner and group,
             %b blocks of %B bytes, %Y %y date of the last change, %% a percent sign;
             %8s and %-8s with a width";

/// Bytes in the unit of `%b`.
const BLOCK: u64 = 512;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// The widest field, in bytes.
const WIDEST: usize = 4096;

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
        if byte != b'%' || rest.is_empty() {
            env.write(&[byte])?;
            continue;
        }
        // As for `printf`: perhaps `-`, and a width.
        let left = rest.starts_with(b"-");
        let zeros = rest.starts_with(b"0");
        let digits = &rest[usize::from(left)..];
        let count = digits.iter().take_while(|it| it.is_ascii_digit()).count();
        let width = core::str::from_utf8(&digits[..count]).ok();
        let width = width
            .and_then(|it| it.parse().ok())
            .unwrap_or(0)
            .min(WIDEST);
        let Some((&letter, behind)) = digits[count..].split_first() else {
            env.write(b"?")?;
            break;
        };
        rest = behind;
        let text = match letter {
            b'n' => file.to_vec(),
            b'N' => name_and_target(env, file, metadata),
            letter => field(letter, metadata).map_or(b"?".to_vec(), String::into_bytes),
        };
        let padding = width.saturating_sub(text.len());
        let padding = alloc::vec![if zeros { b'0' } else { b' ' }; padding];
        env.write(&match left {
            true => [text, padding].concat(),
            false => [padding, text].concat(),
        })?;
    }
    env.write(b"\n")
}

/// `'NAME'`, and of a symbolic link where it leads.
fn name_and_target(env: &Env, file: &[u8], metadata: &Metadata) -> Vec<u8> {
    let name = [b"'", file, b"'"].concat();
    match metadata.kind {
        FileKind::Symlink => {
            let target = env.read_link(file).unwrap_or_default();
            [&name[..], b" -> '", &target, b"'"].concat()
        }
        _ => name,
    }
}

fn field(letter: u8, metadata: &Metadata) -> Option<String> {
    let number = match letter {
        b'F' => return Some(String::from(kind_text(metadata))),
        b'A' => return Some(mode_text(kind(metadata), metadata.mode)),
        b'a' => return Some(alloc::format!("{:o}", metadata.mode & 0o7777)),
        b'U' => return Some(owner(metadata.user)),
        b'G' => return Some(owner(metadata.group)),
        b'y' => {
            let (seconds, rest) = (metadata.modified / SECOND, metadata.modified % SECOND);
            let time = format(b"%F %T", seconds)?;
            return Some(alloc::format!("{time}.{rest:09} +0000"));
        }
        b'%' => return Some(String::from("%")),
        b'f' => return Some(alloc::format!("{:x}", type_bits(metadata) | metadata.mode)),
        b's' => metadata.size,
        b'h' => u64::from(metadata.links),
        b'i' => metadata.inode,
        b'u' => u64::from(metadata.user),
        b'g' => u64::from(metadata.group),
        b'b' => metadata.allocated.div_ceil(BLOCK),
        b'B' => BLOCK,
        b'Y' => metadata.modified / SECOND,
        _ => return None,
    };
    Some(alloc::format!("{number}"))
}

/// The bits of a Unix mode that say what a file is.
fn type_bits(metadata: &Metadata) -> u16 {
    match metadata.kind {
        FileKind::Regular => 0o100_000,
        FileKind::Directory => 0o040_000,
        FileKind::Symlink => 0o120_000,
        FileKind::CharacterDevice => 0o020_000,
        FileKind::BlockDevice => 0o060_000,
        FileKind::Pipe => 0o010_000,
        FileKind::Socket => 0o140_000,
    }
}

fn kind(metadata: &Metadata) -> Kind {
    match metadata.kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::CharacterDevice => Kind::CharacterDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::Pipe => Kind::Pipe,
        FileKind::Socket => Kind::Socket,
    }
}

fn kind_text(metadata: &Metadata) -> &'static str {
    match metadata.kind {
        FileKind::Regular if metadata.size == 0 => "regular empty file",
        FileKind::Regular => "regular file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::CharacterDevice => "character special file",
        FileKind::BlockDevice => "block special file",
        FileKind::Pipe => "fifo",
        FileKind::Socket => "socket",
    }
}
