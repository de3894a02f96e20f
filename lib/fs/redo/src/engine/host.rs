//! What an engine asks of who has it: the shared state, instances, and a log for the next shadow.

use super::{Change, Lane};
use crate::action::{Outcome, Target};
use crate::front::Front;
use crate::log::Basis;
use crate::recover::Report;

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
    /// [`Engine::restore`](super::Engine::restore) or [`Engine::resume`](super::Engine::resume).
    /// `record` is [`Order::record`](crate::order::Order::record).
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
    /// The change before which there were so many is about to be made again; if this shadow ends
    /// before it says another one, or none, so many shadows will have died of it.
    fn again(&self, change: Option<(u64, u8)>) {
        let _ = change;
    }
    /// A change that was acknowledged is lost; whether that is so since too many died of it. The
    /// first few are told.
    fn lost(&self, change: &Change<Self::Target>, is_deadly: bool) {
        let _ = (change, is_deadly);
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
