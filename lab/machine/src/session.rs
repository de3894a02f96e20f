//! A system that somebody types at: waits for its prompt, types lines, collects what is printed.
//!
//! Used for standard input that is no terminal, for the demonstration and by the whole-system
//! tests.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::qemu::{Ended, Event, Guest, Machine};

/// What the shell prints when it waits for a line.
pub const PROMPT: &str = "$ ";
/// What root's shell prints on a disk of Debian's packages.
pub const ROOT_PROMPT: &str = "# ";

/// A running system with its terminal.
pub struct Session {
    /// The machine it runs on.
    pub guest: Guest,
    screen: Vec<u8>,
    /// How much had been printed when the last line was typed.
    typed_at: usize,
    ended: bool,
    copied: bool,
    prompt: &'static str,
}

impl Session {
    /// Starts `machine`. With `copied` all that it prints goes to our standard output as well.
    ///
    /// # Errors
    /// If QEMU cannot be started.
    pub fn start(machine: &Machine, copied: bool) -> Result<Self> {
        Ok(Session {
            guest: machine.start()?,
            screen: Vec::new(),
            typed_at: 0,
            ended: false,
            copied,
            prompt: PROMPT,
        })
    }

    /// With a shell that prints this when it waits for a line.
    #[must_use]
    pub fn with_prompt(self, prompt: &'static str) -> Self {
        Session { prompt, ..self }
    }

    /// All that was printed so far, with plain line ends.
    pub fn screen(&self) -> String {
        plain(&self.screen)
    }

    /// Waits until the shell waits for a line.
    ///
    /// # Errors
    /// If it does not within `limit`, or the machine ends.
    pub fn prompt(&mut self, limit: Duration) -> Result<()> {
        let prompt = self.prompt;
        self.wait_from(0, limit, "the prompt", |text| {
            is_prompt(&plain(text), prompt)
        })
    }

    /// Types `line` and gives what is printed until the next prompt, without the echo of the line.
    ///
    /// # Errors
    /// If there is no prompt within `limit`, or the machine ends.
    pub fn run(&mut self, line: &str, limit: Duration) -> Result<String> {
        let (start, prompt) = (self.screen.len(), self.prompt);
        self.type_line(line.as_bytes())?;
        self.wait_from(
            start,
            limit,
            &format!("the prompt after `{line}`"),
            |text| is_prompt_after_line(text, prompt),
        )?;
        let text = plain(&self.screen[start..]);
        let body = text.split_once('\n').map_or("", |(_echo, body)| body);
        let end = body.rfind('\n').map_or(0, |at| at + 1);
        Ok(body[..end].to_string())
    }

    /// Types `line` and the key that ends it.
    ///
    /// # Errors
    /// If the machine has ended.
    pub fn type_line(&mut self, line: &[u8]) -> Result<()> {
        self.typed_at = self.screen.len();
        self.guest.send(&[line, b"\n"].concat())
    }

    /// Waits until `text` is printed after the first `from` bytes; where it ends.
    ///
    /// # Errors
    /// If it is not within `limit`, or the machine ends.
    pub fn wait_for(&mut self, from: usize, text: &str, limit: Duration) -> Result<usize> {
        self.wait_from(from, limit, &format!("{text:?}"), |bytes| {
            find(bytes, text.as_bytes()).is_some()
        })?;
        let at = find(&self.screen[from..], text.as_bytes()).context("it was just there")?;
        Ok(from + at + text.len())
    }

    /// How many bytes were printed so far.
    pub fn printed(&self) -> usize {
        self.screen.len()
    }

    fn wait_from(
        &mut self,
        from: usize,
        limit: Duration,
        what: &str,
        done: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + limit;
        while !done(&self.screen[from..]) {
            match self.guest.receive(deadline) {
                Event::Bytes(bytes) => self.take(&bytes),
                Event::Silence => bail!(
                    "waited {} s for {what}\n{}",
                    limit.as_secs(),
                    self.report_standstill()
                ),
                Event::End => {
                    self.ended = true;
                    bail!(
                        "the machine ended while waiting for {what}\n{}",
                        self.report()
                    )
                }
            }
        }
        Ok(())
    }

    /// Whether the shell waits for a line: the last typed one is done.
    pub fn is_ready(&self) -> bool {
        let since = &self.screen[self.typed_at..];
        if self.typed_at == 0 {
            is_prompt(&plain(since), self.prompt)
        } else {
            is_prompt_after_line(since, self.prompt)
        }
    }

