//! Bringing a device up through its common configuration structure (virtio 1.2, sections 2.1, 3.1.1
//! and 4.1.4.3).
//!
//! The calls come in this order: [`reset`], [`negotiate`], [`set_up_queue`] for each queue,
//! [`start`]. A reset comes first because the device may still be working for a driver that
//! crashed; once it reads back as done, no request of the old driver can complete any more.

/// The registers of the common configuration structure. Offsets count from its start.
pub trait Registers {
    /// Reads 8 bits.
    fn read8(&self, offset: usize) -> u8;
    /// Reads 16 bits.
    fn read16(&self, offset: usize) -> u16;
    /// Reads 32 bits.
    fn read32(&self, offset: usize) -> u32;
    /// Writes 8 bits.
    fn write8(&self, offset: usize, value: u8);
    /// Writes 16 bits.
    fn write16(&self, offset: usize, value: u16);
    /// Writes 32 bits.
    fn write32(&self, offset: usize, value: u32);
}

/// Offsets of the registers (4.1.4.3).
mod at {
    pub const DEVICE_FEATURE_SELECT: usize = 0x00;
    pub const DEVICE_FEATURE: usize = 0x04;
    pub const DRIVER_FEATURE_SELECT: usize = 0x08;
    pub const DRIVER_FEATURE: usize = 0x0c;
    pub const CONFIG_VECTOR: usize = 0x10;
    pub const DEVICE_STATUS: usize = 0x14;
    pub const QUEUE_SELECT: usize = 0x16;
    pub const QUEUE_SIZE: usize = 0x18;
    pub const QUEUE_VECTOR: usize = 0x1a;
    pub const QUEUE_ENABLE: usize = 0x1c;
    pub const QUEUE_NOTIFY_OFFSET: usize = 0x1e;
    pub const QUEUE_DESCRIPTORS: usize = 0x20;
    pub const QUEUE_AVAILABLE: usize = 0x28;
    pub const QUEUE_USED: usize = 0x30;
}

const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;
const NEEDS_RESET: u8 = 64;
const FAILED: u8 = 128;

/// No MSI-X vector (4.1.5.1.2).
pub const NO_VECTOR: u16 = 0xffff;
/// Feature: the device follows version 1 of the specification (section 6).
pub const VERSION_1: u64 = 1 << 32;

/// Why a device did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// It did not finish its reset.
    NoReset,
    /// It does not follow version 1 of the specification.
    NoVersion1,
    /// It refused the features, which it offered itself.
    FeaturesRefused,
    /// It has no such queue, or one that is smaller than needed.
    NoQueue,
    /// It has no interrupt vector left for the queue.
    NoVector,
}

impl core::fmt::Display for SetupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SetupError::NoReset => "it does not finish its reset",
            SetupError::NoVersion1 => "it does not follow virtio 1.x",
            SetupError::FeaturesRefused => "it refuses the features that it offers",
            SetupError::NoQueue => "it lacks a queue",
            SetupError::NoVector => "it has no interrupt vector for a queue",
        })
    }
}

/// Where a queue lies, as the device sees it.
#[derive(Clone, Copy, Debug)]
pub struct QueueAddresses {
    /// The descriptor table.
    pub descriptors: u64,
    /// The available ring.
    pub available: u64,
    /// The used ring.
    pub used: u64,
}

/// Resets the device and waits for the end of it, calling `pause` between two looks at most
/// `patience` times.
///
/// # Errors
/// [`SetupError::NoReset`].
pub fn reset(
    registers: &impl Registers,
    patience: u32,
    mut pause: impl FnMut(),
) -> Result<(), SetupError> {
    registers.write8(at::DEVICE_STATUS, 0);
    for _ in 0..patience {
        if registers.read8(at::DEVICE_STATUS) == 0 {
            return Ok(());
        }
        pause();
    }
    Err(SetupError::NoReset)
}

