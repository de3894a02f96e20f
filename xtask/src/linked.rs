//! Which source lines are linked into an ELF file, by its debug information (DWARF 5).
//!
//! A function is linked if code made of it, inlined or not, is in the file; then all lines with
//! code from its `fn` to its closing brace count. Lines outside of such functions count if the line
//! tables name them (macros, closures in statics).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit};
use object::{Object, ObjectSection, SectionFlags, elf::SHF_EXECINSTR};
use trefoil_gate::lexer::{self, Token};

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<'a, 'a, Reader<'a>>;

/// What is linked of each source file.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Lines that the line tables name.
    named: BTreeSet<u64>,
    /// Lines on which linked functions begin.
    functions: BTreeSet<u64>,
}

/// What is linked, by source file.
pub type Linked = BTreeMap<PathBuf, Source>;

impl Source {
    /// How many lines of `text`, which is the file, are linked.
    pub fn count(&self, text: &str) -> usize {
        let tokens = lexer::code_tokens(text);
        let mut lines: BTreeSet<u64> = self.named.clone();
        for &start in &self.functions {
            let near = |token: &&Token<'_>| {
                (start..start + 4).contains(&(token.line as u64)) && token.text == "fn"
            };
            if let Some(at) = tokens.iter().position(|token| near(&token)) {
                lines.extend(body(&tokens[at..]).iter().map(|token| token.line as u64));
            }
        }
        lines.len()
    }
}

/// The tokens of the function that begins here, up to its closing brace.
fn body<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 && token.text == "}" {
            return &tokens[..=at];
        }
    }
    tokens
}

/// Adds what is linked into the ELF file `path`.
///
/// # Errors
/// If it cannot be read or its debug information is damaged.
pub fn add(path: &Path, linked: &mut Linked) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| path.display().to_string())?;
    let code: Vec<_> = file
        .sections()
        .filter_map(|section| executable(&section))
        .collect();
    let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
        let data = file
            .section_by_name(id.name())
            .and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
    };
    let dwarf = Dwarf::load(section)?;
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        add_unit(&dwarf, &dwarf.unit(header)?, &code, linked)?;
    }
    Ok(())
}

/// The addresses of a section, if it holds code.
fn executable<'a>(section: &impl ObjectSection<'a>) -> Option<Range<u64>> {
    let SectionFlags::Elf { sh_flags } = section.flags() else {
        return None;
    };
    let addresses = section.address()..section.address() + section.size();
    if sh_flags & u64::from(SHF_EXECINSTR) != 0 {
        Some(addresses)
    } else {
        None
    }
}

fn add_unit(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    code: &[Range<u64>],
    linked: &mut Linked,
) -> Result<()> {
    let names = file_names(dwarf, unit)?;
    add_named_lines(unit, &names, code, linked)?;
    let mut entries = unit.entries();
    while let Some((_, entry)) = entries.next_dfs()? {
        let is_function = matches!(
            entry.tag(),
            gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine
        );
        if !is_function || !has_code(dwarf, unit, entry, code)? {
            continue;
        }
        if let Some((file, line)) = declaration(dwarf, unit, entry)?
            && let Some(name) = names.get(&file)
        {
            linked
                .entry(name.clone())
                .or_default()
                .functions
                .insert(line);
        }
    }
    Ok(())
}

fn add_named_lines(
    unit: &Unit<Reader<'_>>,
    names: &BTreeMap<u64, PathBuf>,
    code: &[Range<u64>],
    linked: &mut Linked,
) -> Result<()> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    // What the linker dropped is left in the tables at addresses that hold no code.
    let mut is_linked = None;
    while let Some((_, row)) = rows.next_row()? {
        let address = row.address();
        let has_code =
            *is_linked.get_or_insert_with(|| code.iter().any(|range| range.contains(&address)));
        if row.end_sequence() {
            is_linked = None;
            continue;
        }
        if let (true, Some(line), Some(name)) = (has_code, row.line(), names.get(&row.file_index()))
        {
            linked
                .entry(name.clone())
                .or_default()
                .named
                .insert(line.get());
        }
    }
    Ok(())
}

