//! The files with symbols, by the builds that the kernel tells of.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use stacktext::{Files, Named, Rule, Symbols};

use crate::names::Names;
use crate::table::Table;

/// A file with symbols.
pub struct DebugFile {
    /// Its functions and lines.
    pub(crate) names: Names,
    /// How to get out of a function.
    pub(crate) table: Table,
    /// The address of what the kernel counts offsets from.
    pub(crate) start: u64,
}

/// All of them, as they are needed.
pub struct DebugFiles {
    folder: PathBuf,
    kernels: Vec<PathBuf>,
    root: PathBuf,
    read: HashMap<Option<u64>, Result<DebugFile, String>>,
}

/// Files that are kernels, beside the one that was booted.
const KERNELS: [&str; 3] = ["trefoil", "trefoil-testing", "hosted-core"];

impl DebugFiles {
    /// Of a system that was built into `out` and boots `kernel`; `root`: where the sources lie.
    pub fn new(out: &Path, kernel: &Path, root: &Path) -> Self {
        let others = KERNELS.iter().map(|name| out.join(name));
        DebugFiles {
            folder: out.join(crate::FOLDER),
            kernels: [kernel.to_path_buf()].into_iter().chain(others).collect(),
            root: root.to_path_buf(),
            read: HashMap::new(),
        }
    }

    fn image(&self, build: u64) -> Result<DebugFile> {
        let path = self.folder.join(format!("{build:016x}"));
        let bytes =
            fs::read(path).map_err(|_| anyhow::anyhow!("no symbols of build {build:016x}"))?;
        DebugFile::parse(&bytes, 0, &self.root)
    }

    fn kernel(&self, build: Option<u64>) -> Result<DebugFile> {
        for path in &self.kernels {
            let Ok(bytes) = fs::read(path) else { continue };
            if let Ok((start, found)) = code_of(&bytes)
                && build.is_none_or(|build| build == found)
            {
                return DebugFile::parse(&bytes, start, &self.root);
            }
        }
        match build {
            Some(build) => anyhow::bail!("no symbols of kernel {build:016x}"),
            None => anyhow::bail!("no symbols of the kernel"),
        }
    }
}

impl Files for DebugFiles {
    type File = DebugFile;

    fn get(&mut self, build: Option<u64>, is_kernel: bool) -> Result<&DebugFile, &str> {
        if !self.read.contains_key(&build) {
            let found = match is_kernel {
                true => self.kernel(build),
                false => self.image(build.unwrap_or_default()),
            };
            let found = found.map_err(|error| format!("{error:#}"));
            self.read.insert(build, found);
        }
        self.read[&build].as_ref().map_err(String::as_str)
    }
}

impl Symbols for DebugFile {
    fn names(&self, offset: u64) -> Vec<Named> {
        let address = self.start.checked_add(offset);
        address.map_or_else(Vec::new, |address| self.names.at(address).to_vec())
    }

    fn rule(&self, offset: u64) -> Option<Rule> {
        self.table.rule(self.start.checked_add(offset)?)
    }
}

impl DebugFile {
    pub(crate) fn parse(bytes: &[u8], start: u64, root: &Path) -> Result<DebugFile> {
        let file = object::File::parse(bytes)?;
        let section = |name: &str| {
            let found = file.section_by_name(name);
            let data = found.and_then(|section| section.uncompressed_data().ok());
            data.unwrap_or_default().into_owned()
        };
        ensure!(!section(".debug_info").is_empty(), "symbols were stripped");
        Ok(DebugFile {
            names: Names::new(&section, symbols(&file), root)?,
            table: Table::new(section(".debug_frame")),
            start,
        })
    }
}

/// Names of functions by address, for code that the debug information does not cover.
fn symbols(file: &object::File<'_>) -> Vec<(u64, String)> {
    let named = file
        .symbols()
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text);
    let mut all: Vec<_> = named
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_string())))
        .collect();
    all.sort_unstable();
    all
}

/// Where the code of a kernel starts, and its build, as the kernel says it: a hash of the words
/// there.
pub(crate) fn code_of(bytes: &[u8]) -> Result<(u64, u64)> {
    let file = object::File::parse(bytes)?;
    let symbol = |names: [&str; 2]| {
        let mut symbols = file.symbols();
        let found = symbols.find(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)));
        found.map(|symbol| symbol.address()).context("not a kernel")
    };
    let start = symbol(["__text_start", "__executable_start"])?;
    let end = symbol(["__text_end", "etext"])?;
    let length = end
        .checked_sub(start)
        .context("code ends before it starts")?;
    ensure!(length <= bytes.len() as u64 * 2, "more code than file");
    let mut memory = vec![0; length as usize];
    for segment in file.segments() {
        let Ok(data) = segment.data() else { continue };
        for (at, byte) in (segment.address()..).zip(data) {
            if let Some(place) = at.checked_sub(start)
                && let Some(there) = memory.get_mut(place as usize)
            {
                *there = *byte;
            }
        }
    }
    let words = memory
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let build = words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x100_0000_01b3)
    });
    Ok((start, build))
}
