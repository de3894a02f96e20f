//! Who runs next, where, and until when.
//!
//! Processor time is divided in two steps: between *groups* by their weights, then between the
//! threads of a group by theirs. Each group has a virtual time, which grows by what its threads
//! have used, divided by its weight, on whatever processor they did; the ready group whose virtual
//! time is least runs. Each thread has one within its group, in the same way. Who wakes up is put
//! beside the present least, so that sleeping is no loss; but what was not used is not kept either.
//! (This is start-time fair queueing, a relative of EEVDF.) Above the fair class are first-in
//! first-out, round robin and earliest deadline first.
//!
//! Every processor has a queue of its own. Since virtual times are the system's and not a queue's,
//! a processor sees from one word of each of the others whether somebody waits there with more
//! right than anybody has here, and takes him over. That balances load, groups and threads alike.
//!
//! The crate has no clock, no processors and no locks: it is given them ([`Moment`], [`Guarded`]),
//! so it is tested on the host with times and processors that the tests make up. Nothing is
//! allocated but in [`Policy::admit`]. Work is logarithmic in the number of threads and groups,
//! apart from what is said at [`Queue`].

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod balance;
mod group;
mod heap;
mod nodes;
mod place;
mod policy;
mod processor;
mod queue;
mod task;

pub use group::Share;
pub use policy::{Guarded, Policy};
pub use queue::Queue;
pub use task::{Attributes, Class, Left, Moment, Picked, Placement, Task, WORDS, Why};

/// Most processors.
pub const MOST_PROCESSORS: usize = 8;
/// Most groups at a time.
pub const MOST_GROUPS: usize = 1024;
/// Weight of a group or thread for which nothing else is said.
pub const NORMAL_WEIGHT: u32 = 1024;
/// Longest time in nanoseconds that a thread runs while others wait.
pub const SLICE: u64 = 2_000_000;
/// The same where a group has so many threads that all would have their turn too seldom.
pub const SHORTEST_SLICE: u64 = 750_000;
/// In this time all threads of a group shall have their turn, if slices of that length allow it.
const ROUND: u64 = 12_000_000;
/// Nanoseconds over which limits of groups hold.
pub const PERIOD: u64 = 100_000_000;
/// No moment.
pub const NEVER: u64 = u64::MAX;

/// How far behind the others, in virtual nanoseconds, a group or thread is put that wakes up.
const BONUS: u64 = 3_000_000;
/// How much more right than the running thread one that wakes up must have to run at once.
const GRAIN: u64 = 500_000;
/// The same within a group.
const SIBLING_GRAIN: u64 = 50_000;
/// Who waited for less was not asleep: a sibling has served it, or has emptied or filled what they
/// share. It lets that one go on, if it has not run for as long yet. So two that hand work to each
/// other do it in batches, and not by two switches for each piece.
const SERVED: u64 = 200_000;
/// How much more right a thread must have that waits at another processor to be fetched.
const MARGIN: u64 = 2_000_000;
/// Longest time for which a thread is left where it is because it works in a service.
const GRACE: u64 = 1_000_000;
/// Slices in a row for which a thread goes before its siblings because it works in a service.
const PATIENCE: u64 = 24;
/// How often it is asked in that time whether it has left.
const POLL: u64 = 100_000;
/// Least and greatest weight of a group.
const GROUP_WEIGHTS: (u32, u32) = (64, 65_536);
/// Least and greatest weight of a thread in its group.
const THREAD_WEIGHTS: (u32, u32) = (16, 90_000);
/// Most that a group may be behind those who wait beside it. More than a slice of the least weight
/// adds, which is rightful.
const GROUP_LAG: u64 = 2 * SLICE * (NORMAL_WEIGHT / GROUP_WEIGHTS.0) as u64;
/// The same of a thread in its group.
const THREAD_LAG: u64 = 2 * SLICE * (NORMAL_WEIGHT / THREAD_WEIGHTS.0) as u64;
/// Of each period, what the first-in first-out and round robin classes may take while others wait.
const REAL_TIME: u64 = PERIOD / 10 * 9;
/// Of a processor's time in millionths, what deadlines may be promised.
const PROMISED: u32 = 800_000;

/// Shortest and longest period of a deadline.
const PERIODS: (u64, u64) = (1_000_000, 1_000_000_000_000);

/// Virtual nanoseconds that `used` ones add at this weight.
fn scaled(used: u64, weight: u32) -> u64 {
    used.saturating_mul(u64::from(NORMAL_WEIGHT)) / u64::from(weight.max(1))
}
