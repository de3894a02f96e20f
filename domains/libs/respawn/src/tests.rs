//! The rule against instances that die, and a starter that has no more of them. On the host.

use crate::{ATTEMPTS, Absent, Client, Live, Patience, Slot, fetch};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use interfaces::{
    Block, BlockError, BlockQueue, Gate, Geometry, Handle, Incarnation, Raiser, Respawn,
    RespawnError, RpcError, RpcResult, Text,
};

/// Time that passes only while a thread waits, for each thread its own.
pub mod clock {
    extern crate std;

    use core::cell::Cell;

    std::thread_local! {
        static NOW: Cell<u64> = const { Cell::new(1) };
    }

    pub fn now() -> u64 {
        NOW.get()
    }

    pub fn sleep(nanoseconds: u64) {
        NOW.set(NOW.get() + nanoseconds);
    }
}

const CRASHED: BlockError = BlockError::Rpc(RpcError::DomainCrashed);

/// What an instance answers each call with.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// As it should: with its number of sectors, which is that of the instance.
    Works,
    /// With this.
    Fails(BlockError),
    /// It offers something else than a device.
    IsNoDevice,
}

use Manner::{Fails, IsNoDevice, Works};

struct Device(u32, Manner);

impl Block for Device {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        match self.1 {
            Fails(error) => Err(error),
            _ => Ok(Geometry {
                sectors: self.0.into(),
                read_only: false,
            }),
        }
    }

    fn open(&self, _: Option<Handle<dyn Raiser>>) -> Result<Handle<dyn BlockQueue>, BlockError> {
        Err(BlockError::Unsupported)
    }
}

struct NoDevice;

impl Gate for NoDevice {
    fn close(&self, _: u64) -> RpcResult<Handle<dyn interfaces::Closed>> {
        Err(RpcError::Refused)
    }
}

/// Has instances 1, 2, ... in these manners, and then nothing but an error.
struct Starter {
    manners: Vec<Manner>,
    afterwards: RespawnError,
    /// The number of the instance that serves.
    serves: AtomicU32,
}

struct Authority(Arc<Starter>);

impl Respawn for Authority {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        let starter = &self.0;
        let serves = starter.serves.load(SeqCst);
        // As `init` does: only the instance that serves is replaced.
        if serves == 0 || serves == failed {
            starter.serves.fetch_add(1, SeqCst);
        }
        let id = starter.serves.load(SeqCst);
        let Some(&manner) = starter.manners.get(id as usize - 1) else {
            starter.serves.store(serves, SeqCst);
            return Err(starter.afterwards);
        };
        let service = match manner {
            IsNoDevice => Handle::<dyn Gate>::new(NoDevice)?.into_any(),
            manner => Handle::<dyn Block>::new(Device(id, manner))?.into_any(),
        };
        Ok(Incarnation { id, service })
    }

    fn attach(&self, _: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}

fn ending_with(
    manners: &[Manner],
    afterwards: RespawnError,
) -> (Arc<Starter>, Handle<dyn Respawn>) {
    let starter = Arc::new(Starter {
        manners: manners.to_vec(),
        afterwards,
        serves: AtomicU32::new(0),
    });
    let authority = Handle::new(Authority(starter.clone()));
    (starter, authority.expect("the host has memory"))
}

fn starter(manners: &[Manner]) -> (Arc<Starter>, Handle<dyn Respawn>) {
    ending_with(manners, RespawnError::GaveUp)
}

fn ask(client: &Client<dyn Block>) -> Result<u64, BlockError> {
    client.call(|device| Ok(device.geometry()?.sectors))
}

/// Both ways to the device, each of its own, asked once: the answers, and how many instances that
/// took.
fn both(manners: &[Manner]) -> (Result<u64, BlockError>, u32) {
    let (started, respawn) = starter(manners);
    let of_client = ask(&Client::new(respawn, "device"));
    let after_client = started.serves.load(SeqCst);
    let (started, respawn) = starter(manners);
    let mut slot = Slot::new(respawn, "device");
    let of_slot = slot.call(
        |_| Ok(()),
        |device: &Handle<dyn Block>| Ok(device.geometry()?.sectors),
    );
    assert_eq!(of_slot, of_client);
    assert_eq!(started.serves.load(SeqCst), after_client);
    (of_client, after_client)
}

#[test]
fn an_instance_that_works_is_kept() {
    let (started, respawn) = starter(&[Works, Works]);
    let client = Client::new(respawn, "device");
    for _ in 0..20 {
        assert_eq!(ask(&client), Ok(1));
    }
    assert_eq!(started.serves.load(SeqCst), 1);
}

#[test]
fn the_call_is_made_again_on_the_next_instance() {
    assert_eq!(both(&[Fails(CRASHED), Works]), (Ok(2), 2));
    // Its domain lives, but the device does not answer any more.
    assert_eq!(both(&[Fails(BlockError::Gone), Works]), (Ok(2), 2));
}

