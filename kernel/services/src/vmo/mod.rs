//! Memory objects: `MemoryObjects`, `VmoOwner` and `VmoView`.
//!
//! - [`object`]: an object, without handles, and in it its bytes, changes, loads, write-back and
//!   mappings, and who is told;
//! - `index`, `nodes`: which page is where, found without a lock;
//! - [`loans`]: pages that a device uses;
//! - [`payer`]: who pays for it.
//!
//! How several threads use one page at the same time is the affair of `lib/system/pages`: whoever
//! reads or writes takes no lock. What is added to an object or taken away goes through its lock,
//! at most 64 pages at a time.

mod index;
pub mod loans;
mod nodes;
pub mod object;
pub mod payer;
#[cfg(test)]
mod tests;

use crate::event;
use alloc::sync::Arc;
use core::any::Any;
use interfaces::{
    Handle, MemoryError, MemoryObjects, PageKind, PageTags, RVec, Raiser, RpcError, RpcResult,
    UserBuf, UserDirection, VmoFill, VmoInfo, VmoOwner, VmoRights, VmoView,
};
use isolation::call::handle::kernel_object;
use isolation::call::thread::caller;
use isolation::platform::platform;
use object::{MOST_BYTES, Vmo};
use pages::{Bytes, Pool, Run};
use payer::Domain;

/// A memory object that a domain pays for.
pub type Object<F> = Vmo<F, Domain>;

/// The object that `view` leads to, and what it may be used for. `None`: it is no view of the
/// kernel's.
pub fn viewed<F: Bytes + Send + Sync + 'static>(
    view: &Handle<dyn VmoView>,
) -> Option<(Arc<Object<F>>, VmoRights)> {
    let view: &View<F> = kernel_object(view)?;
    Some((view.object.clone(), view.rights))
}

type Result<T> = core::result::Result<T, MemoryError>;

/// Makes memory objects of frames from a pool.
pub struct KernelObjects<F: Bytes>(pub Pool<F>);

impl<F: Bytes + Send + Sync + 'static> MemoryObjects for KernelObjects<F> {
    fn create(&self, limit: u64, fill: VmoFill) -> Result<Handle<dyn VmoOwner>> {
        // The object lies in the kernel's heap.
        if !platform().can_note() {
            return Err(RpcError::NoMemory.into());
        }
        let object = Vmo::new(self.0, Domain(caller()), limit, fill)?;
        Ok(Handle::<dyn VmoOwner>::new(Owner(Arc::new(object)))?)
    }
}

struct Owner<F: Bytes>(Arc<Object<F>>);

impl<F: Bytes + Send + Sync + 'static> VmoOwner for Owner<F> {
    fn view(&self, rights: VmoRights) -> Result<Handle<dyn VmoView>> {
        view(&self.0, rights)
    }

    fn info(&self) -> RpcResult<VmoInfo> {
        Ok(self.0.info())
    }

    fn set_limit(&self, limit: u64) -> Result<()> {
        self.0.set_limit(limit)
    }

    fn seal(&self) -> Result<()> {
        self.0.seal()
    }

    fn tags(&self, page: u64) -> Result<PageTags> {
        self.0.tags(page)
    }

    fn next(&self, from: u64, kind: PageKind) -> Result<Option<u64>> {
        Ok(self.0.next(from, kind))
    }

    fn cut(&self, first: u64, count: u64) -> Result<u64> {
        self.0.cut(first, count)
    }

    fn evict(&self, first: u64, count: u64) -> Result<u64> {
        self.0.evict(first, count)
    }

    fn load(&self, first: u64, count: u64) -> Result<u64> {
        self.0.load(&Domain(caller()), first, count)
    }

    fn end_load(&self, first: u64, content: &RVec<u8>) -> Result<u64> {
        self.0.end_load(first, content)
    }

    fn loaded(&self, first: u64, count: u64) -> Result<u64> {
        self.0.loaded(first, count)
    }

    fn loaded_dirty(&self, first: u64, count: u64) -> Result<u64> {
        self.0.loaded_dirty(first, count)
    }

    fn break_off(&self, first: u64, count: u64) -> Result<u64> {
        self.0.break_off(first, count)
    }

    fn clean(&self, first: u64, count: u64) -> Result<Option<(u64, u64)>> {
        self.0.clean(first, count)
    }

    fn commit(&self, first: u64, count: u64) -> Result<u64> {
        self.0.commit(first, count)
    }

    fn redo(&self, first: u64, count: u64) -> Result<u64> {
        self.0.redo(first, count)
    }

    fn tell_dirty(&self, raiser: Option<Handle<dyn Raiser>>) -> Result<()> {
        let raiser = match &raiser {
            Some(handle) => Some(event::raiser(handle).ok_or(MemoryError::Invalid)?),
            None => None,
        };
        self.0.tell_dirty(raiser);
        Ok(())
    }

    fn adopt(&self) -> Result<()> {
        self.0.adopt(&Domain(caller()))
    }
}

