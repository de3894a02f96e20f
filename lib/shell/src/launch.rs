//! Starting programs: redirections, pipes, the search in `PATH`, waiting.
//!
//! Who closes what: a redirection or pipe end is opened for one command and closed by the shell as soon as
//! the command has started (the new process has descriptors of its own by then) or, for a builtin, has run.

use crate::ast::*;
use crate::expand::{expand_one, expand_words};
use crate::run::{Flow, INTERRUPTED, Shell};
use crate::system::{Ended, Lookup, OpenMode, SpawnError, SpawnOrder, System};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Where programs are looked for if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/boot/bin";

/// Where a command's descriptors lead.
pub(crate) struct Opened {
    pub descriptors: [u32; 3],
    pub to_close: Vec<u32>,
}

/// Why a command did not start: its status. The message is out already.
struct NotStarted(i32);

/// A process that was started, with the name to tell the user if it crashes.
struct Started {
    pid: u32,
    name: Vec<u8>,
}

impl<S: System> Shell<S> {
    pub(crate) fn close_all(&mut self, descriptors: &[u32]) {
        for &descriptor in descriptors {
            self.system.close(descriptor);
        }
    }

    /// Opens what `redirects` name; `None`, with nothing left open, after a message about what failed.
    pub(crate) fn redirect(&mut self, redirects: &[Redirect]) -> Option<Opened> {
        let mut opened = Opened {
            descriptors: self.descriptors,
            to_close: Vec::new(),
        };
        for redirect in redirects {
            match self.redirect_one(redirect, &opened.descriptors) {
                Ok((descriptor, new)) => {
                    opened.descriptors[redirect.descriptor] = descriptor;
                    opened.to_close.extend(new.then_some(descriptor));
                }
                Err(message) => {
                    self.close_all(&opened.to_close);
                    self.complain(&message);
                    return None;
                }
            }
        }
        Some(opened)
    }

    /// Where one redirection leads, and whether that was opened for it.
    fn redirect_one(&mut self, redirect: &Redirect, now: &[u32; 3]) -> Result<(u32, bool), String> {
        let (word, mode) = match &redirect.target {
            Target::Same(other) => return Ok((now[*other], false)),
            Target::Read(word) => (word, OpenMode::Read),
            Target::Write(word) => (word, OpenMode::Write),
            Target::Append(word) => (word, OpenMode::Append),
        };
        let paths = expand_words(core::slice::from_ref(word), self).map_err(|e| e.to_string())?;
        let [path] = paths.as_slice() else {
            return Err("ambiguous redirection: it must name exactly one file".to_string());
        };
        let descriptor = self.system.open(path, mode);
        let descriptor = descriptor.map_err(|error| alloc::format!("{}: {error}", lossy(path)))?;
        Ok((descriptor, true))
    }

