//! Every order in which threads read, write, clean, remove, cut and load one page of a memory
//! object: the protocol of [decision 0034], step by step, with store buffers as x86 has them. What
//! is broken on purpose is found.
//!
//! There is a word for the page (frame, DIRTY, WRITEBACK, LOADING) and a count for each frame, of
//! the page and of those who use the frame. The code is `lib/system/pages`.
//!
//! [decision 0034]: ../../../../docs/decisions/0034-pages-of-memory-objects.md

use std::collections::HashSet;

/// What is left out or turned round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// Whoever has raised the count does not look whether the page still has the frame.
    NoSecondLook,
    /// He looks, but not whether the frame is being loaded.
    LoadingUnseen,
    /// A write marks the page before it has copied.
    MarkFirst,
    /// A write marks whatever frame the page has by then.
    MarkAnyFrame,
    /// A removal takes the frame out of the word, and then looks whether somebody uses it.
    ClearFirst,
    /// A removal does not look whether the page is dirty when it takes the frame.
    DirtyUnseen,
    /// A cut frees the frame, whoever uses it.
    CutFrees,
    /// A page whose load was broken off keeps the frame that a device may still write to.
    FrameKept,
    /// Cleaning takes the mark when the bytes have been read, and not before.
    CleanLast,
    /// Whoever writes back raises the count of a frame that is frozen.
    HoldFrozen,
    /// A removal does not look whether the page is being written back.
    WriteBackUnseen,
}

/// The word of the page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Word {
    /// 0: none.
    frame: u8,
    dirty: bool,
    writeback: bool,
    loading: bool,
}

/// The count of a frame that is frozen.
const BUSY: u8 = 9;
/// Content of a frame: of the page as it was; of somebody else; as the first of the actors wrote
/// it, and so on.
const OLD: u8 = 1;
const OTHERS: u8 = 2;
const WRITTEN: u8 = 10;

/// Who acts, and how far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Actor {
    what: What,
    step: u8,
    /// The word that he has read.
    seen: Word,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    /// Reads the page.
    Read,
    /// Writes to the page; it is his duty that the bytes reach the disk once he says so.
    Write,
    /// Cleans it: what is dirty goes to the disk.
    Clean,
    /// Takes its frame away if nobody uses it.
    Remove,
    /// Takes its frame away, whoever uses it.
    Cut,
    /// Has a device load the page, and dies before it has.
    LoadAndDie,
    /// Loads the page if it has no frame.
    Load,
    /// Another object takes frames that are free.
    Take,
}

/// Frames 1 and 2.
const FRAMES: usize = 2;
const DONE: u8 = 99;

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    word: Word,
    /// Of frame 1, of frame 2.
    count: [u8; FRAMES],
    content: [u8; FRAMES],
    is_free: [bool; FRAMES],
    disk: u8,
    /// The frame that a device is going to write to, for a load that was broken off.
    device: u8,
    /// A write is through and counts.
    is_written: bool,
    actors: Vec<Actor>,
    /// Contents that are stored and that others do not see yet, of each actor.
    buffers: Vec<Vec<(u8, u8)>>,
    wrong: Option<&'static str>,
}

/// The index of a frame.
fn at(frame: u8) -> usize {
    usize::from(frame) - 1
}

impl State {
    fn new(has_page: bool, actors: &[What]) -> Self {
        let actor = |what: &What| Actor {
            what: *what,
            step: 0,
            seen: Word::default(),
        };
        State {
            word: Word {
                frame: u8::from(has_page),
                ..Word::default()
            },
            count: [u8::from(has_page), 0],
            content: [if has_page { OLD } else { OTHERS }, OTHERS],
            is_free: [!has_page, true],
            disk: OLD,
            device: 0,
            is_written: false,
            actors: actors.iter().map(actor).collect(),
            buffers: vec![Vec::new(); actors.len()],
            wrong: None,
        }
    }

    fn drain(&mut self, who: usize) {
        for (frame, content) in core::mem::take(&mut self.buffers[who]) {
            self.content[at(frame)] = content;
        }
    }

    /// One user of `frame` less; the last one frees it.
    fn drop_one(&mut self, frame: u8) {
        let count = &mut self.count[at(frame)];
        match *count {
            0 => self.wrong = Some("a frame is given back twice"),
            1 => self.free(frame),
            _ => *count -= 1,
        }
    }

    fn free(&mut self, frame: u8) {
        self.count[at(frame)] = 0;
        self.is_free[at(frame)] = true;
    }

