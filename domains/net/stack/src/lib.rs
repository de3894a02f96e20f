//! The network stack: `lib/net/endpoint` between a driver and the clock.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`line`] | the driver, also after it has crashed, and what arrives from it |
//! | [`doors`] | sockets, which others call |
//!
//! One thread has the packets, timers and the echo service. It waits only for the event that the
//! driver raises, and for the bell that calls to a socket ring, with the next timer as the
//! deadline. When the driver crashes, the packets that it had are lost as on a wire, and the next
//! instance is asked for; connections notice a delay. There is no shadow between: it would know
//! nothing that the stack does not.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod doors;
mod line;

use alloc::sync::Arc;

use domain_rt::{log, memory, thread, time};
use endpoint::{Endpoint, Fixed, Next, Settings};
use interfaces::{Events, Handle, NetError, RVec, Random, Respawn, RpcError, RpcResult, Sockets};

use doors::{Entrance, Stack};
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
) -> RpcResult<Handle<dyn Sockets>> {
    memory::reserve(memory::SERVICE)?;
    let text = core::str::from_utf8(&options).unwrap_or("(no text)");
    let settings = Settings::parse(text).map_err(|word| {
        log!("options: `{word}` is not understood");
        RpcError::Refused
    })?;
    let seed = seed(&random)?;
    let (mut line, address) = match Line::new(driver, events.duplicate()?) {
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
    let (stack, bell) = Stack::new(endpoint, events)?;
    line.hear(bell)?;
    let of_thread = stack.clone();
    thread::spawn("packets", move || serve(line, &of_thread))?;
    Handle::new(Entrance(stack))
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
fn serve(mut line: Line, stack: &Arc<Stack>) {
    let mut shown = None;
    loop {
        let (next, has_more) = turn(&mut line, stack);
        let address = stack.core().endpoint.address();
        if address != shown {
            shown = address;
            show(shown);
        }
        let now = time::now();
        let deadline = match (next, has_more) {
            // What is lost with the driver is sent again when its time has come.
            (_, Err(_)) => Some(now.saturating_add(PAUSE)),
            (_, Ok(true)) | (Next::AtOnce, _) => continue,
            (Next::At(at), _) => Some(at.max(now.saturating_add(SHORTEST))),
            (Next::Never, _) => None,
        };
        if let Err(error) = line.wait(deadline) {
            log!("cannot wait for packets: {error}");
            time::sleep(PAUSE);
        }
    }
}

/// Takes packets in, does what there is to do, and sends packets: when there is something to do
/// again, and whether the driver may have more packets, if there is one.
fn turn(line: &mut Line, stack: &Stack) -> (Next, Result<bool, NetError>) {
    let received = receive(line, stack);
    let next = stack.turn();
    let sent = match received {
        Ok(has_more) => line
            .send(|| stack.core().endpoint.take())
            .map(|()| has_more),
        Err(error) => Err(error),
    };
    if sent.is_err() {
        // They are lost, as on a wire that leads nowhere.
        while stack.core().endpoint.take().is_some() {}
    }
    (next, sent)
}

/// Takes packets in; whether there may be more.
fn receive(line: &mut Line, stack: &Stack) -> Result<bool, NetError> {
    for _ in 0..MOST_BATCHES {
        let has_more = line.receive(|frame| stack.core().endpoint.receive(frame))?;
        if !has_more {
            return Ok(false);
        }
    }
    Ok(true)
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
