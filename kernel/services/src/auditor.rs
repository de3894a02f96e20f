//! `HeapAudit`: a look at the heaps, in kernels for tests.

use interfaces::{HeapAudit, RpcResult, Text};
use isolation::memory::heap::{OBJECTS, PROXIES};

/// Looks at the heaps of shared objects and of handles.
pub struct Auditor;

impl HeapAudit for Auditor {
    fn audit(&self) -> RpcResult<Option<Text<160>>> {
        let wrong = [&OBJECTS, &PROXIES].map(|heap| heap.is_sound().err());
        let wrong = wrong.into_iter().flatten().next();
        Ok(wrong.map(|what| Text::new(what.as_str())))
    }
}
