//! Every order in which one processor loads and leaves a table and another changes an entry of it,
//! or has it left: the protocol of `spaces`, step by step, with store buffers as x86 has them. What
//! is broken on purpose is found.

use std::collections::HashSet;

/// The user table, and the kernel's.
const USER: u8 = 1;
const KERNEL: u8 = 0;
/// Entry of the table: what was there, and what replaces it.
const OLD: u8 = 0;
const NEW: u8 = 1;

const ENTRY: usize = 0;
const COMING: usize = 1;
const LOADED: usize = 2;

/// What is left out or turned round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// `loaded` is read before `coming`.
    ReadsTurnedRound,
    /// The entry's store may still wait when the words are read.
    NoFenceOfTheChanger,
    /// The word may still wait when the table is loaded, as if that were no fence itself.
    NoFenceOfTheLoader,
    /// `coming` is never written.
    OneWord,
}

/// What the other processor wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// That no translation by the old entry is left.
    Change,
    /// That the table is not loaded.
    Leave,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u8; 3],
    /// Stores that others do not see yet: of the loader, of the changer.
    buffers: [Vec<(usize, u8)>; 2],
    /// The loader's next step, and how often it may still load.
    loader: u8,
    loads: u8,
    table: u8,
    /// The translation that the loader has cached.
    cached: Option<u8>,
    changer: u8,
    found: bool,
    asked: bool,
}

impl State {
    fn start() -> Self {
        State {
            memory: [OLD, KERNEL, KERNEL],
            buffers: [Vec::new(), Vec::new()],
            loader: 0,
            loads: 2,
            table: KERNEL,
            cached: None,
            changer: 0,
            found: false,
            asked: false,
        }
    }

    fn store(&mut self, who: usize, place: usize, value: u8) {
        self.buffers[who].push((place, value));
    }

    fn drain(&mut self, who: usize) {
        for (place, value) in core::mem::take(&mut self.buffers[who]) {
            self.memory[place] = value;
        }
    }

    fn load_table(&mut self, table: u8) {
        self.table = table;
        self.cached = None;
    }

    /// What the loader does next: loads the user's table, stays, loads the kernel's.
    fn loader_step(&mut self, broken: Broken) {
        let table = if self.loader < 4 { USER } else { KERNEL };
        match self.loader {
            0 | 4 if broken != Broken::OneWord => self.store(0, COMING, table),
            1 | 5 if broken != Broken::NoFenceOfTheLoader => self.drain(0),
            2 | 6 => self.load_table(table),
            3 | 7 => self.store(0, LOADED, table),
            _ => {}
        }
        self.loader = (self.loader + 1) % 8;
        self.loads -= u8::from(self.loader == 0);
    }

    /// The request's interrupt, where the loader has interrupts on; the answer is a fence.
    fn serve(&mut self, wish: Wish) {
        match wish {
            Wish::Change => self.cached = None,
            Wish::Leave if self.table == USER => {
                self.store(0, COMING, KERNEL);
                self.load_table(KERNEL);
                self.store(0, LOADED, KERNEL);
                self.loader = 0;
            }
            Wish::Leave => {}
        }
        self.drain(0);
        self.asked = false;
    }

    fn changer_step(&mut self, broken: Broken, wish: Wish) {
        let words = match broken {
            Broken::ReadsTurnedRound => [LOADED, COMING],
            _ => [COMING, LOADED],
        };
        match self.changer {
            0 if wish == Wish::Change => self.store(1, ENTRY, NEW),
            1 if broken != Broken::NoFenceOfTheChanger => self.drain(1),
            2 | 3 => self.found |= self.memory[words[usize::from(self.changer - 2)]] == USER,
            4 => self.asked = self.found,
            _ => {}
        }
        self.changer += 1;
    }

    /// All states that may follow.
    fn successors(&self, broken: Broken, wish: Wish) -> Vec<State> {
        let mut all = Vec::new();
        let mut add = |act: &dyn Fn(&mut State)| {
            let mut next = self.clone();
            act(&mut next);
            all.push(next);
        };
        for who in 0..2 {
            if !self.buffers[who].is_empty() {
                add(&|state| {
                    let (place, value) = state.buffers[who].remove(0);
                    state.memory[place] = value;
                });
            }
        }
        // Nobody begins to load what is being freed.
        let may_begin = self.loads > 0 && (wish == Wish::Change || self.changer == 0);
        if self.loader != 0 || may_begin {
            add(&|state| state.loader_step(broken));
        }
        if self.table == USER && self.cached.is_none() {
            add(&|state| state.cached = Some(state.memory[ENTRY]));
        }
        if self.asked && matches!(self.loader, 0 | 4) {
            add(&|state| state.serve(wish));
        }
        // Who frees a table has it for himself: all that loading it has done has come to pass.
        let loads = (1..4).contains(&self.loader) || self.buffers[0].iter().any(|s| s.1 == USER);
        let may_start = wish == Wish::Change || !loads;
        if self.changer < 5 && (self.changer > 0 || may_start) {
            add(&|state| state.changer_step(broken, wish));
        }
        all
    }

    fn is_wrong(&self, wish: Wish) -> bool {
        let done = self.changer == 5 && !self.asked;
        done && match wish {
            Wish::Change => self.table == USER && self.cached == Some(OLD),
            Wish::Leave => self.table == USER,
        }
    }
}

/// Whether some order goes wrong.
fn goes_wrong(broken: Broken, wish: Wish) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![State::start()];
    while let Some(state) = open.pop() {
        if state.is_wrong(wish) {
            return true;
        }
        if seen.insert(state.clone()) {
            open.extend(state.successors(broken, wish));
        }
    }
    false
}

#[test]
fn a_change_reaches_who_has_the_table() {
    assert!(!goes_wrong(Broken::Nothing, Wish::Change));
}

#[test]
fn a_table_that_is_freed_is_loaded_nowhere() {
    assert!(!goes_wrong(Broken::Nothing, Wish::Leave));
}

#[test]
fn what_is_broken_is_found() {
    assert!(goes_wrong(Broken::ReadsTurnedRound, Wish::Change));
    assert!(goes_wrong(Broken::NoFenceOfTheChanger, Wish::Change));
    assert!(goes_wrong(Broken::NoFenceOfTheLoader, Wish::Change));
    assert!(goes_wrong(Broken::OneWord, Wish::Change));
}
