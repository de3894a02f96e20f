//! Jobs: what runs in the background or is stopped, and `jobs`, `fg`, `bg`, `wait` and `kill`.

use crate::builtin::{Outcome, condition_name, condition_number, number};
use crate::launch::{Started, lossy};
use crate::run::{Flow, INTERRUPTED, Shell};
use crate::system::{Ended, System};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Status of a command that Ctrl-Z stopped.
const STOPPED: i32 = 148;

/// A pipeline that the shell does not wait for now.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// For `%1`.
    number: u32,
    /// Its processes that were not waited for yet.
    pids: Vec<u32>,
    /// The process whose status is that of the job.
    last: u32,
    /// How that ended, if it has.
    ended: Option<Ended>,
    /// Its source.
    text: Vec<u8>,
    stopped: bool,
}

impl<S: System> Shell<S> {
    /// Notes processes that go on while the shell does something else.
    pub(crate) fn add_job(&mut self, pids: Vec<u32>, text: &[u8], stopped: bool) {
        let Some(&last) = pids.last() else { return };
        let number = 1 + self.jobs.iter().map(|job| job.number).max().unwrap_or(0);
        self.jobs.push(Job {
            number,
            pids,
            last,
            ended: None,
            text: text.to_vec(),
            stopped,
        });
        if self.interactive {
            let line = match stopped {
                true => format!("\n[{number}] Stopped  {}\n", lossy(text)),
                false => format!("[{number}] {last}\n"),
            };
            self.write_to(2, line.as_bytes());
        }
    }

    /// Waits for processes in the foreground; the status is that of the last.
    pub(crate) fn wait_in_foreground(&mut self, started: Vec<Started>, text: &[u8]) -> Flow {
        let mut started = started.into_iter();
        while let Some(next) = started.next() {
            let Started::Process { pid, name } = next else {
                if let Started::Done(status) = next {
                    self.status = status;
                }
                continue;
            };
            let ended = match self.interactive {
                true => self.system.wait_or_stop(pid),
                false => self.system.wait(pid),
            };
            if ended == Some(Ended::Stopped) {
                let rest = started.filter_map(|it| it.pid());
                let pids = core::iter::once(pid).chain(rest).collect();
                self.add_job(pids, text, true);
                self.status = STOPPED;
                return Flow::Interrupted;
            }
            self.unhurt = matches!(ended, Some(Ended::Exited(_)));
            self.status = self.status_of(ended, &name);
        }
        Flow::Next
    }

    /// Takes leave of background processes that have ended, and says so to a person.
    pub(crate) fn reap(&mut self) {
        let pids: Vec<u32> = self.jobs.iter().flat_map(|it| it.pids.clone()).collect();
        // A script may still ask how they ended.
        if pids.is_empty() || !self.interactive {
            return;
        }
        for pid in self.system.finished(&pids) {
            self.take_leave(pid);
            self.sent.remove(&pid);
        }
        let (done, left) = core::mem::take(&mut self.jobs)
            .into_iter()
            .partition(|job| job.pids.is_empty());
        self.jobs = left;
        let done: Vec<Job> = done;
        for job in done {
            let how = match job.ended {
                Some(Ended::Exited(0)) | None => "Done".to_string(),
                Some(Ended::Exited(status)) => format!("Done({status})"),
                Some(Ended::Killed | Ended::Stopped) => "Killed".to_string(),
                Some(Ended::Crashed) => "Crashed".to_string(),
            };
            let line = format!("[{}] {how}  {}\n", job.number, lossy(&job.text));
            self.write_to(2, line.as_bytes());
        }
    }

    /// Waits for a process that has ended, or will soon, and notes how it ended in its job.
    fn take_leave(&mut self, pid: u32) -> Option<Ended> {
        let ended = self.system.wait(pid);
        for job in &mut self.jobs {
            job.pids.retain(|&other| other != pid);
            if job.last == pid {
                job.ended = ended;
            }
        }
        ended
    }

