//! The network shadow: a network device that goes on when the driver behind it crashes.
//!
//! A batch that is with the driver when that crashes dies with it. For packets to be sent this is as if they had
//! been lost on the wire, which every protocol above reckons with: the caller gets an empty batch of the same
//! room, as after any sending, and a new instance of the driver serves the next call. Packets are not sent again,
//! since some of them may have been sent. What was on its way in is lost as well; the call is repeated with
//! fresh room.
//!
//! The hardware address is the device's, so every instance has to have the same; a driver that comes up with
//! another one is given up, since others have been told the old one.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{
    Batch, Handle, Net, NetError, Packet, RRef, RVec, Respawn, RespawnError, RpcError, RpcResult,
    Traffic,
};

/// How often a call is tried, the first time included.
const ATTEMPTS: u32 = 8;

/// Makes the shadow. The driver is asked for here, so that a missing device is noticed at the start.
///
/// # Errors
/// [`RpcError::Refused`] if there is no working driver; the log says why.
pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn Net>> {
    let address = fetch(&driver, 0).and_then(|first| Ok((first.device.address()?, first)));
    match address {
        Ok((address, first)) => Handle::new(Shadow {
            address,
            driver: Mutex::new(Driver {
                respawn: driver,
                current: Some(first),
                last: 0,
            }),
        }),
        Err(NetError::Rpc(error)) => Err(error),
        Err(error) => {
            log!("there is no working driver: {error:?}");
            Err(RpcError::Refused)
        }
    }
}

/// One instance of the driver.
struct Instance {
    id: u32,
    device: Handle<dyn Net>,
}

/// The way to the driver.
struct Driver {
    respawn: Handle<dyn Respawn>,
    current: Option<Instance>,
    /// The number of the last instance that failed; 0: none has.
    last: u32,
}

struct Shadow {
    address: [u8; 6],
    /// Held during a call into the driver, which never waits for the wire: it costs less than a count of users,
    /// and a driver has a lock around its queue in any case.
    driver: Mutex<Driver>,
}

fn fetch(respawn: &Handle<dyn Respawn>, failed: u32) -> Result<Instance, NetError> {
    match respawn.instance(failed) {
        Ok(incarnation) => match incarnation.service.downcast::<dyn Net>() {
            Ok(device) => Ok(Instance {
                id: incarnation.id,
                device,
            }),
            Err(other) => {
                log!("the driver offers {other:?}, not a network device");
                Err(NetError::Gone)
            }
        },
        Err(RespawnError::Rpc(RpcError::DomainCrashed) | RespawnError::GaveUp) => {
            Err(NetError::Gone)
        }
        Err(RespawnError::Rpc(error)) => Err(NetError::Rpc(error)),
        Err(RespawnError::CannotStart(why)) => {
            log!("the driver does not start: {why}");
            Err(NetError::Gone)
        }
    }
}

/// Whether another instance may do what this one did not. All other errors are answers.
fn is_worth_a_restart(error: &NetError) -> bool {
    matches!(
        error,
        NetError::Rpc(RpcError::DomainCrashed) | NetError::Gone
    )
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

impl Driver {
    /// The device of the instance that serves now; another instance is asked for if there is none.
    #[inline]
    fn device(&mut self, address: [u8; 6]) -> Result<&Handle<dyn Net>, NetError> {
        if self.current.is_none() {
            self.current = Some(self.next(address)?);
        }
        let current = self.current.as_ref();
        current.map(|current| &current.device).ok_or(NetError::Gone)
    }

    /// Another instance, one that has answered.
    #[cold]
    fn next(&mut self, address: [u8; 6]) -> Result<Instance, NetError> {
        for _ in 0..ATTEMPTS {
            let next = fetch(&self.respawn, self.last)?;
            // If it is no good, another one is asked for.
            self.last = next.id;
            match next.device.address() {
                Ok(own) if own == address => return Ok(next),
                Ok(_) => {
                    log!("the driver came back with another address");
                    return Err(NetError::Gone);
                }
                Err(error) if is_worth_a_restart(&error) => {}
                Err(error) => return Err(error),
            }
        }
        log!("gave the driver up after {ATTEMPTS} instances");
        Err(NetError::Gone)
    }

    /// Gives the instance up that serves now.
    fn give_up(&mut self) {
        if let Some(old) = self.current.take() {
            self.last = old.id;
        }
    }
}

impl Shadow {
    /// Calls the driver. `again` says whether a call that died with its driver is repeated with the next one; if
    /// not, the answer is fresh room.
    #[inline]
    fn exchange(
        &self,
        batch: RRef<Batch>,
        call: impl Fn(&Handle<dyn Net>, RRef<Batch>) -> Result<RRef<Batch>, NetError>,
        again: bool,
    ) -> Result<RRef<Batch>, NetError> {
        let room = batch.packets.len();
        let mut driver = self.driver.lock();
        match call(driver.device(self.address)?, batch) {
            Err(error) if is_worth_a_restart(&error) => driver.give_up(),
            answer => return answer,
        }
        match again {
            true => self.retry(&mut driver, room, call),
            false => {
                // Asked for now, so that the next call need not wait; it asks again if there is none.
                let _ = driver.device(self.address);
                fresh(room)
            }
        }
    }

    /// The rest of [`exchange`](Self::exchange), with fresh room for every attempt.
    #[cold]
    fn retry(
        &self,
        driver: &mut Driver,
        room: usize,
        call: impl Fn(&Handle<dyn Net>, RRef<Batch>) -> Result<RRef<Batch>, NetError>,
    ) -> Result<RRef<Batch>, NetError> {
        for _ in 1..ATTEMPTS {
            let device = driver.device(self.address)?;
            let answer = fresh(room).and_then(|batch| call(device, batch));
            match answer {
                Err(error) if is_worth_a_restart(&error) => driver.give_up(),
                answer => return answer,
            }
        }
        log!("gave a call up after {ATTEMPTS} drivers");
        Err(NetError::Gone)
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

    fn traffic(&self) -> Result<Traffic, NetError> {
        let mut driver = self.driver.lock();
        for _ in 0..ATTEMPTS {
            match driver.device(self.address)?.traffic() {
                Err(error) if is_worth_a_restart(&error) => driver.give_up(),
                answer => return answer,
            }
        }
        Err(NetError::Gone)
    }
}