struct View<F: Bytes> {
    object: Arc<Object<F>>,
    rights: VmoRights,
}

/// A view of `object` with these rights.
///
/// # Errors
/// No memory.
pub fn view<F: Bytes + Send + Sync + 'static>(
    object: &Arc<Object<F>>,
    rights: VmoRights,
) -> Result<Handle<dyn VmoView>> {
    if !platform().can_note() {
        return Err(RpcError::NoMemory.into());
    }
    let object = object.clone();
    Ok(Handle::<dyn VmoView>::new(View { object, rights })?)
}

/// What both allow.
fn both(a: VmoRights, b: VmoRights) -> VmoRights {
    VmoRights {
        read: a.read && b.read,
        write: a.write && b.write,
        map: a.map && b.map,
        execute: a.execute && b.execute,
    }
}

impl<F: Bytes + Send + Sync + 'static> VmoView for View<F> {
    fn rights(&self) -> RpcResult<VmoRights> {
        Ok(self.rights)
    }

    fn restrict(&self, rights: VmoRights) -> Result<Handle<dyn VmoView>> {
        view(&self.object, both(self.rights, rights))
    }

    fn limit(&self) -> RpcResult<u64> {
        Ok(self.object.limit())
    }

    fn await_load(&self, page: u64, deadline: Option<u64>) -> Result<bool> {
        let rights = self.rights;
        if !(rights.read || rights.write || rights.map) {
            return Err(MemoryError::Denied);
        }
        self.object.await_load(page, deadline)
    }

    fn read(&self, offset: u64, mut buffer: RVec<u8>) -> Result<(RVec<u8>, u64)> {
        if !self.rights.read {
            return Err(MemoryError::Denied);
        }
        let count = self.object.read(offset, &mut buffer)?;
        Ok((buffer, count as u64))
    }

    fn write(&self, offset: u64, data: &RVec<u8>) -> Result<u64> {
        if !self.rights.write {
            return Err(MemoryError::Denied);
        }
        Ok(self.object.write(offset, data)? as u64)
    }

    fn fill(&self, offset: u64, data: &RVec<u8>) -> Result<u64> {
        if !self.rights.write {
            return Err(MemoryError::Denied);
        }
        Ok(self.object.fill(offset, data)? as u64)
    }

    fn read_to(&self, offset: u64, count: u64, to: &UserBuf<'_>, at: u64) -> Result<u64> {
        if !self.rights.read {
            return Err(MemoryError::Denied);
        }
        in_runs::<F>(
            (to, UserDirection::ToProgram),
            at,
            (offset, count),
            |from, run| self.object.read_to(from, run),
        )
    }

    fn write_from(&self, offset: u64, count: u64, from: &UserBuf<'_>, at: u64) -> Result<u64> {
        if !self.rights.write {
            return Err(MemoryError::Denied);
        }
        in_runs::<F>(
            (from, UserDirection::FromProgram),
            at,
            (offset, count),
            |to, run| self.object.write_from(to, run),
        )
    }

    fn fill_from(&self, offset: u64, count: u64, from: &UserBuf<'_>, at: u64) -> Result<u64> {
        if !self.rights.write {
            return Err(MemoryError::Denied);
        }
        in_runs::<F>(
            (from, UserDirection::FromProgram),
            at,
            (offset, count),
            |to, run| self.object.fill_from(to, run),
        )
    }
}

/// Has `copy` do each run of a program's memory, from byte `at` of the whole on, with the offset in
/// the object that belongs to it: `offset` of the first. How many of `count` bytes were done before
/// it was short or failed, [`MOST_BYTES`] at most.
fn in_runs<F: Bytes>(
    (memory, direction): (&UserBuf<'_>, UserDirection),
    at: u64,
    (offset, count): (u64, u64),
    mut copy: impl FnMut(u64, Run<'_, F::Program>) -> Result<usize>,
) -> Result<u64> {
    let count = count.min(MOST_BYTES);
    offset.checked_add(count).ok_or(MemoryError::Beyond)?;
    if memory.direction() != direction {
        return Err(MemoryError::Invalid);
    }
    let program = platform().program(memory);
    let program = program.and_then(<dyn Any>::downcast_ref::<F::Program>);
    let program = program.ok_or(MemoryError::Invalid)?;
    let mut failed = None;
    let done = memory.each(at, count as usize, |address, part| {
        let run = Run {
            program,
            address,
            count: part.len(),
        };
        copy(offset + part.start as u64, run).unwrap_or_else(|error| {
            failed = Some(error);
            0
        })
    });
    match failed {
        Some(error) if done == 0 => Err(error),
        _ => Ok(done as u64),
    }
}
