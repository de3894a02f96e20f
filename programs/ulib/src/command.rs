//! Running another program from one, as `env`, `time` and `xargs` do.

use crate::{Env, Error, Stop};
use alloc::vec::Vec;
use interfaces::{ExitStatus, Job, RVec, SpawnRequest};

/// Where programs are looked for if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/boot/bin";

/// How many of the arguments in front of a command are options or their values; `valued` lists the
/// letters of options that have one.
pub fn options_end(arguments: &[Vec<u8>], valued: &[u8]) -> usize {
    let mut end = 0;
    while let Some(argument) = arguments.get(end) {
        match argument.as_slice() {
            b"--" => return end + 1,
            [b'-', .., last] if valued.contains(last) => end += 2,
            [b'-', _, ..] => end += 1,
            _ => break,
        }
    }
    end.min(arguments.len())
}

/// Runs a command with this program's environment, and waits for it; its status, as a shell shows
/// it. 126 and 127 come with a message: it could not be run, or was not found.
///
/// # Errors
/// There is no memory for it, or this program is being ended.
pub fn run(env: &Env, command: &[Vec<u8>]) -> Result<i32, Stop> {
    let environment = env.environment()?;
    let variables: Vec<(Vec<u8>, Vec<u8>)> = environment
        .into_iter()
        .map(|(name, value)| (name.into_bytes(), value))
        .collect();
    run_with(env, command, &variables)
}

/// As [`run`] with another environment, in which `PATH` is looked up, too.
///
/// # Errors
/// As there.
pub fn run_with(
    env: &Env,
    command: &[Vec<u8>],
    variables: &[(Vec<u8>, Vec<u8>)],
) -> Result<i32, Stop> {
    let Some(path) = find(env, &command[0], variables) else {
        env.fail(&command[0], &Error::text("No such file or directory"));
        return Ok(127);
    };
    env.flush()?;
    let settings = variables.iter();
    let settings = settings.flat_map(|(name, value)| [name, &b"="[..], value, &[0]].concat());
    let arguments = command.iter().flat_map(|it| [it, &[0][..]].concat());
    let request = SpawnRequest {
        path: RVec::from_slice(&path)?,
        arguments: RVec::from_slice(&arguments.collect::<Vec<u8>>())?,
        environment: RVec::from_slice(&settings.collect::<Vec<u8>>())?,
        descriptors: [0, 1, 2],
        background: false,
        job: Job::Same,
    };
    let pid = match env.process().spawn(request) {
        Ok(pid) => pid,
        Err(errno) => {
            let error = Error::from(errno);
            let status = if error.is_not_found() { 127 } else { 126 };
            env.fail(&command[0], &error);
            return Ok(status);
        }
    };
    Ok(match env.process().wait(pid)?.1 {
        ExitStatus::Exited(status) => status & 0xff,
        ExitStatus::Killed => 137,
        ExitStatus::Crashed => 139,
    })
}

/// The image of a command: at its path, or where `PATH` leads.
fn find(env: &Env, command: &[u8], variables: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    if command.contains(&b'/') {
        return Some(command.to_vec());
    }
    let path = variables.iter().find(|(name, _)| name == b"PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
    let mut candidates = path
        .split(|&byte| byte == b':')
        .map(|directory| [directory, b"/", command].concat());
    candidates.find(|candidate| env.metadata(candidate, true).is_ok())
}
