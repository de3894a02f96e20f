//! Paths as bytes.

use alloc::vec::Vec;

/// The last component of a path; of `/` that itself.
pub fn base_name(path: &[u8]) -> &[u8] {
    let trimmed = trim(path);
    match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(slash) if trimmed.len() > 1 => &trimmed[slash + 1..],
        _ => trimmed,
    }
}

/// What stands in front of the last component: `.` if there is nothing.
pub fn directory_name(path: &[u8]) -> &[u8] {
    let trimmed = trim(path);
    match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(0) => b"/",
        Some(slash) => trim(&trimmed[..slash]),
        None => b".",
    }
}

/// `name` in `directory`.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory.last() {
        None => name.to_vec(),
        Some(b'/') => [directory, name].concat(),
        Some(_) => [directory, b"/", name].concat(),
    }
}

/// Without slashes at the end, unless there is nothing else.
fn trim(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|&byte| byte != b'/')
        .map_or(1, |last| last + 1);
    &path[..end.min(path.len())]
}

/// Whether `path`, as written, lies in (or is) `directory`; both absolute or both relative.
pub fn is_inside(path: &[u8], directory: &[u8]) -> bool {
    let components = |path: &[u8]| -> Vec<Vec<u8>> {
        let split = path
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".");
        split.map(<[u8]>::to_vec).collect()
    };
    path.first()
        == directory
            .first()
            .filter(|&&byte| byte == b'/')
            .or(path.first())
        && components(path).starts_with(&components(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (path, directory, base) in [
            ("a", ".", "a"),
            ("a/b", "a", "b"),
            ("/a", "/", "a"),
            ("/a/b/", "/a", "b"),
            ("/", "/", "/"),
            ("//", "/", "/"),
            ("a//b//", "a", "b"),
            ("", ".", ""),
        ] {
            assert_eq!(base_name(path.as_bytes()), base.as_bytes(), "{path}");
            assert_eq!(
                directory_name(path.as_bytes()),
                directory.as_bytes(),
                "{path}"
            );
        }
    }

    #[test]
    fn joining() {
        assert_eq!(join(b"a", b"b"), b"a/b");
        assert_eq!(join(b"/", b"b"), b"/b");
        assert_eq!(join(b"", b"b"), b"b");
    }

    #[test]
    fn being_inside() {
        assert!(is_inside(b"/a/b", b"/a") && is_inside(b"a", b"a/") && is_inside(b"./a/b", b"a"));
        assert!(
            !is_inside(b"/ab", b"/a") && !is_inside(b"/a", b"/a/b") && !is_inside(b"a/b", b"/a")
        );
    }
}
