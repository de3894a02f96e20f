//! The 16550 serial port, as a driver sees it, and a [`Ring`] of bytes for what it receives.
//!
//! Pure logic over [`Registers`]; the registers are those of the PC16550D data sheet, section 8.
//! The port is set to 8 data bits, no parity, one stop bit, with its FIFOs of 16 bytes on. Received
//! bytes raise an interrupt; sending looks at the line status, since an emulated port is always
//! ready and a real one is waited for politely.
#![no_std]
#![forbid(unsafe_code)]

mod ring;

pub use ring::Ring;

/// The eight registers of a port, by offset. An access fails when the port is taken away.
pub trait Registers {
    /// Why an access failed.
    type Error;
    /// Reads a register.
    fn read(&self, offset: u16) -> Result<u8, Self::Error>;
    /// Writes a register.
    fn write(&self, offset: u16, value: u8) -> Result<(), Self::Error>;
    /// Writes each of at most [`FIFO`] bytes to the transmitter (offset 0).
    fn transmit(&self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// Bytes that the transmitter takes at once.
pub const FIFO: usize = 16;

/// Eight received bytes raise an interrupt; fewer do when no more have come for as long as four
/// take, 0.35 ms. QEMU hands over no more than what raises one, and then waits until it is taken:
/// with one byte, a line costs as many turns of its own thread as it has letters, each of which the
/// host may delay by milliseconds.
const TRIGGER_EIGHT: u8 = 0x80;

const DATA: u16 = 0;
const INTERRUPT_ENABLE: u16 = 1;
const INTERRUPT_IDENTITY: u16 = 2;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;
const MODEM_STATUS: u16 = 6;
const SCRATCH: u16 = 7;

const RECEIVED: u8 = 1;
const TRANSMITTER_EMPTY: u8 = 0x20;

/// Divisor of 115,200 baud; with the clock of 1.8432 MHz that is the fastest.
const DIVISOR: u16 = 1;

/// Whether there is a port: its scratch register keeps what is written.
///
/// # Errors
/// An access failed.
pub fn is_present<R: Registers>(port: &R) -> Result<bool, R::Error> {
    for pattern in [0x5a, 0xa5] {
        port.write(SCRATCH, pattern)?;
        if port.read(SCRATCH)? != pattern {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets the port up, whatever state a former driver left it in: bytes in its FIFOs are lost, and no
/// interrupt is left waiting. With `receive` it raises an interrupt for received bytes.
///
/// # Errors
/// An access failed.
pub fn set_up<R: Registers>(port: &R, receive: bool) -> Result<(), R::Error> {
    port.write(INTERRUPT_ENABLE, 0)?;
    // The divisor is behind the data and interrupt registers while the top bit of the line control
    // is set.
    port.write(LINE_CONTROL, 0x80)?;
    port.write(DATA, DIVISOR as u8)?;
    port.write(INTERRUPT_ENABLE, (DIVISOR >> 8) as u8)?;
    port.write(LINE_CONTROL, 0x03)?;
    // FIFOs on and emptied.
    port.write(FIFO_CONTROL, TRIGGER_EIGHT | 0x07)?;
    // Ready, and the interrupt output connected (OUT2).
    port.write(MODEM_CONTROL, 0x0b)?;
    for register in [LINE_STATUS, DATA, INTERRUPT_IDENTITY, MODEM_STATUS] {
        port.read(register)?;
    }
    port.write(INTERRUPT_ENABLE, u8::from(receive))
}

/// Takes all received bytes out of the port, up to the length of `buffer`; how many.
///
/// # Errors
/// An access failed; bytes taken before are lost.
pub fn receive<R: Registers>(port: &R, buffer: &mut [u8]) -> Result<usize, R::Error> {
    let mut count = 0;
    while count < buffer.len() && port.read(LINE_STATUS)? & RECEIVED != 0 {
        buffer[count] = port.read(DATA)?;
        count += 1;
    }
    Ok(count)
}

/// Sends all bytes, calling `pause` while the transmitter is busy.
///
/// # Errors
/// An access failed, or `pause` gave up.
pub fn send<R: Registers>(
    port: &R,
    bytes: &[u8],
    mut pause: impl FnMut() -> Result<(), R::Error>,
) -> Result<(), R::Error> {
    for burst in bytes.chunks(FIFO) {
        while port.read(LINE_STATUS)? & TRANSMITTER_EMPTY == 0 {
            pause()?;
        }
        port.transmit(burst)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::cell::{Cell, RefCell};
    use std::vec::Vec;

    #[derive(Default)]
    struct Model {
        absent: bool,
        registers: RefCell<[u8; 8]>,
        input: RefCell<Vec<u8>>,
        output: RefCell<Vec<u8>>,
        busy: Cell<u32>,
        bursts: RefCell<Vec<usize>>,
    }

    impl Registers for Model {
        type Error = &'static str;
        fn read(&self, offset: u16) -> Result<u8, Self::Error> {
            if self.absent {
                return Ok(0xff);
            }
            Ok(match offset {
                DATA if !self.input.borrow().is_empty() => self.input.borrow_mut().remove(0),
                LINE_STATUS => {
                    let busy = self.busy.get();
                    self.busy.set(busy.saturating_sub(1));
                    u8::from(!self.input.borrow().is_empty())
                        | if busy == 0 { TRANSMITTER_EMPTY } else { 0 }
                }
                _ => self.registers.borrow()[usize::from(offset)],
            })
        }
        fn write(&self, offset: u16, value: u8) -> Result<(), Self::Error> {
            if offset == FIFO_CONTROL && value & 2 != 0 {
                self.input.borrow_mut().clear();
            }
            self.registers.borrow_mut()[usize::from(offset)] = value;
            Ok(())
        }
        fn transmit(&self, bytes: &[u8]) -> Result<(), Self::Error> {
            self.bursts.borrow_mut().push(bytes.len());
            self.output.borrow_mut().extend(bytes);
            Ok(())
        }
    }

    #[test]
    fn a_port_is_told_from_an_empty_place() {
        assert_eq!(is_present(&Model::default()), Ok(true));
        assert_eq!(
            is_present(&Model {
                absent: true,
                ..Model::default()
            }),
            Ok(false)
        );
    }

    #[test]
    fn set_up_leaves_nothing_behind() {
        let port = Model::default();
        port.input.borrow_mut().extend(b"old bytes");
        set_up(&port, true).expect("accesses work");
        assert!(port.input.borrow().is_empty());
        let registers = *port.registers.borrow();
        assert_eq!((registers[1], registers[3], registers[4]), (1, 3, 0x0b));
    }

    #[test]
    fn long_texts_go_in_bursts() {
        let port = Model::default();
        let text: Vec<u8> = (0..40).collect();
        send(&port, &text, || Ok(())).expect("accesses work");
        assert_eq!(
            (&*port.output.borrow(), &*port.bursts.borrow()),
            (&text, &std::vec![16, 16, 8])
        );
    }

    #[test]
    fn a_busy_port_is_waited_for_until_the_pause_gives_up() {
        let port = Model::default();
        port.busy.set(3);
        let pauses = Cell::new(0);
        send(&port, b"x", || {
            pauses.set(pauses.get() + 1);
            Ok(())
        })
        .expect("it gets ready");
        assert_eq!(pauses.get(), 3);
        port.busy.set(1_000_000);
        assert_eq!(send(&port, b"x", || Err("stuck")), Err("stuck"));
        assert_eq!(port.output.borrow().len(), 1);
    }

    /// A port as QEMU has it: it takes so many bytes from outside as raise an interrupt, and no
    /// more until those were read.
    fn interrupts_for(port: &Model, text: &[u8]) -> usize {
        let trigger = [1, 4, 8, 14][usize::from(port.registers.borrow()[2] >> 6)];
        let bursts = text.chunks(trigger).inspect(|burst| {
            port.input.borrow_mut().extend(*burst);
            let mut buffer = [0; 64];
            assert_eq!(receive(port, &mut buffer), Ok(burst.len()));
        });
        bursts.count()
    }

    #[test]
    fn a_line_that_is_typed_at_once_takes_few_interrupts() {
        let port = Model::default();
        set_up(&port, true).expect("accesses work");
        assert_eq!(interrupts_for(&port, b"ls /\n"), 1);
        assert_eq!(interrupts_for(&port, &[b'x'; 64]), 8);
    }

    #[test]
    fn what_does_not_fit_stays_in_the_port() {
        let port = Model::default();
        port.input.borrow_mut().extend(b"abcdef");
        let mut buffer = [0; 4];
        assert_eq!(receive(&port, &mut buffer), Ok(4));
        assert_eq!(&buffer, b"abcd");
        assert_eq!(receive(&port, &mut buffer), Ok(2));
        assert_eq!(receive(&port, &mut buffer), Ok(0));
    }
}
