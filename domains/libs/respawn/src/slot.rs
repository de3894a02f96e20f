//! The present instance, for who has a lock around it anyway.

use interfaces::{Failure, Handle, Interface, Respawn};

use crate::fetch::{Live, fetch};
use crate::{exhausted, until_answered};

/// The way to a domain that may be restarted, for one thread at a time.
pub struct Slot<I: ?Sized + Interface> {
    respawn: Handle<dyn Respawn>,
    /// What it is called in the log.
    what: &'static str,
    current: Option<Live<I>>,
    /// The number of the last instance that failed; 0: none has.
    last: u32,
}

impl<I: ?Sized + Interface> Slot<I> {
    /// A way with no instance yet. `what` is what the log calls the domain.
    pub fn new(respawn: Handle<dyn Respawn>, what: &'static str) -> Self {
        Slot {
            respawn,
            what,
            current: None,
            last: 0,
        }
    }

    /// What the instance offers that serves now. If there is none, another one is asked for, which
    /// has to answer `greet`.
    ///
    /// # Errors
    /// [`Failure::gone`] if there is none to be had; the log says why. Or that of the greeting, or
    /// of a call to who starts it.
    #[inline]
    pub fn service<E: Failure>(
        &mut self,
        greet: impl FnMut(&Handle<I>) -> Result<(), E>,
    ) -> Result<&Handle<I>, E> {
        if self.current.is_none() {
            self.current = Some(self.next(greet)?);
        }
        let current = self.current.as_ref();
        current.map(|live| &live.service).ok_or_else(E::gone)
    }

    #[cold]
    fn next<E: Failure>(
        &self,
        greet: impl FnMut(&Handle<I>) -> Result<(), E>,
    ) -> Result<Live<I>, E> {
        let found = fetch(&self.respawn, self.last, greet);
        found.map_err(|why| why.tell(self.what, E::gone()))
    }

    /// Gives the instance up that serves now, because it failed.
    pub fn give_up(&mut self) {
        if let Some(old) = self.current.take() {
            self.last = old.id;
        }
    }

    /// Makes a call that may be made twice, until an instance lives through it.
    ///
    /// # Errors
    /// Those of the call; as [`service`](Self::service).
    pub fn call<T, E: Failure>(
        &mut self,
        mut greet: impl FnMut(&Handle<I>) -> Result<(), E>,
        mut operation: impl FnMut(&Handle<I>) -> Result<T, E>,
    ) -> Result<T, E> {
        let answer = until_answered(|| match self.service(&mut greet).and_then(&mut operation) {
            Err(error) if error.is_gone() && self.current.is_some() => {
                self.give_up();
                None
            }
            answer => Some(answer),
        });
        answer.unwrap_or_else(|| Err(exhausted(self.what)))
    }
}
