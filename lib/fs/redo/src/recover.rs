//! From what the next instance finds on its disk to what the last one acknowledged. How and why:
//! see the crate.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::action::{Action, Kind, Outcome, Severity, Target, is_dead};
use crate::engine::Host;
use crate::log::{Entry, Kinds, Log, Object};

/// So many instances may die of a change that is under way before it is given up, and of one that
/// was acknowledged, which nobody can be told of. Not fewer: it may be blameless, and struck again
/// and again by who kills without a pause.
const DEATHS: [u8; 2] = [4, 5];

/// So many shadows may die of a change, the one that was asked for it included. Of the last change
/// nobody knows whether it was acknowledged, so there is one number for all. Not fewer: the first
/// death may have come when it was made already, the second by chance. Not more: with the crash
/// that made it necessary to make it again they are to stay below the five that a domain has within
/// ten seconds.
const SHADOWS: u8 = 3;

/// So many changes that are lost are told one by one.
const TOLD: usize = 8;

/// What a recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Changes in the log.
    pub entries: usize,
    /// How many of them were found on the disk; `None`: the disk is as after no number of them.
    pub found: Option<usize>,
    /// Changes that were done again.
    pub repeated: usize,
    /// Changes that were acknowledged and that the file system would not do again.
    pub refused: usize,
}

/// A recovery that came to its end.
pub struct Recovery<E> {
    /// Numbers that have changed: old, new; no new one if the inode is lost.
    pub renumbered: Vec<(u64, Option<u64>)>,
    /// What came of the change that was under way, if one was.
    pub pending: Option<Result<Outcome, E>>,
    /// What was done.
    pub report: Report,
}

/// What a name leads to, as the log tells it.
#[derive(Clone, Copy)]
enum Slot {
    Nothing,
    Number(u64, Kinds),
    /// To what a change made that nobody has heard of.
    Anything(Kinds),
}

/// What a name leads to on the disk. What it is, is asked only if it may have a used number.
#[derive(Clone, Copy)]
struct There {
    number: u64,
    kind: Option<Kind>,
}

impl Slot {
    fn fits(self, disk: Option<There>) -> bool {
        let is_one = |there: There, kinds: Kinds| there.kind.is_none_or(|kind| kinds.has(kind));
        match (self, disk) {
            (Slot::Nothing, None) => true,
            (Slot::Number(number, kinds), Some(there)) => {
                number == there.number && is_one(there, kinds)
            }
            (Slot::Anything(kinds), Some(there)) => is_one(there, kinds),
            _ => false,
        }
    }
}

/// One name that a change changes.
struct Effect<'a, D> {
    directory: u64,
    name: &'a D,
    before: Slot,
    after: Slot,
}

/// One name: what it leads to on the disk, and as the log tells it up to some entry.
struct Name {
    disk: Option<There>,
    told: Slot,
}

/// How one entry fared.
enum Fate<E> {
    /// It was left as it is.
    Found,
    /// It was done again.
    Repeated(Outcome),
    /// The file system would not.
    Refused(E),
    /// What it is about could not be made again.
    Lost,
    /// Too many died of it.
    GivenUp,
}

