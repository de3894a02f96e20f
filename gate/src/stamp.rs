//! Tells cheaply whether any of many files has changed: by name and content.
//!
//! Not by the time of change: whoever touches an interface file, or goes to another branch and
//! back, would have everything compiled again. Reading all sources takes some hundredths of a
//! second.

use std::fs;
use std::path::Path;

/// A number that changes when a file below one of `paths` appears, goes or gets another content.
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
        // One that cannot be read is for the compiler to complain about.
        let content = fs::read(path).unwrap_or_default();
        sum.add(&content.len().to_le_bytes());
        sum.add(&content);
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

/// The Fowler-Noll-Vo hash (FNV-1a, 64 bits), over words of eight bytes in place of single ones.
/// Good against accidents, useless against attackers.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            // The high bits of a product do not come down by multiplying alone.
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
            self.0 = mixed ^ mixed >> 32;
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
        let file = fs::File::open(folder.join("a")).expect("opened");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .expect("touched");
        assert_eq!(second, of(&[&folder]));
        fs::write(folder.join("a"), "13").expect("written");
        assert_ne!(second, of(&[&folder]));
        fs::write(folder.join("a"), "12").expect("written");
        assert_eq!(second, of(&[&folder]));
        fs::write(folder.join("b"), "").expect("written");
        assert_ne!(second, of(&[&folder]));
        fs::remove_dir_all(folder).expect("removed");
    }
}
