//! Locks and the objects that threads wait on.
//!
//! | type | waits by | usable in interrupt context |
//! | --- | --- | --- |
//! | [`SpinLock`], [`RwLock`] | spinning, interrupts off | yes |
//! | [`Once`] | spinning | yes |
//! | [`Mutex`], [`WaitQueue`] | sleeping | no: they ask for a [`Sleepable`] token, which interrupt context cannot get |
//!
//! Rules: spin locks are released in the reverse order of taking (each guard restores the
//! interrupt flag that it found); nothing waits for another thread while it holds one. Guards are
//! not `Send`. No spin lock is held by anyone while the world is stopped (see `smp::stop_world`),
//! because every processor parks with interrupts enabled or from a place that holds none.

mod mutex;
mod once;
mod relax;
mod rwlock;
mod spin;
mod wait_queue;

pub use mutex::{Mutex, MutexGuard, Sleepable};
pub use once::Once;
pub(crate) use relax::init_relax;
pub use relax::relax;
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use spin::{IrqOff, SpinGuard, SpinLock};
pub use wait_queue::WaitQueue;
