//! All changes, one at a time, over the lives of the file system.

use alloc::format;

use crate::action::{Action, Fault, Kind, Outcome, Severity, Target, is_dead};
use crate::front::{CLIENTS, Front, Holder, Seen};
use crate::log::{Basis, Log};
use crate::order::Order;
use crate::recover::Report;
use crate::{ORPHAN, is_orphan_name};

/// How many instances are tried for one change or one recovery.
const ATTEMPTS: u32 = 8;

/// Most changes in the log.
const MOST_ENTRIES: usize = 16_384;

/// Where the engine lives.
pub trait Host {
    /// The file system.
    type Target: Target;

    /// Has `work` done with the shared state. `work` makes no calls.
    fn front<R>(&self, work: impl FnOnce(&mut Front<Self::Target>) -> R) -> R;
    /// An instance other than `failed`.
    ///
    /// # Errors
    /// There is none to be had.
    fn instance(&self, failed: u32) -> Result<Self::Target, <Self::Target as Target>::Error>;
    /// The file system was brought up to date after a crash. Whether everything was committed since
    /// by `fs`, so that the log begins anew.
    fn recovered(&self, fs: &Self::Target, report: &Report) -> bool;
    /// A change is about to be tried, before which there were `number`, for who asked through this
    /// lane, if through one. Who comes after this shadow gives what is noted of it here to
    /// [`Engine::restore`] or [`Engine::resume`]. `record` is [`Order::record`].
    ///
    /// # Errors
    /// It cannot be noted: then it is not tried.
    fn intend(
        &self,
        number: u64,
        lane: Option<Lane>,
        (action, basis): (&Change<Self::Target>, &Basis),
        record: &mut Option<<Self::Target as Target>::Data>,
    ) -> Result<(), <Self::Target as Target>::Error> {
        let _ = (number, lane, action, basis, record);
        Ok(())
    }
    /// Whether there is room to note a change with so many bytes of names and content.
    fn has_room(&self, weight: usize) -> bool {
        let _ = weight;
        true
    }
    /// The first `count` changes that there ever were are on the disk.
    fn forgotten(&self, count: u64) {
        let _ = count;
    }
    /// Something asked for through a lane is about to be written at the end of an inode (a client's
    /// number): at this offset.
    ///
    /// # Errors
    /// It cannot be noted: then it is not written.
    fn plan(
        &self,
        lane: Lane,
        inode: u64,
        offset: u64,
    ) -> Result<(), <Self::Target as Target>::Error> {
        let _ = (lane, inode, offset);
        Ok(())
    }
    /// So many bytes were written at the offset that was planned.
    fn wrote(&self, lane: Lane, offset: u64, count: u64) {
        let _ = (lane, offset, count);
    }
    /// The change that was intended is done, with this outcome, as the file system has it and in
    /// clients' numbers; or was refused.
    fn answer(&self, lane: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        let _ = (lane, outcome);
    }
}

/// The way through which a change is asked for, so that what came of it is found again.
pub type Lane = core::num::NonZeroU32;

/// How a name is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// What has the new name gives way.
    Replace,
    /// Nothing gives way.
    New,
}

/// A change for this kind of file system.
pub type Change<T> = Action<<T as Target>::Data, <T as Target>::Setting>;

type Error<H> = <<H as Host>::Target as Target>::Error;

/// What the engine knows of its instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    /// It has everything that was acknowledged.
    Sound,
    /// It lives, and may lack something.
    Behind,
    /// It is dead.
    Dead,
}

/// The one place where changes are made. Guarded by a lock that is held over calls to the file
/// system.
pub struct Engine<T: Target> {
    fs: T,
    log: Log<T::Data, T::Setting>,
    health: Health,
    /// Most bytes in the log.
    budget: usize,
    /// What the file system acknowledges survives its death.
    is_lasting: bool,
    orphans: u64,
    /// Through which the next change is asked for that decides what comes of an operation.
    lane: Option<Lane>,
    /// The inode that the host can do without.
    own: Option<u64>,
    /// It is gone.
    is_parted: bool,
}

