//! The real-time clock of the PC (MC146818 data sheet), read once at boot.

use super::regs;

const SECONDS: u8 = 0;
const MINUTES: u8 = 2;
const HOURS: u8 = 4;
const DAY: u8 = 7;
const MONTH: u8 = 8;
const YEAR: u8 = 9;
const STATUS_A: u8 = 10;
const STATUS_B: u8 = 11;
const UPDATING: u8 = 0x80;
const BINARY: u8 = 4;
const HOURS_24: u8 = 2;
const AFTERNOON: u8 = 0x80;
/// Readings after which two equal ones are no longer waited for.
const ATTEMPTS: usize = 1000;

fn read(register: u8) -> u8 {
    // SAFETY: selects and reads a clock register; bit 7 keeps non-maskable interrupts enabled.
    unsafe {
        regs::outb(0x70, register);
        regs::inb(0x71)
    }
}

fn read_all() -> [u8; 6] {
    [SECONDS, MINUTES, HOURS, DAY, MONTH, YEAR].map(read)
}

/// The clock's time in seconds since 1970; 0 if it cannot be read.
pub(crate) fn read_seconds() -> u64 {
    for _ in 0..ATTEMPTS {
        if read(STATUS_A) & UPDATING != 0 {
            continue;
        }
        let fields = read_all();
        if fields == read_all() {
            return to_seconds(fields, read(STATUS_B));
        }
    }
    0
}

/// Converts register values, in the format that status register B announces.
fn to_seconds(fields: [u8; 6], format: u8) -> u64 {
    let number = |field: u8| match format & BINARY {
        0 => u64::from(field >> 4) * 10 + u64::from(field & 15),
        _ => u64::from(field),
    };
    let [seconds, minutes, hours, day, month, year] = fields;
    let mut hour = number(hours & !AFTERNOON);
    if format & HOURS_24 == 0 {
        hour = hour % 12 + if hours & AFTERNOON != 0 { 12 } else { 0 };
    }
    let days = days_since_1970(2000 + number(year), number(month), number(day));
    days * 86_400 + hour * 3600 + number(minutes) * 60 + number(seconds)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar from 1970 on. Years are counted from
/// March, so that the leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days_before_month = (153 * month + 2) / 5;
    (year * 365 + leap_days + days_before_month + day).saturating_sub(719_469)
}
