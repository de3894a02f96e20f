//! A program's memory: copies from and to it, its heap, and how a program gets there.

use crate::disk::DiskFile;
use crate::errno::{EFAULT, EIO, ENOEXEC, ENOMEM, Error};
use crate::files::File;
pub use crate::space::Space;
use crate::space::error;
use crate::system::System;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::time;
use domain_rt::user::{self, UserRegisters};
use elf::ElfBytes;
use elf::abi::{ET_EXEC, PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use elf::segment::ProgramHeader;
use interfaces::{Handle, Protection, SpaceError, UserThread};

pub const PAGE: u64 = 4096;
/// Where the stack ends, and its size, in bytes.
const STACK_END: u64 = 0x7fff_f000_0000;
const STACK: u64 = 8 << 20;
/// Mappings whose place the program leaves open lie below this.
pub const MAPPINGS_END: u64 = 0x7f00_0000_0000;
/// The longest text that is read, in bytes.
const LONGEST: usize = 4096;
/// The most words of a program's arguments and environment together, and their bytes.
const MOST_WORDS: usize = 1024;
const MOST_BYTES: usize = 128 << 10;

const WRITE: Protection = Protection {
    read: true,
    write: true,
    execute: false,
};

/// A program in memory.
pub struct Program {
    pub space: Space,
    pub thread: Handle<dyn UserThread>,
    pub registers: UserRegisters,
    /// The number of the system call that it made last.
    pub asked: u64,
}

/// Where things are in a program's memory.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Where the heap begins, and where it ends.
    pub heap: u64,
    pub heap_end: u64,
    /// Where the next mapping ends.
    pub mappings: u64,
}

/// Goes through a range in as many calls as it takes.
fn all(
    at: u64,
    count: u64,
    step: impl Fn(u64, u64) -> Result<u64, SpaceError>,
) -> Result<(), Error> {
    let mut done = 0;
    while done < count {
        done += step(at + done * PAGE, count - done).map_err(error)?;
    }
    Ok(())
}

/// Unmaps whole pages.
pub fn unmap(space: &Space, at: u64, bytes: u64) -> Result<(), Error> {
    all(at, bytes.div_ceil(PAGE), |at, count| space.unmap(at, count))?;
    space.forget(at, bytes)
}

/// Maps pages of a file from its page `page` on, as far as it reaches; behind that there is SIGBUS.
pub fn map_file(
    space: &Space,
    (at, bytes): (u64, u64),
    (file, page): (&Arc<DiskFile>, u64),
    (bits, is_shared): (u64, bool),
) -> Result<(), Error> {
    // The object has as many pages as the file had when somebody asked last.
    file.bring_around(page)?;
    let view = file.view()?;
    let limit = view.limit().map_err(|_| ENOMEM)?;
    let count = limit.saturating_sub(page).min(bytes / PAGE);
    space.note(at, bytes, page, file)?;
    let protection = protection(bits);
    let mapped = match (count, is_shared) {
        (0, _) => Ok(()),
        (_, true) => space.map(at, view, page, count, protection),
        (_, false) => space.map_private(at, view, page, count, protection),
    };
    mapped.map_err(|why| match space.forget(at, bytes) {
        Ok(()) => error(why),
        Err(why) => why,
    })
}

/// Changes what may be done with whole pages; `bits` as `mprotect` has them.
pub fn protect(space: &Space, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
    let to = protection(bits);
    all(at, bytes.div_ceil(PAGE), |at, count| {
        space.protect(at, count, to)
    })
}

fn protection(bits: u64) -> Protection {
    Protection {
        read: bits & 1 != 0,
        write: bits & 2 != 0,
        execute: bits & 4 != 0,
    }
}

/// Maps pages of zeros.
pub fn map_zero(space: &Space, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
    let pages = bytes.div_ceil(PAGE);
    space.map_zero(at, pages, protection(bits)).map_err(error)
}

/// Why a copy met a page that did not become ready.
fn fault(error: Error) -> Error {
    if error == EIO { EFAULT } else { error }
}

/// Copies from the program's memory.
#[inline]
pub fn read(space: &Space, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
    match user::read(space, at, bytes) {
        done if done == bytes.len() => Ok(()),
        done => read_rest(space, at, bytes, done),
    }
}

/// Goes on where a page was missing.
#[cold]
fn read_rest(space: &Space, at: u64, bytes: &mut [u8], mut done: usize) -> Result<(), Error> {
    while done < bytes.len() {
        let from = at.checked_add(done as u64).ok_or(EFAULT)?;
        match user::read(space, from, &mut bytes[done..]) {
            0 => space.touch(from, false).map_err(fault)?,
            count => done += count,
        }
    }
    Ok(())
}

/// Copies into the program's memory.
#[inline]
pub fn write(space: &Space, at: u64, bytes: &[u8]) -> Result<(), Error> {
    match user::write(space, at, bytes) {
        done if done == bytes.len() => Ok(()),
        done => write_rest(space, at, bytes, done),
    }
}

/// Goes on where a page was missing.
#[cold]
fn write_rest(space: &Space, at: u64, bytes: &[u8], mut done: usize) -> Result<(), Error> {
    while done < bytes.len() {
        let to = at.checked_add(done as u64).ok_or(EFAULT)?;
        match user::write(space, to, &bytes[done..]) {
            0 => space.touch(to, true).map_err(fault)?,
            count => done += count,
        }
    }
    Ok(())
}

