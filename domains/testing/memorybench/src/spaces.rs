//! The work with address spaces. What Linux does beside it stands in `lab/peers/spaces/work.c`.

use alloc::vec::Vec;
use domain_rt::time;
use interfaces::{
    AddressSpace, AddressSpaces, Handle, MemoryError, MemoryObjects, Protection, RpcError,
    SpaceError, VmoFill, VmoRights, VmoView,
};
use memorywork::{PAGE, PAGES};

/// Where things are mapped: at the beginning of a page table.
const AT: u64 = 0x4000_0000;
/// Pages of the space that is forked: 16 MiB.
const LARGE: u64 = 4096;
/// Calls in one round.
const CALLS: usize = 64;
/// Rounds; the best one counts.
const ROUNDS: usize = 20;

const WRITE: Protection = Protection {
    read: true,
    write: true,
    execute: false,
};

type Result<T> = core::result::Result<T, SpaceError>;

/// What the work needs.
pub struct Spaces {
    maker: Handle<dyn AddressSpaces>,
    objects: Handle<dyn MemoryObjects>,
}

/// What `work` takes, in nanoseconds.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let start = time::now();
    work()?;
    Ok(time::now() - start)
}

impl Spaces {
    /// With what makes spaces and objects.
    pub fn new(maker: Handle<dyn AddressSpaces>, objects: Handle<dyn MemoryObjects>) -> Self {
        Self { maker, objects }
    }

    /// Does all the work, and tells each figure.
    ///
    /// # Errors
    /// The first one.
    pub fn run(&self, tell: &mut dyn FnMut(&str, u64)) -> Result<()> {
        tell("map and unmap of 1 page", self.maps(1)?);
        tell("map and unmap of 16 pages", self.maps(16)?);
        tell("map and unmap of 256 pages", self.maps(PAGES)?);
        let (fork, fault) = self.forks()?;
        tell("fork of 16 MiB, and the child's end", fork);
        tell("copy-on-write fault", fault);
        tell("clean of 256 pages mapped twice", self.clean()?);
        Ok(())
    }

    /// An object of [`PAGES`] pages, and as many views of it as are asked for.
    fn views(&self, count: usize) -> Result<(Handle<dyn interfaces::VmoOwner>, Vec<View>)> {
        let owner = self.objects.create(PAGES, VmoFill::Zero).map_err(object)?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: true,
            execute: false,
        };
        let views: core::result::Result<Vec<_>, _> =
            (0..count).map(|_| owner.view(rights)).collect();
        Ok((owner, views.map_err(object)?))
    }

    fn maps(&self, pages: u64) -> Result<u64> {
        let space = self.maker.create()?;
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            let (_, views) = self.views(CALLS)?;
            let took = timed(|| {
                for view in views {
                    space.map(AT, view, 0, pages, WRITE)?;
                    space.unmap(AT, pages)?;
                }
                Ok(())
            })?;
            best = best.min(took / CALLS as u64);
        }
        Ok(best)
    }

    /// What a fork with the end of the child takes, and the first write to a page after one.
    fn forks(&self) -> Result<(u64, u64)> {
        let space = self.maker.create()?;
        space.map_zero(AT, LARGE, WRITE)?;
        (0..LARGE).try_for_each(|page| space.touch(AT + page * PAGE, true))?;
        let (mut whole, mut fault) = (u64::MAX, u64::MAX);
        for _ in 0..ROUNDS {
            whole = whole.min(timed(|| self.child(&space).map(drop))?);
            let child = self.child(&space)?;
            let took =
                timed(|| (0..PAGES).try_for_each(|page| space.touch(AT + page * PAGE, true)))?;
            fault = fault.min(took / PAGES);
            drop(child);
        }
        Ok((whole, fault))
    }

    /// A fork of a space.
    fn child(&self, space: &Handle<dyn AddressSpace>) -> Result<Handle<dyn AddressSpace>> {
        let child = self.maker.create()?;
        let mut from = Some(0);
        while let Some(at) = from {
            from = space.fork(child.duplicate().map_err(SpaceError::Rpc)?, at)?;
        }
        Ok(child)
    }

    fn clean(&self) -> Result<u64> {
        let (owner, views) = self.views(2)?;
        let mut spaces = Vec::new();
        for view in views {
            let space = self.maker.create()?;
            space.map(AT, view, 0, PAGES, WRITE)?;
            spaces.push(space);
        }
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            for space in &spaces {
                (0..PAGES).try_for_each(|page| space.touch(AT + page * PAGE, true))?;
            }
            let mut cleaned = 0;
            let took = timed(|| {
                while let Some((page, count)) =
                    owner.clean(cleaned, PAGES - cleaned).map_err(object)?
                {
                    owner.commit(page, count).map_err(object)?;
                    cleaned = page + count;
                    if cleaned == PAGES {
                        break;
                    }
                }
                Ok(())
            })?;
            if cleaned != PAGES {
                return Err(SpaceError::NotMapped);
            }
            best = best.min(took);
        }
        Ok(best)
    }
}

type View = Handle<dyn VmoView>;

fn object(error: MemoryError) -> SpaceError {
    SpaceError::Object(error)
}

/// The call's own error, where there is one.
pub fn rpc(error: SpaceError) -> RpcError {
    match error {
        SpaceError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}
