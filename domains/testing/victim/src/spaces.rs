//! Address spaces that are made, written to and forked without an end, and a program in one.

use alloc::sync::Arc;
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::thread;
use domain_rt::user::{self, UserEvent, UserRegisters};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, Protection, RVec, RpcError, RpcResult, SpaceError,
    UserThread, VmoView,
};

const PAGE: u64 = 4096;
/// Where pages of the object are, where pages of it that are copied, and where pages of zeros.
const SHARED: u64 = 0x40_0000;
const PRIVATE: u64 = 0x5000_0000;
const ZEROS: u64 = 0x7f00_0000_0000;

const WRITE: Protection = Protection {
    read: true,
    write: true,
    execute: false,
};

type Space = Handle<dyn AddressSpace>;

/// Why a round ended early.
enum Broken {
    /// A page holds what it must not.
    Wrong(u64),
    /// Something could not be done, for want of memory for instance.
    Error,
}

impl From<SpaceError> for Broken {
    fn from(_: SpaceError) -> Self {
        Broken::Error
    }
}

impl From<RpcError> for Broken {
    fn from(_: RpcError) -> Self {
        Broken::Error
    }
}

/// Does it until a page holds what it must not; which.
pub fn fork_often(
    spaces: &Handle<dyn AddressSpaces>,
    object: &Handle<dyn VmoView>,
    seed: u64,
) -> RpcResult<u64> {
    let mut random = seed;
    loop {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if let Err(Broken::Wrong(page)) = round(spaces, object, random >> 33) {
            return Ok(page);
        }
    }
}

/// One family of spaces.
fn round(
    spaces: &Handle<dyn AddressSpaces>,
    object: &Handle<dyn VmoView>,
    seed: u64,
) -> Result<(), Broken> {
    let count = object.limit()?;
    let parent = spaces.create()?;
    parent.map(SHARED, object.duplicate()?, 0, count, WRITE)?;
    parent.map_private(PRIVATE, object.duplicate()?, 0, count, WRITE)?;
    parent.map_zero(ZEROS, count, WRITE)?;
    let pages = [seed % count, (seed + 7) % count, (seed + 64) % count];
    for page in pages {
        is_an_objects(&parent, SHARED + page * PAGE, page)?;
        put(&parent, SHARED + page * PAGE, crate::objects::canary(page))?;
        is_an_objects(&parent, PRIVATE + page * PAGE, page)?;
        is(&parent, ZEROS + page * PAGE, 0)?;
        put_own(&parent, page, seed)?;
    }
    let child = spaces.create()?;
    let mut next = Some(0);
    while let Some(from) = next {
        next = parent.fork(child.duplicate()?, from)?;
    }
    for page in pages {
        put_own(&child, page, !seed)?;
        own_is(&parent, page, seed)?;
    }
    parent.unmap(PRIVATE, count)?;
    drop(parent);
    pages
        .into_iter()
        .try_for_each(|page| own_is(&child, page, !seed))
}

/// Writes to the pages of the space's own.
fn put_own(space: &Space, page: u64, value: u64) -> Result<(), Broken> {
    put(space, PRIVATE + page * PAGE, value.to_le_bytes())?;
    put(space, ZEROS + page * PAGE, value.to_le_bytes())
}

fn own_is(space: &Space, page: u64, value: u64) -> Result<(), Broken> {
    is(space, PRIVATE + page * PAGE, value)?;
    is(space, ZEROS + page * PAGE, value)
}

fn is(space: &Space, at: u64, value: u64) -> Result<(), Broken> {
    match get(space, at)? == value.to_le_bytes() {
        true => Ok(()),
        false => Err(Broken::Wrong(at / PAGE)),
    }
}

/// A page of the object holds what somebody writes to this one, or a mix of that and zeros.
fn is_an_objects(space: &Space, at: u64, page: u64) -> Result<(), Broken> {
    let seen = get(space, at)?;
    let mut both = seen.into_iter().zip(crate::objects::canary(page));
    match both.all(|(seen, right)| seen == 0 || seen == right) {
        true => Ok(()),
        false => Err(Broken::Wrong(page)),
    }
}

fn get(space: &Space, at: u64) -> Result<[u8; 8], Broken> {
    space.touch(at, false)?;
    let (bytes, count) = space.read(at, RVec::filled(0xaa, 8)?)?;
    match count {
        8 => Ok(bytes[..8].try_into().unwrap_or_default()),
        _ => Err(Broken::Error),
    }
}

fn put(space: &Space, at: u64, value: [u8; 8]) -> Result<(), Broken> {
    space.touch(at, true)?;
    let count = space.write(at, &RVec::from_slice(&value)?)?;
    (count == 8).then_some(()).ok_or(Broken::Error)
}

/// A space with a program that loops for ever.
fn looping(spaces: &Handle<dyn AddressSpaces>) -> Result<Space, SpaceError> {
    let space = spaces.create()?;
    space.map_zero(SHARED, 1, WRITE)?;
    space.touch(SHARED, true)?;
    // jmp to itself
    user::write(&space, SHARED, &[0xeb, 0xfe]);
    let execute = Protection {
        write: false,
        execute: true,
        ..WRITE
    };
    space.protect(SHARED, 1, execute)?;
    Ok(space)
}

/// Runs such a program in a thread of its own.
fn run_loop(thread: &Handle<dyn UserThread>) -> UserEvent {
    let mut registers = UserRegisters {
        rip: SHARED,
        ..UserRegisters::default()
    };
    user::run(thread, &mut registers)
}

/// Runs a program that loops for ever; returns if it does not.
pub fn loop_in_ring3(spaces: &Handle<dyn AddressSpaces>) -> RpcResult<()> {
    let rpc = |_| RpcError::Refused;
    let space = looping(spaces).map_err(rpc)?;
    let thread = space.thread().map_err(rpc)?;
    match run_loop(&thread) {
        UserEvent::Refused => Err(RpcError::Refused),
        _ => Ok(()),
    }
}

/// Starts threads of which every second one runs such a program, and the others wait for what never
/// comes; how many could be started.
pub fn crowd_in_ring3(spaces: &Handle<dyn AddressSpaces>, threads: u64) -> RpcResult<u64> {
    let space = looping(spaces).map_err(|_| RpcError::Refused)?;
    let never = Arc::new((Mutex::new(()), Condvar::new()));
    for number in 0..threads {
        let started = match number % 2 {
            0 => {
                let program = space.thread().map_err(|_| RpcError::Refused)?;
                thread::spawn("loops", move || {
                    run_loop(&program);
                })
            }
            _ => {
                let never = never.clone();
                thread::spawn("waits", move || {
                    loop {
                        let guard = never.0.lock();
                        drop(never.1.wait(guard));
                    }
                })
            }
        };
        if started.is_err() {
            return Ok(number);
        }
    }
    Ok(threads)
}
