//! A client of the GDB remote serial protocol, as QEMU's stub speaks it: just what it takes to stop
//! processors, step them one by one, and read and write their memory.
//!
//! Reference: *Debugging with GDB*, appendix "GDB Remote Serial Protocol" (sections "Overview",
//! "Packets", "Stop Reply Packets", "General Query Packets"); QEMU's manual, "GDB usage". For the
//! stub a processor is a thread; processor 0 is thread 1.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long the stub may take to answer what it answers at once.
const ANSWER: Duration = Duration::from_secs(30);

/// Steps without an instruction, one after the other: QEMU now and then ends a step before it has
/// begun, for instance when it looks at the interrupt controller.
const MOST_IDLE: usize = 20;

/// A connection to the stub of one machine, which stands still but between [`go`](Gdb::go) and the
/// stop that follows.
pub struct Gdb<S = UnixStream> {
    stream: S,
    /// Read and not used yet.
    pending: Vec<u8>,
    /// Whose registers and memory are read, if that was said.
    chosen: Option<usize>,
}

/// The registers, without those of floating point and of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The general ones, in GDB's order: rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15.
    pub general: [u64; 16],
    /// The instruction pointer.
    pub ip: u64,
    /// RFLAGS, the lower half.
    pub flags: u32,
}

impl Registers {
    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.general[7]
    }

    /// The second argument of a function that is about to begin.
    pub fn second_argument(&self) -> u64 {
        self.general[4]
    }
}

/// What a processor is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run.
    Run,
    /// Carry out one instruction.
    Step,
}

/// What a single step leaves out, in QEMU's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Interrupts wait, and the machine's clocks stand.
    Alone = 7,
    /// An interrupt that is pending is taken; then the step ends at the first instruction of its
    /// handler.
    WithInterrupts = 1,
}

/// A stream whose reads give up after a while.
pub trait Patient: Read + Write {
    /// Sets for how long the next reads wait.
    ///
    /// # Errors
    /// As the stream's own.
    fn wait_at_most(&mut self, limit: Duration) -> Result<()>;
}

impl Patient for UnixStream {
    fn wait_at_most(&mut self, limit: Duration) -> Result<()> {
        Ok(self.set_read_timeout(Some(limit.max(Duration::from_millis(1))))?)
    }
}

impl Gdb {
    /// Connects to the stub behind `socket`, which appears within `limit`.
    ///
    /// # Errors
    /// If there is no stub, or it cannot run processors one by one.
    pub fn connect(socket: &Path, limit: Duration) -> Result<Self> {
        let end = Instant::now() + limit;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > end => {
                    return Err(error).with_context(|| format!("no stub at {}", socket.display()));
                }
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        };
        Gdb::over(stream)
    }
}

impl<S: Patient> Gdb<S> {
    /// A client that speaks over `stream`.
    ///
    /// # Errors
    /// If the other side does not answer as it must, or cannot run processors one by one.
    pub fn over(stream: S) -> Result<Self> {
        let mut gdb = Gdb {
            stream,
            pending: Vec::new(),
            chosen: None,
        };
        // The connection stops a machine that runs, and the stub says so unasked.
        let first = gdb.ask("qSupported:swbreak+;hwbreak+")?;
        if stop_reply(&first).is_ok() {
            gdb.receive(ANSWER)?.context("the stub does not answer")?;
        }
        let can = gdb.ask("vCont?")?;
        let can: Vec<&str> = can.split(';').collect();
        ensure!(
            can.contains(&"c") && can.contains(&"s"),
            "the stub cannot run processors one by one: {can:?}"
        );
        Ok(gdb)
    }

