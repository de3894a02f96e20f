//! Where the time goes: stacks of the running threads, sampled at each tick, folded for flame
//! graphs.
//!
//! The kernel copies stacks into a ring in its memory while `calls profiled` is on (`abi::stack`).
//! QEMU keeps that memory in a file, from which a [`Sampler`] takes them as they come. What is
//! sampled weighs as much as the processor was busy since the tick before, in nanoseconds; where
//! the machine counts instructions, each is one of these.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use abi::stack::{FULL, NUMBER_SHIFT, Note, PARTS, Part, Place, SAMPLES, WORDS};
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol};
use symbols::note::{self, Target};
use symbols::{Frame, Reader};

use crate::trace::memory::{KERNEL_BASE, Memory, Process, memory_file};

/// Between two looks. A ring is full after more than a second of one processor.
const INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of the word in front of a note, and of both.
const WORD: u64 = 8;
const SLOT: u64 = WORD + size_of::<Note>() as u64;

/// The shell line that has `line` sampled.
pub fn profiled(line: &str) -> String {
    format!("calls profiled; {line}")
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Sample {
    number: u64,
    /// What it stands for, in nanoseconds.
    pub ns: u64,
    stack: note::Note,
}

/// Takes samples, in a thread of its own.
pub struct Sampler {
    file: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Vec<Sample>>>>,
}

impl Sampler {
    /// Makes the file for the memory, `bytes` of it, of a machine that is going to run `kernel`,
    /// and begins to look into it.
    ///
    /// # Errors
    /// If the kernel has no ring for samples, or the file cannot be made.
    pub fn start(kernel: &Path, bytes: u64, folder: &Path) -> Result<Self> {
        let (ring, text) = places(kernel)?;
        let ring = ring
            .checked_sub(KERNEL_BASE)
            .context("the ring is the kernel's")?;
        let file = memory_file(folder, bytes);
        let memory = Memory::new(&file, bytes)?;
        Ok(Self::follow(memory, ring, text, file))
    }

    /// Begins to look into the memory of `process`, which runs `core`.
    ///
    /// # Errors
    /// If the core has no ring for samples, or nobody may look into the process.
    pub fn of_process(process: &Process, core: &Path) -> Result<Self> {
        let (ring, text) = places(core)?;
        let at = |address: u64| address.wrapping_add(process.core);
        let memory = Memory::of(process)?;
        let text = at(text.start)..at(text.end);
        Ok(Self::follow(memory, at(ring), text, PathBuf::new()))
    }

    fn follow(memory: Memory, ring: u64, text: std::ops::Range<u64>, file: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let follow = move || {
            let mut samples = Samples {
                memory,
                ring,
                text,
                seen: [0; SAMPLES],
                taken: Vec::new(),
            };
            loop {
                // Before the last look, so that nothing comes after that.
                let was_over = over.load(Ordering::Acquire);
                match samples.look() {
                    // A process that was ended has taken its memory along.
                    Err(_) if !samples.memory.is_machine() => return Ok(samples.taken),
                    looked => looked?,
                }
                if was_over {
                    return Ok(samples.taken);
                }
                thread::sleep(INTERVAL);
            }
        };
        Sampler {
            file,
            is_over,
            thread: Some(thread::spawn(follow)),
        }
    }

    /// The file for [`memory_file`](machine::qemu::Machine::memory_file).
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What was taken, when the machine has ended.
    ///
    /// # Errors
    /// If the memory could not be read.
    pub fn end(mut self) -> Result<Vec<Sample>> {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take().context("it ends once")?;
        match thread.join() {
            Ok(samples) => samples.context("cannot read the machine's memory"),
            Err(_) => bail!("whoever takes the samples has panicked"),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It may be gone already.
        let _ = fs::remove_file(&self.file);
    }
}

/// Where by its own file the kernel says where its ring is, and the addresses of its code.
fn places(kernel: &Path) -> Result<(u64, std::ops::Range<u64>)> {
    let data = fs::read(kernel).with_context(|| kernel.display().to_string())?;
    let file = object::File::parse(&*data)?;
    let find = |part: &str| {
        let mut symbols = file.symbols();
        // Names of Rust have more around them; those of the linker are whole.
        let is_it = |name: &str| name == part || name.starts_with("_R") && name.contains(part);
        let symbol = symbols.find(|symbol| symbol.name().is_ok_and(is_it));
        let symbol = symbol.with_context(|| format!("{} has no {part}", kernel.display()));
        symbol.map(|symbol| symbol.address())
    };
    let either = |bare, hosted| find(bare).or_else(|_| find(hosted));
    let start = either("__text_start", "__executable_start")?;
    let end = either("__text_end", "etext")?;
    Ok((find("isolation4call5stack4RING")?, start..end))
}

struct Samples {
    memory: Memory,
    ring: u64,
    text: std::ops::Range<u64>,
    /// The number of the sample that was last taken from each slot.
    seen: [u64; SAMPLES],
    taken: Vec<Sample>,
}

impl Samples {
    fn look(&mut self) -> io::Result<()> {
        let ring = self.memory.word(self.ring)?;
        let Some(ring) = self.memory.behind(ring) else {
            return Ok(());
        };
        for index in 0..SAMPLES {
            let at = ring + index as u64 * SLOT;
            let state = self.memory.word(at)?;
            let number = state >> NUMBER_SHIFT;
            if state & 0xff != FULL || number == self.seen[index] {
                continue;
            }
            let mut bytes = vec![0; size_of::<Note>()];
            self.memory.read(at + WORD, &mut bytes)?;
            // It may have been written over meanwhile; then it is met again, or lost.
            if self.memory.word(at)? == state {
                self.seen[index] = number;
                self.taken.push(sample(number, &bytes, &self.text));
            }
        }
        Ok(())
    }
}

/// The sample in the bytes of a [`Note`].
fn sample(number: u64, bytes: &[u8], text: &std::ops::Range<u64>) -> Sample {
    let word = |at: usize| {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_le_bytes)
    };
    let count = (word(offset_of!(Note, parts_used)) as usize).min(PARTS);
    let parts: Vec<usize> = (0..count)
        .map(|part| offset_of!(Note, parts) + part * size_of::<Part>())
        .collect();
    let place = |part: usize, field: usize| word(part + offset_of!(Part, at) + field);
    let base = parts
        .first()
        .map_or(0, |part| place(*part, offset_of!(Place, sp)));
    let mut stack = note::Note::default();
    for part in parts {
        // A `Text`: two bytes that say how long it is, and in front of the 32 of the text.
        let text_at = part + offset_of!(Part, name);
        let length = usize::from(bytes[text_at]).min(32);
        let name = String::from_utf8_lossy(&bytes[text_at + 2..][..length]).to_string();
        let domain = word(part + offset_of!(Part, domain));
        let image = offset_of!(Part, image) + part;
        let image = word(image)..word(image + 8);
        let target = |word: u64| match word {
            _ if image.contains(&word) => Target::Code(domain, word - image.start),
            _ if text.contains(&word) => Target::Code(0, word - text.start),
            _ if word >= base && word - base < 1 << 17 => Target::Stack(word - base),
            _ => Target::Other,
        };
        stack.parts.push(note::Part {
            domain,
            ip: target(place(part, offset_of!(Place, ip))),
            sp: place(part, offset_of!(Place, sp)).saturating_sub(base),
            bp: target(place(part, offset_of!(Place, bp))),
        });
        let build = word(part + offset_of!(Part, build));
        stack.images.insert(domain, (name, build));
        for copied in 0..2 {
            let copied = part + offset_of!(Part, copied) + copied * 24;
            let (start, first) = (word(copied), word(copied + 8) as usize);
            for index in 0..(word(copied + 16) as usize).min(WORDS) {
                let from = first.saturating_add(index).min(WORDS);
                let content = word(offset_of!(Note, words) + from * 8);
                let at = start.wrapping_add(index as u64 * 8).saturating_sub(base);
                match target(content) {
                    Target::Other => {}
                    target => _ = stack.words.insert(at, target),
                }
            }
        }
    }
    Sample {
        number,
        ns: word(offset_of!(Note, about)),
        stack,
    }
}

/// What samples say together.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// By stack, the outermost function first, with semicolons between: nanoseconds.
    pub folded: BTreeMap<String, u64>,
    /// By function: nanoseconds in itself with what was inlined, and in it with all that it called.
    pub functions: HashMap<String, (u64, u64)>,
    /// All of it.
    pub ns: u64,
    /// How many samples there are, and how many were lost.
    pub samples: u64,
    /// See above.
    pub lost: u64,
}

