//! The work that `cargo xtask bench files` times, the same on every system: sequential and random
//! reading and writing, making and removing many files.
//!
//! A system implements [`System`]; [`run`] does the phases in their order and reports each. Reading
//! comes first, each on a file of its own: the machine has just been booted, so nothing is cached,
//! and the second time everything is, as far as the system caches. What is written or removed
//! counts as done when the system says that it is on the disk.
//!
//! [`run_names`] is about names alone, for a clock that counts instructions: everything is cached.
//!
//! [`run_synced`] is work of another kind, for a disk with a journal: many threads write, and each
//! wants what it wrote on the disk before it goes on.
//!
//! What is read is checked: each [`PAGE`] of the two files begins with [`mark`].
//!
//! [`run_storm`] is about names again, by one thread and by several, each in a directory of its
//! own: how far one keeps up the others.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

use alloc::format;
use alloc::string::String;

/// Bytes of a random read or write.
pub const PAGE: usize = 4096;
/// Bytes of a sequential read or write.
pub const CHUNK: usize = 64 * 1024;
/// Length of [`SEQUENTIAL`] and of [`RANDOM`].
pub const LENGTH: u64 = 32 << 20;
/// The file that is read from end to end.
pub const SEQUENTIAL: &str = "sequential";
/// The file that is read here and there.
pub const RANDOM: &str = "random";
/// How many phases [`run`] reports.
pub const PHASES: usize = 8;
/// Random reads or writes in a phase.
const PICKS: u64 = 2048;
/// How often the cached pages are read.
const HOT_ROUNDS: u64 = 4;
/// Files that are made and removed.
const FILES: u64 = 10_000;
/// How many threads write in [`run_synced`] where it is measured.
pub const WRITERS: u64 = 16;
/// How often each of them wants on the disk what it wrote.
pub const SYNCS: u64 = 32;
/// The path of five names that [`run_names`] goes by.
pub const DEEP: &str = "one/two/three/four/five";
/// How many phases [`run_names`] reports.
pub const NAME_PHASES: usize = 4;
/// How often it goes there.
const WALKS: u64 = 1000;
/// Files that it makes and removes.
const FEW: u64 = 200;
/// How many threads go by names at once in [`run_storm`].
pub const STORMERS: u64 = 4;
/// How many phases [`run_storm`] reports.
pub const STORM_PHASES: usize = 2;
/// Files that each of its threads sees to.
pub const STORM_FILES: u64 = 200;
/// Bytes in each of the small files, and of what is written before each of [`SYNCS`].
pub const SMALL: usize = 1000;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reading what is there.
    Read,
    /// Writing over what is there.
    Write,
    /// Writing a new file.
    Create,
}

/// A system under the ruler. Paths are names in the directory of the work.
pub trait System {
    /// An open file.
    type File;
    /// What goes wrong.
    type Error;
    /// Nanoseconds of a clock that only goes forward.
    fn now(&self) -> u64;
    /// Opens a file.
    ///
    /// # Errors
    /// The system's.
    fn open(&mut self, path: &str, mode: Mode) -> Result<Self::File, Self::Error>;
    /// Reads `length` bytes at `offset` into the system's own buffer; the first eight of them.
    ///
    /// # Errors
    /// The system's, or that there are fewer.
    fn read(
        &mut self,
        file: &Self::File,
        offset: u64,
        length: usize,
    ) -> Result<[u8; 8], Self::Error>;
    /// Writes `length` bytes at `offset` that begin with `start`; what follows does not matter.
    ///
    /// # Errors
    /// The system's.
    fn write(
        &mut self,
        file: &Self::File,
        offset: u64,
        length: usize,
        start: [u8; 8],
    ) -> Result<(), Self::Error>;
    /// Closes a file.
    ///
    /// # Errors
    /// The system's.
    fn close(&mut self, file: Self::File) -> Result<(), Self::Error>;
    /// Returns when everything is on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync(&mut self) -> Result<(), Self::Error>;
    /// Makes a directory.
    ///
    /// # Errors
    /// The system's.
    fn make_directory(&mut self, path: &str) -> Result<(), Self::Error>;
    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&mut self, path: &str) -> Result<(), Self::Error>;
    /// The length of what is at `path`.
    ///
    /// # Errors
    /// The system's.
    fn stat(&mut self, path: &str) -> Result<u64, Self::Error>;
    /// Has so many threads at once make a file each, named by [`synced`], and [`SYNCS`] times write
    /// [`SMALL`] bytes at its end, the number of the thread in each, and wait until they are on the
    /// disk.
    ///
    /// # Errors
    /// The first of the system.
    fn write_and_sync(&mut self, writers: u64) -> Result<(), Self::Error>;
    /// Has so many threads at once call [`storm_of`], each with its number.
    ///
    /// # Errors
    /// The first of the system.
    fn storm(&mut self, threads: u64) -> Result<(), Self::Error>;
    /// What is to be done about a page whose mark is wrong.
    fn wrong(&self, path: &str, offset: u64) -> Self::Error;
    /// Takes down that `phase` did `amount` (bytes or files) in so many nanoseconds.
    ///
    /// # Errors
    /// The system's.
    fn report(&mut self, phase: &str, amount: u64, nanoseconds: u64) -> Result<(), Self::Error>;
}

