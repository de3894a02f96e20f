//! Tests of which page table a processor has loaded: none may keep one that is freed, and none is
//! thrown off its own.

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::threads::{alongside, eventually, in_threads, sleep_ms};
use super::user::{STACK, hello_and_loop, run, space};
use super::{Test, gives_back};
use crate::arch::cpu::cpu_index;
use crate::arch::page;
use crate::check;
use crate::mem::{kspace, spaces};
use crate::sync::relax;
use crate::task::{self, PreemptOff};
use crate::user::{UserEvent, UserMode, UserProt, VmSpace};
use crate::{smp, time};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    (
        "space-dropped-while-idle-processor-has-it",
        dropped_while_idle,
    ),
    ("space-dropped-while-thread-has-it", dropped_while_running),
    ("space-is-kept-over-large-flushes", kept_over_flushes),
    ("space-large-flushes-from-elsewhere", flushes_from_elsewhere),
    ("space-changes-reach-who-has-it", changes_arrive),
    ("space-comes-and-goes-everywhere", come_and_go),
];

/// The top-level table that this processor has loaded.
fn loaded() -> u64 {
    page::root()
}

/// How many processors have the table loaded, by their own word.
fn having(table: u64) -> usize {
    let count = AtomicUsize::new(0);
    smp::call_all(&|_| {
        count.fetch_add(usize::from(loaded() == table), Ordering::SeqCst);
    });
    count.load(Ordering::SeqCst)
}

/// Spins, for a minute at most, until `done`; says whether it was done.
fn spin_until(done: impl Fn() -> bool) -> bool {
    let end = time::now_ns() + 60_000_000_000;
    while !done() && time::now_ns() < end {
        relax();
    }
    done()
}

/// What a test makes another processor do: run a program there once, then `after`, while the test
/// stays on its own.
fn on_another(
    space: &VmSpace,
    after: &(dyn Fn() + Sync),
    here: impl FnOnce(usize) -> Result<(), String>,
) -> Result<(), String> {
    let stay = PreemptOff::new();
    let own = cpu_index();
    drop(stay);
    let (main_on, other) = (AtomicUsize::new(own), AtomicUsize::new(usize::MAX));
    let work = |_| {
        let end = time::now_ns() + 60_000_000_000;
        while time::now_ns() < end {
            let stay = PreemptOff::new();
            if cpu_index() != main_on.load(Ordering::SeqCst) {
                let mut program = hello_and_loop().0;
                run(&mut program, space);
                other.store(cpu_index(), Ordering::SeqCst);
                after();
                return;
            }
            drop(stay);
            task::yield_now();
        }
    };
    alongside(1, &work, |_| {
        let _stay = PreemptOff::new();
        main_on.store(cpu_index(), Ordering::SeqCst);
        let there = spin_until(|| other.load(Ordering::SeqCst) != usize::MAX);
        check!(there, "no other processor ran the program");
        here(other.load(Ordering::SeqCst))
    })?
}

/// A processor that has run a program goes idle, and keeps the table as nobody needs another. Then
/// the space is dropped.
fn dropped_while_idle() -> Result<(), String> {
    if smp::online() < 2 {
        return Ok(());
    }
    for _ in 0..20 {
        let dropped = space()?;
        let table = dropped.table_address();
        on_another(&dropped, &|| (), |other| {
            check!(
                spin_until(|| task::is_idle(other)),
                "the other processor is busy"
            );
            check!(
                having(table) > 0,
                "nobody has kept the table, so this tests nothing"
            );
            Ok(())
        })?;
        drop(dropped);
        check!(having(table) == 0, "a processor has a table that was freed");
        check!(
            spaces::holders(table) == 0,
            "a processor is noted to have a table that was freed"
        );
    }
    Ok(())
}

