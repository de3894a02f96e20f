//! What a domain wrote to the log before its start function failed.
//!
//! A start function can only return a transport error, so a domain says in the log why it does not
//! start. For the user that line is the cause, and it is fetched from there.

use alloc::borrow::ToOwned;
use alloc::string::String;
use interfaces::{Handle, Monitor, RVec, RpcResult};

/// How much of the log is looked through, in bytes.
const LOOKED_THROUGH: usize = 8192;

/// The end of the log at some moment.
pub struct LogEnd<'a> {
    monitor: &'a Handle<dyn Monitor>,
    position: Option<u64>,
}

impl<'a> LogEnd<'a> {
    /// The end of the log now.
    pub fn now(monitor: &'a Handle<dyn Monitor>) -> Self {
        let end = RVec::filled(0, 0).and_then(|nothing| monitor.log(u64::MAX, nothing));
        LogEnd {
            monitor,
            position: end.ok().map(|(_, position)| position),
        }
    }

    /// The last line that domain `name` itself has written since, without time and name.
    pub fn last_words(&self, name: &str) -> Option<String> {
        let text = self.since().ok()??;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut own = text.lines().filter_map(|line| said_by(name, line));
        own.next_back().map(str::to_owned)
    }

    fn since(&self) -> RpcResult<Option<RVec<u8>>> {
        let Some(position) = self.position else {
            return Ok(None);
        };
        let (text, _) = self
            .monitor
            .log(position, RVec::filled(0, LOOKED_THROUGH)?)?;
        Ok(Some(text))
    }
}

/// What `name` says in a line of the log, `[    0.123456] NAME: TEXT`. Lines of the kernel about a
/// domain look alike, but go on with the word `domain` and a number.
fn said_by<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    let (_, line) = line.split_once("] ")?;
    let text = line.strip_prefix(name)?.strip_prefix(": ")?;
    let of_kernel = text
        .strip_prefix("domain ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    (!of_kernel).then_some(text)
}