    /// A free frame for `content`, with one user.
    fn take(&mut self, content: u8) -> Option<u8> {
        let index = self.is_free.iter().position(|free| *free)?;
        self.is_free[index] = false;
        (self.count[index], self.content[index]) = (1, content);
        Some(index as u8 + 1)
    }

    /// What actor `who` does next.
    fn step(&mut self, who: usize, broken: Broken) {
        let mut actor = self.actors[who];
        actor.step = match actor.what {
            What::Read | What::Write => self.use_page(who, &mut actor, broken),
            What::Clean => self.clean(&mut actor, broken),
            What::Remove => self.remove(&mut actor, broken),
            What::Cut => self.cut(broken),
            What::LoadAndDie => self.load_and_die(&actor, broken),
            What::Load => self.load(&mut actor),
            What::Take => {
                let _ = self.take(OTHERS);
                DONE
            }
        };
        self.actors[who] = actor;
    }

    /// Reading and writing begin alike: read the word, raise the frame's count, read the word
    /// again. All but the copy are atomic operations that are fences on x86.
    fn use_page(&mut self, who: usize, actor: &mut Actor, broken: Broken) -> u8 {
        let frame = actor.seen.frame;
        match actor.step {
            0 => {
                actor.seen = self.word;
                let is_there = self.word.frame != 0 && !self.word.loading;
                if is_there { 1 } else { DONE }
            }
            1 => match self.count[at(frame)] {
                // Frozen or free: the word has changed, or is about to.
                BUSY | 0 => 0,
                _ => {
                    self.count[at(frame)] += 1;
                    2
                }
            },
            2 => {
                let same = self.word.frame == frame;
                let loads = self.word.loading && broken != Broken::LoadingUnseen;
                if broken == Broken::NoSecondLook || same && !loads {
                    let first = actor.what == What::Write && broken == Broken::MarkFirst;
                    return if first { 4 } else { 3 };
                }
                self.drop_one(frame);
                0
            }
            3 => {
                if actor.what == What::Write {
                    self.buffers[who].push((frame, WRITTEN + who as u8));
                    return if broken == Broken::MarkFirst { 5 } else { 4 };
                }
                if self.content[at(frame)] == OTHERS {
                    self.wrong = Some("bytes of somebody else are read");
                }
                5
            }
            4 => {
                // A compare-and-swap, which is a fence.
                self.drain(who);
                let same = self.word.frame == frame || broken == Broken::MarkAnyFrame;
                let counts = same && self.word.frame != 0;
                self.word.dirty |= counts;
                self.is_written |= counts;
                if broken == Broken::MarkFirst && counts {
                    3
                } else {
                    5
                }
            }
            _ => {
                self.drain(who);
                self.drop_one(frame);
                DONE
            }
        }
    }

    /// DIRTY becomes WRITEBACK, by a compare-and-swap; then a device holds the frame as a reader
    /// does, and the bytes go to the disk; only `commit` ends WRITEBACK.
    fn clean(&mut self, actor: &mut Actor, broken: Broken) -> u8 {
        let frame = actor.seen.frame;
        match actor.step {
            0 if !self.word.dirty || self.word.writeback => DONE,
            0 => {
                if broken != Broken::CleanLast {
                    (self.word.dirty, self.word.writeback) = (false, true);
                }
                1
            }
            1 => {
                actor.seen = self.word;
                let is_there = self.word.frame != 0 && !self.word.loading;
                if is_there { 2 } else { DONE }
            }
            // A removal has it; it finds the mark and gives up.
            2 if self.count[at(frame)] == BUSY && broken != Broken::HoldFrozen => 1,
            2 if self.count[at(frame)] == 0 => 1,
            2 => {
                self.count[at(frame)] += 1;
                3
            }
            3 if self.word.frame == frame && !self.word.loading => 4,
            3 => {
                self.drop_one(frame);
                1
            }
            4 => {
                self.disk = self.content[at(frame)];
                5
            }
            _ => {
                if broken == Broken::CleanLast {
                    self.word.dirty = false;
                }
                self.word.writeback = false;
                self.drop_one(frame);
                DONE
            }
        }
    }

