//! Every order in which a page of a memory object is entered into an address space while the object
//! loses it, its area is unmapped, and the object is sealed: the protocol of `image::space`,
//! `services::vmo` and `user::space`, step by step. What is broken on purpose is found.
//!
//! Each step is a locked instruction, or done under a lock, so there is nothing that waits in a
//! store buffer. Where the code relies on that, for a word that is read after another was written,
//! the variants read first.

use std::collections::HashSet;

/// What is left out or turned round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// Whether the object still has the page is looked at before its table is locked.
    PageSeenEarly,
    /// Whether the area is still there is looked at before the page's table is locked.
    AreaSeenEarly,
    /// The object unmaps its page first, and then takes it away.
    UnmapFirst,
    /// The object looks for the table before it takes the page away.
    TableSeenEarly,
    /// The space takes its pages out first, and counts that as a change then.
    ChangeLast,
    /// The area is there before the object knows of the mapping.
    NotedLate,
    /// An object whose seal is set notes no mapping, though a change is still under way.
    SealedTooSoon,
    /// The frame is entered without a count that the entry owns.
    EnteredWithoutCount,
    /// The object gives its count up before the entry is cleared, and whoever clears it gives none.
    EntryKeepsNoCount,
}

const ALL: [Broken; 9] = [
    Broken::PageSeenEarly,
    Broken::AreaSeenEarly,
    Broken::UnmapFirst,
    Broken::TableSeenEarly,
    Broken::ChangeLast,
    Broken::NotedLate,
    Broken::SealedTooSoon,
    Broken::EnteredWithoutCount,
    Broken::EntryKeepsNoCount,
];

const DONE: u8 = 99;
/// Who has the table's lock.
const NOBODY: u8 = 0;

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// The object's word for the page: whether it has the frame.
    has_page: bool,
    /// Counts of the frame: the object's, an entry's, those of who holds it.
    count: i8,
    /// The object knows of the mapping.
    noted: bool,
    sealed: bool,
    /// A change of the object is under way.
    changing: bool,
    /// The space's area is there; and how often areas were changed.
    area: bool,
    changes: u8,
    /// The page table is there; who has locked it.
    table: bool,
    lock: u8,
    /// The page is entered.
    entry: bool,
    /// The steps of who maps and then touches the page, of who cuts it, of who unmaps the area, and
    /// of who seals.
    mapper: u8,
    cutter: u8,
    unmapper: u8,
    sealer: u8,
    /// What was seen by the mapper and by the cutter.
    seen_changes: u8,
    seen_right: bool,
    seen_area: bool,
    seen_table: bool,
    wrong: bool,
}

impl State {
    fn start() -> Self {
        State {
            has_page: true,
            count: 1,
            noted: false,
            sealed: false,
            changing: false,
            area: false,
            changes: 0,
            table: false,
            lock: NOBODY,
            entry: false,
            mapper: 0,
            cutter: 0,
            unmapper: 0,
            sealer: 0,
            seen_changes: 0,
            seen_right: false,
            seen_area: false,
            seen_table: false,
            wrong: false,
        }
    }

    fn lock(&mut self, who: u8) -> bool {
        let free = self.lock == NOBODY;
        if free {
            self.lock = who;
        }
        free
    }

    fn release(&mut self) {
        self.count -= 1;
        self.wrong |= self.count < 0;
    }

    /// What the object does when it is told of a mapping.
    fn note(&mut self, broken: Broken) {
        let is_final = self.sealed && (!self.changing || broken == Broken::SealedTooSoon);
        self.noted = !is_final;
    }

    /// Maps the object, and touches the page.
    fn mapper_step(&mut self, broken: Broken) -> bool {
        let late = broken == Broken::NotedLate;
        match self.mapper {
            0 if late => self.area = true,
            0 => self.note(broken),
            // In the broken order the object is told at last.
            1 if late => {}
            1 => self.area = true,
            2 => {
                self.seen_changes = self.changes;
                if !self.area {
                    return self.give_up();
                }
            }
            // Held: the count is raised, and the word read again.
            3 if !self.has_page => return self.give_up(),
            3 => self.count += 1,
            4 => {
                self.table = true;
                self.seen_right = self.has_page;
                self.seen_area = self.changes == self.seen_changes;
            }
            5 if self.lock != NOBODY => return false,
            5 => self.lock = 1,
            6 => {
                let right = match broken {
                    Broken::PageSeenEarly => self.seen_right,
                    _ => self.has_page,
                };
                let area = match broken {
                    Broken::AreaSeenEarly => self.seen_area,
                    _ => self.changes == self.seen_changes,
                };
                self.entry = right && area;
                self.count += i8::from(self.entry && broken != Broken::EnteredWithoutCount);
            }
            7 => self.lock = NOBODY,
            8 => self.release(),
            9 => {
                if late {
                    self.note(broken);
                }
                return self.give_up();
            }
            _ => return false,
        }
        self.mapper += 1;
        true
    }

    /// The mapper has nothing more to do.
    fn give_up(&mut self) -> bool {
        self.mapper = DONE;
        true
    }

    /// Takes the entry out, with the table locked.
    fn clear(&mut self, broken: Broken) {
        if core::mem::take(&mut self.entry) && broken != Broken::EntryKeepsNoCount {
            self.release();
        }
    }

