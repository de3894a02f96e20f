//! A ring of bytes.

/// A queue of at most `N` bytes.
pub struct Ring<const N: usize> {
    bytes: [u8; N],
    start: usize,
    length: usize,
}

impl<const N: usize> Ring<N> {
    /// An empty ring.
    pub const fn new() -> Self {
        Ring {
            bytes: [0; N],
            start: 0,
            length: 0,
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends bytes; how many fitted. The rest is dropped, as by a terminal that is typed at
    /// faster than it is read.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(N - self.length);
        for &byte in &bytes[..count] {
            self.bytes[(self.start + self.length) % N] = byte;
            self.length += 1;
        }
        count
    }

    /// Takes bytes out into `buffer`; how many.
    pub fn pop(&mut self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.length);
        for place in &mut buffer[..count] {
            *place = self.bytes[self.start];
            self.start = (self.start + 1) % N;
            self.length -= 1;
        }
        count
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_across_the_end() {
        let mut ring = Ring::<4>::new();
        let mut buffer = [0; 8];
        for round in 0..10u8 {
            assert_eq!(ring.push(&[round, round + 1, round + 2]), 3);
            assert_eq!(ring.pop(&mut buffer), 3);
            assert_eq!(buffer[..3], [round, round + 1, round + 2]);
        }
        assert!(ring.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let mut ring = Ring::<4>::new();
        assert_eq!(ring.push(b"abcdef"), 4);
        assert_eq!(ring.push(b"g"), 0);
        let mut buffer = [0; 2];
        assert_eq!((ring.pop(&mut buffer), buffer), (2, *b"ab"));
        assert_eq!(ring.push(b"h"), 1);
    }

    #[test]
    fn nothing_comes_from_an_empty_ring() {
        assert_eq!(Ring::<4>::new().pop(&mut [0; 2]), 0);
    }
}
