//! What is kept, and which instance of `init` serves.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{
    AnyHandle, Attachment, Errno, ExitStatus, Gate, Handle, Household, Kept, RpcError, RpcResult,
    Serving, Text,
};

/// How long the next instance of `init` is waited for, in nanoseconds.
const PATIENCE: u64 = 20_000_000_000;
/// So many domains, notes and gates are kept; no manifest has as many.
const MOST: usize = 512;

type Offers = [Option<Arc<AnyHandle>>; 4];

/// A gate in front of a domain.
struct Attached {
    domain: Text<32>,
    holder: Text<32>,
    gate: Arc<Handle<dyn Gate>>,
}

/// The program that the personality runs for `init`.
#[derive(Default)]
enum Line {
    /// There was none, or it failed and somebody was told.
    #[default]
    None,
    UnderWay,
    Ended(Result<ExitStatus, Errno>),
    /// It ended, and somebody was told, who may have died since.
    Told(ExitStatus),
}

#[derive(Default)]
struct State {
    /// How many instances of `init` have served.
    life: u64,
    household: Option<Arc<Handle<dyn Household>>>,
    domains: Vec<(Text<32>, Serving, Offers)>,
    notes: Vec<(Text<64>, u64)>,
    gates: Vec<Attached>,
    line: Line,
}

/// All that is kept. Handles are made and dropped outside of the lock.
#[derive(Default)]
pub struct House {
    state: Mutex<State>,
    /// Another instance of `init` serves, or the program has ended.
    changed: Condvar,
}

impl House {
    /// From now on this instance serves.
    pub fn serve(&self, household: Handle<dyn Household>) {
        let mut state = self.state.lock();
        state.life += 1;
        let before = state.household.replace(Arc::new(household));
        drop(state);
        self.changed.notify_all();
        drop(before);
    }

    /// The instance that serves, if it is a later one than number `beyond`, and its number; waits
    /// for it.
    ///
    /// # Errors
    /// `Interrupted` if the caller is ended meanwhile, `DomainCrashed` if there is none for long.
    pub fn serving(&self, beyond: u64) -> RpcResult<(u64, Arc<Handle<dyn Household>>)> {
        let deadline = time::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            if let Some(household) = state.household.as_ref().filter(|_| state.life > beyond) {
                return Ok((state.life, household.clone()));
            }
            let wait;
            (state, wait) = self.changed.wait_until(state, deadline);
            match wait {
                Wait::Woken => {}
                Wait::Interrupted => return Err(RpcError::Interrupted),
                Wait::TimedOut => return Err(RpcError::DomainCrashed),
            }
        }
    }

    /// Keeps what there is of a domain.
    pub fn keep(&self, name: Text<32>, kept: Kept) -> RpcResult<()> {
        let offers = kept.offers.map(|offer| offer.map(Arc::new));
        let row = (name, kept.serving, offers);
        let mut state = self.state.lock();
        let before = match state.domains.iter_mut().find(|(other, ..)| *other == name) {
            Some(place) => Some(core::mem::replace(place, row)),
            None => {
                push(&mut state.domains, row)?;
                None
            }
        };
        drop(state);
        drop(before);
        Ok(())
    }

    /// What is kept of a domain.
    pub fn kept(&self, name: Text<32>) -> RpcResult<Option<Kept>> {
        let state = self.state.lock();
        let found = state.domains.iter().find(|(other, ..)| *other == name);
        let Some((serving, offers)) = found.map(|(_, serving, offers)| (*serving, offers.clone()))
        else {
            return Ok(None);
        };
        drop(state);
        let mut copies = [const { None }; 4];
        for (copy, offer) in copies.iter_mut().zip(&offers) {
            *copy = offer.as_ref().map(|offer| offer.duplicate()).transpose()?;
        }
        Ok(Some(Kept {
            serving,
            offers: copies,
        }))
    }

    /// Keeps a number.
    pub fn note(&self, key: Text<64>, value: u64) -> RpcResult<()> {
        let mut state = self.state.lock();
        match state.notes.iter_mut().find(|(other, _)| *other == key) {
            Some((_, place)) => *place = value,
            None => push(&mut state.notes, (key, value))?,
        }
        Ok(())
    }

    /// Note number `index`.
    pub fn noted(&self, index: u32) -> Option<(Text<64>, u64)> {
        self.state.lock().notes.get(index as usize).copied()
    }

    /// The personality begins to run a program.
    ///
    /// # Errors
    /// `Busy` while it still runs the one before.
    pub fn begin(&self) -> RpcResult<()> {
        let mut state = self.state.lock();
        if matches!(state.line, Line::UnderWay) {
            return Err(RpcError::Busy);
        }
        state.line = Line::UnderWay;
        Ok(())
    }

    /// The program has ended.
    pub fn end(&self, result: Result<ExitStatus, Errno>) {
        self.state.lock().line = Line::Ended(result);
        self.changed.notify_all();
    }

    /// Waits until no program is under way; how the last one ended, if there was one.
    ///
    /// # Errors
    /// `Interrupted` if the caller is ended meanwhile.
    pub fn result(&self) -> RpcResult<Option<Result<ExitStatus, Errno>>> {
        let mut state = self.state.lock();
        loop {
            match core::mem::take(&mut state.line) {
                Line::None => return Ok(None),
                Line::Told(status) => {
                    state.line = Line::Told(status);
                    return Ok(Some(Ok(status)));
                }
                Line::Ended(result) => {
                    state.line = result
                        .as_ref()
                        .map_or(Line::None, |&status| Line::Told(status));
                    return Ok(Some(result));
                }
                Line::UnderWay => state.line = Line::UnderWay,
            }
            let wait;
            (state, wait) = self.changed.wait(state);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
    }

    /// Remembers a gate, instead of the one that `holder` had before.
    pub fn attach(
        &self,
        domain: Text<32>,
        holder: Text<32>,
        gate: Handle<dyn Gate>,
    ) -> RpcResult<()> {
        let attached = Attached {
            domain,
            holder,
            gate: Arc::new(gate),
        };
        let mut state = self.state.lock();
        let same = |other: &&mut Attached| other.domain == domain && other.holder == holder;
        let before = match state.gates.iter_mut().find(same) {
            Some(place) => Some(core::mem::replace(place, attached)),
            None => {
                push(&mut state.gates, attached)?;
                None
            }
        };
        drop(state);
        drop(before);
        Ok(())
    }

    /// Gate number `index`.
    pub fn gate(&self, index: u32) -> RpcResult<Option<Attachment>> {
        let state = self.state.lock();
        let Some(found) = state.gates.get(index as usize) else {
            return Ok(None);
        };
        let (domain, holder, gate) = (found.domain, found.holder, found.gate.clone());
        drop(state);
        Ok(Some(Attachment {
            domain,
            holder,
            gate: gate.duplicate()?,
        }))
    }
}

/// Puts a row to the others.
fn push<T>(rows: &mut Vec<T>, row: T) -> RpcResult<()> {
    if rows.len() >= MOST {
        return Err(RpcError::Refused);
    }
    rows.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
    rows.push(row);
    Ok(())
}
