//! Every order in which two processors write to a page of one address space while a third forks it,
//! and in which one writes to a page of a memory object while another cleans it: the protocol of
//! `user::space`, step by step, with translations that are cached at any moment and writes that
//! wait in store buffers. What is broken on purpose is found.

use std::collections::HashSet;
use std::hash::Hash;

/// What is left out or turned round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The fork flushes nothing.
    ForkWithoutFlush,
    /// The table is unlocked before the fork's flush, so its new entries are seen before.
    UnlockBeforeFlush,
    /// The copy is put in whatever the entry is by then.
    NoSecondLook,
    /// The frame is copied without a count of it.
    CopyWithoutCount,
    /// A page is made writable in place although others have the frame.
    InPlaceAlways,
    /// Others may go on with the old frame when the copy is in.
    CopyWithoutFlush,
}

/// An entry: frame, writable now, copied on write.
type Entry = (usize, bool, bool);

/// Words of a page: written by the first and the second program, and by the child.
const CHILD: u8 = 4;

/// A processor that runs a program which writes its word once; the second reads before.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Program {
    step: u8,
    cached: Option<(usize, bool)>,
    /// Writes that others do not see yet: frame and word.
    buffer: Vec<(usize, u8)>,
    asked: bool,
    has_read: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    entry: Entry,
    locked: bool,
    /// Counts of the frame that is forked.
    count: i8,
    content: [u8; 3],
    programs: [Program; 2],
    forker: u8,
    child: u8,
    wrong: bool,
}

/// Steps of a program; those between are the kernel's at a fault.
const USER: u8 = 0;
const LOCK: u8 = 1;
const LOOK: u8 = 2;
const COPY: u8 = 3;
const LOCK_AGAIN: u8 = 4;
const PUT: u8 = 5;
const FLUSH: u8 = 6;
const UNLOCK: u8 = 7;
const DONE: u8 = 8;
const FORKED: u8 = 10;

impl State {
    fn start() -> Self {
        let program = Program {
            step: USER,
            cached: None,
            buffer: Vec::new(),
            asked: false,
            has_read: false,
        };
        State {
            entry: (0, true, false),
            locked: false,
            count: 1,
            content: [0; 3],
            programs: [program.clone(), program],
            forker: 0,
            child: 0,
            wrong: false,
        }
    }

    /// What program `who` sees in a frame.
    fn view(&self, who: usize, frame: usize) -> u8 {
        let own = self.programs[who].buffer.iter().filter(|w| w.0 == frame);
        own.fold(self.content[frame], |seen, write| seen | write.1)
    }

    fn drain(&mut self, who: usize) {
        for (frame, word) in core::mem::take(&mut self.programs[who].buffer) {
            self.content[frame] |= word;
        }
    }

    /// The program's own instruction, with a cached translation.
    fn user_step(&mut self, who: usize, frame: usize, writable: bool) {
        let first_is_done = self.programs[0].step == DONE && self.programs[0].buffer.is_empty();
        if who == 1 && !self.programs[1].has_read {
            self.wrong |= first_is_done && self.view(1, frame) & 1 == 0;
            self.programs[1].has_read = true;
        } else if writable {
            self.programs[who].buffer.push((frame, 1 << who));
            self.programs[who].step = DONE;
        } else {
            self.programs[who].step = LOCK;
        }
    }

    /// A step of the kernel at a write fault of `who`; false if it has to wait.
    fn fault_step(&mut self, who: usize, broken: Broken) -> bool {
        let (own, other) = (who + 1, 1 - who);
        let mut next = self.programs[who].step + 1;
        match self.programs[who].step {
            LOCK | LOCK_AGAIN if self.locked => return false,
            LOCK | LOCK_AGAIN => {
                self.drain(who);
                self.locked = true;
            }
            LOOK => {
                let (frame, writable, _) = self.entry;
                let alone = self.count == 1 || broken == Broken::InPlaceAlways;
                if writable || alone {
                    self.entry = (frame, true, false);
                    self.programs[who].cached = None;
                    next = USER;
                } else if broken != Broken::CopyWithoutCount {
                    self.count += 1;
                }
                self.locked = false;
            }
            COPY => {
                self.wrong |= self.count == 0;
                self.content[own] = self.content[0];
            }
            PUT => {
                let is_same = self.entry == (0, false, true);
                if is_same || broken == Broken::NoSecondLook {
                    self.entry = (own, true, false);
                    self.programs[who].cached = None;
                    self.programs[other].asked = broken != Broken::CopyWithoutFlush;
                } else {
                    self.release(broken, 0);
                    self.locked = false;
                    next = USER;
                }
            }
            FLUSH if self.programs[other].asked => return false,
            FLUSH => {}
            UNLOCK => {
                self.locked = false;
                self.release(broken, 1);
                next = USER;
            }
            _ => return false,
        }
        self.programs[who].step = next;
        true
    }