impl<D: core::ops::Deref<Target = [u8]>, S> Log<D, S> {
    /// Does again on `fs` what is not on its disk.
    ///
    /// # Errors
    /// Those of the file system that say that it is dead, or in trouble. Then this is to be called
    /// again, with the same instance or the next one.
    pub fn recover<T: Target<Data = D, Setting = S>>(
        &mut self,
        host: &impl Host<Target = T>,
        fs: &T,
    ) -> Result<Recovery<T::Error>, T::Error> {
        self.resolve();
        let found = self.found_on(fs)?;
        let mut report = Report {
            entries: self.entries.len(),
            found,
            ..Report::default()
        };
        if self.pending && found == Some(self.entries.len()) {
            self.note_found(fs, self.entries.len() - 1)?;
        }
        // Before anything is done again, because a change of content looks whether its inode's
        // number was used again.
        if let Some(open) = self.redoing
            && found.is_some_and(|found| found > open)
        {
            self.note_found(fs, open)?;
            self.redoing = None;
        }
        let mut pending = None;
        for number in 0..self.entries.len() {
            let is_pending = self.pending && number + 1 == self.entries.len();
            match (self.redo(host, fs, number, found)?, is_pending) {
                (Fate::Repeated(outcome), _) => {
                    report.repeated += 1;
                    pending = Some(Ok(outcome));
                }
                (Fate::Found, false) => {}
                (Fate::Found, true) => pending = Some(Ok(self.outcome_of_found())),
                (Fate::Refused(error), true) => pending = Some(Err(error)),
                (Fate::Lost, true) => pending = Some(Err(T::error(crate::Fault::Missing))),
                (Fate::GivenUp, true) => pending = Some(Err(T::error(crate::Fault::Failed))),
                (fate @ (Fate::Refused(_) | Fate::Lost | Fate::GivenUp), false) => {
                    report.refused += 1;
                    if report.refused <= TOLD {
                        let entry = &self.entries[number];
                        host.lost(&entry.action, matches!(fate, Fate::GivenUp));
                    }
                }
            }
        }
        let pending = pending.filter(|_| self.pending);
        let renumbered = self.end(&pending, T::cut);
        Ok(Recovery {
            renumbered,
            pending,
            report,
        })
    }

    /// Brings the log in order after everything was done.
    fn end<E>(
        &mut self,
        pending: &Option<Result<Outcome, E>>,
        cut: impl FnOnce(D, usize) -> D,
    ) -> Vec<(u64, Option<u64>)> {
        match pending {
            Some(Ok(Outcome::Wrote(count))) => self.shorten(*count, cut),
            Some(Err(_)) => self.cancel(),
            Some(Ok(_)) => self.learn(),
            None => {}
        }
        self.pending = false;
        self.settle()
    }

    fn slot(&self, object: Option<Object>) -> Slot {
        let number = |object| {
            self.number(object)
                .map(|number| (number, self.kinds(object)))
        };
        match object.and_then(number) {
            Some((number, kinds)) => Slot::Number(number, kinds),
            None => Slot::Nothing,
        }
    }

    /// What a name leads to on the disk, and what that is if its number may not be enough.
    fn there<T: Target<Data = D, Setting = S>>(
        &self,
        fs: &T,
        directory: u64,
        name: &D,
    ) -> Result<Option<There>, T::Error> {
        let Some(number) = look(fs, directory, name)? else {
            return Ok(None);
        };
        let has_used = |entry: &Entry<D, S>| {
            entry.action.makes() && entry.made.is_none_or(|made| made == number)
        };
        let kind = match self.entries.iter().any(has_used) {
            true => answer::<T, _>(fs.facts(number))?.map(|facts| facts.kind),
            false => None,
        };
        Ok(Some(There { number, kind }))
    }

