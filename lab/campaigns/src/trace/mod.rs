//! A time line of what the system does: who calls whom, which thread of which domain runs where,
//! interrupts, waits, deaths and restarts.
//!
//! The kernel writes events into a ring in its memory while calls are traced (`abi::events`). QEMU
//! keeps that memory in a file, from which a [`Recorder`] takes the events as they come. A
//! [`Timeline`] pairs them and gives them names; [`perfetto`], [`speedscope`] and [`picture`] write
//! it down, and [`check`] reads what they wrote, strictly.

mod builder;
pub mod check;
mod event;
mod intervals;
pub mod listing;
pub(crate) mod memory;
mod names;
pub mod perfetto;
pub mod picture;
pub mod speedscope;
#[cfg(test)]
mod tests;
mod timeline;

pub use event::{Event, Gap, Recording};
pub use memory::{Process, Recorder};
pub use timeline::{Call, Mark, MarkKind, Outcome, Timeline};

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// The shell line that has `line` traced.
pub fn traced(line: &str) -> String {
    format!("calls traced; {line}")
}

/// The files that [`write`] makes.
pub const FILES: [&str; 3] = ["trace.json", "trace.speedscope.json", "trace.svg"];

/// What writes a time line, with its title, in one of the formats.
type Writer = fn(&Timeline, &str, &mut dyn Write) -> io::Result<()>;

/// Those of [`FILES`].
const WRITERS: [Writer; 3] = [perfetto::write, speedscope::write, picture::write];

/// Writes `timeline`, which `title` describes, as [`FILES`] into `folder`.
///
/// # Errors
/// If they cannot be written.
pub fn write(timeline: &Timeline, title: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, write) in FILES.into_iter().zip(WRITERS) {
        let file = folder.join(name);
        let written = File::create(&file).map(BufWriter::new).and_then(|mut out| {
            write(timeline, title, &mut out)?;
            out.flush()
        });
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
