//! The file system that crashes, seen through the engine, beside one that never does.

use std::cell::RefCell;

use redo::engine::translate;
use redo::seen::{Place, Ticket};
use redo::{
    Action, Basis, Change, Commit, Engine, Front, Host, Kind, Lane, Node, Order, Outcome, Renaming,
    Report, Target, intent,
};

use crate::intents::packed;

use super::{Body, Error, Instance, Model, ROOT, Random, Result, Setting, UNNAMED};

/// A life of a file system that is tested.
pub trait Life:
    Target<Data = Vec<u8>, Setting = Setting, Error = Error, Known = (u32, u64)>
{
    /// Its errors are exactly the model's.
    const EXACT: bool;
    /// It exchanges names in one step.
    const EXCHANGES: bool;
    fn first(seed: u64) -> Self;
    /// The next life, after this one has ended.
    fn next(&self) -> Self;
    fn is_dead(&self) -> bool;
    /// The tree as text, as the model prints it.
    fn tree(&self) -> String;
    /// What an inode holds; of a directory, anything.
    fn body(&self, real: u64) -> Body;
}

pub struct Site<L: Life = Instance> {
    front: RefCell<Front<L>>,
    pub reports: RefCell<Vec<Report>>,
    pub last: RefCell<L>,
    notes: RefCell<Option<Notes>>,
    /// Those are who ask and who make changes: see [`Slow`].
    slow: RefCell<Option<Slow<L>>>,
}

/// Some who take their time: who asked what a name leads to remembers it later, and who has made a
/// change ends it when others have made more.
struct Slow<L: Life> {
    random: Random,
    answers: Vec<(Ticket, Place, Option<u64>)>,
    orders: Vec<Order<L>>,
}

impl<L: Life> Site<L> {
    /// Somebody asks what the names of a change lead to when that has begun, and before the file
    /// system is asked for it.
    fn ask_before(&self, action: &Change<L>, basis: &Basis) {
        for (at, name) in action.names().into_iter().enumerate() {
            let Some(name) = name else {
                continue;
            };
            let answer = self.front(|front| {
                let place = Place::new(front.ids.client(basis.on[at]), name);
                let found = basis.before[at].map(|real| front.ids.client(real));
                (front.names.ticket(&place), place, found)
            });
            if let Some(slow) = &mut *self.slow.borrow_mut() {
                slow.answers.push(answer);
            }
        }
    }

    /// Some of those who take their time come to their end, or all.
    fn go_on(&self, all: bool) {
        let Some(slow) = &mut *self.slow.borrow_mut() else {
            return;
        };
        let most = if all { 1 } else { 5 };
        while slow.answers.len() > slow.random.below(most) {
            let at = slow.random.below(slow.answers.len());
            let (ticket, place, found) = slow.answers.swap_remove(at);
            self.front(|front| front.names.remember(ticket, &place, found));
        }
        while slow.orders.len() > slow.random.below(most) {
            let at = slow.random.below(slow.orders.len());
            let mut order = slow.orders.swap_remove(at);
            self.front(|front| order.end(front));
        }
    }
}

impl<L: Life> Host for Site<L> {
    type Target = L;

    fn front<R>(&self, work: impl FnOnce(&mut Front<L>) -> R) -> R {
        work(&mut self.front.borrow_mut())
    }

    fn instance(&self, _: u32) -> Result<L> {
        let next = self.last.borrow().next();
        *self.last.borrow_mut() = next.clone();
        Ok(next)
    }

    fn recovered(&self, fs: &L, report: &Report) -> bool {
        self.reports.borrow_mut().push(*report);
        let mut notes = self.notes.borrow_mut();
        let Some(notes) = &mut *notes else {
            return false;
        };
        // Until all is forgotten they have numbers of an instance that is gone.
        notes.are_old = true;
        fs.commit().is_ok()
    }

