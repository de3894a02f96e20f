//! A name whose file is replaced each time between the question what it leads to and the question
//! what that is.

use std::cell::{Cell, RefCell};

use crate::model::{Error, Instance, ROOT, Result};
use redo::seen::{Place, steadily};
use redo::{Action, Engine, Front, Host, Kind, Order, Renaming, Report, Target};

/// The name.
const NAME: &[u8] = b"name";
/// How often it is asked before those who change names have to wait.
const LOOKS: usize = 4;

struct Here {
    front: RefCell<Front<Instance>>,
    engine: RefCell<Engine<Instance>>,
    fs: Instance,
    /// How often the file was replaced; each is one byte longer than the one before.
    count: Cell<usize>,
}

impl Host for Here {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.front.borrow_mut())
    }

    fn instance(&self, _: u32) -> Result<Instance> {
        Err(Error::Dead)
    }

    fn recovered(&self, _: &Instance, _: &Report) -> bool {
        false
    }
}

impl Here {
    fn new() -> Self {
        let fs = Instance::new(1);
        let here = Here {
            front: RefCell::new(Front::new(fs.clone())),
            engine: RefCell::new(Engine::new(fs.clone(), 1 << 20)),
            fs,
            count: Cell::new(0),
        };
        here.replace();
        here
    }

    fn replace(&self) {
        let engine = &mut *self.engine.borrow_mut();
        let (name, kind) = (b"new".to_vec(), Kind::File);
        let create = Action::Create {
            name: name.clone(),
            kind,
            mode: 0o600,
        };
        engine.change_now(self, create, [ROOT; 2]).unwrap();
        let made = self.fs.look_up(ROOT, &name).unwrap();
        self.count.set(self.count.get() + 1);
        let write = Action::Write {
            offset: 0,
            data: vec![1; self.count.get()],
        };
        engine.change_now(self, write, [made; 2]).unwrap();
        let new_name = NAME.to_vec();
        let mut order = Order::new(Action::Rename { name, new_name }, [ROOT; 2]);
        engine.rename(self, &mut order, Renaming::Replace).unwrap();
        self.front(|front| order.end(front));
    }

    /// The length of what the name leads to. In between `meanwhile` is done.
    fn length(&self, meanwhile: impl FnOnce()) -> Result<u64> {
        let inode = self.fs.look_up(ROOT, &NAME.to_vec())?;
        meanwhile();
        Ok(self.fs.facts(inode)?.size)
    }
}

/// Who has a number from the name gets hold of the file just when the last one has let it go: it
/// stays for him, and goes when he does.
#[test]
fn a_file_without_a_name_stays_for_who_comes_before_it_is_removed() {
    let here = Here::new();
    let inode = here.fs.look_up(ROOT, &NAME.to_vec()).unwrap();
    assert!(here.front(|front| front.hold(inode)));
    here.replace();
    let mut numbers = Vec::new();
    for comes in [true, false] {
        let remains = here.front(|front| front.release(inode)).unwrap();
        let number = remains.orphan.unwrap();
        if comes {
            assert!(here.front(|front| front.hold(inode)));
        }
        let engine = &mut *here.engine.borrow_mut();
        engine.release_hidden(&here, inode, number).unwrap();
        let there = here.fs.facts(inode).map(|of| of.size);
        assert_eq!(there, if comes { Ok(1) } else { Err(Error::Missing) });
        numbers.push(number);
    }
    assert_eq!(numbers[0], numbers[1]);
    // The next one is not taken for it.
    assert!(here.front(|front| front.hold(inode) && !front.is_orphan(inode)));
}

/// Asks while the file is replaced `times` times: what is answered in the end, all answers, and how
/// long the file was when nobody else did anything.
fn ask(times: usize) -> (Result<u64>, Vec<Result<u64>>, Option<usize>) {
    let here = Here::new();
    let (answers, alone) = (RefCell::new(Vec::new()), Cell::new(None));
    let answer = steadily(
        &here,
        &Place::new(ROOT, NAME),
        || {
            let is_replaced = answers.borrow().len() < times;
            let answer = here.length(|| {
                if is_replaced {
                    here.replace();
                }
            });
            answers.borrow_mut().push(answer.clone());
            answer
        },
        || {
            alone.set(Some(here.count.get()));
            here.length(|| ())
        },
    );
    (answer, answers.take(), alone.get())
}

#[test]
fn a_name_that_is_replaced_leads_to_what_has_it() {
    for times in 0..LOOKS {
        let (answer, answers, alone) = ask(times);
        assert_eq!((answer, alone), (Ok(1 + times as u64), None));
        assert_eq!(answers.len(), times + 1);
        // Each of those would have been told.
        let (_, wrong) = answers.split_last().unwrap();
        assert!(wrong.iter().all(|answer| *answer == Err(Error::Missing)));
    }
}

#[test]
fn a_name_that_is_replaced_all_the_time_is_found_while_others_wait() {
    let (answer, answers, alone) = ask(usize::MAX);
    assert_eq!(answers.len(), LOOKS);
    assert_eq!((answer, alone), (Ok(1 + LOOKS as u64), Some(1 + LOOKS)));
}

/// Whoever remembers content of files by their numbers lets go of what a name was taken from before
/// another file gets the number.
#[test]
fn a_change_says_what_loses_a_name_by_it() {
    let here = Here::new();
    let make = |name: &[u8]| Action::Create {
        name: name.to_vec(),
        kind: Kind::File,
        mode: 0o600,
    };
    let engine = &mut *here.engine.borrow_mut();
    let mut made = Vec::new();
    for name in [b"one", b"two"] {
        let mut order = Order::new(make(name), [ROOT; 2]);
        engine.change(&here, &mut order).unwrap();
        assert_eq!(order.loses(), None);
        made.push(here.fs.look_up(ROOT, &name.to_vec()).unwrap());
    }
    let (name, new_name) = (b"one".to_vec(), b"two".to_vec());
    let mut order = Order::new(Action::Rename { name, new_name }, [ROOT; 2]);
    assert_eq!(order.loses(), None, "it was not tried");
    engine.rename(&here, &mut order, Renaming::Replace).unwrap();
    assert_eq!(order.loses(), Some(made[1]));
    let name = b"two".to_vec();
    let mut order = Order::new(Action::Unlink { name }, [ROOT; 2]);
    engine.unlink(&here, &mut order).unwrap();
    assert_eq!(order.loses(), Some(made[0]));
}
