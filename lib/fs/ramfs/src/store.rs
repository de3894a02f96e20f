//! Where content and journal lie: objects of bytes that outlive whoever works with them.

use core::ops::DerefMut;

/// Bytes of a page, the unit in which an object takes memory.
pub const PAGE: u64 = 4096;

/// Why a store did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no memory for it, or no room for another key.
    NoRoom,
    /// Whoever keeps the objects has begun anew: nothing is under any key.
    Forgotten,
    /// It failed, for a reason that is not the caller's.
    Broken,
}

/// Bytes in pages. A page that was never written to, or was cut off, takes no memory and reads as
/// zeros.
pub trait Object {
    /// Bytes as callers of the file system give and get them.
    type Data: DerefMut<Target = [u8]>;

    /// The first `length` bytes of `room`, filled from byte `offset` on.
    ///
    /// # Errors
    /// `Broken`.
    fn read(&self, offset: u64, room: Self::Data, length: usize) -> Result<Self::Data, Fault>;
    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// `Broken`.
    fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Fault>;
    /// Writes at byte `offset`; how many bytes, fewer than given only if there is no memory. Bytes
    /// get there in their order, so if the caller dies there are the first of them.
    ///
    /// # Errors
    /// `NoRoom` if it is not one byte; `Broken`.
    fn write(&self, offset: u64, data: &Self::Data) -> Result<usize, Fault>;
    /// As [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<usize, Fault>;
    /// Takes away all pages from page `first` on.
    ///
    /// # Errors
    /// `Broken`.
    fn cut(&self, first: u64) -> Result<(), Fault>;
    /// How many pages have memory.
    ///
    /// # Errors
    /// `Broken`.
    fn pages(&self) -> Result<u64, Fault>;
    /// Whether a page has memory.
    ///
    /// # Errors
    /// `Broken`.
    fn has(&self, page: u64) -> Result<bool, Fault>;
    /// The first `length` bytes of `data`, which has as many.
    fn shorten(data: Self::Data, length: usize) -> Self::Data;
}

/// Makes objects, and has somebody keep them under keys: what is under one is found by the next
/// instance of the file system.
pub trait Store {
    /// What it makes.
    type Object: Object;

    /// A new object without content, which nobody keeps yet.
    ///
    /// # Errors
    /// `NoRoom`, `Broken`.
    fn make(&self) -> Result<Self::Object, Fault>;
    /// Has `object` kept under `key`, at once instead of what was there.
    ///
    /// # Errors
    /// `NoRoom`: what was there is still there. `Forgotten`, `Broken`.
    fn put(&self, key: u64, object: &Self::Object) -> Result<(), Fault>;
    /// The object under `key`, on the account of this instance from now on.
    ///
    /// # Errors
    /// `NoRoom`, `Broken`; `Forgotten`.
    fn get(&self, key: u64) -> Result<Option<Self::Object>, Fault>;
    /// The first key from `from` on that has something.
    ///
    /// # Errors
    /// `Broken`, `Forgotten`.
    fn next(&self, from: u64) -> Result<Option<u64>, Fault>;
    /// Has nothing be kept under `key`.
    ///
    /// # Errors
    /// `Broken`, `Forgotten`.
    fn remove(&self, key: u64) -> Result<(), Fault>;
}

/// What callers of a file system over the store `S` give and get.
pub type DataOf<S> = <<S as Store>::Object as Object>::Data;