    /// Waits until a process in the background has ended; `None` if Ctrl-C was pressed before.
    fn wait_for(&mut self, pid: u32) -> Option<i32> {
        // Ctrl-C does not reach what is waited for, so it must be looked for.
        while self.interactive && self.system.finished(&[pid]).is_empty() {
            if self.take_interrupt() {
                self.status = INTERRUPTED;
                return None;
            }
            self.system.pause();
        }
        let ended = self.take_leave(pid);
        let status = self.status_of(ended, format!("{pid}").as_bytes());
        // There are no signals, but who has sent one expects to see it.
        let sent = self
            .sent
            .remove(&pid)
            .filter(|_| ended == Some(Ended::Killed));
        Some(sent.map_or(status, |signal| 128 + signal as i32))
    }

    /// Waits for what is left of a job, and forgets it.
    fn wait_for_job(&mut self, number: u32) -> Option<i32> {
        let mut status = 0;
        while let Some(at) = self.jobs.iter().position(|job| job.number == number) {
            let job = &self.jobs[at];
            match job.pids.first() {
                Some(&pid) => {
                    let ended = self.wait_for(pid)?;
                    if self.jobs.get(at).is_some_and(|job| job.last == pid) {
                        status = ended;
                    }
                }
                None => {
                    let ended = self.jobs.remove(at).ended;
                    if let Some(Ended::Exited(code)) = ended {
                        status = code & 0xff;
                    }
                }
            }
        }
        Some(status)
    }

    /// `wait`, `wait PID...`, `wait %1...`
    pub(crate) fn wait_builtin(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let all: Vec<u32> = self.jobs.iter().map(|job| job.number).collect();
        let mut numbers = all;
        if !arguments.is_empty() {
            numbers.clear();
        }
        let mut status = 0;
        for argument in arguments {
            match self.job_of(argument) {
                Some(number) => numbers.push(number),
                None => {
                    let message = format!("{}: not a child of this shell", lossy(argument));
                    self.complain(&format!("wait: {message}"));
                    status = 127;
                }
            }
        }
        for number in numbers {
            match self.wait_for_job(number) {
                Some(of_job) if !arguments.is_empty() => status = of_job,
                Some(_) => {}
                None => return Ok(Flow::Interrupted),
            }
        }
        self.status = status;
        Ok(Flow::Next)
    }

    /// The number of the job that `%1`, `%%` or the number of one of its processes names.
    fn job_of(&self, argument: &[u8]) -> Option<u32> {
        match argument {
            b"%%" | b"%+" | b"%" => self.jobs.last().map(|job| job.number),
            [b'%', rest @ ..] => {
                let wanted = number(rest)?;
                let found = self.jobs.iter().find(|job| i64::from(job.number) == wanted);
                found.map(|job| job.number)
            }
            _ => {
                let pid = u32::try_from(number(argument)?).ok()?;
                let has = |job: &&Job| job.last == pid || job.pids.contains(&pid);
                self.jobs.iter().find(has).map(|job| job.number)
            }
        }
    }

    /// The job that the arguments name: by default the one that came last, stopped ones first.
    fn chosen_job(&self, arguments: &[Vec<u8>]) -> Result<usize, (i32, String)> {
        let number = match arguments.first() {
            Some(argument) => self.job_of(argument),
            None => {
                let stopped = self.jobs.iter().rfind(|job| job.stopped);
                stopped.or(self.jobs.last()).map(|job| job.number)
            }
        };
        let at = self.jobs.iter().position(|job| Some(job.number) == number);
        at.ok_or_else(|| (1, "no such job".to_string()))
    }

    pub(crate) fn list_jobs(&mut self) -> Outcome {
        let mut text = String::new();
        for job in &self.jobs {
            let how = if job.stopped { "Stopped" } else { "Running" };
            text += &format!("[{}] {how}  {}\n", job.number, lossy(&job.text));
        }
        Ok(self.put(text.as_bytes()))
    }

    /// `fg`
    pub(crate) fn bring_to_foreground(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let at = self.chosen_job(arguments)?;
        let job = self.jobs.remove(at);
        self.write_to(1, &[&job.text, &b"\n"[..]].concat());
        for &pid in &job.pids {
            self.system.resume(pid, false);
        }
        let started = job.pids.iter().map(|&pid| Started::Process {
            pid,
            name: job.text.clone(),
        });
        let started = started.collect();
        Ok(self.wait_in_foreground(started, &job.text))
    }

