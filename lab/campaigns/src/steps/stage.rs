//! A machine under a debugger: one round after the other, in each of which a call is followed to a
//! place, and a domain killed while the call stands there.
//!
//! The machine has two processors. One of them, the *caller's*, is stepped while the other stands
//! still. Then it stands still, and the other one alone goes on: its thread kills, the reaper runs
//! there, and asks the caller's processor to stop. When that interrupt is pending both go on, so it
//! hits the caller exactly where it stands, and that is looked at. The guest's side is
//! `domains/testing/prober/src/steps.rs`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::symbols::Symbols;
use crate::gdb::{Action, Gdb, Registers, Steps};
use machine::qemu::Machine;
use machine::session::Session;

/// Places in the words of the guest, and what is written there: see the guest's side.
mod word {
    pub const ORDER: u64 = 0;
    pub const START: u64 = 1;
    pub const GO: u64 = 2;
    pub const ANSWER: u64 = 3;
    pub const LOST: u64 = 4;
    pub const KILLER: u64 = 5;
    pub const MISSING: u64 = 6;

    pub const END: u64 = 0xff;
    pub const KILL: u64 = 1;
    pub const LEAVE: u64 = 2;
    pub const SPINS: u64 = 1;
    pub const RIGHT: u64 = 1;
    pub const CRASHED: u64 = 2;
}

/// How long a boot may take, and a round without its steps.
const BOOT: Duration = Duration::from_secs(60);
const ROUND: Duration = Duration::from_secs(60);
/// How long the other processor may take until it asks for the stop; and where interrupts are off,
/// since a lock may be held that it needs.
const STOP: Duration = Duration::from_secs(10);
const STOP_LOCKED: Duration = Duration::from_millis(150);
/// Most instructions from the meeting to the call, and of a call.
const MOST_BEFORE: usize = 2000;
const MOST_STEPS: usize = 20_000;
/// How far apart two places in one image can be, and two frames on one stack.
const IMAGE: u64 = 1 << 22;
const STACK: u64 = 1 << 17;
/// The request to park, in the second argument of `framework::smp::request::send`.
const STOP_REQUEST: u64 = 4;
/// RFLAGS: interrupts are taken.
const INTERRUPTS_ON: u32 = 1 << 9;
/// The kernel's image is above this.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// A call that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Path {
    /// Numbers, through a domain that forwards the call
    Plain,
    /// The same with a result in memory
    InMemory,
    /// An object that is moved there and back, through a domain that forwards it
    Object,
    /// A batch of packets for a driver, through its shadow
    Shadowed,
    /// A handle to a new object
    Handle,
    /// Objects that the domain behind makes and gives away
    Nest,
}

/// Whom to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Whom {
    /// The domain that is called, and calls the one behind it
    Front,
    /// The one behind it
    Back,
}

/// Where a call was stopped.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Instructions from the first one of the proxy.
    pub steps: usize,
    /// The next instruction.
    pub ip: u64,
    /// Whether the processor takes interrupts there.
    pub interruptible: bool,
    /// Whether the call has returned.
    pub is_over: bool,
}

impl Place {
    /// Whether the next instruction is the kernel's: of the proxy or what it calls.
    pub fn is_in_kernel(&self) -> bool {
        self.ip >= KERNEL
    }
}

/// What a call gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What it should give.
    Right,
    /// The error of a domain that has crashed.
    Crashed,
    /// Something else, or what was left is not as it must be; the log says what.
    Wrong,
}

/// A round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Where the kill came.
    pub place: Place,
    /// Whether the processor was interrupted for the stop exactly there.
    pub exact: bool,
    /// What the call gave.
    pub answer: Answer,
    /// Bytes that did not come back.
    pub lost: u64,
    /// Shared objects and handles that stayed.
    pub missing: u64,
}

impl Round {
    /// Whether something did not come back.
    pub fn leaks(&self) -> bool {
        (self.lost, self.missing) != (0, 0)
    }
}

/// A call on its way.
struct Walk {
    /// The processor that it is on.
    caller: usize,
    /// The stack pointer at the first instruction.
    start: u64,
    steps: usize,
    now: Registers,
}

impl Walk {
    fn new(caller: usize, now: Registers) -> Self {
        Walk {
            caller,
            start: now.sp(),
            steps: 0,
            now,
        }
    }

