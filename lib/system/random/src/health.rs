//! The health tests of NIST SP 800-90B, section 4.4, over the bytes of a source.
//!
//! A source is taken to have one bit of entropy in each byte of eight, a claim that leaves much
//! room. A good source fails a test with a chance of less than 2^-30 per byte or window.

/// The same byte so often in a row is a failure: 1 + 30 / 1, section 4.4.1.
pub const REPETITIONS: u32 = 31;
/// Bytes in a window of the proportion test; section 4.4.2 wants 512 of what is not binary.
pub const WINDOW: u32 = 512;
/// A window's first byte so often in it is a failure: 1 + critbinom(512, 1/2, 1 - 2^-30), section
/// 4.4.2. The test below computes it.
pub const PROPORTION: u32 = 325;

/// What a source did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It repeats itself (section 4.4.1).
    Stuck,
    /// One value comes far too often (section 4.4.2).
    Biased,
}

/// Both tests, under way.
#[derive(Clone, Debug, Default)]
pub struct Tests {
    last: Option<u8>,
    repeated: u32,
    first: u8,
    seen: u32,
    equal: u32,
}

impl Tests {
    /// Looks at the next byte.
    ///
    /// # Errors
    /// The source is broken. Who goes on all the same is told again when it is seen again.
    pub fn look(&mut self, byte: u8) -> Result<(), Failure> {
        self.repeated = match self.last == Some(byte) {
            true => self.repeated + 1,
            false => 1,
        };
        self.last = Some(byte);
        if self.seen == 0 {
            (self.first, self.equal) = (byte, 0);
        }
        self.equal += u32::from(self.first == byte);
        self.seen = (self.seen + 1) % WINDOW;
        if self.repeated >= REPETITIONS {
            self.repeated = 0;
            return Err(Failure::Stuck);
        }
        match self.equal >= PROPORTION {
            true => Err(Failure::Biased),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The first failure among these bytes, and after how many.
    fn first(bytes: impl IntoIterator<Item = u8>) -> Option<(usize, Failure)> {
        let mut tests = Tests::default();
        let mut told = bytes.into_iter().map(|byte| tests.look(byte)).enumerate();
        told.find_map(|(at, told)| told.err().map(|why| (at + 1, why)))
    }

    #[test]
    fn repetitions_fail_at_the_cutoff_and_not_before() {
        let run = |count: usize| {
            [7_u8]
                .into_iter()
                .chain((0..count).map(|_| 0xff))
                .chain([9])
        };
        assert_eq!(first(run(30)), None);
        assert_eq!(first(run(31)), Some((32, Failure::Stuck)));
    }

    #[test]
    fn proportions_fail_at_the_cutoff_and_not_before() {
        // Runs of 20, so that the other test sees nothing.
        let window = |most: usize| {
            let mut window = Vec::new();
            let mut equal = 0;
            for at in 0..WINDOW as usize {
                let is_equal = equal < most && at % 21 != 20;
                equal += usize::from(is_equal);
                window.push(if is_equal { 0 } else { 1 + (at % 200) as u8 });
            }
            assert_eq!(equal, most);
            window
        };
        assert_eq!(first(window(324)), None);
        let failed = first(window(325)).map(|(_, why)| why);
        assert_eq!(failed, Some(Failure::Biased));
        // Windows are counted each by itself.
        assert_eq!(first([window(324), window(324)].concat()), None);
    }

    #[test]
    fn the_cutoff_is_that_of_the_binomial_distribution() {
        // Of 512 fair coins: the chance of exactly k heads, from that of k - 1.
        let (mut chance, mut below) = (0.5_f64.powi(512), 0.0);
        let mut tails = Vec::new();
        for k in 0..=512 {
            tails.push(1.0 - below);
            below += chance;
            chance *= f64::from(512 - k) / f64::from(k + 1);
        }
        let rare = 0.5_f64.powi(30);
        assert!(tails[PROPORTION as usize] <= rare);
        assert!(tails[PROPORTION as usize - 1] > rare);
    }
}
