//! Events and words: `Events`, `Event`, `Raiser` and `WaitWord`.
//!
//! The protocol is that of `lib/system/events`; here are the locks and waits of the kernel, who
//! pays, and the handles. Others in the kernel raise the events of domains by [`raiser`].

use crate::timer;
use ::events::{Kit, Locked, NotBound, Slept, Waiter, WordOwner};
use abi::RpcResult;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use interfaces::{
    BindError, Event, Events, Fired, Handle, NewEvent, RVec, Raised, RpcError, TimerError,
};
use isolation::ControlBlock;
use isolation::call::handle::kernel_object;
use isolation::call::thread::caller;
use isolation::domain::account::{Charge, Kind};
use isolation::lock::Lock;
use isolation::platform::{self, WaitResult, platform};

/// What an event, a word or a timer is charged with, in bytes.
const OBJECT_BYTES: usize = 256;
/// The most events that one wait tells.
const MOST_TOLD: usize = 4096;

/// The locks and waits of the kernel, and its payers; `None`: the kernel itself.
pub struct Kernel;

/// The right to raise an event, in the kernel.
pub type Raiser = ::events::Raiser<Kernel>;

/// The kernel's lock.
pub struct Guarded<T>(Lock<T>);

/// A word that threads wait for.
pub struct Rings(AtomicU32);

impl Kit for Kernel {
    type Lock<T: Send> = Guarded<T>;
    type Bell = Rings;
    type Payment = Option<Charge>;
}

impl<T: Send> Locked<T> for Guarded<T> {
    fn new(value: T) -> Self {
        Guarded(Lock::new(value))
    }
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.lock())
    }
}

impl ::events::Bell for Rings {
    fn new() -> Self {
        Rings(AtomicU32::new(0))
    }
    fn rings(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
    fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        self.wake_another();
    }
    fn wake_another(&self) {
        platform().wake(&self.0, 1);
    }
    fn wait(&self, seen: u32, deadline: Option<u64>) -> Slept {
        match platform::wait(&self.0, seen, deadline) {
            WaitResult::Interrupted => Slept::Interrupted,
            WaitResult::TimedOut => Slept::TimedOut,
            WaitResult::Woken | WaitResult::Mismatch => Slept::Woken,
        }
    }
}

/// Has `payer` pay for `bytes` bytes; `None` if a limit or the machine does not let it.
fn pay(payer: Option<&Arc<ControlBlock>>, bytes: usize) -> Option<Option<Charge>> {
    if !platform().can_note() {
        return None;
    }
    match payer {
        None => Some(None),
        Some(payer) => Charge::new(payer.clone(), Kind::Notes, bytes).map(Some),
    }
}

/// Has the caller pay for an object.
pub(crate) fn paid() -> RpcResult<Option<Charge>> {
    pay(caller().as_ref(), OBJECT_BYTES).ok_or(RpcError::NoMemory)
}

/// The right to raise an event that some domain was given; `None`: the handle leads to no event of
/// the kernel's.
pub fn raiser(handle: &Handle<dyn interfaces::Raiser>) -> Option<Arc<Raiser>> {
    kernel_object::<_, RaiserObject>(handle).map(|object| object.0.clone())
}

/// Makes events and words.
pub struct KernelEvents;

impl Events for KernelEvents {
    fn event(&self) -> RpcResult<NewEvent> {
        let (raiser, waiter) = ::events::event::<Kernel>(paid()?);
        Ok(NewEvent {
            raiser: Handle::new(RaiserObject(Arc::new(raiser)))?,
            event: Handle::new(EventObject(waiter))?,
        })
    }

    fn word(&self) -> RpcResult<Handle<dyn interfaces::WaitWord>> {
        let owner = WordOwner::new(paid()?);
        let payer = caller();
        Handle::new(WordObject { owner, payer })
    }

    fn timer(
        &self,
        raiser: Handle<dyn interfaces::Raiser>,
    ) -> Result<Handle<dyn interfaces::Timer>, TimerError> {
        timer::make(&raiser)
    }
}

struct RaiserObject(Arc<Raiser>);

impl interfaces::Raiser for RaiserObject {
    fn raise(&self) -> RpcResult<()> {
        self.0.raise();
        Ok(())
    }
}

struct EventObject(Waiter<Kernel>);

impl Event for EventObject {
    fn bind(&self, word: Handle<dyn interfaces::WaitWord>, tag: u64) -> Result<(), BindError> {
        let object = kernel_object::<_, WordObject>(&word).ok_or(BindError::NoWord)?;
        let pay = |bytes| pay(object.payer.as_ref(), bytes);
        let bound = self.0.bind(object.owner.word(), tag, &pay);
        bound.map_err(|why| match why {
            NotBound::Bound => BindError::Bound,
            NotBound::Full => BindError::Full,
            NotBound::Closed => BindError::NoWord,
            NotBound::NoMemory => BindError::Rpc(RpcError::NoMemory),
        })
    }

    fn unbind(&self) -> RpcResult<bool> {
        Ok(self.0.unbind())
    }

    fn take(&self) -> RpcResult<Raised> {
        let ::events::Raised { count, ended } = self.0.take();
        Ok(Raised { count, ended })
    }
}

struct WordObject {
    owner: WordOwner<Kernel>,
    /// Who pays for what events take in it.
    payer: Option<Arc<ControlBlock>>,
}

impl interfaces::WaitWord for WordObject {
    fn wait(&self, deadline: Option<u64>, mut fired: RVec<Fired>) -> RpcResult<RVec<Fired>> {
        let room = fired.len().min(MOST_TOLD);
        let mut places = fired.iter_mut();
        let mut put = |told: ::events::Fired| {
            if let Some(place) = places.next() {
                *place = Fired {
                    tag: told.tag,
                    count: told.raised.count,
                    ended: told.raised.ended,
                };
            }
        };
        let count = self.owner.word().wait(deadline, room, &mut put);
        let count = count.ok_or(RpcError::Interrupted)?;
        Ok(fired.truncated(count))
    }
}
