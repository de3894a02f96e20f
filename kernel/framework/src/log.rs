//! The kernel log: early console on COM1, a mirror on COM2, and a ring of the last 64 KiB.
//!
//! A line is `[   12.345678] text`. COM1 is the kernel's until a console driver acquires its ports
//! ([`use_console`]); from then on only a panic prints there. COM2, where it exists, receives
//! every line. Messages are formatted while the log is locked, so lines of different processors
//! never mix.
//!
//! Who logs only writes to the ring. A thread ([`start_sender`]) sends from there to the ports, a
//! transmitter's worth of bytes per hold of the lock, as interrupts are off meanwhile: at 115,200
//! baud a line of 400 bytes takes 35 ms. Before that thread exists, on the way down ([`flush`]) and
//! in a panic, whoever logs sends, and waits.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::arch::serial::{CONSOLE, MIRROR, Uart};
use crate::ring::{Left, Line, Ring, Sent};
use crate::spin::IrqLock;
use crate::{task, time};

const RING_BYTES: usize = 64 * 1024;
/// Bytes that [`read`] copies per hold of the lock.
const READ_AT_ONCE: usize = 4096;
/// How often a port that has no room is asked again by who waits for it.
const PATIENCE: u32 = 100_000;
/// How often the log's lock is tried where its holder may have been stopped.
const LOCK_PATIENCE: u32 = 1_000_000;
/// Nanoseconds after which the sender asks such a port again: about a transmitter's worth of bytes.
const ASK_AGAIN: u64 = 1_000_000;
/// Nanoseconds for which the sender lets lie what was logged while it had nothing to do. Each byte
/// costs as much as hundreds of instructions, and who starts a crashed driver anew, whose lines
/// these are, is not to wait for them.
const REST: u64 = 5_000_000;

/// The ring buffer and where it goes.
struct Log {
    ring: Ring<RING_BYTES>,
    com1: Port,
    com2: Port,
    /// Only a panic prints on COM1.
    com2_only: bool,
}

/// A serial port.
struct Port {
    uart: Uart,
    /// It gets the log.
    on: bool,
    sent: Sent,
}

/// One of the ports.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// The first, which is the console's.
    Console,
    /// The second.
    #[cfg(feature = "selftest")]
    Mirror,
}

static LOG: IrqLock<Log> = IrqLock::new(Log {
    ring: Ring::new(),
    com1: Port::new(CONSOLE),
    com2: Port::new(MIRROR),
    com2_only: false,
});

static CLOCK: AtomicUsize = AtomicUsize::new(0);
static PANICKING: AtomicBool = AtomicBool::new(false);
/// There is a thread that sends.
static SENDER: AtomicBool = AtomicBool::new(false);
/// Changes when there is something to be sent.
static WORK: AtomicU32 = AtomicU32::new(0);

impl Port {
    const fn new(uart: Uart) -> Self {
        Port {
            uart,
            on: false,
            sent: Sent::new(),
        }
    }

    /// Gives the port what is logged from now on, or nothing any more.
    fn turn(&mut self, on: bool, ring: &Ring<RING_BYTES>) {
        if on && !self.on {
            self.sent.skip(ring);
        }
        self.on = on;
    }

    /// Sends as much as the transmitter takes.
    fn send_some(&mut self, ring: &Ring<RING_BYTES>) -> Left {
        match self.on {
            true => self.sent.some(ring, &mut self.uart),
            false => Left::Nothing,
        }
    }

    /// Sends all; gives up on a port that takes nothing for long.
    fn send_all(&mut self, ring: &Ring<RING_BYTES>) {
        let mut patience = PATIENCE;
        while patience > 0 {
            patience = match self.send_some(ring) {
                Left::Nothing => return,
                Left::Room => patience - 1,
                Left::More => PATIENCE,
            };
        }
    }
}

impl Log {
    fn send_some(&mut self) -> Left {
        let first = self.com1.send_some(&self.ring);
        first.max(self.com2.send_some(&self.ring))
    }

    fn send_all(&mut self) {
        self.com1.send_all(&self.ring);
        self.com2.send_all(&self.ring);
    }