/// Whether the function has code that was not dropped.
fn has_code(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    entry: &Entry<'_>,
    code: &[Range<u64>],
) -> Result<bool> {
    let mut ranges = dwarf.die_ranges(unit, entry)?;
    while let Some(range) = ranges.next()? {
        if range.begin < range.end && code.iter().any(|code| code.contains(&range.begin)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// File and line of the function's declaration; none for closures, which stand in another function.
fn declaration(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    entry: &Entry<'_>,
) -> Result<Option<(u64, u64)>> {
    let mut entry = entry.clone();
    // From the inlined copy to the function, from there to its declaration in an impl.
    for _ in 0..4 {
        let origin = match entry.attr_value(gimli::DW_AT_abstract_origin)? {
            None => entry.attr_value(gimli::DW_AT_specification)?,
            origin => origin,
        };
        let offset = match origin {
            Some(AttributeValue::UnitRef(offset)) => Some(offset),
            Some(AttributeValue::DebugInfoRef(offset)) => offset.to_unit_offset(&unit.header),
            _ => None,
        };
        let Some(offset) = offset else {
            break;
        };
        entry = unit.entry(offset)?;
    }
    if let Some(name) = entry.attr_value(gimli::DW_AT_name)?
        && dwarf
            .attr_string(unit, name)?
            .to_string_lossy()
            .contains("{closure")
    {
        return Ok(None);
    }
    let file = match entry.attr_value(gimli::DW_AT_decl_file)? {
        Some(AttributeValue::FileIndex(file)) => Some(file),
        file => file.and_then(|file| file.udata_value()),
    };
    let line = entry
        .attr_value(gimli::DW_AT_decl_line)?
        .and_then(|line| line.udata_value());
    Ok(file.zip(line))
}

/// The source files of a unit by their numbers.
fn file_names(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
) -> Result<BTreeMap<u64, PathBuf>> {
    let mut names = BTreeMap::new();
    let Some(program) = &unit.line_program else {
        return Ok(names);
    };
    let text = |value: AttributeValue<Reader<'_>>| -> Result<String> {
        Ok(dwarf
            .attr_string(unit, value)?
            .to_string_lossy()
            .into_owned())
    };
    let base = unit
        .comp_dir
        .map(|dir| dir.to_string_lossy().into_owned())
        .unwrap_or_default();
    let header = program.header();
    for (index, file) in header.file_names().iter().enumerate() {
        let folder = match file.directory(header) {
            Some(folder) => text(folder)?,
            None => String::new(),
        };
        let path = Path::new(&base).join(folder).join(text(file.path_name())?);
        let first = if header.version() >= 5 { 0 } else { 1 };
        names.insert(index as u64 + first, plain(&path));
    }
    Ok(names)
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => (),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(
            plain(Path::new("/w/kernel/../lib/./a.rs")),
            Path::new("/w/lib/a.rs")
        );
    }

    #[test]
    fn whole_functions_count_and_nothing_else() {
        let text = "struct A;\nfn a(\n    x: u8,\n) -> u8 {\n    // why\n    let y = { x };\n\n    y\n}\nfn b() {\n    c();\n}\n";
        let source = |named: &[u64], functions: &[u64]| Source {
            named: named.iter().copied().collect(),
            functions: functions.iter().copied().collect(),
        };
        assert_eq!(source(&[], &[2]).count(text), 6);
        assert_eq!(source(&[6, 8], &[2]).count(text), 6);
        assert_eq!(source(&[11], &[]).count(text), 1);
        assert_eq!(source(&[], &[500]).count(text), 0);
    }

    /// This very test is a program with debug information.
    #[test]
    fn our_own_lines_are_found_and_unknown_files_are_refused() {
        let mut linked = Linked::new();
        add(&std::env::current_exe().expect("we run"), &mut linked).expect("well-formed");
        let own = linked
            .iter()
            .find(|(file, _)| file.ends_with("xtask/src/linked.rs"));
        let text = include_str!("linked.rs");
        assert!(own.is_some_and(|(_, source)| source.count(text) > 100));
        assert!(add(Path::new("/dev/null"), &mut linked).is_err());
    }
}
