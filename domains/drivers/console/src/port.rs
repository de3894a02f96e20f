//! A serial port over granted I/O ports.

use crate::input::Input;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{Handle, HardwareError, Ports, RVec, RpcError, RpcResult};
use uart::Registers;

/// The pause before the transmitter is looked at again, in nanoseconds.
const PAUSE: u64 = 1_000_000;

/// A port. Who sends holds the lock.
pub struct Port {
    registers: Granted,
    sending: Mutex<()>,
    /// Nobody notifies it: it is for waits that end when the caller is killed.
    never: Condvar,
}

impl Port {
    /// The port at these addresses.
    pub fn new(ports: Handle<dyn Ports>) -> Self {
        Port {
            registers: Granted(ports),
            sending: Mutex::new(()),
            never: Condvar::new(),
        }
    }

    /// Whether there is one.
    pub fn is_present(&self) -> RpcResult<bool> {
        uart::is_present(&self.registers)
    }

    /// Sets it up; with `receive` it raises interrupts for received bytes.
    pub fn set_up(&self, receive: bool) -> RpcResult<()> {
        uart::set_up(&self.registers, receive)
    }

    /// Moves all received bytes to `input`.
    pub fn receive_into(&self, input: &Input) -> RpcResult<()> {
        let mut buffer = [0; 64];
        loop {
            let count = uart::receive(&self.registers, &mut buffer)?;
            input.push(&buffer[..count]);
            if count < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Sends all of `text`. While the other side does not take it, this waits.
    pub fn send(&self, text: &[u8]) -> RpcResult<()> {
        let mut guard = Some(self.sending.lock());
        uart::send(&self.registers, text, || {
            let held = guard.take().expect("put back at the end of every pause");
            let (held, wait) = self.never.wait_until(held, time::now() + PAUSE);
            guard = Some(held);
            if wait == Wait::Interrupted {
                Err(RpcError::Interrupted)
            } else {
                Ok(())
            }
        })
    }
}

/// Register access through the grant.
struct Granted(Handle<dyn Ports>);

impl Registers for Granted {
    type Error = RpcError;

    fn read(&self, offset: u16) -> RpcResult<u8> {
        self.0.read8(offset).map_err(refused)
    }

    fn write(&self, offset: u16, value: u8) -> RpcResult<()> {
        self.0.write8(offset, value).map_err(refused)
    }

    fn transmit(&self, bytes: &[u8]) -> RpcResult<()> {
        match bytes {
            [byte] => self.write(0, *byte),
            _ => self
                .0
                .write8_all(0, &RVec::from_slice(bytes)?)
                .map_err(refused),
        }
    }
}

/// The only error of its own that a granted range can have is an offset outside of it.
fn refused(error: HardwareError) -> RpcError {
    match error {
        HardwareError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}
