//! Physical frames: who may use which, checked, whatever the allocator policy answers.
//!
//! Every frame of RAM has a metadata [`Slot`]. A [`FramePolicy`] proposes frames; [`Frames`] come
//! into being only through `from_unused`, which claims each slot by compare-and-swap.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use buddy::{Buddy, Group, SECTION_PAGES, Section};

use super::early::Early;
use super::map::Range;
use super::meta::Slot;
pub use super::meta::{FrameKind, MetaError};
use super::slots::{self, slot};
use super::{PAGE_SIZE, phys_to_virt, virt_to_phys};
use crate::kprintln;
use crate::spin::IrqLock;

/// A frame allocator: proposes runs of free frames. It is not trusted: an answer that is not
/// really free is refused and counted, and memory it loses is only lost.
pub trait FramePolicy: Sync {
    /// Proposes `count` frames in a row (numbers, not addresses), aligned to the power of two
    /// above `count`, at most to 512. Called with interrupts on or off, maybe inside the heap: it
    /// must neither sleep nor allocate.
    fn alloc(&self, count: usize) -> Option<usize>;
    /// Takes frames back, or takes over new ones. The same rules hold.
    fn free(&self, first: usize, count: usize);
}

static BUILT_IN: IrqLock<Option<Buddy<'static>>> = IrqLock::new(None);
static POLICY: IrqLock<&'static dyn FramePolicy> = IrqLock::new(&BuiltIn);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static LIES: AtomicUsize = AtomicUsize::new(0);

/// The allocator the kernel starts with.
struct BuiltIn;

impl FramePolicy for BuiltIn {
    fn alloc(&self, count: usize) -> Option<usize> {
        BUILT_IN.lock().as_mut()?.alloc(count)
    }

    fn free(&self, first: usize, count: usize) {
        let result = BUILT_IN
            .lock()
            .as_mut()
            .map(|buddy| buddy.free(first, count));
        debug_assert!(matches!(result, Some(Ok(()))));
    }
}

/// Numbers of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Frames the allocator was given at boot.
    pub total: usize,
    /// Frames not in use, those that the heap keeps at hand included.
    pub free: usize,
}

/// How many frames there are and how many are free.
pub fn stats() -> Stats {
    let total = TOTAL.load(Ordering::Relaxed);
    Stats {
        total,
        free: total - USED.load(Ordering::Relaxed) + super::heap::cached_pages(),
    }
}

/// How often a policy proposed frames that were not free.
pub fn policy_lies() -> usize {
    LIES.load(Ordering::Relaxed)
}

/// Sets up metadata for memory up to physical address `end` and gives what is left of `early` to
/// the built-in allocator. The first MiB stays reserved for start-up code of processors.
pub(super) fn init(mut early: Early, end: u64) {
    let sections = (end as usize).div_ceil(SECTION_PAGES * PAGE_SIZE);
    let slots = early.take(sections).expect("memory for frame metadata");
    let states = take_array(&mut early, sections, slots::untouched);
    let book = take_array(&mut early, sections, || Section::EMPTY);
    let groups = take_array(&mut early, buddy::groups_for(sections), || Group::EMPTY);
    early.map.remove(Range {
        start: 0,
        end: 1 << 20,
    });
    let mut buddy = Buddy::new(book, groups);
    for range in early.map.ranges() {
        let (first, count) = (frame_of(range.start), frame_of(range.end - range.start));
        buddy
            .free(first, count)
            .expect("normalised ranges do not overlap");
    }
    TOTAL.store(buddy.free_pages(), Ordering::Relaxed);
    *BUILT_IN.lock() = Some(buddy);
    // SAFETY: the pages, one for each section, were taken for this alone and are in the direct map.
    unsafe { slots::init(phys_to_virt(slots), states, early.map) };
}

