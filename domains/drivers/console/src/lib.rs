//! Driver of a 16550 serial port as the terminal, with a second port for error output if there is
//! one.
//!
//! Received bytes raise an interrupt; a thread takes them out of the port and puts them into a
//! ring, where readers wait for them. Output goes out under a lock, in bursts that the port's FIFO
//! takes. The port is set up anew at every start, so a crash costs the bytes in its FIFO and in the
//! ring and nothing else.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod input;
mod port;

use alloc::sync::Arc;
use domain_rt::{log, memory, thread};
use interfaces::{Console, Handle, Interrupt, Ports, RVec, RpcError, RpcResult};

use input::Input;
use port::Port;

/// Sets the ports up and starts the thread that receives.
///
/// # Errors
/// [`RpcError::Refused`] if there is no port where one is expected; the log says so.
pub fn start(
    ports: Handle<dyn Ports>,
    interrupt: Handle<dyn Interrupt>,
    errors: Option<Handle<dyn Ports>>,
) -> RpcResult<(Handle<dyn Console>, Handle<dyn Console>)> {
    memory::reserve(memory::SERVICE)?;
    let terminal = Arc::new(Port::new(ports));
    // An error is an answer, too: the granted range is too short for a serial port.
    if !terminal.is_present().unwrap_or(false) {
        log!("there is no serial port at these addresses");
        return Err(RpcError::Refused);
    }
    let input = Arc::new(Input::new());
    let (of_port, of_thread) = (terminal.clone(), input.clone());
    terminal.set_up(true)?;
    thread::spawn("receive", move || receive(&of_port, &of_thread, &interrupt))?;
    let errors = second_port(errors).unwrap_or_else(|| terminal.clone());
    let terminal = Handle::new(Terminal {
        port: terminal,
        input,
    })?;
    Ok((terminal, Handle::new(Errors(errors))?))
}

/// The second port, if it was granted and is there.
fn second_port(ports: Option<Handle<dyn Ports>>) -> Option<Arc<Port>> {
    let port = Port::new(ports?);
    let works = port.is_present().is_ok_and(|present| present) && port.set_up(false).is_ok();
    works.then(|| Arc::new(port))
}

/// Takes received bytes for as long as the domain lives. The count is read before the port is
/// emptied, so an interrupt in between ends the next wait at once.
fn receive(port: &Port, input: &Input, interrupt: &Handle<dyn Interrupt>) {
    let ended = || -> RpcResult<()> {
        let mut seen = interrupt.count()?;
        loop {
            port.receive_into(input)?;
            interrupt.acknowledge()?;
            seen = interrupt.wait(seen, None)?;
        }
    };
    if let Err(error) = ended() {
        log!("no more input: {error}");
    }
}

/// The terminal, as others see it.
struct Terminal {
    port: Arc<Port>,
    input: Arc<Input>,
}

impl Console for Terminal {
    fn write(&self, text: &RVec<u8>) -> RpcResult<()> {
        self.port.send(text)
    }

    fn read(&self, buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        self.input.read(buffer)
    }
}

/// The place for error output, as others see it.
struct Errors(Arc<Port>);

impl Console for Errors {
    fn write(&self, text: &RVec<u8>) -> RpcResult<()> {
        self.0.send(text)
    }

    /// Nothing comes from there.
    fn read(&self, _buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        Err(RpcError::Refused)
    }
}