    fn intend(
        &self,
        number: u64,
        _: Option<Lane>,
        (action, basis): (&Change<L>, &Basis),
        _: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        if self.slow.borrow().is_some() {
            self.ask_before(action, basis);
        }
        if let Some(notes) = &mut *self.notes.borrow_mut() {
            let packed = packed::<L>(action, basis);
            notes.changes.push((number, packed, None));
        }
        Ok(())
    }

    fn answer(&self, _: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        let mut notes = self.notes.borrow_mut();
        let Some(notes) = &mut *notes else {
            return;
        };
        match (outcome, notes.changes.last_mut()) {
            (Some([outcome, _]), Some(last)) => last.2 = Some(outcome),
            _ => drop(notes.changes.pop()),
        }
    }

    fn forgotten(&self, count: u64) {
        if let Some(notes) = &mut *self.notes.borrow_mut() {
            notes.changes.retain(|(number, ..)| *number >= count);
            notes.are_old &= !notes.changes.is_empty();
        }
    }
}

/// What is noted for the next shadow: changes with their number, as bytes, and what came of them.
#[derive(Default)]
pub struct Notes {
    changes: Vec<(u64, Vec<u8>, Option<Outcome>)>,
    are_old: bool,
}

/// A file as both sides call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub sure: u64,
    pub client: u64,
    pub holds: u32,
}

pub struct Pair<L: Life = Instance> {
    pub site: Site<L>,
    pub engine: Engine<L>,
    /// Data of writes is only lent.
    is_lasting: bool,
    pub sure: Model,
    pub known: Vec<Known>,
    /// Commits that were begun, and what came of them.
    commits: Vec<(Commit<L>, Option<Result<()>>)>,
    /// Commits that ended well.
    pub committed: u32,
    /// Shadows that died.
    deaths: u64,
    /// Files that went with their last name, since only the host held them.
    pub parted: u32,
}

/// What a pipe is among the kinds of nodes.
pub const PIPE: u8 = 3;

const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];

impl<L: Life> Pair<L> {
    pub fn new(seed: u64, budget: usize) -> Self {
        Self::with(L::first(seed), |fs| Engine::new(fs, budget))
    }

    /// A pair whose file system has all that was acknowledged after a crash.
    pub fn lasting(seed: u64) -> Self {
        let mut pair = Self::with(L::first(seed), Engine::lasting);
        pair.is_lasting = true;
        pair
    }

    fn with(fs: L, engine: impl FnOnce(L) -> Engine<L>) -> Self {
        let root = Known {
            sure: ROOT,
            client: ROOT,
            holds: 1,
        };
        let mut sure = Model::new();
        sure.open(ROOT);
        Pair {
            site: Site {
                front: RefCell::new(Front::new(fs.clone())),
                reports: RefCell::default(),
                last: RefCell::new(fs.clone()),
                notes: RefCell::default(),
                slow: RefCell::default(),
            },
            engine: engine(fs),
            is_lasting: false,
            sure,
            known: vec![root],
            commits: Vec::new(),
            committed: 0,
            deaths: 0,
            parted: 0,
        }
    }

    fn choose(&self, random: &mut Random, fits: impl Fn(&Model, u64) -> bool) -> Option<Known> {
        let those: Vec<&Known> = self
            .known
            .iter()
            .filter(|known| fits(&self.sure, known.sure))
            .collect();
        those.get(random.below(those.len())).map(|known| **known)
    }

