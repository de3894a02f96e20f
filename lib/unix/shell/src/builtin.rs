//! The commands that must run inside the shell, because they change it or know it, and a few that
//! are run so often that a process for each would be felt.

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

    fn change_directory(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (physical, arguments) = physical(arguments);
        let from = self.directory().ok();
        let (path, shown) = match arguments {
            [] => (
                self.variable("HOME").unwrap_or_else(|| b"/".to_vec()),
                false,
            ),
            [path] if path == b"-" => {
                let old = self.variable("OLDPWD");
                (old.ok_or((2, "OLDPWD not set".to_string()))?, true)
            }
            [path] => (path.clone(), false),
            _ => return Err((2, "too many arguments".to_string())),
        };
        let logical = match (physical, &from) {
            (false, Some(from)) => self.logical(from, &path),
            _ => None,
        };
        let changed = self
            .system
            .change_directory(logical.as_deref().unwrap_or(&path));
        changed.map_err(|error| (2, format!("{}: {error}", lossy(&path))))?;
        let now = match logical {
            Some(logical) => logical,
            None => self.system.working_directory().unwrap_or(path),
        };
        if let Some(from) = from {
            self.assign("OLDPWD", from).map_err(|error| (2, error))?;
        }
        self.assign("PWD", now.clone())
            .map_err(|error| (2, error))?;
        Ok(match shown {
            true => self.put(&[&now, &b"\n"[..]].concat()),
            false => Flow::Next,
        })
    }

    fn print_directory(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let path = match physical(arguments).0 {
            true => self.system.working_directory(),
            false => self.directory(),
        };
        let path = path.map_err(|error| (2, error))?;
        Ok(self.put(&[&path, &b"\n"[..]].concat()))
    }

    /// The working directory as the user went there, through symbolic links perhaps: `PWD`, if that
    /// is right.
    fn directory(&mut self) -> Result<Vec<u8>, String> {
        match self.variable("PWD") {
            Some(path) if path.starts_with(b"/") && self.system.same_file(&path, b".") => Ok(path),
            _ => self.system.working_directory(),
        }
    }

    /// Where `path` leads from the directory `from`, with `..` taken for what stands before it
    /// (POSIX, `cd`, step 8). `None` if that is no directory: then the system may say what is
    /// wrong.
    fn logical(&mut self, from: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let whole = match path.starts_with(b"/") {
            true => path.to_vec(),
            false => [from, b"/", path].concat(),
        };
        let mut done: Vec<u8> = Vec::new();
        for name in whole.split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => {
                    if self.system.lookup(&[&done, &b"/"[..]].concat()) != Lookup::Directory {
                        return None;
                    }
                    let parent = done.iter().rposition(|&byte| byte == b'/');
                    done.truncate(parent.unwrap_or(0));
                }
                name => done.extend_from_slice(&[b"/", name].concat()),
            }
        }
        if done.is_empty() {
            done.push(b'/');
        }
        Some(done)
    }

    /// XCU 2.14 `times`: user and system time of the shell, then of its children.
    fn times(&mut self) -> Outcome {
        let [a, b, c, d] = self.system.times().map(|milliseconds| {
            let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
            format!("{}m{}.{rest:03}s", seconds / 60, seconds % 60)
        });
        Ok(self.put(format!("{a} {b}\n{c} {d}\n").as_bytes()))
    }

    /// `export` and `readonly`.
    fn mark(
        &mut self,
        arguments: &[Vec<u8>],
        before: &str,
        is_marked: fn(&Variable) -> bool,
        mark: fn(&mut Variable),
    ) -> Outcome {
        if arguments.is_empty() || arguments == [b"-p"] {
            return Ok(self.print_variables(before, is_marked));
        }
        for argument in arguments {
            let (name, value) = halves(argument);
            let name = variable_name(name)?;
            if let Some(value) = value {
                self.assign(name, value.to_vec())
                    .map_err(|error| (2, error))?;
            }
            mark(self.variables.entry(name.to_string()).or_default());
        }
        Ok(Flow::Next)
    }

    /// `set` alone lists the variables; `set -- a b` replaces the positional parameters; letters of
    /// switches have their opposites with `+`.
    fn set(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        if arguments.is_empty() {
            return Ok(self.print_variables("", |_| true));
        }
        let mut rest = arguments;
        while let Some((first, others)) = rest.split_first() {
            match first.as_slice() {
                b"--" => {
                    rest = others;
                    break;
                }
                b"-" => {
                    self.switches.trace = false;
                    rest = others;
                    if rest.is_empty() {
                        return Ok(Flow::Next);
                    }
                    break;
                }
                [sign @ (b'-' | b'+'), letters @ ..] if !letters.is_empty() => {
                    let on = *sign == b'-';
                    rest = others;
                    if letters == b"o" {
                        let name = others.first().map_or(&b""[..], |name| name);
                        rest = others.get(1..).unwrap_or_default();
                        match name {
                            b"" => return Ok(self.list_switches(on)),
                            name => self.switch_by_name(name, on)?,
                        }
                        continue;
                    }
                    if let Some(&wrong) = letters.iter().find(|it| !self.switch(**it, on)) {
                        return Err((2, format!("Illegal option -{}", char::from(wrong))));
                    }
                    if rest.is_empty() {
                        return Ok(Flow::Next);
                    }
                }
                _ => break,
            }
        }
        let only_switches = rest.is_empty() && arguments.iter().all(|it| it != b"--");
        if !only_switches {
            self.positional.truncate(1);
            self.positional.extend_from_slice(rest);
        }
        Ok(Flow::Next)
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

    /// Switches what a letter of `set` stands for; `false` if it stands for nothing.
    pub(crate) fn switch(&mut self, letter: u8, on: bool) -> bool {
        match letter {
            b'e' => self.switches.exit_on_error = on,
            b'u' => self.switches.unset_is_error = on,
            b'x' => self.switches.trace = on,
            b'f' => self.switches.no_patterns = on,
            b'a' => self.switches.export_all = on,
            b'C' => self.switches.keep_files = on,
            // For a script; a person could not get out of it again.
            b'n' => self.switches.check_only = on && !self.interactive,
            // Job control and showing input: known, without effect.
            b'b' | b'm' | b'v' => {}
            _ => return false,
        }
        true
    }

    /// `set -o` for a person, `set +o` as commands.
    fn list_switches(&mut self, readable: bool) -> Flow {
        let on = self.flags();
        let line = |(name, letter): &(&str, u8)| match (readable, on.contains(letter)) {
            (true, on) => format!("{name:<16}{}\n", if on { "on" } else { "off" }),
            (false, true) => format!("set -o {name}\n"),
            (false, false) => format!("set +o {name}\n"),
        };
        let heading = if readable {
            "Current option settings\n"
        } else {
            ""
        };
        let text: String = NAMED_SWITCHES.iter().map(line).collect();
        self.put(&[heading.as_bytes(), text.as_bytes()].concat())
    }

    fn switch_by_name(&mut self, name: &[u8], on: bool) -> Result<(), (i32, String)> {
        let found = NAMED_SWITCHES.iter().find(|(it, _)| it.as_bytes() == name);
        match found {
            Some(&(_, letter)) => self.switch(letter, on),
            None => return Err((2, format!("Illegal option -o {}", lossy(name)))),
        };
        Ok(())
    }

    fn print_variables(&mut self, before: &str, which: fn(&Variable) -> bool) -> Flow {
        let mut text = Vec::new();
        for (name, variable) in self.variables.iter().filter(|(_, it)| which(it)) {
            text.extend_from_slice(before.as_bytes());
            text.extend_from_slice(name.as_bytes());
            if let Some(value) = &variable.value {
                text.push(b'=');
                text.extend_from_slice(crate::launch::quoted_one(value).trim_ascii_end());
            }
            text.push(b'\n');
        }
        self.put(&text)
    }

    fn unset(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (functions, names) = match arguments.split_first() {
            Some((option, rest)) if option == b"-f" => (true, rest),
            Some((option, rest)) if option == b"-v" => (false, rest),
            _ => (false, arguments),
        };
        for argument in names {
            let name = variable_name(argument)?;
            if functions {
                self.functions.remove(name);
                continue;
            }
            if self.variables.get(name).is_some_and(|it| it.read_only) {
                return Err((2, format!("{name}: is read only")));
            }
            self.variables.remove(name);
        }
        Ok(Flow::Next)
    }

    fn shift(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let count = arguments
            .first()
            .map_or(Some(1), |argument| number(argument));
        let count = count.and_then(|count| usize::try_from(count).ok());
        match count.filter(|&count| count < self.positional.len().max(1)) {
            Some(count) => {
                self.positional.drain(1..=count);
                Ok(Flow::Next)
            }
            None => Err((2, "can't shift that many".to_string())),
        }
    }

    /// `trap TEXT CONDITION...`. Of the conditions only `EXIT` comes; the others are kept to be
    /// shown.
    fn trap(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first == b"--" => rest,
            _ => arguments,
        };
        let Some((action, conditions)) = arguments.split_first() else {
            let shown = self.traps.iter().map(|(number, text)| {
                let text = crate::launch::quoted_one(text);
                let name = condition_name(*number).unwrap_or_default();
                [b"trap -- ", text.as_slice(), name.as_bytes(), b"\n"].concat()
            });
            let shown: Vec<Vec<u8>> = shown.collect();
            return Ok(self.put(&shown.concat()));
        };
        // A number in front, or a condition alone: what was usual again.
        let usual = conditions.is_empty() || number(action).is_some_and(|number| number >= 0);
        let conditions = if usual { arguments } else { conditions };
        for condition in conditions {
            let Some(number) = condition_number(condition) else {
                self.complain(&format!("trap: {}: bad trap", lossy(condition)));
                self.status = 1;
                return Ok(Flow::Next);
            };
            match usual || action == b"-" {
                true => self.traps.remove(&number),
                false => self.traps.insert(number, action.clone()),
            };
        }
        Ok(Flow::Next)
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

/// The names of what `set` switches, with their letters.
const NAMED_SWITCHES: [(&str, u8); 7] = [
    ("errexit", b'e'),
    ("noglob", b'f'),
    ("noexec", b'n'),
    ("xtrace", b'x'),
    ("noclobber", b'C'),
    ("allexport", b'a'),
    ("nounset", b'u'),
];

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

/// What `-L` and `-P` in front of the others say, the last of them, and the others.
fn physical(mut arguments: &[Vec<u8>]) -> (bool, &[Vec<u8>]) {
    let mut physical = false;
    while let Some((option, rest)) = arguments.split_first() {
        match option.as_slice() {
            b"-L" => physical = false,
            b"-P" => physical = true,
            b"--" => return (physical, rest),
            _ => break,
        }
        arguments = rest;
    }
    (physical, arguments)
}

/// A decimal number, with a sign or without.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}