impl Profile {
    /// Of these samples of a system that `reader` has the symbols of.
    pub fn of(samples: &[Sample], reader: &mut Reader) -> Profile {
        let mut profile = Profile::default();
        for sample in samples {
            profile.add(sample.ns, &reader.frames(&sample.stack));
        }
        profile.samples = samples.len() as u64;
        let last = samples.iter().map(|sample| sample.number).max();
        profile.lost = last.unwrap_or_default().saturating_sub(profile.samples);
        profile
    }

    fn add(&mut self, ns: u64, frames: &[Frame]) {
        let names: Vec<_> = frames.iter().map(named).collect();
        let outermost: Vec<_> = names.iter().rev().map(String::as_str).collect();
        *self.folded.entry(outermost.join(";")).or_default() += ns;
        self.ns += ns;
        let own = frames.iter().position(|frame| !frame.is_inlined);
        for (number, name) in names.iter().enumerate() {
            let function = self.functions.entry(name.clone()).or_default();
            function.0 += if own == Some(number) { ns } else { 0 };
            // Once, however often it has called itself.
            function.1 += if names[..number].contains(name) {
                0
            } else {
                ns
            };
        }
    }

    /// The functions in which most time was spent, in a table of `count` lines.
    pub fn table(&self, count: usize) -> String {
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by_key(|(name, (own, all))| (u64::MAX - own, u64::MAX - all, *name));
        let percent = |ns: u64| ns as f64 * 100.0 / self.ns.max(1) as f64;
        let lines = functions.iter().take(count).map(|(name, (own, all))| {
            format!("{:6.1} % {:6.1} %  {name}\n", percent(*own), percent(*all))
        });
        format!("    self      all  function\n{}", lines.collect::<String>())
    }

