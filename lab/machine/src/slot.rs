//! A slot that devices can be pulled out of: a port of PCI Express whose power is switched off
//! while the system runs, without a word to it. QEMU takes the device away at that moment, whatever
//! it was doing: reads of its registers give ones, and nothing is ever answered.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// What the monitor prints when it waits for a command.
const PROMPT: &str = "(qemu) ";
/// How long QEMU may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// The port's place on the first bus.
const DEVICE: u32 = 0x1e;
/// Ports of the processor: the address in configuration space, and what is there (PCI 3.0, section
/// 3.2.2.3.2).
const ADDRESS: u32 = 0xcf8;
const DATA: u32 = 0xcfc;
/// Where the list of capabilities begins, the number of that of PCI Express, and the register in it
/// that the slot is switched with (PCI Express 3.0, sections 7.5.1.7 and 7.8.10).
const LIST: u32 = 0x34;
const EXPRESS: u32 = 0x10;
const SLOT_CONTROL: u32 = 0x18;
/// Power off, and the light that says so.
const OFF: u32 = 0x0700;

/// The port as QEMU's `-device` wants it: bus `pullable`.
pub(crate) fn port() -> String {
    format!("pcie-root-port,id=pullable,bus=pcie.0,chassis=1,slot=1,addr={DEVICE:#x}")
}

/// Switches the port off, by the monitor behind this socket.
pub(crate) fn switch_off(monitor: &Path) -> Result<()> {
    let mut monitor = Monitor::at(monitor)?;
    let mut at = monitor.byte(LIST)?;
    while at != 0 && monitor.byte(at)? != EXPRESS {
        at = monitor.byte(at + 1)?;
    }
    ensure!(at != 0, "the slot is no port of PCI Express");
    monitor.store(at + SLOT_CONTROL, OFF)
}

/// QEMU's monitor.
struct Monitor(UnixStream);

impl Monitor {
    fn at(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("QEMU's monitor is not there")?;
        stream.set_read_timeout(Some(ANSWER))?;
        let mut monitor = Monitor(stream);
        monitor.answer()?;
        Ok(monitor)
    }

    /// What it prints up to the next prompt.
    fn answer(&mut self) -> Result<String> {
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while !seen.ends_with(PROMPT.as_bytes()) {
            let length = self.0.read(&mut buffer)?;
            ensure!(length > 0, "QEMU's monitor hung up");
            seen.extend_from_slice(&buffer[..length]);
        }
        Ok(String::from_utf8_lossy(&seen).into_owned())
    }

    fn run(&mut self, command: &str) -> Result<String> {
        self.0.write_all(format!("{command}\n").as_bytes())?;
        self.answer()
    }

    /// Chooses a register of the port.
    fn choose(&mut self, register: u32) -> Result<()> {
        let address = 1 << 31 | DEVICE << 11 | register & !3;
        self.run(&format!("o /w {ADDRESS:#x} {address:#x}"))?;
        Ok(())
    }

    fn byte(&mut self, register: u32) -> Result<u32> {
        self.choose(register)?;
        let said = self.run(&format!("i /b {:#x}", DATA + register % 4))?;
        read_value(&said).with_context(|| format!("QEMU's monitor says {said:?}"))
    }

    fn store(&mut self, register: u32, value: u32) -> Result<()> {
        self.choose(register)?;
        self.run(&format!("o /h {:#x} {value:#x}", DATA + register % 4))?;
        Ok(())
    }
}

/// The value in what the monitor prints of a port: `portb[0xcfc] = 0x10`.
fn read_value(said: &str) -> Option<u32> {
    let value = said.rsplit("] = 0x").next()?;
    let digits = value.split(|byte: char| !byte.is_ascii_hexdigit()).next()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_ports_are_read() {
        let echoed = "i\u{1b}[K\u{1b}[Di /b 0xcfc\u{1b}[K\r\nportb[0x0cfc] = 0x48\r\n(qemu) ";
        assert_eq!(read_value(echoed), Some(0x48));
        assert_eq!(read_value("unknown command: 'i'\r\n(qemu) "), None);
    }
}
