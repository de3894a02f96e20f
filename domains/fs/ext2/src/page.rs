//! The buffers of the page cache: on the shared heap, where the device's driver fills them.

use core::ops::{Deref, DerefMut};

use interfaces::RVec;
use pagecache::Buffer;

/// A buffer.
pub struct Page(pub RVec<u8>);

impl Page {
    /// A buffer of zeros, if there is memory for it.
    pub fn new(bytes: usize) -> Option<Self> {
        RVec::zeroed(bytes).ok().map(Page)
    }
}

impl Deref for Page {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Buffer for Page {
    fn footprint(bytes: usize) -> usize {
        RVec::<u8>::footprint(bytes)
    }
}
