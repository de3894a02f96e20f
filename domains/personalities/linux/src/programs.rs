//! How a program gets into memory: from the boot archive, where it is copied, or from a disk, where
//! it is mapped, with the interpreter that it asks for; and scripts.

use crate::disk::{Access, DiskFile, Mapped, OnDisk};
use crate::errno::{EACCES, EINVAL, ELOOP, ENOENT, ENOEXEC, ESTALE, Error};
use crate::files::Open;
use crate::memory::{Program, write};
use crate::parts::Mm;
use crate::shared;
use crate::space::Space;
use crate::special::Special;
use crate::system::System;
use crate::walk::{Node, Stand, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::time;
use domain_rt::user::UserRegisters;
use guests::archive::File;
use guests::space::error;
use linux::cred::{Cred, EXECUTE};
use linux::executable::{Executable, HEAD, Segment, script};
use linux::files::{KIND, REGULAR};
use linux::layout::Layout;
use linux::memory::{Memory, PAGE, WRITE};
use linux::program::{Image, Words, fill_stack};
use vfs::again::look_again;

/// Where programs are put that may be anywhere.
const MOVABLE: u64 = 0x5555_5555_4000;
/// How many interpreters of scripts may stand in front of each other, as on Linux.
const MOST_SCRIPTS: usize = 5;
/// The kinds of what stands in the auxiliary vector (`linux/auxvec.h`).
mod aux {
    pub const HEADERS: u64 = 3;
    pub const HEADER_SIZE: u64 = 4;
    pub const HEADER_COUNT: u64 = 5;
    pub const PAGE_SIZE: u64 = 6;
    pub const BASE: u64 = 7;
    pub const FLAGS: u64 = 8;
    pub const ENTRY: u64 = 9;
    pub const USERS: [u64; 4] = [11, 12, 13, 14];
    pub const TICKS: u64 = 17;
    pub const SECURE: u64 = 23;
    pub const SIGNAL_STACK: u64 = 51;
}
/// Clock ticks of a second, as programs are told times in them.
const TICKS: u64 = 100;
/// Bytes that the frame of a signal takes at most.
const SIGNAL_STACK: u64 = 3632;

/// A file that may be executed.
pub enum Source {
    Archive(File),
    /// With its path from the root on.
    Disk(Arc<DiskFile>, Vec<u8>),
}

/// What a program is begun with.
#[derive(Clone)]
pub struct Wanted {
    pub path: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    pub environment: Vec<Vec<u8>>,
}

impl Wanted {
    /// The same with a script's interpreter, which runs it.
    fn behind(&mut self, interpreter: &[u8], argument: Option<&[u8]>) {
        let script = core::mem::replace(&mut self.path, interpreter.to_vec());
        let own = argument.map(Vec::from);
        let first = core::iter::once(interpreter.to_vec()).chain(own);
        let rest = core::mem::take(&mut self.arguments).into_iter().skip(1);
        self.arguments = first.chain([script]).chain(rest).collect();
    }
}

/// A program that is begun.
pub struct Begun {
    pub program: Program,
    /// Its path and words as it has them, behind all scripts.
    pub wanted: Wanted,
    /// Its file.
    pub file: Option<Arc<Open>>,
}

impl View<'_> {
    /// The file of a program that the process may execute.
    ///
    /// # Errors
    /// Linux's.
    pub fn program(&self, start: &Stand, path: &[u8]) -> Result<Source, Error> {
        look_again(
            |error| *error == ESTALE,
            ENOENT,
            |before| {
                let led = self.walk(start, path, true)?;
                let node = led.node.as_ref().ok_or(ENOENT)?;
                let of = self.attributes(node)?;
                if of.mode & KIND != REGULAR {
                    return Err(EACCES);
                }
                self.cred.check(&of, EXECUTE)?;
                match node {
                    Node::Disk(node) => {
                        let disk = self.system.disk.as_ref().ok_or(ENOENT)?;
                        let (_, seat) = disk.take(&led, node, before)?;
                        let file = Arc::new(DiskFile::new(disk, seat));
                        Ok(Source::Disk(file, led.path.clone()))
                    }
                    Node::Open(open) => source(open),
                    Node::Made(_, special) => match &**special {
                        Special::Open(open) => source(open),
                        _ => Err(EACCES),
                    },
                }
            },
        )
    }
}

fn source(open: &Open) -> Result<Source, Error> {
    match open {
        Open::Disk(open) => Ok(Source::Disk(open.file.clone(), open.path.clone())),
        Open::File(file, _) => Ok(Source::Archive(*file)),
        _ => Err(EACCES),
    }
}

impl System {
    /// Puts a program into a new address space, with its arguments and environment.
    pub fn load(
        &self,
        find: &dyn Fn(&[u8]) -> Result<Source, Error>,
        mut wanted: Wanted,
        cred: &Cred,
    ) -> Result<Begun, Error> {
        for _ in 0..MOST_SCRIPTS {
            let (file, at) = match find(&wanted.path)? {
                Source::Archive(file) => return self.load_copied(file, wanted),
                Source::Disk(file, at) => (file, at),
            };
            let head = file.head(0, HEAD)?;
            match script(&head)? {
                Some(script) => wanted.behind(script.interpreter, script.argument),
                None => {
                    let open = OnDisk::new(at, file.clone(), Access::READ);
                    let begun = self.load_mapped(find, (&file, &head), wanted, cred)?;
                    return Ok(Begun {
                        file: Some(Arc::new(Open::Disk(open))),
                        ..begun
                    });
                }
            }
        }
        Err(ELOOP)
    }

