//! Attacks that a domain of safe Rust can try on the kernel or on others: at the edge of its stack,
//! by drops that block or go deep, and by dying while things pass from it or to it.

use crate::lab::{Lab, Victim, say, settle, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{log, thread, time};
use interfaces::{
    Counting, CrashReason, DomainSpec, Handle, Misdeed, RVec, RpcError, RpcResult, StartError,
    Subject,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("hostile-clock-at-the-end-of-the-stack", deep_clock),
    ("hostile-calls-at-the-end-of-the-stack", deep_peers),
    (
        "hostile-traced-calls-at-the-end-of-the-stack",
        deep_traced_peers,
    ),
    ("hostile-deaths-all-along-the-end-of-the-stack", deep_deaths),
    ("hostile-drop-that-blocks", blocking_drop),
    ("hostile-drop-blocks-nobody-else", drop_beside_blocked),
    ("hostile-drop-that-takes-too-long", late_drop),
    ("hostile-chain-of-drops", chain_of_drops),
    ("hostile-flood-of-the-log", flooded_log),
    ("hostile-flood-at-a-rate-of-its-own", slowly_flooded_log),
    ("hostile-death-of-a-giver", dying_giver),
    ("hostile-death-of-a-receiver", dying_receiver),
];

fn deep_clock(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let answer = victim.subject.misbehave(Misdeed::DeepClock);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let why = victim.gone()?;
    ensure!(why == CrashReason::StackOverflow, "it ended by {why:?}");
    Ok(())
}

/// Whoever is called with little stack left gives an error or a result, and does not die of it.
fn deep_peers(lab: &Lab) -> Verdict {
    let peer = lab.start()?;
    let victim = lab.start_before(&peer)?;
    let answer = victim.subject.misbehave(Misdeed::DeepPeers);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let why = victim.gone()?;
    ensure!(why == CrashReason::StackOverflow, "it ended by {why:?}");
    ensure!(peer.subject.add(1, 1) == Ok(2), "the peer died of it");
    peer.end()
}

/// The same while each call is timed.
fn deep_traced_peers(lab: &Lab) -> Verdict {
    let count = |how| lab.monitor.count_calls(how).map_err(say);
    count(Counting::Traced)?;
    let ended = deep_peers(lab);
    count(Counting::Off)?;
    ended
}

/// A domain goes as deep as it likes and then calls the kernel: wherever the end of its stack is
/// then, it ends, and nothing else.
fn deep_deaths(lab: &Lab) -> Verdict {
    const PROBES: u64 = 48;
    let ends = |levels: u64| -> Result<bool, String> {
        // The log has stacks to tell.
        time::sleep(2_000_000);
        match lab.start_as(None, unlimited(), format!("deep {levels}").as_bytes())? {
            Ok(victim) => victim.end().map(|()| false),
            Err(StartError::Crashed) => Ok(true),
            Err(error) => Err(say(error)),
        }
    };
    let (mut fits, mut deep) = (0, 1 << 14);
    ensure!(ends(deep)?, "{deep} levels are not too many");
    while deep - fits > 1 {
        let levels = (fits + deep) / 2;
        match ends(levels)? {
            true => deep = levels,
            false => fits = levels,
        }
    }
    // 10 KiB are kept for the kernel, the upper half of which is enough; in a Linux process there
    // are 64 more before the end.
    let (begin, end) = (4 << 10, if lab.hardware.is_some() { 7 } else { 76 } << 10);
    let frame = (118 << 10) / deep;
    for probe in 0..PROBES {
        let levels = deep + (begin + probe * end / PROBES) / frame;
        ensure!(ends(levels)?, "{levels} levels fit, {deep} do not");
    }
    lab.start()?.end()
}

/// A dead holder's handle leads to an object whose drop never returns: other domains are cleared
/// away all the same, and the holder is, too, as soon as the culprit is ended.
fn blocking_drop(lab: &Lab) -> Verdict {
    let culprit = lab.start()?;
    let holder = lab.start()?;
    let child = culprit.subject.offspring().map_err(say)?;
    holder.subject.follow(Some(child)).map_err(say)?;
    let answer = culprit.subject.misbehave(Misdeed::BlockInDrops);
    ensure!(answer == Ok(0), "{answer:?}");
    holder.domain.kill().map_err(say)?;
    wait_for("the drop to begin", || {
        culprit.subject.offspring_alive() == Ok(0)
    })?;
    for _ in 0..3 {
        lab.start()?.end()?;
    }
    let left = lab.info(holder.id)?.is_some();
    ensure!(left, "the holder is gone though the drop did not return");
    culprit.end()?;
    holder.gone().map(drop)
}

/// A drop of the culprit's never returns. Whoever drops its other objects goes on, drops of others
/// are carried out, and all comes back with its end.
fn drop_beside_blocked(lab: &Lab) -> Verdict {
    const CHILDREN: u32 = 20;
    let bystander = lab.start()?;
    lab.conserves_memory(|| {
        let culprit = lab.start()?;
        let first = culprit.subject.offspring().map_err(say)?;
        let more: Result<Vec<_>, _> = (0..CHILDREN).map(|_| culprit.subject.offspring()).collect();
        let more = more.map_err(say)?;
        let answer = culprit.subject.misbehave(Misdeed::BlockInDrops);
        ensure!(answer == Ok(0), "{answer:?}");
        let done = Arc::new(AtomicU32::new(0));
        let told = done.clone();
        thread::spawn("dropper", move || {
            drop(first);
            told.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(say)?;
        wait_for("the first drop to begin", || {
            culprit.subject.offspring_alive() == Ok(CHILDREN)
        })?;
        // It is about to wait.
        time::sleep(50_000_000);
        drop(more);
        for _ in 0..3 {
            drop(bystander.subject.offspring().map_err(say)?);
            lab.start()?.end()?;
        }
        wait_for("a bystander's objects to be dropped", || {
            bystander.subject.offspring_alive() == Ok(0)
        })?;
        let begun = CHILDREN - culprit.subject.offspring_alive().map_err(say)?;
        ensure!(begun <= 1, "{begun} drops block at once");
        culprit.end()?;
        wait_for("the dropper", || done.load(Ordering::SeqCst) == 1)?;
        settle(lab)
    })?;
    bystander.end()
}

/// The first drop that waits has the thread of who drops, but not for ever.
fn late_drop(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            call_budget_ms: 200,
            ..unlimited()
        };
        let culprit = lab.start_as(None, spec, b"")?;
        let culprit = culprit.map_err(|error| format!("no start: {error:?}"))?;
        let child = culprit.subject.offspring().map_err(say)?;
        let answer = culprit.subject.misbehave(Misdeed::BlockInDrops);
        ensure!(answer == Ok(0), "{answer:?}");
        drop(child);
        let why = culprit.gone()?;
        ensure!(why == CrashReason::Hang, "it ended by {why:?}");
        Ok(())
    })
}

