//! The network shadow: whoever sends and receives does not notice that the driver behind it dies.

use crate::lab::{Lab, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::{thread, time};
use interfaces::{
    Batch, Domain, Gate, Handle, Image, Incarnation, Net, NetError, Packet, RRef, RVec, Respawn,
    RespawnError, RpcResult, Started,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("net-shadow-outlives-its-driver", outlives),
    ("net-shadow-passes-refusals-on", refusals),
    ("net-shadow-gives-up-without-a-driver", gives_up),
    ("net-shadow-serves-four-while-drivers-die", four_senders),
];

/// Packets of a batch.
pub const ROOM: usize = 4;

/// Starts drivers for the shadow, as many as it may.
pub struct Starter {
    image: Handle<dyn Image>,
    driver: Mutex<Option<Driver>>,
    starts: AtomicU32,
    most: AtomicU32,
}

struct Driver {
    id: u32,
    control: Handle<dyn Domain>,
    service: interfaces::AnyHandle,
}

fn start(
    image: &Handle<dyn Image>,
    grant: Option<interfaces::AnyHandle>,
) -> Result<Started, String> {
    let mut grants = [const { None }; 16];
    grants[0] = grant;
    let options = RVec::from_slice(&[]).map_err(say)?;
    image.start(unlimited(), grants, options).map_err(say)
}

impl Starter {
    /// Ends the driver that serves now.
    fn kill(&self) -> Verdict {
        let driver = self.driver.lock();
        let driver = driver.as_ref().ok_or("no driver serves")?;
        driver.control.kill().map_err(say)
    }

    /// Authority over the driver that serves now.
    pub fn driver(&self) -> Result<Handle<dyn Domain>, String> {
        let driver = self.driver.lock();
        let driver = driver.as_ref().ok_or("no driver serves")?;
        driver.control.duplicate().map_err(say)
    }

    /// Whether the driver answers, when nobody stands in front of it.
    pub fn serves(&self) -> Verdict {
        let driver = self.driver.lock();
        let driver = driver.as_ref().ok_or("no driver serves")?;
        let service = driver.service.duplicate().map_err(say)?;
        let device = service.downcast().map_err(|_| "not a network device")?;
        send(&device)
    }

    /// Ends the driver and waits until nothing is left of it.
    fn end(&self) -> Verdict {
        let Some(driver) = self.driver.lock().take() else {
            return Ok(());
        };
        driver.control.kill().map_err(say)?;
        driver.control.wait().map(drop).map_err(say)
    }

    fn next(&self) -> Result<Driver, String> {
        let mut started = start(&self.image, None)?;
        let id = started.control.info().map_err(say)?.id;
        let service = started.offers[0]
            .take()
            .ok_or("the driver offers nothing")?;
        Ok(Driver {
            id,
            control: started.control,
            service,
        })
    }
}

/// What the shadow is granted.
struct Respawner(Arc<Starter>);

impl Respawn for Respawner {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        let mut driver = self.0.driver.lock();
        if driver.as_ref().is_none_or(|driver| driver.id == failed) {
            if self.0.starts.fetch_add(1, Ordering::SeqCst) >= self.0.most.load(Ordering::SeqCst) {
                return Err(RespawnError::GaveUp);
            }
            let next = self.0.next().map_err(|_| RespawnError::GaveUp)?;
            *driver = Some(next);
        }
        let current = driver.as_ref().ok_or(RespawnError::GaveUp)?;
        Ok(Incarnation {
            id: current.id,
            service: current.service.duplicate()?,
        })
    }

    fn attach(&self, _: Handle<dyn Gate>) -> RpcResult<()> {
        Ok(())
    }
}

/// A shadow with its driver.
pub struct Site {
    /// What gives it drivers.
    pub starter: Arc<Starter>,
    /// Authority over the shadow.
    pub shadow: Handle<dyn Domain>,
    /// What the shadow offers.
    pub device: Handle<dyn Net>,
}

/// A shadow that may have `most` drivers.
pub fn site(lab: &Lab, most: u32) -> Result<Site, String> {
    let starter = Arc::new(Starter {
        image: lab.image("domains/nullnet")?,
        driver: Mutex::new(None),
        starts: AtomicU32::new(0),
        most: AtomicU32::new(most),
    });
    let respawn = Handle::<dyn Respawn>::new(Respawner(starter.clone())).map_err(say)?;
    let mut started = start(&lab.image("domains/net-shadow")?, Some(respawn.into_any()))?;
    let device = started.offers[0]
        .take()
        .ok_or("the shadow offers nothing")?;
    Ok(Site {
        starter,
        shadow: started.control,
        device: device.downcast().map_err(|_| "not a network device")?,
    })
}

