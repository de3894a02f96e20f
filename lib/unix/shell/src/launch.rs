//! Starting programs: redirections, pipes, the search in `PATH`, waiting.
//!
//! Who closes what: a redirection or pipe end is opened for one command and closed by the shell as
//! soon as the command has started (the new process has descriptors of its own by then) or, for a
//! builtin, has run.

mod redirect;
mod stages;

use crate::ast::*;
use crate::expand::{Environment, ExpandError, expand_one, expand_value, expand_words};
use crate::parse;
use crate::run::{Descriptors, Flow, Shell};
use crate::system::{Lookup, OpenMode, SpawnError, SpawnOrder, System};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Where programs are looked for if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/boot/bin";

/// Most bytes that the shell writes into a pipe whose reader has not started: less than any pipe
/// holds.
const PIPED_AHEAD: usize = 16 * 1024;

/// Where a command's descriptors lead.
pub(crate) struct Opened {
    pub descriptors: Descriptors,
    pub to_close: Vec<u32>,
}

/// A simple command that can be run: it has a name.
struct Ready {
    function: Option<Rc<Function>>,
    /// At least one.
    arguments: Vec<Vec<u8>>,
    assignments: Vec<(String, Vec<u8>)>,
    opened: Box<Opened>,
}

/// What came of starting a command.
pub(crate) enum Started {
    /// A process, with the name to tell the user if it crashes.
    Process { pid: u32, name: Vec<u8> },
    /// Nothing to wait for: it did not start (the message is out already), or is done. Its status.
    Done(i32),
}

impl Started {
    /// The process' number, if there is one.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Started::Process { pid, .. } => Some(*pid),
            Started::Done(_) => None,
        }
    }
}

impl<S: System> Shell<S> {
    #[inline(never)]
    pub(crate) fn simple(&mut self, simple: &Simple, command: &Command) -> Flow {
        let mut ready = match self.make_ready(simple, command) {
            Ok(ready) => ready,
            Err(flow) => return flow,
        };
        if ready.function.is_none() && !Self::is_builtin(&ready.arguments[0]) {
            return self.run_program(&ready, &command.text);
        }
        core::mem::swap(&mut self.descriptors, &mut ready.opened.descriptors);
        let flow = match ready.assignments.is_empty() {
            true => self.carry_out(&ready),
            false => self.assign_and_carry_out(&mut ready),
        };
        core::mem::swap(&mut self.descriptors, &mut ready.opened.descriptors);
        self.close_all(&ready.opened.to_close);
        flow
    }

    /// Runs a function or a builtin.
    fn carry_out(&mut self, ready: &Ready) -> Flow {
        match &ready.function {
            Some(function) => self.call_function(function, &ready.arguments[1..]),
            None => self.builtin(&ready.arguments[0], &ready.arguments[1..]),
        }
    }

    #[inline(never)]
    fn assign_and_carry_out(&mut self, ready: &mut Ready) -> Flow {
        let assignments = core::mem::take(&mut ready.assignments);
        match Self::is_special(&ready.arguments[0]) {
            true => self
                .assign_all(assignments)
                .unwrap_or_else(|| self.carry_out(ready)),
            false => self.with_assignments(assignments, |shell| shell.carry_out(ready)),
        }
    }

    /// Expands a simple command and opens its redirections. `Err` if there is nothing more to do:
    /// it failed, or has no name, or was `exec`.
    // Not inlined, as others here: functions call each other on a small stack, and what this one
    // needs is not needed any more then.
    #[inline(never)]
    fn make_ready(&mut self, simple: &Simple, command: &Command) -> Result<Box<Ready>, Flow> {
        self.substituted = None;
        let arguments = match expand_words(&simple.words, self) {
            Ok(arguments) => arguments,
            Err(error) => return Err(self.bad_expansion(&error)),
        };
        let Some(name) = arguments.first() else {
            return Err(self.only_assignments(simple, command));
        };
        let special = Self::is_special(name);
        let Some(opened) = self.redirect(&command.redirects) else {
            self.status = 2;
            return Err(match special {
                true => self.fatal(2),
                false => Flow::Next,
            });
        };
        let assignments = match self.expand_assignments(simple) {
            Ok(assignments) => assignments,
            Err(flow) => {
                self.close_all(&opened.to_close);
                return Err(flow);
            }
        };
        self.trace(&assignments, &arguments);
        if name == b"exec" {
            return Err(self.exec(&arguments[1..], assignments, *opened));
        }
        let function = self.functions.get(lossy(name).as_str()).cloned();
        Ok(Box::new(Ready {
            function: function.filter(|_| !special),
            arguments,
            assignments,
            opened,
        }))
    }

