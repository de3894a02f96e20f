//! The network device (virtio 1.2, section 5.1): features, configuration, the header of a packet.

use crate::device::Registers;

/// Feature: the device says its hardware address.
pub const ADDRESS: u64 = 1 << 5;

/// Where the hardware address stands in the device configuration, six bytes; with [`ADDRESS`].
pub const CONFIG_ADDRESS: usize = 0;

/// The queue of packets that arrive.
pub const RECEIVE: u16 = 0;
/// The queue of packets that are to be sent.
pub const TRANSMIT: u16 = 1;

/// Bytes of the header before each packet (5.1.6). The number of buffers at its end is there
/// whatever the features are, since this is version 1.
pub const HEADER_BYTES: usize = 12;

/// The header of a packet to be sent: no checksum, no segments are left to the device.
pub const HEADER: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// The hardware address in the device configuration; `None` if it cannot be that of one device: a
/// group's, or zero.
pub fn address(config: &impl Registers) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    for (offset, byte) in address.iter_mut().enumerate() {
        *byte = config.read8(CONFIG_ADDRESS + offset);
    }
    let is_one = address[0] & 1 == 0 && address != [0; 6];
    is_one.then_some(address)
}

/// Bytes of the frame in a buffer of which the device says that it wrote `written` bytes; `None` if
/// they do not make a header and a frame of `shortest` to `longest` bytes.
pub fn frame_bytes(written: u32, shortest: usize, longest: usize) -> Option<usize> {
    let bytes = (written as usize).checked_sub(HEADER_BYTES)?;
    (shortest..=longest).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Config([u8; 6]);

    impl Registers for Config {
        fn read8(&self, offset: usize) -> u8 {
            self.0[offset]
        }
        fn read16(&self, _: usize) -> u16 {
            0
        }
        fn read32(&self, _: usize) -> u32 {
            0
        }
        fn write8(&self, _: usize, _: u8) {}
        fn write16(&self, _: usize, _: u16) {}
        fn write32(&self, _: usize, _: u32) {}
    }

    #[test]
    fn an_address_is_that_of_one_device() {
        let usual = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
        assert_eq!(address(&Config(usual)), Some(usual));
        assert_eq!(address(&Config([0; 6])), None);
        assert_eq!(address(&Config([0xff; 6])), None);
        assert_eq!(address(&Config([1, 0, 0x5e, 0, 0, 1])), None);
    }

    #[test]
    fn a_length_that_is_no_frame_is_none() {
        let bytes = |written| frame_bytes(written, 14, 1514);
        assert_eq!(bytes(12 + 14), Some(14));
        assert_eq!(bytes(12 + 1514), Some(1514));
        for wrong in [0, 11, 12, 25, 12 + 1515, u32::MAX] {
            assert_eq!(bytes(wrong), None);
        }
    }
}
