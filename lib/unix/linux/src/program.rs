//! A static program: its file (ELF, System V ABI for x86-64), and the stack that it begins with.

use crate::errno::{ENOEXEC, ENOMEM, Error};
use crate::layout::Layout;
use crate::memory::{EXECUTE, Memory, PAGE, READ, WRITE, write};
use alloc::vec::Vec;
use elf::ElfBytes;
use elf::abi::{EM_X86_64, ET_EXEC, PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use elf::segment::ProgramHeader;

/// Addresses of programs end here: a page before those that a processor refuses, as on Linux.
pub const USER_END: u64 = (1 << 47) - PAGE;
/// Where the stack ends, and its size, in bytes.
const STACK_END: u64 = 0x7fff_f000_0000;
const STACK: u64 = 8 << 20;

/// A program's file.
pub struct Image<'a> {
    elf: ElfBytes<'a, LittleEndian>,
    segments: Vec<ProgramHeader>,
}

/// What a program is told at its begin.
pub struct Words<'a> {
    /// Under which path it was found.
    pub path: &'a [u8],
    /// Its arguments, the first of which is its name.
    pub arguments: &'a [Vec<u8>],
    /// Its environment.
    pub environment: &'a [Vec<u8>],
    /// Sixteen random bytes.
    pub seed: &'a [u8],
}

/// How a program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Its first instruction.
    pub entry: u64,
    /// The stack pointer.
    pub stack: u64,
    /// Where its heap and mappings are.
    pub layout: Layout,
}

impl<'a> Image<'a> {
    /// Reads the headers.
    ///
    /// # Errors
    /// `ENOEXEC`: it is no program for this machine, or one that has to be put somewhere or needs a
    /// loader.
    pub fn new(file: &'a [u8]) -> Result<Self, Error> {
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|_| ENOEXEC)?;
        let segments = elf.segments().ok_or(ENOEXEC)?;
        if elf.ehdr.e_type != ET_EXEC || elf.ehdr.e_machine != EM_X86_64 {
            return Err(ENOEXEC);
        }
        let segments = segments.iter().filter(|it| it.p_type == PT_LOAD).collect();
        Ok(Image { elf, segments })
    }

    /// Puts the program into an empty space, with its words on a stack.
    ///
    /// # Errors
    /// `ENOEXEC`: the headers contradict each other. Or those of [`Memory::map_zero`], and of
    /// copies: the program wants addresses that it cannot have, or there are too many words.
    pub fn load(&self, space: &impl Memory, words: &Words<'_>) -> Result<Begin, Error> {
        let mut end = 0;
        for segment in &self.segments {
            let content = self.elf.segment_data(segment).map_err(|_| ENOEXEC)?;
            end = end.max(load_segment(space, segment, content)?);
        }
        let header = &self.elf.ehdr;
        let auxiliary = [
            (3, self.headers_at()),
            (4, u64::from(header.e_phentsize)),
            (5, u64::from(header.e_phnum)),
            (6, PAGE),
            (9, header.e_entry),
            (17, 100),
        ];
        Ok(Begin {
            entry: header.e_entry,
            stack: fill_stack(space, words, &auxiliary)?,
            layout: Layout::new(end),
        })
    }

    /// Where the program finds its own headers: in the segment that begins with the file.
    fn headers_at(&self) -> u64 {
        let offset = self.elf.ehdr.e_phoff;
        let first = self.segments.first();
        first.map_or(0, |it| {
            it.p_vaddr.wrapping_sub(it.p_offset).wrapping_add(offset)
        })
    }
}

/// Maps a segment and copies its content; the first page behind it.
fn load_segment(
    space: &impl Memory,
    segment: &ProgramHeader,
    content: &[u8],
) -> Result<u64, Error> {
    let start = segment.p_vaddr / PAGE * PAGE;
    let end = segment
        .p_vaddr
        .checked_add(segment.p_memsz)
        .ok_or(ENOEXEC)?;
    let end = end.checked_next_multiple_of(PAGE).ok_or(ENOEXEC)?;
    if content.len() as u64 > segment.p_memsz || end <= start {
        return Err(ENOEXEC);
    }
    space.map_zero(start, end - start, READ | WRITE)?;
    write(space, segment.p_vaddr, content)?;
    let bit = |flag, bit| if segment.p_flags & flag != 0 { bit } else { 0 };
    let bits = READ | bit(PF_W, WRITE) | bit(PF_X, EXECUTE);
    space.protect(start, end - start, bits)?;
    Ok(end)
}

/// Maps a stack, and puts arguments, environment, the auxiliary vector and what else a program
/// finds there (System V ABI for x86-64, 3.4.1); the stack pointer.
///
/// # Errors
/// `EFAULT`: there are too many words. Or those of [`Memory::map_zero`].
pub fn fill_stack(
    space: &impl Memory,
    words: &Words<'_>,
    auxiliary: &[(u64, u64)],
) -> Result<u64, Error> {
    space.map_zero(STACK_END - STACK, STACK, READ | WRITE)?;
    let mut at = STACK_END - 64;
    let mut push = |text: &[u8]| -> Result<u64, Error> {
        at -= text.len() as u64 + 1;
        write(space, at, text)?;
        Ok(at)
    };
    let name = push(words.path)?;
    let seed = push(words.seed)?;
    let mut table = Vec::new();
    let count = words.arguments.len() + words.environment.len() + 3;
    let count = count + 2 * (auxiliary.len() + 3);
    table.try_reserve_exact(count).map_err(|_| ENOMEM)?;
    table.push(words.arguments.len() as u64);
    for list in [words.arguments, words.environment] {
        for text in list {
            table.push(push(text)?);
        }
        table.push(0);
    }
    for (kind, value) in auxiliary.iter().chain(&[(25, seed), (31, name), (0, 0)]) {
        table.extend([*kind, *value]);
    }
    let pointer = (at - 8 * table.len() as u64) & !15;
    crate::memory::write_words(space, pointer, &table)?;
    Ok(pointer)
}

#[cfg(test)]
mod tests;
