//! A process's address space, and which files are mapped where in it.

use crate::disk::DiskFile;
use crate::errno::{EFAULT, EIO, ENOMEM, Error};
use crate::memory::PAGE;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::user;
use guests::space::{self, error};
use interfaces::{AddressSpace, Handle, MemoryError, RpcResult, SpaceError};
use linux::memory::Memory;

/// The most mappings of files in a space.
const MOST: usize = 4096;
/// How often one tries to have a page that goes as soon as it has come.
const ATTEMPTS: u32 = 64;

/// A space, and the files in it. Threads of a process share both.
pub struct Space {
    handle: Handle<dyn AddressSpace>,
    maps: Arc<Mutex<Vec<FileMap>>>,
}

/// A file in a range of addresses.
#[derive(Clone)]
struct FileMap {
    start: u64,
    end: u64,
    /// The page of the file that is at the start.
    page: u64,
    file: Arc<DiskFile>,
}

impl Space {
    /// One without files.
    pub fn new(handle: Handle<dyn AddressSpace>) -> Self {
        let maps = Arc::new(Mutex::new(Vec::new()));
        Space { handle, maps }
    }

    /// The space itself, for what has nothing to do with files.
    pub fn handle(&self) -> &Handle<dyn AddressSpace> {
        &self.handle
    }

    /// The same, for another thread.
    pub fn duplicate(&self) -> RpcResult<Self> {
        Ok(Space {
            handle: self.handle.duplicate()?,
            maps: self.maps.clone(),
        })
    }

    /// A copy of this one, for a child, of which `handle` is the space.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn forked(&self, handle: Handle<dyn AddressSpace>) -> Result<Self, Error> {
        let own = self.maps.lock();
        let mut maps = Vec::new();
        maps.try_reserve_exact(own.len()).map_err(|_| ENOMEM)?;
        maps.extend_from_slice(&own);
        let maps = Arc::new(Mutex::new(maps));
        Ok(Space { handle, maps })
    }

    /// The file that is mapped at an address, and which page of it is there.
    fn file_at(&self, at: u64) -> Option<(Arc<DiskFile>, u64)> {
        let maps = self.maps.lock();
        let found = maps.iter().find(|map| (map.start..map.end).contains(&at))?;
        Some((found.file.clone(), found.page + (at - found.start) / PAGE))
    }

    /// Whether a file is mapped at an address.
    pub fn has_file(&self, at: u64) -> bool {
        self.file_at(at).is_some()
    }

    /// Notes that a file is mapped, from its page `page` on, in a range where none is.
    pub fn note(&self, at: u64, bytes: u64, page: u64, file: &Arc<DiskFile>) -> Result<(), Error> {
        let mut maps = self.maps.lock();
        if maps.len() >= MOST {
            return Err(ENOMEM);
        }
        maps.try_reserve(1).map_err(|_| ENOMEM)?;
        maps.push(FileMap {
            start: at,
            end: at.saturating_add(bytes),
            page,
            file: file.clone(),
        });
        Ok(())
    }

    /// Forgets what is mapped in a range.
    pub fn forget(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let end = at.saturating_add(bytes);
        let mut maps = self.maps.lock();
        // One more at the most: where the range lies within a mapping.
        maps.try_reserve(1).map_err(|_| ENOMEM)?;
        let mut rest = None;
        maps.retain_mut(|map| {
            if map.end <= at || end <= map.start {
                return true;
            }
            if map.end > end {
                let page = map.page + (end - map.start) / PAGE;
                let behind = FileMap {
                    start: end,
                    page,
                    ..map.clone()
                };
                if map.start >= at {
                    *map = behind;
                    return true;
                }
                rest = Some(behind);
            }
            map.end = at;
            map.start < at
        });
        maps.extend(rest);
        Ok(())
    }
}

impl Memory for Space {
    #[inline]
    fn peek(&self, at: u64, bytes: &mut [u8]) -> usize {
        user::read(&self.handle, at, bytes)
    }

    #[inline]
    fn poke(&self, at: u64, bytes: &[u8]) -> usize {
        user::write(&self.handle, at, bytes)
    }

    #[inline]
    fn compare_exchange(&self, at: u64, old: u32, new: u32) -> Option<u32> {
        user::compare_exchange(&self.handle, at, old, new)
    }

    /// With the content of a file if it is one's. `EIO` is SIGBUS's case.
    fn touch(&self, at: u64, write: bool) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let why = match self.handle.touch(at, write) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            let Some((file, page)) = self.file_at(at) else {
                return Err(error(why));
            };
            let is_there = match why {
                SpaceError::Object(MemoryError::Absent | MemoryError::Loading) => {
                    file.bring_around(page)
                }
                SpaceError::Object(_) => Ok(false),
                // Behind the end nothing is mapped; before it, it is not mapped for this.
                SpaceError::NotMapped => match file.bring_around(page)? {
                    true => return Err(EFAULT),
                    false => Ok(false),
                },
                why => return Err(error(why)),
            };
            match is_there {
                Ok(true) => {}
                Err(ENOMEM) => return Err(ENOMEM),
                _ => return Err(EIO),
            }
        }
        Err(EIO)
    }

    fn map_zero(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        space::map_zero(&self.handle, at, bytes, bits)
    }

    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        space::unmap(&self.handle, at, bytes)?;
        self.forget(at, bytes)
    }

    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        space::protect(&self.handle, at, bytes, bits)
    }
}
