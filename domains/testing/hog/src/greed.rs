//! What can be taken, and how.

use alloc::vec::Vec;
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, READ};

/// Bytes that are asked for at first, and the fewest.
const MOST: usize = 256 * 1024;
const LEAST: usize = 64;
/// Bytes that are written to a file at once.
const CHUNK: usize = 32 * 1024;

/// A kind of thing that can be taken.
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Takes one more; whether there was one.
    pub take: fn(&mut Greed) -> bool,
}

/// All of them.
pub const PARTS: [Part; 4] = [
    Part {
        name: "heap",
        take: Greed::heap,
    },
    Part {
        name: "shared",
        take: Greed::shared,
    },
    Part {
        name: "pipes",
        take: Greed::pipe,
    },
    Part {
        name: "files",
        take: Greed::file,
    },
];

/// What a thread needs to take more and more.
pub struct Greed {
    process: Handle<dyn Process>,
    /// Bytes to ask for.
    size: usize,
    /// A descriptor of a file in `/tmp`, and what is written to it.
    file: u32,
    data: RVec<u8>,
}

impl Greed {
    /// One that has taken nothing yet.
    ///
    /// # Errors
    /// There is no memory for it, or no `/tmp`.
    pub fn new(env: &Env) -> Result<Self, Error> {
        let flags = OpenFlags {
            read: false,
            write: true,
            create: true,
            append: true,
            ..READ
        };
        let path = alloc::format!("/tmp/hog-{}", env.process().pid()?);
        let path = RVec::from_slice(path.as_bytes())?;
        Ok(Greed {
            process: env.process().duplicate()?,
            size: MOST,
            file: env.process().open(&path, flags)?,
            data: RVec::filled(b'x', CHUNK)?,
        })
    }

    /// Whether less can be asked for than what was just refused. If not, it is the most again.
    pub fn is_content_with_less(&mut self) -> bool {
        let is_least = self.size <= LEAST;
        self.size = if is_least { MOST } else { self.size / 2 };
        !is_least
    }

    fn heap(&mut self) -> bool {
        let mut piece: Vec<u8> = Vec::new();
        if piece.try_reserve_exact(self.size).is_err() {
            return false;
        }
        piece.resize(self.size, 1);
        core::mem::forget(piece);
        true
    }

    fn shared(&mut self) -> bool {
        let piece = RVec::filled(1u8, self.size);
        piece.map(core::mem::forget).is_ok()
    }

    fn pipe(&mut self) -> bool {
        self.process.pipe().is_ok()
    }

    fn file(&mut self) -> bool {
        self.process.write(self.file, &self.data).is_ok()
    }
}
