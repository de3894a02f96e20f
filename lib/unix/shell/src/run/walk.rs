//! Walking the tree: lists, pipelines, loops, conditions.

use super::*;

impl<S: System> Shell<S> {
    #[inline(never)]
    pub(crate) fn list(&mut self, list: &List) -> Flow {
        for item in &list.items {
            if self.switches.check_only {
                continue;
            }
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

    /// A list whose failures only decide what is done next.
    fn guarded(&mut self, run: impl FnOnce(&mut Self) -> Flow) -> Flow {
        self.guarded += 1;
        let flow = run(self);
        self.guarded -= 1;
        flow
    }

    #[inline(never)]
    fn item(&mut self, item: &Item) -> Flow {
        if item.rest.is_empty() {
            return self.pipeline(&item.first);
        }
        let last = item.rest.len();
        let pipelines = core::iter::once((None, &item.first));
        let pipelines = pipelines.chain(item.rest.iter().map(|(it, next)| (Some(it), next)));
        for (index, (connector, pipeline)) in pipelines.enumerate() {
            if let Some(connector) = connector
                && (*connector == Connector::And) != (self.status == 0)
            {
                continue;
            }
            let flow = match index < last {
                true => self.guarded(|shell| shell.pipeline(pipeline)),
                false => self.pipeline(pipeline),
            };
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    #[inline(never)]
    fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        self.unhurt = false;
        let run = |shell: &mut Self| match pipeline.stages.as_slice() {
            [command] => shell.command(command),
            stages => shell.run_stages(stages),
        };
        let flow = match pipeline.negated {
            true => self.guarded(run),
            false => run(self),
        };
        if pipeline.negated && flow == Flow::Next {
            self.status = i32::from(self.status == 0);
        }
        // Checked last: a program that Ctrl-C ended looks like one that was killed.
        if flow == Flow::Next && self.take_interrupt() && !self.unhurt {
            self.status = INTERRUPTED;
            return Flow::Interrupted;
        }
        let fails = flow == Flow::Next && self.status != 0 && !pipeline.negated;
        if fails && self.switches.exit_on_error && self.guarded == 0 && may_end(pipeline) {
            return match self.interactive {
                true => Flow::Interrupted,
                false => Flow::Exit,
            };
        }
        flow
    }

    pub(crate) fn command(&mut self, command: &Command) -> Flow {
        if self.is_deep() {
            self.complain("nested too deep");
            return self.fatal(2);
        }
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple, command),
            CommandKind::Subshell(text) => self.subshell(text, command),
            CommandKind::Function(function) => self.define(function),
            kind if command.redirects.is_empty() => self.compound(kind),
            kind => self.redirected(kind, command),
        }
    }

    #[inline(never)]
    fn define(&mut self, function: &Rc<Function>) -> Flow {
        let name = function.name.clone();
        self.functions.insert(name, function.clone());
        self.status = 0;
        Flow::Next
    }

    /// Whether so much of the stack is in use that nothing more may be nested. A function that
    /// calls itself would otherwise end in a crash.
    pub(crate) fn is_deep(&self) -> bool {
        self.stack.abs_diff(stack_address()) > MOST_STACK
    }

    /// A command that runs in this shell, with its redirections in force meanwhile.
    #[inline(never)]
    fn redirected(&mut self, kind: &CommandKind, command: &Command) -> Flow {
        let Some(mut opened) = self.redirect(&command.redirects) else {
            self.status = 2;
            return Flow::Next;
        };
        core::mem::swap(&mut self.descriptors, &mut opened.descriptors);
        let flow = self.compound(kind);
        core::mem::swap(&mut self.descriptors, &mut opened.descriptors);
        self.close_all(&opened.to_close);
        flow
    }

    #[inline(never)]
    fn compound(&mut self, kind: &CommandKind) -> Flow {
        match kind {
            CommandKind::Group(list) => self.list(list),
            CommandKind::If(conditional) => self.conditional(conditional),
            CommandKind::While(repetition) => self.repetition(repetition),
            CommandKind::For(iteration) => self.iteration(iteration),
            CommandKind::Case(case) => self.case(case),
            CommandKind::Simple(_) | CommandKind::Subshell(_) | CommandKind::Function(_) => {
                Flow::Next
            }
        }
    }

    #[inline(never)]
    fn conditional(&mut self, conditional: &Conditional) -> Flow {
        for (condition, body) in &conditional.branches {
            let flow = self.guarded(|shell| shell.list(condition));
            if flow != Flow::Next {
                return flow;
            }
            if self.status == 0 {
                return self.list(body);
            }
        }
        match &conditional.otherwise {
            // It may still ask how the condition ended.
            Some(list) => self.list(list),
            None => {
                self.status = 0;
                Flow::Next
            }
        }
    }

    #[inline(never)]
    fn repetition(&mut self, repetition: &Loop) -> Flow {
        let mut status = 0;
        loop {
            self.loops += 1;
            let flow = self.guarded(|shell| shell.list(&repetition.condition));
            self.loops -= 1;
            match leaves_round(flow) {
                None if flow == Flow::Next => {}
                None => continue,
                Some(flow) => return flow,
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

    #[inline(never)]
    fn iteration(&mut self, iteration: &Iteration) -> Flow {
        let words = match self.iteration_words(iteration) {
            Ok(words) => words,
            Err(flow) => return flow,
        };
        for word in words {
            if let Some(flow) = self.set_or_end(&iteration.name, word) {
                return flow;
            }
            if let Some(flow) = self.round(&iteration.body) {
                return flow;
            }
            if self.take_interrupt() && !self.unhurt {
                self.status = INTERRUPTED;
                return Flow::Interrupted;
            }
        }
        Flow::Next
    }

    /// What `for` goes through.
    #[inline(never)]
    fn iteration_words(&mut self, iteration: &Iteration) -> Result<Vec<Vec<u8>>, Flow> {
        let words = match &iteration.words {
            None => Ok(self.positional.get(1..).unwrap_or_default().to_vec()),
            Some(words) => expand_words(words, self),
        };
        let words = words.map_err(|error| self.bad_expansion(&error))?;
        if words.is_empty() {
            self.status = 0;
        }
        Ok(words)
    }

    /// Sets a variable; `Some` if it cannot be set.
    #[inline(never)]
    fn set_or_end(&mut self, name: &str, value: Vec<u8>) -> Option<Flow> {
        let set = self.set_variable(name, value);
        set.err().map(|error| self.bad_expansion(&error))
    }

    #[inline(never)]
    fn case(&mut self, case: &Case) -> Flow {
        let value = match expand_one(&case.word, self) {
            Ok(value) => value,
            Err(error) => return self.bad_expansion(&error),
        };
        for (patterns, body) in &case.arms {
            for pattern in patterns {
                let pattern = match expand_pattern(pattern, self) {
                    Ok(pattern) => pattern,
                    Err(error) => return self.bad_expansion(&error),
                };
                if glob::matches_text(&pattern, &value) {
                    if body.items.is_empty() {
                        self.status = 0;
                    }
                    return self.list(body);
                }
            }
        }
        self.status = 0;
        Flow::Next
    }

    /// One round of a loop; `Some` if it is to be left, and how.
    fn round(&mut self, body: &List) -> Option<Flow> {
        self.loops += 1;
        let flow = self.list(body);
        self.loops -= 1;
        leaves_round(flow)
    }
}

/// What a loop does after a round that ended so; `None`: the next round.
fn leaves_round(flow: Flow) -> Option<Flow> {
    match flow {
        Flow::Next | Flow::Continue(1) => None,
        Flow::Break(1) => Some(Flow::Next),
        Flow::Break(loops) => Some(Flow::Break(loops - 1)),
        Flow::Continue(loops) => Some(Flow::Continue(loops - 1)),
        other => Some(other),
    }
}

/// Whether `set -e` looks at the pipeline's status; in other compound commands it has looked inside
/// already.
fn may_end(pipeline: &Pipeline) -> bool {
    match pipeline.stages.as_slice() {
        [only] => matches!(only.kind, CommandKind::Simple(_) | CommandKind::Subshell(_)),
        _ => true,
    }
}