    /// Where it is.
    fn place(&self) -> Result<Place> {
        let depth = self.start.wrapping_sub(self.now.sp());
        // At first the return address is on the stack; behind the call it is not.
        let is_over = depth == 8_u64.wrapping_neg();
        let steps = self.steps;
        ensure!(
            is_over || depth < STACK,
            "after {steps} instructions another thread runs"
        );
        Ok(Place {
            steps,
            ip: self.now.ip,
            interruptible: self.now.flags & INTERRUPTS_ON != 0,
            is_over,
        })
    }

    /// One instruction further.
    fn advance(&mut self, gdb: &mut Gdb) -> Result<Place> {
        ensure!(self.steps < MOST_STEPS, "the call does not end");
        self.now = gdb.step(self.caller, &self.now)?;
        self.steps += 1;
        self.place()
    }
}

/// A machine under a debugger, whose guest is at the meeting place.
pub struct Stage<'a> {
    session: Session,
    gdb: Gdb,
    /// `framework::smp::request::send`.
    send: u64,
    meet: u64,
    words: u64,
    symbols: &'a Symbols,
}

impl<'a> Stage<'a> {
    /// Boots `machine`, which has two processors and a stub.
    ///
    /// # Errors
    /// If it does not come to the meeting place.
    pub fn open(machine: &Machine, symbols: &'a Symbols) -> Result<Self> {
        let socket = machine.stub.as_deref().context("a machine with a stub")?;
        let session = Session::start(machine, false)?;
        let (meet, words) = addresses(&session)?;
        let mut stage = Stage {
            gdb: Gdb::connect(socket, BOOT)?,
            session,
            send: symbols.find("3smp7request4send")?,
            meet,
            words,
            symbols,
        };
        stage.gdb.set_breakpoint(meet)?;
        stage.go_to_meeting()?;
        Ok(stage)
    }

