//! The one thing read from AML: the sleep types of `\_S5` (7.4.2), by looking for its bytes.
//!
//! `Name (_S5, Package () {a, b, ...})` is encoded as NameOp, an optional root prefix, the four
//! letters, PackageOp, a package length, the element count and the elements (20.2.5). Firmware
//! writes it so without exception in practice; a full interpreter is not worth its trust.

use crate::bytes::{u8_at, u16_at};

const NAME_OP: u8 = 0x08;
const PACKAGE_OP: u8 = 0x12;

/// The sleep types for the PM1a and PM1b control registers that turn the machine off.
pub fn find_s5(aml: &[u8]) -> Option<(u8, u8)> {
    aml.windows(4)
        .enumerate()
        .filter(|(_, letters)| letters == b"_S5_")
        .find_map(|(at, _)| {
            let before = aml.get(at.checked_sub(2)?..at)?;
            let named = before[1] == NAME_OP || before == [NAME_OP, b'\\'];
            named.then(|| package(&aml[at + 4..])).flatten()
        })
}

/// The first two numbers of a package.
fn package(aml: &[u8]) -> Option<(u8, u8)> {
    if u8_at(aml, 0)? != PACKAGE_OP {
        return None;
    }
    // The top two bits of the first length byte say how many more there are (20.2.4).
    let length_bytes = 1 + usize::from(u8_at(aml, 1)? >> 6);
    let elements = aml.get(1 + length_bytes + 1..)?;
    let (first, used) = number(elements)?;
    let second = elements.get(used..).and_then(number).map_or(0, |(n, _)| n);
    Some((first, second))
}

/// A small constant and the bytes it takes.
fn number(aml: &[u8]) -> Option<(u8, usize)> {
    match u8_at(aml, 0)? {
        small @ (0 | 1) => Some((small, 1)),
        0x0a => Some((u8_at(aml, 1)?, 2)),
        0x0b => Some((u16_at(aml, 1)? as u8, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_and_without_root_prefix() {
        let plain = b"\x00\x08_S5_\x12\x06\x04\x0a\x05\x01\x00\x00";
        assert_eq!(find_s5(plain), Some((5, 1)));
        let rooted = b"\x08\\_S5_\x12\x06\x04\x00\x00\x00\x00";
        assert_eq!(find_s5(rooted), Some((0, 0)));
        let long = b"\x00\x08_S5_\x12\x47\x00\x04\x0b\x07\x00\x0a\x03";
        assert_eq!(find_s5(long), Some((7, 3)));
    }

    #[test]
    fn uses_of_the_name_are_not_its_definition() {
        assert_eq!(find_s5(b"xx_S5_\x12\x06\x04\x00\x00"), None);
        assert_eq!(find_s5(b"\x00\x08_S5_\x0a\x05"), None);
    }

    #[test]
    fn cut_off_anywhere_it_is_none_or_right() {
        let whole = b"\x00\x08_S5_\x12\x06\x04\x0a\x05\x0a\x01";
        for end in 0..whole.len() {
            let found = find_s5(&whole[..end]);
            assert!(found.is_none_or(|(a, _)| a == 5));
        }
        assert_eq!(find_s5(b"_S5_"), None);
    }
}
