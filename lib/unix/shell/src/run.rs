//! The interpreter: walks the tree and has the system do the work.
//!
//! Statuses are those that a Unix user knows: 127 command not found, 126 found but cannot be run,
//! 130 ended by Ctrl-C, 137 killed, 139 crashed, 141 nobody reads the output, 148 stopped, 2 syntax
//! error.

mod environment;
mod walk;

use crate::ast::*;
use crate::expand::{Environment, ExpandError, expand_one, expand_pattern, expand_words};
use crate::fields::USUAL_SEPARATORS;
use crate::glob;
use crate::jobs::Job;
use crate::system::{Line, NO_DESCRIPTOR, System, Unwritten};
use crate::{MOST_STACK, SyntaxError, parse, parse_line};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Status of a command that Ctrl-C ended.
pub(crate) const INTERRUPTED: i32 = 130;

/// The condition of `trap` that comes at the end.
const AT_EXIT: usize = 0;

/// What happens after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Next,
    /// This many loops are left.
    Break(u32),
    /// This many loops less one are left, and the next round of the last begins.
    Continue(u32),
    /// The function, or the script that `.` reads, ends.
    Return,
    /// The shell ends.
    Exit,
    /// Ctrl-C: back to the prompt.
    Interrupted,
}

/// A variable.
#[derive(Clone, Default)]
pub(crate) struct Variable {
    /// `None` if it is only known to be exported or read-only.
    pub value: Option<Vec<u8>>,
    pub exported: bool,
    pub read_only: bool,
}

/// What `set` switches.
#[derive(Clone, Copy, Default)]
pub(crate) struct Switches {
    /// `-e`: a command that fails ends the shell.
    pub exit_on_error: bool,
    /// `-u`: a parameter without a value is an error.
    pub unset_is_error: bool,
    /// `-x`: commands are shown.
    pub trace: bool,
    /// `-f`: patterns stay as they are.
    pub no_patterns: bool,
    /// `-a`: variables that are set are exported.
    pub export_all: bool,
    /// `-C`: `>` does not write over a file.
    pub keep_files: bool,
    /// `-n`: commands are read and not run.
    pub check_only: bool,
}

/// Where the shell's descriptors 0 to 9 lead now: inside a command with redirections not where they
/// usually do.
pub(crate) type Descriptors = [Option<u32>; 10];