/// One thread of [`run_storm`] on a system.
pub trait Names {
    /// What goes wrong.
    type Error;
    /// Makes an empty file, and closes it.
    ///
    /// # Errors
    /// The system's.
    fn make(&self, path: &str) -> Result<(), Self::Error>;
    /// Asks what is at `path`.
    ///
    /// # Errors
    /// The system's.
    fn ask(&self, path: &str) -> Result<(), Self::Error>;
    /// Opens a file for reading, and closes it.
    ///
    /// # Errors
    /// The system's.
    fn visit(&self, path: &str) -> Result<(), Self::Error>;
    /// Gives a file another name in place of the one it has.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> Result<(), Self::Error>;
    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, path: &str) -> Result<(), Self::Error>;
}

/// With what the page at `offset` of the file `path` begins.
pub fn mark(path: &str, offset: u64) -> [u8; 8] {
    let seed = path.bytes().fold(0u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    (offset ^ seed.wrapping_shl(40)).to_le_bytes()
}

/// The content of [`SEQUENTIAL`] or [`RANDOM`].
pub fn content(path: &str) -> alloc::vec::Vec<u8> {
    let mut bytes = alloc::vec![0x5a; LENGTH as usize];
    for (page, offset) in bytes.chunks_mut(PAGE).zip((0..).step_by(PAGE)) {
        page[..8].copy_from_slice(&mark(path, offset));
    }
    bytes
}

/// Which pages are read or written at random: the same ones every time, each once at most.
fn picks() -> impl Iterator<Item = u64> {
    let pages = LENGTH / PAGE as u64;
    // Multiplying by an odd number permutes the numbers below a power of two.
    (0..PICKS).map(move |n| n * 2_654_435_761 % pages * PAGE as u64)
}

/// Does everything.
///
/// # Errors
/// The first one of the system.
pub fn run<S: System>(system: &mut S) -> Result<(), S::Error> {
    timed(system, "sequential read, cold", LENGTH, read_all)?;
    timed(system, "sequential read, cached", LENGTH, read_all)?;
    let picked = PICKS * PAGE as u64;
    timed(system, "random read, cold", picked, |system| {
        read_some(system, 1)
    })?;
    timed(
        system,
        "random read, cached",
        picked * HOT_ROUNDS,
        |system| read_some(system, HOT_ROUNDS),
    )?;
    timed(system, "sequential write", LENGTH, write_new)?;
    timed(system, "random write", picked, write_some)?;
    system.make_directory("many")?;
    timed(system, "create", FILES, create)?;
    timed(system, "remove", FILES, remove)
}

/// Does the work on names. A phase's nanoseconds are for all that it did.
///
/// # Errors
/// The first one of the system.
pub fn run_names<S: System>(system: &mut S) -> Result<(), S::Error> {
    for (at, _) in DEEP.match_indices('/') {
        system.make_directory(&DEEP[..at])?;
    }
    let file = system.open(DEEP, Mode::Create)?;
    system.write(&file, 0, SMALL, mark(DEEP, 0))?;
    system.close(file)?;
    system.make_directory("many")?;
    system.sync()?;
    timed(system, "stat", WALKS, |system| {
        (0..WALKS).try_for_each(|_| match system.stat(DEEP)? {
            length if length == SMALL as u64 => Ok(()),
            length => Err(system.wrong(DEEP, length)),
        })
    })?;
    timed(system, "open and close", WALKS, |system| {
        (0..WALKS).try_for_each(|_| {
            let file = system.open(DEEP, Mode::Read)?;
            system.close(file)
        })
    })?;
    timed(system, "create", FEW, |system| create_some(system, FEW))?;
    timed(system, "remove", FEW, |system| {
        (0..FEW).try_for_each(|n| system.remove(&small(n)))
    })
}

/// Does the work of `writers` threads.
///
/// # Errors
/// The first one of the system.
pub fn run_synced<S: System>(system: &mut S, writers: u64) -> Result<(), S::Error> {
    let phase = format!("{writers} threads write and fsync");
    timed(system, &phase, writers * SYNCS, |system| {
        system.write_and_sync(writers)
    })
}

/// The file of a thread of [`run_synced`].
pub fn synced(writer: u64) -> String {
    format!("synced{writer}")
}

/// Has one thread go by names, then [`STORMERS`] at once. The amount is that of the files; each was
/// made, asked about, opened, renamed and removed. Before and after each phase the system is synced
/// (so that whoever tells at a sync what was between two of them tells it of a phase alone).
///
/// # Errors
/// The first one of the system.
pub fn run_storm<S: System>(system: &mut S) -> Result<(), S::Error> {
    for thread in 0..STORMERS {
        system.make_directory(&storm_directory(thread))?;
    }
    // Not measured: tables are made at the first use, and inodes of these directories read.
    system.storm(STORMERS)?;
    for threads in [1, STORMERS] {
        system.sync()?;
        let phase = format!("metadata storm, threads: {threads}");
        timed(system, &phase, threads * STORM_FILES, |system| {
            system.storm(threads)
        })?;
        system.sync()?;
    }
    Ok(())
}

/// What a thread of [`run_storm`] does.
///
/// # Errors
/// The first one of the system.
pub fn storm_of<N: Names>(names: &N, thread: u64) -> Result<(), N::Error> {
    let directory = storm_directory(thread);
    let path = |what: &str, n: u64| format!("{directory}/{what}{n:03}");
    for n in 0..STORM_FILES {
        names.make(&path("new", n))?;
    }
    for n in 0..STORM_FILES {
        names.ask(&path("new", n))?;
        names.visit(&path("new", n))?;
    }
    for n in 0..STORM_FILES {
        names.rename(&path("new", n), &path("old", n))?;
    }
    for n in 0..STORM_FILES {
        names.remove(&path("old", n))?;
    }
    Ok(())
}

fn storm_directory(thread: u64) -> String {
    format!("storm{thread}")
}

fn timed<S: System>(
    system: &mut S,
    phase: &str,
    amount: u64,
    work: impl FnOnce(&mut S) -> Result<(), S::Error>,
) -> Result<(), S::Error> {
    let start = system.now();
    work(system)?;
    let taken = system.now() - start;
    system.report(phase, amount, taken)
}

fn read_all<S: System>(system: &mut S) -> Result<(), S::Error> {
    let file = system.open(SEQUENTIAL, Mode::Read)?;
    for offset in (0..LENGTH).step_by(CHUNK) {
        let start = system.read(&file, offset, CHUNK)?;
        check(system, SEQUENTIAL, offset, start)?;
    }
    system.close(file)
}

fn read_some<S: System>(system: &mut S, rounds: u64) -> Result<(), S::Error> {
    let file = system.open(RANDOM, Mode::Read)?;
    for offset in (0..rounds).flat_map(|_| picks()) {
        let start = system.read(&file, offset, PAGE)?;
        check(system, RANDOM, offset, start)?;
    }
    system.close(file)
}

fn check<S: System>(system: &S, path: &str, offset: u64, start: [u8; 8]) -> Result<(), S::Error> {
    match start == mark(path, offset) {
        true => Ok(()),
        false => Err(system.wrong(path, offset)),
    }
}

fn write_new<S: System>(system: &mut S) -> Result<(), S::Error> {
    let file = system.open("new", Mode::Create)?;
    for offset in (0..LENGTH).step_by(CHUNK) {
        system.write(&file, offset, CHUNK, mark("new", offset))?;
    }
    system.close(file)?;
    system.sync()
}

fn write_some<S: System>(system: &mut S) -> Result<(), S::Error> {
    let file = system.open(RANDOM, Mode::Write)?;
    for offset in picks() {
        system.write(&file, offset, PAGE, mark(RANDOM, offset))?;
    }
    system.close(file)?;
    system.sync()
}

fn small(n: u64) -> String {
    format!("many/file{n:05}")
}

fn create<S: System>(system: &mut S) -> Result<(), S::Error> {
    create_some(system, FILES)?;
    system.sync()
}

fn create_some<S: System>(system: &mut S, files: u64) -> Result<(), S::Error> {
    (0..files).try_for_each(|n| {
        let file = system.open(&small(n), Mode::Create)?;
        system.write(&file, 0, SMALL, n.to_le_bytes())?;
        system.close(file)
    })
}

fn remove<S: System>(system: &mut S) -> Result<(), S::Error> {
    for n in 0..FILES {
        system.remove(&small(n))?;
    }
    system.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::string::ToString;
    use alloc::vec::Vec;

    /// A system in memory, with a clock that goes on with every operation.
    #[derive(Default)]
    struct Model {
        files: BTreeMap<String, Vec<u8>>,
        phases: Vec<(String, u64)>,
        most_files: usize,
        unsynced: usize,
        time: core::cell::Cell<u64>,
    }

    impl System for Model {
        type File = String;
        type Error = String;

        fn now(&self) -> u64 {
            self.time.set(self.time.get() + 1);
            self.time.get()
        }
        fn open(&mut self, path: &str, mode: Mode) -> Result<String, String> {
            match mode {
                Mode::Create => drop(self.files.insert(path.to_string(), Vec::new())),
                _ => assert!(self.files.contains_key(path), "{path}"),
            }
            self.most_files = self.most_files.max(self.files.len());
            Ok(path.to_string())
        }
        fn read(&mut self, file: &String, offset: u64, length: usize) -> Result<[u8; 8], String> {
            let bytes = &self.files[file][offset as usize..][..length];
            Ok(bytes[..8].try_into().expect("eight bytes"))
        }
        fn write(
            &mut self,
            file: &String,
            offset: u64,
            length: usize,
            start: [u8; 8],
        ) -> Result<(), String> {
            let bytes = self.files.get_mut(file).expect("it is open");
            bytes.resize(bytes.len().max(offset as usize + length), 0);
            bytes[offset as usize..][..8].copy_from_slice(&start);
            self.unsynced += 1;
            Ok(())
        }
        fn close(&mut self, _file: String) -> Result<(), String> {
            Ok(())
        }
        fn sync(&mut self) -> Result<(), String> {
            self.unsynced = 0;
            Ok(())
        }
        fn make_directory(&mut self, _path: &str) -> Result<(), String> {
            Ok(())
        }
        fn remove(&mut self, path: &str) -> Result<(), String> {
            self.files.remove(path).map(drop).ok_or("gone".into())
        }
        fn stat(&mut self, path: &str) -> Result<u64, String> {
            let file = self.files.get(path).ok_or("no file")?;
            Ok(file.len() as u64)
        }
        fn write_and_sync(&mut self, writers: u64) -> Result<(), String> {
            for writer in 0..writers {
                let file = self.open(&synced(writer), Mode::Create)?;
                for n in 0..SYNCS {
                    self.write(&file, n * SMALL as u64, SMALL, [writer as u8; 8])?;
                    self.sync()?;
                }
            }
            Ok(())
        }
        fn storm(&mut self, threads: u64) -> Result<(), String> {
            self.unsynced += 1;
            (0..threads).try_for_each(|thread| storm_of(&Told::default(), thread))
        }
        fn wrong(&self, path: &str, offset: u64) -> String {
            format!("{path} {offset}")
        }
        fn report(&mut self, phase: &str, amount: u64, taken: u64) -> Result<(), String> {
            let names = self.files.contains_key(DEEP);
            let storm = phase.starts_with("metadata storm");
            assert!(
                taken > 0 && (names || storm || self.unsynced == 0),
                "{phase}"
            );
            self.phases.push((phase.to_string(), amount));
            Ok(())
        }
    }

    /// The files of one thread, by their names.
    #[derive(Default)]
    struct Told(core::cell::RefCell<BTreeSet<String>>);

    impl Told {
        fn has(&self, path: &str) -> Result<(), String> {
            let has = self.0.borrow().contains(path);
            has.then_some(())
                .ok_or_else(|| format!("{path} is not there"))
        }
    }

    impl Names for Told {
        type Error = String;

        fn make(&self, path: &str) -> Result<(), String> {
            assert!(self.0.borrow_mut().insert(path.to_string()), "{path}");
            Ok(())
        }
        fn ask(&self, path: &str) -> Result<(), String> {
            self.has(path)
        }
        fn visit(&self, path: &str) -> Result<(), String> {
            self.has(path)
        }
        fn rename(&self, from: &str, to: &str) -> Result<(), String> {
            self.remove(from)?;
            self.make(to)
        }
        fn remove(&self, path: &str) -> Result<(), String> {
            self.has(path)?;
            self.0.borrow_mut().remove(path);
            Ok(())
        }
    }

    fn model() -> Model {
        let mut model = Model::default();
        for name in [SEQUENTIAL, RANDOM] {
            model.files.insert(name.to_string(), content(name));
        }
        model
    }

    #[test]
    fn all_phases_are_done_and_synced() {
        let mut model = model();
        run(&mut model).expect("a working system");
        assert_eq!(model.phases.len(), PHASES);
        assert_eq!(model.most_files as u64, FILES + 3);
        assert_eq!(model.files.len(), 3);
        assert_eq!(model.files["new"].len() as u64, LENGTH);
    }

    #[test]
    fn threads_that_sync_are_one_phase() {
        let mut model = Model::default();
        run_synced(&mut model, 3).expect("a working system");
        let phase = "3 threads write and fsync".to_string();
        assert_eq!(model.phases, [(phase, 3 * SYNCS)]);
        assert_eq!(model.files[&synced(2)].len() as u64, SYNCS * SMALL as u64);
    }

    #[test]
    fn names_are_gone_by_and_nothing_is_left() {
        let mut model = Model::default();
        run_names(&mut model).expect("a working system");
        assert_eq!(model.phases.len(), NAME_PHASES);
        assert_eq!(model.most_files as u64, FEW + 1);
        assert_eq!(model.files.len(), 1);
        assert_eq!(model.files[DEEP].len(), SMALL);
    }

    #[test]
    fn a_storm_has_two_phases_between_syncs_and_leaves_nothing() {
        let mut model = Model::default();
        run_storm(&mut model).expect("a working system");
        let phase = |threads| format!("metadata storm, threads: {threads}");
        let phases = [1, STORMERS].map(|threads| (phase(threads), threads * STORM_FILES));
        assert_eq!(model.phases, phases);
        assert_eq!(model.unsynced, 0);
        let told = Told::default();
        storm_of(&told, 0).expect("a working system");
        assert!(told.0.borrow().is_empty());
    }

    #[test]
    fn wrong_content_is_found() {
        let mut model = model();
        model.files.get_mut(SEQUENTIAL).expect("it is there")[CHUNK * 3] ^= 1;
        assert_eq!(run(&mut model), Err(format!("sequential {}", CHUNK * 3)));
    }

    #[test]
    fn random_places_differ_and_lie_in_the_file() {
        let places: BTreeSet<u64> = picks().collect();
        assert_eq!(places.len() as u64, PICKS);
        assert!(places.iter().all(|place| place + PAGE as u64 <= LENGTH));
    }
}