    /// Gives up the count for copying, and those of the entry.
    fn release(&mut self, broken: Broken, of_entry: i8) {
        self.count -= of_entry + i8::from(broken != Broken::CopyWithoutCount);
    }

    fn fork_step(&mut self, broken: Broken) -> bool {
        let served = self.programs.iter().all(|program| !program.asked);
        let mut steps = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        if broken == Broken::UnlockBeforeFlush {
            steps = [0, 1, 4, 2, 3, 5, 6, 7, 8];
        }
        match steps[usize::from(self.forker)] {
            0 if self.locked => return false,
            0 => self.locked = true,
            1 => {
                self.count += 1;
                self.entry = (self.entry.0, false, true);
            }
            2 if broken != Broken::ForkWithoutFlush => {
                self.programs.iter_mut().for_each(|p| p.asked = true);
            }
            3 if !served => return false,
            4 => self.locked = false,
            5 => self.child = self.content[0],
            6 => self.wrong |= self.child != self.content[0],
            7 if self.count == 1 => self.content[0] |= CHILD,
            // The child is dropped; it has copied otherwise, which is seen by nobody.
            8 => {
                self.count -= 1;
                self.forker = FORKED;
                return true;
            }
            _ => {}
        }
        self.forker += 1;
        true
    }

    fn successors(&self, broken: Broken) -> Vec<State> {
        let mut all = Vec::new();
        let mut add = |act: &dyn Fn(&mut State) -> bool| {
            let mut next = self.clone();
            if act(&mut next) {
                all.push(next);
            }
        };
        for (who, program) in self.programs.iter().enumerate() {
            if !program.buffer.is_empty() {
                add(&|state| {
                    let (frame, word) = state.programs[who].buffer.remove(0);
                    state.content[frame] |= word;
                    true
                });
            }
            if program.cached.is_none() && matches!(program.step, USER | DONE) {
                add(&|state| {
                    state.programs[who].cached = Some((state.entry.0, state.entry.1));
                    true
                });
            }
            // With interrupts on, and in waits.
            let serves = matches!(program.step, USER | LOCK | COPY | LOCK_AGAIN | FLUSH | DONE);
            if program.asked && serves {
                add(&|state| {
                    state.programs[who].cached = None;
                    state.drain(who);
                    state.programs[who].asked = false;
                    true
                });
            }
            match (program.step, program.cached) {
                (USER, Some((frame, writable))) => add(&|state| {
                    state.user_step(who, frame, writable);
                    true
                }),
                _ => add(&|state| state.fault_step(who, broken)),
            }
        }
        if self.forker < FORKED {
            add(&|state| state.fork_step(broken));
        }
        all
    }

    /// Whether something is lost, seen that must not be, or not counted.
    fn is_wrong(&self) -> bool {
        let done = self.forker == FORKED
            && self
                .programs
                .iter()
                .all(|p| p.step == DONE && p.buffer.is_empty());
        let (frame, ..) = self.entry;
        self.wrong
            || self.count < 0
            || done && (self.content[frame] != 3 || self.count != i8::from(frame == 0))
    }
}

/// A state of a model.
trait Model: Clone + Eq + Hash {
    fn next(&self) -> Vec<Self>;
    fn is_bad(&self) -> bool;
}

impl Model for (State, u8) {
    fn next(&self) -> Vec<Self> {
        let states = self.0.successors(ALL[usize::from(self.1)]);
        states.into_iter().map(|state| (state, self.1)).collect()
    }

    fn is_bad(&self) -> bool {
        self.0.is_wrong()
    }
}

/// Whether some order goes wrong; and how many states there are, as far as it was looked.
fn explore<M: Model>(start: M) -> (bool, usize) {
    let mut seen = HashSet::new();
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        if state.is_bad() {
            return (true, seen.len());
        }
        if seen.insert(state.clone()) {
            open.extend(state.next());
        }
    }
    (false, seen.len())
}

const ALL: [Broken; 7] = [
    Broken::Nothing,
    Broken::ForkWithoutFlush,
    Broken::UnlockBeforeFlush,
    Broken::NoSecondLook,
    Broken::CopyWithoutCount,
    Broken::InPlaceAlways,
    Broken::CopyWithoutFlush,
];