    /// The stacks, a line each, with what they weigh.
    pub fn text(&self) -> String {
        let lines = self.folded.iter();
        lines.map(|(stack, ns)| format!("{stack} {ns}\n")).collect()
    }
}

/// A frame in one word of a folded stack.
fn named(frame: &Frame) -> String {
    let text = match frame.function.is_empty() {
        true => format!("{}: {}", frame.domain, frame.place),
        false => format!("{}: {}", frame.domain, frame.function),
    };
    text.replace(';', ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Frame {
        Frame {
            domain: "a".into(),
            function: function.into(),
            place: String::new(),
            is_inlined: function == "inlined",
        }
    }

    #[test]
    fn what_a_function_called_is_its_own_once() {
        let mut profile = Profile::default();
        profile.add(3, &[frame("leaf"), frame("again"), frame("again")]);
        profile.add(1, &[frame("inlined"), frame("again")]);
        profile.add(2, &[frame("leaf"), frame("again"), frame("again")]);
        assert_eq!(
            profile.text(),
            "a: again;a: again;a: leaf 5\na: again;a: inlined 1\n"
        );
        assert_eq!(profile.functions["a: again"], (1, 6));
        assert_eq!(profile.functions["a: leaf"], (5, 5));
        let table = profile.table(1);
        assert!(table.ends_with("  83.3 %   83.3 %  a: leaf\n"), "{table}");
    }

    #[test]
    fn bytes_that_say_anything_make_some_sample() {
        let mut random = 7_u64;
        for _ in 0..5 {
            let bytes: Vec<u8> = (0..size_of::<Note>())
                .map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (random >> 40) as u8
                })
                .collect();
            let sample = sample(1, &bytes, &(0..u64::MAX));
            assert_eq!(sample.stack.parts.len(), PARTS);
        }
        assert!(sample(1, &[], &(0..1)).stack.parts.is_empty());
    }
}