    /// Writes `code` over the beginning of the kernel's function that has `name` in its symbol.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn plant(&mut self, name: &str, code: &[u8]) -> Result<()> {
        let address = self.symbols.find(name)?;
        self.gdb.write(0, address, code)
    }

    /// Follows the call without harm; all its places.
    ///
    /// # Errors
    /// If it cannot be followed.
    pub fn survey(&mut self, path: Path) -> Result<Vec<Place>> {
        let mut walk = self.begin(path, Whom::Front)?;
        let mut places = vec![walk.place()?];
        while !places[places.len() - 1].is_over {
            places.push(walk.advance(&mut self.gdb)?);
        }
        self.set(word::GO, word::LEAVE)?;
        self.end()?;
        Ok(places)
    }

    /// Kills `whom` when the call has come `steps` instructions far, or is over.
    ///
    /// # Errors
    /// If the machine does not come back to the meeting place, or the call cannot be followed.
    pub fn round(&mut self, path: Path, whom: Whom, steps: usize) -> Result<Round> {
        let mut walk = self.begin(path, whom)?;
        let mut place = walk.place()?;
        while place.steps < steps && !place.is_over {
            place = walk.advance(&mut self.gdb)?;
        }
        self.set(word::GO, word::KILL)?;
        let is_asked = self.let_kill(walk.caller, place)?;
        let exact = is_asked && place.interruptible && self.is_hit(&walk)?;
        self.end()?;
        let answer = match self.get(word::ANSWER)? {
            0 => bail!("the guest is not where the round ends"),
            word::RIGHT => Answer::Right,
            word::CRASHED => Answer::Crashed,
            _ => Answer::Wrong,
        };
        Ok(Round {
            place,
            exact,
            answer,
            lost: self.get(word::LOST)?,
            missing: self.get(word::MISSING)?,
        })
    }

    /// Ends the guest.
    ///
    /// # Errors
    /// If it does not end.
    pub fn close(mut self) -> Result<()> {
        self.set(word::ORDER, word::END)?;
        self.gdb.clear_breakpoint(self.meet)?;
        self.gdb.go(&[(0, Action::Run), (1, Action::Run)])?;
        self.session.end(ROUND).map(drop)
    }

    /// The last lines of the guest's log.
    pub fn report(&self) -> String {
        self.session.report()
    }

    /// From one meeting to the first instruction of the call's proxy.
    fn begin(&mut self, path: Path, whom: Whom) -> Result<Walk> {
        let order = (path as u64 + 1) | (whom as u64) << 8;
        self.set(word::ORDER, order)?;
        let mut caller = self.go_to_meeting()?;
        // The scheduler may have put both threads on one processor; then they are asked again.
        while !self.is_ready(caller)? {
            caller = self.go_to_meeting()?;
        }
        self.set(word::START, 1)?;
        self.gdb.clear_breakpoint(self.meet)?;
        let mut now = self.gdb.registers(caller)?;
        for _ in 0..MOST_BEFORE {
            now = self.gdb.step(caller, &now)?;
            if now.ip >= KERNEL {
                return Ok(Walk::new(caller, now));
            }
        }
        bail!("no call came after the meeting")
    }

    /// Whether the killer spins on the other processor.
    fn is_ready(&mut self, caller: usize) -> Result<bool> {
        let other = self.gdb.registers(1 - caller)?;
        Ok(self.get(word::KILLER)? == word::SPINS && other.ip.abs_diff(self.meet) < IMAGE)
    }

    /// Lets the other processor go on alone until it has asked the caller's to stop; whether it
    /// has.
    fn let_kill(&mut self, caller: usize, place: Place) -> Result<bool> {
        let limit = if place.interruptible {
            STOP
        } else {
            STOP_LOCKED
        };
        let end = Instant::now() + limit;
        let other = 1 - caller;
        self.gdb.set_breakpoint(self.send)?;
        let is_asked = loop {
            if !self.run_alone(other, end)? {
                break false;
            }
            let registers = self.gdb.registers(other)?;
            if registers.second_argument() == STOP_REQUEST {
                let back = self.gdb.read(other, registers.sp())?;
                self.gdb.clear_breakpoint(self.send)?;
                self.gdb.set_breakpoint(back)?;
                let is_sent = self.run_alone(other, end)?;
                self.gdb.clear_breakpoint(back)?;
                return Ok(is_sent);
            }
            self.gdb.clear_breakpoint(self.send)?;
            self.gdb.step(other, &registers)?;
            self.gdb.set_breakpoint(self.send)?;
        };
        self.gdb.clear_breakpoint(self.send)?;
        Ok(is_asked)
    }

    /// Lets one processor run to a breakpoint; whether it came to one.
    fn run_alone(&mut self, processor: usize, end: Instant) -> Result<bool> {
        self.gdb.go(&[(processor, Action::Run)])?;
        let left = end.saturating_duration_since(Instant::now());
        let stopped = self.gdb.stopped(left)?;
        if stopped.is_none() {
            self.gdb.interrupt()?;
        }
        Ok(stopped.is_some())
    }

    /// Whether the pending interrupt hits the caller's processor where it stands.
    fn is_hit(&mut self, walk: &Walk) -> Result<bool> {
        self.gdb.steps(Steps::WithInterrupts)?;
        let now = self.gdb.step(walk.caller, &walk.now)?;
        self.gdb.steps(Steps::Alone)?;
        // At the first instruction of the handler the interrupted place is on top of the stack.
        Ok(self.gdb.read(walk.caller, now.sp())? == walk.now.ip)
    }

    /// Lets all go on to the next meeting.
    fn end(&mut self) -> Result<()> {
        self.gdb.set_breakpoint(self.meet)?;
        self.go_to_meeting().map(drop)
    }

    /// Lets all run to the meeting place; the processor that has come there.
    fn go_to_meeting(&mut self) -> Result<usize> {
        for processor in 0..2 {
            let registers = self.gdb.registers(processor)?;
            if registers.ip == self.meet {
                self.gdb.clear_breakpoint(self.meet)?;
                self.gdb.step(processor, &registers)?;
                self.gdb.set_breakpoint(self.meet)?;
            }
        }
        self.gdb.go(&[(0, Action::Run), (1, Action::Run)])?;
        let stopped = self.gdb.stopped(ROUND)?;
        stopped.context("hang: the guest does not come to the meeting place")
    }

    fn set(&mut self, place: u64, value: u64) -> Result<()> {
        let address = self.words + 8 * place;
        self.gdb.write(0, address, &value.to_le_bytes())
    }

    fn get(&mut self, place: u64) -> Result<u64> {
        self.gdb.read(0, self.words + 8 * place)
    }
}

/// The addresses that the guest logs: where it meets us, and its words.
fn addresses(session: &Session) -> Result<(u64, u64)> {
    let end = Instant::now() + BOOT;
    loop {
        let log = session.guest.log();
        if let Some(found) = log.lines().find_map(parse) {
            return Ok(found);
        }
        ensure!(
            Instant::now() < end,
            "the guest does not come up\n{}",
            session.report()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn parse(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("steps: meet 0x")?;
    let (meet, words) = rest.trim_end().split_once(" words 0x")?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(meet)?, number(words)?))
}
