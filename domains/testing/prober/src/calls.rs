//! Calls that go right: arguments, results, ownership, wrapping of interfaces in both directions.

use crate::lab::{Lab, say, unlimited};
use crate::{Test, Verdict, ensure};
use interfaces::{
    AddressSpace, AddressSpaces, DmaAllocator, DmaDirection, DmaWindow, Domain, DomainSpec, Events,
    Handle, Image, Loader, MemoryError, MemoryObjects, Misdeed, NewEvent, RRef, RVec, Raiser,
    Random, RandomError, RpcError, RpcResult, Subject, Timer, TimerError, Tracer, UserBuf,
    VmoOwner, VmoView, WaitWord,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("calls-carry-values", values),
    ("calls-move-objects-there-and-back", moves),
    ("calls-lend-objects", lends),
    ("calls-nest", nests),
    ("calls-wrap-interfaces-in-arguments", wraps_arguments),
    ("calls-wrap-interfaces-in-results", wraps_results),
    ("calls-are-counted", counted),
    (
        "calls-do-not-let-the-callee-give-the-thread-away",
        given_away,
    ),
    ("proxies-lead-to-nothing-but-their-object", proxies_differ),
];

fn values(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    victim.subject.null().map_err(say)?;
    ensure!(victim.subject.add(2, 3) == Ok(5), "2 + 3");
    let sums = victim.subject.many(1, 2, 3, 4, 5, 6, 7, 8);
    ensure!(sums == Ok([3, 7, 11, 15]), "{sums:?}");
    victim.end()
}

fn moves(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let own = |count| -> Result<bool, alloc::string::String> {
        Ok(lab.holdings(victim.id)?.objects == count)
    };
    let mut object = RRef::new([7; 64]).map_err(say)?;
    for _ in 0..10 {
        object = victim.subject.bump(object).map_err(say)?;
    }
    ensure!(object[0] == 17, "{}", object[0]);
    ensure!(own(0)?, "the victim still owns what it gave back");
    victim.subject.keep(object).map_err(say)?;
    ensure!(own(1)?, "the victim does not own what it keeps");
    let nest = victim.subject.make_nest(5).map_err(say)?;
    ensure!(own(1)?, "the victim owns parts of a nest that it gave away");
    ensure!(
        *nest.inner == 5 && nest.more[2].as_deref() == Some(&7) && nest.bytes.len() == 100,
        "{nest:?}"
    );
    victim.subject.keep_nest(nest).map_err(say)?;
    ensure!(
        own(1 + 5)?,
        "not all of a nest was moved: {:?}",
        lab.holdings(victim.id)?
    );
    victim.end()
}

fn lends(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let object = RRef::new([9; 64]).map_err(say)?;
    ensure!(victim.subject.peek(&object) == Ok(9), "not what was lent");
    ensure!(
        lab.holdings(victim.id)?.objects == 0,
        "lending moved the object"
    );
    victim.end()
}

fn nests(lab: &Lab) -> Verdict {
    let third = lab.start()?;
    let second = lab.start_before(&third)?;
    let first = lab.start_before(&second)?;
    ensure!(first.subject.depth(2) == Ok(2), "depth 2");
    // A ring: the first is also the third's next. 12 calls deep, each domain four times.
    third
        .subject
        .follow(Some(first.subject.duplicate().map_err(say)?))
        .map_err(say)?;
    let deep = first.subject.depth(12);
    ensure!(deep == Ok(12), "ring: {deep:?}");
    first.end()?;
    second.end()?;
    third.end()
}

/// An object of this very domain, called from a victim.
struct Mine {
    /// A domain to whose group it tries to give the threads that call [`depth`](Subject::depth).
    payer: Option<Handle<dyn Domain>>,
}

impl Subject for Mine {
    fn null(&self) -> RpcResult<()> {
        Ok(())
    }

    fn depth(&self, depth: u64) -> RpcResult<u64> {
        let Some(payer) = &self.payer else {
            return Ok(1000 + depth);
        };
        payer.adopt_thread().map(|()| 1000 + depth)
    }

    fn add(&self, left: u64, _: u64) -> RpcResult<u64> {
        Ok(left)
    }

    fn bump(&self, object: RRef<[u8; 64]>) -> RpcResult<RRef<[u8; 64]>> {
        Ok(object)
    }

    fn peek(&self, _: &RRef<[u8; 64]>) -> RpcResult<u64> {
        Ok(0)
    }

    fn many(
        &self,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
    ) -> RpcResult<[u64; 4]> {
        Ok([0; 4])
    }

    fn misbehave(&self, _: interfaces::Misdeed) -> RpcResult<u64> {
        Ok(0)
    }

    fn pass_on(&self, _: interfaces::Misdeed) -> RpcResult<bool> {
        Ok(false)
    }

    fn keep(&self, _: RRef<[u8; 64]>) -> RpcResult<()> {
        Ok(())
    }

    fn keep_nest(&self, _: RRef<interfaces::Nest>) -> RpcResult<()> {
        Ok(())
    }

    fn make(&self, value: u64) -> RpcResult<RRef<u64>> {
        RRef::new(value)
    }

