//! `filebench`: does the work of `cargo xtask bench files` (see `lib/testing/filework`) in the
//! working directory, and prints for each phase how much it did and in how many nanoseconds. With
//! `-n` it is about names. With `-f` it reads or writes one file for some seconds, while it has a
//! domain crash, for `cargo xtask bench crashes`: see [`flow`]; with `-b` too what a crash takes in
//! instructions: see [`counted`]. With `-y` threads write a file each
//! and wait for the disk: see [`syncing`]. With `-m` they go by names, one alone and several at
//! once: see [`storm`]. With `-r` they go by names that are replaced: see [`replaced`]. With `-e`
//! they rename and add to a file each, and look whether every change was made once: see [`once`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counted;
mod flow;
mod once;
mod replaced;
mod storm;
mod syncing;
mod threads;

use alloc::format;
use filework::{CHUNK, Mode, System};
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, Program, READ, RpcResult, Stop, println};

const USAGE: &str = "
usage: filebench
       filebench -n
       filebench -m
       filebench -r LOOKS
       filebench -y THREADS
       filebench -e THREADS [-d DOMAIN]
       filebench -f read|write -s SECONDS [-c CRASHES -d DOMAIN [-a]]
       filebench -f read|write -b CHUNKS -c CRASHES -s TURNS -d DOMAIN
Times reading, writing, making and removing files in the working directory. -n: going by
names, by a clock that counts instructions. -m: threads go by names. -r: so often each by a name that is replaced all the
time. -y: so many threads write a file each, and
wait after each small write until it is on the disk. -e: so many threads rename and add to a file each, and look
whether that was done once, while DOMAIN crashes again and again. -f: reads or writes the file
`sequential` again and again for so many seconds, while DOMAIN crashes so often in each, or with -a in every other.
-b: reads or writes so many chunks of it without crashes, then with so many, by turns.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "f:s:c:d:b:amnr:y:e:")?;
    let mut system = Trefoil {
        env,
        buffer: None,
        data: RVec::filled(0, CHUNK).map_err(Error::from).map_err(stop)?,
    };
    if let Some(plan) = counted::Plan::parse(&options)? {
        counted::run(system, plan)?;
        return Ok(env.status());
    }
    if let Some(looks) = flow::number(&options, 'r') {
        let (said, count) = replaced::replaced(env.process(), looks).map_err(stop)?;
        for (name, missing, wrong) in said {
            println!(env, "{name}: missing {missing}, wrong {wrong}")?;
        }
        println!(env, "replaced often: {}", count > 20)?;
        return Ok(env.status());
    }
    if let Some(threads) = options.value('e') {
        let count = once::parse(threads)?;
        once::each_once(env, count, options.value('d'))?;
        return Ok(env.status());
    }
    match (options.value('y'), flow::Plan::parse(&options)?) {
        (Some(writers), _) => filework::run_synced(&mut system, syncing::parse(writers)?)?,
        (None, None) if options.has('n') => filework::run_names(&mut system)?,
        (None, None) if options.has('m') => filework::run_storm(&mut system)?,
        (None, Some(plan)) => flow::run(&mut system, &plan)?,
        (None, None) => filework::run(&mut system)?,
    }
    Ok(env.status())
}

fn stop(error: Error) -> Stop {
    Stop::about(b"filebench", error)
}

/// The system calls, with a buffer to read into and one to write from.
struct Trefoil<'a> {
    env: &'a Env,
    buffer: Option<RVec<u8>>,
    data: RVec<u8>,
}

impl Trefoil<'_> {
    /// A buffer of `length` bytes: the last one, if it is as long.
    fn take(&mut self, length: usize) -> Result<RVec<u8>, Error> {
        match self.buffer.take() {
            Some(buffer) if buffer.len() == length => Ok(buffer),
            _ => Ok(RVec::filled(0, length)?),
        }
    }

    fn try_read(&mut self, file: u32, offset: u64, length: usize) -> Result<[u8; 8], Error> {
        let buffer = self.take(length)?;
        self.env.process().seek(file, offset)?;
        let buffer = self.env.process().read(file, buffer)?;
        let start = buffer.first_chunk().copied();
        let complete = buffer.len() == length;
        self.buffer = Some(buffer);
        start
            .filter(|_| complete)
            .ok_or(Error::text("the file is too short"))
    }

    fn try_write(
        &mut self,
        file: u32,
        offset: u64,
        length: usize,
        start: [u8; 8],
    ) -> Result<(), Error> {
        if self.data.len() != length {
            self.data = RVec::filled(0, length)?;
        }
        self.data[..8].copy_from_slice(&start);
        self.env.process().seek(file, offset)?;
        match self.env.process().write(file, &self.data)? {
            count if count == length as u64 => Ok(()),
            _ => Err(Error::text("the disk is full")),
        }
    }
}

impl System for Trefoil<'_> {
    type File = u32;
    type Error = Stop;

    fn now(&self) -> u64 {
        ulib::nanoseconds_since_boot()
    }

    fn open(&mut self, path: &str, mode: Mode) -> Result<u32, Stop> {
        let flags = OpenFlags {
            read: mode == Mode::Read,
            write: mode != Mode::Read,
            create: mode == Mode::Create,
            truncate: mode == Mode::Create,
            ..READ
        };
        let open = |process: &Handle<dyn Process>, path: &RVec<u8>| process.open(path, flags);
        self.env.with_path(path.as_bytes(), open).map_err(stop)
    }

    fn read(&mut self, file: &u32, offset: u64, length: usize) -> Result<[u8; 8], Stop> {
        self.try_read(*file, offset, length).map_err(stop)
    }

    fn write(
        &mut self,
        file: &u32,
        offset: u64,
        length: usize,
        start: [u8; 8],
    ) -> Result<(), Stop> {
        self.try_write(*file, offset, length, start).map_err(stop)
    }

    fn close(&mut self, file: u32) -> Result<(), Stop> {
        self.env
            .process()
            .close(file)
            .map_err(|error| stop(error.into()))
    }

    fn sync(&mut self) -> Result<(), Stop> {
        self.env
            .process()
            .sync()
            .map_err(|error| stop(error.into()))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Stop> {
        let make = |process: &Handle<dyn Process>, path: &RVec<u8>| process.make_directory(path);
        self.env.with_path(path.as_bytes(), make).map_err(stop)
    }

    fn remove(&mut self, path: &str) -> Result<(), Stop> {
        let unlink = |process: &Handle<dyn Process>, path: &RVec<u8>| process.unlink(path);
        self.env.with_path(path.as_bytes(), unlink).map_err(stop)
    }

    fn stat(&mut self, path: &str) -> Result<u64, Stop> {
        let stat = |process: &Handle<dyn Process>, path: &RVec<u8>| process.metadata(path, true);
        let known = self.env.with_path(path.as_bytes(), stat).map_err(stop)?;
        Ok(known.size)
    }

    fn write_and_sync(&mut self, writers: u64) -> Result<(), Stop> {
        syncing::write_and_sync(self.env.process(), writers).map_err(stop)
    }

    fn storm(&mut self, threads: u64) -> Result<(), Stop> {
        storm::storm(self.env.process(), threads).map_err(stop)
    }

    fn wrong(&self, path: &str, offset: u64) -> Stop {
        let text = format!("{path}: wrong content at {offset}");
        Stop::about(text.as_bytes(), Error::text("it is not what was put there"))
    }

    fn report(&mut self, phase: &str, amount: u64, nanoseconds: u64) -> Result<(), Stop> {
        println!(self.env, "filebench \"{phase}\" {amount} {nanoseconds}")
    }
}
