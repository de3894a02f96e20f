//! Which memory a device may still know: what was given for DMA is free only when the device cannot
//! use it any more. Tested on the host.
//!
//! Switching a device's bus mastering off stops it, but it forgets nothing: when it is switched on
//! again, it may go on with what its former driver has told it. So the memory of a driver that is
//! gone is *kept* for its device until a later driver has reset it, which is how a driver begins
//! anyway, and has said so; bus mastering goes on then, not earlier. A driver that ends before it
//! has come so far adds nothing to what is kept. Who has an older pool than the youngest is an
//! older driver, and has nothing to say any more: he may be dead, and his word late.

use alloc::vec::Vec;

use crate::mem::NoMemory;

/// Most devices that are given memory: far more than any machine has that this runs on.
pub const MOST_DEVICES: usize = 1024;

/// What a pool leaves to its device.
pub trait Remains: Default {
    /// Whether that is nothing.
    fn is_nothing(&self) -> bool;
}

impl<M> Remains for Vec<M> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// All devices that were ever given memory, by a number each; `R` is what a pool leaves.
pub struct Ledger<R> {
    devices: Vec<Device<R>>,
}

struct Device<R> {
    number: u32,
    /// It may use memory.
    running: bool,
    /// How often a driver said that it has reset the device.
    resets: u64,
    /// Pools that there ever were.
    pools: u64,
    /// What each pool left. There is room for [`places`](Self::places) more, so that the end of a
    /// pool takes no memory.
    kept: Vec<R>,
    /// Pools that have not ended, and what is on its way to be looked at.
    places: usize,
}

/// Why a reset does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReset {
    /// An older driver says that it has reset a device which a younger one has.
    Outdated,
    /// The driver is dead, or its pool was stopped.
    Gone,
    /// There is no memory to note it.
    NoMemory,
}

/// What was kept for a device, on its way to be looked at.
pub struct Taken<R> {
    /// What each pool left.
    pub memory: Vec<R>,
    resets: u64,
}

/// What there is to know of a pool of memory when it comes into being.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    resets: u64,
    /// Which pool of the device it is, from 1.
    pool: u64,
    /// The device did not run.
    quiet: bool,
}

impl<R: Remains> Ledger<R> {
    /// No device was given memory yet.
    pub const fn new() -> Self {
        Self {
            devices: Vec::new(),
        }
    }

    fn device(&mut self, number: u32) -> Option<&mut Device<R>> {
        let mut devices = self.devices.iter_mut();
        devices.find(|device| device.number == number)
    }

    /// There is a pool of memory for this device from now on.
    ///
    /// # Errors
    /// If there is no memory to note it, or there are too many devices.
    pub fn begin(&mut self, number: u32) -> Result<Birth, NoMemory> {
        if self.device(number).is_none() {
            if self.devices.len() >= MOST_DEVICES {
                return Err(NoMemory);
            }
            self.devices.try_reserve(1).map_err(|_| NoMemory)?;
            self.devices.push(Device {
                number,
                running: false,
                resets: 0,
                pools: 0,
                kept: Vec::new(),
                places: 0,
            });
        }
        let device = self.device(number).ok_or(NoMemory)?;
        let places = device.places + 1;
        device.kept.try_reserve(places).map_err(|_| NoMemory)?;
        device.places = places;
        device.pools += 1;
        Ok(Birth {
            resets: device.resets,
            pool: device.pools,
            quiet: !device.running,
        })
    }

    /// The device was reset by its driver, whose pool was born so, and is going to run. Returns
    /// what may be freed now. `lives`: the driver does, and its pool was not stopped, as seen under
    /// the lock of the ledger.
    ///
    /// # Errors
    /// [`NoReset::Gone`]: it does not live, so nobody would stop the device.
    /// [`NoReset::Outdated`]: there is a younger pool, whose memory the device may know.
    /// [`NoReset::NoMemory`].
    pub fn reset(&mut self, number: u32, birth: Birth, lives: bool) -> Result<Vec<R>, NoReset> {
        if !lives {
            return Err(NoReset::Gone);
        }
        let Some(device) = self.device(number) else {
            return Ok(Vec::new());
        };
        if birth.pool != device.pools {
            return Err(NoReset::Outdated);
        }
        let free = device.replace(0).map_err(|_| NoReset::NoMemory)?;
        device.resets += 1;
        device.running = true;
        Ok(free)
    }

    /// What is kept for the device, to be given back to [`put_back`](Self::put_back).
    ///
    /// # Errors
    /// If there is no memory to note it.
    pub fn take_kept(&mut self, number: u32) -> Result<Taken<R>, NoMemory> {
        let Some(device) = self.device(number) else {
            return Ok(Taken::nothing());
        };
        let memory = device.replace(device.kept.len())?;
        device.places += memory.len();
        Ok(Taken {
            memory,
            resets: device.resets,
        })
    }

    /// Keeps again what was taken. Returns what may be freed, as the device was reset meanwhile.
    pub fn put_back(&mut self, number: u32, taken: Taken<R>) -> Vec<R> {
        let Taken { memory, resets } = taken;
        let Some(device) = self.device(number) else {
            return memory;
        };
        device.places -= memory.len();
        if device.resets != resets {
            return memory;
        }
        device.kept.extend(memory);
        Vec::new()
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
    /// be freed now; the rest is kept.
    pub fn end(&mut self, number: u32, birth: Birth, stopped: Option<u64>, memory: R) -> R {
        let Some(device) = self.device(number) else {
            return memory;
        };
        device.places -= 1;
        let never_used = birth.quiet && birth.resets == device.resets;
        let forgotten = stopped.is_some_and(|at| device.resets > at);
        if never_used || forgotten || memory.is_nothing() {
            return memory;
        }
        device.kept.push(memory);
        R::default()
    }

    /// Whether the device was reset after it was stopped at `stopped`.
    pub fn has_forgotten(&mut self, number: u32, stopped: u64) -> bool {
        let device = self.device(number);
        device.is_some_and(|device| device.resets > stopped)
    }
}

impl<R> Device<R> {
    /// What is kept, which is not any more. There is room for `more` besides what there must be.
    fn replace(&mut self, more: usize) -> Result<Vec<R>, NoMemory> {
        let mut room = Vec::new();
        let places = self.places + more;
        room.try_reserve(places).map_err(|_| NoMemory)?;
        Ok(core::mem::replace(&mut self.kept, room))
    }
}

impl<R> Taken<R> {
    fn nothing() -> Self {
        Taken {
            memory: Vec::new(),
            resets: 0,
        }
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

impl<R: Remains> Default for Ledger<R> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
