//! Commands that take too long: the controller is asked to abort one, and is reset if that is of no
//! use.

use domain_rt::log;
use lanes::{Device, PATIENCE};
use nvme_queues::{command, registers};

use crate::bring_up::pause;
use crate::disk::Disk;
use crate::line::Line;

/// After so many looks a command is aborted.
const ABORT: u64 = PATIENCE / 2;

impl Disk {
    /// The body of the thread that looks for commands that take too long. It sleeps while there are
    /// none, and ends with the controller.
    pub fn watch(&self) {
        while let Some(look) = self.lanes.watch() {
            if self.look(look) {
                self.lanes.raise();
            }
        }
        if !self.lanes.is_gone() {
            return;
        }
        // It was told by whoever gave it up.
        self.lanes.raise();
        match registers::end_reset(&self.registers, &self.capabilities, pause) {
            Ok(()) => self.lines.iter().for_each(|line| line.stop(true)),
            Err(error) => log!("{error}"),
        }
    }

    /// Looks once; whether anything was done.
    fn look(&self, look: u64) -> bool {
        if !registers::is_healthy(&self.registers) {
            log!("the controller is in a fatal state, or is gone");
            self.give_up();
        } else if self
            .late(look, ABORT, false)
            .or(self.late(look, PATIENCE, true))
            .is_some()
        {
            // It may have been done, and nobody looked.
            self.settle();
            if self.lanes.is_gone() {
                return true;
            } else if self.late(look, PATIENCE, true).is_some() {
                log!("the controller does not answer");
                self.give_up();
            } else if let Some((line, pair, place)) = self.late(look, ABORT, false) {
                self.abort(line, pair, place, look);
            }
        } else if !self.lanes.is_open() {
            // Nobody looks for what a queue without interrupts has left.
            self.settle();
        } else {
            return false;
        }
        true
    }

    /// A command that is there for too long: [`Line::late`].
    fn late(&self, look: u64, limit: u64, asked: bool) -> Option<(&Line, u16, u16)> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| {
            let (pair, place) = line.late(look, limit, asked)?;
            Some((line, pair, place))
        })
    }

    /// Asks the controller to end a command early, if it was not asked before.
    fn abort(&self, line: &Line, pair: u16, place: u16, look: u64) {
        if !line.begin_abort(place, look, ABORT) {
            return;
        }
        log!("a command takes long: the controller is asked to abort it");
        let asked = self.admin.lock().run(&command::abort(pair, place), pause);
        line.end_abort();
        match asked {
            // Bit 0 says that it was too late, or not possible.
            Ok(result) if result & 1 == 1 => log!("it does not abort it"),
            Ok(_) => {}
            Err(error) if !self.lanes.is_gone() => {
                log!("that was of no use: {error}");
                self.give_up();
            }
            Err(_) => {}
        }
    }
}