    /// Cuts the page, unless the object is sealed.
    fn cutter_step(&mut self, broken: Broken) -> bool {
        // Taking away and unmapping, in their order.
        let (take, find) = match broken {
            Broken::UnmapFirst => (6, 2),
            Broken::TableSeenEarly => (3, 4),
            _ => (2, 3),
        };
        match self.cutter {
            0 if self.sealed => {
                self.cutter = DONE;
                return true;
            }
            0 => self.changing = true,
            1 => self.seen_table = self.table,
            step if step == take => {
                self.has_page = false;
                self.release();
            }
            step if step == find => {
                let seen = match broken {
                    Broken::TableSeenEarly => self.seen_table,
                    _ => self.table,
                };
                if !self.noted || !seen {
                    // Nothing is to be unmapped.
                    self.cutter = if broken == Broken::UnmapFirst { 6 } else { 7 };
                    return true;
                }
                return self.cutter_locks();
            }
            20 => {
                self.clear(broken);
                self.cutter = 21;
                return true;
            }
            21 => {
                self.lock = NOBODY;
                self.cutter = if broken == Broken::UnmapFirst { 6 } else { 7 };
                return true;
            }
            7 => {
                self.changing = false;
                self.cutter = DONE;
                return true;
            }
            DONE => return false,
            _ => {}
        }
        self.cutter += 1;
        true
    }

    fn cutter_locks(&mut self) -> bool {
        let locked = self.lock(2);
        if locked {
            self.cutter = 20;
        }
        locked
    }

    /// Unmaps the area.
    fn unmapper_step(&mut self, broken: Broken) -> bool {
        let (change, take) = match broken {
            Broken::ChangeLast => (4, 0),
            _ => (0, 1),
        };
        match self.unmapper {
            0 if !self.area => return false,
            step if step == change => {
                self.area = false;
                self.changes += 1;
            }
            step if step == take && self.table => {
                if !self.lock(3) {
                    return false;
                }
            }
            2 if self.lock == 3 => self.clear(broken),
            3 if self.lock == 3 => self.lock = NOBODY,
            5 => self.unmapper = DONE - 1,
            DONE => return false,
            _ => {}
        }
        self.unmapper += 1;
        true
    }

    fn sealer_step(&mut self) -> bool {
        let first = self.sealer == 0;
        self.sealed |= first;
        self.sealer = DONE;
        first
    }

    fn successors(&self, broken: Broken, unmaps: bool, seals: bool) -> Vec<State> {
        let mut all = Vec::new();
        let mut add = |act: &dyn Fn(&mut State) -> bool| {
            let mut next = self.clone();
            if act(&mut next) {
                all.push(next);
            }
        };
        add(&|state| state.mapper_step(broken));
        add(&|state| state.cutter_step(broken));
        if unmaps {
            add(&|state| state.unmapper_step(broken));
        }
        if seals {
            add(&State::sealer_step);
        }
        all
    }

    /// What is wrong when all that can be done is done.
    fn is_bad(&self, is_over: bool) -> bool {
        let lost = self.entry && !self.has_page;
        let unmapped = self.entry && !self.area;
        let counts = i8::from(self.has_page) + i8::from(self.entry);
        self.wrong || is_over && (lost || unmapped || self.count != counts)
    }
}

/// Whether some order goes wrong; and how many states there are, as far as it was looked.
fn explore(broken: Broken, unmaps: bool, seals: bool) -> (bool, usize) {
    let (mut seen, mut open) = (HashSet::new(), vec![State::start()]);
    while let Some(state) = open.pop() {
        let next = state.successors(broken, unmaps, seals);
        if state.is_bad(next.is_empty()) {
            return (true, seen.len());
        }
        if seen.insert(state) {
            open.extend(next);
        }
    }
    (false, seen.len())
}

/// Who takes part beside the mapper and the cutter.
const SCENES: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

#[test]
fn no_entry_leads_to_a_page_that_is_lost() {
    for (unmaps, seals) in SCENES {
        let (wrong, states) = explore(Broken::Nothing, unmaps, seals);
        assert!(!wrong, "unmaps: {unmaps}, seals: {seals}");
        assert!(states > 60, "only {states} states");
    }
}

#[test]
fn what_is_broken_in_a_mapping_is_found() {
    for broken in ALL {
        let mut scenes = SCENES.iter();
        let found = scenes.any(|(unmaps, seals)| explore(broken, *unmaps, *seals).0);
        assert!(found, "{broken:?}");
    }
}

/// The scenes come to their end: nobody waits for ever.
#[test]
fn nobody_waits_for_ever() {
    for (unmaps, seals) in SCENES {
        let (mut seen, mut open) = (HashSet::new(), vec![State::start()]);
        while let Some(state) = open.pop() {
            let next = state.successors(Broken::Nothing, unmaps, seals);
            let idle = |step: u8| step == DONE;
            // Who unmaps waits for an area, which a mapper that came too late did not keep.
            let stuck = next.is_empty() && !(idle(state.mapper) && idle(state.cutter));
            assert!(!stuck && (state.lock == NOBODY || !next.is_empty()));
            if seen.insert(state) {
                open.extend(next);
            }
        }
    }
}
