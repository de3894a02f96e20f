//! The output side: what a terminal needs in place of a bare end of line.

/// Copies `text` into `out` with a carriage return in front of every line feed; how many bytes of
/// `text` were taken and how many bytes of `out` were filled. A line feed is never torn from its
/// return.
pub fn with_carriage_returns(text: &[u8], out: &mut [u8]) -> (usize, usize) {
    let (mut taken, mut filled) = (0, 0);
    for &byte in text {
        let needed = if byte == b'\n' { 2 } else { 1 };
        if filled + needed > out.len() {
            break;
        }
        if byte == b'\n' {
            out[filled] = b'\r';
        }
        out[filled + needed - 1] = byte;
        filled += needed;
        taken += 1;
    }
    (taken, filled)
}
