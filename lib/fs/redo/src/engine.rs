//! All changes, one at a time, over the lives of the file system.
//!
//! Who has the engine is alone with it, also while a call to the file system is under way. What was
//! acknowledged is in the log until the disk has it, so that an instance that lacks it can be given
//! it again.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `host` | what the engine asks of who has it |
//! | `changing` | a change, exactly once |
//! | `writing` | content that is appended or lent |
//! | `removing` | last names of what may be held |
//! | `hiding` | the names that stand for those |
//! | `settling` | instances that have died, and shadows |
//! | `committing` | what need not be remembered any more |

mod changing;
mod committing;
mod hiding;
mod host;
mod removing;
mod settling;
mod writing;

use crate::action::{Action, Fault, Target};
use crate::log::Log;
pub use committing::Commit;
pub use host::Host;
pub use settling::Resumed;

/// How many instances are tried for one change or one recovery.
const ATTEMPTS: u32 = 8;

/// Most changes in the log.
const MOST_ENTRIES: usize = 16_384;

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
    /// The directory for hidden names, once it is known.
    unnamed: Option<u64>,
    /// Through which the next change is asked for that decides what comes of an operation.
    lane: Option<Lane>,
    /// The inode that the host can do without.
    own: Option<u64>,
    /// It is gone.
    is_parted: bool,
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
            unnamed: None,
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

    /// Bytes that would be done again after a crash.
    pub fn weight(&self) -> usize {
        self.log.weight()
    }
}

/// The file system's number for a client's.
fn real<H: Host>(host: &H, inode: u64) -> Result<u64, Error<H>> {
    host.front(|front| front.ids.real(inode))
        .ok_or_else(|| H::Target::error(Fault::Missing))
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
