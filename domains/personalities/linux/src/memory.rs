//! A program's memory, and files in it. Copies are `lib/unix/linux`'s.

use crate::errno::Error;
use crate::parts::Mm;
use crate::shared::Source;
pub use crate::space::Space;
use alloc::sync::Arc;
use domain_rt::user::UserRegisters;
use guests::space::{error, protection};
use interfaces::{Handle, UserThread};
pub use linux::memory::{
    PAGE, read, read_text, read_text_up_to, read_texts, read_word, read_words, write, write_words,
};

/// A program in memory.
pub struct Program {
    pub mm: Arc<Mm>,
    pub thread: Handle<dyn UserThread>,
    pub registers: UserRegisters,
    /// The number of the system call that it made last.
    pub asked: u64,
}

/// Maps pages of a file, or of what is shared, from its page `page` on; behind its end there is
/// SIGBUS.
///
/// # Errors
/// Linux's.
pub fn map_pages(
    space: &Space,
    (at, bytes): (u64, u64),
    (source, page): (&Source, u64),
    bits: u64,
) -> Result<(), Error> {
    if let Some(file) = source.file() {
        // The first pages are soon asked for. Where the file has none there is nothing to bring.
        file.bring_around(page)?;
    }
    let view = source.view()?;
    space.note(at, bytes, page, source)?;
    let (count, protection) = (bytes / PAGE, protection(bits));
    let mapped = match source.is_shared() {
        true => space.handle().map(at, view, page, count, protection),
        false => space
            .handle()
            .map_private(at, view, page, count, protection),
    };
    mapped.map_err(|why| match space.forget(at, bytes) {
        Ok(()) => error(why),
        Err(why) => why,
    })
}
