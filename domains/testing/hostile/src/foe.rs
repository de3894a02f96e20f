//! A domain that attacks: threads that take one step after the other.
//!
//! A step is a call of a method of one of the handles, most of the time; otherwise a handle is
//! dropped or duplicated. The director may kill the domain at any moment, so nothing here is put in
//! order behind a step.

use crate::arsenal::Arsenal;
use crate::random::Random;
use crate::rogue::Temper;
use crate::score::THREADS;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{Debug, Display, Write};
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{log, thread};
use hostile_calls::{METHODS, Mind, Source};
use interfaces::{AnyHandle, Closed, Foe, Handle, Interface, Order, Referee, RpcError, RpcResult};

/// Most characters of the arguments of a call that a line of the log shows.
const SHOWN: usize = 160;

/// What the threads of a foe share.
pub struct Shared {
    arsenal: Arsenal,
    referee: Handle<dyn Referee>,
    /// How deep answers of rogues have led into further calls.
    depth: AtomicU32,
    loud: AtomicU32,
}

impl Shared {
    /// Does `work`, unless `deepest` others are under way.
    pub fn deeper(&self, deepest: u32, work: impl FnOnce()) {
        if self.depth.fetch_add(1, Ordering::Relaxed) < deepest {
            work();
        }
        self.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The object that the director calls.
pub struct Attacker(Arc<Shared>);

impl Attacker {
    /// A foe with no handle yet.
    pub fn new(referee: Handle<dyn Referee>) -> Self {
        Attacker(Arc::new(Shared {
            arsenal: Arsenal::default(),
            referee,
            depth: AtomicU32::new(0),
            loud: AtomicU32::new(0),
        }))
    }
}

impl Foe for Attacker {
    fn arm(&self, target: AnyHandle) -> RpcResult<()> {
        self.0.arsenal.take(target, &mut Random::of(0, 0));
        Ok(())
    }

    fn attack(&self, order: Order) -> RpcResult<()> {
        self.0.loud.store(u32::from(order.loud), Ordering::Relaxed);
        for number in 0..order.threads.min(THREADS as u32) {
            let shared = self.0.clone();
            let random = Random::of(order.seed, u64::from(number));
            thread::spawn("foe", move || {
                let mut hand = Hand::new(shared, random, number);
                (0..order.calls).for_each(|_| hand.step(order.only as usize));
                let _ = hand.shared.referee.left(number);
            })?;
        }
        Ok(())
    }
}

/// What one thread of a foe works with.
pub struct Hand {
    shared: Arc<Shared>,
    random: Random,
    thread: u32,
    method: usize,
}

impl Hand {
    /// The hand of thread number `thread`.
    pub fn new(shared: Arc<Shared>, random: Random, thread: u32) -> Self {
        Hand {
            shared,
            random,
            thread,
            method: usize::MAX,
        }
    }

    /// One step; with a call of method number `only`, if there is one with that number.
    pub fn step(&mut self, only: usize) {
        let shared = self.shared.clone();
        let arsenal = &shared.arsenal;
        if only < METHODS.len() {
            return self.call_only(only);
        }
        match self.random.below(16) {
            0 => drop(arsenal.remove(0, &mut self.random)),
            1 => {
                if let Some(twin) = arsenal.copy(0, &mut self.random) {
                    arsenal.take(twin, &mut self.random);
                }
            }
            _ => {
                if let Some(method) = arsenal.method(&mut self.random) {
                    self.call(method);
                }
            }
        }
    }

    /// Calls one method, or what may give a handle on which it can be called.
    fn call_only(&mut self, method: usize) {
        let shared = self.shared.clone();
        let interface = METHODS[method].interface;
        let is_rare = self.random.once_in(8);
        if !is_rare && self.call(method) {
            return;
        }
        if let Some(source) = shared.arsenal.source_of(interface, &mut self.random) {
            self.call(source);
        }
    }

    /// Calls a method on one of the handles; whether there was one.
    fn call(&mut self, method: usize) -> bool {
        let interface = METHODS[method].interface;
        let Some(target) = self.shared.arsenal.copy(interface, &mut self.random) else {
            return false;
        };
        self.call_on(target, method);
        true
    }

    /// Calls a method on this handle.
    fn call_on(&mut self, target: AnyHandle, method: usize) {
        let (shared, what) = (self.shared.clone(), &METHODS[method]);
        let outside = core::mem::replace(&mut self.method, method);
        let outcome = (what.call)(target, self);
        let _ = shared
            .referee
            .ended(self.thread, method as u32, outcome as u32);
        self.method = outside;
    }

    /// Calls each method of a handle that is not kept.
    fn use_once(&mut self, handle: &AnyHandle) {
        let interface = handle.interface();
        for method in (0..METHODS.len()).filter(|it| METHODS[*it].interface == interface) {
            if let Ok(twin) = handle.duplicate() {
                self.call_on(twin, method);
            }
        }
    }

    fn is_loud(&self) -> bool {
        self.shared.loud.load(Ordering::Relaxed) != 0
    }

    fn name(&self) -> (&'static str, &'static str) {
        METHODS
            .get(self.method)
            .map_or(("", ""), |it| (it.of, it.name))
    }
}

impl Source for Hand {
    fn random(&mut self) -> u64 {
        self.random.next()
    }

    fn known_number(&mut self) -> Option<u64> {
        self.shared.arsenal.number(&mut self.random)
    }

    fn handle(&mut self, interface: u64) -> Option<AnyHandle> {
        match self.random.below(8) {
            0 if interface != 0 => None,
            1 => self.shared.arsenal.remove(interface, &mut self.random),
            _ => self.shared.arsenal.copy(interface, &mut self.random),
        }
    }

    fn mind(&mut self) -> Arc<dyn Mind> {
        let random = Random::of(self.random.next(), 1);
        Arc::new(Temper::new(self.shared.clone(), random, self.thread))
    }

    fn keep_number(&mut self, number: u64) {
        self.shared.arsenal.keep_number(number, &mut self.random);
    }

    fn keep_handle(&mut self, handle: AnyHandle) {
        if handle.interface() == <dyn Closed>::NUMBER {
            return self.use_once(&handle);
        }
        if let Some(method) = METHODS.get(self.method) {
            self.shared.arsenal.keep(handle, method, &mut self.random);
        }
    }

    fn begins(&mut self, arguments: &dyn Display) {
        if self.is_loud() {
            let (of, name) = self.name();
            let mut text = Cut(String::new());
            let _ = write!(text, "{arguments}");
            log!("{} {of}.{name}({})", self.thread, text.0);
        }
        let _ = self.shared.referee.begins(self.thread, self.method as u32);
    }

    fn failed(&mut self, error: &dyn Debug) {
        if self.is_loud() {
            let (of, name) = self.name();
            let mut text = Cut(String::new());
            let _ = write!(text, "{error:?}");
            log!("{} {of}.{name} -> {}", self.thread, text.0);
        }
    }
}

/// Text that is cut when it is long enough: an argument may be many megabytes.
struct Cut(String);

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = SHOWN.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(room.min(text.len()));
        self.0.push_str(&text[..end]);
        if end < text.len() {
            Err(core::fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// What the director is told when a foe cannot be made.
pub fn no_foe(error: RpcError) -> String {
    alloc::format!("no foe: {error}")
}
