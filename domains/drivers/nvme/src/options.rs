//! The text of options.

/// Which namespace is to be served: 0 for the first in use. `None` if something is not understood.
pub fn namespace(text: &[u8]) -> Option<u32> {
    let mut namespace = 0;
    for word in core::str::from_utf8(text).ok()?.split_whitespace() {
        let number = word.strip_prefix("namespace=")?.parse().ok()?;
        // The last number stands for all of them.
        namespace = Some(number).filter(|number| (1..u32::MAX).contains(number))?;
    }
    Some(namespace)
}
