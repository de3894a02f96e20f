//! I/O APICs: they turn the wires of legacy devices into messages to a processor.
//!
//! Reference: Intel 82093AA data sheet, section 3.

use super::controller::map_registers;
use super::regs;
use crate::arch::types::{Polarity, Trigger};
use crate::arch::upcalls::{NoMemory, SpinLock};

const MAX_CONTROLLERS: usize = 8;
const SELECT: usize = 0;
const WINDOW: usize = 0x10;
const VERSION: u32 = 1;
const TABLE: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const ACTIVE_LOW: u32 = 1 << 13;

/// One controller.
#[derive(Clone, Copy)]
struct Controller {
    /// Address of its registers.
    base: usize,
    /// Its first global system interrupt.
    gsi_base: u32,
    /// How many it has.
    inputs: u32,
}

static CONTROLLERS: SpinLock<[Option<Controller>; MAX_CONTROLLERS]> =
    SpinLock::new([None; MAX_CONTROLLERS]);

impl Controller {
    fn read(&self, register: u32) -> u32 {
        // SAFETY: `add` mapped the registers; the lock around all controllers keeps the
        // select-then-access pair together.
        unsafe {
            ((self.base + SELECT) as *mut u32).write_volatile(register);
            ((self.base + WINDOW) as *const u32).read_volatile()
        }
    }

    fn write(&self, register: u32, value: u32) {
        // SAFETY: as in `read`; entries written here name vectors that all have handlers.
        unsafe {
            ((self.base + SELECT) as *mut u32).write_volatile(register);
            ((self.base + WINDOW) as *mut u32).write_volatile(value);
        }
    }

    fn input(&self, gsi: u32) -> Option<u32> {
        gsi.checked_sub(self.gsi_base)
            .filter(|input| *input < self.inputs)
    }
}

/// Maps the controller at this physical address and masks all its inputs.
pub(super) fn add(physical: u64, gsi_base: u32) -> Result<(), NoMemory> {
    let base = map_registers(physical)?;
    let mut controller = Controller {
        base,
        gsi_base,
        inputs: 0,
    };
    let mut all = CONTROLLERS.lock();
    controller.inputs = (controller.read(VERSION) >> 16 & 0xff) + 1;
    for input in 0..controller.inputs {
        controller.write(TABLE + 2 * input, MASKED);
    }
    let slot = all.iter_mut().find(|slot| slot.is_none()).ok_or(NoMemory)?;
    *slot = Some(controller);
    Ok(())
}

/// Calls `act` with the controller and input of `gsi`; `None` if no controller has it.
fn with_input<R>(gsi: u32, act: impl FnOnce(&Controller, u32) -> R) -> Option<R> {
    let all = CONTROLLERS.lock();
    all.iter()
        .flatten()
        .find_map(|controller| Some((controller, controller.input(gsi)?)))
        .map(|(controller, input)| act(controller, input))
}

/// Whether some controller has this input.
pub(crate) fn has(gsi: u32) -> bool {
    with_input(gsi, |_, _| ()).is_some()
}

/// Sends the input to `vector` of the processor with this APIC id, unmasked.
pub(super) fn route(gsi: u32, vector: u8, apic_id: u32, trigger: Trigger, polarity: Polarity) {
    let level = if trigger == Trigger::Level { LEVEL } else { 0 };
    let low = if polarity == Polarity::Low {
        ACTIVE_LOW
    } else {
        0
    };
    with_input(gsi, |controller, input| {
        controller.write(TABLE + 2 * input, MASKED);
        controller.write(TABLE + 2 * input + 1, apic_id << 24);
        controller.write(TABLE + 2 * input, u32::from(vector) | level | low);
    });
}

/// Masks or unmasks the input.
pub(crate) fn set_masked(gsi: u32, masked: bool) {
    with_input(gsi, |controller, input| {
        let entry = controller.read(TABLE + 2 * input);
        let entry = if masked {
            entry | MASKED
        } else {
            entry & !MASKED
        };
        controller.write(TABLE + 2 * input, entry);
    });
}

/// Whether the input is masked.
#[cfg(feature = "selftest")]
pub(crate) fn is_masked(gsi: u32) -> bool {
    with_input(gsi, |controller, input| {
        controller.read(TABLE + 2 * input) & MASKED != 0
    })
    .unwrap_or(true)
}

/// Moves the two 8259 controllers to vectors 0x20 to 0x2f and masks them (8259A data sheet).
pub(super) fn mask_legacy_controllers() {
    const WRITES: [(u16, u8); 10] = [
        (0x20, 0x11),
        (0xa0, 0x11),
        (0x21, 0x20),
        (0xa1, 0x28),
        (0x21, 4),
        (0xa1, 2),
        (0x21, 1),
        (0xa1, 1),
        (0x21, 0xff),
        (0xa1, 0xff),
    ];
    for (port, value) in WRITES {
        // SAFETY: programs the interrupt controllers that only this function touches.
        unsafe { regs::outb(port, value) };
    }
}
