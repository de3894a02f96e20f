//! Threads with small stacks, and threads by the thousand: each waits for a time of its own, or in
//! a domain that dies. What that takes, and how long another domain is held up, is told in the log
//! for `cargo xtask bench threads`; no test depends on it.

use crate::lab::{Lab, Victim, say, settle, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::{log, thread, time};
use interfaces::{
    CrashReason, Fired, Handle, Misdeed, NewEvent, RVec, RpcError, RpcResult, WaitWord,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("threads-small-stacks-are-charged-as-such", charged),
    ("threads-small-stacks-can-call", small_calls),
    ("threads-by-the-thousand-wait-for-times", sleepers),
    ("threads-by-the-thousand-leave-who-dies", callers),
    ("threads-by-the-thousand-in-ring3-end", programs),
    ("threads-by-the-thousand-beside-a-death", deaths),
    ("threads-by-the-thousand-one-after-the-other", in_turns),
    ("events-by-the-thousand-are-told-one-by-one", events),
];

/// What a thread with a small stack is charged with: 48 KiB, and a page.
const SMALL: u64 = 13 * 4096;
const MS: u64 = 1_000_000;
/// As many as there are at the most, and in the usual run.
const MOST: usize = 10_000;
const SOME: usize = 2500;
/// Nanoseconds between two times at which threads wake.
const GAP: u64 = 200_000;

/// How many threads three quarters of the free memory are enough for, up to [`MOST`].
fn many(lab: &Lab) -> Result<usize, String> {
    let most = if lab.seed == 0 { SOME } else { MOST };
    let room = lab.free()? / 4 * 3 / SMALL;
    Ok(usize::try_from(room).map_or(most, |room| room.min(most)))
}

/// Tells a figure.
fn tell(unit: &str, name: &str, value: u64) {
    log!("measured {unit} \"{name}\" {value}");
}

/// The value that `per_mille` of the sorted `values` do not exceed.
fn share(values: &[u64], per_mille: usize) -> u64 {
    let rank = (values.len() * per_mille).div_ceil(1000).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}

fn tell_shares(name: &str, mut values: Vec<u64>) {
    values.sort_unstable();
    for (what, per_mille) in [("p50", 500), ("p99.9", 999), ("worst", 1000)] {
        tell("ns", &format!("{name}, {what}"), share(&values, per_mille));
    }
}

/// Something that threads wait for.
#[derive(Default)]
struct Gate {
    opened: Mutex<u64>,
    bell: Condvar,
    /// How many wait, or have gone through.
    came: AtomicU32,
}

impl Gate {
    fn open(&self, word: u64) {
        *self.opened.lock() = word;
        self.bell.notify_all();
    }

    /// What it was opened with.
    fn pass(&self) -> u64 {
        let mut opened = self.opened.lock();
        self.came.fetch_add(1, Ordering::SeqCst);
        while *opened == 0 {
            (opened, _) = self.bell.wait(opened);
        }
        *opened
    }

    fn await_all(&self, count: usize) -> Verdict {
        wait_for("all to come", || {
            self.came.load(Ordering::SeqCst) as usize == count
        })
    }
}

/// A small stack is charged as what it is, while its thread lives.
fn charged(lab: &Lab) -> Verdict {
    let bytes = || -> Result<u64, String> {
        let info = lab.info(domain_rt::self_id())?;
        Ok(info.ok_or("this is nobody")?.stack_bytes)
    };
    lab.conserves_memory(|| {
        let before = bytes()?;
        let gate = Arc::new(Gate::default());
        for _ in 0..5 {
            let gate = gate.clone();
            thread::spawn_small("small", move || {
                gate.pass();
            })
            .map_err(say)?;
        }
        let more = bytes()? - before;
        ensure!(more == 5 * SMALL, "{more} bytes for five");
        gate.open(1);
        settle(lab)?;
        let left = bytes()?;
        ensure!(left == before, "{left} bytes in place of {before}");
        Ok(())
    })
}

/// Runs `body` on a thread with a small stack.
fn on_small<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> Result<R, String> {
    let answer = Arc::new(Mutex::new(None));
    let place = answer.clone();
    thread::spawn_small("small", move || *place.lock() = Some(body())).map_err(say)?;
    wait_for("a small thread", || answer.lock().is_some())?;
    let answer = answer.lock().take();
    answer.ok_or_else(|| String::from("it went"))
}

/// A small stack is enough for a call, fewer of them lie on it than on a usual one, and who runs
/// over its end dies alone.
fn small_calls(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let own = victim.subject.duplicate().map_err(say)?;
        victim.subject.follow(Some(own)).map_err(say)?;
        let subject = victim.subject.duplicate().map_err(say)?;
        let (sum, deep) = on_small(move || (subject.add(2, 3), subject.depth(100_000)))?;
        ensure!(sum == Ok(5), "{sum:?}");
        ensure!(deep == Err(RpcError::StackLow), "{deep:?}");
        let deepest = |small: bool| -> Result<u64, String> {
            for depth in (1..2000).rev().step_by(8) {
                let subject = victim.subject.duplicate().map_err(say)?;
                let answer = match small {
                    true => on_small(move || subject.depth(depth))?,
                    false => subject.depth(depth),
                };
                if answer == Ok(depth) {
                    return Ok(depth);
                }
            }
            Ok(0)
        };
        let (usual, small) = (deepest(false)?, deepest(true)?);
        ensure!(0 < small && small < usual, "{small} calls of {usual}");
        let subject = victim.subject.duplicate().map_err(say)?;
        let answer = on_small(move || subject.misbehave(Misdeed::DeepClock))?;
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        let why = victim.gone()?;
        ensure!(why == CrashReason::StackOverflow, "it ended by {why:?}");
        settle(lab)
    })
}

