//! Starting programs: redirections, pipes, the search in `PATH`, waiting.
//!
//! Who closes what: a redirection or pipe end is opened for one command and closed by the shell as
//! soon as the command has started (the new process has descriptors of its own by then) or, for a
//! builtin, has run.

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
    pub(crate) fn close_all(&mut self, descriptors: &[u32]) {
        for &descriptor in descriptors {
            self.system.close(descriptor);
        }
    }

    /// Opens what `redirects` name; `None`, with nothing left open, after a message about what
    /// failed.
    pub(crate) fn redirect(&mut self, redirects: &[Redirect]) -> Option<Box<Opened>> {
        let mut opened = Box::new(Opened {
            descriptors: self.descriptors,
            to_close: Vec::new(),
        });
        for redirect in redirects {
            match self.redirect_one(redirect, &opened.descriptors) {
                Ok((descriptor, new)) => {
                    opened.descriptors[redirect.descriptor] = descriptor;
                    opened.to_close.extend(descriptor.filter(|_| new));
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
    fn redirect_one(
        &mut self,
        redirect: &Redirect,
        now: &Descriptors,
    ) -> Result<(Option<u32>, bool), String> {
        let (word, mode) = match &redirect.target {
            Target::Same(word) => return self.same_descriptor(word, now).map(|it| (it, false)),
            Target::Document(document) => {
                let word = document.borrow().clone();
                let text = expand_one(&word, self).map_err(|error| error.to_string())?;
                return Ok((Some(self.system.document(&text)?), true));
            }
            Target::Read(word) => (word, OpenMode::Read),
            Target::Write(word) if self.switches.keep_files => (word, OpenMode::Create),
            Target::Write(word) | Target::Replace(word) => (word, OpenMode::Write),
            Target::Append(word) => (word, OpenMode::Append),
        };
        // Neither split nor matched with names (POSIX, 2.7).
        let path = expand_one(word, self).map_err(|error| error.to_string())?;
        let descriptor = self.system.open(&path, mode);
        let descriptor = descriptor.map_err(|error| alloc::format!("{}: {error}", lossy(&path)))?;
        Ok((Some(descriptor), true))
    }

    fn same_descriptor(&mut self, word: &Word, now: &Descriptors) -> Result<Option<u32>, String> {
        let text = expand_one(word, self).map_err(|error| error.to_string())?;
        match text.as_slice() {
            b"-" => Ok(None),
            [digit @ b'0'..=b'9'] => match now[usize::from(digit - b'0')] {
                Some(descriptor) => Ok(Some(descriptor)),
                None => Err(alloc::format!("{}: Bad file descriptor", lossy(&text))),
            },
            _ => Err(alloc::format!(
                "{}: only descriptors 0 to 9 can be redirected",
                lossy(&text)
            )),
        }
    }

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

    /// What `command` writes to its standard output. The status is the command's.
    pub(crate) fn output_of(&mut self, command: &[u8]) -> Result<Vec<u8>, String> {
        let (read_end, write_end) = self.system.pipe()?;
        let outer = self.descriptors;
        self.descriptors[1] = Some(write_end);
        let started = match simple_pipeline(command) {
            Some(stages) => self.start_stages(&stages, false, None),
            None => {
                let descriptors = Self::for_program(&self.descriptors);
                Vec::from([self.start_shell(command, descriptors, false)])
            }
        };
        self.descriptors = outer;
        self.system.close(write_end);
        let output = self.system.read_all(read_end);
        self.system.close(read_end);
        self.status = 0;
        self.wait_in_foreground(started, command);
        output
    }

    /// Runs the stages of a pipe side by side; the status is that of the last.
    #[inline(never)]
    pub(crate) fn run_stages(&mut self, stages: &[Command]) -> Flow {
        let started = self.start_stages(stages, false, None);
        let texts: Vec<&[u8]> = stages.iter().map(|stage| stage.text.as_slice()).collect();
        self.wait_in_foreground(started, &texts.join(&b" | "[..]))
    }

    /// Starts all stages, the first with `input` as its standard input.
    fn start_stages(
        &mut self,
        stages: &[Command],
        background: bool,
        input: Option<u32>,
    ) -> Vec<Started> {
        let mut started = Vec::new();
        let mut input = input;
        let outer_leader = self.leader.take();
        for (index, stage) in stages.iter().enumerate() {
            let pipe = match index + 1 < stages.len() {
                true => match self.system.pipe() {
                    Ok(pipe) => Some(pipe),
                    Err(message) => {
                        self.complain(&message);
                        started.push(Started::Done(2));
                        break;
                    }
                },
                false => None,
            };
            let outer = self.descriptors;
            self.descriptors[0] = input.or(outer[0]);
            self.descriptors[1] = pipe.map_or(outer[1], |(_, write_end)| Some(write_end));
            let stage = self.start_stage(stage, background);
            self.descriptors = outer;
            self.leader = self.leader.or(stage.pid());
            started.push(stage);
            self.close_all(input.as_slice());
            self.close_all(pipe.map(|(_, write_end)| write_end).as_slice());
            input = pipe.map(|(read_end, _)| read_end);
        }
        self.close_all(input.as_slice());
        self.leader = outer_leader;
        started
    }

    /// Starts one command as processes of their own, whatever it is.
    fn start_stage(&mut self, command: &Command, background: bool) -> Started {
        let Some(opened) = self.redirect(&command.redirects) else {
            return Started::Done(2);
        };
        let descriptors = Self::for_program(&opened.descriptors);
        let outer = core::mem::replace(&mut self.descriptors, opened.descriptors);
        let started = match &command.kind {
            CommandKind::Simple(simple) => self.start_simple(simple, &opened, background),
            CommandKind::Subshell(text) => self.start_shell(text, descriptors, background),
            _ => self.start_shell(&command.text, descriptors, background),
        };
        self.descriptors = outer;
        self.close_all(&opened.to_close);
        started
    }

    /// Starts a simple command. What its expansion changes is not to be seen in this shell.
    fn start_simple(&mut self, simple: &Simple, opened: &Opened, background: bool) -> Started {
        let values = simple.assignments.iter().map(|(_, value)| value);
        let changes = simple.words.iter().chain(values).any(Word::has_effects);
        let before = changes.then(|| self.variables.clone());
        self.substituted = None;
        let expanded = self.expand_stage(simple);
        if let Some(before) = before {
            self.variables = before;
        }
        let (arguments, assignments) = match expanded {
            Ok(expanded) => expanded,
            Err(error) => {
                self.complain(&error.to_string());
                return Started::Done(2);
            }
        };
        let Some(name) = arguments.first() else {
            return Started::Done(self.substituted.unwrap_or(0));
        };
        let is_function = self.functions.contains_key(lossy(name).as_str());
        if !is_function
            && !background
            && let Some(done) = self.at_once(&arguments, opened)
        {
            return done;
        }
        let descriptors = Self::for_program(&opened.descriptors);
        if is_function || Self::is_builtin(name) {
            let mut text = Vec::new();
            for (name, value) in &assignments {
                text.extend_from_slice(&[name.as_bytes(), b"=", &quoted_one(value)].concat());
            }
            // A quoted word is never a reserved one.
            text.extend_from_slice(&quoted(&arguments));
            return self.start_shell(&text, descriptors, background);
        }
        self.start(&arguments, &assignments, descriptors, background)
    }

    #[allow(clippy::type_complexity)]
    fn expand_stage(
        &mut self,
        simple: &Simple,
    ) -> Result<(Vec<Vec<u8>>, Vec<(String, Vec<u8>)>), ExpandError> {
        let arguments = expand_words(&simple.words, self)?;
        let mut assignments = Vec::new();
        for (name, word) in &simple.assignments {
            assignments.push((name.clone(), expand_value(word, self)?));
        }
        Ok((arguments, assignments))
    }

    /// Does what needs no process, because it only writes what a pipe can hold.
    fn at_once(&mut self, arguments: &[Vec<u8>], opened: &Opened) -> Option<Started> {
        let (name, rest) = arguments.split_first()?;
        match name.as_slice() {
            b"true" | b":" => return Some(Started::Done(0)),
            b"false" => return Some(Started::Done(1)),
            b"echo" | b"printf" => {}
            _ => return None,
        }
        let outer = core::mem::replace(&mut self.descriptors, opened.descriptors);
        let before = self.status;
        let done = match Self::printed(name, rest) {
            Ok(printed) if printed.text.len() <= PIPED_AHEAD => {
                self.put_printed(name, printed);
                Some(Started::Done(self.status))
            }
            _ => None,
        };
        self.status = before;
        self.descriptors = outer;
        done
    }

    /// Starts a list's item without waiting for it. Its standard input, unless redirected, is
    /// empty, so that it does not take the lines that are meant for the shell.
    #[inline(never)]
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
                let mut descriptors = self.descriptors;
                descriptors[0] = Some(input);
                let descriptors = Self::for_program(&descriptors);
                let started = self.start_shell(&item.text, descriptors, true);
                self.system.close(input);
                Vec::from([started])
            }
        };
        self.status = 0;
        let pids: Vec<u32> = started.iter().filter_map(Started::pid).collect();
        if let Some(Started::Done(status)) = started.last() {
            self.status = *status;
        }
        if let Some(&pid) = pids.last() {
            self.last_background = Some(pid);
        }
        self.add_job(pids, &item.text, false);
    }

    /// Starts a new shell that runs `text`, with all that this one knows.
    #[inline(never)]
    fn start_shell(&mut self, text: &[u8], descriptors: [u32; 3], background: bool) -> Started {
        let options = [b"sh".to_vec(), b"-S".to_vec(), self.state()];
        let mut arguments = Vec::from(options);
        arguments.extend([b"-c".to_vec(), text.to_vec()]);
        arguments.extend_from_slice(&self.positional);
        self.start(&arguments, &[], descriptors, background)
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

/// The stages of `command` if it is one pipeline of simple commands, which needs no shell around
/// it.
fn simple_pipeline(command: &[u8]) -> Option<Vec<Command>> {
    let list = parse(command).ok()?;
    let [item] = <[Item; 1]>::try_from(list.items).ok()?;
    let plain = item.rest.is_empty() && !item.background && !item.first.negated;
    let simple = |stage: &Command| matches!(stage.kind, CommandKind::Simple(_));
    let stages = item.first.stages;
    (plain && stages.iter().all(simple)).then_some(stages)
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
