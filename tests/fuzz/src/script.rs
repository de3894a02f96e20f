//! What is done with a file system that was mounted: everything is listed and read, up to a budget,
//! and then the rest of the input says what is changed.

use ext2::{FileKind, FileSystem};

use crate::disk::Disk;

pub type Fs<'a> = FileSystem<&'a Disk<'a>>;

/// The input, byte by byte; zeros when it is used up.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Bytes(data)
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What was found in the tree: directories, and everything with the place where its name stands.
#[derive(Default)]
struct Found {
    dirs: Vec<u32>,
    names: Vec<(u32, Vec<u8>, u32)>,
}

/// Operations on one mount.
const MOST_OPERATIONS: u32 = 24;
/// Entries that are looked at in one mount.
const MOST_ENTRIES: usize = 300;

pub fn run(fs: &mut Fs<'_>, bytes: &mut Bytes<'_>) {
    let mut found = Found::default();
    explore(fs, fs.root(), 0, &mut found);
    let _ = fs.statfs();
    for _ in 0..MOST_OPERATIONS {
        if bytes.is_empty() {
            break;
        }
        change(fs, &mut found, bytes);
    }
}

fn explore(fs: &mut Fs<'_>, dir: u32, depth: u32, found: &mut Found) {
    found.dirs.push(dir);
    let Ok(entries) = fs.readdir(dir, 0, 100) else {
        return;
    };
    for entry in entries {
        if found.names.len() > MOST_ENTRIES || depth > 6 {
            return;
        }
        let _ = fs.lookup(dir, &entry.name);
        found.names.push((dir, entry.name.clone(), entry.ino));
        let Ok(attributes) = fs.getattr(entry.ino) else {
            continue;
        };
        match attributes.kind {
            FileKind::Directory if entry.name != b"." && entry.name != b".." => {
                explore(fs, entry.ino, depth + 1, found);
            }
            FileKind::Symlink => drop(fs.readlink(entry.ino)),
            _ => {
                let ends = [
                    0,
                    12 << 10,
                    300_000,
                    80 << 20,
                    attributes.size / 2,
                    attributes.size,
                ];
                for offset in ends {
                    let _ = fs.read(entry.ino, offset.saturating_sub(10), &mut [0; 5000]);
                }
            }
        }
    }
}

/// Carries out one operation that the input chooses.
fn change(fs: &mut Fs<'_>, found: &mut Found, bytes: &mut Bytes<'_>) {
    let kind = bytes.byte();
    let dir = found.dirs[bytes.byte() as usize % found.dirs.len()];
    let (old_dir, old_name, ino) = match found.names.is_empty() {
        true => (dir, b"none".to_vec(), dir),
        false => found.names[bytes.byte() as usize % found.names.len()].clone(),
    };
    let offset = u64::from(bytes.byte()) << (bytes.byte() % 28);
    let new_name = format!("{}{}", "n".repeat(kind as usize), bytes.byte());
    let new_name = new_name.as_bytes();
    let mut add = |result: Result<u32, ext2::Error>| {
        if let Ok(ino) = result {
            found.names.push((dir, new_name.to_vec(), ino));
        }
    };
    match kind % 16 {
        0 => add(fs.create(dir, new_name, 0o644)),
        1 => {
            if let Ok(ino) = fs.mkdir(dir, new_name, 0o755) {
                found.dirs.push(ino);
            }
        }
        2 => add(fs.symlink(dir, new_name, &[b'x'; 200][..kind as usize % 200])),
        3 => drop(fs.link(ino, dir, new_name)),
        4 => drop(fs.unlink(old_dir, &old_name)),
        5 => drop(fs.rmdir(old_dir, &old_name)),
        6 => drop(fs.rename(old_dir, &old_name, dir, new_name)),
        7 | 8 => drop(fs.write(ino, offset, &[kind; 6000])),
        9 => drop(fs.append(ino, &[kind; 3000])),
        10 => drop(fs.truncate(ino, offset)),
        11 => drop(fs.open(ino)),
        12 => drop(fs.close(ino)),
        13 => drop(fs.chmod(ino, 0o600)),
        14 => drop(fs.sync()),
        _ => drop(fs.readdir(ino, offset, 50)),
    }
}
