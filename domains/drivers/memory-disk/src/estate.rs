//! The content on its way to the next version of this driver.
//!
//! Form 1: `head` is the number of sectors, as eight bytes, little-endian; part `n` of the runs,
//! counted over all runs, is piece `n` of the disk, or missing if that was never written.

use alloc::sync::Arc;
use interfaces::{Estate, HandOver, HandOverError, Parts, RRef, RVec, Text};

use crate::{Disk, PIECE, Piece};

const KIND: &str = "content of a memory disk";
const VERSION: u32 = 1;
/// Parts in a run, and runs in an estate.
const RUN: usize = 64;

/// Gives the content away, and takes it.
pub struct Keeper(pub Arc<Disk>);

fn refused(why: &str) -> HandOverError {
    HandOverError::Refused(Text::new(why))
}

impl HandOver for Keeper {
    fn give(&self) -> Result<RRef<Estate>, HandOverError> {
        let pieces = &self.0.pieces;
        if pieces.len() > RUN * RUN {
            return Err(refused("the disk is too large for that"));
        }
        let mut estate = RRef::new(Estate {
            kind: Text::new(KIND),
            version: VERSION,
            head: RVec::from_slice(&self.0.sectors.to_le_bytes())?,
            runs: [const { None }; RUN],
        })?;
        // All memory that is needed is taken before the first piece is moved.
        for (run, _) in estate.runs.iter_mut().zip(pieces.chunks(RUN)) {
            let parts = [const { None }; RUN];
            *run = Some(RRef::new(Parts { parts })?);
        }
        for (run, pieces) in estate.runs.iter_mut().flatten().zip(pieces.chunks(RUN)) {
            for (part, piece) in run.parts.iter_mut().zip(pieces) {
                *part = piece.lock().take();
            }
        }
        Ok(estate)
    }

    fn check(&self, estate: &RRef<Estate>) -> Result<(), HandOverError> {
        if estate.kind != Text::new(KIND) {
            return Err(refused("it is not that of a memory disk"));
        }
        if estate.version != VERSION {
            return Err(refused("it has a form that is not known here"));
        }
        if *estate.head != self.0.sectors.to_le_bytes() {
            return Err(refused("it is that of a disk of another size"));
        }
        let is_piece = |part: &Piece| {
            part.as_ref()
                .is_none_or(|part| part.len() == PIECE as usize)
        };
        let mut parts = estate.runs.iter().flatten().flat_map(|run| &run.parts);
        match parts.all(is_piece) {
            true => Ok(()),
            false => Err(refused("a piece of it has a wrong length")),
        }
    }

    fn take(&self, mut estate: RRef<Estate>) -> Result<(), HandOverError> {
        self.check(&estate)?;
        let runs = estate.runs.iter_mut().zip(self.0.pieces.chunks(RUN));
        for (run, pieces) in runs {
            let Some(run) = run else {
                continue;
            };
            for (part, piece) in run.parts.iter_mut().zip(pieces) {
                *piece.lock() = part.take();
            }
        }
        Ok(())
    }
}
