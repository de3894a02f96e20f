//! How a command ended (section 4.6.1).

/// The status of a completion: type and code, and whether it is of use to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The type, which says what the code means.
    pub kind: u8,
    /// The code.
    pub code: u8,
}

/// What that means for who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It was done.
    Done,
    /// The blocks are not all there.
    OutOfRange,
    /// What was to be written cannot be.
    ReadOnly,
    /// The controller does not know the command.
    Unsupported,
    /// It was ended early, because that was asked for.
    Aborted,
    /// It failed.
    Failed,
}

impl Status {
    /// From the upper half of a completion's last word, whose lowest bit is the phase.
    #[inline]
    pub fn from_half(half: u16) -> Self {
        Status {
            kind: (half >> 9 & 7) as u8,
            code: (half >> 1) as u8,
        }
    }

    /// What it means. What is not known is a failure, never a success.
    #[inline]
    pub fn meaning(self) -> Meaning {
        match self.is_done() {
            true => Meaning::Done,
            false => self.why_not(),
        }
    }

    /// Whether it was done.
    #[inline]
    fn is_done(self) -> bool {
        u16::from(self.kind) << 8 | u16::from(self.code) == 0
    }

    fn why_not(self) -> Meaning {
        match (self.kind, self.code) {
            (0, 0x01) => Meaning::Unsupported,
            (0, 0x07 | 0x08) => Meaning::Aborted,
            (0, 0x20) | (1, 0x82) => Meaning::ReadOnly,
            (0, 0x80) => Meaning::OutOfRange,
            _ => Meaning::Failed,
        }
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "status {:x}/{:02x}", self.kind, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_success_is_success() {
        for half in 0..=u16::MAX {
            // The phase, a request to try later, a word on more information, and one on trying
            // again do not change what happened.
            let says_done = half & 0x0ffe == 0;
            let meaning = Status::from_half(half).meaning();
            assert_eq!(meaning == Meaning::Done, says_done, "{half:#x}");
        }
    }

    #[test]
    fn codes_have_their_meaning() {
        let meaning = |kind: u16, code: u16| Status::from_half(kind << 9 | code << 1 | 1).meaning();
        assert_eq!(meaning(0, 0x80), Meaning::OutOfRange);
        assert_eq!(meaning(0, 0x01), Meaning::Unsupported);
        assert_eq!(meaning(0, 0x20), Meaning::ReadOnly);
        assert_eq!(meaning(0, 0x07), Meaning::Aborted);
        assert_eq!(meaning(2, 0x81), Meaning::Failed);
        assert_eq!(meaning(7, 0x00), Meaning::Failed);
    }
}
