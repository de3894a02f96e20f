//! The boot archive.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{Archive, Handle, RVec, RpcResult};

/// The files of the archive, by number.
pub struct Files(Vec<(String, u64)>);

impl Files {
    /// Reads the list.
    ///
    /// # Errors
    /// Those of the calls.
    pub fn list(archive: &Handle<dyn Archive>) -> RpcResult<Self> {
        let mut files = Vec::new();
        while let Some(entry) = archive.entry(files.len() as u32)? {
            files.push((entry.path.to_string(), entry.size));
        }
        Ok(Files(files))
    }

    /// Whether there is a file at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.0.iter().any(|(there, _)| there == path)
    }

    /// The whole file at `path`.
    ///
    /// # Errors
    /// In words.
    pub fn read(&self, archive: &Handle<dyn Archive>, path: &str) -> Result<RVec<u8>, String> {
        let number = self.0.iter().position(|(there, _)| there == path);
        let number = number.ok_or_else(|| format!("the boot archive has no file {path}"))?;
        let size = self.0[number].1 as usize;
        let buffer = RVec::filled(0, size);
        let bytes = buffer.and_then(|buffer| archive.read(number as u32, 0, buffer));
        let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
        match bytes.len() == size {
            true => Ok(bytes),
            false => Err(format!(
                "{path}: {} of {size} bytes could be read",
                bytes.len()
            )),
        }
    }
}
