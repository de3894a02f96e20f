//! Which memory a device may still know: what was given for DMA is free only when the device cannot
//! use it any more. Tested on the host.
//!
//! Switching a device's bus mastering off stops it, but it forgets nothing: when it is switched on
//! again, it may go on with what its former driver has told it. So the memory of a driver that is
//! gone is *kept* for its device until a later driver has reset it, which is how a driver begins
//! anyway, and has said so; bus mastering goes on then, not earlier. A driver that ends before it
//! has come so far adds nothing to what is kept.

use alloc::vec::Vec;

use crate::mem::NoMemory;

/// All devices that were ever given memory, by a number each; `M` is a piece of memory.
pub struct Ledger<M> {
    devices: Vec<Device<M>>,
}

struct Device<M> {
    number: u32,
    /// It may use memory.
    running: bool,
    /// How often a driver said that it has reset the device.
    resets: u64,
    kept: Vec<M>,
}

/// What there is to know of a pool of memory when it comes into being.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    resets: u64,
    /// The device did not run.
    quiet: bool,
}

impl<M> Ledger<M> {
    /// No device was given memory yet.
    pub const fn new() -> Self {
        Self {
            devices: Vec::new(),
        }
    }

    fn device(&mut self, number: u32) -> Option<&mut Device<M>> {
        let mut devices = self.devices.iter_mut();
        devices.find(|device| device.number == number)
    }

    /// There is a pool of memory for this device from now on.
    ///
    /// # Errors
    /// If there is no memory to note it.
    pub fn begin(&mut self, number: u32) -> Result<Birth, NoMemory> {
        if self.device(number).is_none() {
            self.devices.try_reserve(1).map_err(|_| NoMemory)?;
            self.devices.push(Device {
                number,
                running: false,
                resets: 0,
                kept: Vec::new(),
            });
        }
        let device = self.device(number).ok_or(NoMemory)?;
        Ok(Birth {
            resets: device.resets,
            quiet: !device.running,
        })
    }

    /// The device was reset by its driver and is going to run. Returns what may be freed now.
    pub fn reset(&mut self, number: u32) -> Vec<M> {
        let Some(device) = self.device(number) else {
            return Vec::new();
        };
        device.resets += 1;
        device.running = true;
        core::mem::take(&mut device.kept)
    }

    /// The device is going to be stopped. Returns the moment: how many resets there were until now.
    pub fn stop(&mut self, number: u32) -> u64 {
        self.device(number).map_or(0, |device| {
            device.running = false;
            device.resets
        })
    }

    /// The device could not be stopped.
    pub fn runs_on(&mut self, number: u32) {
        if let Some(device) = self.device(number) {
            device.running = true;
        }
    }

    /// A pool ends. Its device was stopped at `stopped`, if at all. Returns what of the memory may
    /// be freed now; the rest is kept. If there is no memory to note that, it is lost for ever.
    pub fn end(
        &mut self,
        number: u32,
        birth: Birth,
        stopped: Option<u64>,
        mut memory: Vec<M>,
    ) -> Vec<M> {
        let Some(device) = self.device(number) else {
            return memory;
        };
        let never_used = birth.quiet && birth.resets == device.resets;
        let forgotten = stopped.is_some_and(|at| device.resets > at);
        if never_used || forgotten {
            return memory;
        }
        if device.kept.try_reserve(memory.len()).is_ok() {
            device.kept.append(&mut memory);
        } else {
            memory.drain(..).for_each(core::mem::forget);
        }
        Vec::new()
    }
}

/// Memory of one pool that is not in use. Each piece that is has a place to come back to, so that
/// coming back, which happens in a drop, takes no memory.
pub struct Spares<M> {
    pieces: Vec<M>,
    /// Pieces that are in use.
    lent: usize,
}

impl<M> Spares<M> {
    /// Nothing.
    pub const fn new() -> Self {
        Self {
            pieces: Vec::new(),
            lent: 0,
        }
    }

    /// Makes a place for a new piece, which is in use from now on.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn lend(&mut self) -> Result<(), NoMemory> {
        let places = self.lent + 1;
        self.pieces.try_reserve(places).map_err(|_| NoMemory)?;
        self.lent = places;
        Ok(())
    }

    /// The new piece for which there is a place did not come into being.
    pub fn never_mind(&mut self) {
        self.lent = self.lent.saturating_sub(1);
    }

    /// A piece that `fits`, which is in use from now on.
    pub fn take(&mut self, fits: impl FnMut(&M) -> bool) -> Option<M> {
        let index = self.pieces.iter().position(fits)?;
        self.lent += 1;
        Some(self.pieces.swap_remove(index))
    }

    /// A piece is not in use any more.
    pub fn put_back(&mut self, piece: M) {
        self.never_mind();
        self.pieces.push(piece);
    }

    /// All that is not in use.
    pub fn end(&mut self) -> Vec<M> {
        core::mem::take(&mut self.pieces)
    }
}