/// Objects of two domains by turns, each holding the next: far more of them than there is stack for
/// drops.
fn chain_of_drops(lab: &Lab) -> Verdict {
    const LENGTH: usize = 600;
    let pair = [lab.start()?, lab.start()?];
    let mut first = pair[0].subject.offspring().map_err(say)?;
    for index in 1..LENGTH {
        let before = pair[index % 2].subject.offspring().map_err(say)?;
        before.follow(Some(first)).map_err(say)?;
        first = before;
    }
    drop(first);
    for victim in &pair {
        wait_for("all objects to be dropped", || {
            victim.subject.offspring_alive() == Ok(0)
        })?;
    }
    let [one, two] = pair;
    one.end()?;
    two.end()
}

/// A domain writes far more to the log than there is room for. What others write is there all the
/// same, and each of its lines is there or counted as lost.
fn flooded_log(lab: &Lab) -> Verdict {
    // 16 KiB at once and 8 KiB in each of the few seconds that the flood may take.
    flood(lab, unlimited(), 800)
}

/// As before, by one that may write 2 KiB at once and 1 KiB in each second.
fn slowly_flooded_log(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        log_rate: 1024,
        ..unlimited()
    };
    flood(lab, spec, 100)
}

/// A victim floods the log; fewer than `most` of its lines are heard.
fn flood(lab: &Lab, spec: DomainSpec, most: u64) -> Verdict {
    let nothing = || RVec::filled(0u8, 0).map_err(say);
    let (_, start) = lab.monitor.log(u64::MAX, nothing()?).map_err(say)?;
    log!("before the flood");
    let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
    let written = victim.subject.misbehave(Misdeed::FloodLog).map_err(say)?;
    victim.end()?;
    log!("after the flood");
    let buffer = RVec::filled(0u8, 64 * 1024).map_err(say)?;
    let (text, _) = lab.monitor.log(start, buffer).map_err(say)?;
    let text = core::str::from_utf8(&text).map_err(say)?;
    for ours in [": before the flood\n", ": after the flood\n"] {
        ensure!(text.contains(ours), "the flood took {ours:?} along");
    }
    let (mut heard, mut lost) = (0, 0);
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("victim: ") {
            heard += u64::from(rest.starts_with("flood "));
            let count = rest.strip_suffix(" lines lost");
            lost += count
                .map_or(Ok(0), |count| count.parse::<u64>())
                .map_err(say)?;
        }
    }
    ensure!(
        heard + lost == written,
        "of {written} lines {heard} were heard and {lost} said to be lost"
    );
    ensure!(heard > 0 && heard < most, "{heard} lines were heard");
    Ok(())
}