/// Threads that each wait for a time of their own.
struct Sleepers {
    gate: Gate,
    done: AtomicU32,
    early: AtomicU32,
    /// By how much each was late.
    late: Vec<AtomicU64>,
}

impl Sleepers {
    /// So many, whose turns are `GAP` apart and in no order.
    fn start(count: usize) -> Result<Arc<Self>, String> {
        let all = Arc::new(Sleepers {
            gate: Gate::default(),
            done: AtomicU32::new(0),
            early: AtomicU32::new(0),
            late: (0..count).map(|_| AtomicU64::new(0)).collect(),
        });
        for number in 0..count {
            let all = all.clone();
            thread::spawn_small("sleeper", move || all.sleep(number)).map_err(say)?;
        }
        Ok(all)
    }

    fn sleep(&self, number: usize) {
        // A prime, so that each has a turn of its own.
        let turn = number * 7919 % self.late.len();
        let deadline = self.gate.pass() + turn as u64 * GAP;
        time::sleep(deadline.saturating_sub(time::now()));
        let now = time::now();
        if now < deadline {
            self.early.fetch_add(1, Ordering::SeqCst);
        }
        self.late[number].store(now.saturating_sub(deadline), Ordering::SeqCst);
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// As many threads as there is memory for, each with a time: none wakes before it, and all do.
fn sleepers(lab: &Lab) -> Verdict {
    let count = many(lab)?;
    lab.conserves_memory(|| {
        let (free, begin) = (lab.free()?, time::now());
        let all = Sleepers::start(count)?;
        let made = time::now() - begin;
        all.gate.await_all(count)?;
        let taken = free - lab.free()?;
        // Some time, so that all sleep before the first wakes.
        all.gate.open(time::now() + 1000 * MS);
        wait_for("all to wake", || {
            all.done.load(Ordering::SeqCst) as usize == count
        })?;
        let early = all.early.load(Ordering::SeqCst);
        ensure!(early == 0, "{early} of {count} woke early");
        settle(lab)?;
        let late = all.late.iter().map(|late| late.load(Ordering::SeqCst));
        let late: Vec<u64> = late.collect();
        let within = late.iter().filter(|late| **late <= 10 * MS).count();
        tell("threads", "sleeping threads", count as u64);
        tell("bytes", "memory for each", taken / count as u64);
        tell("ns", "to make each", made / count as u64);
        tell("threads", "woken within their tick", within as u64);
        tell_shares("late by", late);
        Ok(())
    })
}

/// Beats, and nanoseconds between two of them.
const BEATS: usize = 1000;
const BEAT: u64 = 250_000;

/// By how much the beats of a domain beside were late while this happened.
fn beats(beside: &Victim, happens: impl FnOnce() -> Verdict) -> Result<Vec<u64>, String> {
    let answer = Arc::new(Mutex::new(None));
    let (place, subject) = (answer.clone(), beside.subject.duplicate().map_err(say)?);
    let room = RVec::filled(0, BEATS).map_err(say)?;
    thread::spawn("beats", move || {
        let late = subject.metronome(BEAT, room);
        *place.lock() = Some(late);
    })
    .map_err(say)?;
    time::sleep(20 * MS);
    happens()?;
    wait_for("the beats to end", || answer.lock().is_some())?;
    let late: RpcResult<RVec<u64>> = answer.lock().take().ok_or("it went")?;
    Ok(late.map_err(say)?.to_vec())
}

/// How often a death is measured. In the usual run it is as often as pages are counted.
const ROUNDS: usize = 8;

/// Ends domains that `start` makes, and tells how long that took and how late another domain's
/// beats were meanwhile, beside those without a death. `end` is done once all is gone.
fn measure(
    lab: &Lab,
    name: &str,
    mut start: impl FnMut() -> Result<Victim, String>,
    mut end: impl FnMut() -> Verdict,
) -> Verdict {
    let (mut quiet, mut loud, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut round = || {
        let (beside, victim) = (lab.start()?, start()?);
        quiet.extend(beats(&beside, || Ok(()))?);
        loud.extend(beats(&beside, || {
            let begin = time::now();
            victim.domain.kill().map_err(say)?;
            let why = victim.gone()?;
            times.push(time::now() - begin);
            ensure!(why == CrashReason::Killed, "it ended by {why:?}");
            Ok(())
        })?);
        end()?;
        beside.end()?;
        settle(lab)
    };
    match lab.seed {
        0 => lab.returns_each_page(round)?,
        _ => (0..ROUNDS).try_for_each(|_| round())?,
    }
    tell_shares(&format!("{name}: from the kill to the end"), times);
    tell_shares(&format!("{name}: beats without a kill"), quiet);
    tell_shares(&format!("{name}: beats with it"), loud);
    Ok(())
}

/// A thousand threads wait in a domain that is ended: each gets the error.
fn callers(lab: &Lab) -> Verdict {
    const CALLERS: u32 = 1000;
    let (came, told) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let start = || {
        let victim = lab.start()?;
        came.store(0, Ordering::SeqCst);
        told.store(0, Ordering::SeqCst);
        for _ in 0..CALLERS {
            let subject = victim.subject.duplicate().map_err(say)?;
            let (came, told) = (came.clone(), told.clone());
            let body = move || {
                came.fetch_add(1, Ordering::SeqCst);
                if subject.block_until(u64::MAX / 2) == Err(RpcError::DomainCrashed) {
                    told.fetch_add(1, Ordering::SeqCst);
                }
            };
            thread::spawn_small("caller", body).map_err(say)?;
        }
        wait_for("all to call", || came.load(Ordering::SeqCst) == CALLERS)?;
        time::sleep(20 * MS);
        Ok(victim)
    };
    let all_told = || wait_for("all to be told", || told.load(Ordering::SeqCst) == CALLERS);
    measure(lab, "1000 threads inside", start, all_told)
}

/// A domain is ended that runs programs on half of its threads, and waits on the others.
fn programs(lab: &Lab) -> Verdict {
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    // There is a test of a thousand of them; here it is how long others wait.
    let threads = if lab.seed == 0 { 100 } else { 1000 };
    let start = || {
        let victim = lab.start()?;
        let spaces = spaces.duplicate().map_err(say)?;
        let made = victim.subject.crowd_in_ring3(spaces, threads);
        ensure!(made == Ok(threads), "{made:?} threads");
        Ok(victim)
    };
    measure(lab, &format!("{threads} threads in ring 3"), start, || {
        Ok(())
    })
}

/// A domain is ended while as many threads as there is memory for sleep elsewhere, whom that does
/// not wake; before that, with nobody beside it.
fn deaths(lab: &Lab) -> Verdict {
    let count = many(lab)? * 9 / 10;
    let die = |name| {
        let victim = lab.start()?;
        victim.subject.threads(3).map_err(say)?;
        time::sleep(5 * MS);
        let begin = time::now();
        victim.end()?;
        tell("ns", name, time::now() - begin);
        Ok::<(), String>(())
    };
    die("a death beside nobody")?;
    lab.conserves_memory(|| {
        let all = Sleepers::start(count)?;
        all.gate.await_all(count)?;
        let died = die("a death beside sleeping threads");
        let early = all.done.load(Ordering::SeqCst);
        all.gate.open(time::now());
        died?;
        ensure!(early == 0, "{early} woke");
        wait_for("all to wake", || {
            all.done.load(Ordering::SeqCst) as usize == count
        })?;
        settle(lab)
    })
}

/// Threads are made, and waited for, one after the other.
fn in_turns(lab: &Lab) -> Verdict {
    const THREADS: u32 = 200;
    type Make = fn(&str, Arc<Gate>) -> RpcResult<u64>;
    let kinds: [(&str, Make); 2] = [
        ("thread made and joined, usual stack", |name, gate| {
            thread::spawn_numbered(name, move || gate.open(1))
        }),
        ("thread made and joined, small stack", |name, gate| {
            thread::spawn_small(name, move || gate.open(1))
        }),
    ];
    lab.conserves_memory(|| {
        for (name, make) in kinds {
            let begin = time::now();
            for _ in 0..THREADS {
                let gate = Arc::new(Gate::default());
                make("turn", gate.clone()).map_err(say)?;
                gate.pass();
            }
            tell("ns", name, (time::now() - begin) / u64::from(THREADS));
        }
        settle(lab)
    })
}

/// One of many events that are bound to a word is raised, and told.
fn events(lab: &Lab) -> Verdict {
    let maker = lab.events.as_ref().ok_or("nobody makes events")?;
    lab.conserves_memory(|| {
        for count in [10, MOST] {
            let word = maker.word().map_err(say)?;
            let mut all = Vec::new();
            for tag in 0..count {
                let made = maker.event().map_err(say)?;
                let word = word.duplicate().map_err(say)?;
                made.event.bind(word, tag as u64).map_err(say)?;
                all.push(made);
            }
            let cost = raise_some(&word, &all)?;
            tell("ns", &format!("raise and wait among {count} events"), cost);
        }
        Ok(())
    })
}

/// Raises some of the events, one at a time, and waits for each: how long that took for one.
fn raise_some(word: &Handle<dyn WaitWord>, all: &[NewEvent]) -> Result<u64, String> {
    const TURNS: usize = 64;
    const NONE: Fired = Fired {
        tag: 0,
        count: 0,
        ended: false,
    };
    let mut fired = RVec::filled(NONE, 4).map_err(say)?;
    let mut spent = 0;
    for turn in 0..TURNS {
        let tag = turn * 7919 % all.len();
        let begin = time::now();
        all[tag].raiser.raise().map_err(say)?;
        fired = word.wait(None, fired).map_err(say)?;
        spent += time::now() - begin;
        let told = fired.first().copied().ok_or("nothing was told")?;
        let is_right = fired.len() == 1 && told.tag == tag as u64 && told.count == 1;
        ensure!(is_right, "{told:?} in place of {tag}");
        // It was cut behind what it told.
        fired = RVec::filled(NONE, 4).map_err(say)?;
        let more = all[tag].event.take().map_err(say)?;
        ensure!(more.count == 0, "it was told twice");
    }
    Ok(spent / TURNS as u64)
}
