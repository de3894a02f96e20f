//! What happens in the tests, and what must hold at every moment and at the end. Each scene runs
//! once on fresh domains; the checker and the stress tests repeat it.

mod chains;
mod drops;

pub use chains::{all_die, all_leave, asked_to_crash, the_ends_die, the_middle_dies};
pub use drops::{
    a_drop_that_blocks, a_look_at_handles, drops_beside_reclaim, frees_beside_reclaim,
    the_giver_dies, the_last_drop, the_last_drop_and_a_death, the_last_drop_by_a_helper,
    the_last_drop_by_a_helper_and_a_death, the_receiver_dies,
};

use super::domains::{Nest, Probe, Tagged, as_client, endow, hand_over, inside, start};
use super::machine::{live_runs, settle, verdict, wrong};
use super::threads::{self, Join, spawn};
use crate::call::thread::with_root;
use crate::death::kill::{Patience, kill, reaper_round};
use crate::domain::{self, ControlBlock, Reason, State};
use crate::memory::heap::{OBJECTS, PROXIES};
use abi::handle::Handle;
use abi::{RRef, RpcError, RpcResult};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::string::String;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

type Shared = Arc<Handle<dyn Probe>>;

/// One run of a scene.
#[derive(Default)]
pub struct Scene {
    joins: Vec<Join>,
    domains: Vec<Arc<ControlBlock>>,
}

static OVER: AtomicBool = AtomicBool::new(false);

/// Whether the scene is over, so that the threads which never end have to.
pub fn is_over() -> bool {
    OVER.load(Ordering::Acquire)
}

/// Threads that the platform was asked for.
static DETACHED: Mutex<Vec<Join>> = Mutex::new(Vec::new());

/// Has the end of the scene wait for a thread that nobody else waits for.
pub fn detach(join: Join) {
    DETACHED.lock().expect("not poisoned").push(join);
}

impl Scene {
    pub fn domain(&mut self, name: &str) -> (Arc<ControlBlock>, Handle<dyn Probe>) {
        self.counting_domain(name, 0)
    }

    /// A domain, and the reaper for its end.
    pub fn domain_with_reaper(&mut self) -> Arc<ControlBlock> {
        let (block, _) = self.domain("domain");
        self.reaper();
        block
    }

    /// A domain that lets in so many calls at a time.
    fn counting_domain(
        &mut self,
        name: &str,
        calls: u32,
    ) -> (Arc<ControlBlock>, Handle<dyn Probe>) {
        let (block, handle) = start(name, calls);
        self.domains.push(block.clone());
        (block, handle)
    }

    /// A thread of the kernel's.
    fn thread(&mut self, body: impl FnOnce() + Send + 'static) {
        self.joins.push(spawn(move || with_root(body)));
    }

    pub(super) fn kill(&mut self, block: &Arc<ControlBlock>) {
        let block = block.clone();
        self.thread(move || {
            threads::dawdle(50);
            kill(&block, Reason::Killed);
        });
    }

    /// The reaper, which calls for undertakers.
    pub fn reaper(&mut self) {
        detach(spawn(|| {
            with_root(|| {
                let mut patience = Patience::default();
                while !is_over() {
                    reaper_round(&mut patience);
                }
            });
        }));
    }

    /// Waits for all, ends what lives, and looks what is left: nothing.
    fn finish(self) {
        self.joins.into_iter().for_each(Join::join);
        for block in &self.domains {
            kill(block, Reason::Killed);
        }
        for block in &self.domains {
            block.wait_gone().expect("the kernel waits");
        }
        OVER.store(true, Ordering::Release);
        // This wakes the reaper as well.
        crate::domain::queues::work_waits();
        loop {
            let join = DETACHED.lock().expect("not poisoned").pop();
            let Some(join) = join else { break };
            join.join();
        }
        for block in &self.domains {
            if Arc::strong_count(block) != 1 {
                wrong(format_args!(
                    "an export or the table still names a dead domain"
                ));
            }
        }
        all_is_gone();
    }
}