/// Takes memory for `count` values and fills it.
fn take_array<T>(early: &mut Early, count: usize, value: impl Fn() -> T) -> &'static mut [T] {
    let bytes = count * core::mem::size_of::<T>();
    let page = early
        .take(bytes.div_ceil(PAGE_SIZE))
        .expect("memory for frame metadata");
    let base = phys_to_virt(page) as *mut T;
    for i in 0..count {
        // SAFETY: the pages were taken for this array alone, are mapped, and are aligned for any
        // of the small types used here.
        unsafe { base.add(i).write(value()) };
    }
    // SAFETY: all `count` values are initialised, and nobody else has the memory.
    unsafe { core::slice::from_raw_parts_mut(base, count) }
}

/// The frame number of a physical address (or the count of pages in a size).
fn frame_of(physical: u64) -> usize {
    (physical / PAGE_SIZE as u64) as usize
}

/// Owned frames in a row. Dropping them gives them back.
#[derive(Debug)]
pub struct Frames {
    first: usize,
    count: usize,
    kind: FrameKind,
}

impl Frames {
    /// Allocates `count` frames in a row (see [`FramePolicy::alloc`] for the alignment). Their
    /// content is whatever was there.
    pub fn alloc(count: usize, kind: FrameKind) -> Option<Self> {
        alloc_with(policy(), count, kind)
    }

    /// Allocates and zeroes.
    pub fn alloc_zeroed(count: usize, kind: FrameKind) -> Option<Self> {
        let frames = Self::alloc(count, kind)?;
        // SAFETY: the frames are RAM in the direct map and have no other user yet.
        unsafe { core::ptr::write_bytes(frames.pointer().as_ptr(), 0, count * PAGE_SIZE) };
        Some(frames)
    }

    /// The one door into use: claims the frames if all of them are really unused.
    pub fn from_unused(first: usize, count: usize, kind: FrameKind) -> Result<Self, MetaError> {
        let slots = slots::row(first, count).ok_or(MetaError::Reserved)?;
        for (number, slot) in slots.iter().enumerate() {
            if let Err(why) = slot.claim() {
                slots[..number].iter().for_each(Slot::give_up);
                return Err(why);
            }
        }
        slots.iter().for_each(|slot| slot.publish(kind));
        USED.fetch_add(count, Ordering::Relaxed);
        Ok(Self { first, count, kind })
    }

    /// Takes over the ownership that an earlier [`into_raw`](Self::into_raw) left in a page table
    /// or pointer, or that several left which had these frames among them.
    ///
    /// # Safety
    /// Each of these very frames was in an `into_raw` of this kind, and its ownership has not been
    /// taken back yet.
    pub unsafe fn from_raw(physical: u64, count: usize, kind: FrameKind) -> Self {
        Self {
            first: frame_of(physical),
            count,
            kind,
        }
    }

    /// Gives up the handle but not the frames. Returns their physical address.
    pub fn into_raw(self) -> u64 {
        let physical = self.physical();
        core::mem::forget(self);
        physical
    }

    /// Physical address of the first frame.
    pub fn physical(&self) -> u64 {
        (self.first * PAGE_SIZE) as u64
    }

    /// Number of frames.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What they are for.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// How many owners the first of them has, this one included. Who finds himself alone sees all
    /// that the others did before they ceased to be owners.
    pub fn owners(&self) -> u32 {
        slot(self.first).expect("owned frames have slots").owners()
    }

    /// Parts with the first of them: `count`, or all if there are fewer.
    pub fn split(&mut self, count: usize) -> Self {
        let count = count.min(self.count);
        let first = self.first;
        (self.first, self.count) = (first + count, self.count - count);
        Self {
            first,
            count,
            kind: self.kind,
        }
    }

    /// Their address in the direct map.
    pub fn pointer(&self) -> NonNull<u8> {
        NonNull::new(phys_to_virt(self.physical()) as *mut u8).expect("the direct map is not at 0")
    }

