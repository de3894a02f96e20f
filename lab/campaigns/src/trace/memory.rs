//! Takes the events out of the memory of a machine while it runs.
//!
//! The machine knows nothing of it, and does not wait: what is not taken in time is overwritten,
//! and counted here.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use abi::events::{EVENT_BYTES, EVENTS};
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol};
use trefoil_gate::tool;

use super::event::{Event, Gap, Recording};

/// Where the kernel's own addresses begin; at physical address 0.
pub(crate) const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;
/// Where all memory is mapped in order.
const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// Where the kernel begins in physical memory.
const LOADED: u64 = 0x20_0000;
/// QEMU's machine has a hole below 4 GiB if it has as much memory as `WITH_HOLE`; then so much is
/// below.
const BELOW_HOLE: u64 = 0x8000_0000;
const WITH_HOLE: u64 = 0xb000_0000;
/// Between two looks. On an idle host the ring is full after some tens of milliseconds.
const INTERVAL: Duration = Duration::from_micros(500);
/// Events behind one that is being written, after which that is not waited for any more: whoever
/// wrote it has died of it.
const PATIENCE: u64 = EVENTS as u64 / 4;

/// Takes events, in a thread of its own.
pub struct Recorder {
    file: PathBuf,
    is_over: Arc<AtomicBool>,
    taken: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<Recording>>>,
}

impl Recorder {
    /// Makes the file for the memory, `bytes` of it, of a machine that is going to run `kernel`,
    /// and begins to look into it. The file is in memory if possible, else in `folder`.
    ///
    /// # Errors
    /// If the kernel has no ring for events, or the file cannot be made.
    pub fn start(kernel: &Path, bytes: u64, folder: &Path) -> Result<Self> {
        let places = Places::of(kernel, KERNEL_BASE.wrapping_neg())?;
        let path = memory_file(folder, bytes);
        let memory = Memory::new(&path, bytes)?;
        Ok(Self::follow(memory, places, path))
    }

    /// Begins to look into the memory of `process`, which runs `core`.
    ///
    /// # Errors
    /// If the core has no ring for events, or nobody may look into the process.
    pub fn of_process(process: &Process, core: &Path) -> Result<Self> {
        let places = Places::of(core, process.core)?;
        let path = process.memory();
        Ok(Self::follow(Memory::of(process)?, places, path))
    }

    fn follow(memory: Memory, places: Places, path: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let taken = Arc::new(AtomicU64::new(0));
        let ring = Ring {
            memory,
            places,
            next: 0,
            recording: Recording::default(),
        };
        let (over, count) = (is_over.clone(), taken.clone());
        let name = ring.memory.is_machine().then(|| path.clone());
        Recorder {
            file: path,
            is_over,
            taken,
            thread: Some(thread::spawn(move || ring.follow(name, &over, &count))),
        }
    }

    /// The file for [`memory_file`](machine::qemu::Machine::memory_file).
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// How many events were taken so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// What was taken, when the machine has ended.
    ///
    /// # Errors
    /// If the memory could not be read.
    pub fn end(mut self) -> Result<Recording> {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take().context("it ends once")?;
        match thread.join() {
            Ok(recording) => recording.context("cannot read the machine's memory"),
            Err(_) => bail!("whoever takes the events has panicked"),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It may be gone already; a process's memory is no file to be removed.
        let _ = fs::remove_file(&self.file);
    }
}

/// Whether the file system of `folder` has room for `bytes`. QEMU ends if its memory turns out to
/// have none, and containers have little in theirs.
fn has_room(folder: &Path, bytes: u64) -> bool {
    let mut command = Command::new("df");
    let free = tool::output(command.args(["-k", "--output=avail"]).arg(folder));
    let free = free
        .ok()
        .and_then(|text| text.lines().last()?.trim().parse::<u64>().ok());
    folder.is_dir() && free.is_some_and(|kib| kib > bytes >> 10)
}

/// A name that nobody else uses.
pub(crate) fn memory_file(folder: &Path, bytes: u64) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let shared = Path::new("/dev/shm");
    let folder = if has_room(shared, bytes) {
        shared
    } else {
        folder
    };
    folder.join(format!("trefoil-memory-{}-{number}", std::process::id()))
}

/// A Linux process that runs the core of the hosted platform.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Where its core is.
    pub core: u64,
}

impl Process {
    fn memory(&self) -> PathBuf {
        format!("/proc/{}/mem", self.id).into()
    }
}

/// Where in the memory that is read the kernel has what is looked for.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// How many events were begun.
    written: u64,
    /// The address of the ring.
    ring: u64,
}

