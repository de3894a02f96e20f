//! The golden code at work: it compiles against the real `abi` crate, transfers what it must, and
//! wires entries.

#[path = "../../interfaces/src/entry.rs"]
mod entry;
#[path = "../../interfaces/src/failure.rs"]
mod failure;

#[allow(clippy::all)]
mod generated {
    use crate::*;
    use abi::handle::ObjectOf;

    include!("golden/sample.interfaces.rs");
}

pub use abi::{
    AnyHandle, Exchangeable, Handle, Interface, Plain, RRef, RVec, RpcError, RpcResult, Text,
    Transfer, UserBuf,
};
pub use entry::EntryError;
pub use failure::Failure;
pub use generated::*;

use abi::handle::RawHandle;
use std::cell::Cell;
use std::ptr;

struct Number(u32);

impl Part for Number {
    fn number(&self) -> RpcResult<u32> {
        Ok(self.0)
    }
    fn join(&self, other: Handle<dyn Part>) -> RpcResult<u32> {
        // The first try of whoever passes this on fails.
        match self.0 {
            0 => Err(RpcError::Busy),
            own => Ok(own + other.number()?),
        }
    }
}

fn part(number: u32) -> Handle<dyn Part> {
    Handle::new(Number(number)).expect("the host has memory")
}