fn all_is_gone() {
    for (heap, what) in [(&OBJECTS, "shared objects"), (&PROXIES, "proxies")] {
        match heap.audit() {
            Ok(0) => {}
            Ok(count) => wrong(format_args!("{count} {what} are left")),
            Err(why) => wrong(format_args!("{what}: {why}")),
        }
    }
    let kept = (OBJECTS.bytes() + PROXIES.bytes()) / abi::shared::CHUNK_BYTES;
    if live_runs() != kept {
        wrong(format_args!(
            "{} runs of pages are left, {kept} of them the heaps'",
            live_runs()
        ));
    }
    if domain::next(0).is_some() {
        wrong(format_args!("a domain is left in the table"));
    }
}

/// Runs a scene; what went wrong, if anything.
pub fn play(scene: fn(&mut Scene)) -> Option<String> {
    super::machine::set_up();
    threads::run(|| {
        with_root(|| {
            OVER.store(false, Ordering::Release);
            let mut run = Scene::default();
            scene(&mut run);
            run.finish();
        });
    });
    settle();
    verdict()
}

/// Makes a call into `block`. None that begins after the death may come in.
fn attempt<T>(block: &ControlBlock, call: impl FnOnce() -> RpcResult<T>) -> RpcResult<T> {
    let dead = block.state() == State::Dying || block.state() == State::Gone;
    let result = call();
    if dead && result.is_ok() {
        wrong(format_args!("a call came in that began after the death"));
    }
    result
}

/// As [`attempt`], of a call that goes no further: nobody hears of a death that did not happen.
fn judged<T>(block: &ControlBlock, call: impl FnOnce() -> RpcResult<T>) -> RpcResult<T> {
    let result = attempt(block, call);
    if matches!(result, Err(RpcError::DomainCrashed)) && block.is_alive() {
        wrong(format_args!(
            "an error tells of a death that did not happen"
        ));
    }
    result
}

fn nest() -> RpcResult<RRef<Nest>> {
    RRef::new(Nest {
        inner: RRef::new(Tagged::new(5))?,
    })
}

/// A thread calls a domain while it is killed: the smallest scene, in which a wrong order is found
/// soonest.
pub fn a_call_and_a_kill(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    scene.reaper();
    scene.kill(&block);
    scene.thread(move || {
        for _ in 0..3 {
            let _ = judged(&block, || handle.work(6));
        }
    });
}

/// A thread gives and takes an object while the other side is killed.
pub fn a_gift_and_a_kill(scene: &mut Scene) {
    let (server, handle) = scene.domain("server");
    scene.reaper();
    scene.kill(&server);
    scene.thread(move || {
        for _ in 0..2 {
            let answer = nest().and_then(|nest| judged(&server, || handle.exchange(nest)));
            threads::point();
            if let Ok(answer) = answer {
                answer.inner.check("who got it back");
            }
        }
    });
}

/// Two threads call a domain while it is killed.
pub fn calls_and_a_kill(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    let handle: Shared = Arc::new(handle);
    for _ in 0..2 {
        let (block, handle) = (block.clone(), handle.clone());
        scene.thread(move || {
            threads::dawdle(20);
            for steps in 0..3 {
                let _ = judged(&block, || handle.work(steps));
            }
        });
    }
    scene.kill(&block);
    scene.reaper();
}

/// Three threads call a domain that lets in two at a time, while it is killed; none of them is
/// counted twice or for ever.
pub fn counted_calls_and_a_kill(scene: &mut Scene) {
    let (block, handle) = scene.counting_domain("callee", 2);
    let handle: Shared = Arc::new(handle);
    for _ in 0..3 {
        let (block, handle) = (block.clone(), handle.clone());
        scene.thread(move || {
            for _ in 0..2 {
                let _ = judged(&block, || handle.work(2));
            }
        });
    }
    scene.kill(&block);
    scene.reaper();
    scene.joins.drain(..).for_each(Join::join);
    let inside = block.counters.calls_inside.load(Ordering::Relaxed);
    if inside != 0 {
        wrong(format_args!(
            "{inside} calls are counted, none is under way"
        ));
    }
}