    /// Freezes the frame, takes it out of the word, frees it.
    fn remove(&mut self, actor: &mut Actor, broken: Broken) -> u8 {
        let frame = actor.seen.frame;
        let is_clean = |word: Word| {
            let written_back = word.writeback && broken != Broken::WriteBackUnseen;
            let marked = word.dirty || written_back;
            !word.loading && (!marked || broken == Broken::DirtyUnseen)
        };
        match actor.step {
            0 => {
                actor.seen = self.word;
                match self.word.frame != 0 && is_clean(self.word) {
                    true if broken == Broken::ClearFirst => 2,
                    true => 1,
                    false => DONE,
                }
            }
            1 if self.count[at(frame)] == 1 => {
                self.count[at(frame)] = BUSY;
                2
            }
            1 => DONE,
            2 => {
                let same = self.word.frame == frame && is_clean(self.word);
                if same {
                    self.word = Word::default();
                } else if broken != Broken::ClearFirst {
                    self.count[at(frame)] = 1;
                }
                if same { 3 } else { DONE }
            }
            _ => {
                if broken == Broken::ClearFirst && self.count[at(frame)] != 1 {
                    // Somebody uses it, so it is not freed; the page has lost it all the same.
                    self.wrong = Some("a page has lost a frame that is in use");
                }
                self.free(frame);
                DONE
            }
        }
    }

    /// Takes the frame out of the word; it lives on by its count.
    fn cut(&mut self, broken: Broken) -> u8 {
        let frame = self.word.frame;
        if frame == 0 || self.count[at(frame)] == BUSY {
            return if frame == 0 { DONE } else { 0 };
        }
        self.word = Word::default();
        self.is_written = false;
        match broken {
            Broken::CutFrees => self.free(frame),
            _ => self.drop_one(frame),
        }
        DONE
    }

    /// Begins to load, and dies: LOADING ends as invalid. The device holds its frame until it is
    /// done, whenever that is.
    fn load_and_die(&mut self, actor: &Actor, broken: Broken) -> u8 {
        match actor.step {
            0 if self.word.frame != 0 => DONE,
            0 => match self.take(OTHERS) {
                None => DONE,
                Some(frame) => {
                    // The page's and the device's.
                    self.count[at(frame)] = 2;
                    self.device = frame;
                    self.word = Word {
                        frame,
                        loading: true,
                        ..Word::default()
                    };
                    1
                }
            },
            _ => {
                let frame = self.word.frame;
                if frame != 0 && self.word.loading {
                    if broken == Broken::FrameKept {
                        self.content[at(frame)] = self.disk;
                        self.word.loading = false;
                    } else {
                        self.word = Word::default();
                        self.drop_one(frame);
                    }
                }
                DONE
            }
        }
    }

    fn load(&mut self, actor: &mut Actor) -> u8 {
        match actor.step {
            0 if self.word.frame != 0 => DONE,
            0 => match self.take(OTHERS) {
                None => DONE,
                Some(frame) => {
                    // The page's and the device's: else a cut would free what is written to.
                    self.count[at(frame)] = 2;
                    self.word = Word {
                        frame,
                        loading: true,
                        ..Word::default()
                    };
                    actor.seen = self.word;
                    1
                }
            },
            1 => {
                self.content[at(actor.seen.frame)] = self.disk;
                2
            }
            _ => {
                if self.word == actor.seen {
                    self.word.loading = false;
                }
                self.drop_one(actor.seen.frame);
                DONE
            }
        }
    }

    /// All states that may follow.
    fn successors(&self, broken: Broken) -> Vec<State> {
        let mut all = Vec::new();
        for who in 0..self.actors.len() {
            if !self.buffers[who].is_empty() {
                let mut next = self.clone();
                let (frame, content) = next.buffers[who].remove(0);
                next.content[at(frame)] = content;
                all.push(next);
            }
            if self.actors[who].step != DONE {
                let mut next = self.clone();
                next.step(who, broken);
                all.push(next);
            }
        }
        if self.device != 0 {
            // At last it writes, whatever has become of the page.
            let mut next = self.clone();
            let frame = core::mem::take(&mut next.device);
            next.content[at(frame)] = OTHERS;
            next.drop_one(frame);
            all.push(next);
        }
        all
    }

    /// What is wrong here, if anything.
    fn fault(&self) -> Option<&'static str> {
        let is_over = self.actors.iter().all(|actor| actor.step == DONE) && self.device == 0;
        if self.wrong.is_some() || !is_over {
            return self.wrong;
        }
        let frame = self.word.frame;
        // What is not dirty is on the disk as it is in memory.
        let is_safe = match frame {
            0 => self.disk >= WRITTEN,
            _ if self.word.dirty => self.content[at(frame)] >= WRITTEN,
            _ => self.disk >= WRITTEN && self.disk == self.content[at(frame)],
        };
        if self.is_written && !is_safe {
            return Some("a write that counts is lost");
        }
        if frame != 0 && self.content[at(frame)] == OTHERS {
            return Some("the page has bytes of somebody else");
        }
        let used = self.count.iter().zip(&self.is_free);
        let leaked = used
            .filter(|(count, free)| (**count == 0) != **free)
            .count();
        (leaked > 0).then_some("a frame is neither free nor used")
    }
}