    /// Another owner of the same untyped frames.
    pub fn share(&self) -> Result<Self, MetaError> {
        if self.kind != FrameKind::Untyped {
            return Err(MetaError::WrongKind);
        }
        let mut shared = Self {
            first: self.first,
            count: 0,
            kind: self.kind,
        };
        for frame in self.first..self.first + self.count {
            // On an error the drop of `shared` takes back what was added so far.
            slot(frame)
                .expect("owned frames have slots")
                .share(self.kind)?;
            shared.count += 1;
        }
        Ok(shared)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let slots = slots::row(self.first, self.count).expect("owned frames have slots");
        let mut run = self.first;
        for (frame, slot) in (self.first..).zip(slots) {
            if !slot.release(self.kind) {
                give_back(run, frame - run);
                run = frame + 1;
            }
        }
        give_back(run, self.first + self.count - run);
    }
}

/// Asks `policy` for frames and checks its answer.
pub(crate) fn alloc_with(
    policy: &dyn FramePolicy,
    count: usize,
    kind: FrameKind,
) -> Option<Frames> {
    if count == 0 {
        return None;
    }
    let first = policy.alloc(count)?;
    match Frames::from_unused(first, count, kind) {
        Ok(frames) => Some(frames),
        Err(why) => {
            LIES.fetch_add(1, Ordering::Relaxed);
            kprintln!("memory: allocator policy proposed frame {first:#x}+{count}: {why:?}");
            None
        }
    }
}

/// Returns frames that have lost their last owner to the policy.
fn give_back(first: usize, count: usize) {
    if count == 0 {
        return;
    }
    let slots = slots::row(first, count).expect("released frames have slots");
    slots.iter().for_each(Slot::give_up);
    USED.fetch_sub(count, Ordering::Relaxed);
    policy().free(first, count);
}

fn policy() -> &'static dyn FramePolicy {
    *POLICY.lock()
}

/// One more than the highest frame number there can be, for a policy to size its books.
pub fn end() -> usize {
    slots::sections() * SECTION_PAGES
}

/// Puts in another allocator policy and hands it all frames that the present one has. To be used
/// at boot: allocations on other processors may fail for a moment meanwhile.
pub fn set_policy(new: &'static dyn FramePolicy) {
    let old = core::mem::replace(&mut *POLICY.lock(), new);
    let mut size = 512;
    while size > 0 {
        match old.alloc(size) {
            Some(first) => new.free(first, size),
            None => size /= 2,
        }
    }
}

/// Allocates `count` zeroed pages in a row in the direct map, aligned to the power of two above.
pub fn alloc_pages(count: usize) -> Option<NonNull<u8>> {
    let frames = Frames::alloc_zeroed(count, FrameKind::Kernel)?;
    let pointer = frames.pointer();
    frames.into_raw();
    Some(pointer)
}

/// Gives back pages from [`alloc_pages`].
///
/// # Safety
/// `pointer` and `count` are those of one `alloc_pages` that has not been given back yet, and
/// nothing refers to the memory any more.
///
/// # Panics
/// If the pages are not in use as kernel memory.
pub unsafe fn free_pages(pointer: NonNull<u8>, count: usize) {
    let physical = virt_to_phys(pointer.as_ptr() as usize);
    // SAFETY: `alloc_pages` left the ownership of exactly these frames with the caller.
    drop(unsafe { Frames::from_raw(physical, count, FrameKind::Kernel) });
}

/// Allocates pages without zeroing, for the heap.
pub(super) fn alloc_pages_dirty(count: usize) -> Option<NonNull<u8>> {
    let frames = Frames::alloc(count, FrameKind::Kernel)?;
    let pointer = frames.pointer();
    frames.into_raw();
    Some(pointer)
}

/// Gives back a frame whose last owner is gone.
pub(super) fn give_back_one(frame: usize) {
    give_back(frame, 1);
}

/// A zeroed frame for a page table.
pub(crate) fn alloc_table() -> Option<u64> {
    Some(Frames::alloc_zeroed(1, FrameKind::PageTable)?.into_raw())
}
