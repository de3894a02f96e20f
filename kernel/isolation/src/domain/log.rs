//! What the log says of a domain, and what the domain has it say.

use super::ControlBlock;
use super::words::LastWords;
use crate::klog;
use crate::platform::platform;

impl ControlBlock {
    /// Keeps what the log is to say of its crash.
    pub(crate) fn put_down(&self, words: &LastWords) {
        *self.words.lock() = Some(*words);
    }

    /// What the log has not said yet of its crash.
    pub(crate) fn take_words(&self) -> Option<LastWords> {
        self.words.lock().take()
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
