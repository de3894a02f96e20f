//! The device, and what it has: the requests of block queues ([`queues`](crate::queues)), each in a
//! place of its own.

use crate::bring_up::{Config, Parts};
use crate::places::Places;
use crate::queues::{Given, Lane};
use crate::window::{Rings, Window};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex};
use interfaces::{DmaAllocator, Geometry, Handle, PciDevice, RVec};
use virtio::block::{FLUSH, READ_ONLY};
use virtio::device::{self, Registers};
use virtio::queue::{Buffer, Chain, Queue};

/// The longest that a request may take, in nanoseconds.
pub(crate) const PATIENCE: u64 = 10_000_000_000;

/// What the lock guards.
pub(crate) struct State {
    pub(crate) queue: Queue,
    /// For each descriptor, the place of the request whose chain begins there.
    pub(crate) holders: Vec<Option<usize>>,
    /// The block queue that is open.
    pub(crate) lane: Option<Box<Lane>>,
    /// How many were opened.
    pub(crate) lanes: u64,
    /// What the requests in their places are.
    pub(crate) given: Vec<Option<Given>>,
    /// Places that are free.
    pub(crate) free: Vec<usize>,
    /// Room for the pieces of one request's memory.
    pub(crate) chain: Vec<Buffer>,
    /// Room for the addresses of its pages.
    pub(crate) addresses: Option<RVec<u64>>,
    /// The thread that looks for requests that take too long has nothing to look for.
    pub(crate) unwatched: bool,
    /// The device broke the rules or does not answer.
    pub(crate) gone: bool,
}

/// The device.
pub struct Disk {
    pub(crate) state: Mutex<State>,
    /// No request of an older block queue is with the device any more.
    pub(crate) ended: Condvar,
    /// There are requests to be watched.
    pub(crate) watched: Condvar,
    pub(crate) rings: Rings,
    pub(crate) places: Places,
    pub(crate) allocator: Handle<dyn DmaAllocator>,
    common: Window,
    notify: Window,
    pub(crate) config: Config,
    pub(crate) read_only: bool,
    has_flush: bool,
    _function: Handle<dyn PciDevice>,
}

impl Disk {
    /// A device that was just brought up.
    pub fn new(parts: Parts) -> Self {
        let places = parts.places.count();
        let descriptors = usize::from(parts.queue.free());
        Disk {
            state: Mutex::new(State {
                queue: parts.queue,
                holders: vec![None; descriptors],
                lane: None,
                lanes: 0,
                given: (0..places).map(|_| None).collect(),
                free: (0..places).collect(),
                chain: Vec::new(),
                addresses: None,
                unwatched: false,
                gone: false,
            }),
            ended: Condvar::new(),
            watched: Condvar::new(),
            rings: parts.rings,
            places: parts.places,
            allocator: parts.allocator,
            common: parts.common,
            notify: parts.notify,
            config: parts.config,
            read_only: parts.features & READ_ONLY != 0,
            has_flush: parts.features & FLUSH != 0,
            _function: parts.function,
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            sectors: self.config.sectors,
            read_only: self.read_only,
        }
    }

    /// Whether it has a cache that is flushed by command.
    pub fn has_flush(&self) -> bool {
        self.has_flush
    }

    /// Says in the log what was found.
    pub fn announce(&self) {
        let kind = if self.read_only { ", read-only" } else { "" };
        log!(
            "{} sectors of 512 bytes{kind}, {} requests at once",
            self.config.sectors,
            self.places.count()
        );
    }

    /// An interrupt came: takes everything that the device completed and wakes who waits for it.
    pub fn take_completions(&self) {
        let mut state = self.state.lock();
        if state.gone {
            return;
        }
        let any = self.settle(&mut state);
        // An interrupt without a completion may be the device's call for help. It may also be one
        // for what was looked for and taken before it came.
        if !any && !device::is_healthy(&self.common) {
            log!("the device asks for a reset");
            self.give_up(&mut state);
        }
        Self::raise(state);
    }

    /// Takes everything that the device completed, gives it what can be given now, and says whether
    /// an interrupt is wanted for the next completion. Whether there was any.
    pub(crate) fn settle(&self, state: &mut State) -> bool {
        let mut any = false;
        loop {
            any |= self.drain(state);
            self.pump(state);
            if state.gone {
                return any;
            }
            let is_polled = state.lane.as_ref().is_some_and(|lane| lane.is_polled());
            if is_polled {
                state.queue.want_no_interrupt(&self.rings);
                return any;
            }
            if !state.queue.want_interrupt(&self.rings) {
                return any;
            }
        }
    }

    /// Takes everything that the device completed; whether there was any.
    fn drain(&self, state: &mut State) -> bool {
        let mut any = false;
        while !state.gone {
            match state.queue.take(&self.rings) {
                Ok(Some(completion)) => {
                    any = true;
                    self.completed(state, completion.chain, completion.written);
                }
                Ok(None) => break,
                Err(fault) => {
                    log!("the device breaks the rules: {fault}");
                    self.give_up(state);
                }
            }
        }
        any
    }

    fn completed(&self, state: &mut State, chain: Chain, written: u32) {
        if let Some(place) = state.holders[usize::from(chain.0)].take() {
            self.place_completed(state, place, written);
        }
    }

    /// Stops the device. No queue to it does anything any more.
    pub(crate) fn give_up(&self, state: &mut State) {
        state.gone = true;
        match device::reset(&self.common, 1000, || ()) {
            Ok(()) => state.release_all(),
            Err(_) => log!("and it does not even finish a reset"),
        }
        self.ended.notify_all();
    }

    /// Tells the device that there are requests, if it wants to know.
    pub(crate) fn notify(&self, state: &mut State) {
        if state.queue.wants_notification(&self.rings) {
            // Section 4.1.5.2: the notification is the queue's number.
            self.notify.write16(0, 0);
        }
    }
}
