//! Last names, taken or given to something else: what is held then stays for who holds it.

use super::{Engine, Health, Host, Renaming, real};
use crate::action::{Action, Fault, Kind, Target};
use crate::front::{Front, Holder};
use crate::order::Order;

impl<T: Target> Engine<T> {
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
        let lane = self.lane.take();
        let unnamed = self.unnamed(host)?;
        self.change_now(host, Action::Link { name }, [unnamed, replaced])?;
        self.lane = lane;
        let is_held = host.front(|front| front.set_orphan(replaced, Some(number)));
        let result = self.change(host, order);
        if result.is_err() {
            host.front(|front| front.set_orphan(replaced, None));
            self.remove_hidden(host, number)?;
        } else if !is_held {
            self.release_hidden(host, replaced, number)?;
        }
        result.map(|_| ())
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
}