    /// One random operation on both sides; what came of it must be the same.
    pub fn step(&mut self, random: &mut Random) {
        let is_directory = |fs: &Model, number| {
            fs.is_directory(number).unwrap() && fs.inode(number).unwrap().links > 0
        };
        let is_file = |fs: &Model, number| matches!(fs.inode(number).unwrap().body, Body::File(_));
        let directory = self.choose(random, is_directory).unwrap();
        let other = self.choose(random, is_directory).unwrap();
        let file = self.choose(random, is_file);
        let name = NAMES[random.below(NAMES.len())].to_vec();
        let new_name = NAMES[random.below(NAMES.len())].to_vec();
        let on = [directory, other];
        for _ in 0..2 {
            self.look(directory, NAMES[random.below(NAMES.len())]);
            if let Some(file) = self.choose(random, is_file) {
                self.examine(file);
            }
        }
        match (random.below(24), file) {
            (0..4, _) => self.make(
                Action::Create {
                    name,
                    kind: Kind::File,
                    mode: 0o644,
                },
                directory,
            ),
            (4..6, _) => self.make(
                Action::Create {
                    name,
                    kind: Kind::Directory,
                    mode: 0o755,
                },
                directory,
            ),
            (6, _) => self.make(
                Action::Symlink {
                    name,
                    target: new_name,
                },
                directory,
            ),
            (7..9, _) => self.change(Action::Unlink { name }, on),
            (9, _) => self.change(Action::RemoveDirectory { name }, on),
            (10..12, _) => self.change(Action::Rename { name, new_name }, on),
            (12, Some(file)) => self.change(Action::Link { name }, [directory, file]),
            (13, Some(file)) => {
                let size = random.below(12) as u64;
                self.change(Action::Truncate { size }, [file; 2]);
            }
            (14, Some(file)) => {
                let mode = random.below(0o1000) as u16;
                self.change(Action::Set(Setting::Mode(mode)), [file; 2]);
            }
            (20, Some(file)) => {
                let times = [0, 1].map(|_| Some(random.below(9) as u64).filter(|time| *time > 2));
                self.change(Action::Set(Setting::Times(times)), [file; 2]);
            }
            (15, Some(file)) => self.append(file, bytes(random)),
            (16, _) => self.hold_or_release(random),
            (21 | 22, _) if L::EXCHANGES => self.change(Action::Exchange { name, new_name }, on),
            (23, _) => {
                let node = Node {
                    kind: PIPE,
                    mode: 0o600,
                    device: 0,
                };
                self.make(Action::Node { name, node }, directory);
            }
            (17, _) if random.below(8) == 0 => self.engine.sync(&self.site).unwrap(),
            (17, _) if random.below(8) == 0 => self.engine.commit(&self.site).unwrap(),
            (_, Some(file)) => {
                let offset = random.below(10) as u64;
                self.change(
                    Action::Write {
                        offset,
                        data: bytes(random),
                    },
                    [file; 2],
                );
            }
            _ => {}
        }
        self.forget_removed();
    }

    /// Has `question` asked of the file system, again if it dies.
    fn ask<R>(&mut self, client: u64, question: impl Fn(&L, u64) -> Result<R>) -> Result<R> {
        loop {
            let (fs, real) = translate(&self.site, client)?;
            match question(&fs, real) {
                Err(Error::Dead) => self.engine.revive(&self.site, fs.id())?,
                answer => return answer,
            }
        }
    }

    /// Looks a name up as readers do, who remember what they find: it must lead where it does.
    fn look(&mut self, directory: Known, name: &[u8]) {
        let at = directory.client;
        let place = Place::new(at, name);
        let found = match self.site.front(|front| front.names.recall(&place)) {
            Some(leads_to) => leads_to,
            None => {
                let ticket = self.site.front(|front| front.names.ticket(&place));
                let found = match self.ask(at, |fs, real| fs.look_up(real, &name.to_vec())) {
                    Ok(real) => Some(self.site.front(|front| front.ids.client(real))),
                    Err(Error::Missing) => None,
                    Err(error) => panic!("{error:?}"),
                };
                match &mut *self.site.slow.borrow_mut() {
                    Some(slow) => slow.answers.push((ticket, place, found)),
                    None => self
                        .site
                        .front(|front| front.names.remember(ticket, &place, found)),
                }
                found
            }
        };
        let expected = self.sure.look_up(directory.sure, name).ok();
        let known = self.known.iter().find(|known| Some(known.sure) == expected);
        assert_eq!(
            found,
            known.map(|known| known.client),
            "{directory:?} {name:?}"
        );
    }

