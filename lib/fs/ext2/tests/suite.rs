//! The file system against images that the host's tools make and check. Needs e2fsprogs.

#[path = "suite/absent.rs"]
mod absent;
#[path = "suite/content.rs"]
mod content;
#[path = "suite/datasync.rs"]
mod datasync;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/few.rs"]
mod few;
#[path = "suite/group.rs"]
mod group;
#[path = "suite/hashed.rs"]
mod hashed;
#[path = "suite/holes.rs"]
mod holes;
#[path = "suite/host.rs"]
mod host;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/journal.rs"]
mod journal;
#[path = "suite/model.rs"]
mod model;
#[path = "suite/power.rs"]
mod power;
#[path = "suite/reading.rs"]
mod reading;
#[path = "suite/renaming.rs"]
mod renaming;
#[path = "suite/reuse.rs"]
mod reuse;
#[path = "suite/sequences.rs"]
mod sequences;
#[path = "suite/trust.rs"]
mod trust;
#[path = "suite/unjournaled.rs"]
mod unjournaled;
#[path = "suite/unnamed.rs"]
mod unnamed;
#[path = "suite/writing.rs"]
mod writing;
