//! Pipelines and what runs in the background: several processes at once, with the pipes between
//! them.

use super::*;

impl<S: System> Shell<S> {
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
    pub(super) fn start_shell(
        &mut self,
        text: &[u8],
        descriptors: [u32; 3],
        background: bool,
    ) -> Started {
        let options = [b"sh".to_vec(), b"-S".to_vec(), self.state()];
        let mut arguments = Vec::from(options);
        arguments.extend([b"-c".to_vec(), text.to_vec()]);
        arguments.extend_from_slice(&self.positional);
        self.start(&arguments, &[], descriptors, background)
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
