//! Loads the core and gives it its functions.

use crate::memory::{self, PAGE};
use crate::{signals, threads, watch};
use anyhow::{Context, Result, anyhow, bail};
use hosted_core::{Core, Figure, File, Host, READ, READ_EXECUTE, READ_WRITE, VERSION};
use isolation::load::elf::Elf;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A loaded core.
struct Loaded {
    start: usize,
    core: Core,
}

/// A file that domains may read from the archive, or that is an image.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Its name.
    pub name: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

/// What a benchmark measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its number in the list of benchmarks.
    pub id: String,
    /// What it is.
    pub name: String,
    /// `ticks` of the time-stamp counter, or something a second.
    pub unit: String,
    /// One value for each round, in the order in which they were measured. There is at least one.
    pub values: Vec<f64>,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();
static FILES: OnceLock<Vec<Given>> = OnceLock::new();
static QUIET: AtomicBool = AtomicBool::new(false);
static FIGURES: Mutex<Vec<Measured>> = Mutex::new(Vec::new());

/// How the core is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that all domains together may have.
    pub memory: usize,
    /// Keep log lines to the ring.
    pub quiet: bool,
    /// The archive; the first file is what `run` starts.
    pub files: Vec<Given>,
}

/// The core's functions.
///
/// # Panics
/// If [`load`] has not succeeded.
pub fn core() -> &'static Core {
    &LOADED
        .get()
        .expect("the core is loaded before anything calls it")
        .core
}

/// Where the core is in memory; 0 before it is loaded.
pub fn core_start() -> usize {
    LOADED.get().map_or(0, |loaded| loaded.start)
}

/// Loads the core from the ELF file `image` and starts it. Once in a process. The running thread is
/// one that may run core code.
///
/// # Errors
/// If the file is none that can be loaded, or the core is loaded already.
pub fn load(image: &[u8], options: Options) -> Result<()> {
    memory::set_total(options.memory);
    QUIET.store(options.quiet, Ordering::Relaxed);
    FILES
        .set(options.files)
        .map_err(|_| anyhow!("the core is loaded already"))?;
    let elf = Elf::parse(image).map_err(|what| anyhow!("the core: {what}"))?;
    let start = place(&elf)?;
    core_is_placed(start);
    watch::placed(start)?;
    let mut core = MaybeUninit::<Core>::uninit();
    signals::install();
    threads::now();
    // SAFETY: the entry of the core, which was built with the same `hosted_core`; it checks the
    // version.
    let core = unsafe {
        let entry: unsafe extern "C" fn(*const Host, *mut Core) -> u64 =
            std::mem::transmute(start + elf.entry as usize);
        if entry(&HOST, core.as_mut_ptr()) != 1 {
            bail!("the core is of another version than the launcher");
        }
        core.assume_init()
    };
    LOADED
        .set(Loaded { start, core })
        .map_err(|_| anyhow!("the core is loaded already"))
}

/// Does nothing but be called when the core is in its place: the script of a debugger (`lab/gdb`)
/// has a breakpoint here.
#[inline(never)]
extern "C" fn core_is_placed(start: usize) {
    std::hint::black_box(start);
}

/// Maps, copies, relocates and protects; where it starts.
fn place(elf: &Elf<'_>) -> Result<usize> {
    let pages = elf.span().div_ceil(PAGE as u64) as usize;
    let start = memory::image_take(pages);
    if start == 0 {
        bail!("no memory for the core");
    }
    // The core is not a domain's.
    memory::release(pages * PAGE);
    for segment in elf.segments() {
        let (content, to) = (
            elf.content(segment),
            (start + segment.address as usize) as *mut u8,
        );
        // SAFETY: the segment lies within the span, and the space is ours alone.
        unsafe { to.copy_from_nonoverlapping(content.as_ptr(), content.len()) };
    }
    for relocation in elf.relocations() {
        let (at, value) = relocation.map_err(|what| anyhow!("the core: {what}"))?;
        // SAFETY: eight bytes within a writable segment.
        unsafe { ((start + at as usize) as *mut u64).write_unaligned(start as u64 + value) };
    }
    for segment in elf.segments() {
        let first = segment.address as usize / PAGE;
        let end = (segment.address + segment.memory).div_ceil(PAGE as u64) as usize;
        let rights = match (segment.write, segment.execute) {
            (true, _) => READ_WRITE,
            (_, true) => READ_EXECUTE,
            _ => READ,
        };
        // SAFETY: pages of the space; the core was linked for these rights.
        unsafe { memory::image_protect(start + first * PAGE, end - first, rights) };
    }
    let (first, end) = (
        elf.relro.0.div_ceil(PAGE as u64) as usize,
        elf.relro.1 as usize / PAGE,
    );
    if end > first {
        // SAFETY: as above; relocation is done.
        unsafe { memory::image_protect(start + first * PAGE, end - first, READ) };
    }
    Ok(start)
}

