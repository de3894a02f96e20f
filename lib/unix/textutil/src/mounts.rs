//! `/proc/mounts` taken apart: lines of device, path, kind, options.

use alloc::vec::Vec;

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// What it is mounted from.
    pub device: Vec<u8>,
    /// Over which directory.
    pub path: Vec<u8>,
    /// What kind of file system it is.
    pub kind: Vec<u8>,
    /// `rw` or `ro`.
    pub options: Vec<u8>,
}

/// The mounts in `text`; lines that are none are passed over.
pub fn parse(text: &[u8]) -> Vec<Mounted> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut next = || {
        fields
            .next()
            .filter(|field| !field.is_empty())
            .map(unescaped)
    };
    Some(Mounted {
        device: next()?,
        path: next()?,
        kind: next()?,
        options: next()?,
    })
}

/// A field without its octal numbers (`\040` is a blank).
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, behind)) = rest.split_first() {
        match (byte, octal(behind)) {
            (b'\\', Some(byte)) => {
                plain.push(byte);
                rest = &behind[3..];
            }
            _ => {
                plain.push(byte);
                rest = behind;
            }
        }
    }
    plain
}

/// The byte that the first three characters write in octal.
fn octal(text: &[u8]) -> Option<u8> {
    let digits = core::str::from_utf8(text.get(..3)?).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let mounts = parse(b"vda / ext2 rw 0 0\nnonsense\n\nvdb /my\\040disk\\134 ext3 ro 0 0\n");
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].device, b"vda");
        assert_eq!(mounts[1].path, b"/my disk\\");
        assert_eq!(mounts[1].options, b"ro");
    }

    #[test]
    fn what_is_no_number_stays() {
        assert_eq!(unescaped(b"a\\9z\\04"), b"a\\9z\\04");
        assert_eq!(unescaped(b"\\777"), b"\\777");
    }
}
