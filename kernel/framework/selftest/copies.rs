//! Tests of copies to and from programs: where the program's page table is loaded, and where it is
//! not.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Test;
use super::threads::{alongside, eventually};
use super::user::{CODE, STACK, STACK_TOP, hello_and_loop, run, space};
use crate::arch::regs::{RFLAGS_AC, flags};
use crate::check;
use crate::mem::{self, PAGE_SIZE, spaces};
use crate::sync::IrqOff;
use crate::user::{USER_END, UserEvent, UserProt, VmError, VmSpace};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("user-copies-of-all-lengths", lengths),
    ("user-copies-stop-where-the-program-would", stops),
    ("user-copies-reach-no-kernel-memory", ends),
    ("user-copies-end-with-the-right-to-write", revoked),
    ("user-words-are-exchanged", words),
];

/// What `act` gives with the table of `space` loaded, and interrupts off, so that it stays so.
fn loaded<T>(space: &VmSpace, act: impl FnOnce() -> T) -> Result<T, String> {
    for _ in 0..1000 {
        let (mut hello, _) = hello_and_loop();
        let event = run(&mut hello, space);
        check!(event == UserEvent::Syscall, "{event:?}");
        let _irq = IrqOff::new();
        if spaces::is_loaded(space.table_address()) {
            let done = act();
            check!(flags() & RFLAGS_AC == 0, "SMAP is off after it");
            return Ok(done);
        }
    }
    Err(String::from("the table is never loaded"))
}

/// What `act` gives with another table loaded.
fn unloaded<T>(space: &VmSpace, act: impl FnOnce() -> T) -> T {
    let _irq = IrqOff::new();
    spaces::leave(space.table_address());
    act()
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|at| ((at + seed) * 31 % 251 + 1) as u8)
        .collect()
}

/// What goes one way in comes out the other way, and nothing beside it changes.
fn lengths() -> Result<(), String> {
    let space = space()?;
    let all = space.map_zero(STACK_TOP, 1, UserProt::READ_WRITE);
    check!(all == Ok(1), "{all:?}");
    let around = |at: usize| at - 8..at + 64;
    for length in 0..40 {
        for at in [STACK + 64, STACK + 67, STACK_TOP - 20] {
            let at = at + length % 3;
            let (here, there) = (pattern(length, at), pattern(length, at + 7));
            let before = pattern(72, 3);
            for (bytes, is_here) in [(&here, true), (&there, false)] {
                let filled = unloaded(&space, || space.write(around(at).start, &before));
                check!(filled == Ok(()), "{filled:?}");
                let written = match is_here {
                    true => loaded(&space, || space.write(at, bytes))?,
                    false => unloaded(&space, || space.write(at, bytes)),
                };
                check!(written == Ok(()), "{length} bytes at {at:x}: {written:?}");
                let mut seen = [0; 72];
                let read = match is_here {
                    true => unloaded(&space, || space.read(around(at).start, &mut seen)),
                    false => loaded(&space, || space.read(around(at).start, &mut seen))?,
                };
                check!(read == Ok(()), "{read:?}");
                let mut right = before.clone();
                right[8..8 + length].copy_from_slice(bytes);
                check!(seen[..] == right[..], "{length} bytes at {at:x}: {seen:?}");
            }
        }
    }
    Ok(())
}

/// Both ways stop at the same byte, for the same reason.
fn stops() -> Result<(), String> {
    let space = space()?;
    let data = pattern(3 * PAGE_SIZE, 1);
    let both = |act: &dyn Fn() -> (usize, Result<(), VmError>)| {
        let here = loaded(&space, act)?;
        let there = unloaded(&space, act);
        check!(here == there, "{here:?} and {there:?}");
        Ok(here)
    };
    let write = |at: usize, count: usize| both(&|| space.write_some(at, &data[..count]));
    let read = |at: usize, count: usize| {
        let buffer = RefCell::new(pattern(3 * PAGE_SIZE, 2));
        both(&|| space.read_some(at, &mut buffer.borrow_mut()[..count]))
    };
    let missing = (5, Err(VmError::NotMapped));
    check!(write(STACK_TOP - 5, 13)? == missing, "a page is missing");
    check!(read(STACK_TOP - 5, 13)? == missing, "a page is missing");
    let whole = (PAGE_SIZE, Err(VmError::NotMapped));
    check!(read(STACK, 2 * PAGE_SIZE + 1)? == whole, "after a page");
    let denied = (0, Err(VmError::Denied));
    check!(write(CODE, 8)? == denied, "a page of code");
    check!(read(CODE, 8)? == (8, Ok(())), "a page of code");
    let child = VmSpace::new().map_err(|_| String::from("no memory"))?;
    let forked = space.fork(STACK, 1, &child);
    check!(forked == Ok(1), "{forked:?}");
    check!(write(STACK, 8)? == denied, "a page that is copied on write");
    check!(
        read(STACK, 8)? == (8, Ok(())),
        "a page that is copied on write"
    );
    let none = space.protect(STACK, 1, UserProt::NONE);
    check!(none == Ok(1), "{none:?}");
    let (done, why) = read(STACK + 1, 8)?;
    check!(
        done == 0 && why.is_err(),
        "{done} bytes that cannot be read"
    );
    Ok(())
}

