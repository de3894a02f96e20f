//! Domain images as ELF files: static, position-independent, with nothing but relative relocations.
//!
//! The file is signed, so this is the second line of defence; all the same every number in it is
//! checked before it is used. References: ELF-64 object file format 1.5; x86-64 psABI, section 4.4
//! (relocations).

use core::ops::Range;

/// Most bytes that an image may take in memory.
pub const LARGEST_IMAGE: u64 = 64 * 1024 * 1024;
/// Most segments that are kept.
const MOST_SEGMENTS: usize = 8;
const PAGE: u64 = 4096;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_REL: u64 = 17;
const DT_TEXTREL: u64 = 22;
const DT_JMPREL: u64 = 23;
const DT_RELR: u64 = 36;
const R_X86_64_RELATIVE: u32 = 8;

/// What is wrong with the file.
pub type ElfError = &'static str;

/// A part of the file that is loaded. Addresses count from the start of the image in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Address.
    pub address: u64,
    /// Length in memory.
    pub memory: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Length in the file.
    pub file: u64,
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
}

/// A file whose headers have been checked.
#[derive(Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    segments: [Segment; MOST_SEGMENTS],
    count: usize,
    /// Address of the entry point.
    pub entry: u64,
    /// Start and end of what becomes read-only after relocation; equal if nothing does.
    pub relro: (u64, u64),
    rela: (u64, u64),
}