/// A commit that was begun, see [`Engine::begin_commit`].
pub struct Commit<T> {
    fs: T,
    /// How many changes the log ever had.
    changes: u64,
}

impl<T: Target> Commit<T> {
    /// Does it.
    ///
    /// # Errors
    /// The file system's.
    pub fn perform(&self) -> Result<(), T::Error> {
        self.fs.commit()
    }

    /// How many changes there ever were before it.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The instance that does it.
    pub fn by(&self) -> u32 {
        self.fs.id()
    }
}

impl<T: Target> Engine<T> {
    /// Changes go to `fs`. When the log would have more than `budget` bytes, everything is brought
    /// to the disk.
    pub fn new(fs: T, budget: usize) -> Self {
        Engine {
            fs,
            log: Log::new(),
            health: Health::Sound,
            budget,
            is_lasting: false,
            orphans: 0,
            lane: None,
            own: None,
            is_parted: false,
        }
    }

    /// As [`new`](Self::new), for a file system whose next instance has all that was acknowledged.
    /// So only the change that is under way is remembered.
    pub fn lasting(fs: T) -> Self {
        Engine {
            is_lasting: true,
            ..Engine::new(fs, 0)
        }
    }

    /// What is asked for next comes through this lane.
    pub fn come_by(&mut self, lane: Option<Lane>) {
        self.lane = lane;
    }

    /// The host has one hold of this inode that it can do without: if nobody else holds it, it gets
    /// no hidden name in place of its last one, and [`has_parted`](Self::has_parted) says so. Until
    /// this is called again.
    pub fn can_part_with(&mut self, own: Option<u64>) {
        self.own = own;
        self.is_parted = false;
    }

    /// Whether that inode is gone, or perhaps: no instance has answered. Its number may be
    /// another's from the next change on.
    pub fn has_parted(&self) -> bool {
        self.is_parted
    }

    /// Takes a change into the log that a former shadow made, and that the instance that serves may
    /// not have. All numbers are those of the instance before. [`resume`](Self::resume) comes next.
    ///
    /// # Errors
    /// No memory.
    pub fn restore(
        &mut self,
        action: Change<T>,
        basis: Basis,
        outcome: Outcome,
    ) -> Result<(), T::Error> {
        if !self.log.has_place() {
            return Err(T::error(Fault::Failed));
        }
        self.log.begin(action, basis);
        self.log.commit(outcome, T::cut);
        Ok(())
    }

    /// Sees to what was [restored](Self::restore), and to the change that a former shadow was
    /// trying, if it was: it is done, now or then, or refused; its outcome as in
    /// [`Host::answer`].
    ///
    /// # Errors
    /// There is no working instance; nobody knows whether the change was made.
    pub fn resume<H: Host<Target = T>>(
        &mut self,
        host: &H,
        pending: Option<(Change<T>, Basis)>,
    ) -> Result<Option<[Outcome; 2]>, T::Error> {
        if let Some((action, basis)) = pending {
            self.log.begin(action, basis);
        }
        self.health = Health::Behind;
        let outcome = self.recover(host)?;
        Ok(outcome
            .and_then(Result::ok)
            .map(|outcome| [outcome, host.front(|front| front.tell(outcome))]))
    }

    /// There are hidden names with numbers up to this one.
    pub fn number_hidden_from(&mut self, last: u64) {
        self.orphans = self.orphans.max(last >> CLIENTS);
    }

    /// Bytes that would be done again after a crash.
    pub fn weight(&self) -> usize {
        self.log.weight()
    }

    /// Called by who found the instance `failed` dead: sees to it that another one serves and is up
    /// to date.
    ///
    /// # Errors
    /// There is none.
    pub fn revive<H: Host<Target = T>>(&mut self, host: &H, failed: u32) -> Result<(), T::Error> {
        if self.fs.id() == failed {
            self.health = Health::Dead;
        }
        self.settle(host)
    }

