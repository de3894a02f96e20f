//! `umount DIRECTORY...`: ends mounted file systems.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::Errno;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: umount DIRECTORY...
Brings everything to the disk that is mounted over DIRECTORY (or is called that), and ends its file system.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "")?;
    if options.operands.is_empty() {
        return Err(Stop::usage(
            "a directory is missing; `umount --help` says more",
        ));
    }
    for path in &options.operands {
        let unmounted = env.with_path(path, |process, path| process.unmount(path));
        match unmounted {
            Ok(()) => {}
            Err(Error::System(Errno::Invalid)) => env.fail(path, &Error::text("not mounted")),
            Err(error) => env.fail(path, &error),
        }
    }
    Ok(env.status())
}
