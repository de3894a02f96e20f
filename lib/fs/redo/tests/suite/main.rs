//! Crashes of a file system under random work, against a model that never crashes.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod crashes;
#[path = "../../../ext2/tests/suite/few.rs"]
mod few;
mod holds;
mod intents;
mod looking;
mod model;
mod noted;
mod real;
mod sequences;
mod slots;
mod threads;
