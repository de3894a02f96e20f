//! A kernel that a campaign has started, in a Linux process or on the bare machine, and what it
//! says while it works.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use machine::log;
use machine::qemu::{Ended, Machine};
use machine::session::Session;

/// How long one look at what it says takes at most.
const LOOK: Duration = Duration::from_secs(1);
/// Lines that wait to be looked at; the kernel waits when there are more.
const LINES: usize = 1 << 14;

/// A kernel at work.
pub enum Running {
    /// The launcher, and the lines that it prints.
    Hosted(Child, Receiver<String>),
    /// A machine.
    Bare {
        /// Its terminal and its log.
        session: Box<Session>,
        /// How much of the log was read.
        read: usize,
        /// What stands in front of the lines that are meant; empty: all are.
        mark: &'static str,
    },
}

/// What a kernel says.
pub enum Said {
    /// These lines, of which there is at least one.
    Lines(Vec<String>),
    /// Nothing new.
    Nothing,
    /// It has ended.
    End(End),
}

/// How a kernel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or as its process or QEMU says.
    Own(String),
    /// QEMU was ended by this signal. No guest may do that to it, so it says nothing of the kernel.
    Lost(i32),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Own(how) => f.write_str(how),
            End::Lost(signal) => write!(
                f,
                "QEMU itself was ended by signal {signal}, which no kernel should be able to"
            ),
        }
    }
}

impl Running {
    /// The launcher `child` of the core in the file `core`, which writes its lines to `output`.
    pub fn hosted(child: Child, output: impl Read + Send + 'static, core: &Path) -> Self {
        let (sender, lines) = mpsc::sync_channel(LINES);
        let core = core.to_path_buf();
        thread::spawn(move || {
            let mut reader = log::reader(&core);
            let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
            for line in lines.flat_map(|line| reader.line(&String::from_utf8_lossy(&line))) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Running::Hosted(child, lines)
    }

    /// Starts `machine`; the lines of its log that begin with `mark` are meant, or all if that is
    /// empty.
    ///
    /// # Errors
    /// If QEMU cannot be started.
    pub fn bare(machine: &Machine, mark: &'static str) -> Result<Self> {
        Ok(Running::Bare {
            session: Box::new(Session::start(machine, false)?),
            read: 0,
            mark,
        })
    }

    /// Waits for at most a second.
    ///
    /// # Errors
    /// If the process cannot be waited for.
    pub fn listen(&mut self) -> Result<Said> {
        match self {
            Running::Hosted(child, lines) => Ok(match lines.recv_timeout(LOOK) {
                Ok(line) => Said::Lines(std::iter::once(line).chain(lines.try_iter()).collect()),
                Err(RecvTimeoutError::Timeout) => Said::Nothing,
                Err(RecvTimeoutError::Disconnected) => {
                    Said::End(End::Own(child.wait()?.to_string()))
                }
            }),
            Running::Bare {
                session,
                read,
                mark,
            } => {
                let ended = session.end_by(Instant::now() + LOOK)?;
                let has_ended = ended.is_some() || session.has_ended();
                let log = session.guest.log();
                let lines = new_lines(&log, read, mark);
                Ok(match (lines.is_empty(), has_ended) {
                    (false, _) => Said::Lines(lines),
                    (true, true) => {
                        let last = log.lines().last().unwrap_or("without a word");
                        Said::End(end(ended, last))
                    }
                    (true, false) => Said::Nothing,
                })
            }
        }
    }

    /// Ends it, whatever it does.
    pub fn stop(self) {
        match self {
            Running::Hosted(mut child, _) => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
            }
            Running::Bare { mut session, .. } => session.guest.kill(),
        }
    }
}

/// The end of a machine whose log has this line last.
fn end(ended: Option<Ended>, last: &str) -> End {
    let how = match ended {
        Some(Ended::Killed(signal)) => return End::Lost(signal),
        Some(Ended::Status(status)) => format!("the machine is off, status {status}"),
        Some(Ended::Off) => "the machine is off, or was reset".into(),
        Some(Ended::KernelPanic) => "the kernel panicked".into(),
        Some(Ended::Failed(code)) => format!("QEMU failed, exit code {code}"),
        None => "QEMU goes on".into(),
    };
    End::Own(format!("{how}: {last}"))
}

/// The rest of the lines that begin with `mark` behind their time, of the whole lines of `log` from
/// byte `read` on, which is moved behind them.
fn new_lines(log: &str, read: &mut usize, mark: &str) -> Vec<String> {
    let whole = log.rfind('\n').map_or(0, |at| at + 1);
    let new = log.get(*read..whole).unwrap_or_default();
    *read = whole;
    let meant = new.lines().filter_map(|line| match mark {
        "" => Some(line),
        mark => log::behind_time(line)?.strip_prefix(mark),
    });
    meant.map(|line| line.trim_end().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_qemu_does_not_survive_is_told_from_one_that_ends() {
        assert_eq!(
            end(Some(Ended::Killed(11)), "hostile: at work"),
            End::Lost(11)
        );
        let panicked = end(Some(Ended::KernelPanic), "page fault");
        assert_eq!(panicked, End::Own("the kernel panicked: page fault".into()));
        assert!(End::Lost(11).to_string().contains("signal 11"));
    }

    #[test]
    fn whole_lines_are_read_once() {
        let mut read = 0;
        let log = "[ 0.1] booting\r\n[ 0.2] fault 1 done\r\n[ 0.3] fau";
        assert_eq!(new_lines(log, &mut read, "fault "), ["1 done"]);
        assert!(new_lines(log, &mut read, "fault ").is_empty());
        let log = format!("{log}lt 2 done\r\n");
        assert_eq!(new_lines(&log, &mut read, ""), ["[ 0.3] fault 2 done"]);
        assert_eq!(read, log.len());
    }
}
