//! The driver, also after it has crashed, and what arrives from it.

use alloc::vec::Vec;

use domain_rt::log;
use interfaces::{
    Batch, BindError, Event, Events, Failure, Fired, Handle, Net, NetError, NewEvent, Packet, RRef,
    RVec, Respawn, RpcError, RpcResult, WaitWord,
};
use respawn::Slot;

/// Events that are told at once.
const TOLD: usize = 4;
/// Packets of a batch.
const BATCH: usize = 32;
/// An event that was not raised.
const NOT_FIRED: Fired = Fired {
    tag: 0,
    count: 0,
    ended: false,
};

/// See the module.
pub struct Line {
    driver: Slot<dyn Net>,
    bell: Bell,
    /// The event by which others have a turn made. Its tag is 0.
    others: Option<Handle<dyn Event>>,
    /// The batch that is not under way.
    batch: Option<RRef<Batch>>,
}

/// How the driver says that packets have arrived.
struct Bell {
    events: Handle<dyn Events>,
    word: Handle<dyn WaitWord>,
    /// That of the present instance of the driver. It ends with that one.
    event: Option<Handle<dyn Event>>,
    /// The tag of that event: how many there have been, from 1 on.
    tag: u64,
    /// The hardware address that others have been told.
    address: Option<[u8; 6]>,
}

impl Line {
    /// The way to the driver, and the hardware address.
    ///
    /// # Errors
    /// There is no working driver; those of calls.
    pub fn new(
        driver: Handle<dyn Respawn>,
        events: Handle<dyn Events>,
    ) -> Result<(Self, [u8; 6]), NetError> {
        let word = events.word()?;
        let mut line = Line {
            driver: Slot::new(driver, "driver"),
            bell: Bell {
                events,
                word,
                event: None,
                tag: 0,
                address: None,
            },
            others: None,
            batch: None,
        };
        let Line { driver, bell, .. } = &mut line;
        let address = driver.call(|device| bell.hang(device), |device| device.address())?;
        Ok((line, address))
    }

    /// From now on a wait ends when `event` is raised, too.
    ///
    /// # Errors
    /// Those of the call.
    pub fn hear(&mut self, event: Handle<dyn Event>) -> RpcResult<()> {
        match event.bind(self.bell.word.duplicate()?, 0) {
            Ok(()) => {}
            Err(BindError::Rpc(error)) => return Err(error),
            Err(_) => return Err(RpcError::Refused),
        }
        self.others = Some(event);
        Ok(())
    }

    /// Has `take` look at the packets that have arrived, a batch of them at most; whether there may
    /// be more.
    ///
    /// # Errors
    /// There is no driver to be had, or there is no memory.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, NetError> {
        let batch = self.exchange(|device, batch| device.receive(batch))?;
        let Some(batch) = batch else {
            return Ok(true);
        };
        let count = batch.packets.len().min(batch.count as usize);
        for packet in &batch.packets[..count] {
            // What a driver says that cannot be is no packet.
            if let Some(frame) = packet.bytes.get(..packet.length as usize) {
                take(frame);
            }
        }
        self.batch = Some(batch);
        Ok(count == BATCH)
    }

    /// Sends the packets that `next` gives.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn send(&mut self, mut next: impl FnMut() -> Option<Vec<u8>>) -> Result<(), NetError> {
        loop {
            let mut batch = self.room()?;
            let mut count = 0;
            while let Some(packet) = batch.packets.get_mut(count) {
                let Some(frame) = next() else {
                    break;
                };
                let Some(room) = packet.bytes.get_mut(..frame.len()) else {
                    continue;
                };
                room.copy_from_slice(&frame);
                packet.length = frame.len() as u32;
                count += 1;
            }
            batch.count = count as u32;
            self.batch = Some(batch);
            if count == 0 {
                return Ok(());
            }
            self.batch = self.exchange(|device, batch| device.send(batch))?;
        }
    }

    /// Waits until packets have arrived, somebody wants a turn, the driver is gone, or the time
    /// `deadline` (nanoseconds since boot) has come.
    ///
    /// # Errors
    /// Those of the call.
    pub fn wait(&mut self, deadline: Option<u64>) -> RpcResult<()> {
        let room = RVec::filled(NOT_FIRED, TOLD)?;
        let fired = self.bell.word.wait(deadline, room)?;
        let tag = self.bell.tag;
        if fired.iter().any(|fired| fired.ended && fired.tag == tag) {
            self.driver.give_up();
        }
        Ok(())
    }

    /// Gives the driver the batch and gets one. `None`: it died, and the batch with it.
    fn exchange(
        &mut self,
        call: impl FnOnce(&Handle<dyn Net>, RRef<Batch>) -> Result<RRef<Batch>, NetError>,
    ) -> Result<Option<RRef<Batch>>, NetError> {
        let batch = self.room()?;
        let Line { driver, bell, .. } = self;
        let device = driver.service(|device| bell.hang(device))?;
        match call(device, batch) {
            Ok(batch) if batch.packets.len() == BATCH => Ok(Some(batch)),
            // It is not what it was given.
            Ok(_) => Ok(None),
            Err(error) if error.is_gone() => {
                self.driver.give_up();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The batch, or a fresh one if it was lost.
    fn room(&mut self) -> Result<RRef<Batch>, NetError> {
        if let Some(batch) = self.batch.take() {
            return Ok(batch);
        }
        let empty = Packet {
            length: 0,
            bytes: [0; 1596],
        };
        Ok(RRef::new(Batch {
            count: 0,
            packets: RVec::filled(empty, BATCH)?,
        })?)
    }
}

impl Bell {
    /// Has a new instance of the driver tell of packets. It has to have the address that others
    /// have been told.
    fn hang(&mut self, device: &Handle<dyn Net>) -> Result<(), NetError> {
        let address = device.address()?;
        if *self.address.get_or_insert(address) != address {
            log!("the driver came back with another address");
            return Err(NetError::Gone);
        }
        let NewEvent { raiser, event } = self.events.event()?;
        self.tag += 1;
        match event.bind(self.word.duplicate()?, self.tag) {
            Ok(()) => {}
            Err(BindError::Rpc(error)) => return Err(error.into()),
            Err(_) => return Err(NetError::Gone),
        }
        self.event = Some(event);
        device.tell(raiser)
    }
}
