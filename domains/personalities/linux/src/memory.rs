//! A program's memory, and files in it. Copies are `lib/unix/linux`'s.

use crate::parts::Mm;
pub use crate::space::Space;
use alloc::sync::Arc;
use domain_rt::user::UserRegisters;
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
