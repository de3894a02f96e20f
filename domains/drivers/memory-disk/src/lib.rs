//! A block device in memory: for tests, and for scratch space.
//!
//! Memory is taken in pieces of 64 KiB when they are first written; what was never written reads as
//! zeros. When there is no memory a write fails, and the disk stays as it is. The pieces are on the
//! shared heap, so that a successor gets them without a copy (see [`estate`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod estate;
mod options;
mod queue;

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{log, memory};
use interfaces::{
    Block, BlockError, BlockQueue, Geometry, HandOver, Handle, RVec, Raiser, RpcError, RpcResult,
};

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Bytes of a piece, a multiple of the sector.
const PIECE: u64 = 64 * 1024;

/// Makes the disk.
///
/// # Errors
/// [`RpcError::Refused`] if an option is not understood; [`RpcError::NoMemory`].
pub fn start(options: RVec<u8>) -> RpcResult<(Handle<dyn Block>, Handle<dyn HandOver>)> {
    memory::reserve(memory::SERVICE)?;
    let Some(bytes) = options::size(&options) else {
        log!("options: expected size=N, with K, M or G behind it if need be");
        return Err(RpcError::Refused);
    };
    let mut pieces = Vec::new();
    let count = bytes.div_ceil(PIECE) as usize;
    pieces
        .try_reserve_exact(count)
        .map_err(|_| RpcError::NoMemory)?;
    pieces.extend((0..count).map(|_| Mutex::new(None)));
    let disk = Arc::new(Disk {
        pieces,
        sectors: bytes / SECTOR,
        lanes: queue::Lanes::default(),
    });
    Ok((
        Handle::new(Shared(disk.clone()))?,
        Handle::new(estate::Keeper(disk))?,
    ))
}

/// A piece of the disk; `None` until it is written.
type Piece = Option<RVec<u8>>;

struct Disk {
    pieces: Vec<Mutex<Piece>>,
    sectors: u64,
    lanes: queue::Lanes,
}

impl Disk {
    /// The first byte of a transfer of `sectors` sectors, if they are all there.
    fn start_of(&self, sector: u64, sectors: u32) -> Option<u64> {
        let end = sector.checked_add(sectors.into())?;
        (end <= self.sectors).then_some(sector * SECTOR)
    }
}

/// Cuts `length` bytes from byte `start` on at the ends of pieces: number of the piece, offset in
/// it, and the range of the bytes.
fn parts(
    start: u64,
    length: usize,
) -> impl Iterator<Item = (usize, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let at = start + done as u64;
        let offset = (at % PIECE) as usize;
        let count = (length - done).min(PIECE as usize - offset);
        let range = done..done + count;
        done += count;
        (count > 0).then_some(((at / PIECE) as usize, offset, range))
    })
}

/// The disk as an object that others call.
struct Shared(Arc<Disk>);

impl Block for Shared {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        Ok(Geometry {
            sectors: self.0.sectors,
            read_only: false,
        })
    }

    fn open(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        queue::Lanes::open(&self.0, raiser)
    }
}

impl Disk {
    /// Fills `buffer` with what is there from byte `start` on.
    fn copy_out(&self, start: u64, buffer: &mut [u8]) {
        for (number, offset, range) in parts(start, buffer.len()) {
            let piece = self.pieces[number].lock();
            let target = &mut buffer[range];
            match piece.as_ref() {
                Some(bytes) => target.copy_from_slice(&bytes[offset..offset + target.len()]),
                None => target.fill(0),
            }
        }
    }

    /// Puts `data` there from byte `start` on.
    fn copy_in(&self, start: u64, data: &[u8]) -> RpcResult<()> {
        for (number, offset, range) in parts(start, data.len()) {
            let mut piece = self.pieces[number].lock();
            if piece.is_none() {
                *piece = Some(RVec::filled(0, PIECE as usize)?);
            }
            let bytes = piece.as_mut().expect("made just now");
            bytes[offset..offset + range.len()].copy_from_slice(&data[range]);
        }
        Ok(())
    }
}