/// A domain runs short of memory and recovers, again and again, while others call it and it is
/// killed. While it is short only what frees comes in, counted where calls are counted; and it does
/// not come to life again.
fn short(scene: &mut Scene, calls: u32) {
    let (block, handle) = scene.counting_domain("callee", calls);
    let handle: Shared = Arc::new(handle);
    let (other, of_other) = (block.clone(), handle.clone());
    scene.thread(move || {
        for _ in 0..2 {
            let _ = judged(&other, || of_other.release(1));
            let _ = judged(&other, || of_other.work(1));
        }
    });
    scene.kill(&block);
    let callee = block.clone();
    scene.thread(move || {
        for _ in 0..2 {
            let is_short = judged(&callee, || handle.run_short(true, 1)).is_ok();
            let refused = judged(&callee, || handle.work(1));
            if is_short && refused.is_ok() {
                wrong(format_args!("a domain without memory let a call in"));
            }
            let freed = judged(&callee, || handle.release(1));
            if freed == Err(RpcError::NoMemory) {
                wrong(format_args!("a call that frees was refused"));
            }
            let _ = judged(&callee, || handle.run_short(false, 1));
            if callee.state() == State::Dying && callee.is_alive() {
                wrong(format_args!("a dead domain came to life again"));
            }
        }
    });
    scene.reaper();
    scene.joins.drain(..).for_each(Join::join);
    let inside = block.counters.calls_inside.load(Ordering::Relaxed);
    if inside != 0 {
        wrong(format_args!(
            "{inside} calls are counted, none is under way"
        ));
    }
}

/// As it says.
pub fn short_of_memory_and_a_kill(scene: &mut Scene) {
    short(scene, 0);
}

/// As it says, where calls are counted.
pub fn short_and_counted_and_a_kill(scene: &mut Scene) {
    short(scene, 2);
}

/// Numbers of instances are never given twice, whoever starts and ends domains at the same time.
pub fn numbers(scene: &mut Scene) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let seen = seen.clone();
        scene.thread(move || {
            for _ in 0..2 {
                let (block, handle) = start("short", 0);
                drop(handle);
                seen.lock().expect("not poisoned").push(block.id);
                kill(&block, Reason::Killed);
                block.wait_gone().expect("the kernel waits");
            }
        });
    }
    scene.reaper();
    core::mem::take(&mut scene.joins)
        .into_iter()
        .for_each(Join::join);
    let mut seen = seen.lock().expect("not poisoned").clone();
    seen.sort_unstable();
    let before = LAST.swap(seen[seen.len() - 1], Ordering::Relaxed);
    if seen[0] <= before || seen.windows(2).any(|pair| pair[0] == pair[1]) {
        wrong(format_args!("numbers after {before}: {seen:?}"));
    }
}

/// A test for each scene, which gives it to `$run`.
macro_rules! each {
    ($run:ident) => {
        $crate::model::scenes::each!(
            $run:
            a_call_and_a_kill,
            a_gift_and_a_kill,
            calls_and_a_kill,
            counted_calls_and_a_kill,
            short_of_memory_and_a_kill,
            short_and_counted_and_a_kill,
            all_leave,
            the_middle_dies,
            the_ends_die,
            all_die,
            the_receiver_dies,
            the_giver_dies,
            the_last_drop,
            the_last_drop_and_a_death,
            the_last_drop_by_a_helper,
            the_last_drop_by_a_helper_and_a_death,
            frees_beside_reclaim,
            drops_beside_reclaim,
            a_look_at_handles,
            a_drop_that_blocks,
            asked_to_crash,
            numbers
        );
    };
    ($run:ident: $($name:ident),*) => { $(
        #[test]
        fn $name() {
            $run(scenes::$name);
        }
    )* };
}

pub(crate) use each;