/// A range that is not all a program's is copied as far as it is, and not from the other side.
fn ends() -> Result<(), String> {
    let space = space()?;
    let last = space.map_zero(USER_END - PAGE_SIZE, 1, UserProt::READ_WRITE);
    check!(last == Ok(1), "{last:?}");
    let kernel = pattern(16, 9);
    let address = kernel.as_ptr() as usize;
    for at in [address, mem::DIRECT_MAP, USER_END, usize::MAX - 3, 1 << 63] {
        let mut seen = [0xaa; 16];
        let copied = loaded(&space, || {
            let read = space.read_some(at, &mut seen);
            (read, space.write_some(at, &[0; 16]))
        })?;
        let refused = (0, Err(VmError::BadAddress));
        check!(copied == (refused, refused), "{at:x}: {copied:?}");
        check!(seen == [0xaa; 16], "{at:x} was read");
    }
    check!(
        kernel == pattern(16, 9),
        "the kernel's memory was written to"
    );
    let over = loaded(&space, || space.write_some(USER_END - 4, &[7; 16]))?;
    check!(over == (4, Err(VmError::BadAddress)), "{over:?}");
    Ok(())
}

/// When a page is made read-only, copies that are under way on other processors are over.
fn revoked() -> Result<(), String> {
    let space = space()?;
    let (goes_on, copies) = (AtomicBool::new(true), AtomicUsize::new(0));
    let wrong = alongside(
        crate::smp::online(),
        &|thread| {
            let mut seed = thread;
            while goes_on.load(Ordering::Relaxed) {
                let written = loaded(&space, || space.write(STACK, &pattern(PAGE_SIZE, seed)));
                copies.fetch_add(usize::from(written == Ok(Ok(()))), Ordering::Relaxed);
                seed += 5;
            }
        },
        |_| {
            let result = revoke(&space, &copies);
            goes_on.store(false, Ordering::Relaxed);
            result
        },
    )?;
    wrong
}

fn revoke(space: &VmSpace, copies: &AtomicUsize) -> Result<(), String> {
    for round in 0..50 {
        let so_far = copies.load(Ordering::Relaxed);
        let more = || copies.load(Ordering::Relaxed) > so_far;
        check!(eventually(more), "nothing is copied in round {round}");
        let page = || {
            let mut seen = Vec::from([0; PAGE_SIZE]);
            space.read(STACK, &mut seen).map(|()| seen)
        };
        let taken = space.protect(STACK, 1, UserProt::READ);
        check!(taken == Ok(1), "{taken:?}");
        let before = page();
        super::threads::sleep_ms(1);
        check!(before == page(), "it was written to in round {round}");
        let given = space.protect(STACK, 1, UserProt::READ_WRITE);
        check!(given == Ok(1), "{given:?}");
    }
    Ok(())
}

/// A word is read where the program may read, and compared and exchanged where it may write; both
/// in a program's memory alone.
fn words() -> Result<(), String> {
    let space = space()?;
    for (at, old, found) in [
        (0, 0, Ok(0)),
        (0, 0, Ok(9)),
        (0, 9, Ok(9)),
        (4092, 1, Ok(0)),
    ] {
        let seen = space.exchange(STACK + at, old, 9);
        check!(seen == found, "{seen:?} for {old} at {at}");
    }
    for (at, right) in [(0, 9), (4, 0), (4092, 0)] {
        let seen = space.word(STACK + at);
        check!(seen == Ok(right), "{seen:?} is read at {at}");
    }
    let mut bytes = [0; 4];
    let read = space.read(CODE, &mut bytes);
    check!(read == Ok(()), "code is read: {read:?}");
    let code = space.word(CODE);
    check!(code == Ok(u32::from_le_bytes(bytes)), "code: {code:?}");
    let code = space.exchange(CODE, 0, 9);
    check!(code == Err(VmError::Denied), "code: {code:?}");
    let none = space.exchange(STACK_TOP, 0, 9);
    check!(none == Err(VmError::NotMapped), "no page: {none:?}");
    let none = space.word(STACK_TOP);
    check!(none == Err(VmError::NotMapped), "no page is read: {none:?}");
    let kernel = AtomicUsize::new(0);
    let address = core::ptr::from_ref(&kernel) as usize;
    for at in [address, STACK + 1, USER_END, usize::MAX - 3, 1 << 63] {
        let seen = space.exchange(at, 0, 9);
        check!(seen == Err(VmError::BadAddress), "{at:x}: {seen:?}");
        let seen = space.word(at);
        check!(seen == Err(VmError::BadAddress), "{at:x} is read: {seen:?}");
    }
    check!(
        kernel.load(Ordering::Relaxed) == 0,
        "the kernel's memory was written to"
    );
    Ok(())
}
