//! Requests, and the slots that they take: many threads, each waiting for its own; one thread takes
//! completions.
//!
//! A slot is the room for one request: a header, a status byte and data: a page, or
//! [`SLOT_BYTES`](crate::bring_up::SLOT_BYTES). Its states, guarded by the lock of [`Disk::state`]:
//!
//! ```text
//! Free -> Taken -> WithDevice -> Done -> Free     as usual
//!                  WithDevice -> Abandoned -> Free  the waiting thread was interrupted; the device still
//!                                                   has the request, so the slot cannot be used before
//! ```
//! The memory of a slot belongs to the thread that took it, but for WithDevice and Abandoned, when
//! it belongs to the device. The lock is held for queue work only, never while data is copied. Who
//! has requests with the device and finds no free slot waits for its own requests, never for a
//! slot: so nobody waits for somebody who waits.
//!
//! The requests of block queues have places in the same virtqueue: see [`queues`](crate::queues).

use crate::bring_up::{CONTROL_BYTES, Config, Parts, Room, STATUS_OFFSET};
use crate::places::Places;
use crate::queues::{Given, Lane};
use crate::window::{Rings, Window};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use domain_rt::io::DmaBuffer;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, time};
use interfaces::{BlockError, DmaAllocator, Geometry, Handle, PciDevice, RVec, RpcError};
use virtio::block::{self, Command, FLUSH, HEADER_BYTES, READ_ONLY, Status};
use virtio::device::{self, Registers};
use virtio::queue::{Buffer, Chain, Queue};

/// The longest that a request may take, in nanoseconds.
pub(crate) const PATIENCE: u64 = 10_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Free,
    Taken,
    WithDevice(Chain),
    Abandoned(Chain),
    Done { written: u32 },
}

