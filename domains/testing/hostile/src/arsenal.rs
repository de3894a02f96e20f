//! What a foe has: handles and numbers, and the rules for what it keeps of what calls give.
//!
//! Some authority ends other domains, has them wait, or drives devices, by right. A foe that used
//! it at random would only show that; so such handles are not kept: authority over a domain that it
//! has not started, closed gates (called once instead), ports and DMA memory of devices.

use crate::random::Random;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use hostile_calls::{METHODS, Method};
use interfaces::{
    AnyHandle, DmaAllocator, Domain, DomainControl, Image, Interface, Ports, Subject,
};

/// Most handles that are kept; a further one replaces another.
const MOST_HANDLES: usize = 48;
/// Most numbers that are kept.
const MOST_NUMBERS: usize = 64;

/// Handles and numbers.
#[derive(Default)]
pub struct Arsenal {
    handles: Mutex<Vec<AnyHandle>>,
    numbers: Mutex<Vec<u64>>,
}

impl Arsenal {
    /// Takes a handle.
    pub fn take(&self, handle: AnyHandle, random: &mut Random) {
        let mut handles = self.handles.lock();
        let former = match handles.len() < MOST_HANDLES {
            true => {
                handles.push(handle);
                None
            }
            false => {
                let at = random.below(handles.len());
                Some(core::mem::replace(&mut handles[at], handle))
            }
        };
        drop(handles);
        // Not under the lock: its drop may be a call.
        drop(former);
    }

    /// Keeps a handle that a call of `method` gave, if the rules allow it.
    pub fn keep(&self, handle: AnyHandle, method: &Method, random: &mut Random) {
        if may_keep(&handle, method) {
            self.take(handle, random);
        }
    }

    /// Another handle to something with this interface (0: any).
    pub fn copy(&self, interface: u64, random: &mut Random) -> Option<AnyHandle> {
        let handles = self.handles.lock();
        let fits = |it: &&AnyHandle| interface == 0 || it.interface() == interface;
        let count = handles.iter().filter(fits).count();
        let chosen = handles.iter().filter(fits).nth(random.below(count))?;
        chosen.duplicate().ok()
    }

    /// A handle with this interface (0: any), which is given up.
    pub fn remove(&self, interface: u64, random: &mut Random) -> Option<AnyHandle> {
        let mut handles = self.handles.lock();
        let fits = |it: &AnyHandle| interface == 0 || it.interface() == interface;
        let fitting: Vec<usize> = (0..handles.len())
            .filter(|at| fits(&handles[*at]))
            .collect();
        let at = *fitting.get(random.below(fitting.len()))?;
        Some(handles.swap_remove(at))
    }

    /// Keeps a number.
    pub fn keep_number(&self, number: u64, random: &mut Random) {
        let mut numbers = self.numbers.lock();
        if numbers.len() < MOST_NUMBERS {
            return numbers.push(number);
        }
        let at = random.below(MOST_NUMBERS);
        numbers[at] = number;
    }

    /// A number that was kept.
    pub fn number(&self, random: &mut Random) -> Option<u64> {
        let numbers = self.numbers.lock();
        numbers.get(random.below(numbers.len())).copied()
    }

    /// A method that can be called on one of the handles, by its number.
    pub fn method(&self, random: &mut Random) -> Option<usize> {
        let interface = {
            let handles = self.handles.lock();
            handles.get(random.below(handles.len()))?.interface()
        };
        let own = |it: &usize| METHODS[*it].interface == interface && crate::score::is_called(*it);
        let own: Vec<usize> = (0..METHODS.len()).filter(own).collect();
        own.get(random.below(own.len())).copied()
    }

    /// A method whose result may hold a handle to `interface`, and that can be called; by its
    /// number.
    pub fn source_of(&self, interface: u64, random: &mut Random) -> Option<usize> {
        let own: Vec<u64> = self
            .handles
            .lock()
            .iter()
            .map(AnyHandle::interface)
            .collect();
        let gives = |it: &usize| {
            let method = &METHODS[*it];
            own.contains(&method.interface)
                && method
                    .gives
                    .iter()
                    .any(|given| *given == interface || *given == 0)
                && crate::score::is_called(*it)
        };
        let sources: Vec<usize> = (0..METHODS.len()).filter(gives).collect();
        sources.get(random.below(sources.len())).copied()
    }
}

fn number<I: ?Sized + Interface>() -> u64 {
    I::NUMBER
}

/// Whether a foe may keep a handle that `method` gave.
fn may_keep(handle: &AnyHandle, method: &Method) -> bool {
    let (given, by) = (handle.interface(), method.interface);
    let of_others = given == number::<dyn Domain>() && by == number::<dyn DomainControl>();
    // Whoever has such an allocator may say that a device was reset which was not.
    let of_devices = given == number::<dyn Ports>() || given == number::<dyn DmaAllocator>();
    // Started with any limits: what it hoards would be all memory.
    let unlimited = given == number::<dyn Subject>() && by == number::<dyn Image>();
    !(of_others || of_devices || unlimited)
}
