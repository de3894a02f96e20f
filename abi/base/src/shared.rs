//! The layout of the shared heap: chunks with a dense owner table beside the objects.
//!
//! A chunk starts at a multiple of [`CHUNK_BYTES`] and holds objects of one size, a power of two.
//! Its head is a [`ChunkHead`], then one [`AtomicU32`] per slot that names the domain instance
//! which owns the object (0: the slot is free), then the objects. The slot number of an object is
//! its offset in the chunk shifted right by `shift`; slots that the head and the table cover are
//! never used. So to move an object to another owner takes one load (the shift) and one plain
//! store, and reclaiming what a dead domain owned is a scan over dense tables.
//!
//! An object larger than [`LARGEST_SLOT`] has a chunk of its own, of as many bytes as it needs,
//! with a shift so large that its slot number is 0.
//!
//! The kernel allocates chunks and slots (`isolation::memory::heap`); only the owner lookup is
//! here, because the generated proxies inline it.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

/// Size and alignment of a chunk, in bytes.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// The smallest slot, in bytes; also the alignment that every object has.
pub const SMALLEST_SLOT: usize = 64;
/// The largest slot in a chunk of many, in bytes.
pub const LARGEST_SLOT: usize = 32 * 1024;
/// The shift of a chunk that holds one large object.
pub const LARGE_SHIFT: u32 = 40;
/// Where the object of a large chunk starts, in bytes from the chunk's start.
pub const LARGE_OFFSET: usize = 128;
/// The owner number that marks a free slot.
pub const NO_OWNER: u32 = 0;
/// The owner number of the kernel.
pub const KERNEL_OWNER: u32 = 1;
/// The owner number of an object that is not whole: being made, or being ended. No domain ever has
/// it, and nobody looks for it.
pub const UNFINISHED_OWNER: u32 = u32::MAX;

/// The first 64 bytes of every chunk. Domains read `shift` while the kernel changes what its lock
/// guards, so that is atomic: the head is only ever shared, never borrowed for writing.
#[repr(C, align(64))]
pub struct ChunkHead {
    /// Slot number = offset in the chunk >> `shift`.
    pub shift: u32,
    /// The first slot that holds an object.
    pub first: u32,
    /// One past the last slot that holds an object.
    pub end: u32,
    /// Slots in use now. Guarded by the kernel's lock of the chunk's size class.
    pub used: AtomicU32,
    /// First free slot or 0. The same lock.
    pub free: AtomicU32,
    /// The chunk's length in pages of 4,096 bytes.
    pub pages: u32,
}

impl ChunkHead {
    /// Bytes of memory that each object in the chunk takes.
    pub fn object_bytes(&self) -> usize {
        match self.shift {
            LARGE_SHIFT => self.pages as usize * 4096,
            shift => 1 << shift,
        }
    }
}

/// The chunk that the object at `object` lies in.
///
/// # Safety
/// `object` is the start of an object on the shared heap. Domains can name this function, so it
/// must not be theirs to call: what is left of another address may be 0, of which there is no
/// `NonNull`.
///
/// ```compile_fail,E0133
/// #![forbid(unsafe_code)]
/// abi::shared::chunk_of(core::ptr::NonNull::dangling());
/// ```
#[inline(always)]
pub unsafe fn chunk_of(object: NonNull<u8>) -> NonNull<ChunkHead> {
    object
        .map_addr(|at| {
            // SAFETY: the object lies in a chunk (the caller's duty), and no chunk at address 0, so
            // what is left of the address is not 0.
            unsafe { core::num::NonZeroUsize::new_unchecked(at.get() & !(CHUNK_BYTES - 1)) }
        })
        .cast()
}

/// The owner cell of the object at `object`.
///
/// # Safety
/// `object` is the start of a live object on the shared heap.
#[inline(always)]
pub unsafe fn owner_cell<'a>(object: NonNull<u8>) -> &'a AtomicU32 {
    // SAFETY: a live object lies in a chunk whose head was initialised before the object was handed
    // out and stays as long as the object does. The table has a cell for every slot.
    unsafe {
        let chunk = chunk_of(object);
        let slot = (object.addr().get() & (CHUNK_BYTES - 1)) >> (*chunk.as_ptr()).shift;
        chunk.add(1).cast::<AtomicU32>().add(slot).as_ref()
    }
}

/// The slot size for an object of `bytes` bytes, or `None` if it needs a chunk of its own.
pub const fn slot_size(bytes: usize) -> Option<usize> {
    if bytes > LARGEST_SLOT {
        None
    } else if bytes <= SMALLEST_SLOT {
        Some(SMALLEST_SLOT)
    } else {
        Some(bytes.next_power_of_two())
    }
}

/// Bytes of memory that an object of `bytes` bytes takes.
pub const fn footprint(bytes: usize) -> usize {
    match slot_size(bytes) {
        Some(slot) => slot,
        None => match bytes.checked_add(LARGE_OFFSET) {
            Some(all) if all <= CHUNK_BYTES => CHUNK_BYTES,
            Some(all) if all <= 1 << 62 => all.next_power_of_two(),
            _ => usize::MAX,
        },
    }
}

/// Bytes of memory that the object at `object` takes: what [`footprint`] says of the bytes that it
/// was made with.
///
/// # Safety
/// As for [`owner_cell`].
pub unsafe fn taken(object: NonNull<u8>) -> usize {
    // SAFETY: a live object lies in a chunk, whose head does not change but for its atomics.
    unsafe { chunk_of(object).as_ref() }.object_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_take_chunks_of_powers_of_two() {
        assert_eq!(footprint(100), 128);
        assert_eq!(footprint(LARGEST_SLOT), LARGEST_SLOT);
        let most = CHUNK_BYTES - LARGE_OFFSET;
        assert_eq!([LARGEST_SLOT + 1, most].map(footprint), [CHUNK_BYTES; 2]);
        assert_eq!(footprint(most + 1), 2 * CHUNK_BYTES);
        assert_eq!(footprint(usize::MAX), usize::MAX);
    }

    #[test]
    fn slots_are_powers_of_two() {
        assert_eq!(slot_size(0), Some(64));
        assert_eq!(slot_size(65), Some(128));
        assert_eq!(slot_size(LARGEST_SLOT), Some(LARGEST_SLOT));
        assert_eq!(slot_size(LARGEST_SLOT + 1), None);
    }

    #[test]
    fn a_large_object_has_slot_zero() {
        assert_eq!((CHUNK_BYTES - 1) >> LARGE_SHIFT, 0);
    }
}