    /// `bg`
    pub(crate) fn send_to_background(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let at = self.chosen_job(arguments)?;
        self.jobs[at].stopped = false;
        let job = self.jobs[at].clone();
        for &pid in &job.pids {
            self.system.resume(pid, true);
        }
        let line = format!("[{}] {}\n", job.number, lossy(&job.text));
        self.write_to(1, line.as_bytes());
        Ok(Flow::Next)
    }

    /// `kill [-9 | -s KILL] PID|%JOB...`, `kill -l [STATUS...]`
    pub(crate) fn kill(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (signal, targets) = match arguments {
            [option, rest @ ..] if option == b"-l" => return self.list_signals(rest),
            [option, signal, rest @ ..] if option == b"-s" => (signal.as_slice(), rest),
            [option, rest @ ..] if option == b"--" => (&b"TERM"[..], rest),
            [option, rest @ ..] if option.len() > 1 && option[0] == b'-' => (&option[1..], rest),
            all => (&b"TERM"[..], all),
        };
        let signal = signal.strip_prefix(b"SIG").unwrap_or(signal);
        let Some(signal) = condition_number(signal) else {
            return Err((2, format!("Illegal option -{}", lossy(signal))));
        };
        let targets = targets.strip_prefix(&[b"--".to_vec()]).unwrap_or(targets);
        if targets.is_empty() {
            return Err((2, "which process?".to_string()));
        }
        for target in targets {
            let is_job = target.starts_with(b"%");
            let pids = match is_job {
                true => {
                    let at = self.chosen_job(core::slice::from_ref(target))?;
                    self.jobs[at].pids.clone()
                }
                false => {
                    let pid = number(target).and_then(|number| u32::try_from(number).ok());
                    let illegal = || (2, format!("Illegal number: {}", lossy(target)));
                    Vec::from([pid.ok_or_else(illegal)?])
                }
            };
            // From the last to the first: killed the other way round, the reader of a pipe would
            // find it at its end, as if the writer had been done, and end by itself. Where the job
            // is one of the system's, the first call ends all.
            for pid in pids.into_iter().rev() {
                // Signal 0 only asks.
                let done = match signal {
                    0 if self.system.exists(pid) => Ok(()),
                    0 => Err("No such process".to_string()),
                    _ if is_job => self.system.kill_job(pid),
                    _ => self.system.kill(pid),
                };
                if self.jobs.iter().any(|job| job.pids.contains(&pid)) && signal != 0 {
                    self.sent.entry(pid).or_insert(signal);
                }
                if let Err(error) = done {
                    self.complain(&format!("kill: {pid}: {error}"));
                    self.status = 1;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// `kill -l`: the names of all signals, or of those that these numbers or exit statuses stand
    /// for.
    fn list_signals(&mut self, wanted: &[Vec<u8>]) -> Outcome {
        let mut text = String::new();
        for word in wanted {
            let signal = condition_number(word).or_else(|| {
                let status = number(word)?.checked_sub(128)?;
                usize::try_from(status).ok()
            });
            match signal.and_then(condition_name) {
                Some(name) => text += &format!("{name}\n"),
                None => return Err((2, format!("Illegal number: {}", lossy(word)))),
            }
        }
        if wanted.is_empty() {
            let names = (1..).map_while(condition_name);
            text = names.map(|name| format!("{name}\n")).collect();
        }
        Ok(self.put(text.as_bytes()))
    }

    /// The status that stands for the end of a process.
    pub(crate) fn status_of(&mut self, ended: Option<Ended>, name: &[u8]) -> i32 {
        match ended {
            Some(Ended::Exited(status)) => status & 0xff,
            Some(Ended::Killed) => 137,
            Some(Ended::Stopped) => STOPPED,
            Some(Ended::Crashed) => {
                self.complain(&format!("{}: crashed (see dmesg)", lossy(name)));
                139
            }
            None => 127,
        }
    }
}