#[test]
fn the_last_attempt_counts() {
    let mut manners = vec![Fails(CRASHED); ATTEMPTS as usize - 1];
    manners.push(Works);
    assert_eq!(both(&manners), (Ok(ATTEMPTS.into()), ATTEMPTS));
}

#[test]
fn a_call_that_kills_each_instance_ends() {
    let manners = vec![Fails(CRASHED); 3 * ATTEMPTS as usize];
    assert_eq!(both(&manners), (Err(BlockError::Gone), ATTEMPTS));
}

#[test]
fn other_errors_are_answers() {
    for error in [
        BlockError::Device,
        BlockError::Unsupported,
        BlockError::Rpc(RpcError::NoMemory),
        BlockError::Rpc(RpcError::StackLow),
        BlockError::Rpc(RpcError::Interrupted),
        BlockError::Rpc(RpcError::Refused),
        BlockError::Rpc(RpcError::Busy),
    ] {
        assert_eq!(both(&[Fails(error), Works]), (Err(error), 1));
    }
}

#[test]
fn an_error_of_an_instance_that_died_meanwhile_is_no_answer() {
    let (started, respawn) = starter(&[Fails(BlockError::Device), Works]);
    let client: Client<dyn Block> = Client::new(respawn, "device");
    let is_dead = |_: &Handle<dyn Block>| started.serves.load(SeqCst) == 1;
    let answer = client.call_checked(
        |device| Ok::<_, BlockError>(device.geometry()?.sectors),
        is_dead,
    );
    assert_eq!(answer, Ok(2));
}

#[test]
fn no_instance_is_an_error_of_the_interface() {
    let cases = [
        (RespawnError::GaveUp, BlockError::Gone),
        (
            RespawnError::CannotStart(Text::new("no disk")),
            BlockError::Gone,
        ),
        (RespawnError::Rpc(RpcError::DomainCrashed), BlockError::Gone),
        // These say more, and another try may go through.
        (
            RespawnError::Rpc(RpcError::NoMemory),
            BlockError::Rpc(RpcError::NoMemory),
        ),
        (
            RespawnError::Rpc(RpcError::Interrupted),
            BlockError::Rpc(RpcError::Interrupted),
        ),
    ];
    for (why, expected) in cases {
        let (_, respawn) = ending_with(&[Fails(CRASHED)], why);
        assert_eq!(ask(&Client::new(respawn, "device")), Err(expected));
    }
}

#[test]
fn one_that_is_gone_for_ever_is_asked_for_at_each_call() {
    let (_, respawn) = starter(&[]);
    let client = Client::new(respawn, "device");
    assert_eq!(ask(&client), Err(BlockError::Gone));
    assert_eq!(ask(&client), Err(BlockError::Gone));
}

#[test]
fn what_offers_something_else_is_not_used() {
    assert_eq!(both(&[IsNoDevice, Works]).0, Err(BlockError::Gone));
    let (_, respawn) = starter(&[IsNoDevice]);
    let found: Result<Live<dyn Block>, Absent<BlockError>> = fetch(&respawn, 0, |_| Ok(()));
    assert_eq!(found.err(), Some(Absent::OtherInterface));
}

#[test]
fn a_call_that_must_not_be_repeated_is_made_once() {
    let (started, respawn) = starter(&[Fails(CRASHED), Works]);
    let client: Client<dyn Block> = Client::new(respawn, "device");
    let mut calls = 0;
    let answer = client.call_once(|device| {
        calls += 1;
        device.geometry()
    });
    assert_eq!((answer.err(), calls), (Some(CRASHED), 1));
    // The next one is there already, also for who asks for any.
    assert_eq!(started.serves.load(SeqCst), 2);
    assert_eq!(
        client
            .call_once(|device| device.geometry())
            .map(|it| it.sectors),
        Ok(2)
    );
}

#[test]
fn an_instance_that_dies_while_it_is_set_up_is_replaced() {
    let (_, respawn) = starter(&[Works, Works, Works]);
    let set_up = |device: &Handle<dyn Block>| match device.geometry() {
        Ok(Geometry { sectors: 3, .. }) => Ok(()),
        _ => Err(RpcError::DomainCrashed),
    };
    assert_eq!(ask(&Client::with_set_up(respawn, "device", set_up)), Ok(3));
    let (_, respawn) = starter(&[Works, Works]);
    let refuses = |_: &Handle<dyn Block>| Err(RpcError::Refused);
    let client = Client::with_set_up(respawn, "device", refuses);
    assert_eq!(ask(&client), Err(BlockError::Rpc(RpcError::Refused)));
}

#[test]
fn a_greeting_says_what_is_needed_of_an_instance() {
    let (_, respawn) = starter(&[Fails(CRASHED), Works]);
    let greet = |device: &Handle<dyn Block>| device.geometry();
    let live = fetch(&respawn, 0, greet).expect("the second answers");
    assert_eq!((live.id, live.greeting.sectors), (2, 2));
    let (_, respawn) = starter(&[Fails(BlockError::Device)]);
    let found = fetch(&respawn, 0, greet).err();
    assert_eq!(found, Some(Absent::Greeting(BlockError::Device)));
    let (_, respawn) = starter(&[Fails(CRASHED); 100]);
    assert_eq!(fetch(&respawn, 0, greet).err(), Some(Absent::KeepsDying));
}

