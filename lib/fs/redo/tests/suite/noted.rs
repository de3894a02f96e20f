//! Shadows that die, one after the other, while a log is done again that they leave to each other
//! as bytes: a change that kills is left out, and nothing else is.

use std::cell::{Cell, RefCell};

use redo::record::{self, Came, FRONT, Mark, Record};
use redo::{
    Action, Basis, Change, Engine, Front, Host, Kind, Lane, Outcome, Report, Resumed, Target,
    intent,
};

use crate::intents::packed;
use crate::model::{Choice, Error, Instance, ROOT, Random, Result};

/// What a shadow leaves, as bytes, and what it says.
#[derive(Default)]
struct Notes {
    log: Vec<u8>,
    mark: [u64; 2],
    lost: Vec<String>,
}

/// One life of a shadow.
struct Desk<'a> {
    front: RefCell<Front<Instance>>,
    last: RefCell<Instance>,
    notes: &'a RefCell<Notes>,
    /// Changes as the engine counts them, with the place and number of their records.
    entries: RefCell<Vec<(u64, usize, u64)>>,
    number: Cell<u64>,
    came: Cell<Came>,
}

/// A change that was left: the place of its record, and what came of it.
struct Left {
    at: usize,
    record: Record,
    came: Came,
}

/// What is in the log, with the deaths counted.
fn left(notes: &RefCell<Notes>) -> Vec<Left> {
    let Notes { log, mark, .. } = &mut *notes.borrow_mut();
    let (mut at, mut number) = (0, 1);
    let mut found: Vec<Left> = Vec::new();
    while let Some(front) = log.get(at..).and_then(|rest| rest.first_chunk::<FRONT>()) {
        let record = Record::read(front, number).expect("no other is there");
        assert!(Record::is_whole(&log[at..at + record.length()]));
        if let Some(last) = found.last_mut() {
            last.came = record.before;
        }
        found.push(Left {
            at,
            record,
            came: Came::Unknown,
        });
        at += record.length();
        number += 1;
    }
    let count = found.len();
    for (index, left) in found.iter_mut().enumerate() {
        let is_last = index + 1 == count;
        let word = record::blamed(
            left.record.number,
            left.record.deaths,
            Mark::of(*mark),
            is_last,
        );
        left.record.deaths = word;
        log[left.at + 24..left.at + 32].copy_from_slice(&word.to_le_bytes());
    }
    *mark = [0; 2];
    found
}

impl<'a> Desk<'a> {
    fn new(fs: &Instance, notes: &'a RefCell<Notes>) -> Self {
        Desk {
            front: RefCell::new(Front::new(fs.clone())),
            last: RefCell::new(fs.clone()),
            notes,
            entries: RefCell::default(),
            number: Cell::new(1),
            came: Cell::default(),
        }
    }

    fn is_dead(&self) -> bool {
        let fs = self.last.borrow();
        fs.disk.lock().unwrap().shadow_is_dead
    }

    /// Goes on with what is left; what came of the last change.
    fn resume(&self, engine: &mut Engine<Instance>) -> Result<Resumed> {
        let mut all = left(self.notes);
        let last = all.pop();
        let change = |left: &Left| {
            let at = left.at + FRONT;
            let notes = self.notes.borrow();
            intent::unpack::<Instance>(&notes.log[at..at + left.record.bytes as usize]).unwrap()
        };
        let follow = |count, left: &Left| {
            let entry = (count, left.at, left.record.number);
            self.entries.borrow_mut().push(entry);
        };
        for left in all {
            let Came::Done([outcome, _]) = left.came else {
                continue;
            };
            follow(engine.changes(), &left);
            let deaths = record::deaths(left.record.deaths);
            engine.restore(change(&left), outcome, deaths)?;
        }
        let pending = last.map(|last| {
            follow(engine.changes(), &last);
            (change(&last), record::deaths(last.record.deaths))
        });
        let resumed = engine.resume(self, pending)?;
        engine.commit(self)?;
        Ok(resumed)
    }
}

