//! The commands that must run inside the shell, because they change it or know it, and a few that
//! are run so often that a process for each would be felt.

mod directory;
mod variables;

use crate::expand::Environment as _;
use crate::function::{halves, variable_name};
use crate::launch::lossy;
use crate::run::{Flow, Shell, Variable};
use crate::system::{Lookup, System};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Builtins whose errors end a script, and assignments in front of which stay (POSIX, 2.14).
const SPECIAL: [&str; 15] = [
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "times", "trap", "unset",
];

const OTHERS: [&str; 25] = [
    "[", "bg", "cd", "clear", "command", "echo", "false", "fg", "getopts", "hash", "help",
    "history", "jobs", "kill", "local", "printf", "pwd", "read", "test", "true", "type", "ulimit",
    "umask", "wait", "which",
];

/// What a builtin comes to; an error has a status and a message.
pub(crate) type Outcome = Result<Flow, (i32, String)>;

impl<S: System> Shell<S> {
    pub(crate) fn is_special(name: &[u8]) -> bool {
        SPECIAL.iter().any(|special| special.as_bytes() == name)
    }

    pub(crate) fn is_builtin(name: &[u8]) -> bool {
        let others = OTHERS.iter().any(|builtin| builtin.as_bytes() == name);
        others || Self::is_special(name)
    }

