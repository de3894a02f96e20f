//! The library's store: memory objects of the kernel, which `keep` holds for the next instance.

use alloc::sync::Arc;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{
    Failure, Handle, Keep, MemoryError, MemoryObjects, PageKind, RVec, Respawn, RpcError,
    RpcResult, VmoFill, VmoOwner, VmoRights, VmoView,
};
use ramfs::store::PAGE;
use ramfs::{Fault, MAX_SIZE, Object, Store};
use respawn::Slot;

/// Pages that an object may have: enough for the largest file, and for any journal.
const LIMIT: u64 = MAX_SIZE / PAGE;
/// Pages that are cut off in one call.
const AT_ONCE: u64 = 512;

const RIGHTS: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};

/// Where content and journal lie. Clones are the same.
#[derive(Clone)]
pub struct Objects(Arc<Inner>);

struct Inner {
    objects: Handle<dyn MemoryObjects>,
    keep: Mutex<Slot<dyn Keep>>,
}

/// A memory object.
pub struct Vmo {
    owner: Handle<dyn VmoOwner>,
    view: Handle<dyn VmoView>,
}

impl Objects {
    /// Objects from `objects`, kept by whoever `keep` leads to.
    pub fn new(objects: Handle<dyn MemoryObjects>, keep: Handle<dyn Respawn>) -> Self {
        let keep = Mutex::new(Slot::new(keep, "keeper"));
        Objects(Arc::new(Inner { objects, keep }))
    }

    /// Asks the keeper.
    fn ask<T>(&self, question: impl FnOnce(&Handle<dyn Keep>) -> RpcResult<T>) -> Result<T, Fault> {
        let mut slot = self.0.keep.lock();
        let keeper = slot.service(|keeper: &Handle<dyn Keep>| keeper.keys().map(drop));
        let Ok(keeper) = keeper else {
            return Err(Fault::Broken);
        };
        match question(keeper) {
            Err(error) if error.is_gone() => {
                slot.give_up();
                Err(Fault::Forgotten)
            }
            Err(RpcError::NoMemory | RpcError::Refused) => Err(Fault::NoRoom),
            Err(error) => {
                log!("the keeper says {error:?}");
                Err(Fault::Broken)
            }
            Ok(answer) => Ok(answer),
        }
    }
}

impl Store for Objects {
    type Object = Vmo;

    fn make(&self) -> Result<Vmo, Fault> {
        let owner = self.0.objects.create(LIMIT, VmoFill::Zero);
        Vmo::new(owner.map_err(fault)?)
    }

    fn put(&self, key: u64, object: &Vmo) -> Result<(), Fault> {
        let owner = object.owner.duplicate().map_err(|_| Fault::NoRoom)?;
        self.ask(|keeper| keeper.put(key, owner.into_any()))
    }

    fn get(&self, key: u64) -> Result<Option<Vmo>, Fault> {
        let Some(found) = self.ask(|keeper| keeper.get(key))? else {
            return Ok(None);
        };
        let owner = found.downcast::<dyn VmoOwner>();
        let owner = owner.map_err(|_| Fault::Broken)?;
        // The instance that paid so far is dead.
        owner.adopt().map_err(fault)?;
        Vmo::new(owner).map(Some)
    }

    fn next(&self, from: u64) -> Result<Option<u64>, Fault> {
        self.ask(|keeper| keeper.next(from))
    }

    fn remove(&self, key: u64) -> Result<(), Fault> {
        self.ask(|keeper| keeper.remove(key))
    }
}

impl Vmo {
    fn new(owner: Handle<dyn VmoOwner>) -> Result<Self, Fault> {
        let view = owner.view(RIGHTS).map_err(fault)?;
        Ok(Vmo { owner, view })
    }
}

impl Object for Vmo {
    type Data = RVec<u8>;

    fn read(&self, offset: u64, room: RVec<u8>, length: usize) -> Result<RVec<u8>, Fault> {
        let (read, count) = self
            .view
            .read(offset, room.truncated(length))
            .map_err(fault)?;
        match count == length as u64 {
            true => Ok(read),
            false => Err(Fault::Broken),
        }
    }

    fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let room = RVec::zeroed(bytes.len()).map_err(|_| Fault::NoRoom)?;
        let read = self.read(offset, room, bytes.len())?;
        bytes.copy_from_slice(&read);
        Ok(())
    }

    fn write(&self, offset: u64, data: &RVec<u8>) -> Result<usize, Fault> {
        let count = self.view.write(offset, data).map_err(fault)?;
        Ok(count as usize)
    }

    fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<usize, Fault> {
        let data = RVec::from_slice(bytes).map_err(|_| Fault::NoRoom)?;
        self.write(offset, &data)
    }

    fn cut(&self, first: u64) -> Result<(), Fault> {
        let mut from = first;
        while let Some(page) = self.owner.next(from, PageKind::Present).map_err(fault)? {
            let count = AT_ONCE.min(LIMIT - page);
            self.owner.cut(page, count).map_err(fault)?;
            from = page;
        }
        Ok(())
    }

    fn pages(&self) -> Result<u64, Fault> {
        let info = self.owner.info().map_err(|_| Fault::Broken)?;
        Ok(info.pages)
    }

    fn has(&self, page: u64) -> Result<bool, Fault> {
        let tags = self.owner.tags(page).map_err(fault)?;
        Ok(tags.present)
    }

    fn shorten(data: RVec<u8>, length: usize) -> RVec<u8> {
        data.truncated(length)
    }
}

fn fault(error: MemoryError) -> Fault {
    match error {
        MemoryError::Rpc(RpcError::NoMemory) => Fault::NoRoom,
        error => {
            log!("a memory object says {error:?}");
            Fault::Broken
        }
    }
}
