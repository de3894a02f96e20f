//! `env [-i] [-u NAME] [NAME=VALUE...] [COMMAND [ARGUMENT...]]`: runs a program in a changed environment.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{ExitStatus, RVec, SpawnRequest};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: env [-i] [-u NAME] [NAME=VALUE...] [COMMAND [ARGUMENT...]]
Runs COMMAND with these variables, too; without COMMAND prints the environment.
  -i  without the other variables   -u NAME  without this one";

/// Where programs are looked for if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/boot/bin";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// Variables with their values.
type Variables = Vec<(Vec<u8>, Vec<u8>)>;

fn main(env: &Env) -> Result<i32, Stop> {
    let arguments = env.arguments();
    let options = env.options_of(&arguments[..options_end(arguments)], USAGE, "iu:")?;
    let mut rest = &arguments[options_end(arguments)..];
    let mut variables: Variables = Vec::new();
    if !options.has('i') {
        let own = env.environment()?.into_iter();
        variables.extend(own.map(|(name, value)| (name.into_bytes(), value)));
    }
    for unset in options.values('u') {
        variables.retain(|(name, _)| name != unset);
    }
    while let [setting, behind @ ..] = rest
        && let Some(sign) = setting.iter().position(|&byte| byte == b'=')
    {
        let (name, value) = (setting[..sign].to_vec(), setting[sign + 1..].to_vec());
        match variables.iter_mut().find(|(other, _)| *other == name) {
            Some(variable) => variable.1 = value,
            None => variables.push((name, value)),
        }
        rest = behind;
    }
    if !rest.is_empty() {
        return run(env, rest, &variables);
    }
    for (name, value) in variables {
        env.write(&[&name, &b"="[..], &value, b"\n"].concat())?;
    }
    Ok(0)
}

/// How many arguments are options or their values.
fn options_end(arguments: &[Vec<u8>]) -> usize {
    let mut end = 0;
    while let Some(argument) = arguments.get(end) {
        match argument.as_slice() {
            b"--" => return end + 1,
            b"-u" => end += 2,
            [b'-', _, ..] => end += 1,
            _ => break,
        }
    }
    end.min(arguments.len())
}

fn run(env: &Env, command: &[Vec<u8>], variables: &Variables) -> Result<i32, Stop> {
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
    };
    let pid = match env.process().spawn(request) {
        Ok(pid) => pid,
        Err(errno) => {
            env.fail(&command[0], &errno.into());
            return Ok(126);
        }
    };
    Ok(match env.process().wait(pid)?.1 {
        ExitStatus::Exited(status) => status,
        ExitStatus::Killed => 137,
        ExitStatus::Crashed => 139,
    })
}

/// The image of a command: at its path, or where `PATH` leads.
fn find(env: &Env, command: &[u8], variables: &Variables) -> Option<Vec<u8>> {
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
