//! A way to tell the user why the system does not come up when there is no console to say it on.
//!
//! The log may go to a place that nobody looks at. As long as no console domain has the serial
//! ports, `init` can take one for as long as a line takes; if they are in use, the message is only
//! in the log.

use alloc::format;
use interfaces::{Handle, Hardware, HardwareError, Ports, RVec};
use uart::Registers;

/// The port where error output goes.
const ERRORS: u16 = 0x3e8;
/// The port with the terminal.
const TERMINAL: u16 = 0x3f8;
/// So often a transmitter that is busy is looked at before it is given up.
const PATIENCE: u32 = 1_000_000;

/// Writes a line to a serial port: with `once`, when the output is for another program, to that for
/// errors if there is one.
pub fn write(hardware: &Handle<dyn Hardware>, text: &str, once: bool) {
    let end = if once { "\n" } else { "\r\n" };
    let line = format!("init: {text}{end}");
    let order = if once {
        &[ERRORS, TERMINAL][..]
    } else {
        &[TERMINAL]
    };
    let _ = order
        .iter()
        .find(|&&port| send(hardware, port, line.as_bytes()).is_ok());
}

fn send(hardware: &Handle<dyn Hardware>, first: u16, line: &[u8]) -> Result<(), HardwareError> {
    let port = Taken(hardware.ports(first, 8)?);
    if !uart::is_present(&port)? {
        return Err(HardwareError::NoSuchResource);
    }
    uart::set_up(&port, false)?;
    let mut patience = PATIENCE;
    uart::send(&port, line, || {
        patience = patience
            .checked_sub(1)
            .ok_or(HardwareError::NoSuchResource)?;
        Ok(())
    })
}

/// Register access for the moment.
struct Taken(Handle<dyn Ports>);

impl Registers for Taken {
    type Error = HardwareError;

    fn read(&self, offset: u16) -> Result<u8, HardwareError> {
        self.0.read8(offset)
    }

    fn write(&self, offset: u16, value: u8) -> Result<(), HardwareError> {
        self.0.write8(offset, value)
    }

    fn transmit(&self, bytes: &[u8]) -> Result<(), HardwareError> {
        self.0.write8_all(0, &RVec::from_slice(bytes)?)
    }
}