#[test]
fn a_fork_loses_nothing_and_shows_nothing_later() {
    let (wrong, states) = explore((State::start(), 0));
    assert!(!wrong);
    assert!(states > 2_000, "only {states} states");
}

#[test]
fn what_is_broken_in_a_fork_is_found() {
    for number in 1..ALL.len() {
        assert!(
            explore((State::start(), number as u8)).0,
            "variant {number}"
        );
    }
}

/// How a write to a page of a memory object, or its cleaning, is broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Careless {
    Nothing,
    /// The page is marked as dirty before the table is locked.
    MarkBeforeLock,
    /// Write-protecting does not flush.
    NoFlush,
    /// The table is unlocked before the flush, and the page read.
    ReadBeforeFlush,
    /// The mark is taken when the page is write-protected already, and has been read.
    TakenLate,
}

/// One processor writes a page twice while another cleans it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Object {
    how: Careless,
    writable: bool,
    dirty: bool,
    locked: bool,
    content: u8,
    on_disk: u8,
    writer: u8,
    written: u8,
    cached: Option<bool>,
    waiting: Option<u8>,
    asked: bool,
    cleaner: u8,
}

impl Object {
    fn start(how: Careless) -> Self {
        Object {
            how,
            writable: false,
            dirty: false,
            locked: false,
            content: 0,
            on_disk: 0,
            writer: 0,
            written: 0,
            cached: None,
            waiting: None,
            asked: false,
            cleaner: 0,
        }
    }

    fn drain(&mut self) {
        self.content = self.waiting.take().unwrap_or(self.content);
    }

    fn writer_step(&mut self) -> bool {
        match self.writer {
            0 => match self.cached {
                Some(true) if self.written < 2 && self.waiting.is_none() => {
                    self.written += 1;
                    self.waiting = Some(self.written);
                    return true;
                }
                Some(false) if self.written < 2 => {
                    self.dirty |= self.how == Careless::MarkBeforeLock;
                }
                _ => return false,
            },
            1 if self.locked => return false,
            1 => {
                self.locked = true;
                self.drain();
            }
            2 => {
                self.dirty |= self.how != Careless::MarkBeforeLock;
            }
            3 => self.writable = true,
            _ => {
                self.locked = false;
                self.cached = None;
            }
        }
        self.writer = (self.writer + 1) % 5;
        true
    }

    fn cleaner_step(&mut self) -> bool {
        let late = self.how == Careless::TakenLate;
        match self.cleaner {
            0 => self.dirty &= late,
            1 if self.locked => return false,
            1 => self.locked = true,
            2 => self.writable = false,
            3 => self.asked = self.how != Careless::NoFlush,
            4 if self.how == Careless::ReadBeforeFlush => self.on_disk = self.content,
            4 => {}
            5 if self.asked => return false,
            5 => self.locked = false,
            6 if self.how != Careless::ReadBeforeFlush => self.on_disk = self.content,
            6 => {}
            7 => self.dirty &= !late,
            _ => return false,
        }
        self.cleaner += 1;
        true
    }
}

impl Model for Object {
    fn next(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |act: &dyn Fn(&mut Self) -> bool| {
            let mut next = self.clone();
            if act(&mut next) {
                all.push(next);
            }
        };
        add(&Self::writer_step);
        add(&Self::cleaner_step);
        add(&|state| {
            let waited = state.waiting.is_some();
            state.drain();
            waited
        });
        add(&|state| {
            let walks = state.cached.is_none() && state.writer == 0;
            state.cached = state.cached.or(walks.then_some(state.writable));
            walks
        });
        add(&|state| {
            let serves = state.asked && matches!(state.writer, 0 | 1);
            if serves {
                state.cached = None;
                state.drain();
                state.asked = false;
            }
            serves
        });
        all
    }

    fn is_bad(&self) -> bool {
        let done = self.cleaner == 8 && self.written == 2 && self.waiting.is_none();
        done && self.writer == 0 && !self.dirty && self.content != self.on_disk
    }
}

#[test]
fn what_is_written_is_dirty_or_written_back() {
    assert!(!explore(Object::start(Careless::Nothing)).0);
}

#[test]
fn careless_writes_and_cleaning_are_found() {
    for how in [
        Careless::MarkBeforeLock,
        Careless::NoFlush,
        Careless::ReadBeforeFlush,
        Careless::TakenLate,
    ] {
        assert!(explore(Object::start(how)).0);
    }
}