    /// Asks what a file is as readers do.
    fn examine(&mut self, file: Known) {
        let inode = file.client;
        let seen = self.site.front(|front| front.inodes.recall(inode).copied());
        let (mut links, size) = match seen {
            Some(seen) => seen,
            None => {
                let ticket = self.site.front(|front| front.inodes.ticket(inode));
                let facts = self.ask(inode, |fs, real| fs.facts(real)).unwrap();
                let seen = (facts.links, facts.size);
                self.site
                    .front(|front| front.inodes.remember(ticket, inode, seen));
                seen
            }
        };
        if self.site.front(|front| front.is_orphan(inode)) {
            links = 0;
        }
        let sure = self.sure.inode(file.sure).unwrap();
        let Body::File(content) = &sure.body else {
            panic!("a file");
        };
        assert_eq!(
            (links, size),
            (sure.links, content.len() as u64),
            "{file:?}"
        );
    }

    /// Who asks and who makes changes takes his time from now on.
    pub fn be_slow(&mut self, seed: u64) {
        *self.site.slow.borrow_mut() = Some(Slow {
            random: Random(seed),
            answers: Vec::new(),
            orders: Vec::new(),
        });
    }

    /// Has `work` done for an order, and ends it now or later.
    fn carry_out<R>(
        &mut self,
        action: Change<L>,
        on: [u64; 2],
        work: impl FnOnce(&mut Engine<L>, &Site<L>, &mut Order<L>) -> R,
    ) -> R {
        let mut order = Order::new(action, on);
        let result = work(&mut self.engine, &self.site, &mut order);
        match &mut *self.site.slow.borrow_mut() {
            Some(slow) => slow.orders.push(order),
            None => self.site.front(|front| order.end(front)),
        }
        self.site.go_on(false);
        result
    }

    /// Has all changes noted for the next shadow from now on.
    pub fn note(&mut self) {
        *self.site.notes.borrow_mut() = Some(Notes::default());
    }

    /// Shadow and file system die at the same moment, the shadow perhaps before it heard what came
    /// of its last change. Whether they did: not while notes are of no use.
    pub fn die_together(&mut self, unheard: bool) -> bool {
        let notes = self.site.notes.replace(Some(Notes::default()));
        let mut notes = notes.expect("they were asked for");
        if notes.are_old {
            self.site.notes.replace(Some(notes));
            return false;
        }
        let next = self.site.instance(0).unwrap();
        self.site.go_on(true);
        self.commits.clear();
        self.engine = Engine::new(next, 1 << 20);
        let pending = notes.changes.pop_if(|_| unheard);
        for (_, bytes, outcome) in notes.changes {
            let change = intent::unpack::<L>(&bytes).unwrap();
            let outcome = outcome.expect("it was acknowledged");
            self.engine.restore(change, outcome, 0).unwrap();
        }
        let pending = pending.map(|(_, bytes, _)| (intent::unpack::<L>(&bytes).unwrap(), 1));
        self.engine.resume(&self.site, pending).unwrap();
        // More than any that was given.
        self.deaths += 1;
        self.engine.number_hidden_from(self.deaths << 20);
        true
    }

    /// Begins a commit, if there are few, or goes on with one: does it, or ends it.
    pub fn go_on_with_commits(&mut self, chosen: usize) {
        let place = chosen % 4;
        if place >= self.commits.len() && self.commits.len() < 3 {
            let commit = self.engine.begin_commit(&self.site).unwrap();
            return self.commits.push((commit, None));
        }
        let place = place % self.commits.len();
        let (commit, result) = &mut self.commits[place];
        let Some(result) = result.take() else {
            *result = Some(commit.perform());
            return;
        };
        let done = self.engine.end_commit(commit, result).unwrap();
        if done && self.engine.serves(commit) {
            self.site.forgotten(commit.changes());
        }
        self.committed += u32::from(done);
        self.commits.remove(place);
    }

    fn forget_removed(&mut self) {
        self.known
            .retain(|known| self.sure.inodes.contains_key(&known.sure));
    }

