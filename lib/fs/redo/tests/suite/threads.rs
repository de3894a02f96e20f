//! Threads that change and look up names at once, in the way of the `vfs` shadow: the engine behind
//! a lock that is held over calls, what is remembered behind one that is not, and what came of a
//! change noted when others make theirs. Meanwhile the file system dies.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use crate::model::{Crash, Error, Instance, ROOT, Random, Result};
use redo::engine::translate;
use redo::seen::Place;
use redo::{Action, Change, Engine, Front, Host, Kind, Order, Outcome, Renaming, Report, Target};

/// Threads that make changes, each of names of its own, of which it knows what they lead to.
const CHANGERS: usize = 3;
/// Threads that look all names up.
const READERS: usize = 2;
/// Names of each.
const NAMES: usize = 3;
const CHANGES: usize = 300;

struct Shadow {
    engine: Mutex<Engine<Instance>>,
    front: Mutex<Front<Instance>>,
    last: Mutex<Instance>,
    /// Those that are still to come. The next one comes after a recovery: how many calls that takes
    /// depends on how far the threads are, so in one there could be as many as end it.
    crashes: Mutex<Vec<Crash>>,
    recoveries: AtomicU32,
}

impl Host for Shadow {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.front.lock().unwrap())
    }

    fn instance(&self, _: u32) -> Result<Instance> {
        let mut last = self.last.lock().unwrap();
        *last = last.replace();
        Ok(last.clone())
    }

    fn recovered(&self, _: &Instance, report: &Report) -> bool {
        assert_eq!(report.refused, 0, "{report:?}");
        self.recoveries.fetch_add(1, Ordering::Relaxed);
        self.let_crash();
        false
    }
}

impl Shadow {
    fn new(seed: u64) -> Self {
        let fs = Instance::new(seed);
        Shadow {
            engine: Mutex::new(Engine::new(fs.clone(), 1 << 20)),
            front: Mutex::new(Front::new(fs.clone())),
            last: Mutex::new(fs),
            crashes: Mutex::default(),
            recoveries: AtomicU32::new(0),
        }
    }

    /// The next crash may come.
    fn let_crash(&self) {
        let next = self.crashes.lock().unwrap().pop();
        let last = self.last.lock().unwrap();
        last.disk.lock().unwrap().crashes.extend(next);
    }

    fn engine(&self) -> MutexGuard<'_, Engine<Instance>> {
        self.engine.lock().unwrap()
    }

    fn change(
        &self,
        action: Change<Instance>,
        work: impl FnOnce(&mut Engine<Instance>, &mut Order<Instance>) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let mut order = Order::new(action, [ROOT; 2]);
        let result = work(&mut self.engine(), &mut order);
        thread::yield_now();
        self.front(|front| order.end(front));
        result
    }

    /// What a name leads to, as readers find it out: the number that clients have.
    fn look_up(&self, name: &[u8]) -> Option<u64> {
        let place = Place::new(ROOT, name);
        let (known, ticket) =
            self.front(|front| (front.names.recall(&place), front.names.ticket(&place)));
        if let Some(known) = known {
            return known;
        }
        let found = loop {
            let (fs, real) = translate(self, ROOT).unwrap();
            let answer = fs.look_up(real, &name.to_vec());
            thread::yield_now();
            match answer {
                Err(Error::Dead) => self.engine().revive(self, fs.id()).unwrap(),
                Err(Error::Missing) => break None,
                Err(error) => panic!("{error:?}"),
                // Numbers of an instance that is gone mean nothing.
                Ok(real) => {
                    let told = self
                        .front(|front| (front.fs.id() == fs.id()).then(|| front.ids.client(real)));
                    if told.is_some() {
                        break told;
                    }
                }
            }
        };
        self.front(|front| front.names.remember(ticket, &place, found));
        found
    }

    /// Makes random changes of names that nobody else changes. After each every name leads to what
    /// it must.
    fn change_names(&self, owner: usize, seed: u64) {
        let mut random = Random(seed);
        let names: Vec<Vec<u8>> = (0..NAMES)
            .map(|number| format!("{owner}-{number}").into_bytes())
            .collect();
        let mut lead_to = [None; NAMES];
        for _ in 0..CHANGES {
            let [one, other] = [random.below(NAMES), random.below(NAMES)];
            let (name, new_name) = (names[one].clone(), names[other].clone());
            let kind = Kind::File;
            let done = |()| Outcome::Done;
            let rename = |engine: &mut Engine<_>, order: &mut Order<_>| {
                let result = engine.rename(self, order, Renaming::Replace);
                result.map(done)
            };
            let mode = 0o644;
            match (random.below(3), lead_to[one], lead_to[other]) {
                (0, before, _) => {
                    let create = Action::Create { name, kind, mode };
                    let made = self.change(create, |engine, order| engine.change(self, order));
                    match (before, made) {
                        (None, Ok(Outcome::Made(made))) => lead_to[one] = Some(made),
                        (before, made) => {
                            assert_eq!((before.is_some(), made), (true, Err(Error::Exists)));
                        }
                    }
                }
                (1, before, _) => {
                    let unlink = Action::Unlink { name };
                    let removed =
                        self.change(unlink, |engine, order| engine.unlink(self, order).map(done));
                    assert_eq!(removed.is_ok(), before.is_some(), "{removed:?}");
                    lead_to[one] = None;
                }
                (_, Some(_), Some(_)) if one != other => {
                    let exchange = Action::Exchange { name, new_name };
                    assert_eq!(self.change(exchange, rename), Ok(Outcome::Done));
                    lead_to.swap(one, other);
                }
                (_, before, _) => {
                    let moved = self.change(Action::Rename { name, new_name }, rename);
                    assert_eq!(moved.is_ok(), before.is_some(), "{moved:?}");
                    if before.is_some() {
                        lead_to[one] = None;
                        lead_to[other] = before;
                    }
                }
            }
            for (name, expected) in names.iter().zip(&lead_to) {
                assert_eq!(self.look_up(name), *expected, "{}", name.escape_ascii());
            }
        }
    }

    fn look_all_up(&self, until: &AtomicBool) {
        while !until.load(Ordering::Relaxed) {
            for owner in 0..CHANGERS {
                for number in 0..NAMES {
                    self.look_up(format!("{owner}-{number}").as_bytes());
                }
            }
        }
    }
}

#[test]
fn whoever_made_a_change_is_told_of_it_by_everybody() {
    for seed in 1..8 {
        let shadow = Shadow::new(seed);
        let mut random = Random(seed * 17);
        let crashes = (0..40).map(|_| Crash {
            calls: random.below(60),
            done: random.below(2) == 0,
        });
        *shadow.crashes.lock().unwrap() = crashes.collect();
        shadow.let_crash();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| shadow.look_all_up(&is_over));
            }
            let shadow = &shadow;
            let changers: Vec<_> = (0..CHANGERS)
                .map(|owner| {
                    let seed = seed * 10 + owner as u64;
                    scope.spawn(move || shadow.change_names(owner, seed))
                })
                .collect();
            let results: Vec<_> = changers.into_iter().map(|one| one.join()).collect();
            // Before anything that ends this thread: they would go on for ever.
            is_over.store(true, Ordering::Relaxed);
            assert!(results.iter().all(|one| one.is_ok()));
        });
        assert!(shadow.recoveries.load(Ordering::Relaxed) > 5);
    }
}
