//! Running other programs, and telling the user what is going on.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use std::{env, io, panic, process};

use anyhow::{Context, Result, bail};

use crate::{confine, lexer};

/// The exit status when the command line makes no sense, the same as that of the parser of options.
pub const USAGE_STATUS: u8 = 2;

/// The command line asks for something that there is not.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Says on standard error what is done now.
pub fn step(text: impl std::fmt::Display) {
    match io::stderr().is_terminal() {
        true => eprintln!("\x1b[1;32m==>\x1b[0m {text}"),
        false => eprintln!("==> {text}"),
    }
}

/// Says what is done now, does it, and says how long it took.
///
/// # Errors
/// Those of `work`.
pub fn timed<T>(text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    step(text);
    let start = Instant::now();
    let done = work()?;
    eprintln!("    done in {:.1} s", start.elapsed().as_secs_f64());
    Ok(done)
}

/// `text` as a terminal may get it, though a guest, an image or a log has a part in it: each
/// character that is a command to a terminal, or changes the order in which others are shown, is a
/// question mark. Lines and tabs stay; a carriage return at the end of a line goes.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_command =
        |c: char| c.is_control() && !matches!(c, '\n' | '\t') || lexer::is_bidirectional(c);
    if !text.contains(is_command) {
        return text.into();
    }
    let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let lines: Vec<_> = lines.map(|line| line.replace(is_command, "?")).collect();
    lines.join("\n").into()
}

/// Prints `text` on standard output. A reader that has gone away is no error.
pub fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Has this program end without a word, as `head` makes other programs end, when nobody reads its
/// standard output any more. `println!` panics then, since Rust's programs ignore the signal.
pub fn end_with_the_reader() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |why| {
        if is_lost_reader(why.payload_as_str().unwrap_or_default()) {
            process::exit(BROKEN_PIPE_STATUS.into());
        }
        usual(why);
    }));
}

/// The exit status that a shell shows for a program which the signal ended.
pub const BROKEN_PIPE_STATUS: u8 = 128 + 13;

/// Whether a panic with this message says that nobody reads standard output.
fn is_lost_reader(message: &str) -> bool {
    message.starts_with("failed printing to stdout") && message.contains("Broken pipe")
}

/// Whether an error says that nobody reads what we write.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_it = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(is_it)
}

/// Runs `command` to its end with our standard streams.
///
/// # Errors
/// If it cannot be started or fails; the message names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{} failed ({status})", name(command)),
    }
}

/// Runs `command` to its end and gives what it printed.
///
/// # Errors
/// If it cannot be started or fails; the message holds what it wrote to standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = captured(command)?;
    if !status.success() {
        bail!(
            "{} failed ({status})\n{}",
            name(command),
            String::from_utf8_lossy(&stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Runs `command` to its end without input and gives all that came out of it.
///
/// # Errors
/// If it cannot be started.
pub fn captured(command: &mut Command) -> Result<Output> {
    let name = name(command);
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {name}"))
}

fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<&OsStr> = words.collect();
    // What only hides the key in front of the program is of no interest.
    let is_confined = words.contains(&OsStr::new(confine::MARK));
    let program = words.iter().rposition(|word| *word == confine::LAST);
    let start = program.filter(|_| is_confined).map_or(0, |at| at + 2);
    let words = words.iter().skip(start).take(4);
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

/// Where the program `name` is: in the PATH or where Debian keeps what is meant for root.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let fixed = [
        "/usr/local/sbin",
        "/usr/sbin",
        "/sbin",
        "/usr/local/bin",
        "/usr/bin",
        "/bin",
    ];
    let folders = env::split_paths(&path).chain(fixed.into_iter().map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

/// The program `name`, or an error that says which package has it.
///
/// # Errors
/// If it is not there.
pub fn need(name: &str, package: &str) -> Result<PathBuf> {
    find(name).with_context(|| {
        format!("{name} is missing: install Debian's package {package} or run `cargo xtask setup`")
    })
}

/// Whether `file` is there and may be executed.
pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands() {
        for (text, shown) in [
            ("a\tb\nc", "a\tb\nc"),
            ("a\r\r\nb\r", "a\nb"),
            ("a\rb\n", "a?b\n"),
            ("\x1b]0;title\x07\u{9b}2J\x7f\0", "?]0;title??2J??"),
            ("\u{202e}gr\u{fc}n", "?gr\u{fc}n"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_known_by_the_panic_of_println() {
        // The library's words, which are not promised: `xtask-ends-with-its-reader` tries them.
        let words = "failed printing to stdout: Broken pipe (os error 32)";
        assert!(is_lost_reader(words));
        assert!(!is_lost_reader("failed printing to stdout: No space left"));
        assert!(!is_lost_reader("Broken pipe"));
        let broken = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&broken));
        assert!(!is_broken_pipe(&anyhow::anyhow!("Broken pipe")));
    }
}
