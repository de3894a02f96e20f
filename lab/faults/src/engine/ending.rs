//! The end of a run: all drivers are ended, and what is there is counted when it should be what it
//! was before.
//!
//! The shadow lives on, with two ways to a driver: calls, and its queue. It has a handle for each,
//! and lets go of one that leads to a dead driver when it next goes that way. Until then the kernel
//! keeps the control block of that driver, for which its starter pays: that is no loss, but counts.
//! So what is compared is what there is when both ways lead to one driver, which has been ended.
//!
//! A thread of the shadow may find a driver dead that was just ended, and ask for the next. So
//! whatever is started until all is counted is ended as well.

use super::{Campaign, PATIENCE, Shadow, Target, WARM_UP_PATIENCE};
use crate::counts::Counts;
use crate::ledger::stuck;
use crate::plan::{Fault, Kind};
use crate::store::pause;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use isolation::death::kill::kill;
use isolation::domain::ControlBlock;
use isolation::platform::platform;
use isolation::{Reason, State};

impl Campaign<'_> {
    /// With a fault of that kind: ends the victim, which nobody uses any more, and has the shadow
    /// ask for the next driver unless it is to do so late.
    pub(super) fn end_aside(&self, victim: Option<&Arc<ControlBlock>>, fault: &Fault) {
        if let (Kind::Aside, Some(victim)) = (fault.kind, victim) {
            kill(victim, Reason::Killed);
            if fault.amount == 0 {
                self.ask_aside();
            }
        }
    }

    /// Has the shadow ask for a driver without its queue.
    fn ask_aside(&self) {
        if let Some(shadow) = &self.shadow {
            // What the answer is does not matter.
            let _ = shadow.device.block.geometry();
        }
    }

    /// Has both ways of the shadow lead to the same driver.
    fn join_ways(&self) {
        let device = self.shadow.as_ref().map(|shadow| &shadow.device);
        if let Some(line) = device.and_then(|device| device.line.as_ref()) {
            // A shadow that is dead, or has no driver, has nothing to let go of.
            let _ = line.flush(0);
        }
    }

    /// Ends all that a run has left; how many drivers were replaced, and what there is then. What
    /// was planted in a victim that lives must not be met now: `is_over` says that it is dead.
    pub(super) fn end_run(
        &mut self,
        fault: &Fault,
        before: &Counts,
        is_over: bool,
    ) -> Result<(usize, Counts), String> {
        if is_over {
            self.join_ways();
        }
        let restarts = self.clear_away(fault)?;
        if fault.kind == Kind::Aside && fault.amount > 0 {
            self.ask_aside();
        }
        Ok((restarts, self.settled(fault, before)?))
    }

    /// The counts when what is dead has been cleared away. That before the baseline is there is no
    /// loss, and not waited for as long.
    fn settled(&mut self, fault: &Fault, before: &Counts) -> Result<Counts, String> {
        let patience = self.baseline.map_or(WARM_UP_PATIENCE, |_| PATIENCE);
        let deadline = platform().now() + patience;
        loop {
            let is_late = self.supervisor.current().is_some();
            if is_late {
                self.join_ways();
                self.clear_away(fault)?;
            }
            let counts = Counts::now(self.ground, self.shadow_id());
            let is_back = !is_late && counts.is_back(before, self.ground.slack);
            if is_back || platform().now() > deadline {
                return Ok(counts);
            }
            pause(50_000);
        }
    }

    /// Ends the driver, and the shadow if it is dead or the one that is to fail, and waits until
    /// nothing of them is left; how many drivers were replaced.
    fn clear_away(&mut self, fault: &Fault) -> Result<usize, String> {
        let ended = self.supervisor.end();
        let restarts = ended.len().saturating_sub(1);
        let ends = |shadow: &Shadow| self.target == Target::Shadow || !shadow.block.is_alive();
        let shadow = self.shadow.take_if(|shadow| ends(shadow)).map(|shadow| {
            kill(&shadow.block, Reason::Exited);
            shadow.block.clone()
        });
        let deadline = platform().now() + PATIENCE;
        for block in ended.iter().chain(&shadow) {
            while block.state() != State::Gone {
                if platform().now() > deadline {
                    (self.ground.report)(&stuck(fault, "a dead domain is not cleared away"));
                    return Err(format!("run {}: {} does not go", fault.run, block.name()));
                }
                pause(50_000);
            }
        }
        Ok(restarts)
    }
}
