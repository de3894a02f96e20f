//! What a file system acknowledged and may not have on its disk yet, and how it gets it back after
//! it crashed: the logic of the `vfs` shadow, without locks, handles or devices.
//!
//! # The idea
//! All changes go through one [`Engine`]. It keeps a [`Log`](log::Log) of every change since the
//! last `sync` that succeeded. When the file system dies, its next instance has on its disk what
//! that `sync` left, with the first `k` changes of the log on top: `k` is anything from none to
//! all, the change that was under way included, because file systems write back when they like.
//! [`recover`] finds a `k` and does the rest again.
//!
//! # Which k
//! For each name that the log touches, the log tells what it led to before and after each change,
//! as inode numbers. The new instance is asked for each of these names once. The smallest `k` after
//! which the log's answers are the disk's is taken. It may be smaller than the true one (a file was
//! made and removed: the names are as before), which is good enough:
//! - the changes of names from `k` on start from names that are like those they once started from,
//!   so they go as they went, and end as they ended;
//! - an inode that is not made by the log keeps its number as long as it lives. If it is among
//!   those that are taken away from `k` on, it is taken away again, also when its number was given
//!   to another one meanwhile. What takes its place was made by the log and is made again, content
//!   and all;
//! - changes of content (`write`, `truncate`, mode) name their place, so doing them twice, or over
//!   a later state, ends the same if all of them are done again in their order. So all are, also
//!   those before `k`.
//!
//! A crash in the middle of all this adds little: what was done again is what the log says now, but
//! for one change, which may or may not have been done when the instance died, and whose inode then
//! has a number that nobody has heard.
//!
//! If no `k` fits (a file system that wrote half of a change: one without a journal can), each
//! change of names is done if the names that it touches are as they were before it, and is taken
//! for done if they are not.
//!
//! A change that four instances died of, each while it made it, is not made again: who asked gets
//! an error. One that was acknowledged, so that nobody can be told, has one try more, and is
//! then counted as refused. Where the names on the disk are as after it, it was made all the same.
//! Of shadows it is the third death in both cases: [`record`].
//!
//! # Numbers
//! A file that is made again may get another inode number. Clients go on with the old one:
//! [`ids::Ids`].
//!
//! # Open files without a name
//! A file system forgets, when it is mounted, files that have no name. So a file that is held when
//! its last name is removed gets a hidden name instead: a number, in a directory that no name leads
//! to ([`Target::unnamed`]). That is removed when the file is released, or at the next start.
//! A directory that is removed while it is held is lost with the instance: its number then leads to
//! nothing, as a removed directory has nothing anyway.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod action;
pub mod engine;
pub mod front;
pub mod ids;
pub mod intent;
pub mod log;
pub mod order;
pub mod record;
pub mod recover;
pub mod seen;

pub use action::{Action, Facts, Fault, Kind, Node, Outcome, Severity, Target};
pub use engine::{Change, Commit, Engine, Host, Lane, Renaming, Resumed};
pub use front::Front;
pub use log::Basis;
pub use order::Order;
pub use recover::Report;

/// The number that a hidden name is. `None`: this is no such name.
pub fn hidden_number(name: &[u8]) -> Option<u64> {
    core::str::from_utf8(name).ok()?.parse().ok()
}
