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
    run_with(env, command, &own_variables(env)?)
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
    match begin_with(env, command, variables)? {
        Ok(pid) => finish(env, pid),
        Err(status) => Ok(status),
    }
}

/// Starts a command with this program's environment; the number of its process, which [`finish`]
/// waits for, or the status of one that cannot be started, with a message.
///
/// # Errors
/// There is no memory for it, or this program is being ended.
pub fn begin(env: &Env, command: &[Vec<u8>]) -> Result<Result<u32, i32>, Stop> {
    begin_with(env, command, &own_variables(env)?)
}

/// Waits for a command; its status, as a shell shows it.
///
/// # Errors
/// This program is being ended.
pub fn finish(env: &Env, pid: u32) -> Result<i32, Stop> {
    Ok(match env.process().wait(pid)?.1 {
        ExitStatus::Exited(status) => status & 0xff,
        ExitStatus::Killed => 137,
        ExitStatus::Crashed => 139,
    })
}

/// Names with their values.
type Variables = Vec<(Vec<u8>, Vec<u8>)>;

fn own_variables(env: &Env) -> Result<Variables, Stop> {
    let environment = env.environment()?.into_iter();
    Ok(environment
        .map(|(name, value)| (name.into_bytes(), value))
        .collect())
}

fn begin_with(
    env: &Env,
    command: &[Vec<u8>],
    variables: &[(Vec<u8>, Vec<u8>)],
) -> Result<Result<u32, i32>, Stop> {
    let Some(path) = find(env, &command[0], variables) else {
        env.fail(&command[0], &Error::text("No such file or directory"));
        return Ok(Err(127));
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
    Ok(env.process().spawn(request).map_err(|errno| {
        let error = Error::from(errno);
        let status = if error.is_not_found() { 127 } else { 126 };
        env.fail(&command[0], &error);
        status
    }))
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