    /// Sees to it that the instance is up to date.
    fn settle<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        if self.health == Health::Sound {
            return Ok(());
        }
        if let Some(result) = self.recover(host)? {
            // Who asked for this change was told that nobody knows.
            let told = |outcome| [outcome, host.front(|front| front.tell(outcome))];
            self.answer(host, None, result.ok().map(told));
        }
        Ok(())
    }

    /// Tells what came of the change that was noted last.
    fn answer<H: Host<Target = T>>(
        &self,
        host: &H,
        lane: Option<Lane>,
        outcome: Option<[Outcome; 2]>,
    ) {
        host.answer(lane, outcome);
        if self.log.is_empty() {
            host.forgotten(self.log.ever());
        }
    }

    /// Brings an instance up to date; what came of the change that was under way, if one was.
    fn recover<H: Host<Target = T>>(
        &mut self,
        host: &H,
    ) -> Result<Option<Result<Outcome, T::Error>>, T::Error> {
        for _ in 0..ATTEMPTS {
            if self.health == Health::Dead {
                self.fs = host.instance(self.fs.id())?;
                self.health = Health::Behind;
            }
            match self.log.recover(&self.fs) {
                Ok(recovery) => {
                    self.health = Health::Sound;
                    let fs = self.fs.clone();
                    // What died with the old instance is let go of outside of the lock.
                    let dead = host.front(|front| front.replace(fs, &recovery.renumbered));
                    drop(dead);
                    if host.recovered(&self.fs, &recovery.report) {
                        self.log.clear();
                        // What was under way has to be answered first.
                        if recovery.pending.is_none() {
                            host.forgotten(self.log.ever());
                        }
                    }
                    return Ok(recovery.pending);
                }
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                Err(error) => return Err(error),
            }
        }
        Err(T::error(Fault::Failed))
    }

    /// Has `work` done with an instance that is up to date, again if it dies.
    fn consult<H: Host<Target = T>, R>(
        &mut self,
        host: &H,
        work: impl Fn(&T) -> Result<R, T::Error>,
    ) -> Result<R, T::Error> {
        for _ in 0..ATTEMPTS {
            self.settle(host)?;
            match work(&self.fs) {
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                result => return result,
            }
        }
        Err(T::error(Fault::Failed))
    }

    /// Makes a change, exactly once in effect. All numbers are clients'.
    ///
    /// # Errors
    /// The file system's answer; or there is no working instance, and nobody knows whether the
    /// change was made.
    pub fn change<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
    ) -> Result<Outcome, T::Error> {
        let seen = self.see(host, order)?;
        self.change_from(host, order, seen)
    }

    /// As [`change`](Self::change), and [ends](Order::end) it.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn change_now<H: Host<Target = T>>(
        &mut self,
        host: &H,
        action: Change<T>,
        on: [u64; 2],
    ) -> Result<Outcome, T::Error> {
        let mut order = Order::new(action, on);
        let result = self.change(host, &mut order);
        host.front(|front| order.end(front));
        result
    }

    /// As [`change`](Self::change), from what was seen with the instance that serves.
    fn change_from<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
        mut seen: Seen,
    ) -> Result<Outcome, T::Error> {
        for _ in 0..ATTEMPTS {
            let Some(action) = &order.action else {
                break;
            };
            match self.prepare(host, (action, order.on), &mut seen) {
                Ok(true) => {
                    let result = self.perform(host, order, seen);
                    if self.is_lasting && result.is_ok() {
                        self.log.clear();
                    }
                    return result;
                }
                Ok(false) => return Ok(Outcome::Done),
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                Err(error) => return Err(error),
            }
            seen = self.see(host, order)?;
        }
        Err(T::error(Fault::Failed))
    }

    fn make_room<H: Host<Target = T>>(&mut self, host: &H, weight: usize) -> Result<(), T::Error> {
        let is_full = self.log.len() >= MOST_ENTRIES
            || self.log.weight() + weight > self.budget
            || !host.has_room(weight)
            || !self.log.has_place();
        if is_full && !self.log.is_empty() {
            return self.commit(host);
        }
        Ok(())
    }

    /// Makes room for a change, and looks what it starts from with an instance that is up to date.
    fn see<H: Host<Target = T>>(&mut self, host: &H, order: &Order<T>) -> Result<Seen, T::Error> {
        let Some(action) = &order.action else {
            return Err(T::error(Fault::Failed));
        };
        self.make_room(host, action.weight())?;
        for _ in 0..ATTEMPTS {
            self.settle(host)?;
            let seen = host.front(|front| front.look(order));
            let mut seen = seen.ok_or_else(|| T::error(Fault::Missing))?;
            match self.look_up(host, order, &mut seen) {
                Ok(()) => return Ok(seen),
                Err(error) if is_dead::<T>(&error) => self.health = Health::Dead,
                Err(error) => return Err(error),
            }
        }
        Err(T::error(Fault::Failed))
    }

    /// Asks for what is not known.
    fn look_up<H: Host<Target = T>>(
        &self,
        host: &H,
        order: &Order<T>,
        seen: &mut Seen,
    ) -> Result<(), T::Error> {
        let Some(action) = &order.action else {
            return Ok(());
        };
        for (at, name) in action.names().into_iter().enumerate() {
            let (Some(name), Some(ticket)) = (name, seen.unknown[at].take()) else {
                continue;
            };
            let found = match self.fs.look_up(seen.basis.on[at], name) {
                Ok(found) => Some(found),
                Err(error) if T::severity(&error) == Severity::Missing => None,
                Err(error) => return Err(error),
            };
            host.front(|front| {
                let there = found.map(|real| front.ids.client(real));
                if let Some(place) = &order.places[at] {
                    front.names.remember(ticket, place, there);
                }
                seen.about.before[at] = there;
                seen.basis.before[at] = there.and_then(|inode| front.ids.real(inode));
            });
        }
        Ok(())
    }

    /// Whether there is something to do. Finds out what more has to be known for it.
    fn prepare<H: Host<Target = T>>(
        &self,
        host: &H,
        (action, on): (&Change<T>, [u64; 2]),
        seen: &mut Seen,
    ) -> Result<bool, T::Error> {
        let Seen { basis, about, .. } = seen;
        match (action, basis.before) {
            // What has only a hidden name has none.
            (Action::Link { .. }, [None, _]) if host.front(|front| front.is_orphan(on[1])) => {
                Err(T::error(Fault::Missing))
            }
            (action, [Some(_), _]) if action.makes() || matches!(action, Action::Link { .. }) => {
                Err(T::error(Fault::Exists))
            }
            (
                Action::Unlink { .. }
                | Action::RemoveDirectory { .. }
                | Action::Rename { .. }
                | Action::Exchange { .. },
                [None, _],
            )
            | (Action::Exchange { .. }, [_, None]) => Err(T::error(Fault::Missing)),
            // Two names of one file: then nothing happens.
            (Action::Rename { .. } | Action::Exchange { .. }, [one, other]) if one == other => {
                Ok(false)
            }
            (Action::Rename { .. }, [_, Some(replaced)]) => {
                let kind = self.fs.facts(replaced)?.kind;
                basis.replaced = Some(kind);
                about.removed = about.before[1].filter(|_| kind == Kind::Directory);
                Ok(true)
            }
            (Action::RemoveDirectory { .. }, _) => {
                about.removed = about.before[0];
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn perform<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
        Seen { basis, about, .. }: Seen,
    ) -> Result<Outcome, T::Error> {
        let Some(action) = order.action.take() else {
            return Err(T::error(Fault::Failed));
        };
        host.front(|front| order.begin(front, &about));
        let lane = self.lane.take().filter(|_| !action.is_content());
        let intended = (&action, &basis);
        host.intend(self.log.ever(), lane, intended, &mut order.record)?;
        let action = self.log.begin(action, basis);
        let result = match self.fs.perform(action, basis.on) {
            Ok(outcome) => {
                let told = host.front(|front| front.made(about.removed, outcome));
                order.note(action, &about, told);
                self.log.commit(outcome, T::cut);
                Ok([outcome, told])
            }
            Err(error) if is_dead::<T>(&error) => {
                self.health = Health::Dead;
                self.log.note_death_of_last();
                let result = self
                    .recover(host)?
                    .unwrap_or_else(|| Err(T::error(Fault::Failed)));
                result.map(|outcome| [outcome, host.front(|front| front.tell(outcome))])
            }
            // It may have done a part.
            Err(error) => {
                self.log.cancel();
                Err(error)
            }
        };
        self.answer(host, lane, result.as_ref().ok().copied());
        result.map(|[_, told]| told)
    }

    /// Writes at the end of a file; where, and how much.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn append<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        data: T::Data,
    ) -> Result<(u64, u64), T::Error> {
        let lane = self.lane.take();
        let offset = self.consult(host, |fs| fs.facts(real(host, inode)?))?.size;
        if let Some(lane) = lane {
            host.plan(lane, inode, offset)?;
        }
        match self.change_now(host, Action::Write { offset, data }, [inode; 2])? {
            Outcome::Wrote(count) => {
                if let Some(lane) = lane {
                    host.wrote(lane, offset, count);
                }
                Ok((offset, count))
            }
            _ => Err(T::error(Fault::Failed)),
        }
    }

    /// Writes into a file of a file system that is [lasting](Self::lasting); how many bytes. The
    /// data is only lent: it is there until the call is over, however many instances that takes.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn write_lent<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        offset: u64,
        data: &T::Data,
    ) -> Result<u64, T::Error> {
        host.front(|front| front.inodes.forget(inode));
        let written = self.consult(host, |fs| fs.write(real(host, inode)?, offset, data));
        host.front(|front| front.inodes.forget(inode));
        written
    }

    /// As [`write_lent`](Self::write_lent), at the end of a file; where, and how much.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn append_lent<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        data: &T::Data,
    ) -> Result<(u64, u64), T::Error> {
        let offset = self.consult(host, |fs| fs.facts(real(host, inode)?))?.size;
        let count = self.write_lent(host, inode, offset, data)?;
        Ok((offset, count))
    }

    /// Begins a commit that is done without the engine, which others use meanwhile:
    /// [`Commit::perform`], and then [`end_commit`](Self::end_commit) with what came of it.
    ///
    /// # Errors
    /// There is no working instance.
    pub fn begin_commit<H: Host<Target = T>>(&mut self, host: &H) -> Result<Commit<T>, T::Error> {
        self.settle(host)?;
        Ok(Commit {
            fs: self.fs.clone(),
            changes: self.log.ever(),
        })
    }

    /// Forgets the changes that a commit has made safe. `false`: the instance died, and the commit
    /// has to be begun again.
    ///
    /// # Errors
    /// The file system's, as it was handed in.
    pub fn end_commit(
        &mut self,
        commit: &Commit<T>,
        result: Result<(), T::Error>,
    ) -> Result<bool, T::Error> {
        let is_this = self.fs.id() == commit.fs.id();
        match result {
            // If another instance serves, it was brought up to date with the log as it is.
            Ok(()) if is_this && self.health == Health::Sound => self.log.forget(commit.changes),
            Ok(()) => {}
            Err(error) if is_dead::<T>(&error) => {
                if is_this {
                    self.health = Health::Dead;
                }
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Whether the instance that did a commit serves, and has everything that was acknowledged:
    /// then the log begins behind a commit that has just been ended.
    pub fn serves(&self, commit: &Commit<T>) -> bool {
        self.fs.id() == commit.by() && self.health == Health::Sound
    }

    /// Makes everything survive a crash of the file system, so that nothing has to be remembered.
    ///
    /// # Errors
    /// The file system's.
    pub fn commit<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        self.consult(host, T::commit)?;
        self.log.clear();
        host.forgotten(self.log.ever());
        Ok(())
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync<H: Host<Target = T>>(&mut self, host: &H) -> Result<(), T::Error> {
        self.consult(host, T::sync)?;
        self.log.clear();
        host.forgotten(self.log.ever());
        Ok(())
    }

    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn unlink<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
    ) -> Result<(), T::Error> {
        let seen = self.see(host, order)?;
        let Some(inode) = seen.about.before[0] else {
            return Err(T::error(Fault::Missing));
        };
        let holder = host.front(|front| front.go(inode, self.own));
        let result = match holder {
            Holder::Nobody => self.change_from(host, order, seen).map(|_| ()),
            _ => self.unlink_held(host, order, (inode, holder)),
        };
        host.front(Front::stay);
        result
    }

    fn unlink_held<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
        (inode, holder): (u64, Holder),
    ) -> Result<(), T::Error> {
        let goes = self.is_last_name(host, inode)?;
        if goes
            && holder == Holder::Others
            && let Some(Action::Unlink { name }) = order
                .action
                .take_if(|action| matches!(action, Action::Unlink { .. }))
        {
            return self.hide(host, inode, order.on[0], name);
        }
        let result = self.change(host, order);
        self.note_parted(goes, result.is_ok());
        result.map(|_| ())
    }

    /// After the last name of what only the host holds was removed, or not. Where nobody knows, it
    /// may be done by the next instance.
    fn note_parted(&mut self, goes: bool, removed: bool) {
        self.is_parted |= goes && (removed || self.health != Health::Sound);
    }

    /// Moves a name, or exchanges two, of which `how` says nothing.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn rename<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
        how: Renaming,
    ) -> Result<(), T::Error> {
        let seen = self.see(host, order)?;
        let [moved, replaced] = seen.about.before;
        let exchanges = matches!(order.action, Some(Action::Exchange { .. }));
        let Some(replaced) = replaced.filter(|_| !exchanges) else {
            return self.change_from(host, order, seen).map(|_| ());
        };
        if how == Renaming::New {
            return Err(T::error(Fault::Exists));
        }
        let holder = host.front(|front| front.go(replaced, self.own));
        let result = match holder != Holder::Nobody && moved != Some(replaced) {
            true => self.replace_held(host, (replaced, holder), order),
            false => self.change_from(host, order, seen).map(|_| ()),
        };
        host.front(Front::stay);
        result
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn remove_directory<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &mut Order<T>,
    ) -> Result<(), T::Error> {
        let seen = self.see(host, order)?;
        let Some(inode) = seen.about.before[0] else {
            return Err(T::error(Fault::Missing));
        };
        if host.front(|front| front.go(inode, None)) == Holder::Nobody {
            let result = self.change_from(host, order, seen);
            host.front(Front::stay);
            return result.map(|_| ());
        }
        let kept = Some(self.keep(host, inode)?);
        let result = self.change(host, order);
        self.note_kept(host, inode, kept, result.is_ok());
        result.map(|_| ())
    }

    /// Keeps an inode alive for as long as an instance lives: which one, and by what.
    fn keep<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
    ) -> Result<(u32, T::Kept), T::Error> {
        self.consult(host, |fs| Ok((fs.id(), fs.keep(real(host, inode)?)?)))
    }

    /// After a directory was removed, or not.
    fn note_kept<H: Host<Target = T>>(
        &self,
        host: &H,
        inode: u64,
        kept: Option<(u32, T::Kept)>,
        removed: bool,
    ) {
        let serves = self.fs.id();
        let unneeded = host.front(|front| {
            front.stay();
            match kept {
                Some((id, kept)) if removed && id == serves => front.set_kept(inode, kept),
                Some((_, kept)) if removed => {
                    // It was kept by an instance that has died since.
                    front.bury(inode);
                    Some(kept)
                }
                kept => kept.map(|(_, kept)| kept),
            }
        });
        drop(unneeded);
    }

    /// Removes the name of something that is held, by a rename over it.
    fn replace_held<H: Host<Target = T>>(
        &mut self,
        host: &H,
        (replaced, holder): (u64, Holder),
        order: &mut Order<T>,
    ) -> Result<(), T::Error> {
        let facts = self.consult(host, |fs| fs.facts(real(host, replaced)?))?;
        if facts.kind == Kind::Directory {
            let kept = self.keep(host, replaced)?;
            let result = self.change(host, order);
            self.note_kept(host, replaced, Some(kept), result.is_ok());
            return result.map(|_| ());
        }
        if facts.links > 1 || holder == Holder::Host {
            let result = self.change(host, order);
            self.note_parted(facts.links <= 1, result.is_ok());
            return result.map(|_| ());
        }
        // The hidden name comes first, so that the other one leads to one or the other file at all
        // times.
        let (number, name) = self.hidden_name(host, replaced)?;
        let root = self.fs.root();
        let lane = self.lane.take();
        self.change_now(host, Action::Link { name }, [root, replaced])?;
        self.lane = lane;
        let is_held = host.front(|front| front.set_orphan(replaced, Some(number)));
        let result = self.change(host, order);
        if result.is_err() || !is_held {
            host.front(|front| front.set_orphan(replaced, None));
            self.remove_hidden(host, number)?;
        }
        result.map(|_| ())
    }

    /// Gives a held file a hidden name in place of its last one.
    fn hide<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        directory: u64,
        name: T::Data,
    ) -> Result<(), T::Error> {
        let (number, new_name) = self.hidden_name(host, inode)?;
        let root = self.fs.root();
        self.change_now(host, Action::Rename { name, new_name }, [directory, root])?;
        match host.front(|front| front.set_orphan(inode, Some(number))) {
            true => Ok(()),
            // It was released meanwhile.
            false => self.remove_hidden(host, number),
        }
    }

    /// A new hidden name for an inode, and its number: that has marks of the clients that hold it
    /// below, so that who comes after this shadow knows whom he has to wait for.
    fn hidden_name<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
    ) -> Result<(u64, T::Data), T::Error> {
        self.orphans += 1;
        let holders = host.front(|front| front.holders(inode));
        let number = self.orphans << CLIENTS | holders;
        Ok((number, hidden_name::<T>(number)?))
    }

    /// Removes a hidden name, after the last [`release`](Front::release) of what has it.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn remove_hidden<H: Host<Target = T>>(
        &mut self,
        host: &H,
        number: u64,
    ) -> Result<(), T::Error> {
        let name = hidden_name::<T>(number)?;
        let root = self.fs.root();
        self.change_now(host, Action::Unlink { name }, [root; 2])
            .map(|_| ())
    }

    /// Whether a file (not a directory) has one name only.
    fn is_last_name<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
    ) -> Result<bool, T::Error> {
        let facts = self.consult(host, |fs| fs.facts(real(host, inode)?))?;
        Ok(facts.kind != Kind::Directory && facts.links <= 1)
    }
}

/// The file system's number for a client's.
fn real<H: Host>(host: &H, inode: u64) -> Result<u64, Error<H>> {
    host.front(|front| front.ids.real(inode))
        .ok_or_else(|| H::Target::error(Fault::Missing))
}

fn hidden_name<T: Target>(number: u64) -> Result<T::Data, T::Error> {
    let mut name = ORPHAN.to_vec();
    name.extend_from_slice(format!("{number}").as_bytes());
    debug_assert!(is_orphan_name(&name), "the prefix is in front");
    T::data(&name)
}

/// Whether the inode that a client asks for may be asked of the file system, and under which
/// number.
///
/// # Errors
/// It leads to nothing.
pub fn translate<H: Host>(host: &H, inode: u64) -> Result<(H::Target, u64), Error<H>> {
    let (fs, real) = host.front(|front| (front.fs.clone(), front.ids.real(inode)));
    real.map(|real| (fs, real))
        .ok_or_else(|| H::Target::error(Fault::Missing))
}
