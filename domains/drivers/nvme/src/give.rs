//! From a request to a command: its pages are held for the controller, and described to it.

use domain_rt::{log, time};
use interfaces::{
    BlockOperation, BlockOutcome, BlockRequest, DmaDirection, MemoryError, RVec, RpcError,
};
use nvme_queues::command::{self, Command};
use nvme_queues::prp::{self, Pointers};

use crate::bring_up::Line;
use crate::disk::{Disk, Given, SECTOR, SECTORS_OF_PAGE, State};
use crate::lane::Lane;
use crate::memory::MOST_PAGES;

impl Disk {
    /// Gives a request to the controller. An error is its answer: also `Done`, if there is nothing
    /// to do.
    pub fn give(
        &self,
        state: &mut State,
        lane: &Lane,
        line: usize,
        number: u64,
        request: &BlockRequest,
    ) -> Result<(), BlockOutcome> {
        let place = *state.free.last().ok_or(BlockOutcome::NoMemory)?;
        let mut given = Given {
            lane: lane.id,
            number,
            line,
            hold: None,
            since: time::now(),
            is_aborted: false,
        };
        let command = self.command(state, lane, place, request, &mut given)?;
        let Line { pair, rings } = &mut state.lines[line];
        if let Err(error) = pair.submit(rings, place, &command) {
            given.release();
            log!("no room for a command: {error:?}");
            return Err(BlockOutcome::NoMemory);
        }
        state.given[usize::from(place)] = Some(given);
        state.free.pop();
        if core::mem::take(&mut state.unwatched) {
            self.watched.notify_one();
        }
        Ok(())
    }

    fn command(
        &self,
        state: &mut State,
        lane: &Lane,
        place: u16,
        request: &BlockRequest,
        given: &mut Given,
    ) -> Result<Command, BlockOutcome> {
        let BlockRequest {
            sector, sectors, ..
        } = *request;
        let namespace = self.number;
        let durable = request.durable && self.controller.has_cache;
        Ok(match request.operation {
            BlockOperation::Read => {
                let to = self.hold(state, lane, place, request, given)?;
                command::read(namespace, sector, sectors, to)
            }
            BlockOperation::Write => {
                let from = self.hold(state, lane, place, request, given)?;
                command::write(namespace, sector, sectors, from, durable)
            }
            BlockOperation::Flush if !self.controller.has_cache => return Err(BlockOutcome::Done),
            BlockOperation::Flush => command::flush(namespace),
            BlockOperation::Discard => {
                let range = command::range(sector, sectors);
                let at = self.places.range(place, &range);
                command::discard(namespace, Pointers::page(at))
            }
            BlockOperation::WriteZeroes => {
                command::write_zeroes(namespace, sector, sectors, durable)
            }
        })
    }

    /// Holds the pages of a request for the controller; where they are.
    fn hold(
        &self,
        state: &mut State,
        lane: &Lane,
        place: u16,
        request: &BlockRequest,
        given: &mut Given,
    ) -> Result<Pointers, BlockOutcome> {
        let slot = lane.slots.get(request.slot as usize);
        let slot = slot.and_then(Option::as_ref);
        let window = slot.ok_or(BlockOutcome::BadSlot)?.window.clone();
        let direction = match request.operation {
            BlockOperation::Read => DmaDirection::FromDevice,
            _ => DmaDirection::ToDevice,
        };
        let inside = request.at % SECTORS_OF_PAGE;
        let pages = (inside + u64::from(request.sectors)).div_ceil(SECTORS_OF_PAGE);
        let room = match state.addresses.take() {
            Some(room) => room,
            None => RVec::filled(0, MOST_PAGES).map_err(|_| BlockOutcome::NoMemory)?,
        };
        let held = window.hold(request.at / SECTORS_OF_PAGE, pages, direction, room);
        let (addresses, hold) = held.map_err(|error| match error {
            MemoryError::Rpc(RpcError::NoMemory | RpcError::Busy) => BlockOutcome::NoMemory,
            _ => BlockOutcome::Memory,
        })?;
        given.hold = Some((window, hold));
        let put = |number, page| self.places.put(place, number, page);
        let held = addresses.get(..pages as usize).unwrap_or(&[]);
        let described = prp::describe(held, inside * SECTOR, self.places.list(place), put);
        state.addresses = Some(addresses);
        described.map_err(|_| {
            given.release();
            BlockOutcome::Memory
        })
    }
}
