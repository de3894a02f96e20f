//! `Tracer` and `CallTrace`: calls with their arguments, for programs inside the system.

use crate::event::paid;
use interfaces::{CallEvent, CallTrace, Handle, RVec, RpcResult, TracedCalls, Tracer};
use isolation::call::count::Tracing;
use isolation::domain::account::Charge;

/// Begins traces.
pub struct KernelTracer;

impl Tracer for KernelTracer {
    fn trace(&self, domain: u32) -> RpcResult<Handle<dyn CallTrace>> {
        let charge = paid()?;
        Handle::new(Trace {
            domain,
            tracing: Tracing::new()?,
            _charge: charge,
        })
    }
}

struct Trace {
    domain: u32,
    tracing: Tracing,
    _charge: Option<Charge>,
}

impl CallTrace for Trace {
    fn read(&self, from: u64, mut buffer: RVec<CallEvent>) -> RpcResult<TracedCalls> {
        let (count, next, lost) = self.tracing.calls(from, self.domain, &mut buffer);
        Ok(TracedCalls {
            events: buffer.truncated(count),
            next,
            lost,
        })
    }
}
