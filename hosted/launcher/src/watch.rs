//! Somebody who looks into this process from outside: `cargo xtask trace --hosted` and `profile
//! --hosted` read the core's rings through `/proc`.
//!
//! A file tells where the core is, in its first line, and in the second that all is over. Then the
//! process waits until the reader has removed the file, for a while: what is in its memory goes
//! with it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Calls, deaths and starts.
    Calls,
    /// Stacks at ticks.
    Stacks,
}

/// How long the process waits for its reader.
const PATIENCE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(2);

static WATCH: OnceLock<(What, PathBuf)> = OnceLock::new();

/// Says that somebody looks in, who reads `file`. The first time counts.
pub fn begin(what: What, file: PathBuf) {
    let _ = WATCH.set((what, file));
}

/// The core is at `start`, and has not run.
pub(crate) fn placed(start: usize) -> Result<()> {
    match WATCH.get() {
        None => Ok(()),
        Some((_, file)) => fs::write(file, format!("{start:x}\n"))
            .with_context(|| format!("cannot write {}", file.display())),
    }
}

/// See [`hosted_core::Host::watch`].
pub(crate) extern "C" fn wanted() -> u32 {
    match WATCH.get() {
        None => hosted_core::UNWATCHED,
        Some((What::Calls, _)) => hosted_core::TRACED,
        Some((What::Stacks, _)) => hosted_core::PROFILED,
    }
}

/// Nothing more is going to happen: waits for the reader.
pub fn ends() {
    let Some((_, file)) = WATCH.get() else {
        return;
    };
    // A reader that is gone may have taken the file along.
    let Ok(mut open) = OpenOptions::new().append(true).open(file) else {
        return;
    };
    let _ = open.write_all(b"end\n");
    let end = Instant::now() + PATIENCE;
    while file.exists() && Instant::now() < end {
        thread::sleep(INTERVAL);
    }
}