impl Places {
    /// Of this kernel, whose addresses are `moved` by so much.
    fn of(kernel: &Path, moved: u64) -> Result<Self> {
        let data = fs::read(kernel).with_context(|| kernel.display().to_string())?;
        let file = object::File::parse(&*data)?;
        let find = |part: &str| {
            let mut symbols = file.symbols();
            let symbol = symbols.find(|symbol| symbol.name().is_ok_and(|name| name.contains(part)));
            let address = symbol.map(|symbol| symbol.address().wrapping_add(moved));
            address.with_context(|| format!("{} has no {part}", kernel.display()))
        };
        Ok(Places {
            written: find("isolation6domain5trace7WRITTEN")?,
            ring: find("isolation6domain5trace4RING")?,
        })
    }
}

/// The memory of a machine, or of a process.
pub(crate) struct Memory {
    file: File,
    /// How much memory a machine has; a process: 0.
    bytes: u64,
}

impl Memory {
    /// Makes the file `path` for `bytes` of it.
    pub(crate) fn new(path: &Path, bytes: u64) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        file.set_len(bytes)?;
        Ok(Memory { file, bytes })
    }

    /// That of a process, which is to live on while it is read.
    pub(crate) fn of(process: &Process) -> Result<Self> {
        let path = process.memory();
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Memory { file, bytes: 0 })
    }

    pub(crate) fn is_machine(&self) -> bool {
        self.bytes != 0
    }

    /// Where the kernel's pointer `to` leads in what is read; `None`: nowhere yet.
    pub(crate) fn behind(&self, to: u64) -> Option<u64> {
        match self.is_machine() {
            true => to.checked_sub(DIRECT_MAP),
            false => Some(to).filter(|to| *to != 0),
        }
    }

    /// Reads what is at the physical address `from`, or at that address in the process.
    pub(crate) fn read(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let above = from >= 1 << 32 && self.bytes >= WITH_HOLE;
        let offset = match above {
            true => from - (1 << 32) + BELOW_HOLE,
            false => from,
        };
        self.file.read_exact_at(buffer, offset)
    }

    pub(crate) fn word(&self, from: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(from, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The ring, and how far it was read.
struct Ring {
    memory: Memory,
    places: Places,
    /// The number of the next event.
    next: u64,
    recording: Recording,
}

impl Ring {
    /// Takes events until it `is_over`. The file loses its name as soon as the machine has it.
    fn follow(
        mut self,
        mut name: Option<PathBuf>,
        is_over: &AtomicBool,
        taken: &AtomicU64,
    ) -> io::Result<Recording> {
        loop {
            // Before the last look, so that nothing comes after that.
            let was_over = is_over.load(Ordering::Acquire);
            match self.look(was_over) {
                // A process that was ended has taken its memory along.
                Err(_) if !self.memory.is_machine() => return Ok(self.recording),
                looked => looked?,
            }
            taken.store(self.next, Ordering::Relaxed);
            if name.is_some() && self.is_loaded() {
                // It may be gone already.
                let _ = name.take().map(fs::remove_file);
            }
            if was_over {
                return Ok(self.recording);
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Whether the machine has the file: its kernel is there.
    fn is_loaded(&self) -> bool {
        self.memory.word(LOADED).is_ok_and(|word| word != 0)
    }

    /// Takes what is there. An event that is being written is waited for, unless nobody `is_over`.
    fn look(&mut self, is_over: bool) -> io::Result<()> {
        let written = self.memory.word(self.places.written)?;
        let ring = self.memory.word(self.places.ring)?;
        let ring = self.memory.behind(ring).filter(|_| written > self.next);
        let Some(ring) = ring else {
            return Ok(());
        };
        let oldest = written.saturating_sub(EVENTS as u64);
        self.skip_to(oldest);
        let bytes = self.copy(ring, written)?;
        // What was begun meanwhile may have been written over what was read.
        let written = self.memory.word(self.places.written)?;
        let first = self.next;
        self.skip_to(written.saturating_sub(EVENTS as u64));
        let (slots, _) = bytes.as_chunks::<EVENT_BYTES>();
        for slot in slots.iter().skip((self.next - first) as usize) {
            let lap = (self.next / EVENTS as u64) as u8;
            match Event::decode(slot).filter(|(_, of_lap)| *of_lap == lap) {
                Some((event, _)) => {
                    self.recording.events.push(event);
                    self.next += 1;
                }
                None if is_over || written - self.next > PATIENCE => self.skip_to(self.next + 1),
                None => break,
            }
        }
        Ok(())
    }

    /// The bytes of the events from the next one up to number `end`.
    fn copy(&self, ring: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (end - self.next) as usize * EVENT_BYTES];
        let at = self.next as usize % EVENTS * EVENT_BYTES;
        let before_end = (EVENTS * EVENT_BYTES - at).min(bytes.len());
        let (first, second) = bytes.split_at_mut(before_end);
        self.memory.read(ring + at as u64, first)?;
        self.memory.read(ring, second)?;
        Ok(bytes)
    }

    /// Gives up what is before number `number`.
    fn skip_to(&mut self, number: u64) {
        let lost = number.saturating_sub(self.next);
        if lost == 0 {
            return;
        }
        self.next = number;
        let after = self.recording.events.len();
        match self.recording.gaps.last_mut() {
            Some(gap) if gap.after == after => gap.lost += lost,
            _ => self.recording.gaps.push(Gap { after, lost }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: u64 = 1 << 20;

    /// A machine without a kernel, whose ring we write.
    fn ring(name: &str) -> Ring {
        let path = std::env::temp_dir().join(format!("trefoil-ring-{}-{name}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .expect("made");
        fs::remove_file(path).expect("removed");
        let bytes = RING + (EVENTS * EVENT_BYTES) as u64;
        file.set_len(bytes).expect("set");
        let memory = Memory { file, bytes };
        let ring = Ring {
            memory,
            places: Places {
                written: 0,
                ring: 8,
            },
            next: 0,
            recording: Recording::default(),
        };
        put(&ring, 8, DIRECT_MAP + RING);
        ring
    }

    fn put(ring: &Ring, at: u64, word: u64) {
        let written = ring.memory.file.write_all_at(&word.to_le_bytes(), at);
        written.expect("written");
    }

    /// Writes the event with this number, whose time is its number.
    fn event(ring: &Ring, number: u64) {
        let at = RING + number % EVENTS as u64 * EVENT_BYTES as u64;
        put(ring, at + 8, number);
        put(ring, at, 1 | ((number / EVENTS as u64) & 0xff) << 8);
    }

    fn times(ring: &Ring) -> Vec<u64> {
        let events = ring.recording.events.iter();
        events.map(|event| event.time).collect()
    }

    #[test]
    fn events_are_taken_once_and_in_order() {
        let mut ring = ring("order");
        ring.look(false).expect("read");
        assert!(ring.recording.events.is_empty());
        (0..5).for_each(|number| event(&ring, number));
        put(&ring, 0, 5);
        ring.look(false).expect("read");
        ring.look(false).expect("read");
        assert_eq!(times(&ring), [0, 1, 2, 3, 4]);
        assert_eq!(ring.recording.lost(), 0);
    }

    #[test]
    fn an_event_that_is_being_written_is_waited_for() {
        let mut ring = ring("wait");
        event(&ring, 0);
        event(&ring, 2);
        put(&ring, 0, 3);
        ring.look(false).expect("read");
        assert_eq!(times(&ring), [0]);
        event(&ring, 1);
        ring.look(false).expect("read");
        assert_eq!(times(&ring), [0, 1, 2]);
    }

    #[test]
    fn an_event_that_is_never_written_is_lost_in_the_end() {
        let mut ring = ring("never");
        event(&ring, 0);
        event(&ring, 2);
        put(&ring, 0, 3);
        ring.look(true).expect("read");
        assert_eq!(times(&ring), [0, 2]);
        assert_eq!(ring.recording.gaps, [Gap { after: 1, lost: 1 }]);
    }

    #[test]
    fn an_event_whose_writer_has_died_is_not_waited_for_too_long() {
        let mut ring = ring("dead");
        (1..PATIENCE + 2).for_each(|number| event(&ring, number));
        put(&ring, 0, PATIENCE);
        ring.look(false).expect("read");
        assert!(ring.recording.events.is_empty());
        put(&ring, 0, PATIENCE + 2);
        ring.look(false).expect("read");
        assert_eq!(ring.recording.events.len() as u64, PATIENCE + 1);
        assert_eq!(ring.recording.gaps, [Gap { after: 0, lost: 1 }]);
    }

    #[test]
    fn what_was_overwritten_is_counted() {
        let (mut ring, full) = (ring("full"), EVENTS as u64);
        event(&ring, 0);
        put(&ring, 0, 1);
        ring.look(false).expect("read");
        let end = 2 * full + 10;
        (end - full..end).for_each(|number| event(&ring, number));
        put(&ring, 0, end);
        ring.look(false).expect("read");
        let expected: Vec<_> = [0].into_iter().chain(end - full..end).collect();
        assert_eq!(times(&ring), expected);
        let lost = end - full - 1;
        assert_eq!(ring.recording.gaps, [Gap { after: 1, lost }]);
    }

    #[test]
    fn an_event_of_the_lap_before_is_not_taken_for_a_new_one() {
        let (mut ring, full) = (ring("lap"), EVENTS as u64);
        (0..full).for_each(|number| event(&ring, number));
        put(&ring, 0, full);
        ring.look(false).expect("read");
        put(&ring, 0, full + 1);
        ring.look(false).expect("read");
        assert_eq!(ring.recording.events.len(), EVENTS);
        event(&ring, full);
        ring.look(false).expect("read");
        assert_eq!(times(&ring).last(), Some(&full));
    }

    #[test]
    fn a_kernel_without_a_ring_is_refused() {
        let error = Places::of(Path::new("/proc/self/exe"), 0).expect_err("it is no kernel");
        assert!(error.to_string().contains("has no "), "{error}");
    }
}
