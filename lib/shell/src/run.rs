//! The interpreter: walks the tree and has the system do the work.
//!
//! Statuses are those that a Unix user knows: 127 command not found, 126 found but cannot be run, 130 ended
//! by Ctrl-C, 137 killed, 139 crashed, 2 syntax error.

use crate::ast::*;
use crate::expand::{Environment, ExpandError, expand_words};
use crate::system::{Ended, Line, System};
use crate::{MOST_NESTING, parse};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Status of a command that Ctrl-C ended.
pub(crate) const INTERRUPTED: i32 = 130;

/// What happens after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Next,
    /// This many loops are left.
    Break(u32),
    /// This many loops less one are left, and the next round of the last begins.
    Continue(u32),
    /// The shell ends.
    Exit,
    /// Ctrl-C: back to the prompt.
    Interrupted,
}

pub(crate) struct Variable {
    pub value: Vec<u8>,
    pub exported: bool,
}

/// A shell with its variables.
pub struct Shell<S: System> {
    pub(crate) system: S,
    pub(crate) variables: BTreeMap<String, Variable>,
    /// `$0`, `$1` ...
    pub(crate) positional: Vec<Vec<u8>>,
    pub(crate) status: i32,
    pub(crate) last_background: Option<u32>,
    pub(crate) background: Vec<u32>,
    pub(crate) interactive: bool,
    pub(crate) asked_to_exit: bool,
    pub(crate) loops: u32,
    /// The last process that was waited for came to its own end, although Ctrl-C may have been pressed: it
    /// was told of that itself, as another shell is.
    pub(crate) unhurt: bool,
    /// Where descriptors 0, 1 and 2 lead now: inside a group with redirections not where they usually do.
    pub(crate) descriptors: [u32; 3],
    seen_interrupts: u32,
    depth: usize,
}

impl<S: System> Shell<S> {
    /// A shell with `positional` as `$0`, `$1` ... and `environment` as its exported variables.
    pub fn new(
        mut system: S,
        positional: Vec<Vec<u8>>,
        environment: Vec<(String, Vec<u8>)>,
        interactive: bool,
    ) -> Self {
        let seen_interrupts = system.interrupts();
        let exported = |(name, value)| {
            (
                name,
                Variable {
                    value,
                    exported: true,
                },
            )
        };
        Shell {
            system,
            variables: environment.into_iter().map(exported).collect(),
            positional,
            status: 0,
            last_background: None,
            background: Vec::new(),
            interactive,
            asked_to_exit: false,
            loops: 0,
            unhurt: false,
            descriptors: [0, 1, 2],
            seen_interrupts,
            depth: 0,
        }
    }

    /// The status of the last command.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The system under it.
    pub fn system(&mut self) -> &mut S {
        &mut self.system
    }

    /// Runs a whole source text; the status.
    pub fn run_text(&mut self, text: &[u8]) -> i32 {
        match parse(text) {
            Ok(list) => {
                self.list(&list);
            }
            Err(error) => self.syntax_error(&error),
        }
        self.status
    }

    /// Runs the lines of standard input until they end or the shell is left; the status.
    pub fn run_input(&mut self) -> i32 {
        let mut text = Vec::new();
        loop {
            self.reap();
            let line = self
                .system
                .read_line(if text.is_empty() { "$ " } else { "> " });
            let at_end = line == Line::End;
            match line {
                Line::Text(line) => {
                    text.extend_from_slice(&line);
                    text.push(b'\n');
                }
                Line::End => {}
                Line::Interrupted => {
                    self.take_interrupt();
                    text.clear();
                    self.status = INTERRUPTED;
                    continue;
                }
            }
            if self.complete(&text, at_end) {
                text.clear();
            }
            if at_end || self.asked_to_exit {
                return self.status;
            }
        }
    }

    /// Runs `text` unless more lines are needed to complete it; whether it is done with.
    fn complete(&mut self, text: &[u8], at_end: bool) -> bool {
        match parse(text) {
            Ok(list) => {
                self.list(&list);
                true
            }
            Err(error) if error.incomplete && !at_end => false,
            Err(error) => {
                self.syntax_error(&error);
                true
            }
        }
    }

    fn syntax_error(&mut self, error: &crate::SyntaxError) {
        self.complain(&error.to_string());
        self.status = 2;
    }

