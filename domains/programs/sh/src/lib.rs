//! `sh [-c LINE [NAME [ARGUMENT...]]] [FILE [ARGUMENT...]]`: the shell.
//!
//! The language is in the library `shell`; here is what ties it to a process ([`unix`]) and to the lines of
//! its standard input ([`input`]). With the console as standard input it is interactive: it prompts, and
//! Ctrl-C ends what runs in the foreground but not the shell.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod input;
mod unix;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::DescriptorKind;
use shell::Shell;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};
use unix::Unix;

const USAGE: &str = "
usage: sh [FILE [ARGUMENT...]]
       sh -c LINE [NAME [ARGUMENT...]]
Runs the commands in FILE, in LINE, or on the standard input.
  command < in > out 2> errors >> more 2>&1     a | b   a ; b   a && b   a || b   ! a   a &   ( a )   { a; }
  if a; then b; else c; fi   while a; do b; done   until ...   for x in w...; do a; done
  'as it is' \"$x\" \\c   $x ${x:-default} $1 $# $@ $? $$ $!   $(command)   * ? [a-z]   # comment
Built in: cd pwd exit export unset set shift read test [ wait break continue :";

/// Variables that are set if nobody else has.
const DEFAULTS: [(&str, &str); 2] = [("PATH", "/bin:/boot/bin"), ("HOME", "/")];

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// Where the commands come from.
enum Source {
    Text(Vec<u8>),
    Input,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let (source, positional) = match env.arguments() {
        [] => (Source::Input, Vec::from([b"sh".to_vec()])),
        [option, rest @ ..] if option == b"-c" => line_source(rest)?,
        [option, ..] if option.starts_with(b"-") && option.len() > 1 => {
            env.options(USAGE, "")?;
            return Ok(0);
        }
        [file, ..] => match script(env, file)? {
            Some(text) => (Source::Text(text), env.arguments().to_vec()),
            None => return Ok(127),
        },
    };
    let mut environment = env.environment()?;
    for (name, value) in DEFAULTS {
        if environment.iter().all(|(other, _)| other != name) {
            environment.push((String::from(name), value.as_bytes().to_vec()));
        }
    }
    let on_console = matches!(env.process().kind(0), Ok(DescriptorKind::Console));
    let interactive = on_console && matches!(source, Source::Input);
    if interactive {
        env.process().catch_interrupts(true)?;
    }
    let mut shell = Shell::new(
        Unix::new(env, interactive),
        positional,
        environment,
        interactive,
    );
    Ok(match source {
        Source::Text(text) => shell.run_text(&text),
        Source::Input => shell.run_input(),
    })
}

/// Behind `-c`: the line, and `$0` with what follows.
fn line_source(rest: &[Vec<u8>]) -> Result<(Source, Vec<Vec<u8>>), Stop> {
    match rest {
        [] => Err(Stop::usage("-c: a line is missing; `sh --help` says more")),
        [line] => Ok((Source::Text(line.clone()), Vec::from([b"sh".to_vec()]))),
        [line, positional @ ..] => Ok((Source::Text(line.clone()), positional.to_vec())),
    }
}

/// The text of a script; `None`, after a message, if it cannot be read.
fn script(env: &Env, file: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
    match env.open(file).and_then(|mut reader| reader.read_to_end()) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            env.fail(file, &error);
            Ok(None)
        }
    }
}
