//! Runs the isolation tests: starts domains that do harm (`victim`), and looks at what is left.
//!
//! Each of the seven promises of the isolation half, and each trap that others fell into, is a
//! named test. The results are lines of the kernel's log, `test NAME ok` or `test NAME FAILED:
//! why`, and a last line `N passed, N failed`; then the machine is switched off. `options` names
//! the tests to run (a part of the name is enough; `@SEED` after it for random ones); without it
//! all are run. `options=steps` is no test but the guest's side of `cargo xtask steps`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attacks;
mod budgets;
mod calls;
mod clock;
mod copies;
mod counts;
mod crashes;
mod deadlines;
mod devices;
mod events;
mod forks;
mod frames;
mod full;
mod gauge;
mod handles;
mod hostile;
mod images;
mod lab;
mod limits;
mod locks;
mod meddling;
mod memory;
mod objects;
mod payers;
mod random;
mod ring3;
mod shadows;
mod short;
mod sleepers;
mod spaces;
mod steps;
mod threads;
mod timers;
mod times;
mod told;
mod tracer;
mod traces;
mod userbufs;
mod words;

use alloc::string::String;
use domain_rt::{log, thread};
use interfaces::{
    AddressSpaces, Archive, DomainControl, Events, Handle, Hardware, HeapAudit, Loader,
    MemoryObjects, MemoryWatch, Monitor, Power, RVec, Random, RpcResult, Tracer,
};
use lab::Lab;

/// What a test says: why it failed.
type Verdict = Result<(), String>;
/// A named test.
type Test = (&'static str, fn(&Lab) -> Verdict);

/// Fails the test unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(alloc::format!($($message)*));
        }
    };
}

/// The domain's entry.
///
/// # Errors
/// When there is no memory for the thread that runs the tests.
#[allow(clippy::too_many_arguments)] // They are what it is granted.
pub fn start(
    loader: Handle<dyn Loader>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    archive: Handle<dyn Archive>,
    power: Handle<dyn Power>,
    memory: Option<Handle<dyn MemoryWatch>>,
    hardware: Option<Handle<dyn Hardware>>,
    objects: Option<Handle<dyn MemoryObjects>>,
    events: Option<Handle<dyn Events>>,
    tracer: Option<Handle<dyn Tracer>>,
    random: Option<Handle<dyn Random>>,
    spaces: Option<Handle<dyn AddressSpaces>>,
    auditor: Option<Handle<dyn HeapAudit>>,
    options: RVec<u8>,
) -> RpcResult<()> {
    thread::spawn("tests", move || {
        let mut lab = Lab::new(
            loader, monitor, control, archive, memory, hardware, objects, spaces,
        );
        lab.events = events;
        lab.tracer = tracer;
        lab.random = random;
        lab.auditor = auditor;
        let wanted = core::str::from_utf8(&options).unwrap_or("").trim();
        // A seed may follow, for tests that take one.
        let (wanted, seed) = wanted.split_once('@').unwrap_or((wanted, ""));
        lab.seed = seed.parse().unwrap_or(0);
        let failed = match wanted {
            "steps" => steps::run(&lab),
            _ => run_all(&lab, wanted),
        };
        let _ = power.off(u8::from(failed > 0));
    })
}

/// Runs the tests whose name contains `wanted`; how many failed.
fn run_all(lab: &Lab, wanted: &str) -> usize {
    let groups: &[&[Test]] = &[
        calls::TESTS,
        counts::TESTS,
        crashes::TESTS,
        handles::TESTS,
        images::TESTS,
        memory::TESTS,
        objects::TESTS,
        told::TESTS,
        clock::TESTS,
        userbufs::TESTS,
        copies::TESTS,
        payers::TESTS,
        events::TESTS,
        timers::TESTS,
        random::TESTS,
        spaces::TESTS,
        forks::TESTS,
        meddling::TESTS,
        frames::TESTS,
        ring3::TESTS,
        words::TESTS,
        budgets::TESTS,
        limits::TESTS,
        locks::TESTS,
        full::TESTS,
        devices::TESTS,
        threads::TESTS,
        sleepers::TESTS,
        shadows::TESTS,
        hostile::TESTS,
        attacks::TESTS,
        times::TESTS,
        deadlines::TESTS,
        short::TESTS,
        traces::TESTS,
        tracer::TESTS,
    ];
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in groups
        .concat()
        .into_iter()
        .filter(|(name, _)| name.contains(wanted))
    {
        match test(lab) {
            Ok(()) => {
                log!("test {name} ok");
                passed += 1;
            }
            Err(why) => {
                log!("test {name} FAILED: {why}");
                failed += 1;
            }
        }
    }
    log!("{passed} passed, {failed} failed");
    failed
}
