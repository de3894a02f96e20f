//! `env [-i] [-u NAME] [NAME=VALUE...] [COMMAND [ARGUMENT...]]`: runs a program in a changed
//! environment.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, command};

const USAGE: &str = "
usage: env [-i] [-u NAME] [NAME=VALUE...] [COMMAND [ARGUMENT...]]
Runs COMMAND with these variables, too; without COMMAND prints the environment.
  -i, -  without the other variables   -u NAME  without this one";

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
    let end = command::options_end(arguments, b"u");
    let options = env.options_of(&arguments[..end], USAGE, "iu:")?;
    let mut rest = &arguments[end..];
    let mut variables: Variables = Vec::new();
    let mut nothing = options.has('i');
    if let [dash, behind @ ..] = rest
        && dash == b"-"
    {
        (nothing, rest) = (true, behind);
    }
    if !nothing {
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
        return command::run_with(env, rest, &variables);
    }
    for (name, value) in variables {
        env.write(&[&name, &b"="[..], &value, b"\n"].concat())?;
    }
    Ok(0)
}
