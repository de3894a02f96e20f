//! The lock's steps in every order: two who read twice, two who write twice. Nobody writes beside
//! another, and from each state all come to their end.

use super::{WRITER, is_left_by_readers, was_waited_for, with_reader};
use std::collections::HashSet;
use std::vec::Vec;

/// What is left out on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The last reader wakes nobody.
    ReaderWakesNobody,
    /// A writer that ends wakes nobody.
    WriterWakesNobody,
    /// Who waits does not look at the word again before he sleeps.
    SleepsUnseen,
    /// A writer does not wait for those who read.
    WaitsForNobody,
}

/// Where one of them is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// Has so many rounds to go.
    Begin(u8),
    /// A writer that has its turn and set the bit.
    Turn(u8),
    /// Has seen this word, and is about to wait.
    Seen(u8, u32),
    Asleep(u8),
    Inside(u8),
    /// Has let go, and is about to wake others.
    Wake(u8),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    word: u32,
    turn: Option<usize>,
    at: [At; WHO],
}

const WHO: usize = 4;
const READERS: usize = 2;

impl State {
    fn wake_all(&mut self) {
        for (who, at) in self.at.iter_mut().enumerate() {
            if let At::Asleep(left) = *at {
                *at = if who < READERS {
                    At::Begin(left)
                } else {
                    At::Turn(left)
                };
            }
        }
    }

    /// One step of who waits for the word.
    fn sleep(&mut self, who: usize, left: u8, seen: u32, broken: Broken) {
        let again = if who < READERS {
            At::Begin(left)
        } else {
            At::Turn(left)
        };
        let sleeps = self.word == seen || broken == Broken::SleepsUnseen;
        self.at[who] = if sleeps { At::Asleep(left) } else { again };
    }

    /// The state after one step of a reader; `None`: it has none to do.
    fn read(&self, who: usize, broken: Broken) -> Option<State> {
        let mut next = self.clone();
        match self.at[who] {
            At::Begin(0) | At::Asleep(_) | At::Turn(_) => return None,
            At::Begin(left) => match with_reader(self.word) {
                Some(word) => (next.word, next.at[who]) = (word, At::Inside(left)),
                None => next.at[who] = At::Seen(left, self.word),
            },
            At::Seen(left, seen) => next.sleep(who, left, seen, broken),
            At::Inside(left) => {
                next.word -= 1;
                let wakes = was_waited_for(self.word) && broken != Broken::ReaderWakesNobody;
                next.at[who] = match wakes {
                    true => At::Wake(left),
                    false => At::Begin(left - 1),
                };
            }
            At::Wake(left) => {
                next.at[who] = At::Begin(left - 1);
                next.wake_all();
            }
        }
        Some(next)
    }

    /// Likewise, of a writer.
    fn write(&self, who: usize, broken: Broken) -> Option<State> {
        let mut next = self.clone();
        match self.at[who] {
            At::Begin(0) | At::Asleep(_) => return None,
            At::Begin(_) if self.turn.is_some() => return None,
            At::Begin(left) => {
                next.turn = Some(who);
                next.word |= WRITER;
                next.at[who] = At::Turn(left);
            }
            At::Turn(left) => {
                let may = is_left_by_readers(self.word) || broken == Broken::WaitsForNobody;
                next.at[who] = match may {
                    true => At::Inside(left),
                    false => At::Seen(left, self.word),
                };
            }
            At::Seen(left, seen) => next.sleep(who, left, seen, broken),
            At::Inside(left) => {
                next.word &= !WRITER;
                next.at[who] = At::Wake(left);
            }
            At::Wake(left) => {
                next.turn = None;
                next.at[who] = At::Begin(left - 1);
                if broken != Broken::WriterWakesNobody {
                    next.wake_all();
                }
            }
        }
        Some(next)
    }

    fn next(&self, broken: Broken) -> Vec<State> {
        let step = |who| match who < READERS {
            true => self.read(who, broken),
            false => self.write(who, broken),
        };
        (0..WHO).filter_map(step).collect()
    }

    fn is_right(&self) -> bool {
        let inside = |who: &usize| matches!(self.at[*who], At::Inside(_));
        let writers = (READERS..WHO).filter(inside).count();
        let readers = (0..READERS).filter(inside).count();
        writers == 0 || writers == 1 && readers == 0
    }
}

/// Goes through all states; how many there are, or what is wrong with one.
fn explore(broken: Broken) -> Result<usize, &'static str> {
    let first = State {
        word: 0,
        turn: None,
        at: [At::Begin(2); WHO],
    };
    let (mut seen, mut left) = (HashSet::from([first.clone()]), std::vec![first]);
    while let Some(state) = left.pop() {
        if !state.is_right() {
            return Err("somebody writes beside another");
        }
        let next = state.next(broken);
        let all_done = state.at.iter().all(|at| *at == At::Begin(0));
        if next.is_empty() && !(all_done && state.word == 0) {
            return Err("all wait");
        }
        left.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
    }
    Ok(seen.len())
}

#[test]
fn in_no_order_two_meet_or_all_wait() {
    let states = explore(Broken::Nothing).expect("the lock is right");
    assert!(states > 1000, "{states} states are not all");
}

#[test]
fn each_step_is_needed() {
    for (broken, what) in [
        (Broken::ReaderWakesNobody, "all wait"),
        (Broken::WriterWakesNobody, "all wait"),
        (Broken::SleepsUnseen, "all wait"),
        (Broken::WaitsForNobody, "somebody writes beside another"),
    ] {
        assert_eq!(explore(broken), Err(what));
    }
}

#[test]
fn who_comes_to_read_waits_behind_a_writer() {
    assert_eq!(with_reader(2), Some(3));
    assert_eq!(with_reader(WRITER | 2), None);
    assert!(!is_left_by_readers(WRITER | 1));
}
