//! What happens in the tests, and what must hold at every moment and at the end. Each scene runs
//! once on fresh domains; the checker and the stress tests repeat it.

use super::domains::{Nest, Probe, Tagged, as_client, endow, hand_over, inside, start};
use super::machine::{live_runs, settle, verdict, wrong};
use super::threads::{self, Join, spawn};
use crate::call::handle;
use crate::death::kill::{Patience, ask_to_crash, kill, reaper_round};
use crate::domain::thread::with_root;
use crate::domain::{self, ControlBlock, Reason, State};
use crate::memory::heap::{OBJECTS, PROXIES};
use crate::memory::owner::Owner;
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

    fn kill(&mut self, block: &Arc<ControlBlock>) {
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
        crate::death::undertaker::work_waits();
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

/// Threads that would never leave by themselves get out; one panics meanwhile.
pub fn all_leave(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    let handle: Shared = Arc::new(handle);
    for index in 0..3 {
        let (block, handle) = (block.clone(), handle.clone());
        scene.thread(move || {
            let result = match index {
                0 => judged(&block, || handle.crash(2)),
                _ => judged(&block, || handle.stay()),
            };
            if result != Err(RpcError::DomainCrashed) {
                wrong(format_args!("a thread left a dead domain with {result:?}"));
            }
        });
    }
    scene.reaper();
}

/// A client calls through a domain into another; whichever `dies` is killed.
fn through(scene: &mut Scene, dies: [bool; 3], stay: bool) {
    let (far, far_handle) = scene.domain("far");
    let (near, near_handle) = scene.domain("near");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    near_handle.befriend(Some(far_handle)).expect("both live");
    let blocks = [client.clone(), near.clone(), far];
    scene.thread(move || {
        let _ = as_client(&client, near_handle, |near_handle| {
            let _ = match stay {
                true => attempt(&near, || near_handle.stay_there()),
                false => attempt(&near, || near_handle.relay(2).map(|_| ())),
            };
        });
    });
    for (block, dies) in blocks.iter().zip(dies) {
        if dies {
            scene.kill(block);
        }
    }
    scene.reaper();
}

/// The middle of a chain of three domains dies.
pub fn the_middle_dies(scene: &mut Scene) {
    through(scene, [false, true, false], false);
}

/// The ends of a chain of three domains die, at once.
pub fn the_ends_die(scene: &mut Scene) {
    through(scene, [true, false, true], true);
}

/// All of a chain of three domains die, at once.
pub fn all_die(scene: &mut Scene) {
    through(scene, [true, true, true], true);
}

/// Objects that own objects are moved, kept and lent while giver or receiver dies.
fn exchange(scene: &mut Scene, client_dies: bool) {
    let (server, handle) = scene.domain("server");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    let dies = if client_dies { &client } else { &server };
    scene.kill(&dies.clone());
    for index in 0..2 {
        let (client, server) = (client.clone(), server.clone());
        let handle = handle.duplicate().expect("memory");
        scene.thread(move || {
            let _ = as_client(&client, handle, |handle| {
                let _ = trade(&server, handle, index);
            });
        });
    }
    drop(handle);
    scene.reaper();
}

/// A round of trade with a server.
fn trade(server: &ControlBlock, handle: &Handle<dyn Probe>, index: u32) -> RpcResult<()> {
    if index == 0 {
        let answer = judged(server, || handle.exchange(nest()?))?;
        answer.inner.check("who got it back");
    } else {
        judged(server, || handle.keep(nest()?))?;
        judged(server, || handle.keep(nest()?))?;
    }
    let lent = RRef::new(Tagged::new(9))?;
    let result = judged(server, || handle.lend(&lent, 2));
    lent.check("its owner");
    result.map(|_| ())
}

/// The receiver of objects dies.
pub fn the_receiver_dies(scene: &mut Scene) {
    exchange(scene, false);
}

/// The giver of objects dies, with objects lent.
pub fn the_giver_dies(scene: &mut Scene) {
    exchange(scene, true);
}

/// The last handles to an object are dropped at once, by their holders and by reclaim, perhaps when
/// its domain dies as well.
fn last_drops(scene: &mut Scene, server_dies: bool) {
    let (server, handle) = scene.domain("server");
    let object: Handle<dyn Probe> = handle.give().expect("it lives");
    for index in 0..3 {
        let (client, client_handle) = scene.domain("client");
        drop(client_handle);
        let object = object.duplicate().expect("memory");
        if index == 0 {
            scene.kill(&client);
        }
        let server = server.clone();
        scene.thread(move || {
            let _ = as_client(&client, object, |object| {
                let _ = judged(&server, || object.work(1));
            });
        });
    }
    drop(object);
    if server_dies {
        scene.kill(&server);
    }
    scene.reaper();
    // Whoever holds the server's first handle gives it up last.
    scene.thread(move || drop(handle));
}

/// The last handles are dropped.
pub fn the_last_drop(scene: &mut Scene) {
    last_drops(scene, false);
}

/// The last handles are dropped while the object's domain dies.
pub fn the_last_drop_and_a_death(scene: &mut Scene) {
    last_drops(scene, true);
}

/// The last handles are dropped, and helpers drop the object.
pub fn the_last_drop_by_a_helper(scene: &mut Scene) {
    last_drops(scene, false);
    mark_all(scene);
}

/// The last handles are dropped while the object's domain dies, and helpers drop the object.
pub fn the_last_drop_by_a_helper_and_a_death(scene: &mut Scene) {
    last_drops(scene, true);
    mark_all(scene);
}

/// From now on nobody drops objects of these domains himself.
fn mark_all(scene: &Scene) {
    scene
        .domains
        .iter()
        .for_each(|block| block.drops.may_wait_now());
}

/// Objects are made and freed by two domains while a third, which shares their chunks, is
/// reclaimed.
pub fn frees_beside_reclaim(scene: &mut Scene) {
    let (dying, handle) = scene.domain("dying");
    drop(handle);
    let _ = inside(&dying, || {
        (0..3).for_each(|tag| core::mem::forget(RRef::new(Tagged::new(tag))));
    });
    for _ in 0..2 {
        let (block, handle) = scene.domain("living");
        drop(handle);
        scene.thread(move || {
            let _ = inside(&block, || {
                for tag in 0..3 {
                    let object = RRef::new(Tagged::new(tag)).expect("memory");
                    threads::point();
                    object.check("its owner");
                    let other = RRef::new(Tagged::new(tag)).expect("memory");
                    drop(object);
                    other.check("its owner");
                    // Whatever it keeps goes when it dies.
                    core::mem::forget(other);
                }
            });
        });
    }
    scene.kill(&dying);
    scene.reaper();
}

/// The handles of a dead domain are ended while others drop those that fill the chunk in front, so
/// that the chunk goes and another takes its place.
pub fn drops_beside_reclaim(scene: &mut Scene) {
    let (_server, first) = scene.domain("server");
    let (dying, handle) = scene.domain("dying");
    drop(handle);
    let twin = |_| first.duplicate().expect("memory");
    let front: Vec<_> = (1..4).map(twin).collect();
    for twin in (0..5).map(twin).collect::<Vec<_>>() {
        hand_over(&dying, twin);
    }
    scene.thread(move || {
        threads::dawdle(50);
        drop((first, front));
    });
    scene.kill(&dying);
    scene.reaper();
}

/// While handles are made, change hands and are dropped, somebody looks who holds what. He sees
/// only whole ones.
pub fn a_look_at_handles(scene: &mut Scene) {
    let (server, first) = scene.domain("server");
    let (client, client_handle) = scene.domain("client");
    drop(client_handle);
    let blocks = [server.clone(), client.clone()];
    scene.thread(move || {
        let _ = as_client(&client, first, |first| {
            for _ in 0..3 {
                let twin = first.duplicate().expect("memory");
                threads::point();
                drop((twin, first.give()));
            }
        });
    });
    scene.thread(move || {
        let owners = blocks.iter().map(|block| block.owner());
        let owners = owners.chain([Owner::KERNEL]).cycle();
        // Also behind the first, which is there all the time.
        for (owner, index) in owners.zip([0, 0, 0, 1, 1, 1].into_iter().cycle()).take(18) {
            threads::point();
            if let Some((interface, server)) = handle::held(owner, index)
                && (interface, server.as_str()) != ("Probe", "server")
            {
                wrong(format_args!(
                    "a handle of {interface} to {}",
                    server.as_str()
                ));
            }
        }
    });
    scene.reaper();
}

/// A drop that takes until another domain is cleared away does not keep that from being cleared
/// away.
pub fn a_drop_that_blocks(scene: &mut Scene) {
    let (server, _handle) = scene.domain("server");
    let (holder, _handle) = scene.domain("holder");
    let (other, _handle) = scene.domain("other");
    let (third, _handle) = scene.domain("third");
    endow(&holder, &server, other.clone());
    scene.reaper();
    scene.kill(&third);
    scene.kill(&holder);
    scene.kill(&other);
    scene.joins.drain(..).for_each(Join::join);
    for block in [other, holder] {
        block.wait_gone().expect("the kernel waits");
    }
}

/// A crash that was asked for meets callers and a kill. The domain has no runtime to panic, so the
/// calls fail and it lives on, or dies of the kill.
pub fn asked_to_crash(scene: &mut Scene) {
    let (block, handle) = scene.domain("callee");
    let handle: Shared = Arc::new(handle);
    for _ in 0..2 {
        let handle = handle.clone();
        scene.thread(move || {
            for _ in 0..2 {
                let _ = handle.work(1);
            }
        });
    }
    scene.kill(&block);
    scene.thread(move || {
        ask_to_crash(&block);
        if block.state() == State::Dying && block.is_alive() {
            wrong(format_args!("a dead domain came to life again"));
        }
    });
    scene.reaper();
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