impl Host for Desk<'_> {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.front.borrow_mut())
    }

    fn instance(&self, _: u32) -> Result<Instance> {
        if self.is_dead() {
            return Err(Error::Trouble);
        }
        let next = self.last.borrow().replace();
        *self.last.borrow_mut() = next.clone();
        Ok(next)
    }

    fn recovered(&self, fs: &Instance, _: &Report) -> bool {
        fs.commit().is_ok()
    }

    fn intend(
        &self,
        count: u64,
        lane: Option<Lane>,
        (action, basis): (&Change<Instance>, &Basis),
        _: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let change = packed::<Instance>(action, basis);
        let number = self.number.get();
        let record = Record {
            number,
            bytes: change.len() as u32,
            is_gap: false,
            lane,
            ticket: 0,
            deaths: 0,
            before: self.came.take(),
        };
        let mut bytes = vec![0; record.length()];
        bytes[FRONT..FRONT + change.len()].copy_from_slice(&change);
        record.seal(&mut bytes);
        let log = &mut self.notes.borrow_mut().log;
        self.entries.borrow_mut().push((count, log.len(), number));
        self.number.set(number + 1);
        log.extend(bytes);
        Ok(())
    }

    fn answer(&self, _: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        self.came.set(outcome.map_or(Came::Refused, Came::Done));
    }

    fn again(&self, change: Option<(u64, u8)>) {
        if self.is_dead() {
            return;
        }
        let mark = change.map(|(count, deaths)| {
            let entries = self.entries.borrow();
            let (.., number) = *entries.iter().rfind(|(of, ..)| *of == count).unwrap();
            Mark { number, deaths }
        });
        self.notes.borrow_mut().mark = Mark::words(mark);
    }

    fn lost(&self, change: &Change<Instance>, is_deadly: bool) {
        let [name, _] = change.names();
        let name = String::from_utf8_lossy(name.unwrap()).into_owned();
        let why = if is_deadly { "deadly" } else { "lost" };
        let said = format!("{why} {name}");
        // A shadow that died before all was committed has said so as well.
        let lost = &mut self.notes.borrow_mut().lost;
        if !lost.contains(&said) {
            lost.push(said);
        }
    }

    fn forgotten(&self, count: u64) {
        let mut entries = self.entries.borrow_mut();
        entries.retain(|(number, ..)| *number >= count);
        if entries.is_empty() && !self.is_dead() {
            self.notes.borrow_mut().log.clear();
            self.number.set(1);
            self.came.set(Came::Unknown);
        }
    }
}

fn create(name: &str) -> Change<Instance> {
    Action::Create {
        name: name.into(),
        kind: Kind::File,
        mode: 0o644,
    }
}