/// What goes wrong in some order, if anything; and how many states there are.
fn explore(has_page: bool, actors: &[What], broken: Broken) -> (Option<&'static str>, usize) {
    let mut seen = HashSet::new();
    let mut open = vec![State::new(has_page, actors)];
    while let Some(state) = open.pop() {
        if let Some(fault) = state.fault() {
            return (Some(fault), seen.len());
        }
        if seen.insert(state.clone()) {
            open.extend(state.successors(broken));
        }
    }
    (None, seen.len())
}

use What::{Clean, Cut, Load, LoadAndDie, Read, Remove, Take, Write};

/// The scenes: whether the page has a frame at first, and who acts.
const SCENES: [(bool, &[What]); 12] = [
    (true, &[Read, Remove, Take]),
    (true, &[Write, Write, Clean]),
    (true, &[Write, Write, Remove, Take]),
    (true, &[Write, Clean, Remove, Take]),
    (true, &[Read, Cut, Take, Load]),
    (true, &[Write, Cut, Load]),
    (false, &[LoadAndDie, Load, Read]),
    (true, &[Read, Remove, Load, Take]),
    (true, &[Write, Remove, Load, Clean]),
    (true, &[Read, Write, Clean, Remove, Take, Load]),
    (true, &[Write, Write, Clean, Remove, Cut, Load]),
    (false, &[LoadAndDie, Load, Write, Clean, Cut, Take]),
];

#[test]
fn nothing_goes_wrong_in_any_order() {
    for (number, (has_page, actors)) in SCENES.into_iter().enumerate() {
        let (fault, states) = explore(has_page, actors, Broken::Nothing);
        assert_eq!(fault, None, "scene {number}");
        assert!(states > 30, "{states} states are no model");
    }
}

fn is_found(broken: Broken, scene: usize) -> Option<&'static str> {
    let (has_page, actors) = SCENES[scene];
    explore(has_page, actors, broken).0
}

#[test]
fn a_reader_who_looks_once_is_found() {
    let told = is_found(Broken::NoSecondLook, 0);
    assert_eq!(told, Some("bytes of somebody else are read"));
}

#[test]
fn a_reader_of_what_is_being_loaded_is_found() {
    let told = is_found(Broken::LoadingUnseen, 7);
    assert_eq!(told, Some("bytes of somebody else are read"));
}

#[test]
fn a_write_that_marks_first_is_found() {
    let told = is_found(Broken::MarkFirst, 1);
    assert_eq!(told, Some("a write that counts is lost"));
}

#[test]
fn a_write_that_marks_another_frame_is_found() {
    let told = is_found(Broken::MarkAnyFrame, 5);
    assert_eq!(told, Some("a write that counts is lost"));
}

#[test]
fn a_removal_that_takes_before_it_freezes_is_found() {
    let told = is_found(Broken::ClearFirst, 0);
    assert_eq!(told, Some("a page has lost a frame that is in use"));
}

#[test]
fn a_removal_of_what_is_dirty_is_found() {
    let told = is_found(Broken::DirtyUnseen, 2);
    assert_eq!(told, Some("a write that counts is lost"));
}

#[test]
fn a_cut_that_frees_what_is_used_is_found() {
    assert!(is_found(Broken::CutFrees, 4).is_some());
}

#[test]
fn a_frame_that_a_device_still_writes_to_is_found() {
    assert!(is_found(Broken::FrameKept, 6).is_some());
}

#[test]
fn cleaning_that_takes_the_mark_last_is_found() {
    let told = is_found(Broken::CleanLast, 1);
    assert_eq!(told, Some("a write that counts is lost"));
}

#[test]
fn writing_back_what_is_frozen_is_found() {
    assert!(is_found(Broken::HoldFrozen, 3).is_some());
}

#[test]
fn a_removal_of_what_is_written_back_is_found() {
    let told = is_found(Broken::WriteBackUnseen, 3);
    assert_eq!(told, Some("a write that counts is lost"));
}