/// A shell with its variables.
pub struct Shell<S: System> {
    pub(crate) system: S,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) functions: BTreeMap<String, Rc<Function>>,
    /// For each function that runs: the variables that `local` hides.
    pub(crate) hidden: Vec<Vec<(String, Option<Variable>)>>,
    /// `$0`, `$1` ...
    pub(crate) positional: Vec<Vec<u8>>,
    pub(crate) status: i32,
    /// Status of the last substitution in the words of a command.
    pub(crate) substituted: Option<i32>,
    pub(crate) last_background: Option<u32>,
    pub(crate) jobs: Vec<Job>,
    /// The first process of the pipeline that is being started, whose job the others join.
    pub(crate) leader: Option<u32>,
    /// Which signals `kill` has sent to processes of jobs.
    pub(crate) sent: BTreeMap<u32, usize>,
    pub(crate) interactive: bool,
    pub(crate) switches: Switches,
    /// Above 0: a command's failure only decides, and does not end the shell.
    pub(crate) guarded: u32,
    pub(crate) loops: u32,
    /// What `trap` has set, by the number of the condition; [`AT_EXIT`] is run at the end.
    pub(crate) traps: BTreeMap<usize, Vec<u8>>,
    /// How far `getopts` is in its argument.
    pub(crate) option_at: usize,
    /// The last process that was waited for came to its own end, although Ctrl-C may have been
    /// pressed: it was told of that itself, as another shell is.
    pub(crate) unhurt: bool,
    pub(crate) descriptors: Descriptors,
    /// What `exec` has opened for good.
    pub(crate) owned: Vec<u32>,
    /// `$$`, if that is not the process' own.
    pub(crate) first_pid: Option<u32>,
    seen_interrupts: u32,
    /// Where the stack was when the shell was made.
    stack: usize,
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
            let variable = Variable {
                value: Some(value),
                exported: true,
                read_only: false,
            };
            (name, variable)
        };
        let mut variables: BTreeMap<String, Variable> =
            environment.into_iter().map(exported).collect();
        for (name, value) in given(&mut system) {
            variables.entry(name.to_string()).or_default().value = Some(value);
        }
        let mut descriptors = [None; 10];
        for (slot, descriptor) in descriptors.iter_mut().zip(0..3) {
            *slot = Some(descriptor);
        }
        Shell {
            system,
            variables,
            functions: BTreeMap::new(),
            hidden: Vec::new(),
            positional,
            status: 0,
            substituted: None,
            last_background: None,
            jobs: Vec::new(),
            leader: None,
            sent: BTreeMap::new(),
            interactive,
            switches: Switches::default(),
            guarded: 0,
            loops: 0,
            traps: BTreeMap::new(),
            option_at: 0,
            unhurt: false,
            descriptors,
            owned: Vec::new(),
            first_pid: None,
            seen_interrupts,
            stack: stack_address(),
        }
    }

    /// Sets `PPID`. A subshell has that of the shell that it stands for.
    pub fn set_parent(&mut self) {
        let parent = self.system.parent().to_string().into_bytes();
        self.variables.entry("PPID".to_string()).or_default().value = Some(parent);
    }

    /// The status of the last command.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The system under it.
    pub fn system(&mut self) -> &mut S {
        &mut self.system
    }

    /// Runs a whole source text as the shell's own, to its end; the status.
    pub fn run_text(&mut self, text: &[u8]) -> i32 {
        self.source(text);
        self.finish_up()
    }

    /// Runs a whole source text, line by line.
    pub(crate) fn source(&mut self, text: &[u8]) -> Flow {
        let mut at = 0;
        loop {
            match parse_line(text, at, true) {
                Ok(None) => return Flow::Next,
                Ok(Some((list, next))) => {
                    let flow = self.list(&list);
                    if flow != Flow::Next {
                        return flow;
                    }
                    at = next;
                }
                Err(error) => return self.syntax_error(&error),
            }
        }
    }

    /// What is to be done when the shell ends; its status.
    fn finish_up(&mut self) -> i32 {
        if let Some(text) = self.traps.remove(&AT_EXIT) {
            let status = self.status;
            if self.source(&text) != Flow::Exit {
                self.status = status;
            }
        }
        for descriptor in core::mem::take(&mut self.owned) {
            self.system.close(descriptor);
        }
        self.status
    }

    /// How wide the terminal is, as `COLUMNS` says it now.
    fn columns(&self) -> Option<usize> {
        let text = self.variable("COLUMNS")?;
        core::str::from_utf8(&text).ok()?.parse().ok()
    }

    /// Runs the lines of standard input until they end or the shell is left; the status.
    pub fn run_input(&mut self) -> i32 {
        let mut text = Vec::new();
        loop {
            self.reap();
            let prompt = self.prompt(text.is_empty());
            let commands = self.command_names();
            let columns = self.columns();
            let line = self.system.read_line(&prompt, &commands, columns);
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
            let flow = match self.run_if_complete(&text, at_end) {
                Some(flow) => {
                    text.clear();
                    flow
                }
                None => Flow::Next,
            };
            if at_end || flow == Flow::Exit {
                return self.finish_up();
            }
        }
    }

    fn prompt(&self, first: bool) -> String {
        let (name, usual) = if first { ("PS1", "$ ") } else { ("PS2", "> ") };
        let prompt = self.variable(name);
        prompt.map_or_else(
            || usual.to_string(),
            |text| String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Runs `text` unless more lines are needed to complete it.
    fn run_if_complete(&mut self, text: &[u8], at_end: bool) -> Option<Flow> {
        if at_end {
            return Some(self.source(text));
        }
        match parse(text) {
            Ok(list) => Some(self.list(&list)),
            Err(error) if error.incomplete => None,
            Err(error) => Some(match (self.syntax_error(&error), self.interactive) {
                (_, true) => Flow::Next,
                (flow, false) => flow,
            }),
        }
    }

    #[inline(never)]
    fn syntax_error(&mut self, error: &SyntaxError) -> Flow {
        self.complain(&error.to_string());
        self.fatal(2)
    }

    /// An error that ends a script; a person gets the prompt back.
    pub(crate) fn fatal(&mut self, status: i32) -> Flow {
        self.status = status;
        match self.interactive {
            true => Flow::Interrupted,
            false => Flow::Exit,
        }
    }

    /// Writes `sh: text` to the standard error.
    #[inline(never)]
    pub(crate) fn complain(&mut self, text: &str) {
        let line = alloc::format!("sh: {text}\n");
        self.write_to(2, line.as_bytes());
    }

    /// Writes to one of the shell's descriptors. Where nothing can be done about an error it need
    /// not be looked at.
    pub(crate) fn write_to(&mut self, descriptor: usize, text: &[u8]) -> Option<Unwritten> {
        match self.descriptors[descriptor] {
            Some(descriptor) => self.system.write(descriptor, text).err(),
            None => Some(Unwritten::Failed("Bad file descriptor".into())),
        }
    }

    /// Descriptors 0, 1 and 2 for a program.
    pub(crate) fn for_program(descriptors: &Descriptors) -> [u32; 3] {
        [descriptors[0], descriptors[1], descriptors[2]].map(|it| it.unwrap_or(NO_DESCRIPTOR))
    }

    /// Whether Ctrl-C was pressed since this was last asked.
    pub(crate) fn take_interrupt(&mut self) -> bool {
        let now = self.system.interrupts();
        let pressed = now != self.seen_interrupts;
        self.seen_interrupts = now;
        pressed
    }

    // Functions call each other on a small stack. So what is on the way from one to the next keeps
    // little there: it is in functions of its own, and large values are in boxes.
    #[inline(never)]
    pub(crate) fn bad_expansion(&mut self, error: &ExpandError) -> Flow {
        self.complain(&error.to_string());
        self.fatal(2)
    }

    /// Sets a variable that may be set.
    pub(crate) fn assign(&mut self, name: &str, value: Vec<u8>) -> Result<(), String> {
        let variable = self.variables.entry(name.to_string()).or_default();
        if variable.read_only {
            return Err(alloc::format!("{name}: is read only"));
        }
        variable.value = Some(value);
        variable.exported |= self.switches.export_all;
        if name == "OPTIND" {
            self.option_at = 0;
        }
        Ok(())
    }
}

/// The variables that a shell sets itself, whatever the environment says (POSIX, 2.5.3).
fn given(system: &mut impl System) -> [(&'static str, Vec<u8>); 3] {
    [
        ("IFS", USUAL_SEPARATORS.to_vec()),
        ("OPTIND", b"1".to_vec()),
        ("PWD", system.working_directory().unwrap_or_default()),
    ]
}

/// About where the stack is now.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0u8;
    core::ptr::from_ref(&here).addr()
}
