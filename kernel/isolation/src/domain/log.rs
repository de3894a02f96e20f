//! What the log says of a domain, and what the domain has it say.

use super::ControlBlock;
use super::words::{Crash, LastWords};
use crate::klog;
use crate::platform::platform;

impl ControlBlock {
    /// Keeps what the log is to say of its crash, for whoever made it die.
    pub(crate) fn put_down(&self, crash: &Crash<'_>, called: (&'static str, &'static str)) {
        self.words.lock().put_down(crash, called);
    }

    /// What the log is to say of its crash, if that is what it died of.
    pub(crate) fn words(&self) -> Option<LastWords> {
        let words = *self.words.lock();
        (!words.is_none()).then_some(words)
    }

    /// Counts a line of `bytes` bytes that it writes to the log. How many were lost since the last
    /// one that was not; `None` if this one is.
    pub(crate) fn take_line(&self, bytes: usize) -> Option<u32> {
        let now = platform().now();
        self.quota.lock().take(now, bytes as u64)
    }

    /// Lines of its that the log has lost and does not tell of yet; they count as told.
    pub(crate) fn take_lost_lines(&self) -> u32 {
        self.quota.lock().take_lost()
    }

    /// Tells the log how many of its lines were lost, if any.
    pub(crate) fn tell_lost(&self, lost: u32) {
        if lost > 0 {
            klog!("{}: {lost} lines lost", self.name());
        }
    }
}