#[test]
fn only_the_instance_that_failed_is_replaced() {
    // One of two callers reports the death of the first; the other comes late with the same report.
    let (started, respawn) = starter(&[Works, Works, Works]);
    let client: Client<dyn Block> = Client::new(respawn, "device");
    let id = |failed| client.live::<BlockError>(failed).map(|live| live.id);
    assert_eq!(id(0), Ok(1));
    assert_eq!(id(1), Ok(2));
    assert_eq!(id(1), Ok(2));
    assert_eq!(started.serves.load(SeqCst), 2);
    client.forget();
    assert_eq!(id(0), Ok(2));
}

/// Starts one instance, refuses so many times, and starts another one.
struct Refusing {
    refusals: u32,
    why: RespawnError,
    asked: Arc<AtomicU32>,
}

impl Respawn for Refusing {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        let asked = self.asked.fetch_add(1, SeqCst);
        if failed != 0 && asked <= self.refusals {
            return Err(self.why);
        }
        let id = failed + 1;
        let manner = if id == 1 { Fails(CRASHED) } else { Works };
        let service = Handle::<dyn Block>::new(Device(id, manner))?.into_any();
        Ok(Incarnation { id, service })
    }

    fn attach(&self, _: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}

/// What a client of such a domain is told, and how often that was asked for.
fn refused(refusals: u32, why: RespawnError) -> (Result<u64, BlockError>, u32) {
    let asked = Arc::new(AtomicU32::new(0));
    let authority = Handle::<dyn Respawn>::new(Refusing {
        refusals,
        why,
        asked: asked.clone(),
    });
    let client = Client::new(authority.expect("the host has memory"), "device");
    let answer = ask(&client);
    (answer, asked.load(SeqCst))
}

#[test]
fn what_has_served_and_is_refused_is_waited_for() {
    let refusal = RespawnError::CannotStart(Text::new("its disk is not there yet"));
    // Many more than a call has attempts: `init` refuses at once for a second.
    assert_eq!(refused(3 * ATTEMPTS, refusal), (Ok(2), 3 * ATTEMPTS + 2));
    let interrupted = RespawnError::Rpc(RpcError::Interrupted);
    assert_eq!(refused(2, interrupted), (Ok(2), 4));
}

#[test]
fn what_stays_refused_is_given_up() {
    let refusal = RespawnError::CannotStart(Text::new("no disk"));
    let (answer, asked) = refused(u32::MAX - 1, refusal);
    assert_eq!(answer, Err(BlockError::Gone));
    assert!(asked > 3 * ATTEMPTS);
    // What does not pass is told at once.
    let gave_up = (Err(BlockError::Gone), 2);
    assert_eq!(refused(u32::MAX - 1, RespawnError::GaveUp), gave_up);
    let interrupted = RespawnError::Rpc(RpcError::Interrupted);
    let (answer, asked) = refused(u32::MAX - 1, interrupted);
    assert_eq!(answer, Err(BlockError::Rpc(RpcError::Interrupted)));
    assert!(asked < 3 * ATTEMPTS);
}

#[test]
fn patience_begins_with_the_first_refusal_and_ends_once() {
    let patience = Patience::default();
    let asked = AtomicU32::new(0);
    let refuse = || {
        asked.fetch_add(1, SeqCst);
        Err::<(), Absent<BlockError>>(Absent::CannotStart(Text::new("no disk")))
    };
    assert!(patience.wait(refuse).is_err());
    let first = asked.swap(0, SeqCst);
    assert!(first > ATTEMPTS);
    // Others who ask for it do not wait for as long again.
    assert!(patience.wait(refuse).is_err());
    assert_eq!(asked.swap(0, SeqCst), 1);
    let found = patience.wait(|| Ok::<(), Absent<BlockError>>(()));
    assert_eq!(found, Ok(()));
    assert!(patience.wait(refuse).is_err());
    assert_eq!(asked.load(SeqCst), first);
}

#[test]
fn a_slot_asks_for_the_next_after_it_gave_one_up() {
    let (started, respawn) = starter(&[Works, Works]);
    let mut slot: Slot<dyn Block> = Slot::new(respawn, "device");
    let sectors = |slot: &mut Slot<dyn Block>| {
        let device = slot.service::<BlockError>(|_| Ok(()))?;
        device.geometry().map(|it| it.sectors)
    };
    assert_eq!(sectors(&mut slot), Ok(1));
    slot.give_up();
    assert_eq!(sectors(&mut slot), Ok(2));
    slot.give_up();
    assert_eq!(sectors(&mut slot), Err(BlockError::Gone));
    assert_eq!(started.serves.load(SeqCst), 2);
}
