//! What memory and threads a domain is charged with. All of it counts in its group's budget, too;
//! what it owns on the shared heap is kept in [`crate::domain::budget`].
//!
//! | kind | charged | given back |
//! | --- | --- | --- |
//! | private heap | each run of pages, and the kernel's note of it | when it is given back, or the domain is gone |
//! | image | code, data and `.bss` | when the domain is gone |
//! | stacks | [`thread_bytes`] for each thread that it created | when the thread has ended |
//! | notes | what the kernel keeps for it: exports, objects of the kernel that it asked for, verified files; a thread that helps it with its drops | with the object; when the drops are over |
//! | device memory | DMA buffers | when they are dropped |
//! | objects | pages of memory objects, and the kernel's notes of them | when they are cut off, or the object is gone |

use crate::domain::group::Group;
use crate::domain::{Claim, ControlBlock};
use crate::memory::relief;
use crate::platform::{Attributes, PAGE, platform};
use abi::RpcError;
use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// What a thread with `stack` bytes of stack is charged with: the stack, and a page for the record
/// of it and of its stack's mapping.
pub const fn thread_bytes(stack: usize) -> usize {
    stack + PAGE
}

/// What a run of pages is charged with besides itself, in bytes: the kernel's note of it, in a
/// tree.
const RUN_BYTES: usize = 64;

/// Most pages in one run; far more than any machine has, and far from where sums of pages overflow.
const MOST_PAGES: usize = 1 << 32;

/// Kinds of memory that are charged by [`Charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the kernel keeps for it.
    Notes,
    /// Memory that a device may use.
    Dma,
    /// Memory objects.
    Objects,
}

impl ControlBlock {
    /// The group that it belongs to; `None`: it is the kernel.
    pub fn group(&self) -> Option<&Arc<Group>> {
        self.group.as_ref()
    }

    /// What the platform is told of threads that it creates.
    pub(crate) fn attributes(&self) -> Attributes {
        let of_group = |group: &Arc<Group>| Attributes {
            group: group.id,
            weight: group.weight,
            percent: group.percent,
            ..Attributes::KERNEL
        };
        self.group.as_ref().map_or(Attributes::KERNEL, of_group)
    }

    /// Whether the machine has `pages` pages for it, with which it has been charged: what is kept
    /// for recovery is not for everybody. What others of its group have does not count, nor what
    /// instances before it have left: that could be all that the group may have, and this one is
    /// to recover it.
    pub fn may_take(&self, pages: usize) -> bool {
        let used = self.heap_bytes() + self.image_bytes() + self.stack_bytes();
        let used = used + self.note_bytes() + self.dma_bytes() + self.object_bytes();
        may_take(pages, self.limits.reserve, used)
    }

    /// Whether there is a limit to what it may own on the shared heap.
    #[inline]
    pub(crate) fn is_bounded(&self) -> bool {
        let limited = |group: &Arc<Group>| group.memory_limit() != 0;
        self.limits.shared != 0 || self.group.as_ref().is_some_and(limited)
    }

    /// Charges its group with `bytes`, if the limit lets it.
    pub(crate) fn take_memory(&self, bytes: usize) -> Claim {
        self.group
            .as_ref()
            .map_or(Claim::Granted, |group| group.take_memory(bytes))
    }

    /// Gives back what its group was charged with.
    pub(crate) fn give_memory(&self, bytes: usize) {
        if let Some(group) = &self.group {
            group.give_memory(bytes);
        }
    }

