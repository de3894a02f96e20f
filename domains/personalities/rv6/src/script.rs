//! Scripts: a file that begins with `#!PROGRAM [ARGUMENT]` is started as `PROGRAM [ARGUMENT] FILE`,
//! if its mode says that it may be executed.

use alloc::vec::Vec;

use interfaces::{Errno, RVec, RpcError, RpcResult};
use vfs::walk::file_name;

use crate::errors;
use crate::held::Held;
use crate::system::System;
use crate::volumes::Node;

/// Longest first line, in bytes.
const LINE: usize = 256;

/// The bits of a mode that let a file be executed.
const EXECUTABLE: u16 = 0o111;

/// Where programs are that the script's system may have elsewhere.
const PROGRAMS: &[u8] = b"/boot/bin/";

/// What is started instead of a script.
pub struct Interpreter {
    /// Path of the program.
    pub path: RVec<u8>,
    /// Its arguments, each followed by a zero byte: its name, that of the script, and those of the
    /// script.
    pub arguments: RVec<u8>,
}

/// What is to be started if the file `node` at `path` is a script; `None` if it is none. `exists`
/// tells whether there is something at a path.
///
/// # Errors
/// The file system's.
pub fn interpreter(
    system: &System,
    node: Node,
    path: &[u8],
    arguments: &[u8],
    exists: impl Fn(&[u8]) -> bool,
) -> Result<Option<Interpreter>, Errno> {
    let metadata = system.volumes.metadata(&node).map_err(errors::fs)?;
    if metadata.mode & EXECUTABLE == 0 {
        return Ok(None);
    }
    let held = Held::new(&system.volumes, node).map_err(errors::fs)?;
    let read = held.ask(|live| live.fs.read(node.inode, 0, RVec::filled(0, LINE)?));
    let start = read.map_err(errors::fs)?;
    let Some((program, argument)) = first_line(&start) else {
        return Ok(None);
    };
    let elsewhere = [PROGRAMS, file_name(program)].concat();
    let program = match exists(program) {
        true => program,
        false => &elsewhere,
    };
    Ok(Some(compose(program, argument, path, arguments)?))
}

/// Program and argument of a `#!` line. Both are taken to be ordinary text.
fn first_line(start: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = start.strip_prefix(b"#!")?;
    let end = line.iter().position(|&byte| byte == b'\n')?;
    let line = line[..end].trim_ascii();
    let program = line.iter().position(u8::is_ascii_whitespace);
    let (program, argument) = line.split_at(program.unwrap_or(line.len()));
    (!program.is_empty() && !line.contains(&0)).then_some((program, argument.trim_ascii()))
}

fn compose(
    program: &[u8],
    argument: &[u8],
    script: &[u8],
    arguments: &[u8],
) -> RpcResult<Interpreter> {
    let own_name = arguments.iter().position(|&byte| byte == 0);
    let others = own_name.map_or(&[][..], |end| &arguments[end + 1..]);
    let (zero, no): (&[u8], &[u8]) = (b"\0", b"");
    let end = if argument.is_empty() { no } else { zero };
    let parts = [program, zero, argument, end, script, zero, others];
    let mut all = Vec::new();
    all.try_reserve_exact(parts.iter().map(|part| part.len()).sum())
        .map_err(|_| RpcError::NoMemory)?;
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(Interpreter {
        path: RVec::from_slice(program)?,
        arguments: RVec::from_slice(&all)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_first_line() {
        for (text, expected) in [
            (&b"#!/bin/sh\necho"[..], Some((&b"/bin/sh"[..], &b""[..]))),
            (b"#! /bin/sh  -e \n", Some((b"/bin/sh", b"-e"))),
            (b"#!/bin/x a b\n", Some((b"/bin/x", b"a b"))),
            (b"#!/bin/sh", None),
            (b"#!\n", None),
            (b"#! a\0b\n", None),
            (b"echo\n", None),
            (b"", None),
        ] {
            assert_eq!(first_line(text), expected);
        }
    }
}
