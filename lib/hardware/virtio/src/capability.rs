//! Where a PCI function keeps its virtio registers (virtio 1.2, section 4.1.4).
//!
//! The function's vendor-specific capabilities name them: each says which kind of structure lies in
//! which memory region (BAR), at which offset and how long. [`Structures::find`] walks the
//! capability list through a function that reads the configuration space.

/// The capability number of vendor-specific capabilities.
const VENDOR_SPECIFIC: u8 = 0x09;
/// Capabilities start behind the header.
const FIRST_OFFSET: u16 = 0x40;
/// The status bit that says that there is a capability list.
const HAS_LIST: u32 = 1 << 20;
/// Kinds of structures (4.1.4) that a driver needs.
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const DEVICE: u8 = 4;
/// So many capabilities fit into 192 bytes; a longer list is a circle.
const MOST: usize = 48;

/// A piece of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The region (BAR), 0 to 5.
    pub bar: u8,
    /// Where it starts, in bytes from the region's start.
    pub offset: u32,
    /// Its length in bytes.
    pub length: u32,
}

/// The structures that a driver needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structures {
    /// Common configuration (4.1.4.3).
    pub common: Place,
    /// Notifications (4.1.4.4).
    pub notify: Place,
    /// Bytes between the notification addresses of two queues with consecutive offsets.
    pub notify_multiplier: u32,
    /// Configuration of this kind of device (4.1.4.6).
    pub device: Option<Place>,
}

/// Why the structures were not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapabilityError {
    /// The function has no common configuration: it is not a virtio 1.x device.
    NoCommon,
    /// It has no notification structure.
    NoNotify,
    /// The list of capabilities leads out of the configuration space or goes in a circle.
    BadList,
    /// A structure is shorter than it must be.
    TooShort,
}

impl Structures {
    /// Finds the structures through `read`, which reads 32 bits of the configuration space at a
    /// multiple of 4.
    ///
    /// # Errors
    /// What is missing; or what `read` says.
    pub fn find<E: From<CapabilityError>>(
        mut read: impl FnMut(u16) -> Result<u32, E>,
    ) -> Result<Self, E> {
        let mut found = Found::default();
        if read(4)? & HAS_LIST == 0 {
            return Err(CapabilityError::NoCommon.into());
        }
        let mut at = (read(0x34)? & 0xfc) as u16;
        for _ in 0..MOST {
            if at == 0 {
                return Ok(found.finish()?);
            }
            if at < FIRST_OFFSET {
                return Err(CapabilityError::BadList.into());
            }
            let head = read(at)?;
            if head as u8 == VENDOR_SPECIFIC {
                found.add(at, head, &mut read)?;
            }
            at = u16::from((head >> 8) as u8 & 0xfc);
        }
        Err(CapabilityError::BadList.into())
    }
}

/// What was found so far. The first structure of each kind counts (4.1.4.1: in order of
/// preference).
#[derive(Default)]
struct Found {
    common: Option<Place>,
    notify: Option<(Place, u32)>,
    device: Option<Place>,
}

