//! A program's memory, and files in it. Copies are `lib/unix/linux`'s.

use crate::disk::Mapped;
use crate::errno::Error;
use crate::parts::Mm;
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

/// Maps pages of a file from its page `page` on; behind the end of the file there is SIGBUS.
pub fn map_file(
    space: &Space,
    (at, bytes): (u64, u64),
    (file, page): (&Mapped, u64),
    (bits, is_shared): (u64, bool),
) -> Result<(), Error> {
    // The first pages are soon asked for. Where the file has none there is nothing to bring.
    file.bring_around(page)?;
    let view = file.view()?;
    space.note(at, bytes, page, file)?;
    let (count, protection) = (bytes / PAGE, protection(bits));
    let mapped = match is_shared {
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