    pub(crate) fn simple(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow {
        let substitutions_before = self.status;
        let (arguments, assignments) = match self.expand_simple(simple) {
            Ok(expanded) => expanded,
            Err(message) => {
                self.complain(&message);
                self.status = 1;
                return Flow::Next;
            }
        };
        let Some(opened) = self.redirect(redirects) else {
            self.status = 1;
            return Flow::Next;
        };
        let flow = match arguments.split_first() {
            None => {
                for (name, value) in assignments {
                    self.assign(&name, value);
                }
                // `x=$(false)` has the status of the substitution; without one the status is 0.
                if !simple.has_substitution() || self.status == substitutions_before {
                    self.status = 0;
                }
                Flow::Next
            }
            Some((name, rest)) if Self::is_builtin(name) => {
                for (name, value) in assignments {
                    self.assign(&name, value);
                }
                let outer = core::mem::replace(&mut self.descriptors, opened.descriptors);
                let flow = self.builtin(name, rest);
                self.descriptors = outer;
                flow
            }
            Some(_) => {
                let started = self.start(&arguments, &assignments, opened.descriptors, false);
                self.close_all(&opened.to_close);
                self.status = self.finish(started);
                return Flow::Next;
            }
        };
        self.close_all(&opened.to_close);
        flow
    }

    #[allow(clippy::type_complexity)]
    fn expand_simple(
        &mut self,
        simple: &Simple,
    ) -> Result<(Vec<Vec<u8>>, Vec<(String, Vec<u8>)>), String> {
        let arguments = expand_words(&simple.words, self).map_err(|e| e.to_string())?;
        let mut assignments = Vec::new();
        for (name, word) in &simple.assignments {
            let value = expand_one(word, self).map_err(|e| e.to_string())?;
            assignments.push((name.clone(), value));
        }
        Ok((arguments, assignments))
    }

    /// `( list )`
    pub(crate) fn subshell(&mut self, text: &[u8], redirects: &[Redirect]) -> Flow {
        let Some(opened) = self.redirect(redirects) else {
            self.status = 1;
            return Flow::Next;
        };
        let started = self.start_shell(text, opened.descriptors, false);
        self.close_all(&opened.to_close);
        self.status = self.finish(started);
        Flow::Next
    }

    /// What `command` writes to its standard output. The status is the command's.
    pub(crate) fn output_of(&mut self, command: &[u8]) -> Result<Vec<u8>, String> {
        let (read_end, write_end) = self.system.pipe()?;
        let descriptors = [self.descriptors[0], write_end, self.descriptors[2]];
        let started = self.start_shell(command, descriptors, false);
        self.system.close(write_end);
        let output = self.system.read_all(read_end);
        self.system.close(read_end);
        self.status = self.finish(started);
        output
    }

    /// Runs the stages of a pipe side by side; the status is that of the last.
    pub(crate) fn run_stages(&mut self, stages: &[Command]) -> Flow {
        let started = self.start_stages(stages, false, None);
        for started in started {
            self.status = self.finish(started);
        }
        Flow::Next
    }

    /// Starts all stages, the first with `input` as its standard input.
    fn start_stages(
        &mut self,
        stages: &[Command],
        background: bool,
        input: Option<u32>,
    ) -> Vec<Result<Started, NotStarted>> {
        let mut started = Vec::new();
        let mut input = input;
        for (index, stage) in stages.iter().enumerate() {
            let pipe = match index + 1 < stages.len() {
                true => match self.system.pipe() {
                    Ok(pipe) => Some(pipe),
                    Err(message) => {
                        self.complain(&message);
                        started.push(Err(NotStarted(1)));
                        break;
                    }
                },
                false => None,
            };
            let outer = self.descriptors;
            self.descriptors[0] = input.unwrap_or(outer[0]);
            self.descriptors[1] = pipe.map_or(outer[1], |(_, write_end)| write_end);
            let stage = self.start_stage(stage, background);
            self.descriptors = outer;
            started.push(stage);
            self.close_all(input.as_slice());
            self.close_all(pipe.map(|(_, write_end)| write_end).as_slice());
            input = pipe.map(|(read_end, _)| read_end);
        }
        self.close_all(input.as_slice());
        started
    }

    /// Starts one command as processes of their own, whatever it is.
    fn start_stage(&mut self, command: &Command, background: bool) -> Result<Started, NotStarted> {
        let opened = self.redirect(&command.redirects).ok_or(NotStarted(1))?;
        let started = match &command.kind {
            CommandKind::Simple(simple) => self.start_simple(simple, &opened, background),
            CommandKind::Subshell(text) => self.start_shell(text, opened.descriptors, background),
            _ => self.start_shell(&command.text, opened.descriptors, background),
        };
        self.close_all(&opened.to_close);
        started
    }

    fn start_simple(
        &mut self,
        simple: &Simple,
        opened: &Opened,
        background: bool,
    ) -> Result<Started, NotStarted> {
        let (arguments, assignments) = self.expand_simple(simple).map_err(|message| {
            self.complain(&message);
            NotStarted(1)
        })?;
        if arguments.first().is_none_or(|name| Self::is_builtin(name)) {
            let text = quoted(&arguments);
            return self.start_shell(&text, opened.descriptors, background);
        }
        self.start(&arguments, &assignments, opened.descriptors, background)
    }

    /// Starts a list's item without waiting for it. Its standard input, unless redirected, is empty, so
    /// that it does not take the lines that are meant for the shell.
    pub(crate) fn start_in_background(&mut self, item: &Item) {
        let Ok((input, write_end)) = self.system.pipe() else {
            self.complain("no pipe for the background command's input");
            self.status = 1;
            return;
        };
        self.system.close(write_end);
        let started = match item.rest.is_empty() && !item.first.negated {
            true => self.start_stages(&item.first.stages, true, Some(input)),
            false => {
                let descriptors = [input, self.descriptors[1], self.descriptors[2]];
                let started = self.start_shell(&item.text, descriptors, true);
                self.system.close(input);
                Vec::from([started])
            }
        };
        self.status = 0;
        for started in started {
            match started {
                Ok(started) => {
                    self.background.push(started.pid);
                    self.last_background = Some(started.pid);
                }
                Err(NotStarted(status)) => self.status = status,
            }
        }
        if let (true, Some(pid)) = (self.interactive, self.last_background) {
            self.system
                .write(self.descriptors[2], alloc::format!("[{pid}]\n").as_bytes());
        }
    }

    /// Starts a new shell that runs `text`, with all variables and positional parameters of this one.
    fn start_shell(
        &mut self,
        text: &[u8],
        descriptors: [u32; 3],
        background: bool,
    ) -> Result<Started, NotStarted> {
        let mut arguments = Vec::from([b"sh".to_vec(), b"-c".to_vec(), text.to_vec()]);
        arguments.extend_from_slice(&self.positional);
        let all = self.variables.iter();
        let all: Vec<_> = all
            .map(|(name, it)| (name.clone(), it.value.clone()))
            .collect();
        self.start(&arguments, &all, descriptors, background)
    }

    /// Starts a program, with `assignments` in its environment on top of the exported variables.
    fn start(
        &mut self,
        arguments: &[Vec<u8>],
        assignments: &[(String, Vec<u8>)],
        descriptors: [u32; 3],
        background: bool,
    ) -> Result<Started, NotStarted> {
        let name = arguments.first().cloned().unwrap_or_default();
        let path = match self.find(&name) {
            Ok(path) => path,
            Err((status, message)) => return Err(self.not_started(status, &name, &message)),
        };
        let mut environment: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, variable) in &self.variables {
            let temporary = assignments.iter().any(|(other, _)| other == name);
            if variable.exported && !temporary {
                environment.push((name.clone(), variable.value.clone()));
            }
        }
        environment.extend_from_slice(assignments);
        let order = SpawnOrder {
            path: &path,
            arguments,
            environment: &environment,
            descriptors,
            background,
        };
        match self.system.spawn(&order) {
            Ok(pid) => Ok(Started { pid, name }),
            Err(SpawnError::Missing) => Err(self.not_started(127, &name, "not found")),
            Err(SpawnError::Killed) => Err(NotStarted(137)),
            Err(SpawnError::Refused(why)) => Err(self.not_started(126, &name, &why)),
        }
    }

