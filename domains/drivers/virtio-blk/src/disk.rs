//! The device: what all its virtqueues ([`line`](crate::line)) share.

use crate::bring_up::Parts;
use crate::line::Line;
use alloc::vec::Vec;
use domain_rt::log;
use interfaces::{Geometry, Handle, PciDevice, QueueLimits};
use lanes::start::Order;
use lanes::{Batch, Device, Lanes};
use virtio::block::{FLUSH, READ_ONLY};
use virtio::device;
use virtio_pci::Window;

use crate::places::MOST_SEGMENTS;

/// Sectors of a page.
const SECTORS_OF_PAGE: u32 = 8;

/// See the module.
pub struct Disk {
    pub(crate) lanes: Lanes,
    lines: Vec<Line>,
    order: Order,
    common: Window,
    has_flush: bool,
    _function: Handle<dyn PciDevice>,
}

impl Disk {
    /// A device that was just brought up.
    pub fn new(parts: Parts) -> Self {
        let segments = parts.config.segments.min(MOST_SEGMENTS as u32);
        let limits = QueueLimits {
            sectors: parts.config.sectors,
            read_only: parts.features & READ_ONLY != 0,
            // One page less than there are segments, since a request need not begin with a page.
            request_sectors: (segments - 1).max(1) * SECTORS_OF_PAGE,
            discard_sectors: parts.config.discard,
            zeroes_sectors: parts.config.zeroes,
            requests: 0,
            slots: 0,
        };
        Disk {
            lanes: Lanes::new(parts.allocator, limits),
            order: Order::new(parts.lines.len()),
            lines: parts.lines,
            common: parts.common,
            has_flush: parts.features & FLUSH != 0,
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

    /// Whether it has a cache that is flushed by command.
    pub fn has_flush(&self) -> bool {
        self.has_flush
    }

    /// Says in the log what was found.
    pub fn announce(&self) {
        let Geometry { sectors, read_only } = self.geometry();
        let kind = if read_only { ", read-only" } else { "" };
        let requests: usize = self.lines.iter().map(Line::places).sum();
        let queues = self.lines.len();
        log!("{sectors} sectors of 512 bytes{kind}, {requests} requests at once, queues: {queues}");
    }

    /// An interrupt of a line came: takes everything that the device completed there, and wakes who
    /// waits for it.
    pub fn take_completions(&self, line: usize) {
        if self.lanes.is_gone() {
            self.lanes.raise();
            return;
        }
        let any = self.settle_those(&self.lines[line..=line]);
        // An interrupt without a completion may be the device's call for help. It may also be one
        // for what was looked for and taken before it came.
        if !any && !device::is_healthy(&self.common) {
            log!("the device asks for a reset");
            self.give_up();
        }
        self.lanes.raise();
    }

    /// Takes what the device has completed on lines; whether there was any.
    fn settle_those(&self, lines: &[Line]) -> bool {
        let mut any = false;
        for line in lines {
            match line.settle(self) {
                Ok(some) => any |= some,
                Err(_) => {
                    self.give_up();
                    return true;
                }
            }
        }
        any
    }

    /// The body of the thread that looks for requests that take too long. It sleeps while there are
    /// none.
    pub fn watch(&self) {
        while let Some(look) = self.lanes.watch() {
            if !self.lines.iter().any(|line| line.is_late(look)) {
                continue;
            }
            // It may have been done, and nobody looked.
            self.settle();
            if !self.lanes.is_gone() && self.lines.iter().any(|line| line.is_late(look)) {
                log!("the device does not answer");
                self.give_up();
            }
            self.lanes.raise();
        }
        // It may have been given up by who looked for answers.
        self.lanes.raise();
    }
}

impl Device for Disk {
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn give(&self, batch: &mut Batch) {
        // What has no room on one line has it on the next.
        let _ = self
            .order
            .from_here()
            .any(|line| self.lines[line].give(self, batch));
    }

    fn settle(&self) {
        self.settle_those(&self.lines);
    }

    /// Stops the device. No queue to it does anything any more.
    fn give_up(&self) {
        self.lanes.give_up();
        let reset = device::reset(&self.common, 1000, || ());
        if reset.is_err() {
            log!("and it does not even finish a reset");
        }
        self.lines.iter().for_each(|line| line.stop(reset.is_ok()));
    }
}
