//! The words that `xargs` reads.

use alloc::vec::Vec;

/// The lines of a text without the blanks in front of them; those of blanks alone are left out.
pub fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|&byte| byte == b'\n');
    let starts = lines.filter_map(|line| {
        let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
        Some(line[start..].to_vec())
    });
    starts.collect()
}

/// Words between blanks and line breaks; quotes and backslashes keep those in a word. `None` if a
/// quote is not closed in its line.
pub fn split(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' => words.extend(open.take()),
            b'\\' => open.get_or_insert_default().extend(bytes.next()),
            b'\'' | b'"' => {
                let word = open.get_or_insert_default();
                loop {
                    match bytes.next() {
                        None | Some(b'\n') => return None,
                        Some(next) if next == byte => break,
                        Some(next) => word.push(next),
                    }
                }
            }
            _ => open.get_or_insert_default().push(byte),
        }
    }
    words.extend(open);
    Some(words)
}

/// The texts that each end in `end`; of the empty ones only those that a zero byte ends.
pub fn split_at(text: &[u8], end: u8) -> Vec<Vec<u8>> {
    let text = text.strip_suffix(&[end]).unwrap_or(text);
    let parts = text.split(|&byte| byte == end);
    let parts = parts.filter(|part| end == 0 || !part.trim_ascii().is_empty());
    match text.is_empty() {
        true => Vec::new(),
        false => parts.map(<[u8]>::to_vec).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: Vec<Vec<u8>>) -> Vec<alloc::string::String> {
        let text = |word| alloc::string::String::from_utf8(word).unwrap();
        words.into_iter().map(text).collect()
    }

    #[test]
    fn splits() {
        let words = split(b" a 'b c'd\n\n\"e\"\\ f '' g").unwrap();
        assert_eq!(texts(words), ["a", "b cd", "e f", "", "g"]);
        assert_eq!(texts(split_at(b"a b\nc\n\n", b'\n')), ["a b", "c"]);
        assert_eq!(texts(split_at(b"a\0b\n\0", 0)), ["a", "b\n"]);
        assert!(split_at(b"", 0).is_empty());
        assert_eq!(texts(lines(b"  a b \n\n \tc\n \n")), ["a b ", "c"]);
        assert_eq!(split(b""), Some(Vec::new()));
    }

    #[test]
    fn refuses_open_quotes() {
        assert_eq!(split(b"a 'b"), None);
        assert_eq!(split(b"\"a\n\""), None);
    }
}
