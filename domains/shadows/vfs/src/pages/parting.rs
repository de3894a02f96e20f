//! Names that are removed, perhaps the last one of a file that only this domain holds, since it has
//! something of it that is not stored.
//!
//! Nobody needs that any more when the name has gone, so it gets no hidden name, as other files do
//! that are held: the name goes, and the pages with it.
//!
//! # What makes it hold
//! - *Nothing is stored into another file's inode.* The file's lock is held from before the name
//!   goes until there is nothing to be stored; who stores has that lock. And while the engine's
//!   lock is held still, so that the inode is no other's yet, the note for the next instance of
//!   this domain is cleared.
//! - *Nothing that was acknowledged is lost.* Pages go when the name has gone. Where it stays they
//!   stay, and where nobody knows, content counts as lost, and that is told.
//!
//! | dies | before the name has gone | when it has gone |
//! | --- | --- | --- |
//! | the file system | the next one gets the change from the log | it gets it again, or has it |
//! | this domain | the next one makes the change, then finds no such inode | it finds no such inode |
//! | both | as the line before | as the line before |

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use domain_rt::log;
use domain_rt::sync::MutexGuard;
use interfaces::FsError;
use redo::{Engine, Host, Lane, Order};

use super::Pages;
use super::file::{File, State};
use super::loading::ALL;
use crate::instance::Instance;
use crate::shadow::Shadow;

impl Pages {
    /// Has names changed by `change`, as ordered by who came through a lane.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn part_by(
        &self,
        shadow: &Shadow,
        lane: Option<Lane>,
        order: Order<Instance>,
        change: impl FnOnce(&mut Engine<Instance>, &mut Order<Instance>) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let there = shadow.front(|front| order.takes_from(front));
        let file = there.and_then(|inode| self.known(inode));
        let own = file.as_ref().and_then(|file| Some((file, live(file)?)));
        let changed = match own {
            None => {
                let (changed, gone) = shadow.carry_out(lane, order, |engine, order| {
                    let changed = change(engine, order);
                    // Before another file gets its number, which must not find these pages.
                    let loses = order.loses();
                    let gone = loses.and_then(|inode| self.take_unheld(shadow, inode));
                    (changed, gone)
                });
                if let Some(gone) = gone {
                    self.end_forgotten(shadow, &gone);
                }
                changed
            }
            Some((file, mut state)) => {
                let _alone = file.alone(&state, ALL)?;
                let (changed, has_parted) = shadow.carry_out(lane, order, |engine, order| {
                    engine.can_part_with(Some(file.inode));
                    let changed = change(engine, order);
                    let has_parted = engine.has_parted();
                    engine.can_part_with(None);
                    if has_parted {
                        file.note_gone();
                    }
                    (changed, has_parted)
                });
                if has_parted {
                    self.part(shadow, file, &mut state, changed.is_ok());
                }
                changed
            }
        };
        self.discard_removed(shadow);
        changed
    }

    /// Drops what a file has whose name has gone, or of which nobody knows that.
    fn part(&self, shadow: &Shadow, file: &File, state: &mut State, is_known: bool) {
        if !is_known {
            self.is_lost.store(true, Ordering::Relaxed);
            self.note_lost(true);
        }
        if let Err(error) = file.cut(0, state.pages) {
            log!("inode {} is gone, its pages are not: {error:?}", file.inode);
        }
        file.set_current(state, false);
        self.stop_life(shadow, file, state);
    }
}

/// The lock of a file that has something to be stored.
fn live(file: &Arc<File>) -> Option<MutexGuard<'_, State>> {
    if !file.record.lock().is_live {
        return None;
    }
    let state = file.state.lock();
    let is_live = file.record.lock().is_live;
    is_live.then_some(state)
}
