//! One domain crashes and is restarted, again and again: memory stays, numbers rise, the time
//! stays.

use crate::counts::Counts;
use crate::engine::{Ground, prepare, supervisor};
use crate::store::pause;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{Block, Incarnation};
use isolation::State;
use isolation::death::kill::{CrashRequest, ask_to_crash};
use isolation::domain::ControlBlock;
use isolation::platform::platform;

/// Lines that are reported over all cycles.
const REPORTS: u64 = 20;
/// Dead instances that may wait to be cleared away.
const BACKLOG: usize = 8;
/// Nanoseconds that one of them may take.
const PATIENCE: u64 = 20_000_000_000;
/// Nanoseconds that the rest of a death may take.
const SETTLE: u64 = 5_000_000_000;
/// Nanoseconds before the first counts, which the later ones are compared with.
const FIRST_PAUSE: u64 = 20_000_000;

/// Crashes and restarts the driver `count` times.
pub fn run(count: u64, ground: &Ground) -> Result<(), String> {
    // It is refused early if it is not there.
    drop(prepare(ground, "domains/frail-disk")?);
    let supervisor = supervisor(ground)?;
    let each = (count / REPORTS).max(1);
    let mut times = Vec::with_capacity(each as usize);
    let mut last = 0;
    let mut before: Option<Counts> = None;
    let mut dead: Vec<Arc<ControlBlock>> = Vec::with_capacity(BACKLOG + 1);
    for cycle in 1..=count {
        let start = platform().now();
        let Incarnation { id, service } = supervisor
            .instance(last)
            .map_err(|error| format!("cycle {cycle}: {error:?}"))?;
        let device = service.downcast::<dyn Block>().map_err(|_| "no device")?;
        device
            .geometry()
            .map_err(|error| format!("cycle {cycle}: {error:?}"))?;
        times.push(platform().now() - start);
        if id <= last {
            return Err(format!("cycle {cycle}: number {id} comes after {last}"));
        }
        last = id;
        let block = supervisor.current().ok_or("no driver")?;
        if ask_to_crash(&block) == CrashRequest::TooLate {
            return Err(format!("cycle {cycle}: the driver is dead already"));
        }
        if device.geometry().is_ok() {
            return Err(format!("cycle {cycle}: the driver survived"));
        }
        drop((device, block));
        dead.extend(supervisor.end());
        bury(&mut dead, BACKLOG)?;
        if cycle % each == 0 {
            bury(&mut dead, 0)?;
            let counts = settled(ground, before.as_ref());
            before = Some(counts);
            (ground.report)(&line(cycle, last, &mut times, &counts));
            times.clear();
        }
    }
    Ok(())
}

/// Waits until no more than `left` of the dead instances wait to be cleared away.
fn bury(dead: &mut Vec<Arc<ControlBlock>>, left: usize) -> Result<(), String> {
    let deadline = platform().now() + PATIENCE;
    loop {
        dead.retain(|block| block.state() != State::Gone);
        if dead.len() <= left {
            return Ok(());
        }
        if platform().now() > deadline {
            return Err("a dead driver is not cleared away".into());
        }
        pause(20_000);
    }
}

/// The counts when the last instance has been cleared away. The stacks and the records of its
/// threads come back a little later than it is said to be gone, much later on a busy machine.
fn settled(ground: &Ground, before: Option<&Counts>) -> Counts {
    match before {
        Some(before) => Counts::settled(ground, 0, before, 0, SETTLE),
        None => {
            pause(FIRST_PAUSE);
            Counts::now(ground, 0)
        }
    }
}

fn line(cycle: u64, id: u32, times: &mut [u64], counts: &Counts) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100] as f64 / 1000.0;
    format!(
        "{{\"cycles\":{cycle},\"id\":{id},\"restart_us\":{{\"p50\":{:.1},\"p99\":{:.1},\"max\":{:.1}}},\"free\":{},\"heap\":{},\"objects\":{},\"handles\":{}}}",
        at(50),
        at(99),
        at(100),
        counts.free,
        counts.heap,
        counts.objects,
        counts.handles
    )
}