/// The names that are there.
fn names(fs: &Instance) -> Vec<String> {
    let disk = fs.disk.lock().unwrap();
    let names = disk.live.names(ROOT).unwrap().keys();
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// A shadow has made `f0` to `f8` and `deadly` at place `at`, and is dead, and the file system with
/// it, which has the first `on_disk` of them.
fn scene(notes: &RefCell<Notes>, at: usize, on_disk: usize) -> Instance {
    let fs = Instance::new(1);
    let desk = Desk::new(&fs, notes);
    let mut engine = Engine::new(fs.clone(), 1 << 20);
    for number in 0..10 {
        let name = match number {
            number if number == at => "deadly".into(),
            number => format!("f{}", number - usize::from(number > at)),
        };
        let made = engine.change_now(&desk, create(&name), [ROOT; 2]);
        assert!(made.is_ok(), "{made:?}");
    }
    let mut disk = fs.disk.lock().unwrap();
    (disk.dead, disk.choice) = (true, Choice::Nth(on_disk));
    drop(disk);
    fs
}

/// One shadow after the other until one has come to its end; what that found of the last change,
/// and how many died before it.
fn lives(
    fs: &Instance,
    notes: &RefCell<Notes>,
    mut before: impl FnMut(&Instance),
) -> (Resumed, usize) {
    for died in 0..100 {
        fs.disk.lock().unwrap().shadow_is_dead = false;
        before(fs);
        let next = fs.replace();
        let desk = Desk::new(&next, notes);
        let mut engine = Engine::new(next, 1 << 20);
        let resumed = desk.resume(&mut engine);
        if !desk.is_dead() {
            return (resumed.unwrap(), died);
        }
        // The file system as well, or all would be there already.
        fs.disk.lock().unwrap().dead = true;
    }
    panic!("one shadow after the other dies");
}

/// One that is not the last: each shadow that makes it again dies, the fourth one leaves it out.
#[test]
fn an_older_change_that_kills_shadows_is_left_out() {
    for at in 0..9 {
        for on_disk in 0..=at {
            let notes = RefCell::default();
            let fs = scene(&notes, at, on_disk);
            fs.disk.lock().unwrap().kills_shadow = Some(b"deadly".to_vec());
            let (resumed, died) = lives(&fs, &notes, |_| ());
            assert!(
                matches!(resumed, Resumed::Done(_)),
                "{at} {on_disk}: {resumed:?}"
            );
            assert_eq!(died, 3, "{at} {on_disk}");
            let expected: Vec<_> = (0..9).map(|number| format!("f{number}")).collect();
            assert_eq!(names(&fs), expected);
            assert_eq!(notes.borrow().lost, ["deadly deadly"]);
            assert!(notes.borrow().log.is_empty());
        }
    }
}

/// The last one may be the one that is asked for: then the first shadow has died of it, and two
/// more may.
#[test]
fn the_last_change_is_given_up_at_the_third_death() {
    let notes = RefCell::default();
    let fs = scene(&notes, 9, 4);
    fs.disk.lock().unwrap().kills_shadow = Some(b"deadly".to_vec());
    let (resumed, died) = lives(&fs, &notes, |_| ());
    assert_eq!((resumed, died), (Resumed::GivenUp, 2));
    assert_eq!(names(&fs).len(), 9);
    assert!(notes.borrow().lost.is_empty(), "who asked is told");
}

/// Whatever is on the disk: if the deadly one is there nobody makes it again.
#[test]
fn what_is_on_the_disk_is_not_made_again() {
    let notes = RefCell::default();
    let fs = scene(&notes, 4, 7);
    fs.disk.lock().unwrap().kills_shadow = Some(b"deadly".to_vec());
    let (_, died) = lives(&fs, &notes, |_| ());
    assert_eq!((died, names(&fs).len()), (0, 10));
}

/// Shadows that are killed again and again while the log is done again, and file systems with them,
/// lose nothing, unless it is in the same change each time; a deadly one is left out beside that.
#[test]
fn blameless_deaths_lose_nothing() {
    let mut most = 0;
    for seed in 1..600 {
        let mut random = Random(seed * 7919);
        let notes = RefCell::default();
        let at = random.below(9);
        let fs = scene(&notes, at, random.below(at + 1));
        let is_deadly = random.below(2) == 0;
        if is_deadly {
            fs.disk.lock().unwrap().kills_shadow = Some(b"deadly".to_vec());
        }
        // Each change is struck once at most, whatever has come of it.
        let mut places: Vec<usize> = (0..9).collect();
        let (resumed, died) = lives(&fs, &notes, |fs| {
            let mut disk = fs.disk.lock().unwrap();
            disk.choice = Choice::Nth(0);
            let place = places.swap_remove(random.below(places.len()));
            let is_made = random.below(2) == 0;
            disk.shadow_ends = (places.len() > 3).then_some((place, is_made));
        });
        assert!(matches!(resumed, Resumed::Done(_)), "{seed}: {resumed:?}");
        assert_eq!(names(&fs).len(), 10 - usize::from(is_deadly), "{seed}");
        let lost: &[&str] = if is_deadly { &["deadly deadly"] } else { &[] };
        assert_eq!(notes.borrow().lost, lost, "{seed}");
        most = most.max(died);
    }
    assert!(most > 5, "{most}");
}
