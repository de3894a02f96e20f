//! Whose an object on a shared heap is, for those who look for somebody's objects.
//!
//! Owner cells hold plain numbers, since a move must be one store. To *look for* objects takes more
//! than a number: a search for number 0 would find free slots, and one for an object that is not
//! whole would show its content to whoever asked. So a search takes an [`Owner`], which only a
//! domain's control block gives.

use abi::shared::{KERNEL_OWNER, UNFINISHED_OWNER};

/// An owner whose objects can be looked for: an instance that lives or has lived, or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// The kernel, for what it has got from domains and will give to others.
    pub const KERNEL: Owner = Owner(KERNEL_OWNER);
    /// Nobody: the owner of what is not whole. Never looked for.
    pub(crate) const UNFINISHED: Owner = Owner(UNFINISHED_OWNER);

    /// The owner with this number.
    ///
    /// # Safety
    /// It is the number of an instance that lives or has lived, or one that no instance has ever
    /// had and that is neither [`NO_OWNER`](abi::shared::NO_OWNER) nor [`UNFINISHED_OWNER`].
    pub const unsafe fn new(number: u32) -> Self {
        Owner(number)
    }

    /// What its objects' cells hold.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}