    /// Writes `sh: text` to the standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        let line = alloc::format!("sh: {text}\n");
        self.system.write(self.descriptors[2], line.as_bytes());
    }

    /// Whether Ctrl-C was pressed since this was last asked.
    pub(crate) fn take_interrupt(&mut self) -> bool {
        let now = self.system.interrupts();
        let pressed = now != self.seen_interrupts;
        self.seen_interrupts = now;
        pressed
    }

    /// Takes leave of background processes that have ended, and says so to a person.
    fn reap(&mut self) {
        if self.background.is_empty() {
            return;
        }
        for pid in self.system.finished(&self.background) {
            self.background.retain(|&other| other != pid);
            let ended = self.system.wait(pid);
            if self.interactive {
                let how = match ended {
                    Some(Ended::Exited(0)) | None => "done".to_string(),
                    Some(Ended::Exited(status)) => alloc::format!("status {status}"),
                    Some(Ended::Killed) => "killed".to_string(),
                    Some(Ended::Crashed) => "crashed".to_string(),
                };
                let line = alloc::format!("[{pid}] {how}\n");
                self.system.write(self.descriptors[2], line.as_bytes());
            }
        }
    }

    pub(crate) fn list(&mut self, list: &List) -> Flow {
        for item in &list.items {
            let flow = match item.background {
                true => {
                    self.start_in_background(item);
                    Flow::Next
                }
                false => self.item(item),
            };
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn item(&mut self, item: &Item) -> Flow {
        let mut flow = self.pipeline(&item.first);
        for (connector, pipeline) in &item.rest {
            if flow != Flow::Next {
                break;
            }
            if (*connector == Connector::And) == (self.status == 0) {
                flow = self.pipeline(pipeline);
            }
        }
        flow
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        self.unhurt = false;
        let flow = match pipeline.stages.as_slice() {
            [command] => self.command(command),
            stages => self.run_stages(stages),
        };
        if pipeline.negated && flow == Flow::Next {
            self.status = i32::from(self.status == 0);
        }
        // Checked last: a program that Ctrl-C ended looks like one that was killed.
        if flow == Flow::Next && self.take_interrupt() && !self.unhurt {
            self.status = INTERRUPTED;
            return Flow::Interrupted;
        }
        flow
    }

    fn command(&mut self, command: &Command) -> Flow {
        if self.depth >= MOST_NESTING {
            self.complain("nested too deep");
            self.status = 2;
            return Flow::Next;
        }
        self.depth += 1;
        let flow = match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple, &command.redirects),
            CommandKind::Subshell(text) => self.subshell(text, &command.redirects),
            _ => self.compound(command),
        };
        self.depth -= 1;
        flow
    }

    /// A command that runs in this shell, with its redirections in force meanwhile.
    fn compound(&mut self, command: &Command) -> Flow {
        let Some(opened) = self.redirect(&command.redirects) else {
            self.status = 1;
            return Flow::Next;
        };
        let outer = core::mem::replace(&mut self.descriptors, opened.descriptors);
        let flow = match &command.kind {
            CommandKind::Group(list) => self.list(list),
            CommandKind::If(conditional) => self.conditional(conditional),
            CommandKind::While(repetition) => self.repetition(repetition),
            CommandKind::For(iteration) => self.iteration(iteration),
            CommandKind::Simple(_) | CommandKind::Subshell(_) => Flow::Next,
        };
        self.descriptors = outer;
        self.close_all(&opened.to_close);
        flow
    }

    fn conditional(&mut self, conditional: &Conditional) -> Flow {
        for (condition, body) in &conditional.branches {
            let flow = self.list(condition);
            if flow != Flow::Next {
                return flow;
            }
            if self.status == 0 {
                return self.list(body);
            }
        }
        self.status = 0;
        match &conditional.otherwise {
            Some(list) => self.list(list),
            None => Flow::Next,
        }
    }

    fn repetition(&mut self, repetition: &Loop) -> Flow {
        let mut status = 0;
        loop {
            let flow = self.list(&repetition.condition);
            if flow != Flow::Next {
                return flow;
            }
            if (self.status == 0) == repetition.until {
                self.status = status;
                return Flow::Next;
            }
            if let Some(flow) = self.round(&repetition.body) {
                return flow;
            }
            status = self.status;
            // A round of builtins alone never waits, so that nobody else would notice.
            if self.take_interrupt() {
                self.status = INTERRUPTED;
                return Flow::Interrupted;
            }
        }
    }

    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        let words = match &iteration.words {
            None => Ok(self.positional.get(1..).unwrap_or_default().to_vec()),
            Some(words) => expand_words(words, self),
        };
        let words = match words {
            Ok(words) => words,
            Err(error) => {
                self.complain(&error.to_string());
                self.status = 1;
                return Flow::Next;
            }
        };
        self.status = 0;
        for word in words {
            self.assign(&iteration.name, word);
            if let Some(flow) = self.round(&iteration.body) {
                return flow;
            }
        }
        Flow::Next
    }

    /// One round of a loop; `Some` if it is to be left, and how.
    fn round(&mut self, body: &List) -> Option<Flow> {
        self.loops += 1;
        let flow = self.list(body);
        self.loops -= 1;
        match flow {
            Flow::Next | Flow::Continue(1) => None,
            Flow::Break(1) => Some(Flow::Next),
            Flow::Break(loops) => Some(Flow::Break(loops - 1)),
            Flow::Continue(loops) => Some(Flow::Continue(loops - 1)),
            other => Some(other),
        }
    }

    pub(crate) fn assign(&mut self, name: &str, value: Vec<u8>) {
        match self.variables.get_mut(name) {
            Some(variable) => variable.value = value,
            None => {
                let variable = Variable {
                    value,
                    exported: false,
                };
                self.variables.insert(name.to_string(), variable);
            }
        }
    }
}

impl<S: System> Environment for Shell<S> {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        self.variables
            .get(name)
            .map(|variable| variable.value.clone())
    }

    fn positional(&self, index: usize) -> Option<Vec<u8>> {
        self.positional.get(index).cloned()
    }

    fn count(&self) -> usize {
        self.positional.len().saturating_sub(1)
    }

    fn special(&self, parameter: &Parameter) -> Option<i64> {
        match parameter {
            Parameter::Status => Some(self.status.into()),
            Parameter::Pid => Some(self.system.pid().into()),
            Parameter::Background => self.last_background.map(Into::into),
            _ => None,
        }
    }

    fn substitute(&mut self, command: &[u8]) -> Result<Vec<u8>, ExpandError> {
        self.output_of(command).map_err(ExpandError)
    }

    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>> {
        self.system.list(directory)
    }
}
