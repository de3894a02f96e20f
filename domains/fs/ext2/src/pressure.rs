//! Memory that others need: how much is to be left free, and the thread that gives some back.

use domain_rt::log;
use interfaces::{Handle, MemoryWatch};

use crate::volume::Volume;

/// The least memory that is to be left free, in bytes, if a quarter of what is free at the start is
/// no less.
const LEAST_RESERVE: u64 = 16 << 20;

/// The machine's memory, as a cache has to see it.
pub struct Pressure {
    watch: Option<Handle<dyn MemoryWatch>>,
    /// Bytes that are to be left free: the cache does not grow when fewer are.
    reserve: u64,
}

impl Pressure {
    /// Without a `watch` there is never any.
    pub fn new(watch: Option<Handle<dyn MemoryWatch>>) -> Self {
        let free = watch.as_ref().and_then(|watch| watch.free().ok());
        let free = free.unwrap_or_default();
        Pressure {
            watch,
            reserve: (free / 16).max(LEAST_RESERVE).min(free / 4),
        }
    }

    /// Bytes that are missing for the reserve.
    fn missing(&self) -> u64 {
        let free = self.watch.as_ref().map(|watch| watch.free());
        match free {
            Some(Ok(free)) => self.reserve.saturating_sub(free),
            _ => 0,
        }
    }

    /// Whether the cache is not to grow.
    pub fn is_short(&self) -> bool {
        self.missing() > 0
    }

    /// The body of the thread that gives memory back when others need it.
    pub fn give_back_for_ever(&self, volume: &Volume) {
        let Some(watch) = &self.watch else {
            return;
        };
        let (mut answered, mut given) = (0, 0);
        loop {
            match watch.shortage(answered, given) {
                Ok(shortage) => {
                    let bytes = shortage.bytes.saturating_add(self.missing());
                    given = volume.give_back(bytes);
                    answered = shortage.number;
                }
                Err(error) => {
                    log!("not told of shortages of memory any more: {error}");
                    return;
                }
            }
        }
    }
}