impl<M> Default for Spares<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Default for Ledger<M> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: u32 = 0x18;

    /// A driver with a piece of memory, that has come so far.
    fn driver(ledger: &mut Ledger<&'static str>) -> Birth {
        let birth = ledger.begin(DISK).unwrap();
        ledger.reset(DISK);
        birth
    }

    #[test]
    fn memory_of_the_dead_is_kept_until_the_next_reset() {
        let mut ledger = Ledger::new();
        let first = driver(&mut ledger);
        let at = ledger.stop(DISK);
        assert!(ledger.end(DISK, first, Some(at), vec!["ring"]).is_empty());
        // A successor exists, and hangs, for as long as it likes.
        let hung = ledger.begin(DISK).unwrap();
        let at = ledger.stop(DISK);
        assert_eq!(ledger.end(DISK, hung, Some(at), vec!["new"]), ["new"]);
        // The next one has reset the device.
        ledger.begin(DISK).unwrap();
        assert_eq!(ledger.reset(DISK), ["ring"]);
        assert!(ledger.reset(DISK).is_empty());
    }

    #[test]
    fn who_ends_after_the_reset_of_a_successor_leaves_nothing() {
        let mut ledger = Ledger::new();
        let first = driver(&mut ledger);
        let at = ledger.stop(DISK);
        let second = driver(&mut ledger);
        assert_eq!(ledger.end(DISK, first, Some(at), vec!["old"]), ["old"]);
        let at = ledger.stop(DISK);
        assert!(ledger.end(DISK, second, Some(at), vec!["new"]).is_empty());
    }

    #[test]
    fn drivers_that_never_reset_the_device_add_nothing() {
        let mut ledger = Ledger::new();
        for _ in 0..100 {
            let birth = ledger.begin(DISK).unwrap();
            let at = ledger.stop(DISK);
            assert_eq!(ledger.end(DISK, birth, Some(at), vec!["x"]), ["x"]);
        }
    }

    #[test]
    fn a_second_pool_beside_a_running_device_is_known_to_it() {
        let mut ledger = Ledger::new();
        let first = driver(&mut ledger);
        let second = ledger.begin(DISK).unwrap();
        // Not stopped, since the first one still serves.
        assert!(ledger.end(DISK, second, None, vec!["second"]).is_empty());
        let at = ledger.stop(DISK);
        assert!(ledger.end(DISK, first, Some(at), vec!["first"]).is_empty());
        assert_eq!(ledger.reset(DISK), ["second", "first"]);
    }

    #[test]
    fn what_cannot_be_stopped_is_not_quiet() {
        let mut ledger = Ledger::new();
        let first = driver(&mut ledger);
        let at = ledger.stop(DISK);
        ledger.runs_on(DISK);
        assert!(ledger.end(DISK, first, Some(at), vec!["first"]).is_empty());
        let second = ledger.begin(DISK).unwrap();
        assert!(ledger.end(DISK, second, None, vec!["second"]).is_empty());
    }

    #[test]
    fn what_is_in_use_has_a_place_to_come_back_to() {
        let mut spares = Spares::new();
        let mut used = Vec::new();
        for piece in 0..5_000 {
            let reused = spares.take(|it| it % 3 == piece % 3);
            if reused.is_none() {
                spares.lend().unwrap();
            }
            used.push(reused.unwrap_or(piece));
            let room = spares.pieces.capacity();
            assert!(room >= spares.pieces.len() + used.len());
            if piece % 7 == 0 {
                spares.put_back(used.swap_remove(0));
            }
        }
        let room = spares.pieces.capacity();
        used.into_iter().for_each(|it| spares.put_back(it));
        assert_eq!(spares.pieces.capacity(), room, "a drop took memory");
        spares.lend().unwrap();
        spares.never_mind();
        assert_eq!((spares.lent, spares.end().is_empty()), (0, false));
    }

    #[test]
    fn devices_are_apart() {
        let mut ledger = Ledger::new();
        let first = driver(&mut ledger);
        let at = ledger.stop(DISK);
        assert!(ledger.end(DISK, first, Some(at), vec!["disk"]).is_empty());
        ledger.begin(DISK + 1).unwrap();
        assert!(ledger.reset(DISK + 1).is_empty());
        assert!(ledger.reset(DISK + 2).is_empty());
        assert_eq!(ledger.reset(DISK), ["disk"]);
    }
}