    /// Counts a new thread, and charges its `stack` bytes of stack.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`] over the limit of the domain or of its group.
    pub(crate) fn take_thread(&self, stack: usize) -> Result<(), RpcError> {
        let before = self.counters.threads.fetch_add(1, Ordering::Relaxed);
        let within = self.limits.threads == 0 || before < self.limits.threads;
        if within && self.take_thread_of_group(stack).is_granted() {
            let bytes = thread_bytes(stack);
            self.counters.stacks.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        self.counters.threads.fetch_sub(1, Ordering::Relaxed);
        Err(RpcError::NoMemory)
    }

    fn take_thread_of_group(&self, stack: usize) -> Claim {
        let Some(group) = &self.group else {
            return Claim::Granted;
        };
        let counted = group.take_thread();
        if counted.is_granted() && group.take_memory(thread_bytes(stack)) == Claim::Refused {
            group.give_thread();
            return Claim::Refused;
        }
        counted
    }

    /// Undoes [`take_thread`](Self::take_thread).
    pub(crate) fn give_thread(&self, stack: usize) {
        let bytes = thread_bytes(stack);
        // With all that the thread did, for who finds none left.
        self.counters.threads.fetch_sub(1, Ordering::Release);
        self.counters.stacks.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(group) = &self.group {
            group.give_memory(bytes);
            group.give_thread();
        }
    }

    /// `count` zeroed pages for the private heap. Waits where others may give memory back.
    pub(crate) fn take_pages(&self, count: usize) -> Option<NonNull<u8>> {
        self.take_pages_from(count, || {
            relief::or_wait(count * PAGE, || self.spare_pages(count))
        })
    }

    /// As [`take_pages`](Self::take_pages), but only what there is.
    pub(crate) fn take_pages_now(&self, count: usize) -> Option<NonNull<u8>> {
        self.take_pages_from(count, || self.spare_pages(count))
    }

    fn spare_pages(&self, count: usize) -> Option<NonNull<u8>> {
        self.may_take(count)
            .then(|| platform().pages(count))
            .flatten()
    }

    fn take_pages_from(
        &self,
        count: usize,
        take: impl FnOnce() -> Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        if count > MOST_PAGES {
            return None;
        }
        let before = self.counters.pages.fetch_add(count, Ordering::Relaxed);
        let allowed = self.limits.pages == 0 || before.saturating_add(count) <= self.limits.pages;
        let charged = allowed && self.take_memory(count * PAGE + RUN_BYTES).is_granted();
        if let Some(start) = charged.then(take).flatten() {
            self.note_run(start, count);
            return Some(start);
        }
        self.counters.pages.fetch_sub(count, Ordering::Relaxed);
        if charged {
            self.give_memory(count * PAGE + RUN_BYTES);
        }
        None
    }

    /// Gives back pages of the private heap, if they are a run that
    /// [`take_pages`](Self::take_pages) gave.
    pub(crate) fn give_pages(&self, start: NonNull<u8>) {
        let Some(count) = self.forget_run(start) else {
            return;
        };
        self.counters.pages.fetch_sub(count, Ordering::Relaxed);
        self.give_memory(count * PAGE + RUN_BYTES);
        // SAFETY: the run was the domain's and is not any more.
        unsafe { platform().free_pages(start, count) };
    }

    /// What is charged for `runs` runs of private heap with all its pages, in bytes.
    pub(crate) fn heap_charge(&self, runs: usize) -> usize {
        self.heap_bytes() + runs * RUN_BYTES
    }

    /// Bytes of private heap.
    pub fn heap_bytes(&self) -> usize {
        self.counters.pages.load(Ordering::Relaxed) * PAGE
    }

    /// Bytes that its threads are charged with.
    pub fn stack_bytes(&self) -> usize {
        self.counters.stacks.load(Ordering::Relaxed)
    }

    /// Bytes of what the kernel keeps for it.
    pub fn note_bytes(&self) -> usize {
        self.counters.notes.load(Ordering::Relaxed)
    }

    /// Bytes of memory that devices may use for it.
    pub fn dma_bytes(&self) -> usize {
        self.counters.dma.load(Ordering::Relaxed)
    }

    /// Bytes of memory objects that it pays for.
    pub fn object_bytes(&self) -> usize {
        self.counters.objects.load(Ordering::Relaxed)
    }

    /// The most private heap that it may have, in bytes; 0: no limit of its own.
    pub fn heap_limit(&self) -> usize {
        self.limits.pages.saturating_mul(PAGE)
    }

    /// The most threads that it may create; 0: no limit of its own.
    pub fn thread_limit(&self) -> u32 {
        self.limits.threads
    }

    fn charged(&self, kind: Kind) -> &crate::sync::AtomicUsize {
        match kind {
            Kind::Notes => &self.counters.notes,
            Kind::Dma => &self.counters.dma,
            Kind::Objects => &self.counters.objects,
        }
    }
}

/// Whether the machine has `pages` pages for a domain that has `used` bytes with them, and
/// may draw on what is kept for recovery up to `reserve` pages.
pub(crate) fn may_take(pages: usize, reserve: usize, used: usize) -> bool {
    let is_needed = reserve != 0 && used.div_ceil(PAGE) <= reserve;
    is_needed || platform().is_ample(pages)
}

/// Memory that is charged to a domain as long as this exists.
pub struct Charge {
    block: Arc<ControlBlock>,
    kind: Kind,
    bytes: usize,
}

impl Charge {
    /// Charges `block` with `bytes`; `None` if its group's limit does not let it.
    pub fn new(block: Arc<ControlBlock>, kind: Kind, bytes: usize) -> Option<Self> {
        if block.take_memory(bytes) == Claim::Refused {
            return None;
        }
        block.charged(kind).fetch_add(bytes, Ordering::Relaxed);
        Some(Charge { block, kind, bytes })
    }

