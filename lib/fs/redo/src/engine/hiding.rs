//! Hidden names, which held files have in place of their last one.

use alloc::format;

use super::{ATTEMPTS, Engine, Host, real};
use crate::action::{Action, Kind, Target};
use crate::front::{CLIENTS, Front, Holder};

impl<T: Target> Engine<T> {
    /// There are hidden names with numbers up to this one.
    pub fn number_hidden_from(&mut self, last: u64) {
        self.orphans = self.orphans.max(last >> CLIENTS);
    }

    /// Gives a held file a hidden name in place of its last one.
    pub(super) fn hide<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        directory: u64,
        name: T::Data,
    ) -> Result<(), T::Error> {
        let (number, new_name) = self.hidden_name(host, inode)?;
        let unnamed = self.unnamed(host)?;
        self.change_now(
            host,
            Action::Rename { name, new_name },
            [directory, unnamed],
        )?;
        match host.front(|front| front.set_orphan(inode, Some(number))) {
            true => Ok(()),
            // It was released meanwhile.
            false => self.release_hidden(host, inode, number),
        }
    }

    /// A new hidden name for an inode, and its number: that has marks of the clients that hold it
    /// below, so that who comes after this shadow knows whom he has to wait for.
    pub(super) fn hidden_name<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
    ) -> Result<(u64, T::Data), T::Error> {
        self.orphans += 1;
        let holders = host.front(|front| front.holders(inode));
        let number = self.orphans << CLIENTS | holders;
        Ok((number, hidden_name::<T>(number)?))
    }

    /// Removes a hidden name after the last [`release`](crate::Front::release) of what has it; not
    /// if somebody has got hold of that since, by the number that a name led to before it was
    /// hidden: then it stays for him.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn release_hidden<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        number: u64,
    ) -> Result<(), T::Error> {
        for _ in 0..ATTEMPTS {
            // It may have got another name, too. Then this one is not needed.
            if host.front(|front| front.go(inode, None)) == Holder::Nobody
                || !self.is_last_name(host, inode)?
            {
                let removed = self.remove_hidden(host, number);
                host.front(Front::stay);
                return removed;
            }
            if host.front(|front| front.set_orphan(inode, Some(number))) {
                break;
            }
        }
        // It stays, or others take hold and let go all the time: then it goes at the next mount.
        Ok(())
    }

    /// Removes a hidden name of what nobody holds.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(super) fn remove_hidden<H: Host<Target = T>>(
        &mut self,
        host: &H,
        number: u64,
    ) -> Result<(), T::Error> {
        let name = hidden_name::<T>(number)?;
        let unnamed = self.unnamed(host)?;
        self.change_now(host, Action::Unlink { name }, [unnamed; 2])
            .map(|_| ())
    }

    /// The directory for hidden names.
    pub(super) fn unnamed<H: Host<Target = T>>(&mut self, host: &H) -> Result<u64, T::Error> {
        let real = match self.unnamed {
            Some(real) => real,
            None => self.consult(host, T::unnamed)?,
        };
        self.unnamed = Some(real);
        Ok(host.front(|front| front.ids.client(real)))
    }

    /// Whether a file (not a directory) has one name only.
    pub(super) fn is_last_name<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
    ) -> Result<bool, T::Error> {
        let facts = self.consult(host, |fs| fs.facts(real(host, inode)?))?;
        Ok(facts.kind != Kind::Directory && facts.links <= 1)
    }
}

fn hidden_name<T: Target>(number: u64) -> Result<T::Data, T::Error> {
    T::data(format!("{number}").as_bytes())
}
