//! The disk: what all pairs of queues ([`line`](crate::line)) share.
//!
//! A queue that has a raiser uses the pairs that interrupt, and one that is polled the one that
//! does not.

use alloc::vec::Vec;

use domain_rt::sync::Mutex;
use interfaces::{Geometry, Handle, PciDevice, QueueLimits};
use lanes::start::Order;
use lanes::{Batch, Device, Lanes};
use nvme_queues::PAGE;
use nvme_queues::command;
use nvme_queues::identify::Controller;
use nvme_queues::registers::{self, Capabilities};

use crate::bring_up::{AdminQueue, Parts};
use crate::line::Line;
use crate::memory::{MOST_PAGES, Window};

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Sectors that are discarded at once: a gigabyte.
const MOST_DISCARDED: u32 = 1 << 21;

/// See the module.
pub struct Disk {
    pub lanes: Lanes,
    pub lines: Vec<Line>,
    order: Order,
    /// Only the thread that watches uses it.
    pub admin: Mutex<AdminQueue>,
    pub registers: Window,
    pub capabilities: Capabilities,
    pub controller: Controller,
    /// The namespace's number.
    pub number: u32,
    _function: Handle<dyn PciDevice>,
}

impl Disk {
    /// A controller that was just brought up.
    pub fn new(parts: Parts) -> Self {
        let limits = QueueLimits {
            sectors: parts.namespace.blocks,
            read_only: parts.namespace.read_only,
            request_sectors: request_sectors(&parts.controller),
            discard_sectors: discard_sectors(&parts.controller),
            zeroes_sectors: zeroes_sectors(&parts.controller),
            requests: 0,
            slots: 0,
        };
        Disk {
            lanes: Lanes::new(parts.allocator, limits),
            order: Order::new(parts.lines.len()),
            lines: parts.lines,
            admin: Mutex::new(parts.admin),
            registers: parts.registers,
            capabilities: parts.capabilities,
            controller: parts.controller,
            number: parts.number,
            _function: parts.function,
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> Geometry {
        let limits = self.lanes.limits();
        Geometry {
            sectors: limits.sectors,
            read_only: limits.read_only,
        }
    }

    /// An interrupt of a line came: takes all its answers, and tells who waits for them.
    pub fn take_answers(&self, line: usize) {
        self.settle_those(&self.lines[line..=line]);
        self.lanes.raise();
    }

    fn settle_those(&self, lines: &[Line]) {
        let settled = lines.iter().try_for_each(|line| line.settle(self));
        if settled.is_err() {
            self.give_up();
        }
    }
}

impl Device for Disk {
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn give(&self, batch: &mut Batch) {
        // What has no room on one line has it on the next, if it is of the same kind.
        let _ = self
            .order
            .from_here()
            .any(|line| self.lines[line].give(self, batch));
    }

    fn settle(&self) {
        self.settle_those(&self.lines);
    }

    /// Has the controller reset itself. Every request, waiting or to come, fails; the thread that
    /// watches waits for the end of the reset.
    fn give_up(&self) {
        registers::begin_reset(&self.registers);
        self.lines.iter().for_each(|line| line.stop(false));
        self.lanes.give_up();
    }
}

/// Sectors of a request with data: within the controller's limit and that of a place, and one page
/// less, since a request need not begin with one.
fn request_sectors(controller: &Controller) -> u32 {
    let limit = controller.most_bytes.unwrap_or(usize::MAX);
    (limit.min((MOST_PAGES - 1) * PAGE) as u64 / SECTOR) as u32
}

/// Sectors of a request that discards; 0: the controller cannot.
fn discard_sectors(controller: &Controller) -> u32 {
    match controller.has_discard {
        true => MOST_DISCARDED,
        false => 0,
    }
}

/// Sectors that can be filled with zeros at once; 0: the controller cannot. Before version 2.0 no
/// other limit than that of data is told.
fn zeroes_sectors(controller: &Controller) -> u32 {
    let limit = controller.most_bytes.unwrap_or(usize::MAX) as u64 / SECTOR;
    match controller.has_zeroes {
        true => limit.min(command::MOST_BLOCKS.into()) as u32,
        false => 0,
    }
}