    /// Sends a port some of what was logged before position `end`; `None` if it has all of that.
    fn send_before(&mut self, end: u64, which: Which) -> Option<Left> {
        let port = match which {
            Which::Console => &mut self.com1,
            #[cfg(feature = "selftest")]
            Which::Mirror => &mut self.com2,
        };
        if !port.on || port.sent.is_past(end) {
            return None;
        }
        match port.send_some(&self.ring) {
            Left::Nothing => None,
            left => Some(left),
        }
    }
}

/// Programs the serial ports that exist.
pub(crate) fn init() {
    let mut log = LOG.lock();
    log.com1.on = CONSOLE.init();
    log.com2.on = MIRROR.init();
}

/// Has a thread of its own send what is logged, from now on. Without memory for it, whoever logs
/// goes on sending.
pub fn start_sender() {
    let started = task::spawn("log", sender, 0, task::DEFAULT_STACK_PAGES).is_ok();
    SENDER.store(started, Ordering::Release);
}

/// The sender's thread.
extern "C" fn sender(_: usize) {
    loop {
        let seen = WORK.load(Ordering::Acquire);
        let left = LOG.lock().send_some();
        match left {
            Left::More => {}
            Left::Room => _ = task::sleep_until(time::now_ns() + ASK_AGAIN),
            Left::Nothing => {
                tell_lost();
                task::wait_uninterrupted(&WORK, seen);
                task::sleep_until(time::now_ns() + REST);
            }
        }
    }
}

/// Says in the log what a port did not get because it came too fast.
fn tell_lost() {
    let lost = {
        let mut log = LOG.lock();
        log.com1.sent.take_lost().max(log.com2.sent.take_lost())
    };
    if lost > 0 {
        crate::kprintln!("log: {lost} bytes came too fast for the serial line");
    }
}

/// Bytes that some port has not got yet.
#[cfg(feature = "selftest")]
pub(crate) fn unsent() -> u64 {
    let log = LOG.lock();
    let left = |port: &Port| match port.on {
        true => port.sent.left(&log.ring),
        false => 0,
    };
    left(&log.com1).max(left(&log.com2))
}

/// Sends everything, and waits for it. For the way down: a lock that is held by a stopped processor
/// is not waited for.
pub(crate) fn flush() {
    for _ in 0..LOCK_PATIENCE {
        if let Some(mut log) = LOG.try_lock() {
            return log.send_all();
        }
        core::hint::spin_loop();
    }
}

/// Programs COM1 anew after a driver had it, and prints there again.
pub(crate) fn init_console() {
    let mut log = LOG.lock();
    let on = CONSOLE.init() && !log.com2_only;
    let log = &mut *log;
    log.com1.turn(on, &log.ring);
}

/// Leaves COM1 to the console from the start, if the mirror exists; only a panic prints there.
pub(crate) fn use_mirror_only() {
    let mut log = LOG.lock();
    log.com2_only = log.com2.on;
    log.com1.on &= !log.com2.on;
}

/// Whether there is a second port, which is the log's.
pub(crate) fn has_mirror() -> bool {
    LOG.lock().com2.on
}

/// Gives log lines their time: nanoseconds since boot.
pub(crate) fn set_clock(now_ns: fn() -> u64) {
    CLOCK.store(now_ns as usize, Ordering::Release);
}

/// The kernel stops printing on COM1 (`false`) or takes it back (`true`).
pub(crate) fn use_console(on: bool) {
    send_rest(Which::Console);
    let mut log = LOG.lock();
    let log = &mut *log;
    log.com1.turn(on, &log.ring);
}

/// From now on the log goes to COM1 as well, whoever has its ports: for the way down.
pub fn take_console() {
    use_console(true);
}

/// Sends a port what was logged until now, a transmitter's worth of bytes per hold of the lock; how
/// many holds that took. Gives up on a port that takes nothing for long.
pub(crate) fn send_rest(which: Which) -> usize {
    let end = LOG.lock().ring.written();
    let (mut patience, mut holds) = (PATIENCE, 0);
    while patience > 0 {
        let left = LOG.lock().send_before(end, which);
        holds += 1;
        patience = match left {
            None => break,
            Some(Left::More) => PATIENCE,
            Some(_) => patience - 1,
        };
    }
    holds
}

