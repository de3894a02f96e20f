//! What is done with a file system that was mounted: everything is listed and read, up to a budget,
//! and then the rest of the input says what is changed.

use ext2::{BlockDevice, Commit, FileKind, FileSystem, SECTOR_SIZE, Time};

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

pub fn run(fs: &mut Fs<'_>, disk: &Disk<'_>, bytes: &mut Bytes<'_>) {
    let mut found = Found::default();
    explore(fs, fs.root(), 0, &mut found);
    let _ = fs.statfs();
    let mut under_way = None;
    for _ in 0..MOST_OPERATIONS {
        if bytes.is_empty() {
            break;
        }
        match bytes.byte() % 4 {
            0 => others(fs, disk, &mut found, &mut under_way, bytes),
            _ => change(fs, &mut found, bytes),
        }
    }
    end_commit(fs, &mut under_way);
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

/// Does what the file system's domain does beside operations on files: content that goes to its
/// place without the file system, and commits during which it goes on.
fn others(
    fs: &mut Fs<'_>,
    disk: &Disk<'_>,
    found: &mut Found,
    under_way: &mut Option<Commit>,
    bytes: &mut Bytes<'_>,
) {
    let kind = bytes.byte();
    let dir = found.dirs[bytes.byte() as usize % found.dirs.len()];
    let named =
        (!found.names.is_empty()).then(|| found.names[bytes.byte() as usize % found.names.len()].2);
    let ino = named.unwrap_or(dir);
    match kind % 6 {
        0 | 1 => store(fs, disk, ino, bytes),
        2 => drop(fs.locate(ino, u64::from(bytes.byte()) << 12, 1 << 16)),
        3 => {
            end_commit(fs, under_way);
            if let Ok(Some(commit)) = fs.begin_commit(|| Ok(())) {
                commit
                    .write(disk)
                    .expect("what is written lies inside of the image");
                *under_way = Some(commit);
            }
        }
        4 => end_commit(fs, under_way),
        _ => {
            let name = [b'p', bytes.byte()];
            if let Ok(ino) = fs.mknod(dir, &name, FileKind::Pipe, 0o600, 0) {
                found.names.push((dir, name.to_vec(), ino));
            }
        }
    }
}

/// A commit that was written is over.
fn end_commit(fs: &mut Fs<'_>, under_way: &mut Option<Commit>) {
    if let Some(commit) = under_way.take() {
        fs.finish_commit(&commit, Ok(()));
    }
}

/// Gives content places, and has it arrive there, or not. It never goes over the superblock or
/// further than the device.
fn store(fs: &mut Fs<'_>, disk: &Disk<'_>, ino: u32, bytes: &mut Bytes<'_>) {
    let start = u64::from(bytes.byte()) << 12;
    let end = start + 1 + u64::from(bytes.word() % 70_000);
    let behind = end.next_multiple_of(4096) + (u64::from(bytes.byte()) << 12);
    let ranges = [start..end, behind..behind + 4096];
    let ranges = &ranges[..1 + usize::from(bytes.byte() & 1)];
    let Ok(mapped) = fs.map_content(ino, ranges, Time::at(1_700_000_001)) else {
        return;
    };
    let asked: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!(mapped.bytes <= asked, "more than was asked for");
    for extent in &mapped.extents {
        let end = extent.sector + (extent.bytes / SECTOR_SIZE) as u64;
        assert!(
            extent.sector * SECTOR_SIZE as u64 >= 2048 && end <= disk.sectors(),
            "content goes to {extent:?}"
        );
    }
    if bytes.byte() & 3 == 0 {
        let _ = fs.clear_content(&mapped);
        return;
    }
    for extent in &mapped.extents {
        let content = vec![bytes.byte(); extent.bytes];
        disk.write(extent.sector, &content)
            .expect("inside of the image");
    }
    fs.forget_content(&mapped);
}
