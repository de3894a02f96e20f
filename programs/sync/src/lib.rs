//! `sync`: returns when everything that was written, or what was written to some files, is on the
//! disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use interfaces::RVec;
use ulib::{Env, Error, Handle, Process, Program, READ, RpcResult, Stop};

const USAGE: &str = "
usage: sync [-d] [FILE...]
Returns when everything that was written is on the disk, or with arguments these files.
  -d  of files what they contain, without what that is found without, as times";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "d")?;
    if options.operands.is_empty() {
        env.process().sync()?;
    }
    for path in &options.operands {
        if let Err(error) = sync_file(env, path, options.has('d')) {
            env.fail(path, &error);
        }
    }
    Ok(env.status())
}

fn sync_file(env: &Env, path: &[u8], data_only: bool) -> Result<(), Error> {
    let process = env.process();
    let descriptor = process.open(&RVec::from_slice(path)?, READ)?;
    let synced = match data_only {
        true => process.sync_data(descriptor),
        false => process.sync_file(descriptor),
    };
    process.close(descriptor)?;
    Ok(synced?)
}
