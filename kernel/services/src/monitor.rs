//! `Domain`, `DomainControl` and `Monitor`: watching domains and ending them.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use interfaces::{
    CallCount, CallSample, CopiedBytes, Counting, CrashReason, Domain, DomainControl, DomainEvent,
    DomainInfo, Handle, Holdings, MemoryInfo, Monitor, RVec, RpcResult, Text, TimeInfo,
};
use isolation::Reason;
use isolation::call::{count, handle};
use isolation::death::kill;
use isolation::domain::budget;
use isolation::domain::group::Group;
use isolation::domain::{self, ControlBlock, Ended};
use isolation::memory::heap::{OBJECTS, PROXIES};

/// What the monitor shows of the machine.
pub trait Machine: Send + Sync + 'static {
    /// Bytes of memory: all, free.
    fn memory(&self) -> (u64, u64);
    /// Text of the log from position `from` on into `buffer`; the position behind it and how many
    /// bytes.
    fn log(&self, from: u64, buffer: &mut [u8]) -> (u64, usize);
    /// Bytes that were copied since boot: between pages and programs, pages and domains, programs
    /// and domains. Nobody counts where there are no programs.
    fn copied(&self) -> [u64; 3] {
        [0; 3]
    }
    /// Processors in use.
    fn processors(&self) -> u32;
    /// Nanoseconds since boot, and how long all processors together have run threads since then.
    fn time(&self) -> (u64, u64);
    /// Nanoseconds that the living thread with this number has been on a processor so far.
    fn thread_ns(&self, id: u64) -> Option<u64>;
    /// What the kernel keeps of memory; nothing where it has none of its own.
    #[cfg(feature = "audit")]
    fn keeps(&self) -> interfaces::KernelKeeps {
        interfaces::KernelKeeps {
            pages: 0,
            bytes: 0,
            tables: 0,
        }
    }
}

/// Authority over one instance.
pub(crate) struct DomainObject(pub(crate) Arc<ControlBlock>);

fn info(block: &ControlBlock) -> DomainInfo {
    let group = block.group().map(|group| &**group);
    DomainInfo {
        stack_bytes: block.stack_bytes() as u64,
        note_bytes: block.note_bytes() as u64,
        dma_bytes: block.dma_bytes() as u64,
        object_bytes: block.object_bytes() as u64,
        heap_limit: block.heap_limit() as u64,
        shared_limit: block.shared_limit() as u64,
        group: group.map_or(0, |group| group.id),
        group_bytes: group.map_or(0, Group::memory_used) as u64,
        group_limit: group.map_or(0, Group::memory_limit) as u64,
        group_threads: group.map_or(0, Group::threads_used) as u32,
        group_thread_limit: group.map_or(0, Group::threads_limit) as u32,
        group_weight: group.map_or(0, |group| group.weight),
        group_ns: group.map_or(0, Group::time_used),
        thread_limit: block.thread_limit(),
        id: block.id,
        parent: block.parent,
        name: block.name(),
        state: block.state(),
        reason: block.reason(),
        heap_bytes: block.heap_bytes() as u64,
        image_bytes: block.image_bytes() as u64,
        threads: block.counters.threads.load(Ordering::Relaxed),
        calls: block.calls(),
        own_ns: block.own_ns(),
        threads_ns: block.threads_ns(),
    }
}

impl Domain for DomainObject {
    fn info(&self) -> RpcResult<DomainInfo> {
        Ok(info(&self.0))
    }

    fn kill(&self) -> RpcResult<()> {
        kill::kill(&self.0, Reason::Killed);
        Ok(())
    }

    fn crash_next_call(&self) -> RpcResult<()> {
        // It crashes, or has done so: the caller wants no more.
        let _ = kill::ask_to_crash(&self.0);
        Ok(())
    }

    fn wait(&self) -> RpcResult<CrashReason> {
        self.0.wait_gone()
    }

    fn adopt_thread(&self) -> RpcResult<()> {
        isolation::call::thread::give_to(&self.0)
    }

    fn wait_until(&self, deadline: u64) -> RpcResult<bool> {
        Ok(self.0.wait_gone_until(deadline)? == Ended::Gone)
    }
}

/// Authority over every domain.
pub struct Control;

impl DomainControl for Control {
    fn domain(&self, id: u32) -> RpcResult<Option<Handle<dyn Domain>>> {
        domain::find(id)
            .map(|block| Handle::new(DomainObject(block)))
            .transpose()
    }
}

/// A view of all domains.
pub struct KernelMonitor<M>(pub M);

impl<M: Machine> Monitor for KernelMonitor<M> {
    fn holdings(&self, id: u32) -> RpcResult<Holdings> {
        let (objects, handles, bytes) = match domain::find(id) {
            Some(block) => (
                OBJECTS.count_of(block.owner()),
                handle::count_of(block.owner()),
                budget::count(&block),
            ),
            None => (0, 0, 0),
        };
        Ok(Holdings {
            objects: objects as u32,
            handles: handles as u32,
            bytes: bytes as u64,
        })
    }

    fn next(&self, from: u32) -> RpcResult<Option<DomainInfo>> {
        Ok(domain::next(from).map(|block| info(&block)))
    }

    fn holds(&self, id: u32, index: u32) -> RpcResult<Option<(Text<32>, Text<32>)>> {
        let block = domain::find(id);
        let held = block.and_then(|block| handle::held(block.owner(), index as usize));
        Ok(held.map(|(interface, server)| (Text::new(interface), server)))
    }

    fn event(&self, after: u64) -> RpcResult<DomainEvent> {
        let event = domain::wait_event(after)?;
        Ok(DomainEvent {
            number: event.number,
            id: event.id,
            name: event.name,
            state: event.state,
            reason: event.reason,
        })
    }

    fn memory(&self) -> RpcResult<MemoryInfo> {
        let (total, free) = self.0.memory();
        let spare = (OBJECTS.spare_bytes() + PROXIES.spare_bytes()) as u64;
        Ok(MemoryInfo {
            total,
            free: free + spare,
            shared: (OBJECTS.bytes() + PROXIES.bytes()) as u64 - spare,
        })
    }

    fn log(&self, from: u64, mut buffer: RVec<u8>) -> RpcResult<(RVec<u8>, u64)> {
        let (next, count) = self.0.log(from, &mut buffer);
        Ok((buffer.truncated(count), next))
    }

    fn copied(&self) -> RpcResult<CopiedBytes> {
        let [direct, pages, programs] = self.0.copied();
        Ok(CopiedBytes {
            direct,
            pages,
            programs,
        })
    }

    fn processors(&self) -> RpcResult<u32> {
        Ok(self.0.processors())
    }

    fn time(&self) -> RpcResult<TimeInfo> {
        let (kernel, gone) = domain::other_ns();
        let (since_boot, busy) = self.0.time();
        Ok(TimeInfo {
            since_boot,
            busy,
            kernel,
            gone,
        })
    }

    fn count_calls(&self, how: Counting) -> RpcResult<()> {
        count::set(how)
    }

    fn call_count(&self, from: u32) -> RpcResult<Option<CallCount>> {
        Ok(count::counted(from as usize))
    }

    fn call_sample(&self, from: u64) -> RpcResult<Option<CallSample>> {
        Ok(count::met(from))
    }

    fn thread_time(&self, id: u64) -> RpcResult<Option<u64>> {
        Ok(self.0.thread_ns(id))
    }
}
