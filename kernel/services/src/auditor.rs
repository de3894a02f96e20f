//! `HeapAudit`: a look at the heaps, and an end of memory at a given moment, in kernels for tests.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Machine;
use interfaces::{HeapAudit, KernelKeeps, RpcResult, Text};
use isolation::call::thread::caller_id;
use isolation::memory::heap::{OBJECTS, PROXIES};

/// The domain that there is no memory for from a given question on; 0: none.
static LACKS: AtomicU32 = AtomicU32::new(0);
/// Which question that is, counted from now.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Whether there is to be no memory for whoever asks for some now, in a kernel function that a
/// domain has called.
pub fn lacks_memory() -> bool {
    let meant = LACKS.load(Ordering::SeqCst);
    if meant == 0 || caller_id() != meant {
        return false;
    }
    let one_less = |left: u64| (left > 1).then(|| left - 1);
    let asked = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    asked.is_err()
}

/// Looks at the heaps of shared objects and of handles, and at that of a machine's kernel.
pub struct Auditor<M>(pub M);

impl<M: Machine> HeapAudit for Auditor<M> {
    fn keeps(&self) -> RpcResult<KernelKeeps> {
        Ok(self.0.keeps())
    }

    fn audit(&self) -> RpcResult<Option<Text<160>>> {
        let wrong = [&OBJECTS, &PROXIES].map(|heap| heap.is_sound().err());
        let wrong = wrong.into_iter().flatten().next();
        Ok(wrong.map(|what| Text::new(what.as_str())))
    }

    fn refuse_memory(&self, number: u64) -> RpcResult<()> {
        LACKS.store(0, Ordering::SeqCst);
        LEFT.store(number, Ordering::SeqCst);
        if number > 0 {
            LACKS.store(caller_id(), Ordering::SeqCst);
        }
        Ok(())
    }
}