    /// Lets the processors do what `actions` say; all others stand still.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn go(&mut self, actions: &[(usize, Action)]) -> Result<()> {
        let words = actions.iter().map(|(processor, action)| {
            let letter = match action {
                Action::Run => 'c',
                Action::Step => 's',
            };
            format!(";{letter}:{:x}", processor + 1)
        });
        let packet = format!("vCont{}", words.collect::<String>());
        self.send(&packet)
    }

    /// Waits until the machine stands still; the processor that made it so, or `None` if it runs
    /// for longer.
    ///
    /// # Errors
    /// If the connection is broken, or the stub says something else.
    pub fn stopped(&mut self, limit: Duration) -> Result<Option<usize>> {
        match self.receive(limit)? {
            Some(reply) => stop_reply(&reply).map(Some),
            None => Ok(None),
        }
    }

    /// Stops the machine that runs.
    ///
    /// # Errors
    /// If it does not stop.
    pub fn interrupt(&mut self) -> Result<()> {
        self.stream.write_all(&[3])?;
        let stopped = self.stopped(ANSWER)?;
        stopped.context("the machine cannot be stopped").map(drop)
    }

    /// Carries out one instruction on `processor`, whose registers are `from`; its registers then.
    ///
    /// # Errors
    /// If the connection is broken, or the instruction changes nothing.
    pub fn step(&mut self, processor: usize, from: &Registers) -> Result<Registers> {
        for _ in 0..MOST_IDLE {
            self.go(&[(processor, Action::Step)])?;
            let stopped = self.stopped(ANSWER)?;
            ensure!(
                stopped == Some(processor),
                "processor {processor} was stepped, {stopped:?} stopped"
            );
            let now = self.registers(processor)?;
            if now != *from {
                return Ok(now);
            }
        }
        bail!("processor {processor} does not get on at {:#x}", from.ip)
    }

    /// Sets what the next steps leave out.
    ///
    /// # Errors
    /// If the stub refuses.
    pub fn steps(&mut self, how: Steps) -> Result<()> {
        self.order(&format!("Qqemu.sstep={:x}", how as u32))
    }

    /// Sets a breakpoint, which holds for all processors.
    ///
    /// # Errors
    /// If the stub refuses.
    pub fn set_breakpoint(&mut self, address: u64) -> Result<()> {
        self.order(&format!("Z1,{address:x},1"))
    }

    /// Takes a breakpoint away.
    ///
    /// # Errors
    /// If the stub refuses.
    pub fn clear_breakpoint(&mut self, address: u64) -> Result<()> {
        self.order(&format!("z1,{address:x},1"))
    }

    /// The registers of `processor`, which is in 64-bit mode.
    ///
    /// # Errors
    /// If the stub refuses.
    pub fn registers(&mut self, processor: usize) -> Result<Registers> {
        self.choose(processor)?;
        let all = self.ask("g")?;
        let all = bytes(&all).with_context(|| format!("registers: {all}"))?;
        let long = |at: usize| -> Result<u64> {
            let part = all.get(at..).and_then(|rest| rest.first_chunk());
            Ok(u64::from_le_bytes(*part.context("too few registers")?))
        };
        let mut general = [0; 16];
        for (place, at) in general.iter_mut().zip((0..).step_by(8)) {
            *place = long(at)?;
        }
        Ok(Registers {
            general,
            ip: long(16 * 8)?,
            flags: long(17 * 8)? as u32,
        })
    }

    /// The 64-bit word at `address`, as `processor` sees it.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&mut self, processor: usize, address: u64) -> Result<u64> {
        self.choose(processor)?;
        let text = self.ask(&format!("m{address:x},8"))?;
        let word = bytes(&text).and_then(|bytes| bytes.try_into().ok());
        let word = word.with_context(|| format!("no word at {address:#x}: {text}"))?;
        Ok(u64::from_le_bytes(word))
    }

    /// Writes `data` to `address`, as `processor` sees it; also where the processor itself may not
    /// write.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn write(&mut self, processor: usize, address: u64, data: &[u8]) -> Result<()> {
        self.choose(processor)?;
        self.order(&format!("M{address:x},{:x}:{}", data.len(), digits(data)))
    }

    /// What QEMU's monitor answers to `command`.
    ///
    /// # Errors
    /// If the stub refuses, or does not answer.
    pub fn monitor(&mut self, command: &str) -> Result<String> {
        self.send(&format!("qRcmd,{}", digits(command.as_bytes())))?;
        let mut text = String::new();
        loop {
            let answer = self.receive(ANSWER)?;
            let answer = answer.with_context(|| format!("{command}: no answer"))?;
            if answer == "OK" {
                return Ok(text);
            }
            let part = answer.strip_prefix('O').and_then(bytes);
            let part = part.with_context(|| format!("{command}: the stub says {answer:?}"))?;
            text += &String::from_utf8_lossy(&part);
        }
    }

    fn choose(&mut self, processor: usize) -> Result<()> {
        if self.chosen != Some(processor) {
            self.order(&format!("Hg{:x}", processor + 1))?;
            self.chosen = Some(processor);
        }
        Ok(())
    }

    /// Sends what is answered by OK.
    fn order(&mut self, packet: &str) -> Result<()> {
        let answer = self.ask(packet)?;
        ensure!(answer == "OK", "{packet}: the stub says {answer:?}");
        Ok(())
    }

    fn ask(&mut self, packet: &str) -> Result<String> {
        self.send(packet)?;
        let answer = self.receive(ANSWER)?;
        answer.with_context(|| format!("{packet}: the stub does not answer"))
    }

    fn send(&mut self, packet: &str) -> Result<()> {
        let sum = sum(packet.as_bytes());
        let whole = format!("${packet}#{sum:02x}");
        Ok(self.stream.write_all(whole.as_bytes())?)
    }

    /// The next packet, acknowledged; `None` if there is none within `limit`.
    fn receive(&mut self, limit: Duration) -> Result<Option<String>> {
        let end = Instant::now() + limit;
        loop {
            if let Some((packet, length)) = first_packet(&self.pending)? {
                self.pending.drain(..length);
                self.stream.write_all(b"+")?;
                return Ok(Some(packet));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.fill(left)? {
                return Ok(None);
            }
        }
    }

    /// Reads more, for at most `limit`; whether something came.
    fn fill(&mut self, limit: Duration) -> Result<bool> {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        let mut buffer = [0; 4096];
        self.stream.wait_at_most(limit)?;
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the machine has ended"),
            Ok(length) => {
                self.pending.extend(&buffer[..length]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), TimedOut | WouldBlock) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The first packet in `bytes`, if it is whole, and where it ends. What comes before it are
/// acknowledgements.
fn first_packet(bytes: &[u8]) -> Result<Option<(String, usize)>> {
    let Some(start) = bytes.iter().position(|byte| *byte == b'$') else {
        ensure!(!bytes.contains(&b'-'), "the stub did not understand");
        return Ok(None);
    };
    let body = &bytes[start + 1..];
    let Some(length) = body.iter().position(|byte| *byte == b'#') else {
        return Ok(None);
    };
    let Some(digits) = body.get(length + 1..length + 3) else {
        return Ok(None);
    };
    let digits = std::str::from_utf8(digits)?;
    let body = &body[..length];
    ensure!(
        u8::from_str_radix(digits, 16) == Ok(sum(body)),
        "a packet of the stub is damaged"
    );
    let text = String::from_utf8_lossy(body).into_owned();
    Ok(Some((text, start + 1 + length + 3)))
}

/// The checksum of a packet: the sum of its bytes.
fn sum(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}

/// `data` in hexadecimal digits.
fn digits(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that `text` gives in hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// The processor that a stop reply names.
fn stop_reply(reply: &str) -> Result<usize> {
    let thread = reply
        .strip_prefix('T')
        .and_then(|rest| rest.split_once("thread:"));
    let thread = thread.and_then(|(_, rest)| rest.split(';').next());
    let thread = thread.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    match thread {
        Some(thread @ 1..) => Ok(thread - 1),
        _ => bail!("the stub says {reply:?} where it should say who stopped"),
    }
}

#[cfg(test)]
mod tests;