impl Found {
    fn add<E: From<CapabilityError>>(
        &mut self,
        at: u16,
        head: u32,
        read: &mut impl FnMut(u16) -> Result<u32, E>,
    ) -> Result<(), E> {
        // The fields of `struct virtio_pci_cap` go 16 bytes beyond the start, the multiplier 4
        // more.
        let kind = (head >> 24) as u8;
        if !matches!(kind, COMMON | NOTIFY | DEVICE) {
            return Ok(());
        }
        if at > 0x100 - 16 || (kind == NOTIFY && at > 0x100 - 20) {
            return Err(CapabilityError::BadList.into());
        }
        let place = Place {
            bar: read(at + 4)? as u8,
            offset: read(at + 8)?,
            length: read(at + 12)?,
        };
        if place.bar > 5 {
            // Reserved for later kinds of places: to be ignored (4.1.4.1).
            return Ok(());
        }
        match kind {
            COMMON => self.common = self.common.or(Some(place)),
            NOTIFY if self.notify.is_none() => self.notify = Some((place, read(at + 16)?)),
            DEVICE => self.device = self.device.or(Some(place)),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Structures, CapabilityError> {
        let common = self.common.ok_or(CapabilityError::NoCommon)?;
        let (notify, notify_multiplier) = self.notify.ok_or(CapabilityError::NoNotify)?;
        if common.length < 0x38 || notify.length < 2 {
            return Err(CapabilityError::TooShort);
        }
        Ok(Structures {
            common,
            notify,
            notify_multiplier,
            device: self.device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A configuration space with these capabilities: (kind, bar, offset, length), 20 bytes each.
    fn space(capabilities: &[(u8, u8, u32, u32)]) -> Vec<u32> {
        let mut words = alloc::vec![0u32; 64];
        words[1] = HAS_LIST;
        words[13] = 0x40;
        for (number, &(kind, bar, offset, length)) in capabilities.iter().enumerate() {
            let at = 16 + 6 * number;
            let next = if number + 1 < capabilities.len() {
                (at as u32 + 6) * 4
            } else {
                0
            };
            words[at] = u32::from(VENDOR_SPECIFIC) | next << 8 | u32::from(kind) << 24;
            words[at + 1] = bar.into();
            words[at + 2] = offset;
            words[at + 3] = length;
            words[at + 4] = 4;
        }
        words
    }

    fn find(words: &[u32]) -> Result<Structures, CapabilityError> {
        Structures::find(|offset| Ok(words[usize::from(offset) / 4]))
    }

    #[test]
    fn finds_what_qemu_has() {
        let words = space(&[
            (1, 4, 0, 0x1000),
            (3, 4, 0x1000, 0x1000),
            (4, 4, 0x2000, 0x1000),
            (2, 4, 0x3000, 0x1000),
            (5, 0, 0, 0),
        ]);
        let found = find(&words).expect("all there");
        assert_eq!(
            found.common,
            Place {
                bar: 4,
                offset: 0,
                length: 0x1000
            }
        );
        assert_eq!((found.notify.offset, found.notify_multiplier), (0x3000, 4));
        assert_eq!(found.device.map(|place| place.offset), Some(0x2000));
    }

    #[test]
    fn the_first_of_a_kind_counts_and_reserved_regions_do_not() {
        let words = space(&[
            (1, 7, 0, 0x1000),
            (1, 2, 0x10, 0x1000),
            (1, 3, 0, 0x1000),
            (2, 2, 0, 4),
        ]);
        assert_eq!(
            find(&words).expect("all there").common,
            Place {
                bar: 2,
                offset: 0x10,
                length: 0x1000
            }
        );
    }

    #[test]
    fn says_what_is_missing() {
        assert_eq!(
            find(&space(&[(2, 4, 0, 4)])),
            Err(CapabilityError::NoCommon)
        );
        assert_eq!(
            find(&space(&[(1, 4, 0, 0x38)])),
            Err(CapabilityError::NoNotify)
        );
        assert_eq!(
            find(&space(&[(1, 4, 0, 0x37), (2, 4, 0, 4)])),
            Err(CapabilityError::TooShort)
        );
        assert_eq!(find(&[0; 64]), Err(CapabilityError::NoCommon));
    }

    #[test]
    fn a_bad_list_ends() {
        let mut circle = space(&[(1, 4, 0, 0x1000)]);
        circle[16] |= 0x40 << 8;
        assert_eq!(find(&circle), Err(CapabilityError::BadList));
        let mut inside_header = space(&[]);
        inside_header[13] = 0x10;
        assert_eq!(find(&inside_header), Err(CapabilityError::BadList));
        let mut at_the_end = space(&[]);
        at_the_end[13] = 0xfc;
        at_the_end[63] = u32::from(VENDOR_SPECIFIC) | 1 << 24;
        assert_eq!(find(&at_the_end), Err(CapabilityError::BadList));
    }
}
