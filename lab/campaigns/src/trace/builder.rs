//! Pairs the events: which call ends where, which thread ran when, who died and came back.

use std::collections::BTreeMap;

use abi::events;
use interfaces::{CrashReason, DomainState};

use super::event::{Event, Recording};
use super::names::{Domains, INTERFACES};
use super::timeline::{
    Call, Mark, MarkKind, NAMELESS, Outcome, Pause, Processor, Run, Stage, Thread, Timeline,
};

impl Timeline {
    /// What `recording` means.
    pub fn of(recording: &Recording) -> Self {
        let mut builder = Builder::new(recording);
        for (event, lost) in ordered(recording) {
            if let Some(lost) = lost {
                builder.gap(event.time, lost);
            }
            builder.take(event);
        }
        let missing = recording.lost() - builder.line.gaps.iter().map(|gap| gap.2).sum::<u64>();
        if missing != 0 {
            builder.gap(builder.line.to, missing);
        }
        builder.finish()
    }
}

/// The events by time, and how many were lost just before each. Processors write past each other by
/// a little.
fn ordered(recording: &Recording) -> Vec<(&Event, Option<u64>)> {
    let mut gaps = recording.gaps.iter().peekable();
    let mut all: Vec<_> = Vec::with_capacity(recording.events.len());
    for (at, event) in recording.events.iter().enumerate() {
        let gap = gaps.next_if(|gap| gap.after == at);
        all.push((event, gap.map(|gap| gap.lost)));
    }
    all.sort_by_key(|(event, _)| event.time);
    all
}

/// A call that is under way.
struct Open {
    /// Its place in the list of calls.
    call: usize,
    /// Those that it made and that failed: method, callee.
    failed: Vec<(String, u32)>,
    saw_gap: bool,
}

/// Calls that are remembered as failed, of those that one call has made: the last ones.
const MOST_FAILED: usize = 64;

/// What is known of a thread while the events are read.
#[derive(Default)]
struct Chain {
    open: Vec<Open>,
    failed: Vec<(String, u32)>,
    paused: Option<(u64, Pause)>,
}

/// What is known of a processor.
#[derive(Clone, Copy, Default)]
struct Now {
    /// Since when, thread, domain.
    runs: Option<(u64, u64, u32)>,
    interrupt: Option<(u64, u64)>,
}

struct Builder {
    line: Timeline,
    chains: BTreeMap<u64, Chain>,
    now: Vec<Now>,
    /// Numbers of threads by stack, with the times from which on they are right.
    numbers: BTreeMap<u32, Vec<(u64, u64)>>,
    /// On which processor each thread is.
    places: BTreeMap<u64, usize>,
    /// What each domain does, and since when.
    states: BTreeMap<u32, (u64, DomainState)>,
    /// Names of which an instance has died.
    fallen: Vec<String>,
    /// Threads that opened a block queue of the next instance, and of which. What such a thread
    /// submits there first are requests that the one before had.
    heirs: BTreeMap<u64, u32>,
}

impl Builder {
    fn new(recording: &Recording) -> Self {
        let mut line = Timeline {
            from: recording
                .events
                .iter()
                .map(|event| event.time)
                .min()
                .unwrap_or(0),
            events: recording.events.len(),
            lost: recording.lost(),
            domains: Domains::of(&recording.events),
            ..Timeline::default()
        };
        line.to = line.from;
        let mut numbers: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        let runs = recording
            .events
            .iter()
            .filter(|event| event.kind == events::RUNS);
        for event in runs {
            let known = numbers.entry(event.stack).or_default();
            known.push((event.time, event.value));
        }
        Builder {
            line,
            chains: BTreeMap::new(),
            now: Vec::new(),
            numbers,
            places: BTreeMap::new(),
            states: BTreeMap::new(),
            fallen: Vec::new(),
            heirs: BTreeMap::new(),
        }
    }

    /// The number of the thread with this stack at this time. One that was met before it was put on
    /// a processor is the one that was put there first.
    fn thread(&self, stack: u32, time: u64) -> u64 {
        let Some(known) = self.numbers.get(&stack) else {
            return NAMELESS + u64::from(stack);
        };
        let at = known.partition_point(|(from, _)| *from <= time);
        known[at.saturating_sub(1)].1
    }

