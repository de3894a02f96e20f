//! The kernel log: early console on COM1, a mirror on COM2, and a ring of the last 64 KiB.
//!
//! A line is `[   12.345678] text`. COM1 is the kernel's until a console driver acquires its ports
//! ([`use_console`]); from then on only a panic prints there. COM2, where it exists, receives
//! every line. Messages are formatted while the log is locked, so lines of different processors
//! never mix.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::arch::regs;
use crate::spin::IrqLock;

const COM1: u16 = 0x3f8;
const COM2: u16 = 0x2f8;
const RING_BYTES: usize = 64 * 1024;

/// The ring buffer and where each byte also goes.
struct Log {
    ring: [u8; RING_BYTES],
    /// Bytes ever written; the ring holds the last `RING_BYTES` of them.
    written: u64,
    com1: bool,
    com2: bool,
    /// Bytes that fit into the transmitters of the two before it has to be asked again.
    room: [u8; 2],
    /// Only a panic prints on COM1.
    com2_only: bool,
}

static LOG: IrqLock<Log> = IrqLock::new(Log {
    ring: [0; RING_BYTES],
    written: 0,
    com1: false,
    com2: false,
    room: [0; 2],
    com2_only: false,
});

static CLOCK: AtomicUsize = AtomicUsize::new(0);
static PANICKING: AtomicBool = AtomicBool::new(false);

/// Programs the serial ports that exist.
pub(crate) fn init() {
    let mut log = LOG.lock();
    log.com1 = serial_init(COM1);
    log.com2 = serial_init(COM2);
}

/// Programs COM1 anew after a driver had it, and prints there again.
pub(crate) fn init_console() {
    let mut log = LOG.lock();
    log.com1 = serial_init(COM1) && !log.com2_only;
}

/// Leaves COM1 to the console from the start, if the mirror exists; only a panic prints there.
pub(crate) fn use_mirror_only() {
    let mut log = LOG.lock();
    log.com2_only = log.com2;
    log.com1 &= !log.com2;
}

/// The first port of the mirror, if there is one.
pub(crate) fn mirror_port() -> Option<u16> {
    LOG.lock().com2.then_some(COM2)
}

/// Gives log lines their time: nanoseconds since boot.
pub(crate) fn set_clock(now_ns: fn() -> u64) {
    CLOCK.store(now_ns as usize, Ordering::Release);
}

/// The kernel stops printing on COM1 (`false`) or takes it back (`true`).
pub(crate) fn use_console(on: bool) {
    let mut log = LOG.lock();
    log.com1 = on;
    log.room[0] = 0;
}

/// From now on everything is printed on all ports, and a lock held by a stopped processor does not
/// block printing. For the way down only.
pub(crate) fn panicking() {
    PANICKING.store(true, Ordering::Relaxed);
    if let Some(mut log) = LOG.try_lock() {
        log.com1 = true;
        log.room[0] = 0;
    }
}

/// Number of bytes ever logged.
pub fn written() -> u64 {
    LOG.lock().written
}

/// Copies log bytes from absolute position `from` on into `buffer`. Returns the position of the
/// first byte copied (later than `from` if older bytes are gone) and the number of bytes.
pub fn read(from: u64, buffer: &mut [u8]) -> (u64, usize) {
    let log = LOG.lock();
    let oldest = log.written.saturating_sub(RING_BYTES as u64);
    let start = from.clamp(oldest, log.written);
    let count = buffer.len().min((log.written - start) as usize);
    for (i, byte) in buffer[..count].iter_mut().enumerate() {
        *byte = log.ring[(start as usize + i) % RING_BYTES];
    }
    (start, count)
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
    let line = format_args!("[{seconds:5}.{micros:06}] {arguments}\n");
    if PANICKING.load(Ordering::Relaxed) {
        print_panicking(line);
        return;
    }
    // Formatting into the log cannot fail; a faulty Display is the caller's loss.
    let _ = LOG.lock().write_fmt(line);
}

/// Prints although the lock may be held by a processor that will never release it.
fn print_panicking(line: fmt::Arguments) {
    for _ in 0..1_000_000 {
        if let Some(mut log) = LOG.try_lock() {
            log.com1 = true;
            let _ = log.write_fmt(line);
            return;
        }
        core::hint::spin_loop();
    }
    let _ = Uart(COM1).write_fmt(line);
}

/// Writes text on the console port as it is, without time stamp and newline.
pub fn print_raw(text: &str) {
    let _ = LOG.lock().write_str(text);
}

impl Write for Log {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            self.ring[(self.written % RING_BYTES as u64) as usize] = byte;
            self.written += 1;
            if self.com1 {
                serial_put(COM1, byte, &mut self.room[0]);
            }
            if self.com2 {
                serial_put(COM2, byte, &mut self.room[1]);
            }
        }
        Ok(())
    }
}

/// A port without the log's lock.
struct Uart(u16);

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes()
            .for_each(|byte| serial_put(self.0, byte, &mut 0));
        Ok(())
    }
}

/// Sets a 16550 to 115200 8N1 without interrupts. Returns whether there is one.
fn serial_init(port: u16) -> bool {
    // SAFETY: these are the standard ports of the two serial lines; a 16550 cannot reach memory.
    unsafe {
        regs::outb(port + 7, 0x5a);
        if regs::inb(port + 7) != 0x5a {
            return false;
        }
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
            regs::outb(port + register, value);
        }
    }
    true
}

/// Sends a byte. If there is no `room` known of, waits (not for ever) until the transmitter is empty.
fn serial_put(port: u16, byte: u8, room: &mut u8) {
    if byte == b'\n' {
        serial_put(port, b'\r', room);
    }
    // SAFETY: as in `serial_init`.
    unsafe {
        if *room == 0 {
            *room = serial_room(port);
        }
        regs::outb(port, byte);
    }
    *room -= 1;
}

/// Waits, not for ever, until the transmitter is empty; how many bytes fit in: 16 if the FIFO works that
/// `serial_init` switched on (bits 6 and 7 of the interrupt identification register), else one.
fn serial_room(port: u16) -> u8 {
    // SAFETY: as in `serial_init`.
    unsafe {
        let empty = (0..100_000).any(|_| regs::inb(port + 5) & 0x20 != 0);
        match empty && regs::inb(port + 2) & 0xc0 == 0xc0 {
            true => 16,
            false => 1,
        }
    }
}

/// Logs one line, formatted as by `println!`.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => { $crate::log::print(format_args!($($argument)*)) };
}