/// Accepts those of the device's features that are in `wanted`, and version 1; which ones are in
/// force.
///
/// # Errors
/// [`SetupError::NoVersion1`] or [`SetupError::FeaturesRefused`]; the device is told that it
/// failed.
pub fn negotiate(registers: &impl Registers, wanted: u64) -> Result<u64, SetupError> {
    registers.write8(at::DEVICE_STATUS, ACKNOWLEDGE);
    registers.write8(at::DEVICE_STATUS, ACKNOWLEDGE | DRIVER);
    let offered = offered_features(registers);
    if offered & VERSION_1 == 0 {
        registers.write8(at::DEVICE_STATUS, FAILED);
        return Err(SetupError::NoVersion1);
    }
    let accepted = offered & (wanted | VERSION_1);
    for half in 0..2 {
        registers.write32(at::DRIVER_FEATURE_SELECT, half);
        registers.write32(at::DRIVER_FEATURE, (accepted >> (32 * half)) as u32);
    }
    registers.write8(at::DEVICE_STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
    if registers.read8(at::DEVICE_STATUS) & FEATURES_OK == 0 {
        registers.write8(at::DEVICE_STATUS, FAILED);
        return Err(SetupError::FeaturesRefused);
    }
    // Changes of the configuration are not followed, so they need no interrupt.
    registers.write16(at::CONFIG_VECTOR, NO_VECTOR);
    Ok(accepted)
}

fn offered_features(registers: &impl Registers) -> u64 {
    let half = |number: u32| {
        registers.write32(at::DEVICE_FEATURE_SELECT, number);
        u64::from(registers.read32(at::DEVICE_FEATURE))
    };
    half(0) | half(1) << 32
}

/// The most descriptors that queue `queue` may have: a power of two up to `wanted`, or 0 if there
/// is no such queue.
pub fn queue_size(registers: &impl Registers, queue: u16, wanted: u16) -> u16 {
    registers.write16(at::QUEUE_SELECT, queue);
    let most = registers.read16(at::QUEUE_SIZE).min(wanted);
    if most == 0 { 0 } else { 1 << most.ilog2() }
}

/// Sets up queue `queue` with `size` descriptors; completions raise MSI-X vector `vector`. Returns
/// where it is notified, in units of the multiplier.
///
/// # Errors
/// [`SetupError::NoQueue`] or [`SetupError::NoVector`].
pub fn set_up_queue(
    registers: &impl Registers,
    queue: u16,
    size: u16,
    vector: u16,
    addresses: QueueAddresses,
) -> Result<u16, SetupError> {
    registers.write16(at::QUEUE_SELECT, queue);
    if size == 0 || registers.read16(at::QUEUE_SIZE) < size {
        return Err(SetupError::NoQueue);
    }
    registers.write16(at::QUEUE_SIZE, size);
    registers.write16(at::QUEUE_VECTOR, vector);
    if registers.read16(at::QUEUE_VECTOR) != vector {
        return Err(SetupError::NoVector);
    }
    write64(registers, at::QUEUE_DESCRIPTORS, addresses.descriptors);
    write64(registers, at::QUEUE_AVAILABLE, addresses.available);
    write64(registers, at::QUEUE_USED, addresses.used);
    registers.write16(at::QUEUE_ENABLE, 1);
    Ok(registers.read16(at::QUEUE_NOTIFY_OFFSET))
}

/// 64-bit registers are written as two halves (4.1.3.1).
fn write64(registers: &impl Registers, offset: usize, value: u64) {
    registers.write32(offset, value as u32);
    registers.write32(offset + 4, (value >> 32) as u32);
}

/// Lets the device go.
pub fn start(registers: &impl Registers) {
    registers.write8(
        at::DEVICE_STATUS,
        ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK,
    );
}

/// Whether the device is up and has not asked for a reset (2.1.2).
pub fn is_healthy(registers: &impl Registers) -> bool {
    let status = registers.read8(at::DEVICE_STATUS);
    status & DRIVER_OK != 0 && status & NEEDS_RESET == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// A device that follows the rules, but for what a test tells it to do wrong.
    struct Model {
        bytes: RefCell<[u8; 64]>,
        features: u64,
        refuses: u64,
        resets_after: Cell<u32>,
        most: u16,
        vectors: u16,
        driver_features: Cell<u64>,
    }

    fn model() -> Model {
        Model {
            bytes: RefCell::new([0; 64]),
            features: VERSION_1 | 0x240,
            refuses: 0,
            resets_after: Cell::new(0),
            most: 256,
            vectors: 2,
            driver_features: Cell::new(0),
        }
    }

    impl Model {
        fn byte(&self, offset: usize) -> u8 {
            self.bytes.borrow()[offset]
        }

        fn half(&self, offset: usize) -> u16 {
            u16::from_le_bytes([self.byte(offset), self.byte(offset + 1)])
        }
    }

    impl Registers for Model {
        fn read8(&self, offset: usize) -> u8 {
            let left = self.resets_after.get();
            if offset == at::DEVICE_STATUS && left > 0 {
                self.resets_after.set(left - 1);
                return DRIVER_OK;
            }
            self.byte(offset)
        }
        fn read16(&self, offset: usize) -> u16 {
            match offset {
                at::QUEUE_SIZE if self.half(at::QUEUE_SELECT) > 0 => 0,
                at::QUEUE_SIZE => self.most,
                at::QUEUE_VECTOR if self.half(offset) >= self.vectors => NO_VECTOR,
                _ => self.half(offset),
            }
        }
        fn read32(&self, offset: usize) -> u32 {
            assert_eq!(offset, at::DEVICE_FEATURE);
            (self.features >> (32 * self.byte(at::DEVICE_FEATURE_SELECT))) as u32
        }
        fn write8(&self, offset: usize, value: u8) {
            let refused = self.driver_features.get() & self.refuses != 0;
            let value = if offset == at::DEVICE_STATUS && refused {
                value & !FEATURES_OK
            } else {
                value
            };
            self.bytes.borrow_mut()[offset] = value;
        }
        fn write16(&self, offset: usize, value: u16) {
            self.bytes.borrow_mut()[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
        }
        fn write32(&self, offset: usize, value: u32) {
            if offset == at::DRIVER_FEATURE {
                let half = u64::from(value) << (32 * self.byte(at::DRIVER_FEATURE_SELECT));
                self.driver_features.set(self.driver_features.get() | half);
            }
            self.bytes.borrow_mut()[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
    }

    const ADDRESSES: QueueAddresses = QueueAddresses {
        descriptors: 0x1_0000_1000,
        available: 0x2000,
        used: 0x3000,
    };

    #[test]
    fn a_device_comes_up() {
        let device = model();
        reset(&device, 3, || ()).expect("it resets");
        assert_eq!(negotiate(&device, 0x200 | 0x10), Ok(VERSION_1 | 0x200));
        assert_eq!(queue_size(&device, 0, 128), 128);
        assert_eq!(set_up_queue(&device, 0, 128, 1, ADDRESSES), Ok(0));
        assert!(!is_healthy(&device));
        start(&device);
        assert!(is_healthy(&device));
        assert_eq!(
            (device.half(at::QUEUE_SIZE), device.half(at::QUEUE_ENABLE)),
            (128, 1)
        );
        assert_eq!(
            (
                device.byte(at::QUEUE_DESCRIPTORS + 1),
                device.byte(at::QUEUE_DESCRIPTORS + 4)
            ),
            (0x10, 1)
        );
    }

    #[test]
    fn a_slow_reset_is_waited_for_but_not_for_ever() {
        let device = model();
        device.resets_after.set(2);
        let mut pauses = 0;
        assert_eq!(reset(&device, 5, || pauses += 1), Ok(()));
        assert_eq!(pauses, 2);
        device.resets_after.set(100);
        assert_eq!(reset(&device, 5, || ()), Err(SetupError::NoReset));
    }

    #[test]
    fn a_legacy_device_is_refused() {
        let device = Model {
            features: 0x240,
            ..model()
        };
        assert_eq!(negotiate(&device, 0x240), Err(SetupError::NoVersion1));
        assert_eq!(device.byte(at::DEVICE_STATUS), FAILED);
    }

    #[test]
    fn a_device_that_refuses_its_own_features_is_given_up() {
        let device = Model {
            refuses: 0x200,
            ..model()
        };
        assert_eq!(negotiate(&device, 0x200), Err(SetupError::FeaturesRefused));
        assert_eq!(device.byte(at::DEVICE_STATUS), FAILED);
    }

    #[test]
    fn a_missing_queue_is_noticed() {
        let device = model();
        assert_eq!(queue_size(&device, 1, 128), 0);
        assert_eq!(
            set_up_queue(&device, 1, 1, 0, ADDRESSES),
            Err(SetupError::NoQueue)
        );
        assert_eq!(
            set_up_queue(&device, 0, 512, 0, ADDRESSES),
            Err(SetupError::NoQueue)
        );
    }

    #[test]
    fn a_size_that_is_no_power_of_two_is_rounded_down() {
        assert_eq!(
            queue_size(
                &Model {
                    most: 100,
                    ..model()
                },
                0,
                128
            ),
            64
        );
    }

    #[test]
    fn a_missing_vector_is_noticed() {
        let device = Model {
            vectors: 0,
            ..model()
        };
        assert_eq!(
            set_up_queue(&device, 0, 128, 0, ADDRESSES),
            Err(SetupError::NoVector)
        );
    }

    #[test]
    fn a_device_that_needs_a_reset_is_not_healthy() {
        let device = model();
        start(&device);
        device.bytes.borrow_mut()[at::DEVICE_STATUS] |= NEEDS_RESET;
        assert!(!is_healthy(&device));
    }

    /// What is read of a device that is not there any more.
    struct Vanished;

    impl Registers for Vanished {
        fn read8(&self, _: usize) -> u8 {
            u8::MAX
        }
        fn read16(&self, _: usize) -> u16 {
            u16::MAX
        }
        fn read32(&self, _: usize) -> u32 {
            u32::MAX
        }
        fn write8(&self, _: usize, _: u8) {}
        fn write16(&self, _: usize, _: u16) {}
        fn write32(&self, _: usize, _: u32) {}
    }

    #[test]
    fn a_device_that_vanishes_is_not_healthy_and_not_set_up() {
        assert!(!is_healthy(&Vanished));
        assert_eq!(reset(&Vanished, 5, || ()), Err(SetupError::NoReset));
        let nowhere = QueueAddresses {
            descriptors: 0,
            available: 0,
            used: 0,
        };
        let vector = set_up_queue(&Vanished, 3, 64, 3, nowhere);
        assert_eq!(vector, Err(SetupError::NoVector));
    }
}