    fn take(&mut self, event: &Event) {
        self.line.to = event.time;
        if self.now.len() <= event.processor {
            self.now.resize(event.processor + 1, Now::default());
            let processors = &mut self.line.processors;
            processors.resize(event.processor + 1, Processor::default());
        }
        let thread = self.thread(event.stack, event.time);
        match event.kind {
            events::RUNS => self.runs(event, thread),
            events::LEAVES => self.leaves(event, thread),
            events::INTERRUPT => {
                self.end_interrupt(event);
                self.now[event.processor].interrupt = Some((event.time, event.value));
            }
            events::INTERRUPT_OVER => self.end_interrupt(event),
            events::READY => self.ready(event),
            events::CALL => self.call(event, thread),
            events::RETURN => self.returns(event, thread),
            events::STATE => self.state(event, thread),
            _ => {}
        }
    }

    fn end_interrupt(&mut self, event: &Event) {
        let now = &mut self.now[event.processor];
        if let Some((from, number)) = now.interrupt.take() {
            let interrupts = &mut self.line.processors[event.processor].interrupts;
            interrupts.push((from, event.time, number));
        }
    }

    /// From now on this runs on the processor; `None`: nothing, or nobody knows what.
    fn goes_on(&mut self, processor: usize, time: u64, with: Option<(u64, u32)>) {
        let now = &mut self.now[processor];
        let before = now.runs;
        now.runs = with.map(|(thread, domain)| match before {
            Some((from, old, same)) if (old, same) == (thread, domain) => (from, thread, domain),
            _ => (time, thread, domain),
        });
        if let Some((from, thread, domain)) = before.filter(|_| now.runs != before) {
            let to = time;
            let run = Run {
                from,
                to,
                thread,
                domain,
            };
            self.line.processors[processor].runs.push(run);
        }
    }

    /// The thread goes on in `domain`, where it is: a call may name another processor.
    fn goes_on_in(&mut self, event: &Event, thread: u64, domain: u32) {
        let place = self.places.get(&thread).copied();
        let place = place.unwrap_or(event.processor);
        self.goes_on(place, event.time, Some((thread, domain)));
    }

    fn known(&mut self, thread: u64, home: u32) -> &mut Chain {
        let new = || Thread {
            home,
            ..Thread::default()
        };
        self.line.threads.entry(thread).or_insert_with(new);
        self.chains.entry(thread).or_default()
    }

    fn runs(&mut self, event: &Event, thread: u64) {
        self.end_interrupt(event);
        self.goes_on(event.processor, event.time, None);
        self.known(thread, event.domain);
        self.places.insert(thread, event.processor);
        self.end_pause(thread, event.time);
        self.goes_on(event.processor, event.time, Some((thread, event.domain)));
    }

    fn leaves(&mut self, event: &Event, thread: u64) {
        self.end_interrupt(event);
        self.places.remove(&thread);
        self.goes_on(event.processor, event.time, None);
        self.end_pause(thread, event.time);
        let chain = self.known(thread, event.domain);
        match event.value {
            3 => chain.paused = Some((event.time, Pause::Waits)),
            4 => {
                self.close(thread, 0, event.time, Outcome::Left);
                // Its stack may be another's next.
                self.chains.remove(&thread);
            }
            _ => chain.paused = Some((event.time, Pause::Ready)),
        }
    }

    fn ready(&mut self, event: &Event) {
        let chain = self.chains.get(&event.value);
        if chain.is_some_and(|chain| matches!(chain.paused, Some((_, Pause::Waits)))) {
            self.end_pause(event.value, event.time);
            let chain = self.chains.entry(event.value).or_default();
            chain.paused = Some((event.time, Pause::Ready));
        }
    }

    fn end_pause(&mut self, thread: u64, time: u64) {
        let chain = self.chains.get_mut(&thread);
        let paused = chain.and_then(|chain| chain.paused.take());
        if let (Some((from, why)), Some(known)) = (paused, self.line.threads.get_mut(&thread)) {
            known.pauses.push((from, time, why));
        }
    }

