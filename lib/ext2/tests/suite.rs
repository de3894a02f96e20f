//! The file system against images that the host's tools make and check. Needs e2fsprogs.

#[path = "suite/host.rs"]
mod host;
#[path = "suite/reading.rs"]
mod reading;
