//! Gauges that see the loss of a single shared object or handle.
//!
//! Free memory is counted in chunks of the shared heap, which hold thousands of small objects. So
//! the chunks of a size are filled up but for a little room; how many more fit in before there is a
//! new chunk tells exactly how many are there.

use crate::lab::{Lab, say};
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{Handle, Monitor, RRef, RpcResult};

/// Room that is left in the chunks of each size.
const ROOM: usize = 24;
/// More objects than fit into a chunk.
const MOST: usize = 8192;

/// The gauges of what the calls under test own: small and larger objects, and handles.
pub struct Gauges {
    small: Gauge<RRef<[u8; 64]>>,
    large: Gauge<RRef<[u8; 8192]>>,
    handles: Gauge<Handle<dyn Monitor>>,
}

impl Gauges {
    /// Fills the chunks up.
    pub fn new(lab: &Lab) -> Result<Self, String> {
        Ok(Gauges {
            small: Gauge::new(lab, |_| RRef::new([0; 64]))?,
            large: Gauge::new(lab, |_| RRef::new([0; 8192]))?,
            handles: Gauge::new(lab, |lab| lab.monitor.duplicate())?,
        })
    }

    /// How many objects and handles there is room for.
    pub fn room(&self, lab: &Lab) -> Result<usize, String> {
        Ok(self.small.room(lab)? + self.large.room(lab)? + self.handles.room(lab)?)
    }
}

/// A gauge for one size.
struct Gauge<T> {
    make: fn(&Lab) -> RpcResult<T>,
    _hoard: Vec<T>,
}

impl<T> Gauge<T> {
    fn new(lab: &Lab, make: fn(&Lab) -> RpcResult<T>) -> Result<Self, String> {
        // The first one may be the first of all, and have a chunk made for it.
        let first = make(lab).map_err(say)?;
        let mut hoard = fill(lab, make)?;
        hoard.truncate(hoard.len().saturating_sub(ROOM));
        hoard.push(first);
        Ok(Gauge {
            make,
            _hoard: hoard,
        })
    }

    fn room(&self, lab: &Lab) -> Result<usize, String> {
        Ok(fill(lab, self.make)?.len())
    }
}

/// Makes as many as fit without a new chunk.
fn fill<T>(lab: &Lab, make: fn(&Lab) -> RpcResult<T>) -> Result<Vec<T>, String> {
    let before = lab.shared()?;
    let mut all = Vec::new();
    while all.len() < MOST {
        let next = make(lab).map_err(say)?;
        if lab.shared()? > before {
            return Ok(all);
        }
        all.push(next);
    }
    Err("the chunks of the shared heap have no end".into())
}
