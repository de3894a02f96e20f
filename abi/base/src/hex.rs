//! Numbers of 32 bytes in hexadecimal digits, as the build passes them to what it compiles.

/// What stands for a number that the build did not pass.
pub const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// 32 bytes from 64 hexadecimal digits in small letters.
///
/// # Panics
/// If it is anything else. Called for constants, it does not compile then.
pub const fn digits(text: &str) -> [u8; 32] {
    const fn digit(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => panic!("not a hexadecimal digit"),
        }
    }
    let text = text.as_bytes();
    assert!(text.len() == 64, "not 64 hexadecimal digits");
    let mut bytes = [0; 32];
    let mut index = 0;
    while index < 32 {
        bytes[index] = digit(text[2 * index]) << 4 | digit(text[2 * index + 1]);
        index += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        const BYTES: [u8; 32] =
            digits("00ff0a1b00000000000000000000000000000000000000000000000000000042");
        assert_eq!(BYTES[..4], [0, 0xff, 0x0a, 0x1b]);
        assert_eq!(BYTES[31], 0x42);
        assert_eq!(digits(ZEROS), [0; 32]);
    }
}
