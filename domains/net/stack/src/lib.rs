//! The network stack: `lib/net/endpoint` between a driver and the clock.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`line`] | the driver, also after it has crashed, and what arrives from it |
//!
//! One thread does everything: packets, timers, the echo service. It waits only for the event that
//! the driver raises, with the next timer as the deadline. When the driver crashes, the packets
//! that it had are lost as on a wire, and the next instance is asked for; connections notice a
//! delay. There is no shadow between: it would know nothing that the stack does not.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod line;

use domain_rt::{log, memory, thread, time};
use endpoint::{Endpoint, Fixed, Next, Settings};
use interfaces::{Events, Handle, NetError, RVec, Random, Respawn, RpcError, RpcResult};

use line::Line;

/// The shortest sleep, in nanoseconds: so often a timer that is always due can come.
const SHORTEST: u64 = 1_000_000;
/// How long a driver that is not to be had is left alone, in nanoseconds.
const PAUSE: u64 = 500_000_000;
/// How often in a row the driver is asked for packets, before time is looked at.
const MOST_BATCHES: usize = 8;

/// Starts the stack. The driver is asked for here, so that a missing device is noticed at the
/// start.
///
/// # Errors
/// [`RpcError::Refused`] if there is no working driver, an option is wrong, or there are no random
/// numbers; the log says which.
pub fn start(
    driver: Handle<dyn Respawn>,
    events: Handle<dyn Events>,
    random: Handle<dyn Random>,
    options: RVec<u8>,
) -> RpcResult<()> {
    memory::reserve(memory::SERVICE)?;
    let text = core::str::from_utf8(&options).unwrap_or("(no text)");
    let settings = Settings::parse(text).map_err(|word| {
        log!("options: `{word}` is not understood");
        RpcError::Refused
    })?;
    let seed = seed(&random)?;
    let (line, address) = match Line::new(driver, events) {
        Ok(found) => found,
        Err(NetError::Rpc(error)) => return Err(error),
        Err(error) => {
            log!("there is no working driver: {error:?}");
            return Err(RpcError::Refused);
        }
    };
    let endpoint = Endpoint::new(address, &settings, seed, time::now()).map_err(|_| {
        log!("the hardware address is not that of one device");
        RpcError::Refused
    })?;
    thread::spawn("packets", move || serve(line, endpoint))
}

/// A random number, on which the first numbers of connections depend.
fn seed(random: &Handle<dyn Random>) -> RpcResult<u64> {
    let bytes = random.fill(RVec::filled(0u8, 8)?).ok();
    let bytes = bytes.and_then(|bytes| <[u8; 8]>::try_from(&*bytes).ok());
    bytes.map(u64::from_le_bytes).ok_or_else(|| {
        log!("there are no random numbers");
        RpcError::Refused
    })
}

/// The body of the thread.
fn serve(mut line: Line, mut endpoint: Endpoint) {
    let mut shown = None;
    loop {
        let (next, has_more) = match turn(&mut line, &mut endpoint) {
            Ok(done) => done,
            Err(_) => {
                // What is lost with the driver is sent again when its time has come.
                time::sleep(PAUSE);
                continue;
            }
        };
        if endpoint.address() != shown {
            shown = endpoint.address();
            show(shown);
        }
        let now = time::now();
        let deadline = match next {
            _ if has_more => continue,
            Next::AtOnce => continue,
            Next::At(at) => Some(at.max(now.saturating_add(SHORTEST))),
            Next::Never => None,
        };
        if let Err(error) = line.wait(deadline) {
            log!("cannot wait for packets: {error}");
            time::sleep(PAUSE);
        }
    }
}

/// Takes packets in, does what there is to do, and sends packets: when there is something to do
/// again, and whether the driver may have more packets.
fn turn(line: &mut Line, endpoint: &mut Endpoint) -> Result<(Next, bool), NetError> {
    let mut has_more = true;
    for _ in 0..MOST_BATCHES {
        has_more = line.receive(|frame| endpoint.receive(frame))?;
        if !has_more {
            break;
        }
    }
    let next = endpoint.turn(time::now());
    line.send(|| endpoint.take())?;
    Ok((next, has_more))
}

/// Says in the log which address there is now.
fn show(address: Option<Fixed>) {
    match address {
        None => log!("there is no address any more"),
        Some(Fixed {
            address,
            prefix,
            router: Some(router),
        }) => log!("address {address}/{prefix}, router {router}"),
        Some(Fixed {
            address, prefix, ..
        }) => log!("address {address}/{prefix}"),
    }
}