    /// The names of all builtins.
    pub(crate) fn builtin_names() -> impl Iterator<Item = &'static str> {
        SPECIAL.into_iter().chain(OTHERS)
    }

    /// Runs builtin `name` with its descriptors in force.
    pub(crate) fn builtin(&mut self, name: &[u8], arguments: &[Vec<u8>]) -> Flow {
        if name == b"eval" {
            return self.eval(arguments);
        }
        self.simple_builtin(name, arguments)
    }

    /// `eval`, which may be nested as functions are, so that it should need little stack.
    fn eval(&mut self, arguments: &[Vec<u8>]) -> Flow {
        let text = arguments.join(&b' ');
        if text.trim_ascii().is_empty() {
            self.status = 0;
        }
        self.nested(&text)
    }

    #[inline(never)]
    fn simple_builtin(&mut self, name: &[u8], arguments: &[Vec<u8>]) -> Flow {
        let last_status = core::mem::replace(&mut self.status, 0);
        match self.dispatch(name, arguments, last_status) {
            Ok(flow) => flow,
            Err((status, message)) => {
                self.complain(&format!("{}: {message}", lossy(name)));
                self.status = status;
                match Self::is_special(name) {
                    true => self.fatal(status),
                    false => Flow::Next,
                }
            }
        }
    }

    #[inline(never)]
    fn dispatch(&mut self, name: &[u8], arguments: &[Vec<u8>], last: i32) -> Outcome {
        match name {
            b":" | b"true" | b"hash" => Ok(Flow::Next),
            b"false" => {
                self.status = 1;
                Ok(Flow::Next)
            }
            b"exit" => self.exit(last, arguments),
            b"return" => self.return_builtin(last, arguments),
            b"break" | b"continue" => self.leave_loop(name == b"break", arguments),
            b"." => self.dot(arguments),
            b"command" | b"type" => self.command_builtin(name, arguments),
            b"echo" | b"printf" => {
                let printed = Self::printed(name, arguments)?;
                Ok(self.put_printed(name, printed))
            }
            b"test" => self.test_builtin(arguments),
            b"[" => match arguments.split_last() {
                Some((last, rest)) if last == b"]" => self.test_builtin(rest),
                _ => Err((2, "`]` is missing".to_string())),
            },
            b"jobs" => self.list_jobs(),
            b"fg" => self.bring_to_foreground(arguments),
            b"bg" => self.send_to_background(arguments),
            b"kill" => self.kill(arguments),
            b"wait" => self.wait_builtin(arguments),
            b"umask" => self.umask(arguments),
            b"help" => self.help(),
            b"clear" => self.clear(),
            b"history" => self.list_history(arguments),
            b"which" => self.which(arguments),
            b"ulimit" => Err((2, "there is nothing like it here".to_string())),
            _ => self.of_variables(name, arguments),
        }
    }

    #[inline(never)]
    fn of_variables(&mut self, name: &[u8], arguments: &[Vec<u8>]) -> Outcome {
        match name {
            b"cd" => self.change_directory(arguments),
            b"pwd" => self.print_directory(arguments),
            b"export" => self.mark(
                arguments,
                "export ",
                |it| it.exported,
                |it| it.exported = true,
            ),
            b"readonly" => self.mark(
                arguments,
                "readonly ",
                |it| it.read_only,
                |it| it.read_only = true,
            ),
            b"local" => self.local(arguments),
            b"set" => self.set(arguments),
            b"unset" => self.unset(arguments),
            b"shift" => self.shift(arguments),
            b"times" => self.times(),
            b"trap" => self.trap(arguments),
            b"read" => self.read(arguments),
            _ => self.getopts(arguments),
        }
    }

    /// `umask`: files are made with mode 644, directories with 755, and that cannot be changed.
    fn umask(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        match arguments {
            [] => Ok(self.put(b"0022\n")),
            [option] if option == b"-S" => Ok(self.put(b"u=rwx,g=rx,o=rx\n")),
            [mask] if matches!(mask.as_slice(), b"22" | b"022" | b"0022") => Ok(Flow::Next),
            _ => Err((2, "only 022 is possible here".to_string())),
        }
    }

    /// Runs source text inside this one's.
    fn nested(&mut self, text: &[u8]) -> Flow {
        match self.is_deep() {
            true => {
                self.complain("nested too deep");
                self.fatal(2)
            }
            false => self.source(text),
        }
    }

    fn exit(&mut self, last: i32, arguments: &[Vec<u8>]) -> Outcome {
        self.status = last;
        if let Some(argument) = arguments.first() {
            match number(argument).filter(|&status| status >= 0) {
                Some(status) => self.status = (status & 0xff) as i32,
                None => {
                    self.complain(&format!("exit: Illegal number: {}", lossy(argument)));
                    self.status = 2;
                }
            }
        }
        Ok(Flow::Exit)
    }

    fn leave_loop(&mut self, for_good: bool, arguments: &[Vec<u8>]) -> Outcome {
        let count = arguments
            .first()
            .map_or(Some(1), |argument| number(argument));
        let Some(count @ 1..) = count else {
            return Err((2, "a count of at least 1 is needed".to_string()));
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.loops);
        Ok(match (count, for_good) {
            // Outside a loop it does nothing, as in other shells.
            (0, _) => Flow::Next,
            (_, true) => Flow::Break(count),
            (_, false) => Flow::Continue(count),
        })
    }

    /// `. FILE`
    #[inline(never)]
    fn dot(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let Some(name) = arguments.first() else {
            return Err((2, "a file is needed".to_string()));
        };
        let path = match name.contains(&b'/') {
            true => name.clone(),
            false => self.find(name).map_err(|(_, why)| (2, why))?,
        };
        let text = self.system.read_file(&path);
        let text = text.map_err(|error| (2, format!("{}: {error}", lossy(name))))?;
        Ok(match self.nested(&text) {
            Flow::Return => Flow::Next,
            other => other,
        })
    }

    /// `command [-pvV] NAME [ARGUMENT...]`, `type NAME...`
    #[inline(never)]
    fn command_builtin(&mut self, name: &[u8], arguments: &[Vec<u8>]) -> Outcome {
        let is_type = name == b"type";
        let arguments = match arguments.split_first() {
            // The usual `PATH` is the only one that has all programs anyway.
            Some((option, rest)) if !is_type && matches!(option.as_slice(), b"-p" | b"--") => rest,
            _ => arguments,
        };
        match arguments.split_first() {
            None => Ok(Flow::Next),
            Some((option, rest)) if is_type || option == b"-v" || option == b"-V" => {
                let short = !is_type && option == b"-v";
                for name in if is_type { arguments } else { rest } {
                    self.say_what(name, short);
                }
                Ok(Flow::Next)
            }
            Some((name, rest)) if Self::is_builtin(name) => {
                self.builtin(name, rest);
                Ok(Flow::Next)
            }
            Some(_) => {
                let started = self.start_program(arguments);
                Ok(self.wait_in_foreground(Vec::from([started]), &arguments.join(&b' ')))
            }
        }
    }

    fn say_what(&mut self, name: &[u8], short: bool) {
        let text = lossy(name);
        let (what, path) = if crate::parser::is_reserved(name) {
            ("a shell keyword".to_string(), text.clone())
        } else if self.functions.contains_key(text.as_str()) {
            ("a shell function".to_string(), text.clone())
        } else if Self::is_builtin(name) {
            let what = match Self::is_special(name) {
                true => "a special shell builtin",
                false => "a shell builtin",
            };
            (what.to_string(), text.clone())
        } else if let Ok(path) = self.find(name) {
            (lossy(&path), lossy(&path))
        } else {
            self.status = 127;
            if !short {
                self.put(format!("{text}: not found\n").as_bytes());
            }
            return;
        };
        match short {
            true => self.put(format!("{path}\n").as_bytes()),
            false => self.put(format!("{text} is {what}\n").as_bytes()),
        };
    }

    /// Switches what the arguments of `sh` say, as `set` does: letters behind `-` or `+`, and names
    /// behind an `o` alone.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn set_switches(&mut self, arguments: &[Vec<u8>]) -> Result<(), String> {
        match arguments.is_empty() {
            true => Ok(()),
            false => self.set(arguments).map(drop).map_err(|(_, why)| why),
        }
    }

    /// The names of all builtins and functions.
    pub(crate) fn command_names(&self) -> Vec<Vec<u8>> {
        if !self.interactive {
            return Vec::new();
        }
        let builtins = SPECIAL.iter().chain(&OTHERS);
        let builtins = builtins.map(|name| name.as_bytes().to_vec());
        let functions = self.functions.keys().map(|name| name.as_bytes().to_vec());
        builtins.chain(functions).collect()
    }
}

/// The conditions of `trap` and the signals of `kill`, by their numbers on Linux.
const CONDITIONS: [&str; 32] = [
    "EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
    "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

pub(crate) fn condition_name(number: usize) -> Option<&'static str> {
    CONDITIONS.get(number).copied()
}

/// The number of a condition that is given by its name or its number.
pub(crate) fn condition_number(text: &[u8]) -> Option<usize> {
    let named = CONDITIONS.iter().position(|it| it.as_bytes() == text);
    let number = || number(text).and_then(|number| usize::try_from(number).ok());
    named.or_else(|| number().filter(|&number| number < CONDITIONS.len()))
}

/// A decimal number, with a sign or without.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}
