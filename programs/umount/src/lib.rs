//! `umount [-f] DIRECTORY...`: ends mounted file systems.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{Errno, FsError};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: umount [-f] DIRECTORY...
Brings everything to the disk that is mounted over DIRECTORY (or is called that), and ends its file system.
  -f  also if the disk is gone or fails: what is not on it then is lost";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "f")?;
    if options.operands.is_empty() {
        return Err(Stop::usage(
            "a directory is missing; `umount --help` says more",
        ));
    }
    let forced = options.has('f');
    for path in &options.operands {
        let unmounted = env.with_path(path, |process, path| process.unmount(path, forced));
        match unmounted {
            Ok(()) => {}
            Err(Error::System(Errno::Invalid)) => env.fail(path, &Error::text("not mounted")),
            Err(error @ Error::System(Errno::Fs(FsError::Down | FsError::Device))) if !forced => {
                env.fail(path, &error);
                let text =
                    "it stays mounted, so that nothing is lost; -f gives up what is not on it";
                env.fail(path, &Error::text(text));
            }
            Err(error) => env.fail(path, &error),
        }
    }
    Ok(env.status())
}
