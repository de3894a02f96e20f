//! Having others work when there is no memory.

use alloc::vec::Vec;
use interfaces::{
    DomainControl, Errno, FsError, Job, LoadError, Monitor, OpenFlags, RVec, RpcError,
    SpawnRequest, StartError,
};
use ulib::{Env, Error, Handle, Process, READ, Stop, find_domain, println};

/// Pieces in which memory is taken.
const PIECES: [usize; 4] = [1 << 20, 256 << 10, 64 << 10, 36 << 10];
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// Reads between two attempts to get more memory.
const GREEDY_EVERY: u32 = 200;
/// Pieces of memory at most.
const MOST: usize = 16 << 10;

/// All memory that can be had, and more as soon as there is more.
struct Greed(Vec<Vec<u8>>);

impl Greed {
    fn new() -> Result<Self, Error> {
        let mut pieces = Vec::new();
        pieces
            .try_reserve_exact(MOST)
            .map_err(|_| RpcError::NoMemory)?;
        let mut greed = Greed(pieces);
        greed.more();
        Ok(greed)
    }

    fn more(&mut self) {
        for size in PIECES {
            while self.0.len() < MOST {
                let mut piece = Vec::new();
                if piece.try_reserve_exact(size).is_err() {
                    break;
                }
                self.0.push(piece);
            }
        }
    }
}

