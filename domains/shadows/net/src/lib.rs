//! The network shadow: a network device that goes on when the driver behind it crashes.
//!
//! A batch that is with the driver when that crashes dies with it. For packets to be sent this is
//! as if they had been lost on the wire, which every protocol above reckons with: the caller gets
//! an empty batch of the same room, as after any sending, and a new instance of the driver serves
//! the next call. Packets are not sent again, since some of them may have been sent. What was on
//! its way in is lost as well; the call is repeated with fresh room.
//!
//! The hardware address is the device's, so every instance has to have the same; a driver that
//! comes up with another one is given up, since others have been told the old one.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::sync::Mutex;
use domain_rt::{log, memory};
use interfaces::{
    Batch, Failure, Handle, Net, NetError, Packet, RRef, RVec, Raiser, Respawn, RpcError,
    RpcResult, Traffic,
};
use respawn::Slot;

/// Makes the shadow. The driver is asked for here, so that a missing device is noticed at the
/// start.
///
/// # Errors
/// [`RpcError::Refused`] if there is no working driver; the log says why.
pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Net>> {
    memory::reserve(memory::SERVICE)?;
    let mut driver = Slot::new(driver, "driver");
    match driver.call(|_| Ok(()), |device: &Handle<dyn Net>| device.address()) {
        Ok(address) => Handle::new(Shadow {
            address,
            raiser: Mutex::new(None),
            driver: Mutex::new(driver),
        }),
        Err(NetError::Rpc(error)) => Err(error),
        Err(error) => {
            log!("there is no working driver: {error:?}");
            Err(RpcError::Refused)
        }
    }
}

struct Shadow {
    address: [u8; 6],
    /// What is raised when packets arrive; each instance of the driver gets one. Locked within the
    /// lock of the driver.
    raiser: Mutex<Option<Handle<dyn Raiser>>>,
    /// Held during a call into the driver, which never waits for the wire: it costs less than a
    /// count of users, and a driver has a lock around its queue in any case.
    driver: Mutex<Slot<dyn Net>>,
}

/// An empty batch with room for `room` packets.
fn fresh(room: usize) -> Result<RRef<Batch>, NetError> {
    let empty = Packet {
        length: 0,
        bytes: [0; 1596],
    };
    Ok(RRef::new(Batch {
        count: 0,
        packets: RVec::filled(empty, room)?,
    })?)
}

impl Shadow {
    /// Whether a new instance of the driver has the address that others have been told. It is told
    /// whom to tell of packets.
    fn greet(&self, device: &Handle<dyn Net>) -> Result<(), NetError> {
        if device.address()? != self.address {
            log!("the driver came back with another address");
            return Err(NetError::Gone);
        }
        self.pass_on(device)
    }

    /// Tells the driver whom to tell of packets, if anybody wants to know.
    fn pass_on(&self, device: &Handle<dyn Net>) -> Result<(), NetError> {
        let raiser = self.raiser.lock().as_ref().map(Handle::duplicate);
        match raiser {
            Some(raiser) => device.tell(raiser?),
            None => Ok(()),
        }
    }

    /// Calls the driver. `again` says whether a call that died with its driver is repeated with the
    /// next one; if not, the answer is fresh room.
    #[inline]
    fn exchange(
        &self,
        batch: RRef<Batch>,
        call: impl Fn(&Handle<dyn Net>, RRef<Batch>) -> Result<RRef<Batch>, NetError>,
        again: bool,
    ) -> Result<RRef<Batch>, NetError> {
        let room = batch.packets.len();
        let mut driver = self.driver.lock();
        match call(driver.service(|device| self.greet(device))?, batch) {
            Err(error) if error.is_gone() => driver.give_up(),
            answer => return answer,
        }
        self.go_on(&mut driver, room, again.then_some(call))
    }

    /// The rest of [`exchange`](Self::exchange) after a crash, with fresh room for every attempt.
    #[cold]
    fn go_on(
        &self,
        driver: &mut Slot<dyn Net>,
        room: usize,
        again: Option<impl Fn(&Handle<dyn Net>, RRef<Batch>) -> Result<RRef<Batch>, NetError>>,
    ) -> Result<RRef<Batch>, NetError> {
        let greet = |device: &Handle<dyn Net>| self.greet(device);
        let Some(call) = again else {
            // Asked for now, so that the next call need not wait; it asks again if there is none.
            let _ = driver.service(greet);
            return fresh(room);
        };
        driver.call(greet, |device| call(device, fresh(room)?))
    }
}

impl Net for Shadow {
    fn address(&self) -> Result<[u8; 6], NetError> {
        Ok(self.address)
    }

    fn send(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.exchange(batch, |device, batch| device.send(batch), false)
    }

    fn receive(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.exchange(batch, |device, batch| device.receive(batch), true)
    }

    fn tell(&self, raiser: Handle<dyn Raiser>) -> Result<(), NetError> {
        // What was told before is let go of behind the lock: that may call whoever made it.
        let _old = self.raiser.lock().replace(raiser);
        let mut driver = self.driver.lock();
        let greet = |device: &Handle<dyn Net>| self.greet(device);
        driver.call(greet, |device| self.pass_on(device))
    }

    fn traffic(&self) -> Result<Traffic, NetError> {
        let mut driver = self.driver.lock();
        driver.call(|device| self.greet(device), |device| device.traffic())
    }
}
