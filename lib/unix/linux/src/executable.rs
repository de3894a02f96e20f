//! A program in a file that is mapped: what of it goes where (ELF, System V ABI for x86-64), and
//! the interpreter that it asks for.
//!
//! Nothing of a file is believed. All numbers of its headers are checked here, once, into an
//! [`Executable`]; whoever maps it has page numbers and lengths that fit each other.

use crate::errno::{EINVAL, ELIBBAD, ENOEXEC, ENOMEM, Error};
use crate::memory::{EXECUTE, PAGE, READ, WRITE};
use crate::program::USER_END;
use alloc::vec::Vec;
use elf::abi::{EM_X86_64, ET_DYN, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader, parse_ident};
use elf::segment::{ProgramHeader, SegmentTable};

/// The bytes of a file's beginning that [`Executable::new`] has to see, if there are as many.
pub const HEAD: usize = 4096;
/// The bytes of the header.
const HEADER: usize = 64;
/// The bytes of an entry of the table of segments.
const ENTRY: usize = 56;
/// The longest table of segments, as on Linux.
const MOST_ENTRIES: usize = (64 << 10) / ENTRY;
/// The longest path of an interpreter, as on Linux.
const LONGEST_PATH: u64 = 4096;

/// A program, as its headers describe it.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// It can be put anywhere: all addresses count from where it is put.
    pub is_movable: bool,
    /// Its first instruction.
    pub entry: u64,
    /// Where the table of segments is in memory, and its entries; 0: nowhere.
    pub headers: (u64, u64),
    /// What is mapped, in rising order of addresses.
    pub segments: Vec<Segment>,
    /// Where the interpreter's path is in the file: offset and length.
    pub interpreter: Option<(u64, usize)>,
}

/// A part of a file in memory. Behind the file's bytes there are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first address, of a page, and the first behind it, of a page.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// The page of the file that is at `start`.
    pub page: u64,
    /// Where the file's bytes end.
    pub content_end: u64,
    /// There is more of it in memory than in the file: zeros.
    pub has_zeros: bool,
    /// What may be done there, as `mprotect` says it.
    pub bits: u64,
}

impl Executable {
    /// Reads the headers. `head` has the file's first bytes, [`HEAD`] of them if the file is as
    /// long; `read` gives others, by offset and length.
    ///
    /// # Errors
    /// `ENOEXEC`: it is no program for this machine, or its headers contradict each other.
    /// `ENOMEM`, and those of `read`.
    pub fn new(
        head: &[u8],
        read: impl FnOnce(u64, usize) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let header = header_of(head)?;
        let count = usize::from(header.e_phnum);
        if usize::from(header.e_phentsize) != ENTRY || !(1..=MOST_ENTRIES).contains(&count) {
            return Err(ENOEXEC);
        }
        let start = usize::try_from(header.e_phoff).map_err(|_| ENOEXEC)?;
        let end = start.checked_add(count * ENTRY).ok_or(ENOEXEC)?;
        let elsewhere;
        let table = match head.get(start..end) {
            Some(table) => table,
            None => {
                elsewhere = read(header.e_phoff, count * ENTRY)?;
                elsewhere.get(..count * ENTRY).ok_or(ENOEXEC)?
            }
        };
        let table = SegmentTable::new(LittleEndian, Class::ELF64, table);
        let mut program = Executable {
            is_movable: header.e_type == ET_DYN,
            entry: header.e_entry,
            headers: (0, u64::from(header.e_phnum)),
            segments: Vec::new(),
            interpreter: None,
        };
        program
            .segments
            .try_reserve_exact(count)
            .map_err(|_| ENOMEM)?;
        for entry in table {
            program.add(&entry, header.e_phoff)?;
        }
        match program.segments.is_empty() {
            true => Err(ENOEXEC),
            false => Ok(program),
        }
    }

    /// Notes an entry of the table, which itself stands at `table` in the file.
    fn add(&mut self, entry: &ProgramHeader, table: u64) -> Result<(), Error> {
        match entry.p_type {
            PT_INTERP if self.interpreter.is_none() => {
                // With the zero byte at its end, so two at least.
                if !(2..=LONGEST_PATH).contains(&entry.p_filesz) {
                    return Err(ENOEXEC);
                }
                self.interpreter = Some((entry.p_offset, entry.p_filesz as usize));
            }
            PT_LOAD if entry.p_memsz > 0 => {
                let segment = Segment::new(entry)?;
                if self
                    .segments
                    .last()
                    .is_some_and(|last| last.end > segment.start)
                {
                    return Err(ENOEXEC);
                }
                if (entry.p_offset..entry.p_offset.saturating_add(entry.p_filesz)).contains(&table)
                {
                    self.headers.0 = entry.p_vaddr + (table - entry.p_offset);
                }
                self.segments.push(segment);
            }
            _ => {}
        }
        Ok(())
    }