impl Site {
    /// Ends both, and waits until nothing is left of them.
    pub fn end(self) -> Verdict {
        self.shadow.kill().map_err(say)?;
        self.shadow.wait().map_err(say)?;
        self.starter.end()
    }
}

/// A batch of packets of `length` bytes.
pub fn batch(length: u32) -> RpcResult<RRef<Batch>> {
    let packet = Packet {
        length,
        bytes: [0; 1596],
    };
    RRef::new(Batch {
        count: ROOM as u32,
        packets: RVec::filled(packet, ROOM)?,
    })
}

/// Sends a batch, and looks at what comes back.
pub fn send(device: &Handle<dyn Net>) -> Verdict {
    let empty = device.send(batch(64).map_err(say)?).map_err(say)?;
    let (count, room) = (empty.count, empty.packets.len());
    ensure!(
        (count, room) == (0, ROOM),
        "{count} packets, room for {room}"
    );
    Ok(())
}

fn sent(device: &Handle<dyn Net>) -> Result<u64, String> {
    Ok(device.traffic().map_err(say)?.sent)
}

fn outlives(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let site = site(lab, 100)?;
        let address = site.device.address().map_err(say)?;
        send(&site.device)?;
        ensure!(
            sent(&site.device)? == 4,
            "the driver did not see the packets"
        );
        site.starter.kill()?;
        // These are lost as if on the wire, the next ones are not.
        send(&site.device)?;
        ensure!(sent(&site.device)? == 0, "lost packets were sent again");
        send(&site.device)?;
        ensure!(
            sent(&site.device)? == 4,
            "the next driver did not see the packets"
        );
        site.starter.kill()?;
        let full = site.device.receive(batch(0).map_err(say)?).map_err(say)?;
        ensure!(full.count == 4, "{} packets received", full.count);
        let starts = site.starter.starts.load(Ordering::SeqCst);
        ensure!(starts == 3, "{starts} drivers were started");
        ensure!(site.device.address() == Ok(address), "another address");
        drop(full);
        site.end()
    })
}

fn refusals(lab: &Lab) -> Verdict {
    let site = site(lab, 100)?;
    for length in [13, 1515, u32::MAX] {
        let answer = site.device.send(batch(length).map_err(say)?);
        ensure!(
            matches!(answer, Err(NetError::BadLength)),
            "length {length} passes"
        );
    }
    let mut too_many = batch(64).map_err(say)?;
    too_many.count = ROOM as u32 + 1;
    let answer = site.device.send(too_many);
    ensure!(
        matches!(answer, Err(NetError::BadLength)),
        "a wrong count passes"
    );
    let starts = site.starter.starts.load(Ordering::SeqCst);
    ensure!(starts == 1, "a refusal led to {starts} starts");
    site.end()
}

fn gives_up(lab: &Lab) -> Verdict {
    let site = site(lab, 1)?;
    site.starter.kill()?;
    // The first call has an answer without a driver: its packets are lost in any case.
    send(&site.device)?;
    let answer = site.device.send(batch(64).map_err(say)?);
    ensure!(
        matches!(answer, Err(NetError::Gone)),
        "it goes on without a driver"
    );
    site.starter.most.store(100, Ordering::SeqCst);
    send(&site.device)?;
    site.end()
}

/// Four threads send without a pause while drivers are ended: no call fails.
fn four_senders(lab: &Lab) -> Verdict {
    const LIVES: u32 = 5;
    lab.conserves_memory(|| {
        let site = site(lab, 100)?;
        let (stop, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let failed = Arc::new(Mutex::new(None));
        for _ in 0..4 {
            let device = site.device.duplicate().map_err(say)?;
            let (stop, done, failed) = (stop.clone(), done.clone(), failed.clone());
            thread::spawn("sender", move || {
                while stop.load(Ordering::SeqCst) == 0 {
                    if let Err(why) = (0..10).try_for_each(|_| send(&device)) {
                        *failed.lock() = Some(why);
                        break;
                    }
                    // So that one processor is enough for all.
                    time::sleep(500_000);
                }
                drop(device);
                done.fetch_add(1, Ordering::SeqCst);
            })
            .map_err(say)?;
        }
        for life in 1..=LIVES {
            site.starter.kill()?;
            wait_for("the next driver", || {
                site.starter.starts.load(Ordering::SeqCst) > life
            })?;
        }
        stop.store(1, Ordering::SeqCst);
        wait_for("the senders", || done.load(Ordering::SeqCst) == 4)?;
        let why = failed.lock().take();
        site.end()?;
        let mine = domain_rt::self_id();
        wait_for(
            "the senders' threads",
            || matches!(lab.info(mine), Ok(Some(info)) if info.threads == 1),
        )?;
        time::sleep(2_000_000);
        why.map_or(Ok(()), Err)
    })
}
