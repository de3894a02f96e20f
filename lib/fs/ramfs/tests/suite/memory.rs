//! A store in memory of the test, whose user can be made to die at any byte.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use ramfs::store::PAGE;
use ramfs::{Fault, Object, Store};

type Pages = BTreeMap<u64, Vec<u8>>;
type Shared = Rc<RefCell<Pages>>;

/// What all instances of a file system share, and what happens to the one that lives.
#[derive(Default)]
pub struct World {
    /// What is kept.
    kept: RefCell<BTreeMap<u64, Shared>>,
    /// Bytes and operations that the instance may still write; `None`: all.
    fuel: Cell<Option<u64>>,
    /// Pages that there is memory for.
    room: Cell<Option<u64>>,
    /// Keys that there is room for.
    keys: Cell<Option<usize>>,
    /// Whoever keeps has died since it was asked last.
    forgot: Cell<bool>,
    /// How much was done.
    spent: Cell<u64>,
}

/// A store. Clones are the same one.
#[derive(Clone, Default)]
pub struct Memory(pub Rc<World>);

/// An object of it.
pub struct Bytes(Shared, Rc<World>);

impl World {
    /// Takes from the fuel; how much of `wanted` there was.
    fn burn(&self, wanted: u64) -> u64 {
        self.spent.set(self.spent.get() + wanted);
        let Some(left) = self.fuel.get() else {
            return wanted;
        };
        let burnt = left.min(wanted);
        self.fuel.set(Some(left - burnt));
        burnt
    }

    /// One operation, which happens whole or not at all.
    fn step(&self) -> Result<(), Fault> {
        match self.burn(1) {
            1 => Ok(()),
            _ => Err(Fault::Broken),
        }
    }

    fn take_page(&self) -> bool {
        match self.room.get() {
            Some(0) => false,
            room => {
                self.room.set(room.map(|room| room - 1));
                true
            }
        }
    }
}

// Not all who use this file need all of it.
#[allow(dead_code)]
impl Memory {
    /// The instance dies after so many bytes and operations; `None`: it does not.
    pub fn set_fuel(&self, fuel: Option<u64>) {
        self.0.fuel.set(fuel);
    }

    /// Bytes and operations so far.
    pub fn spent(&self) -> u64 {
        self.0.spent.get()
    }

    /// So many pages more may be had; `None`: any number.
    pub fn set_room(&self, pages: Option<u64>) {
        self.0.room.set(pages);
    }

    /// So many keys may be in use; `None`: any number.
    pub fn set_keys(&self, keys: Option<usize>) {
        self.0.keys.set(keys);
    }

    /// Whoever keeps dies.
    pub fn lose(&self) {
        self.0.kept.borrow_mut().clear();
        self.0.forgot.set(true);
    }

    /// The same content, with nothing in common.
    pub fn copy(&self) -> Memory {
        let copy = Memory::default();
        for (&key, pages) in &*self.0.kept.borrow() {
            let pages = Rc::new(RefCell::new(pages.borrow().clone()));
            copy.0.kept.borrow_mut().insert(key, pages);
        }
        copy
    }

    /// Keys in use.
    pub fn keys(&self) -> Vec<u64> {
        self.0.kept.borrow().keys().copied().collect()
    }

    /// Pages of all that is kept.
    pub fn pages(&self) -> usize {
        let kept = self.0.kept.borrow();
        kept.values().map(|pages| pages.borrow().len()).sum()
    }

    /// Changes one byte of what is kept under a key.
    pub fn damage(&self, key: u64, at: u64, by: u8) {
        let kept = self.0.kept.borrow();
        let mut pages = kept[&key].borrow_mut();
        let page = pages.get_mut(&(at / PAGE)).expect("there");
        page[(at % PAGE) as usize] ^= by;
    }

    /// All bytes under a key, without holes.
    pub fn bytes(&self, key: u64) -> Vec<u8> {
        let kept = self.0.kept.borrow();
        let pages = kept[&key].borrow();
        pages.values().flatten().copied().collect()
    }

