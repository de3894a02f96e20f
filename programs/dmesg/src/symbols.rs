//! Symbols that lie in a folder, as `cargo xtask symbols` makes them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stacktext::{Files, Table};
use ulib::{Env, Error};

/// Longest file that is taken for symbols. The kernel's, the largest, has a third of it.
const MOST: u64 = 8 << 20;

/// What was read of them, by build.
pub struct OnDisk<'a> {
    env: &'a Env,
    folder: Vec<u8>,
    read: BTreeMap<u64, Result<Table<Vec<u8>>, String>>,
}

impl<'a> OnDisk<'a> {
    /// Those in `folder`.
    pub fn new(env: &'a Env, folder: &[u8]) -> Self {
        OnDisk {
            env,
            folder: folder.to_vec(),
            read: BTreeMap::new(),
        }
    }

    fn table(&self, build: u64, is_kernel: bool) -> Result<Table<Vec<u8>>, String> {
        let path = [&self.folder, format!("/{build:016x}").as_bytes()].concat();
        let bytes = self.bytes(&path).map_err(|error| {
            let whose = if is_kernel { "kernel" } else { "build" };
            match error.is_not_found() {
                true => format!("no symbols of {whose} {build:016x}"),
                false => format!("no symbols of {whose} {build:016x}: {error}"),
            }
        })?;
        Table::open(bytes, build)
    }

    fn bytes(&self, path: &[u8]) -> Result<Vec<u8>, Error> {
        let length = self.env.metadata(path, true)?.size;
        if length > MOST {
            return Err(Error::text("the file is too long for symbols"));
        }
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(length as usize);
        room.map_err(|_| Error::text("there is no memory for them"))?;
        let mut file = self.env.open(path)?;
        while bytes.len() < length as usize {
            let piece = file.fill()?;
            let wanted = piece.len().min(length as usize - bytes.len());
            if wanted == 0 {
                break;
            }
            bytes.extend_from_slice(&piece[..wanted]);
            file.consume(wanted);
        }
        Ok(bytes)
    }
}

impl Files for OnDisk<'_> {
    type File = Table<Vec<u8>>;

    fn get(&mut self, build: Option<u64>, is_kernel: bool) -> Result<&Self::File, &str> {
        // A kernel that panics does not say which it is; nobody is there then to ask for its log.
        let build = build.ok_or("no symbols of the kernel")?;
        if !self.read.contains_key(&build) {
            let table = self.table(build, is_kernel);
            self.read.insert(build, table);
        }
        let known = self.read.get(&build).ok_or("no symbols")?;
        known.as_ref().map_err(String::as_str)
    }
}