/// Calls `act` on `victim` from `count` threads until it gives an error; the counter of those that
/// are done.
fn call_until_dead(
    victim: &Victim,
    count: u32,
    act: fn(&Handle<dyn Subject>) -> RpcResult<()>,
) -> Result<Arc<AtomicU32>, String> {
    let done = Arc::new(AtomicU32::new(0));
    for _ in 0..count {
        let subject = victim.subject.duplicate().map_err(say)?;
        let done = done.clone();
        thread::spawn("caller", move || {
            while act(&subject).is_ok() {}
            drop(subject);
            done.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(say)?;
    }
    Ok(done)
}

/// A domain is killed while it gives away handles and nests of objects.
fn dying_giver(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        for round in 0..10 {
            let victim = lab.start()?;
            let done = call_until_dead(&victim, 3, |subject| {
                drop(subject.offspring()?);
                drop(subject.make_nest(1)?);
                subject.follow(Some(subject.duplicate()?))
            })?;
            time::sleep(1_000_000 + round * 300_000);
            victim.end()?;
            wait_for("the callers", || done.load(Ordering::SeqCst) == 3)?;
        }
        settle(lab)
    })
}

/// A domain is killed while it is given handles and nests of objects; the giver keeps none of them.
fn dying_receiver(lab: &Lab) -> Verdict {
    let giver = lab.start()?;
    lab.conserves_memory(|| {
        for round in 0..10 {
            let victim = lab.start_before(&giver)?;
            let done = call_until_dead(&victim, 3, |subject| {
                subject.misbehave(Misdeed::SpinInPeers).map(drop)
            })?;
            time::sleep(1_000_000 + round * 300_000);
            victim.end()?;
            wait_for("the callers", || done.load(Ordering::SeqCst) == 3)?;
        }
        wait_for("the giver's objects to be dropped", || {
            giver.subject.offspring_alive() == Ok(0)
        })?;
        let objects = lab.holdings(giver.id)?.objects;
        ensure!(objects == 0, "the giver still owns {objects} objects");
        settle(lab)
    })?;
    giver.end()
}