    /// Replaces what is kept under a key.
    pub fn replace(&self, key: u64, bytes: &[u8]) {
        let pages = bytes.chunks(PAGE as usize).map(|chunk| {
            let mut page = chunk.to_vec();
            page.resize(PAGE as usize, 0);
            page
        });
        let pages = (0..).zip(pages).collect();
        let object = Rc::new(RefCell::new(pages));
        self.0.kept.borrow_mut().insert(key, object);
    }
}

impl Store for Memory {
    type Object = Bytes;

    fn make(&self) -> Result<Bytes, Fault> {
        self.0.step()?;
        Ok(Bytes(Shared::default(), self.0.clone()))
    }

    fn put(&self, key: u64, object: &Bytes) -> Result<(), Fault> {
        self.0.step()?;
        if self.0.forgot.take() {
            return Err(Fault::Forgotten);
        }
        let mut kept = self.0.kept.borrow_mut();
        let is_full = self.0.keys.get().is_some_and(|keys| kept.len() >= keys);
        if is_full && !kept.contains_key(&key) {
            return Err(Fault::NoRoom);
        }
        kept.insert(key, object.0.clone());
        Ok(())
    }

    fn get(&self, key: u64) -> Result<Option<Bytes>, Fault> {
        self.0.step()?;
        let found = self.0.kept.borrow().get(&key).cloned();
        Ok(found.map(|pages| Bytes(pages, self.0.clone())))
    }

    fn next(&self, from: u64) -> Result<Option<u64>, Fault> {
        self.0.step()?;
        if self.0.forgot.take() {
            return Err(Fault::Forgotten);
        }
        let kept = self.0.kept.borrow();
        Ok(kept.range(from..).next().map(|(&key, _)| key))
    }

    fn remove(&self, key: u64) -> Result<(), Fault> {
        self.0.step()?;
        if self.0.forgot.take() {
            return Err(Fault::Forgotten);
        }
        self.0.kept.borrow_mut().remove(&key);
        Ok(())
    }
}

impl Object for Bytes {
    type Data = Vec<u8>;

    fn read(&self, offset: u64, mut room: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
        room.truncate(length);
        self.read_bytes(offset, &mut room)?;
        Ok(room)
    }

    fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        let pages = self.0.borrow();
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (number, within) = (at / PAGE, (at % PAGE) as usize);
            let length = (PAGE as usize - within).min(bytes.len() - done);
            let place = &mut bytes[done..done + length];
            match pages.get(&number) {
                Some(page) => place.copy_from_slice(&page[within..within + length]),
                None => place.fill(0),
            }
            done += length;
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &Vec<u8>) -> Result<usize, Fault> {
        self.write_bytes(offset, data)
    }

    fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<usize, Fault> {
        let wanted = bytes.len() as u64;
        let alive = self.1.burn(wanted);
        let mut pages = self.0.borrow_mut();
        let mut done = 0;
        while done < alive as usize {
            let at = offset + done as u64;
            let (number, within) = (at / PAGE, (at % PAGE) as usize);
            let length = (PAGE as usize - within).min(alive as usize - done);
            let page = match pages.entry(number) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(_) if !self.1.take_page() => break,
                Entry::Vacant(place) => place.insert(vec![0; PAGE as usize]),
            };
            page[within..within + length].copy_from_slice(&bytes[done..done + length]);
            done += length;
        }
        match done {
            _ if alive < wanted => Err(Fault::Broken),
            0 if wanted > 0 => Err(Fault::NoRoom),
            done => Ok(done),
        }
    }

    fn cut(&self, first: u64) -> Result<(), Fault> {
        // One page after the other, the last first or the first: any order will do.
        let pages: Vec<u64> = self.0.borrow().range(first..).map(|(&at, _)| at).collect();
        for page in pages {
            self.1.step()?;
            self.0.borrow_mut().remove(&page);
            let room = self.1.room.get();
            self.1.room.set(room.map(|room| room + 1));
        }
        Ok(())
    }

    fn pages(&self) -> Result<u64, Fault> {
        Ok(self.0.borrow().len() as u64)
    }

    fn has(&self, page: u64) -> Result<bool, Fault> {
        Ok(self.0.borrow().contains_key(&page))
    }

    fn shorten(mut data: Vec<u8>, length: usize) -> Vec<u8> {
        data.truncate(length);
        data
    }
}
