//! The functions of the kernel's image, by name and by address.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol, SymbolKind};

/// The functions, by address.
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Those of the ELF file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| path.display().to_string())?;
        let file = object::File::parse(&*data)?;
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text);
        let mut all: Vec<_> = functions
            .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_string())))
            .collect();
        all.sort();
        Ok(Symbols(all))
    }

    /// The address of the one function that has `part` in its (mangled) name.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find(&self, part: &str) -> Result<u64> {
        let mut found = self.0.iter().filter(|(_, name)| name.contains(part));
        match (found.next(), found.next()) {
            (Some((address, _)), None) => Ok(*address),
            (None, _) => bail!("the kernel has no function {part}"),
            _ => bail!("the kernel has several functions {part}"),
        }
    }

    /// The name of the function in which `address` is, if any is before it.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|(start, _)| *start <= address);
        Some(&self.0.get(behind.checked_sub(1)?)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_both_ways() {
        let all = [(16, "_R4send"), (32, "_R4stop"), (64, "_R4step")];
        let symbols = Symbols(all.map(|(at, name)| (at, name.to_string())).to_vec());
        assert_eq!(symbols.find("4send").unwrap(), 16);
        assert!(symbols.find("4st").is_err());
        assert!(symbols.find("4none").is_err());
        assert_eq!(symbols.name(40), Some("_R4stop"));
        assert_eq!(symbols.name(15), None);
    }
}
