//! What came of a run, as a line of the ledger.

use crate::counts::Counts;
use crate::plan::Fault;
use abi::Text;
use alloc::format;
use alloc::string::String;
use isolation::Reason;

/// What a client found in one run, or all of them taken together. Without memory of its own, so
/// that none is missing while it is kept.
#[derive(Clone, Default)]
pub struct Found {
    /// Calls that were made.
    pub calls: u32,
    /// Those that gave an error.
    pub errors: u32,
    /// Something was read that was not written.
    pub is_wrong: bool,
    /// Nanoseconds of the longest call.
    pub longest: u64,
    /// What is said of that, or else of an error.
    pub note: Option<Text<64>>,
}

impl Found {
    /// All of them taken together; of what they say, the first.
    pub fn joined(clients: impl IntoIterator<Item = Found>) -> Self {
        clients
            .into_iter()
            .fold(Found::default(), |all, one| Found {
                calls: all.calls + one.calls,
                errors: all.errors + one.errors,
                is_wrong: all.is_wrong || one.is_wrong,
                longest: all.longest.max(one.longest),
                note: all.note.or(one.note),
            })
    }
}

/// A run that came to its end.
pub struct Course<'a> {
    /// What was to happen.
    pub fault: &'a Fault,
    /// The image that was to fail.
    pub domain: &'a str,
    /// How much or how often, as the kind of the fault wants it.
    pub amount: u32,
    /// The instance that failed; 0 if none had been started.
    pub id: u32,
    /// Why it ended.
    pub reason: Reason,
    /// The fault happened.
    pub reached: bool,
    /// Nanoseconds until the first good call, or the longest call.
    pub latency: Option<u64>,
    /// Instances that were replaced.
    pub restarts: usize,
    /// What the clients found.
    pub found: Found,
    /// Before the run.
    pub before: Counts,
    /// When all that is dead had been cleared away.
    pub after: Counts,
    /// Bytes that may come and go without being a leak.
    pub slack: u64,
}

impl Course<'_> {
    /// The worst that can be said of it.
    fn outcome(&self) -> &'static str {
        if self.found.is_wrong {
            "wrong_result"
        } else if !self.after.is_back(&self.before, self.slack) {
            "leak"
        } else if self.found.errors > 0 {
            "error_returned"
        } else if self.reached {
            "unnoticed"
        } else {
            "not_reached"
        }
    }

    /// The run's line of the ledger.
    pub fn line(&self) -> String {
        let note = self.found.note.as_ref();
        let note = note.map_or_else(String::new, |note| format!(",\"note\":{:?}", note.as_str()));
        let latency = self.latency.map_or_else(
            || String::from("null"),
            |latency| format!("{}.{:03}", latency / 1000, latency % 1000),
        );
        let (before, after) = (&self.before, &self.after);
        format!(
            "{{\"run\":{},\"kind\":\"{}\",\"domain\":\"{}\",\"place\":{},\"amount\":{},\"id\":{},\"reason\":\"{:?}\",\"reached\":{},\
             \"outcome\":\"{}\",\"latency_us\":{latency},\"restarts\":{},\"calls\":{},\"errors\":{},\
             \"free\":[{},{}],\"heap\":[{},{}],\"objects\":[{},{}],\"handles\":[{},{}]{note}}}",
            self.fault.run,
            self.fault.kind.name(),
            self.domain,
            self.fault.at.place,
            self.amount,
            self.id,
            self.reason,
            self.reached,
            self.outcome(),
            self.restarts,
            self.found.calls,
            self.found.errors,
            before.free,
            after.free,
            before.heap,
            after.heap,
            before.objects,
            after.objects,
            before.handles,
            after.handles,
        )
    }
}

/// The line of a run that did not end.
pub fn stuck(fault: &Fault, why: &str) -> String {
    let Fault { run, kind, at, .. } = fault;
    format!(
        "{{\"run\":{run},\"kind\":\"{}\",\"place\":{},\"amount\":{},\"reached\":true,\"outcome\":\"hang\",\"note\":{why:?}}}",
        kind.name(),
        at.place,
        fault.amount
    )
}