/// Whose a chain is that is with the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    Slot(usize),
    Place(usize),
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) queue: Queue,
    slots: Vec<Slot>,
    /// For each descriptor, whose chain begins there.
    pub(crate) holders: Vec<Holder>,
    /// Slots whose requests are with the device.
    blocking: usize,
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
    /// A slot became free.
    freed: Condvar,
    /// The request in this slot came back.
    done: Vec<Condvar>,
    /// No request of an older block queue is with the device any more.
    pub(crate) ended: Condvar,
    /// There are requests to be watched.
    pub(crate) watched: Condvar,
    pub(crate) rings: Rings,
    control: DmaBuffer,
    data: Vec<Room>,
    pub(crate) places: Option<Places>,
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
        let slots = parts.data.len();
        let places = parts.places.as_ref().map_or(0, Places::count);
        let descriptors = usize::from(parts.queue.free());
        Disk {
            state: Mutex::new(State {
                queue: parts.queue,
                slots: vec![Slot::Free; slots],
                holders: vec![Holder::Nobody; descriptors],
                blocking: 0,
                lane: None,
                lanes: 0,
                given: (0..places).map(|_| None).collect(),
                free: (0..places).collect(),
                chain: Vec::new(),
                addresses: None,
                unwatched: false,
                gone: false,
            }),
            freed: Condvar::new(),
            done: (0..slots).map(|_| Condvar::new()).collect(),
            ended: Condvar::new(),
            watched: Condvar::new(),
            rings: parts.rings,
            control: parts.control,
            data: parts.data,
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
            self.data.len()
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
            if is_polled && state.blocking == 0 {
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
        let holder = &mut state.holders[usize::from(chain.0)];
        match core::mem::replace(holder, Holder::Nobody) {
            Holder::Nobody => {}
            Holder::Place(place) => self.place_completed(state, place, written),
            Holder::Slot(number) => {
                state.blocking -= 1;
                if let Slot::Abandoned(_) = state.slots[number] {
                    state.slots[number] = Slot::Free;
                    return self.freed.notify_all();
                }
                state.slots[number] = Slot::Done { written };
                self.done[number].notify_all();
            }
        }
    }

    /// Stops the device. Every request, waiting or to come, fails.
    pub(crate) fn give_up(&self, state: &mut State) {
        state.gone = true;
        match device::reset(&self.common, 1000, || ()) {
            Ok(()) => state.release_all(),
            Err(_) => log!("and it does not even finish a reset"),
        }
        self.freed.notify_all();
        self.ended.notify_all();
        self.done.iter().for_each(Condvar::notify_all);
    }

    /// A free slot for so many bytes. If there is none: waits for one if `patient`, else `None`.
    pub(crate) fn take_slot(
        &self,
        bytes: usize,
        patient: bool,
    ) -> Result<Option<usize>, BlockError> {
        let deadline = time::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            if state.gone {
                return Err(BlockError::Gone);
            }
            // Small slots come first, so that big ones are left for who needs them.
            let fits = |(number, slot): (usize, &Slot)| {
                *slot == Slot::Free && bytes <= self.data[number].length()
            };
            if let Some(free) = state.slots.iter().enumerate().position(fits) {
                state.slots[free] = Slot::Taken;
                return Ok(Some(free));
            }
            if !patient {
                return Ok(None);
            }
            let wait;
            (state, wait) = self.freed.wait_until(state, deadline);
            match wait {
                Wait::Woken => {}
                Wait::Interrupted => return Err(BlockError::Rpc(RpcError::Interrupted)),
                Wait::TimedOut => return Err(BlockError::Gone),
            }
        }
    }

    /// The data of a slot.
    pub(crate) fn data(&self, slot: usize) -> &Room {
        &self.data[slot]
    }

    pub(crate) fn free_slot(&self, slot: usize) {
        self.state.lock().slots[slot] = Slot::Free;
        self.freed.notify_all();
    }

    /// Lets go of a request that nobody waits for any more. The device may still have it.
    pub(crate) fn abandon(&self, slot: usize, chain: Chain) {
        let mut state = self.state.lock();
        state.slots[slot] = match state.slots[slot] {
            Slot::WithDevice(own) if own == chain && !state.gone => Slot::Abandoned(chain),
            _ => Slot::Free,
        };
        self.freed.notify_all();
    }

    /// Puts the request in a slot into the queue. The device looks at it after
    /// [`notify`](Self::notify) at the latest. On an error the slot is not the caller's any more.
    pub(crate) fn submit(
        &self,
        slot: usize,
        command: Command,
        sector: u64,
        bytes: usize,
    ) -> Result<Chain, BlockError> {
        let control = slot * CONTROL_BYTES;
        self.control
            .write_bytes(control, &block::header(command, sector));
        self.control
            .write_bytes(control + STATUS_OFFSET, &[block::STATUS_UNSET]);
        let buffers = self.buffers(slot, command, bytes);
        let used = if bytes == 0 {
            [buffers[0], buffers[2], buffers[2]]
        } else {
            buffers
        };
        let count = if bytes == 0 { 2 } else { 3 };
        let mut state = self.state.lock();
        if state.gone {
            state.slots[slot] = Slot::Free;
            return Err(BlockError::Gone);
        }
        let chain = state.queue.add(&self.rings, &used[..count]);
        let chain = chain.expect("the queue has three descriptors for every slot");
        state.slots[slot] = Slot::WithDevice(chain);
        state.holders[usize::from(chain.0)] = Holder::Slot(slot);
        state.blocking += 1;
        // A block queue may have done without interrupts until now.
        if state.blocking == 1 && state.lane.is_some() {
            self.settle(&mut state);
            Self::raise(state);
        }
        Ok(chain)
    }

    /// Tells the device that there are requests, if it wants to know.
    pub(crate) fn notify(&self) {
        self.notify_locked(&mut self.state.lock());
    }

    /// As [`notify`](Self::notify), for who has the lock.
    pub(crate) fn notify_locked(&self, state: &mut State) {
        if state.queue.wants_notification(&self.rings) {
            // Section 4.1.5.2: the notification is the queue's number.
            self.notify.write16(0, 0);
        }
    }

    /// Waits for a request; whether it did all that it was asked. The slot is then the caller's
    /// again; on an error it is not.
    pub(crate) fn wait(
        &self,
        slot: usize,
        chain: Chain,
        command: Command,
        bytes: usize,
    ) -> Result<bool, BlockError> {
        let written = self.wait_for(slot, chain)?;
        let mut status = [0];
        self.control
            .read_bytes(slot * CONTROL_BYTES + STATUS_OFFSET, &mut status);
        let status = Status::from_byte(status[0]);
        Ok(block::is_complete(command, status, written, bytes))
    }

    fn buffers(&self, slot: usize, command: Command, bytes: usize) -> [Buffer; 3] {
        let control = self.control.device_address() + (slot * CONTROL_BYTES) as u64;
        let data = self.data[slot].device_address();
        [
            Buffer {
                address: control,
                length: HEADER_BYTES as u32,
                device_writes: false,
            },
            Buffer {
                address: data,
                length: bytes as u32,
                device_writes: command == Command::Read,
            },
            Buffer {
                address: control + STATUS_OFFSET as u64,
                length: 1,
                device_writes: true,
            },
        ]
    }

    /// Waits until the device is done with a slot; how many bytes it wrote.
    fn wait_for(&self, slot: usize, chain: Chain) -> Result<u32, BlockError> {
        let deadline = time::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            if let Slot::Done { written } = state.slots[slot] {
                state.slots[slot] = Slot::Taken;
                return Ok(written);
            }
            if state.gone {
                return Err(BlockError::Gone);
            }
            let wait;
            (state, wait) = self.done[slot].wait_until(state, deadline);
            let still_waiting = state.slots[slot] == Slot::WithDevice(chain);
            match wait {
                Wait::Interrupted if still_waiting => {
                    state.slots[slot] = Slot::Abandoned(chain);
                    return Err(BlockError::Rpc(RpcError::Interrupted));
                }
                Wait::TimedOut if still_waiting && !state.gone => {
                    log!("the device does not answer");
                    self.give_up(&mut state);
                }
                _ => {}
            }
        }
    }
}
