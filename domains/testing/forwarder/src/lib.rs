//! A domain that forwards calls to the next one, as a shadow does when nothing goes wrong: for the
//! benchmark of calls through two proxies (P3), and for calls that are followed step by step. What
//! neither needs is refused.
#![no_std]
#![forbid(unsafe_code)]

use core::hint::black_box;
use interfaces::{
    AddressSpace, AddressSpaces, DmaAllocator, DmaDirection, DmaWindow, Events, Handle, Image,
    Loader, MemoryError, MemoryObjects, Misdeed, Nest, NewEvent, RRef, RVec, Raiser, Random,
    RandomError, RpcError, RpcResult, Subject, Timer, TimerError, Tracer, UserBuf, VmoOwner,
    VmoView, WaitWord,
};

/// The domain's entry.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub fn start(next: Handle<dyn Subject>, _options: RVec<u8>) -> RpcResult<Handle<dyn Subject>> {
    Handle::new(Forwarder(next))
}

struct Forwarder(Handle<dyn Subject>);

impl Subject for Forwarder {
    fn null(&self) -> RpcResult<()> {
        self.0.null()
    }

    fn add(&self, left: u64, right: u64) -> RpcResult<u64> {
        self.0.add(left, right)
    }

    fn bump(&self, object: RRef<[u8; 64]>) -> RpcResult<RRef<[u8; 64]>> {
        self.0.bump(object)
    }

    fn peek(&self, object: &RRef<[u8; 64]>) -> RpcResult<u64> {
        self.0.peek(object)
    }

    #[allow(clippy::too_many_arguments)]
    fn many(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
    ) -> RpcResult<[u64; 4]> {
        self.0.many(a, b, c, d, e, f, g, h)
    }

    fn depth(&self, depth: u64) -> RpcResult<u64> {
        self.0.depth(depth)
    }

    fn misbehave(&self, how: Misdeed) -> RpcResult<u64> {
        // Not as its last call, which would leave no frame of its own on the stack.
        black_box(self.0.misbehave(how))
    }

    fn pass_on(&self, _: Misdeed) -> RpcResult<bool> {
        Err(RpcError::Refused)
    }

    fn keep(&self, _: RRef<[u8; 64]>) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn keep_nest(&self, _: RRef<Nest>) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn make(&self, _: u64) -> RpcResult<RRef<u64>> {
        Err(RpcError::Refused)
    }

    fn make_nest(&self, value: u64) -> RpcResult<RRef<Nest>> {
        self.0.make_nest(value)
    }

    fn lend_on(&self, _: &RRef<[u8; 64]>, _: Misdeed) -> RpcResult<bool> {
        Err(RpcError::Refused)
    }

    fn harm_with(&self, _: &RRef<[u8; 64]>, _: Misdeed) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn follow(&self, _: Option<Handle<dyn Subject>>) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn offspring(&self) -> RpcResult<Handle<dyn Subject>> {
        self.0.offspring()
    }

    fn scratch(&self) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn offspring_alive(&self) -> RpcResult<u32> {
        Err(RpcError::Refused)
    }

    fn threads(&self, _: u32) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn block_until(&self, _: u64) -> RpcResult<bool> {
        Err(RpcError::Refused)
    }

    fn metronome(&self, _: u64, _: RVec<u64>) -> RpcResult<RVec<u64>> {
        Err(RpcError::Refused)
    }

    fn promised(&self, _: u32, _: u64, _: u64, _: bool) -> RpcResult<u32> {
        Err(RpcError::Refused)
    }

    fn forgo(&self) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn keep_time(&self, _: u32, _: bool, _: u64, _: u64, _: u32) -> RpcResult<u32> {
        Err(RpcError::Refused)
    }

    fn grow(&self, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn hoard_device_memory(&self, _: Handle<dyn DmaAllocator>, _: u32) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn hold_pages(
        &self,
        _: Handle<dyn DmaWindow>,
        _: u64,
        _: u64,
        _: u32,
        _: DmaDirection,
    ) -> Result<RVec<u64>, MemoryError> {
        Err(MemoryError::Denied)
    }

    fn fill_object(
        &self,
        _: Handle<dyn MemoryObjects>,
        _: u64,
    ) -> RpcResult<(Handle<dyn VmoOwner>, u64)> {
        Err(RpcError::Refused)
    }

    fn begin_load(&self, _: Handle<dyn VmoOwner>, _: u64, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn await_load(&self, _: Handle<dyn VmoView>, _: u64) -> RpcResult<bool> {
        Err(RpcError::Refused)
    }

    fn adopt(&self, _: Handle<dyn VmoOwner>) -> RpcResult<bool> {
        Err(RpcError::Refused)
    }

    fn tend(&self, _: Handle<dyn VmoOwner>, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn churn(&self, _: Handle<dyn VmoView>, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn make_space(&self, _: Handle<dyn AddressSpaces>) -> RpcResult<Handle<dyn AddressSpace>> {
        Err(RpcError::Refused)
    }

    fn loop_in_ring3(&self, _: Handle<dyn AddressSpaces>) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn crowd_in_ring3(&self, _: Handle<dyn AddressSpaces>, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn random_programs(&self, _: Handle<dyn AddressSpaces>, _: u64, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn fork_often(
        &self,
        _: Handle<dyn AddressSpaces>,
        _: Handle<dyn VmoView>,
        _: u64,
    ) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn fill_user(&self, to: &UserBuf<'_>, seed: u64) -> RpcResult<u64> {
        self.0.fill_user(to, seed)
    }

    fn sum_user(&self, from: &UserBuf<'_>) -> RpcResult<(u64, u64)> {
        self.0.sum_user(from)
    }

    fn harm_with_user(&self, memory: &UserBuf<'_>, how: Misdeed) -> RpcResult<u64> {
        self.0.harm_with_user(memory, how)
    }

    fn lend_user(&self, _: Handle<dyn AddressSpaces>) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn copy_often(
        &self,
        _: Handle<dyn AddressSpaces>,
        _: Handle<dyn VmoView>,
        _: u64,
    ) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn make_event(&self, _: Handle<dyn Events>) -> RpcResult<NewEvent> {
        Err(RpcError::Refused)
    }

    fn raise_often(&self, _: Handle<dyn Raiser>, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn make_timer(
        &self,
        _: Handle<dyn Events>,
        _: Handle<dyn Raiser>,
    ) -> Result<Handle<dyn Timer>, TimerError> {
        Err(TimerError::Rpc(RpcError::Refused))
    }

    fn keep_timers(
        &self,
        _: Handle<dyn Events>,
        _: Handle<dyn Raiser>,
        _: u64,
        _: u64,
        _: Option<u64>,
    ) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn fill_often(
        &self,
        _: Handle<dyn Random>,
        _: RVec<u8>,
        _: u64,
    ) -> Result<RVec<u8>, RandomError> {
        Err(RandomError::Rpc(RpcError::Refused))
    }

    fn await_events(&self, _: Handle<dyn WaitWord>) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn keep_trace(&self, _: Handle<dyn Tracer>, _: u32) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn verify(&self, _: Handle<dyn Loader>, _: RVec<u8>) -> RpcResult<Handle<dyn Image>> {
        Err(RpcError::Refused)
    }

    fn gather(&self, _: u64) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn gather_more(&self, _: u64) -> RpcResult<()> {
        Err(RpcError::Refused)
    }

    fn shed(&self) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }
}
