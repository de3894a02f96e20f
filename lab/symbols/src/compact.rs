//! Symbols for the system's own disk: what the compiler wrote, as tables that a program can use as
//! they are (`stacktext::Table`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use stacktext::{Symbols, Table, Writer};

use crate::files::{DebugFile, code_of};

/// A file that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its name: the build, as the log tells it.
    pub name: String,
    /// What it has the symbols of.
    pub of: String,
    /// Its length in bytes.
    pub length: u64,
}

/// The table of a file with symbols: of an image, or of a kernel, which knows its build by itself.
///
/// # Errors
/// If it is neither, or has no symbols.
pub fn compact(bytes: &[u8], image: Option<u64>, root: &Path) -> Result<(u64, Vec<u8>)> {
    let (start, build) = match image {
        Some(build) => (0, build),
        None => code_of(bytes)?,
    };
    let file = DebugFile::parse(bytes, start, root)?;
    let offset = |address: u64| u32::try_from(address.checked_sub(start)?).ok();
    let mut table = Writer::default();
    for address in file.names.places()? {
        if let Some(offset) = offset(address) {
            table.names(offset, &file.names.look_up(address));
        }
    }
    for (address, rule) in file.table.rules() {
        if let Some(offset) = offset(address) {
            table.rule(offset, rule);
        }
    }
    Ok((build, table.finish(build)))
}

/// Of so many places that are looked at the rule is compared for one.
const RULED: usize = 50;

/// Where a table says something else than the file with symbols that it was made of; one of every
/// `step` bytes is looked at.
///
/// # Errors
/// If either cannot be read.
pub fn differs(bytes: &[u8], image: Option<u64>, root: &Path, step: usize) -> Result<Option<u64>> {
    let (build, table) = compact(bytes, image, root)?;
    let table = Table::open(table, build).map_err(anyhow::Error::msg)?;
    let start = match image {
        Some(_) => 0,
        None => code_of(bytes)?.0,
    };
    let file = DebugFile::parse(bytes, start, root)?;
    // Before the first function there is no code, but what the linker left out is said to be there.
    let code = file.names.code().context("there is no code")?;
    let offsets = code.start.saturating_sub(start)..code.end.saturating_sub(start);
    let mut offsets = offsets.step_by(step).enumerate();
    let found = offsets.find(|(number, offset)| {
        // Whoever asks the compiler's tables for a rule has them looked through from the beginning.
        let is_ruled = number % RULED != 0 || table.rule(*offset) == file.rule(*offset);
        !is_ruled || table.names(*offset) != file.names.look_up(start + offset)
    });
    Ok(found.map(|(_, offset)| offset))
}

/// Makes the tables of `kernel` and of `images`, each with its name and build, in the new folder
/// `to`.
///
/// # Errors
/// If a file is missing, or cannot be made.
pub fn compact_all(
    symbols: &Path,
    kernel: &Path,
    images: &[(String, u64)],
    root: &Path,
    to: &Path,
) -> Result<Vec<Made>> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let read = |path: PathBuf| {
        let bytes = fs::read(&path);
        bytes.with_context(|| format!("no symbols in {}: build first", path.display()))
    };
    let mut made = Vec::new();
    let all = images.iter().map(|(name, build)| (name, Some(*build)));
    for (of, build) in [(&"kernel".into(), None)].into_iter().chain(all) {
        let bytes = match build {
            None => read(kernel.to_path_buf())?,
            Some(build) => read(symbols.join(format!("{build:016x}")))?,
        };
        let (build, table) = compact(&bytes, build, root).with_context(|| of.clone())?;
        let name = format!("{build:016x}");
        fs::write(to.join(&name), &table).with_context(|| format!("cannot write {name}"))?;
        made.push(Made {
            name,
            of: of.clone(),
            length: table.len() as u64,
        });
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_symbols_is_refused() {
        let root = Path::new("/");
        assert!(compact(b"nothing", Some(1), root).is_err());
        assert!(compact(b"", None, root).is_err());
        let to = std::env::temp_dir().join(format!("trefoil-compact-{}", std::process::id()));
        let nothing = Path::new("/nonexistent");
        let error = compact_all(nothing, nothing, &[], root, &to).expect_err("no kernel");
        assert!(error.to_string().contains("build first"), "{error}");
        fs::remove_dir_all(to).expect("it was made here");
    }
}
