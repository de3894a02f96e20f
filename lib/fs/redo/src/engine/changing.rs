//! A change, from what it starts from to what came of it: exactly once in effect, over however many
//! instances that takes.

use super::{ATTEMPTS, Change, Engine, Health, Host, MOST_ENTRIES};
use crate::action::{Action, Fault, Kind, Outcome, Severity, Target, is_dead};
use crate::front::Seen;
use crate::order::Order;

impl<T: Target> Engine<T> {
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
    pub(super) fn change_from<H: Host<Target = T>>(
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
    pub(super) fn see<H: Host<Target = T>>(
        &mut self,
        host: &H,
        order: &Order<T>,
    ) -> Result<Seen, T::Error> {
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
        host.front(|front| order.begin(front, &action, &about));
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
}