    /// The names that an entry changes. None if it could not be done again.
    fn effects(&self, number: usize) -> impl Iterator<Item = Effect<'_, D>> {
        let entry = &self.entries[number];
        let is_pending = self.pending && number + 1 == self.entries.len();
        let is_open = is_pending || self.redoing == Some(number);
        let [first, second] = entry.action.names();
        let before = entry.before.map(|object| self.slot(object));
        let after = match &entry.action {
            Action::Link { .. } => self.slot(Some(entry.on[1])),
            action if action.makes() && is_open && entry.made.is_none() => {
                Slot::Anything(self.kinds_made(number))
            }
            action if action.makes() => self.slot(Some(Object::Born(number))),
            Action::Exchange { .. } => before[1],
            _ => Slot::Nothing,
        };
        let second_after = before[0];
        let parts = [
            (first, entry.on[0], before[0], after),
            (second, entry.on[1], before[1], second_after),
        ];
        parts
            .into_iter()
            .filter_map(|(name, object, before, after)| {
                Some(Effect {
                    directory: self.number(object)?,
                    name: name?,
                    before,
                    after,
                })
            })
    }

    /// The smallest number of entries with which the log's names lead to where the disk's lead.
    fn found_on<T: Target<Data = D, Setting = S>>(
        &self,
        fs: &T,
    ) -> Result<Option<usize>, T::Error> {
        let mut names: BTreeMap<(u64, &[u8]), Name> = BTreeMap::new();
        let mut wrong = 0usize;
        for number in 0..self.entries.len() {
            for effect in self.effects(number) {
                let key = (effect.directory, &effect.name[..]);
                if names.contains_key(&key) {
                    continue;
                }
                let disk = self.there(fs, effect.directory, effect.name)?;
                let told = effect.before;
                wrong += usize::from(!told.fits(disk));
                names.insert(key, Name { disk, told });
            }
        }
        if wrong == 0 {
            return Ok(Some(0));
        }
        for number in 0..self.entries.len() {
            for effect in self.effects(number) {
                let key = (effect.directory, &effect.name[..]);
                let name = names.get_mut(&key).expect("all names were put in above");
                wrong -= usize::from(!name.told.fits(name.disk));
                name.told = effect.after;
                wrong += usize::from(!name.told.fits(name.disk));
            }
            if wrong == 0 {
                return Ok(Some(number + 1));
            }
        }
        Ok(None)
    }

    /// Sees to one entry. `found`: how many are on the disk, if that is known.
    fn redo<T: Target<Data = D, Setting = S>>(
        &mut self,
        host: &impl Host<Target = T>,
        fs: &T,
        number: usize,
        found: Option<usize>,
    ) -> Result<Fate<T::Error>, T::Error> {
        let entry = &self.entries[number];
        let [Some(first), second] = entry.on.map(|object| self.number(object)) else {
            return Ok(Fate::Lost);
        };
        let needs_second = matches!(
            entry.action,
            Action::Link { .. } | Action::Rename { .. } | Action::Exchange { .. }
        );
        if needs_second && second.is_none() {
            return Ok(Fate::Lost);
        }
        let on = [first, second.unwrap_or(first)];
        let fate = if entry.action.is_content() {
            self.redo_content(host, (fs, on), number, found.unwrap_or(0))?
        } else if self.is_found(fs, number, found)? {
            Fate::Found
        } else {
            if entry.action.makes() {
                // Its number so far is that of a former life. If this one ends in the call, nobody
                // hears the new one.
                self.entries[number].made = None;
                self.redoing = Some(number);
            }
            self.try_again(host, (fs, on), number)?
        };
        self.note_made(fs, number, found, &fate)?;
        if self.redoing == Some(number) {
            self.redoing = None;
        }
        Ok(fate)
    }

    /// Makes the change of an entry, unless too many instances died of it, or too many shadows.
    fn try_again<T: Target<Data = D, Setting = S>>(
        &mut self,
        host: &impl Host<Target = T>,
        (fs, on): (&T, [u64; 2]),
        number: usize,
    ) -> Result<Fate<T::Error>, T::Error> {
        let is_pending = self.pending && number + 1 == self.entries.len();
        let [under_way, acknowledged] = DEATHS;
        let most = if is_pending { under_way } else { acknowledged };
        let entry = &self.entries[number];
        if entry.deaths >= most || entry.shadows >= SHADOWS {
            return Ok(Fate::GivenUp);
        }
        host.again(Some((
            self.before + number as u64,
            entry.shadows.saturating_add(1),
        )));
        let fate = perform(fs, &entry.action, on);
        if fate.as_ref().is_err_and(is_dead::<T>) {
            self.note_death(number);
        }
        fate
    }

    /// Whether a change of names is on the disk.
    fn is_found<T: Target<Data = D, Setting = S>>(
        &self,
        fs: &T,
        number: usize,
        found: Option<usize>,
    ) -> Result<bool, T::Error> {
        match found {
            Some(found) => Ok(number < found),
            None => Ok(!self.is_to_be_done(fs, number)?),
        }
    }

    /// Remembers the number of what was made, or that it was not.
    fn note_made<T: Target<Data = D, Setting = S>>(
        &mut self,
        fs: &T,
        number: usize,
        found: Option<usize>,
        fate: &Fate<T::Error>,
    ) -> Result<(), T::Error> {
        if !self.entries[number].action.makes() {
            return Ok(());
        }
        match fate {
            Fate::Repeated(Outcome::Made(made)) => self.entries[number].made = Some(*made),
            // Without an exact place in the log, what stands under the name is taken for what was
            // made.
            Fate::Found if found.is_none() => {
                if let Some(there) = self.disk_of_first(fs, number)? {
                    self.entries[number].made = Some(there);
                }
            }
            Fate::Found => {}
            _ => self.entries[number].made = None,
        }
        Ok(())
    }

    /// Repeats a change of content, unless the inode's number went to another one among the entries
    /// that are on the disk.
    fn redo_content<T: Target<Data = D, Setting = S>>(
        &mut self,
        host: &impl Host<Target = T>,
        (fs, on): (&T, [u64; 2]),
        number: usize,
        found: usize,
    ) -> Result<Fate<T::Error>, T::Error> {
        let later = self.entries.get(number + 1..found).unwrap_or_default();
        if later.iter().any(|entry| entry.made == Some(on[0])) {
            return Ok(Fate::Found);
        }
        match self.try_again(host, (fs, on), number)? {
            // It may have been removed since.
            Fate::Refused(_) if number < found => Ok(Fate::Found),
            fate => Ok(fate),
        }
    }

    /// Whether the names of an entry lead to what they led to before it.
    fn is_to_be_done<T: Target<Data = D, Setting = S>>(
        &self,
        fs: &T,
        number: usize,
    ) -> Result<bool, T::Error> {
        for effect in self.effects(number) {
            let disk = self.there(fs, effect.directory, effect.name)?;
            let is_before = effect.before.fits(disk);
            // What was to be replaced may be gone already.
            let is_gone = disk.is_none() && matches!(effect.after, Slot::Number(..));
            if !is_before && !is_gone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn disk_of_first<T: Target<Data = D, Setting = S>>(
        &self,
        fs: &T,
        number: usize,
    ) -> Result<Option<u64>, T::Error> {
        match self.effects(number).next() {
            Some(effect) => look(fs, effect.directory, effect.name),
            None => Ok(None),
        }
    }

    /// Learns the number of what entry `number` has made, if it has, which is the last one on the
    /// disk.
    fn note_found<T: Target<Data = D, Setting = S>>(
        &mut self,
        fs: &T,
        number: usize,
    ) -> Result<(), T::Error> {
        if self.entries[number].action.makes() {
            self.entries[number].made = self.disk_of_first(fs, number)?;
        }
        Ok(())
    }

    /// What came of the change that was under way and is on the disk.
    fn outcome_of_found(&self) -> Outcome {
        let made = self.entries.last().and_then(|entry| entry.made);
        made.map_or(Outcome::Done, Outcome::Made)
    }
}

/// What a name leads to on the disk: nothing, too, if its directory is not there.
fn look<T: Target>(fs: &T, directory: u64, name: &T::Data) -> Result<Option<u64>, T::Error> {
    answer::<T, _>(fs.look_up(directory, name))
}

/// Nothing, if the file system has no answer.
fn answer<T: Target, R>(result: Result<R, T::Error>) -> Result<Option<R>, T::Error> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_final::<T>(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Makes a change; answers of the file system are its fate.
fn perform<T: Target>(
    fs: &T,
    action: &Action<T::Data, T::Setting>,
    on: [u64; 2],
) -> Result<Fate<T::Error>, T::Error> {
    match fs.perform(action, on) {
        Ok(outcome) => Ok(Fate::Repeated(outcome)),
        Err(error) if is_final::<T>(&error) => Err(error),
        Err(error) => Ok(Fate::Refused(error)),
    }
}

/// Whether an error ends the recovery for now.
fn is_final<T: Target>(error: &T::Error) -> bool {
    is_dead::<T>(error) || T::severity(error) == Severity::Trouble
}
