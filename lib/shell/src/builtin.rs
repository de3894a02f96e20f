//! The commands that must run inside the shell, because they change it.

use crate::launch::lossy;
use crate::parser::whole_name;
use crate::run::{Flow, Shell, Variable};
use crate::system::System;
use alloc::string::ToString;
use alloc::vec::Vec;

const BUILTINS: [&str; 15] = [
    ":", "[", "break", "cd", "continue", "exit", "export", "pwd", "read", "set", "shift", "test",
    "umask", "unset", "wait",
];

impl<S: System> Shell<S> {
    pub(crate) fn is_builtin(name: &[u8]) -> bool {
        BUILTINS.iter().any(|builtin| builtin.as_bytes() == name)
    }

    /// Runs builtin `name` with its descriptors in force.
    pub(crate) fn builtin(&mut self, name: &[u8], arguments: &[Vec<u8>]) -> Flow {
        self.builtin_status(name, arguments)
            .unwrap_or_else(|(status, message)| {
                self.complain(&alloc::format!("{}: {message}", lossy(name)));
                self.status = status;
                Flow::Next
            })
    }

    fn builtin_status(
        &mut self,
        name: &[u8],
        arguments: &[Vec<u8>],
    ) -> Result<Flow, (i32, alloc::string::String)> {
        let last_status = core::mem::replace(&mut self.status, 0);
        match name {
            b"exit" => {
                self.status = last_status;
                return self.exit(arguments);
            }
            b"break" | b"continue" => return self.leave_loop(name == b"break", arguments),
            b"wait" => return self.wait_builtin(arguments),
            b"cd" => self.change_directory(arguments)?,
            b"pwd" => self.print_directory()?,
            b"export" => self.export(arguments)?,
            b"set" => self.set(arguments)?,
            b"unset" => self.unset(arguments)?,
            b"shift" => self.shift(arguments)?,
            b"read" => self.read(arguments)?,
            b"test" => self.status = i32::from(!self.test(arguments)?),
            b"[" => match arguments.split_last() {
                Some((last, rest)) if last == b"]" => {
                    self.status = i32::from(!self.test(rest)?);
                }
                _ => return Err((2, "`]` is missing".to_string())),
            },
            b"umask" => return Err((1, "there are no users, so there is no umask".to_string())),
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn exit(&mut self, arguments: &[Vec<u8>]) -> Result<Flow, (i32, alloc::string::String)> {
        if let Some(argument) = arguments.first() {
            match number(argument) {
                Some(status) => self.status = (status & 0xff) as i32,
                None => {
                    let message = alloc::format!("{}: a number is needed", lossy(argument));
                    self.complain(&alloc::format!("exit: {message}"));
                    self.status = 2;
                }
            }
        }
        self.asked_to_exit = true;
        Ok(Flow::Exit)
    }

    fn leave_loop(
        &mut self,
        for_good: bool,
        arguments: &[Vec<u8>],
    ) -> Result<Flow, (i32, alloc::string::String)> {
        if self.loops == 0 {
            return Err((1, "only means something in a loop".to_string()));
        }
        let count = arguments
            .first()
            .map_or(Some(1), |argument| number(argument));
        let Some(count @ 1..) = count else {
            return Err((1, "a count of at least 1 is needed".to_string()));
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.loops);
        Ok(if for_good {
            Flow::Break(count)
        } else {
            Flow::Continue(count)
        })
    }

    fn wait_builtin(
        &mut self,
        arguments: &[Vec<u8>],
    ) -> Result<Flow, (i32, alloc::string::String)> {
        if arguments.is_empty() {
            let all = self.background.clone();
            let flow = self.wait_for(&all);
            if flow == Flow::Next {
                self.status = 0;
            }
            return Ok(flow);
        }
        let mut pids = Vec::new();
        for argument in arguments {
            let pid = number(argument).and_then(|number| u32::try_from(number).ok());
            match pid.filter(|pid| self.background.contains(pid)) {
                Some(pid) => pids.push(pid),
                None => {
                    let message = alloc::format!("{}: not a child of this shell", lossy(argument));
                    return Err((127, message));
                }
            }
        }
        Ok(self.wait_for(&pids))
    }

    fn change_directory(
        &mut self,
        arguments: &[Vec<u8>],
    ) -> Result<(), (i32, alloc::string::String)> {
        let home = self.variables.get("HOME").map(|home| home.value.clone());
        let path = match arguments {
            [] => home.unwrap_or_else(|| b"/".to_vec()),
            [path] => path.clone(),
            _ => return Err((2, "too many arguments".to_string())),
        };
        let changed = self.system.change_directory(&path);
        changed.map_err(|error| (1, alloc::format!("{}: {error}", lossy(&path))))
    }

    fn print_directory(&mut self) -> Result<(), (i32, alloc::string::String)> {
        let mut path = self
            .system
            .working_directory()
            .map_err(|error| (1, error))?;
        path.push(b'\n');
        self.system.write(self.descriptors[1], &path);
        Ok(())
    }

    fn export(&mut self, arguments: &[Vec<u8>]) -> Result<(), (i32, alloc::string::String)> {
        if arguments.is_empty() {
            self.print_variables("export ", |variable| variable.exported);
        }
        for argument in arguments {
            let mut halves = argument.splitn(2, |&byte| byte == b'=');
            let name = halves.next().unwrap_or_default();
            let Some(name) = whole_name(name) else {
                return Err((
                    1,
                    alloc::format!("{}: not a variable name", lossy(argument)),
                ));
            };
            if let Some(value) = halves.next() {
                self.assign(name, value.to_vec());
            }
            if let Some(variable) = self.variables.get_mut(name) {
                variable.exported = true;
            }
        }
        Ok(())
    }

    /// `set` alone lists the variables; `set -- a b` replaces the positional parameters.
    fn set(&mut self, arguments: &[Vec<u8>]) -> Result<(), (i32, alloc::string::String)> {
        match arguments.split_first() {
            None => self.print_variables("", |_| true),
            Some((first, rest)) if first == b"--" => {
                self.positional.truncate(1);
                self.positional.extend_from_slice(rest);
            }
            Some((first, _)) => {
                return Err((
                    2,
                    alloc::format!("{}: not supported by this shell", lossy(first)),
                ));
            }
        }
        Ok(())
    }

    fn print_variables(&mut self, before: &str, which: fn(&Variable) -> bool) {
        let mut text = Vec::new();
        for (name, variable) in self
            .variables
            .iter()
            .filter(|(_, variable)| which(variable))
        {
            text.extend_from_slice(before.as_bytes());
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(&variable.value);
            text.push(b'\n');
        }
        self.system.write(self.descriptors[1], &text);
    }

    fn unset(&mut self, arguments: &[Vec<u8>]) -> Result<(), (i32, alloc::string::String)> {
        for argument in arguments {
            match whole_name(argument) {
                Some(name) => self.variables.remove(name),
                None => {
                    return Err((
                        1,
                        alloc::format!("{}: not a variable name", lossy(argument)),
                    ));
                }
            };
        }
        Ok(())
    }

    fn shift(&mut self, arguments: &[Vec<u8>]) -> Result<(), (i32, alloc::string::String)> {
        let count = arguments
            .first()
            .map_or(Some(1), |argument| number(argument));
        let count = count.and_then(|count| usize::try_from(count).ok());
        match count.filter(|&count| count < self.positional.len().max(1)) {
            Some(count) => {
                self.positional.drain(1..=count);
                Ok(())
            }
            None => Err((1, "not so many parameters".to_string())),
        }
    }

    /// `read NAME...`: a line of standard input into variables, the rest of it into the last.
    fn read(&mut self, arguments: &[Vec<u8>]) -> Result<(), (i32, alloc::string::String)> {
        let names: Option<Vec<&str>> = arguments.iter().map(|name| whole_name(name)).collect();
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            return Err((2, "variable names are needed".to_string()));
        };
        if self.descriptors[0] != 0 {
            return Err((1, "only from the shell's own standard input".to_string()));
        }
        let crate::system::Line::Text(line) = self.system.read_line("") else {
            self.status = 1;
            return Ok(());
        };
        let mut rest = line.trim_ascii();
        for (index, name) in names.iter().enumerate() {
            let blank = rest
                .iter()
                .position(u8::is_ascii_whitespace)
                .unwrap_or(rest.len());
            let end = if index + 1 == names.len() {
                rest.len()
            } else {
                blank
            };
            self.assign(name, rest[..end].to_vec());
            rest = rest[end..].trim_ascii_start();
        }
        Ok(())
    }
}

/// A decimal number, with a sign or without.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}
