//! `sh [-c LINE [NAME [ARGUMENT...]]] [FILE [ARGUMENT...]]`: the shell.
//!
//! The language is in the library `shell`; here is what ties it to a process ([`unix`]) and to the
//! lines of its standard input ([`input`]). With the console as standard input it is interactive:
//! it prompts, and Ctrl-C ends what runs in the foreground but not the shell.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod editor;
mod input;
mod unix;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::DescriptorKind;
use shell::Shell;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};
use unix::Unix;

const USAGE: &str = "
usage: sh [-aCefnux] [-o NAME] [FILE [ARGUMENT...]]
       sh [-aCefnux] [-o NAME] -c LINE [NAME [ARGUMENT...]]
       sh [-aCefnux] [-o NAME] -s [ARGUMENT...]
Runs the commands in FILE, in LINE, or on the standard input.
  command < in > out 2> errors >> more 2>&1 << END     a | b   a ; b   a && b   a || b   ! a   a &   ( a )   { a; }
  if a; then b; else c; fi   while a; do b; done   until ...   for x in w...; do a; done   case x in a|b*) c;; esac
  f() { a; }   'as it is' \"$x\" \\c   $x ${x:-default} ${x#start} ${x%end} ${#x} $1 $# $@ $? $$ $!
  $(command) $((1 + x))   * ? [a-z]   # comment
Built in: cd pwd exit export readonly unset set shift local return eval . exec trap read getopts echo printf test [
          command type which wait jobs fg bg kill break continue true false : help history clear";

/// Counts the interactive shells above each other.
const LEVEL: &str = "SHLVL";
/// The message of the day.
const MESSAGE: &[u8] = b"/etc/motd";

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

/// `-S STATE`: what a shell tells the one that it starts as its subshell.
fn take_state(arguments: &[Vec<u8>]) -> (Option<&[u8]>, &[Vec<u8>]) {
    match arguments {
        [option, state, rest @ ..] if option == b"-S" => (Some(state), rest),
        all => (None, all),
    }
}

/// What stands in front of the operands.
#[derive(Default)]
struct Switches {
    /// As the arguments of `set`.
    of_set: Vec<Vec<u8>>,
    /// `-c`
    line: bool,
    /// `-s`
    input: bool,
}

/// Takes the options off the front of the arguments. Like those of `set`, they may begin with `+`
/// and stand together.
fn take_switches(mut arguments: &[Vec<u8>]) -> Result<(Switches, &[Vec<u8>]), Stop> {
    let mut switches = Switches::default();
    while let Some((first, rest)) = arguments.split_first() {
        let (sign, letters) = match first.as_slice() {
            b"--" => return Ok((switches, rest)),
            [sign @ (b'-' | b'+'), letters @ ..] if !letters.is_empty() => (*sign, letters),
            _ => break,
        };
        arguments = rest;
        for &letter in letters {
            match letter {
                b'c' => switches.line = true,
                b's' => switches.input = true,
                b'o' => {
                    let Some((name, rest)) = arguments.split_first() else {
                        return Err(Stop::usage("-o: a name is missing; `sh --help` says more"));
                    };
                    arguments = rest;
                    let option = Vec::from([sign, b'o']);
                    switches.of_set.extend([option, name.clone()]);
                }
                letter => switches.of_set.push(Vec::from([sign, letter])),
            }
        }
    }
    Ok((switches, arguments))
}

fn main(env: &Env) -> Result<i32, Stop> {
    let (state, arguments) = take_state(env.arguments());
    if arguments.first().is_some_and(|it| it == b"--help") {
        env.options_of(&arguments[..1], USAGE, "")?;
        return Ok(0);
    }
    let (switches, arguments) = take_switches(arguments)?;
    let (source, positional) = match arguments {
        all if switches.line => line_source(all)?,
        [file, ..] if !switches.input => match script(env, file)? {
            Some(text) => (Source::Text(text), arguments.to_vec()),
            // As dash.
            None => return Ok(2),
        },
        rest => {
            let mut positional = Vec::from([b"sh".to_vec()]);
            positional.extend_from_slice(rest);
            (Source::Input, positional)
        }
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
        greet(env, &mut environment);
    }
    let mut shell = Shell::new(
        Unix::new(env, interactive),
        positional,
        environment,
        interactive,
    );
    match state {
        Some(state) => shell.restore(state),
        None => shell.set_parent(),
    }
    if let Err(why) = shell.set_switches(&switches.of_set) {
        return Err(Stop::usage(&why));
    }
    Ok(match source {
        Source::Text(text) => shell.run_text(&text),
        Source::Input => shell.run_input(),
    })
}

/// Shows the message of the day, unless a shell above this one has.
fn greet(env: &Env, environment: &mut Vec<(String, Vec<u8>)>) {
    let level = environment.iter().position(|(name, _)| name == LEVEL);
    let above = level.map_or(0, |at| {
        let (_, text) = environment.swap_remove(at);
        let text = core::str::from_utf8(&text).unwrap_or_default();
        text.parse::<u32>().unwrap_or_default()
    });
    let level = above.saturating_add(1).to_string();
    environment.push((String::from(LEVEL), level.into_bytes()));
    if above > 0 {
        return;
    }
    let message = env.open(MESSAGE).and_then(|mut file| file.read_to_end());
    // A disk without one has nothing to say.
    let _ = message.map(|text| env.write(&text));
    let _ = env.flush();
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