    /// The addresses from the first to behind the last that it takes, of pages.
    pub fn span(&self) -> (u64, u64) {
        let ends = (self.segments.first(), self.segments.last());
        match ends {
            (Some(first), Some(last)) => (first.start, last.end),
            _ => (0, 0),
        }
    }

    /// The interpreter's path, of the bytes that are there for it.
    ///
    /// # Errors
    /// `ENOEXEC`: it does not end with a zero byte, or is empty.
    pub fn path_of(bytes: &[u8]) -> Result<&[u8], Error> {
        let (last, path) = bytes.split_last().ok_or(ENOEXEC)?;
        match *last == 0 && !path.is_empty() && !path.contains(&0) {
            true => Ok(path),
            false => Err(ENOEXEC),
        }
    }

    /// It as an interpreter, which can have none itself.
    ///
    /// # Errors
    /// `ELIBBAD`.
    pub fn as_interpreter(self) -> Result<Self, Error> {
        match self.interpreter {
            None => Ok(self),
            Some(_) => Err(ELIBBAD),
        }
    }
}

impl Segment {
    fn new(entry: &ProgramHeader) -> Result<Self, Error> {
        let within = |end: Option<u64>| end.filter(|end| *end <= USER_END).ok_or(ENOEXEC);
        let start = entry.p_vaddr / PAGE * PAGE;
        let content_end = within(entry.p_vaddr.checked_add(entry.p_filesz))?;
        let end = within(entry.p_vaddr.checked_add(entry.p_memsz))?;
        let in_file = entry.p_offset.checked_add(entry.p_filesz);
        let fits = in_file.is_some_and(|end| i64::try_from(end).is_ok());
        if entry.p_filesz > entry.p_memsz || entry.p_vaddr % PAGE != entry.p_offset % PAGE || !fits
        {
            return Err(ENOEXEC);
        }
        let bit = |flag, bit| if entry.p_flags & flag != 0 { bit } else { 0 };
        Ok(Segment {
            start,
            end: end.next_multiple_of(PAGE),
            page: entry.p_offset / PAGE,
            content_end,
            has_zeros: entry.p_memsz > entry.p_filesz,
            bits: bit(PF_R, READ) | bit(PF_W, WRITE) | bit(PF_X, EXECUTE),
        })
    }

    /// The same, put `base` higher.
    ///
    /// # Errors
    /// `EINVAL`: there are no such addresses.
    pub fn moved(mut self, base: u64) -> Result<Self, Error> {
        let end = self.end.checked_add(base).filter(|end| *end <= USER_END);
        (self.start, self.end) = (self.start.wrapping_add(base), end.ok_or(EINVAL)?);
        self.content_end = self.content_end.wrapping_add(base);
        Ok(self)
    }

    /// The bytes of whole pages that come from the file.
    pub fn mapped_bytes(&self) -> u64 {
        match self.content_end > self.start {
            true => self.content_end.next_multiple_of(PAGE) - self.start,
            false => 0,
        }
    }
}

fn header_of(head: &[u8]) -> Result<FileHeader<LittleEndian>, Error> {
    let (ident, tail) = head
        .get(..HEADER)
        .and_then(|it| it.split_at_checked(16))
        .ok_or(ENOEXEC)?;
    let ident = parse_ident::<LittleEndian>(ident).map_err(|_| ENOEXEC)?;
    if ident.1 != Class::ELF64 {
        return Err(ENOEXEC);
    }
    let header = FileHeader::parse_tail(ident, tail).map_err(|_| ENOEXEC)?;
    let is_program = matches!(header.e_type, ET_EXEC | ET_DYN);
    match is_program && header.e_machine == EM_X86_64 {
        true => Ok(header),
        false => Err(ENOEXEC),
    }
}

/// What the first line of a script says.
#[derive(Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// The path of the program that runs it.
    pub interpreter: &'a [u8],
    /// The one argument for that, in front of the script's path.
    pub argument: Option<&'a [u8]>,
}

/// The bytes of a file in which the first line of a script has to end, as on Linux.
const FIRST_LINE: usize = 256;

/// The first line of a script, `#!` and what follows; `None`: it is no script.
///
/// # Errors
/// `ENOEXEC`: it names no interpreter, or one whose name is cut off.
pub fn script(head: &[u8]) -> Result<Option<Script<'_>>, Error> {
    let Some(line) = head.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = &line[..line.len().min(FIRST_LINE - 2)];
    let is_whole = line.contains(&b'\n') || head.len() < FIRST_LINE;
    let line = line
        .split(|byte| matches!(byte, b'\n' | 0))
        .next()
        .unwrap_or_default();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = line.trim_ascii();
    let end = line.iter().position(is_blank);
    let (interpreter, rest) = line.split_at(end.unwrap_or(line.len()));
    // A path that is cut off would be another program's.
    if interpreter.is_empty() || end.is_none() && !is_whole {
        return Err(ENOEXEC);
    }
    let rest = rest.trim_ascii();
    Ok(Some(Script {
        interpreter,
        argument: (!rest.is_empty()).then_some(rest),
    }))
}

#[cfg(test)]
mod tests;
