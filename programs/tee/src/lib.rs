//! `tee [-a] [FILE...]`: copies the standard input to files and to the standard output.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::OpenFlags;
use ulib::{Env, Error, Handle, Output, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: tee [-a] [FILE...]
Copies the standard input to the standard output and to each FILE. -a: behind what is in the FILEs.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "a")?;
    let mut files = Vec::new();
    for file in &options.operands {
        match open(env, file, options.has('a')) {
            Ok(output) => files.push((file, output)),
            Err(error) => env.fail(file, &error),
        }
    }
    let mut reader = env.stdin();
    while let Some(data) = reader.shared()? {
        env.write_shared(data)?;
        // A file that cannot be written any more is told of once; the others go on.
        files.retain_mut(|(file, output)| match output.write_shared(data) {
            Ok(()) => true,
            Err(error) => {
                env.fail(file, &error);
                false
            }
        });
    }
    Ok(env.status())
}

fn open(env: &Env, file: &[u8], append: bool) -> Result<Output, Error> {
    let flags = OpenFlags {
        read: false,
        write: true,
        create: true,
        truncate: !append,
        append,
        exclusive: false,
    };
    let descriptor = env.with_path(file, |process, path| process.open(path, flags))?;
    // It is closed when the program ends.
    Ok(Output::new(env.process().clone(), descriptor))
}