thread_local! {
    static WRAPPED: Cell<u32> = const { Cell::new(0) };
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Counts the handles that cross; fails when `LEFT` have crossed.
fn wrap(_: &Transfer, raw: RawHandle, _: u64) -> RpcResult<RawHandle> {
    let left = LEFT.get().checked_sub(1).ok_or(RpcError::NoMemory)?;
    LEFT.set(left);
    WRAPPED.set(WRAPPED.get() + 1);
    Ok(raw)
}

/// How many handles of `value` a transfer reaches.
fn crossing(mut value: impl Exchangeable) -> RpcResult<u32> {
    WRAPPED.set(0);
    let transfer = Transfer {
        from: ptr::null(),
        to: 7,
        wrap,
    };
    // SAFETY: nothing really crosses: `wrap` gives back each handle as it is, and there are no
    // shared objects.
    unsafe { value.transfer(&transfer) }.map(|()| WRAPPED.get())
}

#[test]
fn a_transfer_reaches_every_handle() {
    assert_eq!(crossing(Content::Empty), Ok(0));
    assert_eq!(crossing(Content::Plain(3)), Ok(0));
    let link = part(1).into_any();
    assert_eq!(
        crossing(Content::Linked {
            name: Text::new("x"),
            link
        }),
        Ok(1)
    );
    assert_eq!(crossing([Some(part(1)), None]), Ok(1));
    let error: Result<Handle<dyn Part>, SampleError> = Ok(part(2));
    assert_eq!(crossing(error), Ok(1));
}

#[test]
fn a_transfer_that_fails_says_so_and_leaks_nothing() {
    LEFT.set(1);
    assert_eq!(crossing((part(1), part(2))), Err(RpcError::NoMemory));
    LEFT.set(u32::MAX);
}

#[test]
fn errors_come_from_rpc_errors_and_compare() {
    let failed: SampleError = RpcError::StackLow.into();
    assert_eq!(failed, SampleError::Rpc(RpcError::StackLow));
    assert_ne!(failed, SampleError::Over(1, true));
}

#[test]
fn what_makes_another_instance_worth_a_try_is_marked() {
    assert!(SampleError::Rpc(RpcError::DomainCrashed).is_gone());
    assert!(SampleError::Lost.is_gone());
    assert!(!SampleError::Rpc(RpcError::NoMemory).is_gone());
    assert!(!SampleError::Over(1, true).is_gone());
    assert_eq!(SampleError::gone(), SampleError::Lost);
    assert_eq!(RpcError::gone(), RpcError::DomainCrashed);
}

#[test]
fn a_plain_enum_comes_back_from_its_number() {
    assert_eq!(Phase::ALL, [Phase::Before, Phase::After]);
    assert_eq!(Phase::After.number(), 1);
    assert_eq!(Phase::from_number(1), Some(Phase::After));
    assert_eq!(Phase::from_number(2), None);
}

/// Passes calls on to [`All`] until one fails, twice at most, but for one method of its own.
struct Twice;

impl WholeBase for Twice {
    fn pass<T, E: Failure>(
        &self,
        mut call: impl FnMut(&dyn Whole) -> Result<T, E>,
    ) -> Result<T, E> {
        call(&All).or_else(|_| call(&All))
    }
    fn nothing(&self) -> RpcResult<()> {
        Err(RpcError::Busy)
    }
}

#[test]
fn a_base_passes_on_what_is_not_written() {
    let whole = Handle::<dyn Whole>::new(Twice).expect("the host has memory");
    assert_eq!(whole.nothing(), Err(RpcError::Busy));
    let measure = Measure {
        at: 0,
        address: [0; 6],
        pair: None,
        state: State::Idle,
    };
    assert_eq!(
        whole.plain(measure, State::Busy(7), true),
        Ok(State::Busy(7))
    );
}

/// Passes calls on to a part, and again if that fails.
struct Repeats(Number);

impl PartBase for Repeats {
    fn pass<T>(&self, mut call: impl FnMut(&dyn Part) -> RpcResult<T>) -> RpcResult<T> {
        call(&self.0).or_else(|_| call(&self.0))
    }
}

#[test]
fn what_a_call_moved_is_gone_when_it_is_made_again() {
    let passed_on = |number| {
        let part = Handle::<dyn Part>::new(Repeats(Number(number)));
        part.expect("the host has memory")
    };
    assert_eq!(passed_on(3).join(part(4)), Ok(7));
    assert_eq!(passed_on(0).join(part(4)), Err(RpcError::DomainCrashed));
}

#[test]
fn numbers_are_those_of_the_registry() {
    let number = <dyn Part as Interface>::NUMBER;
    assert_eq!(number, idlc::model::interface_number("Part"));
    assert_ne!(number, <dyn Whole as Interface>::NUMBER);
    assert_eq!(<dyn Part as Interface>::NAME, "Part");
}

/// Takes a whole and offers two parts.
fn many(_: Handle<dyn Whole>) -> RpcResult<[Handle<dyn Part>; 2]> {
    Ok([part(10), part(11)])
}

struct All;

impl Whole for All {
    fn nothing(&self) -> RpcResult<()> {
        Ok(())
    }
    fn plain(&self, _: Measure, state: State, _: bool) -> Result<State, SampleError> {
        Ok(state)
    }
    fn fill(&self, to: &UserBuf<'_>, byte: u8) -> Result<u64, SampleError> {
        Ok(to.write(0, &[byte]) as u64)
    }
    fn work(
        &self,
        _: &RRef<Sample>,
        _: &RVec<Measure>,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), SampleError> {
        Ok((buffer, 0))
    }
    fn link(
        &self,
        _: Handle<dyn Part>,
        _: Option<Handle<dyn Part>>,
        _: Parcel,
        _: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        Err(RpcError::Refused.into())
    }
}

fn whole() -> Option<AnyHandle> {
    Some(
        Handle::<dyn Whole>::new(All)
            .expect("the host has memory")
            .into_any(),
    )
}

#[test]
fn dispatch_gives_grants_and_takes_offers() {
    let mut offers = [None, None, None];
    let done = domains::many::dispatch(&mut [whole()], None, &mut offers, many);
    assert_eq!(done, Ok(()));
    let numbers = offers.map(|it| {
        it.and_then(|it| it.downcast::<dyn Part>().ok())
            .map(|it| it.number())
    });
    assert_eq!(numbers, [Some(Ok(10)), Some(Ok(11)), None]);
}

#[test]
fn dispatch_refuses_what_does_not_fit() {
    let mut offers = [None, None];
    let missing = domains::many::dispatch(&mut [None], None, &mut offers, many);
    assert_eq!(missing, Err(EntryError::Grants));
    let none = domains::many::dispatch(&mut [], None, &mut offers, many);
    assert_eq!(none, Err(EntryError::Grants));
    let wrong = domains::many::dispatch(&mut [Some(part(1).into_any())], None, &mut offers, many);
    assert_eq!(wrong, Err(EntryError::Grants));
    let narrow = domains::many::dispatch(&mut [whole()], None, &mut offers[..1], many);
    assert_eq!(narrow, Err(EntryError::Grants));
    assert!(offers.iter().all(Option::is_none));
}

#[test]
fn dispatch_passes_the_error_of_start_on() {
    let failed = domains::quiet::dispatch(&mut [], None, &mut [], || Err(RpcError::NoMemory));
    assert_eq!(failed, Err(EntryError::Failed(RpcError::NoMemory)));
}

#[test]
fn ports_are_in_the_order_of_the_declaration() {
    let ports: Vec<_> = domains::busy_pci2::PORTS
        .iter()
        .map(|it| (it.name, it.flags))
        .collect();
    let (offer, optional) = (abi::image::PORT_OFFER, abi::image::PORT_OPTIONAL);
    assert_eq!(
        ports,
        [
            ("part", 0),
            ("spare", optional),
            ("whole", offer),
            ("spare", offer | optional)
        ]
    );
    let names: Vec<_> = domains::many::PORTS.iter().map(|it| it.name).collect();
    assert_eq!(names, ["whole", "service0", "service1"]);
}