/// As above, but the thread on the other processor goes on without ring 3, and cannot be preempted.
fn dropped_while_running() -> Result<(), String> {
    if smp::online() < 2 {
        return Ok(());
    }
    let (stop, wrong) = (AtomicBool::new(false), AtomicU64::new(0));
    let kept = space()?;
    let table = kept.table_address();
    let after = || {
        spin_until(|| stop.load(Ordering::SeqCst));
        wrong.fetch_add(u64::from(loaded() == table), Ordering::SeqCst);
    };
    let result = on_another(&kept, &after, |_| {
        // What `VmSpace::drop` does first; dropping it while the thread borrows it is what Rust
        // forbids.
        smp::leave_table(table);
        stop.store(true, Ordering::SeqCst);
        Ok(())
    });
    stop.store(true, Ordering::SeqCst);
    result?;
    check!(wrong.load(Ordering::SeqCst) == 0, "it has kept the table");
    Ok(())
}

/// Unmapping many pages flushes all translations, on this processor and on others, and nothing
/// more.
fn kept_over_flushes() -> Result<(), String> {
    let space = space()?;
    let _stay = PreemptOff::new();
    run(&mut hello_and_loop().0, &space);
    for pages in [1, 32, 33, 200] {
        drop(kspace::map_region(pages).map_err(|_| "no memory")?);
        check!(
            loaded() == space.table_address(),
            "thrown off by a flush of {pages} pages"
        );
    }
    Ok(())
}

fn flushes_from_elsewhere() -> Result<(), String> {
    if smp::online() < 2 {
        return Ok(());
    }
    let (stop, wrong) = (AtomicBool::new(false), AtomicU64::new(0));
    let space = space()?;
    let after = || {
        spin_until(|| {
            wrong.fetch_add(
                u64::from(loaded() != space.table_address()),
                Ordering::SeqCst,
            );
            stop.load(Ordering::SeqCst)
        });
    };
    on_another(&space, &after, |_| {
        let regions = [1, 32, 33, 200].map(|pages| kspace::map_region(pages).map(drop));
        stop.store(true, Ordering::SeqCst);
        check!(regions.iter().all(Result::is_ok), "no memory");
        Ok(())
    })?;
    check!(
        wrong.load(Ordering::SeqCst) == 0,
        "thrown off by another processor's flush"
    );
    Ok(())
}

/// A program loops on one processor while another takes its page away: it faults, in this very run.
fn changes_arrive() -> Result<(), String> {
    let space = space()?;
    let (stop, faults) = (AtomicBool::new(false), AtomicUsize::new(0));
    let work = |_| {
        let mut program = hello_and_loop().1;
        while !stop.load(Ordering::SeqCst) {
            match UserMode::new(&mut program, &space).run() {
                UserEvent::Interrupted => {}
                _ => {
                    faults.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    };
    let faulted = alongside(smp::online(), &work, |_| {
        sleep_ms(30);
        let early = faults.load(Ordering::SeqCst);
        let changed = space.protect(super::user::CODE, 1, UserProt::READ);
        let all = eventually(|| faults.load(Ordering::SeqCst) == smp::online());
        stop.store(true, Ordering::SeqCst);
        early == 0 && changed == Ok(1) && all
    })?;
    check!(faulted, "{faults:?} of the programs met the change");
    Ok(())
}

/// Spaces are made, used and dropped on all processors at once, with pauses in which these idle;
/// memory comes back.
fn come_and_go() -> Result<(), String> {
    gives_back(|| {
        let wrong = AtomicUsize::new(0);
        in_threads(smp::online() + 1, &|index| {
            for round in 0..20 {
                let Ok(space) = space() else {
                    wrong.fetch_add(1, Ordering::SeqCst);
                    continue;
                };
                let event = run(&mut hello_and_loop().0, &space);
                let unmapped = space.unmap(STACK, 1);
                let good = event == UserEvent::Syscall && unmapped == Ok(1);
                wrong.fetch_add(usize::from(!good), Ordering::SeqCst);
                if (round + index) % 3 == 0 {
                    sleep_ms(1);
                }
            }
        })?;
        check!(
            wrong.load(Ordering::SeqCst) == 0,
            "{wrong:?} rounds went wrong"
        );
        Ok(())
    })
}
