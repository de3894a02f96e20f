//! Deadlines: processor time that threads of a domain are promised, within its limit and the
//! machine's, and that comes back. In a Linux process nobody is promised any.

use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use domain_rt::{log, thread, time};
use interfaces::{DomainSpec, RpcError, RpcResult};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("deadline-limit-is-exact", limit),
    ("deadline-nothing-is-promised-by-default", default),
    ("deadline-hostile-values-are-refused", hostile),
    ("deadline-promises-end-with-their-domain", deaths),
    ("deadline-is-kept-beside-fifty-spinning-siblings", kept),
    ("deadline-spinner-leaves-others-the-rest", spinner),
];

const MS: u64 = 1_000_000;

/// Whether this platform promises anything.
fn is_bare(lab: &Lab) -> bool {
    lab.memory.is_some()
}

/// A victim that may have so many percent of a processor promised.
fn victim(lab: &Lab, deadline_percent: u32) -> Result<Victim, String> {
    let spec = DomainSpec {
        deadline_percent,
        ..unlimited()
    };
    lab.start_as(None, spec, b"")?.map_err(say)
}

/// How many threads with a tenth of a processor it has when it has asked for ten.
fn tenths(victim: &Victim) -> RpcResult<u32> {
    victim.subject.promised(10, MS, 10 * MS, false)
}

/// Waits until `ask` is answered by `wanted` promises: what the dead were promised comes back a
/// little after them, when their threads are gone.
fn has_promised(victim: &Victim, wanted: u32, ask: impl Fn() -> RpcResult<u32>) -> Verdict {
    let mut last = Ok(0);
    wait_for("what was promised", || {
        last = ask();
        if last != Ok(wanted) {
            let _ = victim.subject.forgo();
        }
        last == Ok(wanted)
    })
    .map_err(|why| alloc::format!("{why}: {last:?} of {wanted}"))
}

fn has_tenths(victim: &Victim, wanted: u32) -> Verdict {
    has_promised(victim, wanted, || tenths(victim))?;
    victim.subject.forgo().map_err(say)
}

fn limit(lab: &Lab) -> Verdict {
    let (five, half) = (victim(lab, 50)?, victim(lab, 59)?);
    for _ in 0..3 {
        let wanted = if is_bare(lab) { 5 } else { 0 };
        has_tenths(&five, wanted)?;
        has_tenths(&half, wanted)?;
    }
    let one = five.subject.promised(1, 51 * MS, 100 * MS, false);
    ensure!(one == Ok(0), "more than the limit at once: {one:?}");
    five.end()?;
    half.end()
}

fn default(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let none = tenths(&victim).map_err(say)?;
    ensure!(none == 0, "{none} without a limit that says so");
    // It makes other threads as before.
    victim.subject.threads(3).map_err(say)?;
    victim.end()
}

fn hostile(lab: &Lab) -> Verdict {
    let victim = victim(lab, u32::MAX)?;
    let edges = [
        0,
        1,
        99_999,
        MS - 1,
        100 * MS + 1,
        1 << 32,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    for runtime in edges {
        for period in edges {
            let count = victim.subject.promised(1, runtime, period, false);
            ensure!(count == Ok(0), "{runtime} of {period} ns: {count:?}");
        }
    }
    // No processor can promise more than four fifths of itself.
    let most = victim.subject.promised(1, 81 * MS, 100 * MS, false);
    ensure!(most == Ok(0), "81 %: {most:?}");
    let all = lab.monitor.processors().map_err(say)?;
    let wanted = if is_bare(lab) { 2 * all } else { 0 };
    has_promised(&victim, wanted, || {
        victim
            .subject
            .promised(2 * all + 3, 40 * MS, 100 * MS, false)
    })?;
    victim.end()
}

/// The whole of what one processor can promise, a thousand times, by domains that are killed while
/// they have it.
fn deaths(lab: &Lab) -> Verdict {
    for round in 0..1_000 {
        let victim = victim(lab, 80)?;
        let mut last = 0;
        wait_for("what the dead were promised", || {
            last = victim
                .subject
                .promised(1, 8 * MS, 10 * MS, round % 2 == 0)
                .unwrap_or(0);
            last == 1 || !is_bare(lab)
        })
        .map_err(|why| alloc::format!("{why}, round {round}"))?;
        victim.end()?;
    }
    Ok(())
}

/// A thread that needs a seventh of a processor has five times as much promised, since a guest
/// loses time to others on its host. Beside fifty siblings for every two processors it keeps its
/// periods, and without the promise it has time for a few.
fn kept(lab: &Lab) -> Verdict {
    const PERIODS: u32 = 40;
    let victim = victim(lab, 70)?;
    let spinners = 50 * lab.monitor.processors().map_err(say)?.div_ceil(2);
    let keep = |deadline| {
        victim
            .subject
            .keep_time(spinners, deadline, 35 * MS, 50 * MS, PERIODS)
    };
    let with = keep(true);
    if !is_bare(lab) {
        ensure!(with == Err(RpcError::Refused), "promised: {with:?}");
        return victim.end();
    }
    let with = with.map_err(say)?;
    let without = keep(false).map_err(say)?;
    log!("{with} of {PERIODS} periods kept, {without} without a deadline");
    ensure!(
        with >= PERIODS / 4 && without <= with / 2,
        "{with} of {PERIODS} periods kept, {without} without a deadline"
    );
    victim.end()
}

/// Who loops with four fifths of each processor promised leaves the rest to others.
fn spinner(lab: &Lab) -> Verdict {
    let all = lab.monitor.processors().map_err(say)?;
    let (busy, served) = (victim(lab, 80 * all)?, lab.start()?);
    let wanted = if is_bare(lab) { all } else { 0 };
    has_promised(&busy, wanted, || {
        busy.subject.promised(all, 80 * MS, 100 * MS, true)
    })?;
    for _ in 0..20 {
        let sum = served.subject.add(1, 1);
        ensure!(sum == Ok(2), "{sum:?}");
        time::sleep(MS);
        thread::yield_now();
    }
    busy.end()?;
    served.end()
}