    fn load_copied(&self, file: File, wanted: Wanted) -> Result<Begun, Error> {
        let content = self.files.content(file)?;
        let image = Image::new(&content)?;
        let space = self.new_space()?;
        let begin = image.load(&space, &self.words(&wanted, &self.seed()))?;
        *space.layout() = begin.layout;
        let program = new_program(Mm::new(space), begin.entry, begin.stack)?;
        Ok(Begun {
            program,
            wanted,
            file: None,
        })
    }

    fn load_mapped(
        &self,
        find: &dyn Fn(&[u8]) -> Result<Source, Error>,
        (file, head): (&Arc<DiskFile>, &[u8]),
        wanted: Wanted,
        cred: &Cred,
    ) -> Result<Begun, Error> {
        let of = Executable::new(head, |at, count| file.head(at, count))?;
        let space = self.new_space()?;
        let base = if of.is_movable { MOVABLE } else { 0 };
        map(&space, file, &of, base)?;
        let end = of.span().1.checked_add(base).ok_or(EINVAL)?;
        let entry = of.entry.wrapping_add(base);
        let (first, interpreter_at) = match of.interpreter {
            None => (entry, 0),
            Some((at, count)) => {
                let path = file.head(at, count)?;
                let found = find(Executable::path_of(&path)?)?;
                map_interpreter(&space, &found)?
            }
        };
        *space.layout() = Layout::new(end);
        let headers = match of.headers.0 {
            0 => 0,
            at => at.wrapping_add(base),
        };
        let mut auxiliary = Vec::from([
            (aux::HEADERS, headers),
            (aux::HEADER_SIZE, 56),
            (aux::HEADER_COUNT, of.headers.1),
            (aux::PAGE_SIZE, PAGE),
            (aux::BASE, interpreter_at),
            (aux::FLAGS, 0),
            (aux::ENTRY, entry),
            (aux::TICKS, TICKS),
            (aux::SECURE, cred.is_other().into()),
            (aux::SIGNAL_STACK, SIGNAL_STACK),
        ]);
        let (user, group) = (&cred.user, &cred.group);
        let ids = [user.real, user.effective, group.real, group.effective];
        auxiliary.extend(aux::USERS.into_iter().zip(ids.map(u64::from)));
        let stack = fill_stack(&space, &self.words(&wanted, &self.seed()), &auxiliary)?;
        Ok(Begun {
            program: new_program(Mm::new(space), first, stack)?,
            wanted,
            file: None,
        })
    }

    fn new_space(&self) -> Result<Space, Error> {
        let handle = self.spaces.create().map_err(error)?;
        Ok(Space::new(handle, self.own.lock().clone()))
    }

    /// Sixteen bytes for a program's own randomness.
    fn seed(&self) -> Vec<u8> {
        // A machine without a source is told of in CAVEATS.
        let clock = || {
            [
                time::now().to_le_bytes(),
                time::wall_seconds().to_le_bytes(),
            ]
            .concat()
        };
        self.random(16)
            .map_or_else(|_| clock(), |seed| Vec::from(&seed[..]))
    }

    fn words<'a>(&self, wanted: &'a Wanted, seed: &'a [u8]) -> Words<'a> {
        Words {
            path: &wanted.path,
            arguments: &wanted.arguments,
            environment: &wanted.environment,
            seed,
        }
    }
}

fn new_program(mm: Arc<Mm>, entry: u64, stack: u64) -> Result<Program, Error> {
    Ok(Program {
        thread: mm.space.handle().thread().map_err(error)?,
        mm,
        registers: UserRegisters {
            rip: entry,
            rsp: stack,
            ..UserRegisters::default()
        },
        asked: 0,
    })
}

/// Maps an interpreter where there is room; its first instruction, and where it was put.
fn map_interpreter(space: &Space, found: &Source) -> Result<(u64, u64), Error> {
    let Source::Disk(file, _) = found else {
        return Err(ENOEXEC);
    };
    let head = file.head(0, HEAD)?;
    let of = Executable::new(&head, |at, count| file.head(at, count))?.as_interpreter()?;
    let (start, end) = of.span();
    if !of.is_movable {
        return Err(ENOEXEC);
    }
    let at = space.place(0, end - start)?;
    let base = at.checked_sub(start).ok_or(EINVAL)?;
    map(space, file, &of, base)?;
    Ok((of.entry.wrapping_add(base), base))
}

/// Maps all segments of a program, `base` above where they want to be.
fn map(space: &Space, file: &Arc<DiskFile>, of: &Executable, base: u64) -> Result<(), Error> {
    let file = Mapped {
        file: file.clone(),
        is_changed: false,
    };
    let file = shared::Source::File(file, false);
    of.segments
        .iter()
        .try_for_each(|segment| map_segment(space, &file, &segment.moved(base)?))
}

fn map_segment(space: &Space, file: &shared::Source, segment: &Segment) -> Result<(), Error> {
    let bytes = segment.mapped_bytes();
    if bytes > 0 {
        let from = (file, segment.page);
        let range = segment.start..segment.start + bytes;
        space.map_source(range, from, segment.bits)?;
    }
    let zeros = segment.start + bytes;
    if segment.end > zeros {
        space.map_zero(zeros, segment.end - zeros, segment.bits)?;
    }
    // The rest of the last page shows other parts of the file, which must read as zeros.
    let rest = (segment.content_end.next_multiple_of(PAGE) - segment.content_end) as usize;
    if segment.has_zeros && bytes > 0 && segment.bits & WRITE != 0 {
        write(space, segment.content_end, &[0; PAGE as usize][..rest])?;
    }
    Ok(())
}
