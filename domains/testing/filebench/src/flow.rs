//! A stream through a file while the driver under it crashes: how much passes in each twentieth of
//! a second.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use filework::{CHUNK, LENGTH, Mode, SEQUENTIAL, System, mark};
use interfaces::{DomainControl, Handle, Monitor};
use textutil::options::Options;
use ulib::{Stop, println};

use crate::Trefoil;

/// Nanoseconds for which bytes are added up.
const BIN: u64 = 50_000_000;
const SECOND: u64 = 1_000_000_000;

/// The number behind an option.
pub fn number(options: &Options, letter: char) -> Option<u64> {
    let text = core::str::from_utf8(options.value(letter)?).ok()?;
    text.parse().ok()
}

/// What is to be done.
pub struct Plan {
    writes: bool,
    seconds: u64,
    /// In each second that has any.
    crashes: u64,
    /// Only every other second has crashes.
    alternates: bool,
    domain: Vec<u8>,
}

impl Plan {
    /// What the options ask for; `None` if they have no `-f`.
    ///
    /// # Errors
    /// They make no sense.
    pub fn parse(options: &Options) -> Result<Option<Self>, Stop> {
        let number = |letter| match options.value(letter) {
            None => Some(0),
            Some(_) => number(options, letter),
        };
        let writes = match options.value('f') {
            None => return Ok(None),
            Some(b"read") => false,
            Some(b"write") => true,
            Some(_) => return Err(Stop::usage("-f is `read` or `write`")),
        };
        match (number('s'), number('c')) {
            (Some(seconds @ 1..=1000), Some(crashes @ 0..=1000)) => Ok(Some(Plan {
                writes,
                seconds,
                crashes,
                alternates: options.has('a'),
                domain: options.value('d').unwrap_or_default().to_vec(),
            })),
            _ => Err(Stop::usage("-s and -c are followed by numbers")),
        }
    }
}

/// Has a domain crash at its times.
struct Trouble {
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    start: u64,
    /// Nanoseconds between crashes, and the time of the next.
    every: u64,
    next: u64,
    made: u64,
}

impl Trouble {
    /// Looks whether a crash is due. A domain that is just being started again is let be.
    fn look(&mut self, plan: &Plan, now: u64) -> Result<(), Stop> {
        if now < self.next {
            return Ok(());
        }
        self.next += self.every;
        if plan.alternates && ((now - self.start) / SECOND).is_multiple_of(2) {
            return Ok(());
        }
        let Ok(info) = ulib::find_domain(&self.monitor, &plan.domain) else {
            return Ok(());
        };
        if let Some(domain) = self.control.domain(info.id)? {
            domain.crash_next_call()?;
            self.made += 1;
        }
        Ok(())
    }
}

/// Streams, and prints a line `flow CRASHES BYTES BYTES ...`, a number for each [`BIN`].
pub fn run(system: &mut Trefoil<'_>, plan: &Plan) -> Result<(), Stop> {
    let start = system.now();
    let mut trouble = match plan.crashes {
        0 => None,
        crashes => Some(Trouble {
            monitor: system.env.service("monitor")?,
            control: system.env.service("control")?,
            start,
            every: SECOND / crashes,
            next: start + SECOND / crashes / 2,
            made: 0,
        }),
    };
    let mode = if plan.writes { Mode::Write } else { Mode::Read };
    let file = system.open(SEQUENTIAL, mode)?;
    let mut bins = vec![0u64; (plan.seconds * SECOND / BIN) as usize];
    let mut offset = 0;
    loop {
        let now = system.now();
        let Some(bin) = bins.get_mut(((now - start) / BIN) as usize) else {
            break;
        };
        *bin += CHUNK as u64;
        if let Some(trouble) = &mut trouble {
            trouble.look(plan, now)?;
        }
        step(system, &file, plan.writes, offset)?;
        offset = (offset + CHUNK as u64) % LENGTH;
    }
    system.close(file)?;
    let made = trouble.map_or(0, |trouble| trouble.made);
    let numbers: Vec<String> = bins.iter().map(|bin| alloc::format!("{bin}")).collect();
    println!(system.env, "flow {made} {}", numbers.join(" "))
}

/// Reads or writes the next chunk.
///
/// # Errors
/// The system's, or that what is read is wrong.
pub fn step(system: &mut Trefoil<'_>, file: &u32, writes: bool, offset: u64) -> Result<(), Stop> {
    let expected = mark(SEQUENTIAL, offset);
    if writes {
        return system.write(file, offset, CHUNK, expected);
    }
    match system.read(file, offset, CHUNK)? == expected {
        true => Ok(()),
        false => Err(system.wrong(SEQUENTIAL, offset)),
    }
}