    fn call(&mut self, event: &Event, thread: u64) {
        let method = INTERFACES.method(event.value, event.small);
        let numbers = event.numbers();
        let arguments = INTERFACES.arguments(event.value, event.small, &numbers);
        let callee = self.line.domains.name(event.other);
        self.end_pause(thread, event.time);
        self.known(thread, event.domain);
        let repeats = self.inherits(thread, &method, event.other)
            || self.repeats(thread, &method, event.other);
        let open = Open {
            call: self.line.calls.len(),
            failed: Vec::new(),
            saw_gap: false,
        };
        self.known(thread, event.domain).open.push(open);
        if repeats {
            let caller = self.line.domains.label(event.domain);
            let text = format!("{caller} asks {callee} again: {method}");
            self.mark(event.time, MarkKind::Repeat, text, Some(thread));
        }
        self.line.calls.push(Call {
            from: event.time,
            to: event.time,
            thread,
            caller: event.domain,
            callee: event.other,
            method,
            arguments,
            outcome: Outcome::Open,
            repeats,
        });
        self.goes_on_in(event, thread, event.other);
    }

    /// Whether the thread hands on requests of a block queue whose device's driver has died.
    fn inherits(&mut self, thread: u64, method: &str, callee: u32) -> bool {
        match method {
            "Block.open" if self.fallen.contains(&self.line.domains.name(callee)) => {
                self.heirs.insert(thread, callee);
                false
            }
            "BlockQueue.submit" => self.heirs.remove(&thread) == Some(callee),
            _ => false,
        }
    }

    /// Whether the thread asks what failed before, in the same call, with another instance of the
    /// callee.
    fn repeats(&mut self, thread: u64, method: &str, callee: u32) -> bool {
        let names = &self.line.domains;
        let Some(chain) = self.chains.get_mut(&thread) else {
            return false;
        };
        let failed = match chain.open.last_mut() {
            Some(open) => &mut open.failed,
            None => &mut chain.failed,
        };
        let is_same = |(asked, of): &(String, u32)| {
            asked == method && *of != callee && names.are_alike(*of, callee)
        };
        let at = failed.iter().position(is_same);
        at.map(|at| failed.swap_remove(at)).is_some()
    }

    fn returns(&mut self, event: &Event, thread: u64) {
        self.end_pause(thread, event.time);
        let calls = &self.line.calls;
        let open = self.known_open(thread);
        let at = open
            .iter()
            .rposition(|call| calls[*call].from == event.value);
        if let Some(at) = at {
            self.close(thread, at + 1, event.time, Outcome::Left);
            let outcome = match event.small {
                0 => Outcome::Returned,
                _ => Outcome::Failed,
            };
            self.close(thread, at, event.time, outcome);
        }
        self.goes_on_in(event, thread, event.domain);
    }

    /// The places of the calls that the thread is in.
    fn known_open(&self, thread: u64) -> Vec<usize> {
        let open = self.chains.get(&thread).map(|chain| &chain.open);
        open.into_iter().flatten().map(|open| open.call).collect()
    }

    /// Ends the calls of the thread from depth `depth` on.
    fn close(&mut self, thread: u64, depth: usize, time: u64, outcome: Outcome) {
        let Some(chain) = self.chains.get_mut(&thread) else {
            return;
        };
        while chain.open.len() > depth {
            let Some(open) = chain.open.pop() else { return };
            let call = &mut self.line.calls[open.call];
            call.to = time;
            call.outcome = match outcome {
                Outcome::Left | Outcome::Open if open.saw_gap => Outcome::Unknown,
                outcome => outcome,
            };
            let length = time - call.from;
            let known = self.line.threads.entry(thread).or_default();
            if chain.open.is_empty() && known.inside.is_none_or(|(_, most)| length > most) {
                known.inside = Some((call.callee, length));
            }
            if call.outcome == Outcome::Failed {
                let failed = match chain.open.last_mut() {
                    Some(open) => &mut open.failed,
                    None => &mut chain.failed,
                };
                if failed.len() == MOST_FAILED {
                    failed.remove(0);
                }
                failed.push((call.method.clone(), call.callee));
            }
        }
    }

    fn mark(&mut self, at: u64, kind: MarkKind, text: String, thread: Option<u64>) {
        let mark = Mark {
            at,
            kind,
            text,
            thread,
        };
        self.line.marks.push(mark);
    }

