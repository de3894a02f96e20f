//! What a domain may have.

use crate::domain::group::GroupSpec;

/// What a new domain may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Private heap, in pages. 0: no limit.
    pub pages: usize,
    /// What it owns on the shared heap, its handles included, in pages. 0: no limit.
    pub shared: usize,
    /// Threads. 0: no limit.
    pub threads: u32,
    /// Calls from other domains that are under way in it at a time. 0: no limit.
    pub calls: u32,
    /// Budget of a call, in milliseconds, where the interface says nothing or more; and how long a
    /// thread that the domain creates may run without waiting. 0: the default where the interface
    /// says nothing, and no limit for threads.
    pub call_ms: u32,
    /// While it has less memory than this, in pages, it may use the reserve that is kept for
    /// recovery.
    pub reserve: usize,
    /// Bytes per second that it may write to the log in the long run. 0: the usual rate.
    pub log_rate: u32,
    /// The group that it belongs to.
    pub group: GroupSpec,
}

impl Limits {
    /// None at all.
    pub const NONE: Limits = Limits {
        pages: 0,
        shared: 0,
        threads: 0,
        calls: 0,
        call_ms: 0,
        reserve: 0,
        log_rate: 0,
        group: GroupSpec::NONE,
    };
}