/// Fills pipes that nobody reads; when one is refused, others with less and less, down to nothing,
/// so that the least that the personality needs is refused as well. Says why the first one was.
pub fn pipes(env: &Env, count: u64, size: u64, seconds: u64) -> Result<i32, Stop> {
    let (mut made, mut failure) = (0, None);
    for size in [size, size / 8, size / 64, 1, 0] {
        let data = RVec::filled(b'x', size as usize)?;
        let error = loop {
            let piped = env.process().pipe();
            match piped.and_then(|(_, writer)| env.process().write(writer, &data)) {
                Ok(_) if made < count => made += 1,
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        failure = failure.or(error);
    }
    env.process().sleep(seconds * 1_000_000_000)?;
    let many = if made > 20 { "many" } else { "few" };
    match failure {
        Some(error) => println!(env, "{many} pipes: {}", Error::from(error))?,
        None => println!(env, "{made} pipes")?,
    }
    Ok(0)
}

/// Reads a file while all memory is taken and the domain `name` crashes; how many bytes, and a sum
/// of them.
pub fn reads(env: &Env, name: &[u8], path: &[u8]) -> Result<i32, Stop> {
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let control = env.service::<dyn DomainControl>("control")?;
    let info = find_domain(&monitor, name)?;
    let domain = control.domain(info.id)?;
    let domain = domain.ok_or_else(|| Stop::about(name, Error::text("it has just ended")))?;
    let descriptor = env.process().open(&RVec::from_slice(path)?, READ)?;
    let mut buffer = RVec::filled(0, CHUNK)?;
    let mut greed = Greed::new()?;
    domain.crash_next_call()?;
    let (mut reads, mut bytes, mut sum) = (0, 0, 0_u64);
    loop {
        buffer = env.process().read(descriptor, buffer)?;
        if buffer.is_empty() {
            break;
        }
        bytes += buffer.len();
        reads += 1;
        sum = buffer
            .iter()
            .fold(sum, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
        // To look for more takes time, since caches are asked.
        if reads < 3 || reads % GREEDY_EVERY == 0 {
            greed.more();
        }
        if buffer.len() < CHUNK {
            // A read gives back what it was given, cut.
            drop(buffer);
            greed.0.pop();
            buffer = RVec::filled(0, CHUNK)?;
        }
    }
    drop(greed);
    println!(env, "{bytes} bytes, sum {sum:016x}")?;
    Ok(0)
}

/// Pipes, and a file in `/tmp`, that were opened while there was memory and are written to when
/// there is none.
struct Sinks {
    file: u32,
    pipes: Vec<u32>,
    data: RVec<u8>,
}

impl Sinks {
    const PIPES: usize = 100;

    fn new(process: &Handle<dyn Process>) -> Result<Self, Error> {
        let file = process.open(&RVec::from_slice(b"/tmp/starve-sink")?, WRITE)?;
        let mut pipes = Vec::new();
        for _ in 0..Self::PIPES {
            pipes.push(process.pipe()?.1);
        }
        let data = RVec::filled(b'x', 4000)?;
        Ok(Sinks { file, pipes, data })
    }

    /// Writes to all, as long as they take something and do not make us wait.
    fn write(&self, process: &Handle<dyn Process>, round: usize) -> Result<(), Errno> {
        for sink in core::iter::once(&self.file).chain(&self.pipes) {
            // A pipe that has taken all would make us wait: 64 KiB.
            if round >= 16 && *sink != self.file {
                break;
            }
            match process.write(*sink, &self.data) {
                Err(error) if !is_want_of_memory(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What the calls need, made while there is memory.
struct Things {
    /// A file in `/tmp`, that is there, and names that are not.
    file: RVec<u8>,
    link: RVec<u8>,
    folder: RVec<u8>,
    other: RVec<u8>,
    here: RVec<u8>,
    data: RVec<u8>,
}

impl Things {
    fn new() -> Result<Self, Error> {
        Ok(Things {
            file: RVec::from_slice(b"/tmp/starve")?,
            link: RVec::from_slice(b"/tmp/starve-link")?,
            folder: RVec::from_slice(b"/tmp/starve-folder")?,
            other: RVec::from_slice(b"/tmp/starve-other")?,
            here: RVec::from_slice(b"/tmp")?,
            data: RVec::filled(b'x', 40_000)?,
        })
    }
}

type Call = fn(&Handle<dyn Process>, &Things) -> Result<(), Errno>;

const WRITE: OpenFlags = OpenFlags {
    write: true,
    create: true,
    ..READ
};

/// Opens the file, and closes it when `work` is done.
fn with_file(
    process: &Handle<dyn Process>,
    things: &Things,
    work: impl FnOnce(u32) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let descriptor = process.open(&things.file, WRITE)?;
    let result = work(descriptor);
    process.close(descriptor)?;
    result
}

fn with_pipe(
    process: &Handle<dyn Process>,
    work: impl FnOnce(u32, u32) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let (reader, writer) = process.pipe()?;
    let result = work(reader, writer);
    process.close(reader)?;
    process.close(writer)?;
    result
}

fn buffer() -> Result<RVec<u8>, Errno> {
    Ok(RVec::filled(0, 4096)?)
}

fn spawn(process: &Handle<dyn Process>) -> Result<(), Errno> {
    let child = process.spawn(SpawnRequest {
        path: RVec::from_slice(b"/boot/bin/true")?,
        arguments: RVec::from_slice(b"true\0")?,
        environment: RVec::from_slice(b"A=1\0")?,
        descriptors: [u32::MAX; 3],
        background: true,
        job: Job::Same,
    })?;
    process.wait(child).map(drop)
}

/// Every system call that a program can make without a grant and that comes back.
const CALLS: &[(&str, Call)] = &[
    ("pid", |p, _| p.pid().map(drop)),
    ("arguments", |p, _| p.arguments().map(drop)),
    ("environment", |p, _| p.environment().map(drop)),
    ("open", |p, t| with_file(p, t, |_| Ok(()))),
    ("duplicate", |p, t| {
        with_file(p, t, |file| p.close(p.duplicate_descriptor(file)?))
    }),
    ("kind", |p, t| {
        with_file(p, t, |file| p.kind(file).map(drop))
    }),
    ("write", |p, t| {
        with_file(p, t, |file| p.write(file, &t.data).map(drop))
    }),
    ("read", |p, t| {
        with_file(p, t, |file| p.read(file, buffer()?).map(drop))
    }),
    ("seek", |p, t| {
        with_file(p, t, |file| {
            p.seek(file, 10)?;
            p.position(file).map(drop)
        })
    }),
    ("truncate", |p, t| {
        with_file(p, t, |file| p.truncate(file, 1 << 20))
    }),
    ("metadata_of", |p, t| {
        with_file(p, t, |file| p.metadata_of(file).map(drop))
    }),
    ("sync_data", |p, t| {
        with_file(p, t, |file| p.sync_data(file))
    }),
    ("sync_file", |p, t| {
        with_file(p, t, |file| p.sync_file(file))
    }),
    ("pipe", |p, t| {
        with_pipe(p, |reader, writer| {
            p.write(writer, &t.data)?;
            p.read(reader, buffer()?).map(drop)
        })
    }),
    ("read_directory", |p, t| {
        let directory = p.open(&t.here, READ)?;
        let read = p.read_directory(directory, buffer()?);
        p.close(directory)?;
        read.map(drop)
    }),
    ("metadata", |p, t| p.metadata(&t.here, true).map(drop)),
    ("symlink", |p, t| {
        p.symlink(&t.link, &t.file)?;
        let read = p.read_link(&t.link, buffer()?);
        p.unlink(&t.link)?;
        read.map(drop)
    }),
    ("directory", |p, t| {
        p.make_directory(&t.folder)?;
        p.remove_directory(&t.folder)
    }),
    ("link", |p, t| {
        with_file(p, t, |_| {
            p.link(&t.file, &t.other)?;
            p.unlink(&t.other)
        })
    }),
    ("rename", |p, t| {
        with_file(p, t, |_| {
            p.rename(&t.file, &t.other)?;
            p.rename(&t.other, &t.file)
        })
    }),
    ("set_mode", |p, t| {
        with_file(p, t, |_| p.set_mode(&t.file, 0o600))
    }),
    ("set_modified", |p, t| {
        with_file(p, t, |_| p.set_modified(&t.file, 5))
    }),
    ("statistics", |p, t| p.statistics(&t.here).map(drop)),
    ("working_directory", |p, t| {
        p.working_directory()?;
        p.change_directory(&t.here)
    }),
    ("sync", |p, _| p.sync()),
    ("spawn", |p, _| spawn(p)),
    ("process", |p, _| p.process(0).map(drop)),
    ("times", |p, _| p.times().map(drop)),
    ("sleep", |p, _| p.sleep(1000)),
    ("interrupts", |p, _| p.interrupts().map(drop)),
    ("set_raw", |p, _| p.set_raw(false).map(drop)),
];

fn is_want_of_memory(error: &Errno) -> bool {
    matches!(
        error,
        Errno::Rpc(RpcError::NoMemory)
            | Errno::Fs(FsError::Rpc(RpcError::NoMemory) | FsError::NoSpace)
            | Errno::BadImage(LoadError::Rpc(RpcError::NoMemory))
            | Errno::NoStart(
                StartError::Rpc(RpcError::NoMemory) | StartError::Failed(RpcError::NoMemory)
            )
    )
}

/// Every call when there is no memory, many times, and then with memory. Prints which did what they
/// must not.
pub fn calls(env: &Env) -> Result<i32, Stop> {
    const ROUNDS: usize = 50;
    let (process, things) = (env.process(), Things::new()?);
    let mut wrong: [Option<Errno>; CALLS.len()] = [const { None }; CALLS.len()];
    let mut refused = 0_u32;
    let sinks = Sinks::new(process)?;
    let mut greed = Greed::new()?;
    for round in 0..ROUNDS {
        sinks.write(process, round)?;
        for ((_, call), wrong) in CALLS.iter().zip(&mut wrong) {
            match call(process, &things) {
                Ok(()) => {}
                Err(error) if is_want_of_memory(&error) => refused += 1,
                Err(error) => *wrong = Some(error),
            }
        }
        greed.more();
    }
    drop(greed);
    process.unlink(&RVec::from_slice(b"/tmp/starve-sink")?)?;
    for ((name, _), error) in CALLS.iter().zip(wrong) {
        if let Some(error) = error {
            println!(env, "{name} without memory: {}", Error::from(error))?;
        }
    }
    // A domain that was short of memory opens again within some hundredths of a second.
    process.sleep(200_000_000)?;
    let _ = process.unlink(&things.other);
    let _ = process.unlink(&things.link);
    let _ = process.remove_directory(&things.folder);
    for (name, call) in CALLS {
        if let Err(error) = call(process, &things) {
            println!(env, "{name} with memory: {}", Error::from(error))?;
        }
    }
    process.unlink(&things.file)?;
    println!(
        env,
        "{} calls, {} refused",
        CALLS.len(),
        if refused > 0 { "some" } else { "none" }
    )?;
    Ok(0)
}