    /// Runs a program in the foreground.
    #[inline(never)]
    fn run_program(&mut self, ready: &Ready, text: &[u8]) -> Flow {
        let opened = &ready.opened;
        let descriptors = Self::for_program(&opened.descriptors);
        // What is wrong is told where the program would have.
        let outer = core::mem::replace(&mut self.descriptors, opened.descriptors);
        let started = self.start(&ready.arguments, &ready.assignments, descriptors, false);
        self.descriptors = outer;
        self.close_all(&opened.to_close);
        self.wait_in_foreground(Vec::from([started]), text)
    }

    /// `x=1` without a command: the variables are set for good. The status is that of the last
    /// substitution.
    #[inline(never)]
    fn only_assignments(&mut self, simple: &Simple, command: &Command) -> Flow {
        let assignments = match self.expand_assignments(simple) {
            Ok(assignments) => assignments,
            Err(flow) => return flow,
        };
        self.trace(&assignments, &[]);
        if let Some(flow) = self.assign_all(assignments) {
            return flow;
        }
        let Some(opened) = self.redirect(&command.redirects) else {
            self.status = 2;
            return Flow::Next;
        };
        self.close_all(&opened.to_close);
        self.status = self.substituted.unwrap_or(0);
        Flow::Next
    }

    /// `set -x`: shows what is run.
    fn trace(&mut self, assignments: &[(String, Vec<u8>)], arguments: &[Vec<u8>]) {
        if !self.switches.trace {
            return;
        }
        let mut line = b"+".to_vec();
        for (name, value) in assignments {
            line.extend_from_slice(&[b" ", name.as_bytes(), b"=", value].concat());
        }
        for argument in arguments {
            line.extend_from_slice(&[b" ", argument.as_slice()].concat());
        }
        line.push(b'\n');
        self.write_to(2, &line);
    }

    fn expand_assignments(&mut self, simple: &Simple) -> Result<Vec<(String, Vec<u8>)>, Flow> {
        let mut assignments = Vec::new();
        for (name, word) in &simple.assignments {
            match expand_value(word, self) {
                Ok(value) => assignments.push((name.clone(), value)),
                Err(error) => return Err(self.bad_expansion(&error)),
            }
            // What stands behind may use it.
            if let (true, Some((name, value))) = (simple.words.is_empty(), assignments.last()) {
                let (name, value) = (name.clone(), value.clone());
                if let Err(error) = self.set_variable(&name, value) {
                    return Err(self.bad_expansion(&error));
                }
            }
        }
        Ok(assignments)
    }

    /// Sets the variables for good; `Some` if one cannot be set.
    fn assign_all(&mut self, assignments: Vec<(String, Vec<u8>)>) -> Option<Flow> {
        for (name, value) in assignments {
            if let Err(error) = self.set_variable(&name, value) {
                return Some(self.bad_expansion(&error));
            }
        }
        None
    }

    /// Runs something with variables that have their old values again afterwards.
    fn with_assignments(
        &mut self,
        assignments: Vec<(String, Vec<u8>)>,
        run: impl FnOnce(&mut Self) -> Flow,
    ) -> Flow {
        let names = assignments.iter().map(|(name, _)| name.clone());
        let names: Vec<String> = names.collect();
        let old: Vec<_> = names
            .iter()
            .map(|it| self.variables.get(it).cloned())
            .collect();
        let flow = match self.assign_all(assignments) {
            Some(flow) => flow,
            None => {
                for name in &names {
                    self.variables.entry(name.clone()).or_default().exported = true;
                }
                run(self)
            }
        };
        for (name, old) in names.into_iter().zip(old) {
            self.put_back(name, old);
        }
        flow
    }

    /// Gives a variable its old value, or none.
    #[inline(never)]
    pub(crate) fn put_back(&mut self, name: String, old: Option<crate::run::Variable>) {
        match old {
            Some(variable) => self.variables.insert(name, variable),
            None => self.variables.remove(&name),
        };
    }

