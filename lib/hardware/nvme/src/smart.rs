//! How a controller is: the log page with SMART data (section 5.14.1.2).

use crate::number;

/// Bytes of the log page.
pub const BYTES: usize = 512;

/// What is used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// What it warns of, bit by bit; 0: of nothing.
    pub warnings: u8,
    /// Its temperature, in degrees Celsius.
    pub temperature: i32,
    /// How much of its spare is left, in percent.
    pub spare: u8,
    /// How much of its life is used, in percent, perhaps more than 100.
    pub used: u8,
    /// What was written, in units of 512,000 bytes.
    pub written: u128,
    /// Times that it lost power without being told before.
    pub power_losses: u128,
    /// Data that was lost.
    pub media_errors: u128,
}

impl Health {
    /// Reads the log page.
    pub fn read(bytes: &[u8; BYTES]) -> Self {
        Health {
            warnings: bytes[0],
            temperature: number::<2>(bytes, 1) as i32 - 273,
            spare: bytes[3],
            used: bytes[5],
            written: number::<16>(bytes, 48),
            power_losses: number::<16>(bytes, 144),
            media_errors: number::<16>(bytes, 160),
        }
    }
}

impl core::fmt::Display for Health {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} degrees, {} % used, {} % spare, {} media errors, {} power losses",
            self.temperature, self.used, self.spare, self.media_errors, self.power_losses
        )?;
        match self.warnings {
            0 => Ok(()),
            warnings => write!(f, ", WARNINGS {warnings:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_page_is_read() {
        let mut bytes = [0; BYTES];
        bytes[..6].copy_from_slice(&[0, 0x43, 1, 90, 10, 3]);
        (bytes[144], bytes[160], bytes[48]) = (2, 1, 7);
        let health = Health::read(&bytes);
        assert_eq!(health.written, 7);
        assert_eq!(
            health.to_string(),
            "50 degrees, 3 % used, 90 % spare, 1 media errors, 2 power losses"
        );
        bytes[0] = 4;
        assert!(Health::read(&bytes).to_string().ends_with("WARNINGS 0x4"));
        // Whatever is there can be said.
        Health::read(&[0xff; BYTES]).to_string();
    }
}