/// From now on everything is printed on all ports, and a lock held by a stopped processor does not
/// block printing. For the way down only.
pub(crate) fn panicking() {
    PANICKING.store(true, Ordering::Relaxed);
    if let Some(mut log) = LOG.try_lock() {
        let log = &mut *log;
        log.com1.turn(true, &log.ring);
    }
}

/// Number of bytes ever logged.
pub fn written() -> u64 {
    LOG.lock().ring.written()
}

/// Copies log bytes from absolute position `from` on into `buffer`. Returns the position of the
/// first byte copied (later than `from` if older bytes are gone) and the number of bytes.
pub fn read(from: u64, buffer: &mut [u8]) -> (u64, usize) {
    let mut pieces = buffer.chunks_mut(READ_AT_ONCE);
    let first = pieces.next().unwrap_or_default();
    let (start, mut count) = LOG.lock().ring.read(from, first);
    for piece in pieces {
        let next = start + count as u64;
        let (at, more) = LOG.lock().ring.read(next, piece);
        // What was overwritten meanwhile ends the piece that was asked for.
        if at != next || more == 0 {
            break;
        }
        count += more;
    }
    (start, count)
}

/// What is logged, as one line and without commands to a terminal: each control character in it is
/// a space. Whoever reads the log can go by the beginnings of its lines.
struct OneLine<'a>(fmt::Arguments<'a>);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WithoutControls(f).write_fmt(self.0)
    }
}

struct WithoutControls<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for WithoutControls<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut parts = text.split(|c: char| c.is_control() && c != '\t');
        self.0.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| self.0.write_char(' ').and_then(|()| self.0.write_str(part)))
    }
}

/// Logs one line. Use [`kprintln!`](crate::kprintln).
pub fn print(arguments: fmt::Arguments) {
    let clock = CLOCK.load(Ordering::Acquire);
    let now = if clock == 0 {
        0
    } else {
        // SAFETY: `set_clock` alone stores non-zero values, and those are `fn() -> u64`.
        let clock: fn() -> u64 = unsafe { core::mem::transmute(clock) };
        clock()
    };
    let (seconds, micros) = (now / 1_000_000_000, now / 1000 % 1_000_000);
    let text = OneLine(arguments);
    let line = format_args!("[{seconds:5}.{micros:06}] {text}\n");
    if PANICKING.load(Ordering::Relaxed) {
        print_panicking(line);
        return;
    }
    // Formatting into the log cannot fail; a faulty Display is the caller's loss.
    let _ = LOG.lock().write_fmt(line);
    sent_by_somebody();
}

/// Has the sender look, or does its work where there is none.
fn sent_by_somebody() {
    if SENDER.load(Ordering::Acquire) {
        WORK.fetch_add(1, Ordering::Release);
        task::wake_later(&WORK);
    } else {
        flush();
    }
}

/// Prints although the lock may be held by a processor that will never release it.
fn print_panicking(line: fmt::Arguments) {
    for _ in 0..LOCK_PATIENCE {
        if let Some(mut log) = LOG.try_lock() {
            let log = &mut *log;
            log.com1.turn(true, &log.ring);
            let _ = log.write_fmt(line);
            return log.send_all();
        }
        core::hint::spin_loop();
    }
    let _ = { CONSOLE }.write_fmt(line);
}

impl Write for Log {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.ring.push(text.as_bytes());
        Ok(())
    }
}

impl Line for Uart {
    fn room(&mut self) -> usize {
        Uart::room(*self)
    }

    fn put(&mut self, byte: u8) {
        Uart::put(*self, byte);
    }
}

/// Without the log's lock; for when that cannot be had.
impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // Not for ever.
            let _ = (0..PATIENCE).any(|_| self.room() > 0);
            if byte == b'\n' {
                self.put(b'\r');
            }
            self.put(byte);
        }
        Ok(())
    }
}

/// Logs one line, formatted as by `println!`.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => { $crate::log::print(format_args!($($argument)*)) };
}
