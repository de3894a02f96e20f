//! What the system's programs compute, without the system: each module is the heart of one or two
//! programs and knows nothing of files or processes. What the programs print agrees with their Unix
//! namesakes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod clock;
pub mod count;
pub mod date;
pub mod decimal;
pub mod diff;
pub mod directory;
pub mod fields;
pub mod hexdump;
pub mod listing;
pub mod mode;
pub mod mounts;
pub mod options;
pub mod order;
pub mod path;
pub mod pattern;
pub mod printf;
pub mod search;
pub mod sha256;
pub mod table;
pub mod tail;
pub mod translate;
pub mod words;
