//! `HeapAudit`: a look at the heaps, in kernels for tests.

use crate::Machine;
use interfaces::{HeapAudit, KernelKeeps, RpcResult, Text};
use isolation::memory::heap::{OBJECTS, PROXIES};

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
}