    /// A change that makes an inode.
    fn make(&mut self, action: Action<Vec<u8>, Setting>, directory: Known) {
        let sure = self.sure.perform(&action, [directory.sure; 2]);
        let on = [directory.client; 2];
        let client = self.carry_out(action.clone(), on, |engine, site, order| {
            engine.change(site, order)
        });
        match (sure, client) {
            (Ok(Outcome::Made(sure)), Ok(Outcome::Made(client))) => self.known.push(Known {
                sure,
                client,
                holds: 0,
            }),
            (sure, client) => agree::<L>(&sure, &client, &action),
        }
    }

    /// The file that a change may leave without a name, if it is held once: every other time by who
    /// can do without it.
    fn own(&self, action: &Action<Vec<u8>, Setting>, on: [Known; 2]) -> Option<Known> {
        let (directory, name) = match action {
            Action::Unlink { name } => (on[0], name),
            Action::Rename { new_name, .. } => (on[1], new_name),
            _ => return None,
        };
        let there = self.sure.look_up(directory.sure, name).ok()?;
        let is_file = matches!(self.sure.inode(there).unwrap().body, Body::File(_));
        let known = self.known.iter().find(|known| known.sure == there)?;
        (is_file && known.holds == 1 && self.known.len().is_multiple_of(2)).then_some(*known)
    }

    /// The hold of what is gone ends, with nothing left to be removed.
    fn part(&mut self, own: Option<Known>) {
        let is_gone = own.is_some_and(|own| self.sure.inode(own.sure).unwrap().links == 0);
        assert_eq!(self.engine.has_parted(), is_gone, "{own:?}");
        self.engine.can_part_with(None);
        let Some(own) = own.filter(|_| is_gone) else {
            return;
        };
        self.parted += 1;
        self.sure.close(own.sure);
        let remains = self.site.front(|front| front.release(own.client));
        assert!(remains.is_some_and(|remains| remains.orphan.is_none()));
    }

    fn change(&mut self, action: Action<Vec<u8>, Setting>, on: [Known; 2]) {
        let own = self.own(&action, on);
        self.engine.can_part_with(own.map(|own| own.client));
        let sure = self.sure.perform(&action, on.map(|known| known.sure));
        let numbers = on.map(|known| known.client);
        let done = |()| Outcome::Done;
        let is_lasting = self.is_lasting;
        let client = self.carry_out(
            action.clone(),
            numbers,
            |engine, site, order| match &action {
                Action::Unlink { .. } => engine.unlink(site, order).map(done),
                Action::RemoveDirectory { .. } => engine.remove_directory(site, order).map(done),
                Action::Rename { .. } | Action::Exchange { .. } => {
                    engine.rename(site, order, Renaming::Replace).map(done)
                }
                Action::Write { offset, data } if is_lasting => engine
                    .write_lent(site, numbers[0], *offset, data)
                    .map(Outcome::Wrote),
                _ => engine.change(site, order),
            },
        );
        agree::<L>(&sure, &client, &action);
        self.part(own);
    }

    fn append(&mut self, file: Known, data: Vec<u8>) {
        let Body::File(content) = &self.sure.inode(file.sure).unwrap().body else {
            panic!("a file");
        };
        let (offset, count) = (content.len() as u64, data.len() as u64);
        let action = Action::Write {
            offset,
            data: data.clone(),
        };
        self.sure.perform(&action, [file.sure; 2]).unwrap();
        let answer = match self.is_lasting {
            true => self.engine.append_lent(&self.site, file.client, &data),
            false => self.engine.append(&self.site, file.client, data),
        };
        assert_eq!(answer, Ok((offset, count)));
    }

