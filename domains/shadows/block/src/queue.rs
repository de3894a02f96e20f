//! A block queue as an object that its submitter calls.

use alloc::sync::Arc;

use domain_rt::sync::MutexGuard;
use interfaces::{
    BlockCompletion, BlockQueue, BlockRequest, Handle, QueueError, QueueLimits, RVec, VmoView,
};

use crate::Way;
use crate::front::{BATCH, Front, Slot};
use crate::volume::{State, Volume};

/// The front with a number. It is of no use when another one was opened.
pub struct Queue {
    pub way: Arc<Way>,
    pub volume: Arc<Volume>,
    pub id: u64,
}

impl Queue {
    /// Does `work` with the front, if it is the one that is open. If that finds the driver lost,
    /// which is the second that it says, the keeper looks for the next one. If something could not
    /// be handed on, it tries again.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Front) -> (Result<T, QueueError>, bool),
    ) -> Result<T, QueueError> {
        let mut state: MutexGuard<'_, State> = self.volume.state.lock();
        let open = |front: &&mut Front| front.id == self.id && !front.is_ending;
        let front = state.front.as_mut().filter(open);
        let front = front.ok_or(QueueError::Fenced)?;
        if front.is_dead {
            return Err(QueueError::Gone);
        }
        let (answer, is_lost) = work(front);
        let lost = if is_lost { front.lose() } else { None };
        let (is_given, is_stuck) = (front.has_given(), front.is_stuck());
        let is_due = is_lost || is_stuck || is_given && !state.is_watched;
        state.is_watched |= is_given;
        drop(state);
        drop(lost);
        if is_due {
            self.volume.ring();
        }
        answer
    }
}

impl BlockQueue for Queue {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        self.with(|front| (Ok(front.limits), false))
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        self.with(|front| match front.slots.get(slot as usize) {
            Some(None) => match front.register_back(slot, &view) {
                Ok(is_lost) => {
                    front.slots[slot as usize] = Some(Slot { view, uses: 0 });
                    (Ok(()), is_lost)
                }
                Err(error) => (Err(error), false),
            },
            _ => (Err(QueueError::BadSlot), false),
        })
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        let emptied = self.with(|front| match front.slots.get_mut(slot as usize) {
            Some(Some(used)) if used.uses > 0 => (Err(QueueError::InUse), false),
            Some(Some(_)) => match front.unregister_back(slot) {
                Ok(is_lost) => (Ok(front.slots[slot as usize].take()), is_lost),
                Err(error) => (Err(error), false),
            },
            _ => (Err(QueueError::BadSlot), false),
        });
        emptied.map(drop)
    }

    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let batch = requests.get(..count as usize);
        let batch = batch.filter(|batch| (1..=BATCH).contains(&batch.len()));
        let batch = batch.ok_or(QueueError::BadCount)?;
        let pass = self.way.passage.try_enter();
        self.with(|front| {
            let (taken, lives) = front.submit(batch, pass.is_some());
            (Ok(taken), !lives)
        })
    }

    fn submit_group(
        &self,
        tag: u64,
        requests: &RVec<BlockRequest>,
        count: u32,
    ) -> Result<(), QueueError> {
        let group = requests.get(..count as usize);
        let group = group.ok_or(QueueError::BadCount)?;
        let pass = self.way.passage.try_enter();
        self.with(|front| match front.enter_group(tag, group) {
            Ok(()) => (Ok(()), pass.is_some() && !front.pump()),
            Err(error) => (Err(error), false),
        })
    }

    fn completions(
        &self,
        mut room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        let pass = self.way.passage.try_enter();
        let count = self.with(|front| {
            let gathered = match pass {
                None => Ok((0, true)),
                Some(_) => front.gather(&mut room),
            };
            let (count, lives) = match gathered {
                Ok(gathered) => gathered,
                Err(error) => return (Err(error), false),
            };
            let lives = lives && (pass.is_none() || front.pump());
            let rest = room.get_mut(count as usize..).unwrap_or_default();
            (Ok(count + front.take(rest)), !lives)
        })?;
        Ok((room, count))
    }
}

impl Drop for Queue {
    /// Nobody submits any more. What the driver has, it ends.
    fn drop(&mut self) {
        self.volume.close(self.id);
    }
}
