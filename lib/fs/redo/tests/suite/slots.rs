//! More threads than there are lanes rename and append at once, while the shadow dies again and
//! again: each change is made once. Who finds no lane waits for one (`turns`), as personalities do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, RwLock};
use std::thread;

use turns::Turns;

use crate::model::{Body, Instance, ROOT, Random, Result};
use redo::{
    Action, Basis, Change, Engine, Front, Host, Kind, Lane, Order, Outcome, Renaming, Report,
    Resumed, Target,
};

const THREADS: u64 = 300;
const LANES: u32 = 126;
/// Of each thread: a renaming and an append in each.
const ROUNDS: u64 = 8;
const DEATHS: u64 = 200;

/// What is known of the last change of a lane.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Nothing,
    Planned { inode: u64, offset: u64 },
    Done,
}

/// What outlives a shadow.
#[derive(Default)]
struct Kept {
    /// What the next change of a lane goes by.
    tickets: BTreeMap<Lane, u64>,
    lanes: BTreeMap<Lane, (u64, State)>,
    /// The change that is being tried.
    under_way: Option<(Option<Lane>, Change<Instance>, Basis)>,
}

/// One life of a shadow.
struct Shadow {
    engine: Mutex<Engine<Instance>>,
    front: Mutex<Front<Instance>>,
    fs: Instance,
    life: u64,
}

/// A shadow that calls come to; it is replaced when nobody is inside any more.
struct Service {
    shadow: RwLock<Shadow>,
    kept: Mutex<Kept>,
    deaths: AtomicU64,
}

/// A shadow at work.
struct Desk<'a>(&'a Shadow, &'a Mutex<Kept>);

impl Desk<'_> {
    /// What is known from now on; a dead shadow notes nothing.
    fn note(&self, work: impl FnOnce(&mut Kept)) {
        if !self.0.is_dead() {
            work(&mut self.1.lock().unwrap());
        }
    }

    fn set(&self, lane: Lane, state: State) {
        self.note(|kept| {
            let ticket = kept.tickets[&lane];
            kept.lanes.insert(lane, (ticket, state));
        });
    }
}

impl Host for Desk<'_> {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.0.front.lock().unwrap())
    }

    fn instance(&self, _: u32) -> Result<Instance> {
        unreachable!("the file system lives")
    }

    fn recovered(&self, _: &Instance, _: &Report) -> bool {
        false
    }

    fn intend(
        &self,
        _: u64,
        lane: Option<Lane>,
        (action, basis): (&Change<Instance>, &Basis),
        _: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        self.note(|kept| {
            kept.under_way = Some((lane, action.clone(), *basis));
            if let Some(lane) = lane {
                let ticket = kept.tickets[&lane];
                kept.lanes.insert(lane, (ticket, State::Nothing));
            }
        });
        Ok(())
    }

    fn answer(&self, lane: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        if let (Some(lane), Some(_)) = (lane, outcome) {
            self.set(lane, State::Done);
        }
        self.note(|kept| kept.under_way = None);
    }

    fn plan(&self, lane: Lane, inode: u64, offset: u64) -> Result<()> {
        self.set(lane, State::Planned { inode, offset });
        Ok(())
    }

    fn wrote(&self, lane: Lane, _: u64, _: u64) {
        self.set(lane, State::Done);
    }
}

impl Shadow {
    fn new(fs: Instance, life: u64) -> Self {
        Shadow {
            engine: Mutex::new(Engine::new(fs.clone(), 2048)),
            front: Mutex::new(Front::new(fs.clone())),
            fs,
            life,
        }
    }

    fn is_dead(&self) -> bool {
        self.fs.disk.lock().unwrap().shadow_is_dead
    }
}

impl Service {
    fn new() -> Self {
        Service {
            shadow: RwLock::new(Shadow::new(Instance::new(1), 1)),
            kept: Mutex::default(),
            deaths: AtomicU64::new(0),
        }
    }

