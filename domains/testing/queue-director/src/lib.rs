//! The director of the gate of block queues: see `queue-director.idl`.
//!
//! It ends the driver, the submitter, or both, at random moments, and sees that the work goes on:
//! `init` starts the submitter again, and the block shadow asks for the next driver. Now and then
//! it waits for answers before the next death: a submitter that waits in vain would not be found
//! otherwise, since its own death ends that. What the submitter must find on the disk stands in
//! the ledger, which belongs to this domain.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use core::str::FromStr;

use domain_rt::{log, thread, time};
use interfaces::{
    DomainControl, DomainState, Handle, MemoryError, MemoryObjects, Monitor, RVec, RpcError,
    RpcResult, VmoFill, VmoRights, VmoView,
};
use queuework::{Random, ledger};

/// Nobody may stand still so long, in nanoseconds.
const PATIENCE: u64 = 60_000_000_000;
/// Answers that are waited for: more than can be under way, so each that was is among them.
const ANSWERS: u64 = 64;
/// The longest pause between two deaths, in nanoseconds.
const PAUSE: u64 = 30_000_000;

/// Makes the ledger and the thread that ends domains.
///
/// # Errors
/// [`RpcError::Refused`] if the options are not understood; no memory.
pub fn start(
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    objects: Handle<dyn MemoryObjects>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn VmoView>> {
    let owner = objects.create(ledger::PAGES, VmoFill::Zero).map_err(rpc)?;
    let rights = VmoRights {
        read: true,
        write: true,
        map: false,
        execute: false,
    };
    let ledger = owner.view(rights).map_err(rpc)?;
    let text = core::str::from_utf8(&options).map_err(|_| RpcError::Refused)?;
    let director = Director {
        kills: option(text, "kills=")?,
        random: Random::new(option(text, "seed=")?),
        names: [option(text, "driver=")?, option(text, "writer=")?],
        ledger: ledger.duplicate()?,
        monitor,
        control,
    };
    write(&director.ledger, ledger::NEXT, 1)?;
    thread::spawn("director", move || {
        let _owner = owner;
        director.run();
    })?;
    Ok(ledger)
}

fn option<T: FromStr>(text: &str, name: &str) -> RpcResult<T> {
    let mut words = text.split_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name));
    let value = value.and_then(|value| value.parse().ok());
    value.ok_or_else(|| {
        log!("options: no {name}");
        RpcError::Refused
    })
}

fn rpc(error: MemoryError) -> RpcError {
    match error {
        MemoryError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}

fn write(ledger: &Handle<dyn VmoView>, offset: u64, number: u64) -> RpcResult<()> {
    let bytes = RVec::from_slice(&number.to_le_bytes())?;
    ledger.write(offset, &bytes).map(drop).map_err(rpc)
}

struct Director {
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    ledger: Handle<dyn VmoView>,
    /// Of the driver and of the submitter.
    names: [String; 2],
    kills: u64,
    random: Random,
}

impl Director {
    fn run(mut self) {
        let outcome = match self.direct() {
            Ok(text) => text,
            Err(text) => text,
        };
        log!("gate: {outcome}");
    }

    fn direct(&mut self) -> Result<String, String> {
        let mut ended = [0u64; 2];
        let mut idle = 0;
        while ended[0] + ended[1] < self.kills {
            time::sleep(self.random.below(PAUSE));
            self.look()?;
            // Now and then both at once.
            let (one, both) = (self.random.below(2), self.random.below(8) == 0);
            let before = ended;
            for victim in [0, 1] {
                if both || one == victim {
                    ended[victim as usize] += u64::from(self.end(victim as usize)?);
                }
            }
            idle = if before == ended { idle + 1 } else { 0 };
            if self.random.below(4) == 0 {
                self.wait_for_answers()?;
            }
            if idle > 4000 {
                return Err("WRONG: nobody is there to be ended".to_string());
            }
        }
        self.number(ledger::STOP, 1)?;
        self.wait_for_end()?;
        Ok(alloc::format!(
            "ended {} drivers and {} submitters, {} lives, {} answers right, nothing wrong",
            ended[0],
            ended[1],
            self.read(ledger::LIVES)?,
            self.read(ledger::ANSWERS)?,
        ))
    }

    /// Waits until the submitter has taken some more answers.
    fn wait_for_answers(&self) -> Result<(), String> {
        let before = self.read(ledger::ANSWERS)?;
        self.wait_until("the submitter gets no answers any more", || {
            Ok(self.read(ledger::ANSWERS)? >= before + ANSWERS)
        })
    }

    /// Waits until the submitter has seen all that must be there.
    fn wait_for_end(&self) -> Result<(), String> {
        self.wait_until("the submitter does not come to its end", || {
            Ok(self.read(ledger::ENDED)? != 0)
        })
    }

    /// Waits until something `is_so`; an error that says what is `wrong` if that takes too long.
    fn wait_until(
        &self,
        wrong: &str,
        is_so: impl Fn() -> Result<bool, String>,
    ) -> Result<(), String> {
        let begin = time::now();
        while !is_so()? {
            self.look()?;
            if time::now() - begin > PATIENCE {
                return Err(alloc::format!("WRONG: {wrong}"));
            }
            time::sleep(10_000_000);
        }
        Ok(())
    }

    /// An error if the submitter has found one.
    fn look(&self) -> Result<(), String> {
        match self.read(ledger::WRONG)? {
            0 => Ok(()),
            _ => Err("WRONG: the submitter says so".to_string()),
        }
    }

    /// Ends one of the two; whether it was there.
    fn end(&self, victim: usize) -> Result<bool, String> {
        let failed = |error: RpcError| alloc::format!("WRONG: {error}");
        let mut from = 0;
        while let Some(info) = self.monitor.next(from).map_err(failed)? {
            from = info.id + 1;
            let is_it = info.name.as_str() == self.names[victim];
            if !is_it || !matches!(info.state, DomainState::Running) {
                continue;
            }
            let Some(domain) = self.control.domain(info.id).map_err(failed)? else {
                return Ok(false);
            };
            domain.kill().map_err(failed)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn read(&self, offset: u64) -> Result<u64, String> {
        let failed = |error: RpcError| alloc::format!("WRONG: the ledger: {error}");
        let room = RVec::filled(0u8, 8).map_err(failed)?;
        let (bytes, _) = self
            .ledger
            .read(offset, room)
            .map_err(rpc)
            .map_err(failed)?;
        let bytes: [u8; 8] = bytes[..]
            .try_into()
            .map_err(|_| "WRONG: short".to_string())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn number(&self, offset: u64, number: u64) -> Result<(), String> {
        write(&self.ledger, offset, number).map_err(|error| alloc::format!("WRONG: {error}"))
    }
}
