//! Crashes of a file system under random work, against a model that never crashes.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod crashes;
mod ext3;
mod model;