impl<'a> Elf<'a> {
    /// Checks the headers of `bytes`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        if bytes.len() < 64 || bytes[..7] != *b"\x7fELF\x02\x01\x01" {
            return Err("not a 64-bit little-endian ELF file");
        }
        if half(bytes, 16)? != 3 || half(bytes, 18)? != 62 {
            return Err("not a position-independent x86-64 program");
        }
        let entry = long(bytes, 24)?;
        let mut elf = Elf {
            bytes,
            segments: Default::default(),
            count: 0,
            entry,
            relro: (0, 0),
            rela: (0, 0),
        };
        elf.read_segments(long(bytes, 32)?, half(bytes, 54)?, half(bytes, 56)?)?;
        let inside = elf
            .segments()
            .iter()
            .any(|s| s.execute && within(entry, 1, s.address, s.file));
        if inside {
            Ok(elf)
        } else {
            Err("entry point outside the code")
        }
    }

    /// What the headers say, without the file.
    pub(crate) fn detached(&self) -> Elf<'static> {
        Elf {
            bytes: &[],
            ..*self
        }
    }

    /// The file again: `bytes` are those of which [`detached`](Self::detached) made this.
    pub(crate) fn attached<'b>(&self, bytes: &'b [u8]) -> Elf<'b> {
        Elf { bytes, ..*self }
    }

    /// The loaded parts, by ascending address, no two on one page.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }

    /// Bytes from the first address (0) to the end of the last segment.
    pub fn span(&self) -> u64 {
        self.segments()
            .last()
            .map_or(0, |segment| segment.address + segment.memory)
    }

    /// The bytes of a segment in the file.
    pub fn content(&self, segment: &Segment) -> &'a [u8] {
        &self.bytes[segment.offset as usize..(segment.offset + segment.file) as usize]
    }

    /// The relocations: place and value, both counted from the start of the image. The place is
    /// eight bytes inside a writable segment, the value inside the image.
    pub fn relocations(&self) -> impl Iterator<Item = Result<(u64, u64), ElfError>> + '_ {
        self.relocations_outside(0..0)
    }

    /// As [`relocations`](Self::relocations), without a look at those of the places `done`.
    pub fn relocations_outside(
        &self,
        done: Range<u64>,
    ) -> impl Iterator<Item = Result<(u64, u64), ElfError>> + '_ {
        // In one piece, as `read_dynamic` saw to.
        let start = self.file_offset(self.rela.0, self.rela.1);
        let table = start.and_then(|start| self.bytes.get(start as usize..));
        let table = table.and_then(|table| table.get(..self.rela.1 as usize));
        let (entries, _) = table
            .unwrap_or_default()
            .as_chunks::<8>()
            .0
            .as_chunks::<3>();
        let span = self.span();
        // The segment of the last place: the next one nearly always lies in it, too.
        let mut home = Segment::default();
        entries
            .iter()
            .filter(move |[place, ..]| !done.contains(&u64::from_le_bytes(*place)))
            .map(move |entry| self.relocation(entry, span, &mut home))
    }

    fn relocation(
        &self,
        entry: &[[u8; 8]; 3],
        span: u64,
        home: &mut Segment,
    ) -> Result<(u64, u64), ElfError> {
        let [place, info, value] = entry.map(u64::from_le_bytes);
        if info as u32 != R_X86_64_RELATIVE {
            return Err("relocation of an unknown type");
        }
        if place % 8 != 0 {
            return Err("relocation at a place that is not aligned");
        }
        if !within(place, 8, home.address, home.memory) {
            let mut segments = self.segments().iter();
            *home = *segments
                .find(|s| s.write && within(place, 8, s.address, s.memory))
                .ok_or("relocation outside the writable part")?;
        }
        if value > span {
            Err("relocation to outside the image")
        } else {
            Ok((place, value))
        }
    }

    fn read_segments(&mut self, table: u64, size: u16, count: u16) -> Result<(), ElfError> {
        if size != 56 {
            return Err("program header of the wrong size");
        }
        let mut dynamic = None;
        for index in 0..u64::from(count) {
            let at = table
                .checked_add(index * 56)
                .ok_or("program headers outside the file")?;
            let kind = word(self.bytes, at)?;
            let (address, memory) = (long(self.bytes, at + 16)?, long(self.bytes, at + 40)?);
            match kind {
                PT_LOAD => self.add(at)?,
                PT_DYNAMIC => dynamic = Some((address, memory)),
                PT_GNU_RELRO => {
                    self.relro = (
                        address,
                        address.checked_add(memory).ok_or("RELRO too large")?,
                    )
                }
                PT_INTERP => return Err("needs a dynamic linker"),
                PT_TLS => return Err("has thread-local storage"),
                _ => {}
            }
        }
        if self.count == 0 {
            return Err("nothing to load");
        }
        if self.relro.0 > self.relro.1 || self.relro.1.div_ceil(PAGE) > self.span().div_ceil(PAGE) {
            return Err("RELRO outside the image");
        }
        dynamic.map_or(Ok(()), |(address, length)| {
            self.read_dynamic(address, length)
        })
    }

    fn add(&mut self, at: u64) -> Result<(), ElfError> {
        let (flags, offset) = (word(self.bytes, at + 4)?, long(self.bytes, at + 8)?);
        let (address, file, memory) = (
            long(self.bytes, at + 16)?,
            long(self.bytes, at + 32)?,
            long(self.bytes, at + 40)?,
        );
        let segment = Segment {
            address,
            memory,
            offset,
            file,
            write: flags & 2 != 0,
            execute: flags & 1 != 0,
        };
        if segment.write && segment.execute {
            return Err("a segment is both writable and executable");
        }
        if !within(offset, file, 0, self.bytes.len() as u64) || file > memory {
            return Err("a segment lies outside the file");
        }
        if !within(address, memory, 0, LARGEST_IMAGE) {
            return Err("the image is too large");
        }
        if self.count > 0 && address / PAGE < self.span().div_ceil(PAGE) {
            return Err("segments overlap or share a page");
        }
        let place = self
            .segments
            .get_mut(self.count)
            .ok_or("too many segments")?;
        *place = segment;
        self.count += 1;
        Ok(())
    }

    fn read_dynamic(&mut self, address: u64, length: u64) -> Result<(), ElfError> {
        let (mut table, mut size) = (0, 0);
        for index in 0..length / 16 {
            let entry = address
                .checked_add(index * 16)
                .ok_or("dynamic section outside the file")?;
            let at = self
                .file_offset(entry, 16)
                .ok_or("dynamic section outside the file")?;
            let value = long(self.bytes, at + 8)?;
            match long(self.bytes, at)? {
                DT_NULL => break,
                DT_RELA => table = value,
                DT_RELASZ => size = value,
                DT_RELAENT if value != 24 => return Err("relocations of the wrong size"),
                DT_NEEDED => return Err("needs a shared library"),
                DT_TEXTREL => return Err("has relocations in its code"),
                DT_REL | DT_JMPREL | DT_RELR => return Err("has relocations of another form"),
                _ => {}
            }
        }
        if size > 0 && self.file_offset(table, size).is_none() {
            return Err("relocation table outside the file");
        }
        self.rela = (table, size);
        Ok(())
    }

    /// Where in the file the bytes stand that are loaded at `address`.
    fn file_offset(&self, address: u64, length: u64) -> Option<u64> {
        let segment = self
            .segments()
            .iter()
            .find(|s| within(address, length, s.address, s.file))?;
        Some(segment.offset + (address - segment.address))
    }
}

fn within(start: u64, length: u64, outer: u64, outer_length: u64) -> bool {
    start >= outer
        && start
            .checked_add(length)
            .is_some_and(|end| end - outer <= outer_length)
}

fn field<const N: usize>(bytes: &[u8], at: u64) -> Result<[u8; N], ElfError> {
    let tail = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    tail.and_then(|tail| tail.first_chunk())
        .copied()
        .ok_or("header outside the file")
}

fn half(bytes: &[u8], at: u64) -> Result<u16, ElfError> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn word(bytes: &[u8], at: u64) -> Result<u32, ElfError> {
    field(bytes, at).map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: u64) -> Result<u64, ElfError> {
    field(bytes, at).map(u64::from_le_bytes)
}