/// A number of eight bytes.
pub fn read_word(space: &Space, at: u64) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    read(space, at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A text that ends with a zero byte, without that.
pub fn read_text(space: &Space, at: u64) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut from = at;
    while text.len() < LONGEST {
        let count = (PAGE - from % PAGE).min(256) as usize;
        let mut piece = [0; 256];
        read(space, from, &mut piece[..count])?;
        let end = piece[..count].iter().position(|byte| *byte == 0);
        let more = &piece[..end.unwrap_or(count)];
        text.try_reserve(more.len()).map_err(|_| ENOMEM)?;
        text.extend_from_slice(more);
        if end.is_some() {
            return Ok(text);
        }
        from += count as u64;
    }
    Err(crate::errno::ENAMETOOLONG)
}

/// A list of texts that ends with a null pointer.
pub fn read_texts(space: &Space, at: u64) -> Result<Vec<Vec<u8>>, Error> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    while texts.len() < MOST_WORDS && bytes < MOST_BYTES {
        let pointer = read_word(space, at + 8 * texts.len() as u64)?;
        if pointer == 0 {
            return Ok(texts);
        }
        let text = read_text(space, pointer)?;
        bytes += text.len();
        texts.push(text);
    }
    Err(Error(7))
}

impl System {
    /// Puts a static program into a new address space, with its arguments and environment.
    pub fn load(
        &self,
        file: File,
        path: &[u8],
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<(Program, Layout), Error> {
        let bytes = self.files.content(file)?;
        let elf = ElfBytes::<LittleEndian>::minimal_parse(&bytes).map_err(|_| ENOEXEC)?;
        let segments = elf.segments().ok_or(ENOEXEC)?;
        // Others need a loader, or to be put somewhere.
        if elf.ehdr.e_type != ET_EXEC || elf.ehdr.e_machine != elf::abi::EM_X86_64 {
            return Err(ENOEXEC);
        }
        let space = Space::new(self.spaces.create().map_err(error)?);
        let mut end = 0;
        for segment in segments.iter().filter(|it| it.p_type == PT_LOAD) {
            let content = elf.segment_data(&segment).map_err(|_| ENOEXEC)?;
            end = end.max(load_segment(&space, &segment, content)?);
        }
        space
            .map_zero(STACK_END - STACK, STACK / PAGE, WRITE)
            .map_err(error)?;
        let headers = headers_at(&segments.iter().collect::<Vec<_>>(), elf.ehdr.e_phoff);
        let auxiliary = [
            (3, headers),
            (4, u64::from(elf.ehdr.e_phentsize)),
            (5, u64::from(elf.ehdr.e_phnum)),
            (6, PAGE),
            (9, elf.ehdr.e_entry),
            (17, 100),
        ];
        // A machine without a source is told of in CAVEATS.
        let clock = [
            time::now().to_le_bytes(),
            time::wall_seconds().to_le_bytes(),
        ]
        .concat();
        let seed = self.random(16).map_or(clock, |seed| Vec::from(&seed[..]));
        let words = [arguments, environment];
        let stack = fill_stack(&space, path, &seed, words, &auxiliary)?;
        let program = Program {
            thread: space.thread().map_err(error)?,
            space,
            registers: UserRegisters {
                rip: elf.ehdr.e_entry,
                rsp: stack,
                ..UserRegisters::default()
            },
            asked: 0,
        };
        let layout = Layout {
            heap: end,
            heap_end: end,
            mappings: MAPPINGS_END,
        };
        Ok((program, layout))
    }
}

/// Where the program finds its own headers: in the segment that begins with the file.
fn headers_at(segments: &[ProgramHeader], offset: u64) -> u64 {
    let first = segments.iter().find(|it| it.p_type == PT_LOAD);
    first.map_or(0, |it| {
        it.p_vaddr.wrapping_sub(it.p_offset).wrapping_add(offset)
    })
}

/// Maps a segment and copies its content; the first page behind it.
fn load_segment(space: &Space, segment: &ProgramHeader, content: &[u8]) -> Result<u64, Error> {
    let start = segment.p_vaddr / PAGE * PAGE;
    let end = segment
        .p_vaddr
        .checked_add(segment.p_memsz)
        .ok_or(ENOEXEC)?;
    let end = end.checked_next_multiple_of(PAGE).ok_or(ENOEXEC)?;
    if content.len() as u64 > segment.p_memsz || end <= start {
        return Err(ENOEXEC);
    }
    let count = (end - start) / PAGE;
    space.map_zero(start, count, WRITE).map_err(error)?;
    write(space, segment.p_vaddr, content)?;
    let to = Protection {
        read: true,
        write: segment.p_flags & PF_W != 0,
        execute: segment.p_flags & PF_X != 0,
    };
    all(start, count, |at, count| space.protect(at, count, to))?;
    Ok(end)
}

/// Puts arguments, environment and what else a program finds on its stack there (System V ABI for
/// x86-64, 3.4.1); the stack pointer.
fn fill_stack(
    space: &Space,
    path: &[u8],
    seed: &[u8],
    lists: [&[Vec<u8>]; 2],
    auxiliary: &[(u64, u64)],
) -> Result<u64, Error> {
    let mut at = STACK_END - 64;
    let mut push = |text: &[u8]| -> Result<u64, Error> {
        at -= text.len() as u64 + 1;
        write(space, at, text)?;
        Ok(at)
    };
    let name = push(path)?;
    let seed = push(seed)?;
    let mut words = alloc::vec![lists[0].len() as u64];
    for list in lists {
        for text in list {
            words.push(push(text)?);
        }
        words.push(0);
    }
    for (kind, value) in auxiliary.iter().chain(&[(25, seed), (31, name), (0, 0)]) {
        words.extend([*kind, *value]);
    }
    let pointer = (at - 8 * words.len() as u64) & !15;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    write(space, pointer, &bytes)?;
    Ok(pointer)
}
