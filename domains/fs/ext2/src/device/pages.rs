//! Reads straight into memory objects of others, and writes straight out of them.

use ext2::{DeviceError, SECTOR_SIZE};
use interfaces::{BlockOperation, BlockRequest, Handle, VmoView};

use super::{Disk, Flight, sectors};
use crate::errors::rpc_error;
use crate::staging::NO_REQUEST;

/// Where bytes are on the device and where in the memory object, in whole sectors.
#[derive(Clone, Copy)]
pub struct Piece {
    /// The first sector.
    pub sector: u64,
    /// The first byte in the object.
    pub at: u64,
    /// How many.
    pub bytes: usize,
}

impl Disk {
    /// Has the device read `pieces` into pages of `view`, which are being loaded.
    ///
    /// # Errors
    /// Those of the device; there is not enough memory.
    pub fn read_into(
        &self,
        view: &Handle<dyn VmoView>,
        pieces: &[Piece],
    ) -> Result<(), DeviceError> {
        self.carry(BlockOperation::Read, view, pieces)
    }

    /// Has the device write `pieces` out of pages of `view`.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into); the sectors then have anything.
    pub fn write_out_of(
        &self,
        view: &Handle<dyn VmoView>,
        pieces: &[Piece],
    ) -> Result<(), DeviceError> {
        self.carry(BlockOperation::Write, view, pieces)
    }

    fn carry(
        &self,
        operation: BlockOperation,
        view: &Handle<dyn VmoView>,
        pieces: &[Piece],
    ) -> Result<(), DeviceError> {
        let guest = self.line.guest(view.duplicate().map_err(rpc_error)?)?;
        let held = Flight::new(&self.line).ticket()?;
        let most = self.most();
        let mut requests = pieces.iter().flat_map(|piece| {
            let starts = (0..piece.bytes).step_by(most);
            starts.map(move |from| BlockRequest {
                operation,
                sector: piece.sector + sectors(from),
                sectors: sectors(most.min(piece.bytes - from)) as u32,
                slot: guest.slot,
                at: piece.at / SECTOR_SIZE as u64 + sectors(from),
                ..NO_REQUEST
            })
        });
        loop {
            let mut forms = self.line.staging.forms();
            let mut count = 0;
            for (place, request) in forms.batch.iter_mut().zip(&mut requests) {
                *place = request;
                count += 1;
            }
            if count == 0 {
                break;
            }
            self.line.submit(&held, &mut forms.batch, count)?;
        }
        self.line.wait(&held)
    }
}