    fn make_nest(&self, _: u64) -> RpcResult<RRef<interfaces::Nest>> {
        Err(interfaces::RpcError::Refused)
    }

    fn lend_on(&self, _: &RRef<[u8; 64]>, _: interfaces::Misdeed) -> RpcResult<bool> {
        Ok(false)
    }

    fn harm_with(&self, _: &RRef<[u8; 64]>, _: interfaces::Misdeed) -> RpcResult<u64> {
        Ok(0)
    }

    fn follow(&self, _: Option<Handle<dyn Subject>>) -> RpcResult<()> {
        Ok(())
    }

    fn offspring(&self) -> RpcResult<Handle<dyn Subject>> {
        Handle::new(Mine { payer: None })
    }

    fn scratch(&self) -> RpcResult<()> {
        Ok(())
    }

    fn offspring_alive(&self) -> RpcResult<u32> {
        Ok(0)
    }

    fn threads(&self, _: u32) -> RpcResult<()> {
        Ok(())
    }

    fn block_until(&self, _: u64) -> RpcResult<bool> {
        Ok(true)
    }

    fn metronome(&self, _: u64, late: RVec<u64>) -> RpcResult<RVec<u64>> {
        Ok(late)
    }

    fn promised(&self, _: u32, _: u64, _: u64, _: bool) -> RpcResult<u32> {
        Ok(0)
    }

    fn forgo(&self) -> RpcResult<()> {
        Ok(())
    }

    fn keep_time(&self, _: u32, _: bool, _: u64, _: u64, _: u32) -> RpcResult<u32> {
        Ok(0)
    }

    fn grow(&self, _: u64) -> RpcResult<u64> {
        Ok(0)
    }

    fn hoard_device_memory(&self, _: Handle<dyn DmaAllocator>, _: u32) -> RpcResult<u64> {
        Ok(0)
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

    fn fill_user(&self, _: &UserBuf<'_>, _: u64) -> RpcResult<u64> {
        Err(RpcError::Refused)
    }

    fn sum_user(&self, _: &UserBuf<'_>) -> RpcResult<(u64, u64)> {
        Err(RpcError::Refused)
    }

    fn harm_with_user(&self, _: &UserBuf<'_>, _: Misdeed) -> RpcResult<u64> {
        Err(RpcError::Refused)
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
        Ok(())
    }

    fn gather_more(&self, _: u64) -> RpcResult<()> {
        Ok(())
    }

    fn shed(&self) -> RpcResult<u64> {
        Ok(0)
    }
}

fn wraps_arguments(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    victim
        .subject
        .follow(Some(Handle::new(Mine { payer: None }).map_err(say)?))
        .map_err(say)?;
    let depth = victim.subject.depth(5);
    ensure!(depth == Ok(1005), "the victim called back: {depth:?}");
    ensure!(lab.holdings(victim.id)?.handles == 1, "it holds one handle");
    victim.subject.follow(None).map_err(say)?;
    ensure!(
        lab.holdings(victim.id)?.handles == 0,
        "it dropped the handle"
    );
    victim.end()
}

/// Whoever has authority over a domain may give its own threads to the group of that domain, but
/// not the threads on which it is called: their time would be somebody else's.
fn given_away(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        group: 77,
        ..unlimited()
    };
    let payer = lab.start_as(None, spec, b"")?.map_err(say)?;
    let groups = (lab.info(payer.id)?, lab.info(domain_rt::self_id())?);
    let groups = (groups.0.map(|it| it.group), groups.1.map(|it| it.group));
    ensure!(groups.0 != groups.1, "both are of one group: {groups:?}");
    let victim = lab.start()?;
    let domain = payer.domain.duplicate().map_err(say)?;
    let thief = Handle::new(Mine {
        payer: Some(domain),
    });
    victim
        .subject
        .follow(Some(thief.map_err(say)?))
        .map_err(say)?;
    for _ in 0..3 {
        let answer = victim.subject.depth(5);
        ensure!(answer == Err(RpcError::Refused), "{answer:?}");
    }
    victim.end()?;
    payer.end()
}

fn wraps_results(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let child = victim.subject.offspring().map_err(say)?;
    ensure!(child.add(1, 1) == Ok(2), "the child cannot be called");
    victim.end()?;
    ensure!(
        child.add(1, 1).is_err(),
        "the child of a dead domain answers"
    );
    Ok(())
}

fn counted(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let before = lab.info(victim.id)?.map_or(0, |info| info.calls);
    (0..100)
        .try_for_each(|_| victim.subject.null())
        .map_err(say)?;
    let after = lab.info(victim.id)?.map_or(0, |info| info.calls);
    ensure!(after - before == 100, "{before} then {after}");
    victim.end()
}

fn proxies_differ(lab: &Lab) -> Verdict {
    let (one, two) = (lab.start()?, lab.start()?);
    one.subject.grow(1000).map_err(say)?;
    ensure!(
        one.subject.grow(0) == Ok(1000) && two.subject.grow(0) == Ok(0),
        "two instances share their state"
    );
    one.end()?;
    ensure!(
        two.subject.add(1, 2) == Ok(3),
        "the end of one reached the other"
    );
    two.end()
}
