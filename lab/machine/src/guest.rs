//! A machine that runs: it is read, typed at and ended.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::log::{self, Log};
use crate::{slot, stacks};

fn read_in_background(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// What came next from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing, up to the deadline.
    Silence,
    /// The machine has ended.
    End,
}

/// A running machine. Dropping it ends it.
pub struct Guest {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Receiver<Vec<u8>>>,
    /// The file with the kernel's log.
    pub log: PathBuf,
    read: Mutex<Log>,
    /// The file with what came on standard error.
    pub errors: PathBuf,
    /// The socket of its stub, if nobody else uses that, and its kernel.
    pub(crate) stub: Option<(PathBuf, PathBuf)>,
    /// A person has a debugger on it.
    pub(crate) is_debugged: bool,
    /// The socket of the monitor that switches its slot.
    pub(crate) slot: Option<PathBuf>,
}

impl Guest {
    /// What runs as `child`, whose terminal is ours as far as it is piped.
    pub(crate) fn of(mut child: Child, kernel: &Path, log: &Path, errors: &Path) -> Self {
        Guest {
            output: child.stdout.take().map(read_in_background),
            input: child.stdin.take(),
            child,
            log: log.to_path_buf(),
            read: Mutex::new(Log::new(log, kernel)),
            errors: errors.to_path_buf(),
            stub: None,
            is_debugged: false,
            slot: None,
        }
    }

    /// Pulls the device out of the slot: it is gone, in the midst of what it does.
    ///
    /// # Errors
    /// If there is no slot, or QEMU does not do it.
    pub fn pull_out(&self) -> Result<()> {
        let monitor = self.slot.as_ref().context("the machine has no slot")?;
        slot::switch_off(monitor)
    }

    /// Types `bytes`.
    ///
    /// # Errors
    /// If the machine has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let input = self.input.as_mut().context("the terminal is not ours")?;
        input
            .write_all(bytes)
            .and_then(|()| input.flush())
            .context("the machine has ended")
    }

    /// Nothing more is typed.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// What comes from the terminal until `deadline`.
    pub fn receive(&mut self, deadline: Instant) -> Event {
        let Some(output) = &self.output else {
            return Event::End;
        };
        match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(bytes) => Event::Bytes(bytes),
            Err(RecvTimeoutError::Timeout) => Event::Silence,
            Err(RecvTimeoutError::Disconnected) => Event::End,
        }
    }

    /// Waits until the machine ends by itself; `None` if it has not at `deadline`.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Ended>> {
        let Some(deadline) = deadline else {
            let status = self.child.wait()?;
            return Ok(Some(self.ended(status)));
        };
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(self.ended(status)));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn ended(&self, status: ExitStatus) -> Ended {
        let mut log = self.read();
        log.settle();
        Ended::new(status, &log.text())
    }

    /// The kernel's log so far, with stacks in words.
    pub fn log(&self) -> String {
        self.read().text()
    }

    /// The lines of the log that came since this, or [`log`](Guest::log), was asked for.
    pub fn new_log(&self) -> String {
        self.read().news().into()
    }

    fn read(&self) -> MutexGuard<'_, Log> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where all its threads stand, for messages: a machine that does nothing any more says so
    /// itself in no other way. It stands still meanwhile. Nothing if somebody else has its stub.
    pub fn stacks(&self) -> String {
        let stub = self.stub.as_ref().filter(|_| !self.is_debugged);
        stub.map_or_else(String::new, |(socket, kernel)| stacks::of(socket, kernel))
    }

    /// Ends the machine at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
        let stub = self.stub.iter().map(|(socket, _)| socket);
        for socket in stub.chain(&self.slot) {
            let _ = fs::remove_file(socket);
        }
    }
}

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The system powered off with this status.
    Status(i32),
    /// The machine was powered off without a status (also by the user, with Ctrl-] x), or was
    /// reset.
    Off,
    /// The kernel stopped itself over a bug of its own.
    KernelPanic,
    /// QEMU failed, with this exit code.
    Failed(i32),
    /// QEMU was ended by this signal: somebody killed it, or it crashed itself.
    Killed(i32),
}

impl Ended {
    /// QEMU's exit code is `status * 2 + 1` modulo 256 if the debug-exit device was written. The
    /// log has the whole status.
    fn new(status: ExitStatus, log: &str) -> Self {
        if log::has_panic(log) {
            return Ended::KernelPanic;
        }
        let Some(code) = status.code() else {
            return Ended::Killed(status.signal().unwrap_or_default());
        };
        let logged = log.lines().rev().filter_map(log::own);
        let mut logged = logged.filter_map(|text| text.strip_prefix("power off, status "));
        let logged = logged.next().and_then(|status| status.parse::<u8>().ok());
        let logged = logged.map(i32::from);
        match logged {
            Some(status) if code == (status * 2 + 1) & 0xff => Ended::Status(status),
            _ if code & 1 == 1 && !is_failure(code, log) => Ended::Status(code >> 1),
            _ if code == 0 => Ended::Off,
            _ => Ended::Failed(code),
        }
    }
}

/// QEMU itself exits with 1 when it cannot start; then nothing was logged.
fn is_failure(code: i32, log: &str) -> bool {
    code == 1 && log.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_is_told_apart() {
        let ended = |code: i32, log: &str| Ended::new(ExitStatus::from_raw(code << 8), log);
        assert_eq!(ended(1, "[ 0.1] booting"), Ended::Status(0));
        assert_eq!(ended(7, "[ 0.1] booting"), Ended::Status(3));
        assert_eq!(
            ended(5, "[ 1.0] power off, status 130\n"),
            Ended::Status(130)
        );
        assert_eq!(ended(0, "[ 0.1] booting"), Ended::Off);
        assert_eq!(ended(1, ""), Ended::Failed(1));
        let panic = "[    0.1] kernel panic: x\n[    0.2] power off, status 0\n";
        assert_eq!(ended(1, panic), Ended::KernelPanic);
        let forged = "[    0.1] x: kernel panic: y\n[    0.2] x: power off, status 3\n";
        assert_eq!(ended(1, forged), Ended::Status(0));
        let killed = Ended::new(ExitStatus::from_raw(11), "[ 0.1] booting");
        assert_eq!(killed, Ended::Killed(11));
    }
}