    /// A call to the shadow that serves. `Err`: it has died, in this life; nobody hears an answer.
    fn call<R>(&self, work: impl FnOnce(&Desk<'_>) -> R) -> std::result::Result<R, u64> {
        let shadow = self.shadow.read().unwrap();
        let answer = work(&Desk(&shadow, &self.kept));
        match shadow.is_dead() {
            true => Err(shadow.life),
            false => Ok(answer),
        }
    }

    /// The next shadow finds what the one of this life has left, and dies some changes later.
    fn restart(&self, life: u64) {
        let mut shadow = self.shadow.write().unwrap();
        if shadow.life != life {
            return;
        }
        let deaths = self.deaths.fetch_add(1, Ordering::Relaxed) + 1;
        let fs = shadow.fs.clone();
        {
            let mut disk = fs.disk.lock().unwrap();
            disk.shadow_is_dead = false;
            disk.shadow_ends = None;
        }
        *shadow = Shadow::new(fs.clone(), life + 1);
        let left = self.kept.lock().unwrap().under_way.take();
        let lane = left.as_ref().and_then(|(lane, ..)| *lane);
        // Who writes asks again, if his plan was not carried out.
        let left = left.filter(|(_, action, _)| !action.is_content());
        let desk = Desk(&shadow, &self.kept);
        let pending = left.map(|(_, action, basis)| ((action, basis), 0));
        let mut engine = shadow.engine.lock().unwrap();
        if let Resumed::Done(_) = engine.resume(&desk, pending).unwrap()
            && let Some(lane) = lane
        {
            desk.set(lane, State::Done);
        }
        engine.commit(&desk).unwrap();
        drop(engine);
        for (_, state) in self.kept.lock().unwrap().lanes.values_mut() {
            if let State::Planned { inode, offset } = *state {
                let size = fs.facts(inode).map_or(0, |of| of.size);
                *state = match size > offset {
                    true => State::Done,
                    false => State::Nothing,
                };
            }
        }
        if deaths < DEATHS {
            let mut random = Random(deaths * 31);
            let after = (random.below(20), random.below(2) == 0);
            fs.disk.lock().unwrap().shadow_ends = Some(after);
        }
    }

    /// As a personality makes a change: through a lane, and again, unless it was made, as long as
    /// the shadow dies.
    fn change(
        &self,
        lane: Lane,
        ticket: u64,
        work: impl Fn(&Desk<'_>, &mut Engine<Instance>) -> Result<()>,
    ) -> Result<()> {
        loop {
            let answer = self.call(|desk| {
                let known = self.kept.lock().unwrap().lanes.get(&lane).copied();
                if known == Some((ticket, State::Done)) {
                    return Ok(());
                }
                let mut engine = desk.0.engine.lock().unwrap();
                desk.note(|kept| {
                    kept.tickets.insert(lane, ticket);
                });
                engine.come_by(Some(lane));
                let result = work(desk, &mut engine);
                engine.come_by(None);
                result
            });
            match answer {
                Ok(result) => return result,
                Err(life) => self.restart(life),
            }
        }
    }
}

/// The lanes, and where who has none waits.
struct Pool {
    turns: Mutex<Turns<Lane>>,
    given: Condvar,
    waited: AtomicU64,
}

impl Pool {
    fn new() -> Self {
        let mut turns = Turns::default();
        for lane in (1..=LANES).filter_map(Lane::new) {
            turns.add().unwrap();
            turns.give(lane);
        }
        Pool {
            turns: Mutex::new(turns),
            given: Condvar::new(),
            waited: AtomicU64::new(0),
        }
    }

    fn take(&self) -> Lane {
        let mut turns = self.turns.lock().unwrap();
        if let Some(lane) = turns.take() {
            return lane;
        }
        self.waited.fetch_add(1, Ordering::Relaxed);
        let turn = turns.wait().unwrap();
        loop {
            turns = self.given.wait(turns).unwrap();
            if let Some(lane) = turns.collect(turn) {
                return lane;
            }
        }
    }

    fn give(&self, lane: Lane) {
        self.turns.lock().unwrap().give(lane);
        self.given.notify_all();
    }
}

fn name(thread: u64, round: u64) -> Vec<u8> {
    format!("{thread}-{round}").into_bytes()
}

/// One thread's renaming and append in a round.
fn round(service: &Service, pool: &Pool, (thread, inode, round): (u64, u64, u64)) -> Result<()> {
    let ticket = |part| 1 + (round * THREADS + thread) * 2 + part;
    let lane = pool.take();
    let renamed = service.change(lane, ticket(0), |desk, engine| {
        let [name, new_name] = [round, round + 1].map(|round| name(thread, round));
        let mut order = Order::new(Action::Rename { name, new_name }, [ROOT; 2]);
        let renamed = engine.rename(desk, &mut order, Renaming::Replace);
        desk.front(|front| order.end(front));
        renamed
    });
    pool.give(lane);
    renamed?;
    let lane = pool.take();
    let appended = service.change(lane, ticket(1), |desk, engine| {
        let bytes = vec![thread as u8, round as u8];
        engine.append(desk, inode, bytes).map(|_| ())
    });
    pool.give(lane);
    appended
}

#[test]
fn three_hundred_threads_make_each_change_once_while_shadows_die() {
    let (service, pool) = (Service::new(), Pool::new());
    let make = |thread| {
        let create = Action::Create {
            name: name(thread, 0),
            kind: Kind::File,
            mode: 0o644,
        };
        let made = service.call(|desk| {
            let mut engine = desk.0.engine.lock().unwrap();
            engine.change_now(desk, create, [ROOT; 2])
        });
        match made {
            Ok(Ok(Outcome::Made(inode))) => inode,
            other => panic!("{other:?}"),
        }
    };
    let inodes: Vec<u64> = (0..THREADS).map(make).collect();
    let fs = service.shadow.read().unwrap().fs.clone();
    fs.disk.lock().unwrap().shadow_ends = Some((5, true));
    thread::scope(|scope| {
        for (thread, &inode) in (0..).zip(&inodes) {
            let (service, pool) = (&service, &pool);
            scope.spawn(move || {
                for number in 0..ROUNDS {
                    let made = round(service, pool, (thread, inode, number));
                    assert_eq!(made, Ok(()), "round {number} of thread {thread}");
                }
            });
        }
    });
    assert_eq!(service.deaths.load(Ordering::Relaxed), DEATHS);
    assert!(pool.waited.load(Ordering::Relaxed) > THREADS);
    for (thread, inode) in (0..).zip(inodes) {
        let found = fs.look_up(ROOT, &name(thread, ROUNDS));
        assert_eq!(found, Ok(inode), "the name of thread {thread}");
        let right = (0..ROUNDS).flat_map(|round| [thread as u8, round as u8]);
        fs.view(|model| {
            assert_eq!(
                model.inode(inode)?.body,
                Body::File(right.clone().collect())
            );
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(
        fs.view(|model| Ok(model.names(ROOT)?.len())),
        Ok(THREADS as usize)
    );
}