    fn hold_or_release(&mut self, random: &mut Random) {
        let index = random.below(self.known.len());
        let known = &mut self.known[index];
        if known.client == ROOT {
            return;
        }
        if known.holds == 0 || random.below(2) == 0 {
            known.holds += 1;
            self.sure.open(known.sure);
            assert!(self.site.front(|front| front.hold(known.client)));
            return;
        }
        known.holds -= 1;
        self.sure.close(known.sure);
        let client = known.client;
        let remains = self.site.front(|front| front.release(client));
        if let Some(number) = remains.and_then(|remains| remains.orphan) {
            let removed = self.engine.release_hidden(&self.site, client, number);
            removed.unwrap();
        }
    }

    /// Compares everything.
    pub fn compare(&mut self) {
        let serves = self.site.front(|front| front.fs.clone());
        if serves.is_dead() {
            self.engine.revive(&self.site, serves.id()).unwrap();
        }
        let fs = self.site.front(|front| front.fs.clone());
        let (found, expected) = (fs.tree(), self.sure.tree());
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected);
        }
        assert_eq!(found.len(), expected.len());
        for known in &self.known {
            let inode = self.sure.inode(known.sure).unwrap();
            let is_gone_directory = inode.links == 0 && matches!(inode.body, Body::Directory(_));
            if is_gone_directory {
                continue;
            }
            let (_, real) = translate(&self.site, known.client).unwrap();
            match (fs.body(real), &inode.body) {
                (Body::Directory(_), Body::Directory(_)) => {}
                (found, expected) => assert_eq!(found, *expected, "{known:?}"),
            }
        }
        let numbers: Vec<_> = self.known.iter().map(|known| known.client).collect();
        for (index, number) in numbers.iter().enumerate() {
            assert!(!numbers[..index].contains(number), "two files are {number}");
        }
        for report in self.site.reports.borrow().iter() {
            assert_eq!(report.refused, 0, "{report:?}");
            assert!(report.found.is_some(), "{report:?}");
        }
    }

    /// Lets go of everything.
    pub fn release_all(&mut self) {
        for known in std::mem::take(&mut self.known) {
            for _ in 0..known.holds {
                let remains = self.site.front(|front| front.release(known.client));
                if let Some(number) = remains.and_then(|remains| remains.orphan) {
                    let client = known.client;
                    let removed = self.engine.release_hidden(&self.site, client, number);
                    removed.unwrap();
                }
            }
        }
    }

    pub fn result_of(&mut self, action: Action<Vec<u8>, Setting>, on: u64) -> Result<Outcome> {
        self.engine.change_now(&self.site, action, [on; 2])
    }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    (0..1 + random.below(6))
        .map(|_| b'A' + random.below(26) as u8)
        .collect()
}

/// Both did it, or both did not, for the same reason if that is asked for.
fn agree<L: Life>(
    sure: &Result<Outcome>,
    client: &Result<Outcome>,
    action: &Action<Vec<u8>, Setting>,
) {
    match (sure, client) {
        (Err(_), Err(error)) if !L::EXACT && *error != Error::Failed => {}
        _ => assert_eq!(sure, client, "{action:?}"),
    }
}

impl Pair {
    pub fn disk<R>(&self, work: impl FnOnce(&mut super::Disk) -> R) -> R {
        let fs = self.site.last.borrow().clone();
        work(&mut fs.disk.lock().unwrap())
    }

    /// Hidden names on the disk.
    pub fn hidden(&self) -> usize {
        self.disk(|disk| disk.live.names(UNNAMED).unwrap().len())
    }
}

impl Life for Instance {
    const EXACT: bool = true;
    const EXCHANGES: bool = true;

    fn first(seed: u64) -> Self {
        Instance::new(seed)
    }

    fn next(&self) -> Self {
        self.replace()
    }

    fn is_dead(&self) -> bool {
        let disk = self.disk.lock().unwrap();
        disk.dead || disk.id != self.id
    }

    fn tree(&self) -> String {
        self.disk.lock().unwrap().live.tree()
    }

    fn body(&self, real: u64) -> Body {
        self.disk
            .lock()
            .unwrap()
            .live
            .inode(real)
            .unwrap()
            .body
            .clone()
    }
}
