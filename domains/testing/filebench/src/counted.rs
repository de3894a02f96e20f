//! What a crash of the driver under a stream takes, in guest instructions, where the machine's
//! clock counts them: the same bytes without crashes and with some, in turns.

use alloc::string::String;
use alloc::vec::Vec;

use filework::{CHUNK, LENGTH, Mode, SEQUENTIAL, System};
use interfaces::{DomainControl, Handle, Monitor};
use textutil::options::Options;
use ulib::{Stop, println};

use crate::flow::{self, step};
use crate::{Trefoil, stop};

/// What is to be done.
pub struct Plan {
    writes: bool,
    /// Chunks of a turn.
    chunks: u64,
    /// Crashes of a turn that has any.
    crashes: u64,
    /// How often it is streamed without crashes, and then with.
    turns: u64,
    domain: Vec<u8>,
}

/// What a turn took.
struct Turn {
    /// All that the processor did.
    instructions: u64,
    /// The longest that a chunk took in the part behind a crash: the median of all parts.
    pause: u64,
    crashes: u64,
}

impl Plan {
    /// What the options ask for; `None` if they have no `-b`.
    ///
    /// # Errors
    /// They make no sense.
    pub fn parse(options: &Options) -> Result<Option<Self>, Stop> {
        let Some(chunks) = flow::number(options, 'b') else {
            return Ok(None);
        };
        let numbers = (
            chunks,
            flow::number(options, 'c'),
            flow::number(options, 's'),
        );
        match (options.value('f'), numbers) {
            (Some(way @ (b"read" | b"write")), (chunks, Some(crashes), Some(turns)))
                if crashes > 0 && chunks >= crashes && turns > 0 =>
            {
                Ok(Some(Plan {
                    writes: way == b"write",
                    chunks,
                    crashes,
                    turns,
                    domain: options.value('d').unwrap_or_default().to_vec(),
                }))
            }
            _ => Err(Stop::usage(
                "-b wants -f, -c, -s and as many chunks as crashes",
            )),
        }
    }
}

/// The stream, and who makes crashes.
struct Stream<'a> {
    system: Trefoil<'a>,
    plan: Plan,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    file: u32,
    offset: u64,
    /// The instance that was asked to crash last.
    asked: u32,
}

/// Streams, and prints a line `counted BYTES INSTRUCTIONS PAUSE CRASHES INSTRUCTIONS PAUSE` for
/// each pair of turns, the first without crashes. The first pair is not shown: a stack that the log
/// has not told before, and memory that nobody had yet, come once.
pub fn run(mut system: Trefoil<'_>, plan: Plan) -> Result<(), Stop> {
    let mode = if plan.writes { Mode::Write } else { Mode::Read };
    let file = system.open(SEQUENTIAL, mode)?;
    let mut stream = Stream {
        monitor: system.env.service("monitor")?,
        control: system.env.service("control")?,
        system,
        plan,
        file,
        offset: 0,
        asked: 0,
    };
    let mut lines = Vec::new();
    for _ in 0..=stream.plan.turns {
        lines.push(stream.pair()?);
    }
    let Stream {
        mut system, file, ..
    } = stream;
    system.close(file)?;
    for line in &lines[1..] {
        println!(system.env, "counted {line}")?;
    }
    Ok(())
}

impl Stream<'_> {
    fn pair(&mut self) -> Result<String, Stop> {
        let (without, with) = (self.turn(false)?, self.turn(true)?);
        Ok(alloc::format!(
            "{} {} {} {} {} {}",
            self.plan.chunks * CHUNK as u64,
            without.instructions,
            without.pause,
            with.crashes,
            with.instructions,
            with.pause
        ))
    }

    fn turn(&mut self, crash: bool) -> Result<Turn, Stop> {
        let part = self.plan.chunks / self.plan.crashes;
        let mut pauses: Vec<u64> = Vec::new();
        let mut crashes = 0;
        let start = self.busy()?;
        let mut last = start;
        for chunk in 0..part * self.plan.crashes {
            if chunk.is_multiple_of(part) {
                pauses.push(0);
                crashes += self.look(crash)?;
            }
            step(&mut self.system, &self.file, self.plan.writes, self.offset)?;
            self.offset = (self.offset + CHUNK as u64) % LENGTH;
            let now = self.busy()?;
            if let Some(pause) = pauses.last_mut() {
                *pause = (*pause).max(now - last);
            }
            last = now;
            // Else it would not be the driver's in this part.
            if self.plan.writes && (chunk + 1).is_multiple_of(part) {
                self.system.sync()?;
            }
        }
        let instructions = self.busy()? - start;
        // The last crash belongs to this turn.
        if crash && self.instance()? == self.asked {
            let error = ulib::Error::text("it was asked to crash and did not");
            return Err(stop(error));
        }
        pauses.sort_unstable();
        Ok(Turn {
            instructions,
            pause: pauses[pauses.len() / 2],
            crashes,
        })
    }

    /// How long the processor has run threads, which is how many instructions where the clock
    /// counts them.
    fn busy(&self) -> Result<u64, Stop> {
        Ok(self.monitor.time()?.busy)
    }

    fn instance(&self) -> Result<u32, Stop> {
        let found = ulib::find_domain(&self.monitor, &self.plan.domain);
        Ok(found.map_or(0, |info| info.id))
    }

    /// Looks for the instance, in turns without crashes as well, as that takes instructions; has it
    /// crash. How many crashes come of it.
    fn look(&mut self, crash: bool) -> Result<u64, Stop> {
        let id = self.instance()?;
        let domain = self.control.domain(id)?;
        match domain.filter(|_| crash && id != self.asked) {
            Some(domain) => {
                domain.crash_next_call()?;
                self.asked = id;
                Ok(1)
            }
            None => Ok(0),
        }
    }
}