    fn state(&mut self, event: &Event, thread: u64) {
        let (id, time) = (event.other, event.time);
        let Some(state) = DomainState::from_number(u64::from(event.small & 0xff)) else {
            return;
        };
        let before = self.states.get(&id).copied();
        if before.is_some_and(|(_, before)| before.number() >= state.number()) {
            return;
        }
        self.states.insert(id, (time, state));
        self.stage(before, id, time);
        let (label, name) = (self.line.domains.label(id), self.line.domains.name(id));
        match state {
            DomainState::Starting if self.fallen.contains(&name) => {
                self.mark(
                    time,
                    MarkKind::Restart,
                    format!("{label} is started again"),
                    None,
                );
            }
            DomainState::Starting => {
                self.mark(time, MarkKind::Start, format!("{label} is started"), None);
            }
            DomainState::Dying => {
                let by = self.caller(thread);
                self.dies(event, &label, name, by);
            }
            DomainState::Running | DomainState::Gone => {}
        }
    }

    /// Who made the call that the thread is in.
    fn caller(&self, thread: u64) -> Option<u32> {
        let open = self.chains.get(&thread)?.open.last()?;
        Some(self.line.calls[open.call].caller)
    }

    /// A domain dies, in a call that `by` made.
    fn dies(&mut self, event: &Event, label: &str, name: String, by: Option<u32>) {
        let reason = CrashReason::from_number(u64::from(event.small >> 8));
        let names = &self.line.domains;
        let killer = by.map_or(String::new(), |by| format!(" by {}", names.label(by)));
        let (kind, text) = match reason {
            None | Some(CrashReason::None | CrashReason::Exited) => {
                (MarkKind::End, format!("{label} ends"))
            }
            // Programs are ended by who has started them.
            Some(CrashReason::Killed) if by.map(u64::from) == Some(event.value) => {
                (MarkKind::End, format!("{label} is ended{killer}"))
            }
            Some(CrashReason::Killed) => (MarkKind::Death, format!("{label} is killed{killer}")),
            Some(reason) => (MarkKind::Death, format!("{label} crashes: {reason:?}")),
        };
        if kind == MarkKind::Death {
            self.fallen.push(name);
        }
        self.mark(event.time, kind, text, None);
    }

    /// Notes what the domain did before, until `to`.
    fn stage(&mut self, before: Option<(u64, DomainState)>, domain: u32, to: u64) {
        if let Some((from, state)) = before {
            self.line.stages.push(Stage {
                from,
                to,
                domain,
                state,
            });
        }
    }

    /// Events were lost before `time`: nobody knows who runs, waits, or has returned.
    fn gap(&mut self, time: u64, lost: u64) {
        let from = self.line.to;
        self.line.gaps.push((from, time, lost));
        self.places.clear();
        self.mark(
            time,
            MarkKind::Lost,
            format!("{lost} events are lost"),
            None,
        );
        for processor in 0..self.now.len() {
            if let Some((begun, number)) = self.now[processor].interrupt.take() {
                let interrupts = &mut self.line.processors[processor].interrupts;
                interrupts.push((begun, from, number));
            }
            self.goes_on(processor, from, None);
        }
        let threads: Vec<_> = self.chains.keys().copied().collect();
        for thread in threads {
            self.end_pause(thread, from);
            let chain = self.chains.entry(thread).or_default();
            chain.open.iter_mut().for_each(|open| open.saw_gap = true);
        }
    }

    fn finish(mut self) -> Timeline {
        let end = self.line.to;
        for processor in 0..self.now.len() {
            if let Some((from, number)) = self.now[processor].interrupt.take() {
                let interrupts = &mut self.line.processors[processor].interrupts;
                interrupts.push((from, end, number));
            }
            self.goes_on(processor, end, None);
        }
        let threads: Vec<_> = self.chains.keys().copied().collect();
        for thread in threads {
            self.end_pause(thread, end);
            self.close(thread, 0, end, Outcome::Open);
        }
        for (domain, (from, state)) in std::mem::take(&mut self.states) {
            self.stage(Some((from, state)), domain, end);
        }
        let fallen = &self.fallen;
        let names = &self.line.domains;
        let has_fallen = |stage: &Stage| fallen.contains(&names.name(stage.domain));
        let mut stages = std::mem::take(&mut self.line.stages);
        stages.retain(has_fallen);
        stages.sort_by_key(|stage| stage.from);
        self.line.stages = stages;
        self.line
    }
}