/// Runs `body` on a new thread that may run core code, and waits for it.
///
/// # Errors
/// If there is no such thread to be had.
pub fn on_thread<R: Send>(body: impl FnOnce() -> R + Send) -> Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(4 << 20)
            .spawn_scoped(scope, || {
                let membership = threads::Membership::new(usize::MAX)?;
                let result = body();
                drop(membership);
                Some(result)
            });
        let result = thread
            .context("no thread")?
            .join()
            .map_err(|_| anyhow!("the thread panicked"))?;
        result.context("no memory for a thread")
    })
}

/// What the benchmarks gave so far.
pub fn take_figures() -> Vec<Measured> {
    std::mem::take(&mut *FIGURES.lock().unwrap_or_else(PoisonError::into_inner))
}

static HOST: Host = Host {
    version: VERSION,
    pages: memory::pages,
    free_pages: memory::free_pages,
    heap_take,
    heap_give,
    image_take: memory::image_take,
    image_protect: memory::image_protect,
    image_give: memory::image_give,
    spawn: threads::spawn,
    wait: threads::wait,
    wake: threads::wake,
    yield_now,
    now: threads::now,
    wall: threads::wall,
    random,
    step: crate::step::arm,
    write,
    stop_world: threads::stop_world,
    counted: threads::counted,
    memory: memory_of,
    processors,
    processor_time,
    exit,
    file,
    figure,
    quiet,
    watch: watch::wanted,
};

extern "C" fn heap_take(bytes: usize, alignment: usize) -> usize {
    match std::alloc::Layout::from_size_align(bytes, alignment) {
        // SAFETY: the core's heap never asks for nothing.
        Ok(layout) if bytes > 0 => unsafe { std::alloc::alloc(layout) as usize },
        _ => 0,
    }
}

unsafe extern "C" fn heap_give(start: usize, bytes: usize, alignment: usize) {
    if let Ok(layout) = std::alloc::Layout::from_size_align(bytes, alignment) {
        // SAFETY: by the caller's duty, from `heap_take` with the same numbers.
        unsafe { std::alloc::dealloc(start as *mut u8, layout) };
    }
}

unsafe extern "C" fn random(words: usize, count: usize) -> usize {
    let bytes = count * size_of::<u64>();
    // SAFETY: by the caller's duty the words are there to be written.
    let got = unsafe { libc::getrandom(words as *mut libc::c_void, bytes, libc::GRND_NONBLOCK) };
    usize::try_from(got).unwrap_or(0) / size_of::<u64>()
}

extern "C" fn yield_now() {
    std::thread::yield_now();
}

unsafe extern "C" fn write(text: usize, len: usize) {
    // SAFETY: by the caller's duty, text of that length. A log line that cannot be written is lost.
    unsafe { libc::write(2, text as *const _, len) };
}

extern "C" fn memory_of(which: u32) -> u64 {
    (if which == 0 {
        memory::total()
    } else {
        memory::free()
    }) as u64
}

extern "C" fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// See [`hosted_core::Host::processor_time`].
pub extern "C" fn processor_time(which: u32) -> u64 {
    let clock = match which {
        0 => libc::CLOCK_PROCESS_CPUTIME_ID,
        _ => libc::CLOCK_THREAD_CPUTIME_ID,
    };
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the system fills the time in. Linux has both clocks since 2.6.12; without, it
    // stays 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

extern "C" fn exit(status: u32) -> ! {
    watch::ends();
    // SAFETY: ends the process without running destructors, which other threads may still rely on.
    unsafe { libc::_exit(status as i32) }
}

unsafe extern "C" fn file(index: usize, file: usize) -> u32 {
    let Some(given) = FILES.get().and_then(|files| files.get(index)) else {
        return 0;
    };
    let (name, content) = (given.name, given.content);
    let told = File {
        name: [name.as_ptr() as usize, name.len()],
        content: [content.as_ptr() as usize, content.len()],
    };
    // SAFETY: by the caller's duty, the address of a `File`.
    unsafe { (file as *mut File).write(told) };
    1
}

unsafe extern "C" fn figure(figure: usize) {
    // SAFETY: by the caller's duty, the address of a `Figure` with three texts and a run of values.
    let measured = unsafe {
        let figure = &*(figure as *const Figure);
        let text = |[start, len]: [usize; 2]| {
            String::from_utf8_lossy(std::slice::from_raw_parts(start as *const u8, len))
                .into_owned()
        };
        let [start, count] = figure.values;
        let values = std::slice::from_raw_parts(start as *const u64, count).iter();
        Measured {
            id: text(figure.id),
            name: text(figure.name),
            unit: text(figure.unit),
            values: values
                .map(|value| *value as f64 / figure.divisor as f64)
                .collect(),
        }
    };
    FIGURES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(measured);
}

extern "C" fn quiet() -> u32 {
    u32::from(QUIET.load(Ordering::Relaxed))
}