    /// Takes what is printed until there is a prompt, or nothing more comes for `silence`; whether
    /// there is a prompt.
    pub fn settle(&mut self, silence: Duration) -> bool {
        while !self.is_ready() {
            match self.guest.receive(Instant::now() + silence) {
                Event::Bytes(bytes) => self.take(&bytes),
                Event::Silence => return false,
                Event::End => {
                    self.ended = true;
                    return false;
                }
            }
        }
        true
    }

    /// Whether the machine is known to have ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes all that is printed until the machine ends.
    ///
    /// # Errors
    /// If it does not within `limit`.
    pub fn end(&mut self, limit: Duration) -> Result<Ended> {
        match self.end_by(Instant::now() + limit)? {
            Some(ended) => Ok(ended),
            None => bail!(
                "the machine did not end within {} s\n{}",
                limit.as_secs(),
                self.report_standstill()
            ),
        }
    }

    /// As [`end`](Session::end), where it is as usual that the machine goes on: `None`.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn end_by(&mut self, deadline: Instant) -> Result<Option<Ended>> {
        loop {
            match self.guest.receive(deadline) {
                Event::Bytes(bytes) => self.take(&bytes),
                Event::Silence => return Ok(None),
                Event::End => break,
            }
        }
        let ended = self.guest.wait(Some(deadline + Duration::from_secs(5)))?;
        let ended = ended.context("QEMU closed the terminal but goes on")?;
        Ok(Some(ended))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.extend(bytes);
        if self.copied {
            let mut out = std::io::stdout();
            // A reader that has gone away does not keep the system from being shut down.
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        }
    }

    /// As [`report`](Session::report), with the stacks of all threads of a machine that should have
    /// gone on.
    pub fn report_standstill(&self) -> String {
        let stacks = self.guest.stacks();
        let lines: String = stacks.lines().map(|line| format!("\n    {line}")).collect();
        format!("{}\n  stacks:{lines}", self.report())
    }

    /// The last lines of screen and kernel log, for messages.
    pub fn report(&self) -> String {
        let last = |text: &str, count: usize| {
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(count)..].join("\n    ")
        };
        format!(
            "  screen:\n    {}\n  kernel log:\n    {}",
            last(&self.screen(), 15),
            last(&self.guest.log(), 15)
        )
    }
}

/// Whether the last line of `text` is a prompt with nothing behind it.
fn is_prompt(text: &str, prompt: &str) -> bool {
    let last = text.rsplit('\n').next().unwrap_or_default();
    last.ends_with(prompt) && !last.trim_end_matches(prompt).contains(prompt)
}

/// Whether a line has ended (that of the echo) and a prompt came after it.
fn is_prompt_after_line(bytes: &[u8], prompt: &str) -> bool {
    bytes.contains(&b'\n') && is_prompt(&plain(bytes), prompt)
}

/// `bytes` as text with plain line ends, and without what some shells put behind their prompt: the
/// question where the cursor stands, which nobody answers, that the rest be cleared, and what tells
/// a terminal to mark pasted text.
pub fn plain(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .replace("\x1b[6n", "")
        .replace("\x1b[J", "")
        .replace("\x1b[?2004h", "")
        .replace("\x1b[?2004l", "")
        .replace("\r\n", "\n")
        .replace('\r', "")
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes
        .windows(text.len().max(1))
        .position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_the_last_thing() {
        let is_prompt = |text| is_prompt(text, PROMPT);
        assert!(is_prompt("$ "));
        assert!(is_prompt("welcome\n$ "));
        assert!(is_prompt("welcome\n/text $ "));
        assert!(!is_prompt("welcome\n"));
        assert!(!is_prompt("$ ls"));
        assert!(!is_prompt("$ ls\nbin"));
    }

    #[test]
    fn line_ends_of_a_terminal_are_made_plain() {
        assert_eq!(plain(b"a\r\nb\r"), "a\nb");
        assert!(is_prompt(&plain(b"here\r\n$ \x1b[6n"), PROMPT));
        let bash = plain(b"\x1b[?2004hroot@trefoil:~# ");
        assert!(is_prompt(&bash, ROOT_PROMPT) && !is_prompt(&bash, PROMPT));
        assert_eq!(find(b"hello", b"ll"), Some(2));
        assert_eq!(find(b"hello", b"x"), None);
    }
}
