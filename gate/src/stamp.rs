//! Tells cheaply whether any of many files has changed: by name, length and time of change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A number that changes when a file below one of `paths` appears, goes or is written.
/// Build folders and hidden files are passed over.
pub fn of(paths: &[impl AsRef<Path>]) -> u64 {
    let mut sum = Fnv(0xcbf2_9ce4_8422_2325);
    for path in paths {
        visit(path.as_ref(), &mut sum);
    }
    sum.0
}

fn visit(path: &Path, sum: &mut Fnv) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    sum.add(path.as_os_str().as_encoded_bytes());
    if !meta.is_dir() {
        sum.add(&meta.len().to_le_bytes());
        sum.add(&meta.mtime().to_le_bytes());
        sum.add(&meta.mtime_nsec().to_le_bytes());
        return;
    }
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    let mut below: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    below.sort();
    for path in below.iter().filter(|path| !is_passed_over(path)) {
        visit(path, sum);
    }
}

fn is_passed_over(path: &Path) -> bool {
    let name = path
        .file_name()
        .map_or(&b""[..], |name| name.as_encoded_bytes());
    name == b"target" || name.starts_with(b".")
}

/// The Fowler-Noll-Vo hash (FNV-1a, 64 bits). Good against accidents, useless against attackers.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_shows_and_build_folders_do_not() {
        let folder = std::env::temp_dir().join(format!("trefoil-stamp-{}", std::process::id()));
        fs::create_dir_all(folder.join("target")).expect("made");
        fs::write(folder.join("a"), "1").expect("written");
        let first = of(&[&folder]);
        assert_eq!(first, of(&[&folder]));
        fs::write(folder.join("target/x"), "1").expect("written");
        assert_eq!(first, of(&[&folder]));
        fs::write(folder.join("a"), "12").expect("written");
        let second = of(&[&folder]);
        assert_ne!(first, second);
        fs::write(folder.join("b"), "").expect("written");
        assert_ne!(second, of(&[&folder]));
        fs::remove_dir_all(folder).expect("removed");
    }
}