    fn not_started(&mut self, status: i32, name: &[u8], why: &str) -> NotStarted {
        self.complain(&alloc::format!("{}: {why}", lossy(name)));
        NotStarted(status)
    }

    /// The path of the program `name`; otherwise a status and a message.
    fn find(&mut self, name: &[u8]) -> Result<Vec<u8>, (i32, String)> {
        if name.contains(&b'/') {
            return match self.system.lookup(name) {
                Lookup::File => Ok(name.to_vec()),
                Lookup::Directory => Err((126, "Is a directory".to_string())),
                Lookup::Missing => Err((127, "No such file or directory".to_string())),
                Lookup::Error(why) => Err((126, why)),
            };
        }
        let path = self.variables.get("PATH").map(|path| path.value.clone());
        let path = path.unwrap_or_else(|| DEFAULT_PATH.to_vec());
        let mut trouble = (127, "command not found".to_string());
        for directory in path
            .split(|&byte| byte == b':')
            .filter(|_| !name.is_empty())
        {
            let directory = if directory.is_empty() {
                b"."
            } else {
                directory
            };
            let candidate = [directory, b"/", name].concat();
            match self.system.lookup(&candidate) {
                Lookup::File => return Ok(candidate),
                Lookup::Error(why) => {
                    trouble = (126, alloc::format!("{why} ({})", lossy(directory)))
                }
                Lookup::Directory | Lookup::Missing => {}
            }
        }
        Err(trouble)
    }

    /// Waits for what was started; its status.
    fn finish(&mut self, started: Result<Started, NotStarted>) -> i32 {
        match started {
            Err(NotStarted(status)) => status,
            Ok(started) => {
                let ended = self.system.wait(started.pid);
                self.unhurt = matches!(ended, Some(Ended::Exited(_)));
                self.status_of(ended, &started.name)
            }
        }
    }

    /// The status that stands for the end of a process.
    pub(crate) fn status_of(&mut self, ended: Option<Ended>, name: &[u8]) -> i32 {
        match ended {
            Some(Ended::Exited(status)) => status & 0xff,
            Some(Ended::Killed) => 137,
            Some(Ended::Crashed) => {
                self.complain(&alloc::format!("{}: crashed (see dmesg)", lossy(name)));
                139
            }
            None => 127,
        }
    }

    /// Waits for background processes: those in `pids`, or all; the status of the last.
    pub(crate) fn wait_for(&mut self, pids: &[u32]) -> Flow {
        let mut status = 0;
        for &pid in pids {
            // Ctrl-C does not reach what is waited for, so it must be looked for.
            while self.interactive && self.system.finished(&[pid]).is_empty() {
                if self.take_interrupt() {
                    self.status = INTERRUPTED;
                    return Flow::Interrupted;
                }
                self.system.pause();
            }
            let known = self.background.contains(&pid);
            self.background.retain(|&other| other != pid);
            let ended = if known { self.system.wait(pid) } else { None };
            status = self.status_of(ended, alloc::format!("{pid}").as_bytes());
        }
        self.status = status;
        Flow::Next
    }
}

impl Simple {
    fn has_substitution(&self) -> bool {
        let words = self
            .assignments
            .iter()
            .map(|(_, word)| word)
            .chain(&self.words);
        words
            .flat_map(|word| &word.parts)
            .any(|part| matches!(part, Part::Command { .. }))
    }
}

/// Bytes as text for a message.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Source text that stands for exactly these arguments.
fn quoted(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for argument in arguments {
        text.push(b'\'');
        for &byte in argument {
            match byte {
                b'\'' => text.extend_from_slice(b"'\\''"),
                _ => text.push(byte),
            }
        }
        text.extend_from_slice(b"' ");
    }
    text
}