    /// Charges `block` with `bytes`, whatever its group's limit says: what there is counts.
    pub fn anyway(block: Arc<ControlBlock>, kind: Kind, bytes: usize) -> Self {
        if let Some(group) = block.group() {
            group.add_memory(bytes);
        }
        block.charged(kind).fetch_add(bytes, Ordering::Relaxed);
        Charge { block, kind, bytes }
    }

    /// Who is charged.
    pub fn block(&self) -> &Arc<ControlBlock> {
        &self.block
    }

    /// How much.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges the same domain with `bytes` more, if its group's limit lets it as it stands;
    /// whether it did. It takes no lock, and nothing is counted anew.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let group = self.block.group();
        if group.is_some_and(|group| group.take_at_once(bytes) == Claim::Refused) {
            return false;
        }
        let charged = self.block.charged(self.kind);
        charged.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        true
    }

    /// Gives at most `bytes` back. It takes no lock, and stays a charge, if of nothing.
    #[inline]
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let charged = self.block.charged(self.kind);
        charged.fetch_sub(bytes, Ordering::Relaxed);
        self.block.give_memory(bytes);
    }

    /// Takes at most `bytes` bytes out of it, as a charge of its own.
    #[must_use = "dropping it gives them back"]
    pub fn split(&mut self, bytes: usize) -> Charge {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Charge {
            block: self.block.clone(),
            kind: self.kind,
            bytes,
        }
    }

    /// Has another domain of the same group pay; whether it is of the same group.
    pub fn pass_to(&mut self, to: &Arc<ControlBlock>) -> bool {
        let group = |block: &ControlBlock| block.group().map(|group| group.id);
        if group(&self.block) != group(to) {
            return false;
        }
        let charged = self.block.charged(self.kind);
        charged.fetch_sub(self.bytes, Ordering::Relaxed);
        to.charged(self.kind)
            .fetch_add(self.bytes, Ordering::Relaxed);
        self.block = to.clone();
        true
    }

    /// Takes another charge of the same kind and payer into this one.
    ///
    /// # Errors
    /// It is another's, or of another kind: it comes back.
    pub fn absorb(&mut self, mut other: Charge) -> Result<(), Charge> {
        if !Arc::ptr_eq(&self.block, &other.block) || self.kind != other.kind {
            return Err(other);
        }
        self.bytes += core::mem::take(&mut other.bytes);
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Another one has taken it in.
        if self.bytes == 0 {
            return;
        }
        let charged = self.block.charged(self.kind);
        charged.fetch_sub(self.bytes, Ordering::Relaxed);
        self.block.give_memory(self.bytes);
    }
}