    /// `exec`: with arguments, the program in place of the shell; otherwise the redirections stay.
    #[inline(never)]
    fn exec(
        &mut self,
        arguments: &[Vec<u8>],
        assignments: Vec<(String, Vec<u8>)>,
        opened: Opened,
    ) -> Flow {
        if arguments.is_empty() {
            self.descriptors = opened.descriptors;
            self.owned.extend(opened.to_close);
            let used = self.descriptors;
            let unused = |it: &u32| !used.contains(&Some(*it));
            let (gone, kept) = core::mem::take(&mut self.owned)
                .into_iter()
                .partition(unused);
            self.owned = kept;
            let gone: Vec<u32> = gone;
            self.close_all(&gone);
            self.status = 0;
            return self.assign_all(assignments).unwrap_or(Flow::Next);
        }
        let descriptors = Self::for_program(&opened.descriptors);
        let started = self.start(arguments, &assignments, descriptors, false);
        self.close_all(&opened.to_close);
        match self.wait_in_foreground(Vec::from([started]), b"exec") {
            Flow::Next => Flow::Exit,
            other => other,
        }
    }

    /// `( list )`
    #[inline(never)]
    pub(crate) fn subshell(&mut self, text: &[u8], command: &Command) -> Flow {
        let Some(opened) = self.redirect(&command.redirects) else {
            self.status = 2;
            return Flow::Next;
        };
        let descriptors = Self::for_program(&opened.descriptors);
        let started = self.start_shell(text, descriptors, false);
        self.close_all(&opened.to_close);
        self.wait_in_foreground(Vec::from([started]), &command.text)
    }

    /// Starts a program in the foreground, whatever functions there are.
    pub(crate) fn start_program(&mut self, arguments: &[Vec<u8>]) -> Started {
        let descriptors = Self::for_program(&self.descriptors);
        self.start(arguments, &[], descriptors, false)
    }

    /// Starts a program, with `assignments` in its environment on top of the exported variables.
    fn start(
        &mut self,
        arguments: &[Vec<u8>],
        assignments: &[(String, Vec<u8>)],
        descriptors: [u32; 3],
        background: bool,
    ) -> Started {
        let name = arguments.first().cloned().unwrap_or_default();
        let path = match self.find(&name) {
            Ok(path) => path,
            Err((status, message)) => return self.not_started(status, &name, &message),
        };
        let mut environment: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, variable) in &self.variables {
            let temporary = assignments.iter().any(|(other, _)| other == name);
            if let (true, false, Some(value)) = (variable.exported, temporary, &variable.value) {
                environment.push((name.clone(), value.clone()));
            }
        }
        environment.extend_from_slice(assignments);
        let order = SpawnOrder {
            path: &path,
            arguments,
            environment: &environment,
            descriptors,
            background,
            leader: self.leader,
        };
        match self.system.spawn(&order) {
            Ok(pid) => Started::Process { pid, name },
            Err(SpawnError::Missing) => self.not_started(127, &name, "not found"),
            Err(SpawnError::Killed) => Started::Done(137),
            Err(SpawnError::Refused(why)) => self.not_started(126, &name, &why),
        }
    }

    fn not_started(&mut self, status: i32, name: &[u8], why: &str) -> Started {
        self.complain(&alloc::format!("{}: {why}", lossy(name)));
        Started::Done(status)
    }

    /// The path of the program `name`; otherwise a status and a message.
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<Vec<u8>, (i32, String)> {
        if name.contains(&b'/') {
            return match self.system.lookup(name) {
                Lookup::File => Ok(name.to_vec()),
                Lookup::Directory => Err((126, "Is a directory".to_string())),
                Lookup::Missing => Err((127, "No such file or directory".to_string())),
                Lookup::Error(why) => Err((126, why)),
            };
        }
        let path = self.variable("PATH");
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
}

/// Bytes as text for a message.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Source text that stands for exactly this, with a blank behind.
pub(crate) fn quoted_one(argument: &[u8]) -> Vec<u8> {
    let mut text = Vec::from([b'\'']);
    for &byte in argument {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            _ => text.push(byte),
        }
    }
    text.extend_from_slice(b"' ");
    text
}

/// Source text that stands for exactly these arguments.
fn quoted(arguments: &[Vec<u8>]) -> Vec<u8> {
    arguments.iter().flat_map(|it| quoted_one(it)).collect()
}
