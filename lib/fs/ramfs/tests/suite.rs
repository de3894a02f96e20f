//! The file system in memory against the host's, with random operations; its budget; and what only
//! it can show.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ramfs::store::PAGE;
use ramfs::{BLOCK, Error, Kind, Limits};

#[path = "suite/deaths.rs"]
mod deaths;
#[path = "suite/memory.rs"]
mod memory;
#[path = "suite/ram.rs"]
mod ram;

use ram::Ram;

const LIMITS: Limits = Limits {
    bytes: 4 << 20,
    inodes: 1000,
};
const NOW: u64 = 1_700_000_000;

fn new() -> Ram {
    Ram::new(LIMITS, 1000, NOW)
}

fn names(fs: &Ram, directory: u64) -> Vec<(Vec<u8>, u64)> {
    let mut names = Vec::new();
    fs.list(directory, 2, |inode, _, name| {
        names.push((name.to_vec(), inode));
        true
    })
    .expect("a directory");
    names.sort();
    names
}

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn path(&mut self) -> Vec<&'static str> {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        (0..=self.below(3)).map(|_| NAMES[self.below(5)]).collect()
    }
}

/// A folder of the host, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ramfs-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder of our own");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The inode of the directory that the last name is in.
fn parent(fs: &Ram, path: &[&str]) -> Result<u64, Error> {
    let mut at = fs.root();
    for name in &path[..path.len() - 1] {
        at = fs.lookup(at, name.as_bytes())?;
        if fs.attributes(at)?.kind == Kind::Symlink {
            // Nothing follows links here: the host's end in nothing, too.
            return Err(Error::NotFound);
        }
    }
    fs.attributes(at).and_then(|of| match of.kind {
        Kind::Directory => Ok(at),
        _ => Err(Error::NotDirectory),
    })
}

fn find(fs: &Ram, path: &[&str]) -> Result<u64, Error> {
    fs.lookup(parent(fs, path)?, path[path.len() - 1].as_bytes())
}

fn same(step: usize, ours: Result<(), Error>, host: io::Result<()>) {
    let expected = match &ours {
        Ok(()) => 0,
        Err(Error::NotFound) => 2,
        Err(Error::Exists) => 17,
        Err(Error::NotDirectory) => 20,
        Err(Error::IsDirectory) => 21,
        Err(Error::Invalid) => 22,
        Err(Error::NotEmpty) => 39,
        Err(other) => panic!("step {step}: {other:?}"),
    };
    let found = host
        .err()
        .map_or(0, |error| error.raw_os_error().unwrap_or(-1));
    // Linux says EPERM for links to directories, and ENOTEMPTY where something is moved over what
    // it lies in.
    const SAME: [(i32, i32); 4] = [(21, 1), (22, 39), (39, 22), (21, 39)];
    let is_same = expected == found || SAME.contains(&(expected, found));
    assert!(is_same, "step {step}: {ours:?}, and the host {found}");
}

/// One operation on both.
fn step(number: usize, ram: &mut Ram, host: &Path, random: &mut Random) {
    let (path, other) = (random.path(), random.path());
    let [on_host, other_on_host] = [&path, &other].map(|path| host.join(path.join("/")));
    let name = path[path.len() - 1].as_bytes();
    let other_name = other[other.len() - 1].as_bytes();
    let above = parent(ram, &path);
    let other_above = parent(ram, &other);
    let (ours, theirs) = match random.below(10) {
        0 | 1 => (
            above.and_then(|above| ram.create(above, name, Kind::Regular, 0o644, NOW).map(drop)),
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&on_host)
                .map(drop),
        ),
        2 => (
            above.and_then(|above| {
                ram.create(above, name, Kind::Directory, 0o755, NOW)
                    .map(drop)
            }),
            fs::create_dir(&on_host),
        ),
        3 => (
            above.and_then(|above| ram.symlink(above, name, b"nowhere", NOW).map(drop)),
            symlink("nowhere", &on_host),
        ),
        4 => (
            find(ram, &other).and_then(|inode| ram.link(above?, name, inode, NOW)),
            fs::hard_link(&other_on_host, &on_host),
        ),
        5 => (
            above.and_then(|above| ram.unlink(above, name, NOW)),
            fs::remove_file(&on_host),
        ),
        6 => (
            above.and_then(|above| ram.remove_directory(above, name, NOW)),
            fs::remove_dir(&on_host),
        ),
        7 | 8 => (
            above.and_then(|above| ram.rename(above, name, other_above?, other_name, NOW)),
            fs::rename(&on_host, &other_on_host),
        ),
        _ => {
            let (offset, length) = (random.below(200_000) as u64, random.below(3000));
            let cut = (random.below(3) == 0).then(|| random.below(200_000) as u64);
            write_both(ram, find(ram, &path), &on_host, offset, length, cut);
            return;
        }
    };
    same(number, ours, theirs);
}

fn write_both(
    ram: &mut Ram,
    inode: Result<u64, Error>,
    host: &Path,
    offset: u64,
    length: usize,
    cut: Option<u64>,
) {
    let is_file = |inode: &u64| {
        ram.attributes(*inode)
            .is_ok_and(|of| of.kind == Kind::Regular)
    };
    let Some(inode) = inode.ok().filter(is_file) else {
        return;
    };
    let data = vec![offset as u8 | 1; length];
    let mut file = OpenOptions::new().write(true).open(host).expect("there");
    file.seek(SeekFrom::Start(offset)).expect("a file");
    file.write_all(&data).expect("room");
    assert_eq!(ram.write(inode, offset, &data, NOW), Ok(length));
    if let Some(size) = cut {
        file.set_len(size).expect("a file");
        ram.truncate(inode, size, NOW).expect("a file");
    }
}

/// Both trees as text.
fn compare(ram: &Ram, directory: u64, host: &Path) {
    let mut theirs: Vec<_> = fs::read_dir(host)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_encoded_bytes())
        .collect();
    theirs.sort();
    let ours = names(ram, directory);
    assert_eq!(
        ours.iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>(),
        theirs
    );
    for (name, inode) in ours {
        let path = host.join(String::from_utf8(name).expect("a letter"));
        let (of, on_host) = (
            ram.attributes(inode).expect("listed"),
            fs::symlink_metadata(&path).expect("listed"),
        );
        match of.kind {
            Kind::Directory => {
                // Some file systems of hosts do not count directories.
                assert!(on_host.nlink() < 2 || u64::from(of.links) == on_host.nlink());
                assert_eq!(ram.lookup(inode, b".."), Ok(directory));
                compare(ram, inode, &path);
            }
            Kind::Symlink => assert_eq!(ram.read_link(inode), Ok(&b"nowhere"[..])),
            Kind::Regular => {
                assert_eq!(u64::from(of.links), on_host.nlink());
                let mut content = Vec::new();
                fs::File::open(&path)
                    .and_then(|mut file| file.read_to_end(&mut content))
                    .expect("there");
                let mut ours = vec![7; content.len() + 9];
                let length = ram.read(inode, 0, &mut ours).expect("a file");
                assert!(ours[..length] == content, "{}", path.display());
            }
        }
    }
}

#[test]
fn does_what_the_host_does() {
    for seed in 1..=6 {
        let folder = Folder::new(&format!("model-{seed}"));
        let mut random = Random(seed * 0x1234_5678_9abc_def1);
        let mut ram = Ram::new(
            Limits {
                bytes: 1 << 30,
                inodes: 10_000,
            },
            77,
            NOW,
        );
        for number in 0..4000 {
            step(number, &mut ram, &folder.0, &mut random);
        }
        compare(&ram, ram.root(), &folder.0);
        assert!(ram.room().free_blocks < (1 << 30) / BLOCK);
        clear(&mut ram, 1);
        assert_eq!(
            ram.room(),
            Ram::new(
                Limits {
                    bytes: 1 << 30,
                    inodes: 10_000
                },
                77,
                NOW
            )
            .room()
        );
        assert_eq!(
            fs::metadata(&folder.0).expect("there").permissions().mode() & 0o700,
            0o700
        );
    }
}

/// Removes everything in a directory.
fn clear(ram: &mut Ram, directory: u64) {
    for (name, inode) in names(ram, directory) {
        if ram.attributes(inode).expect("listed").kind == Kind::Directory {
            clear(ram, inode);
            ram.remove_directory(directory, &name, NOW).expect("empty");
        } else {
            ram.unlink(directory, &name, NOW).expect("listed");
        }
    }
}

#[test]
fn the_budget_is_kept_and_comes_back() {
    let mut fs = new();
    let before = fs.room();
    let file = fs
        .create(1, b"full", Kind::Regular, 0o644, NOW)
        .expect("room");
    let data = vec![1; 300_000];
    let mut at = 0;
    loop {
        match fs.write(file, at, &data, NOW) {
            Ok(count) => at += count as u64,
            Err(error) => break assert_eq!(error, Error::NoSpace),
        }
    }
    assert!(at > (4 << 20) - 2 * PAGE && at <= 4 << 20, "{at}");
    assert_eq!(
        fs.write(file, 0, &data, NOW),
        Ok(data.len()),
        "what is there can be written over"
    );
    assert_eq!(fs.attributes(file).expect("there").size, at);
    fs.truncate(file, 10, NOW).expect("a file");
    assert!(fs.room().free_blocks + 18 > before.free_blocks);
    fs.unlink(1, b"full", NOW).expect("there");
    assert_eq!(fs.room(), before);
}

#[test]
fn names_and_inodes_are_limited_too() {
    let mut fs = new();
    let before = fs.room();
    let mut made = 0;
    let error = loop {
        match fs.create(1, format!("{made}").as_bytes(), Kind::Regular, 0o644, NOW) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error, made), (Error::NoSpace, 999));
    assert_eq!(fs.room().free_inodes, 0);
    clear(&mut fs, 1);
    assert_eq!(fs.room(), before);
    let small = Limits {
        bytes: 2000,
        inodes: 1000,
    };
    let mut fs = Ram::new(small, 0, NOW);
    let name = [b'n'; 255];
    assert!(fs.create(1, &name, Kind::Directory, 0o755, NOW).is_ok());
    let mut other = name;
    other[0] = b'm';
    assert!(fs.create(1, &other, Kind::Directory, 0o755, NOW).is_ok());
    other[0] = b'l';
    assert!(fs.create(1, &other, Kind::Directory, 0o755, NOW).is_ok());
    other[0] = b'k';
    assert_eq!(
        fs.create(1, &other, Kind::Directory, 0o755, NOW),
        Err(Error::NoSpace)
    );
    assert_eq!(
        fs.lookup(1, &other),
        Err(Error::NotFound),
        "nothing half made is left"
    );
}

#[test]
fn while_memory_is_short_files_do_not_grow() {
    static SHORT: AtomicBool = AtomicBool::new(false);
    let mut fs = new();
    fs.spare_memory(|| SHORT.load(Ordering::Relaxed));
    let file = fs.create(1, b"f", Kind::Regular, 0o644, NOW).expect("room");
    assert_eq!(fs.write(file, 0, &[1; 4096], NOW), Ok(4096));
    SHORT.store(true, Ordering::Relaxed);
    assert_eq!(fs.write(file, 0, &[2; 4096], NOW), Ok(4096));
    assert_eq!(fs.write(file, 4096, &[3; 60_000], NOW), Err(Error::NoSpace));
    assert_eq!(fs.truncate(file, 0, NOW), Ok(()));
    SHORT.store(false, Ordering::Relaxed);
    assert_eq!(fs.write(file, 4096, &[3; 60_000], NOW), Ok(60_000));
}

#[test]
fn files_are_sparse_and_may_be_huge() {
    let mut fs = new();
    let file = fs.create(1, b"f", Kind::Regular, 0o644, NOW).expect("room");
    assert_eq!(fs.write(file, 5 << 30, b"end", NOW), Ok(3));
    let of = fs.attributes(file).expect("there");
    assert_eq!((of.size, of.memory), ((5 << 30) + 3, BLOCK));
    let mut buffer = [9; 8];
    assert_eq!(fs.read(file, (5 << 30) - 4, &mut buffer), Ok(7));
    assert_eq!(&buffer, b"\0\0\0\0end\x09");
    fs.truncate(file, (5 << 30) + 1, NOW).expect("a file");
    fs.truncate(file, (5 << 30) + 4, NOW).expect("a file");
    assert_eq!(fs.read(file, 5 << 30, &mut buffer), Ok(4));
    assert_eq!(&buffer[..4], b"e\0\0\0", "what was cut off reads as zeros");
    assert_eq!(
        fs.write(file, u64::MAX - 1, b"x", NOW),
        Err(Error::TooLarge)
    );
    assert_eq!(fs.truncate(file, u64::MAX, NOW), Err(Error::TooLarge));
}

#[test]
fn a_held_inode_lives_without_a_name() {
    let mut fs = new();
    let before = fs.room();
    let file = fs.create(1, b"f", Kind::Regular, 0o644, NOW).expect("room");
    fs.hold(file).expect("there");
    fs.unlink(1, b"f", NOW).expect("there");
    assert_eq!(fs.write(file, 0, b"still", NOW), Ok(5));
    assert_eq!(fs.link(1, b"g", file, NOW), Err(Error::NotFound));
    assert_eq!(fs.attributes(file).expect("held").links, 0);
    fs.release(file);
    assert_eq!(fs.attributes(file), Err(Error::NotFound));
    assert_eq!(fs.room(), before);
    let directory = fs
        .create(1, b"d", Kind::Directory, 0o755, NOW)
        .expect("room");
    fs.hold(directory).expect("there");
    fs.remove_directory(1, b"d", NOW).expect("empty");
    assert_eq!(
        fs.create(directory, b"x", Kind::Regular, 0o644, NOW),
        Err(Error::NotFound)
    );
    assert_eq!(fs.lookup(directory, b".."), Err(Error::NotFound));
    fs.release(directory);
    assert_eq!(fs.room(), before);
}

#[test]
fn names_have_limits() {
    let mut fs = new();
    assert!(
        fs.create(1, &[b'n'; 255], Kind::Regular, 0o644, NOW)
            .is_ok()
    );
    assert_eq!(
        fs.create(1, &[b'n'; 256], Kind::Regular, 0o644, NOW),
        Err(Error::NameTooLong)
    );
    assert_eq!(fs.lookup(1, &[b'n'; 256]), Err(Error::NameTooLong));
    for name in [&b""[..], b"a/b", b"a\0"] {
        assert_eq!(
            fs.create(1, name, Kind::Regular, 0o644, NOW),
            Err(Error::BadName)
        );
    }
    assert_eq!(
        fs.symlink(1, b"s", &[b'x'; 4096], NOW),
        Err(Error::NameTooLong)
    );
    assert_eq!(fs.symlink(1, b"s", b"", NOW), Err(Error::Invalid));
    assert_eq!(fs.rename(1, b".", 1, b"x", NOW), Err(Error::Invalid));
    assert_eq!(fs.remove_directory(1, b".", NOW), Err(Error::Invalid));
}

#[test]
fn times_and_modes_are_kept() {
    let mut fs = new();
    let file = fs.create(1, b"f", Kind::Regular, 0o640, 5).expect("room");
    fs.write(file, 0, b"x", 6).expect("room");
    fs.set_mode(file, 0o17755, 7).expect("there");
    let of = fs.attributes(file).expect("there");
    assert_eq!(
        (of.accessed, of.modified, of.changed, of.mode),
        (5, 6, 7, 0o7755)
    );
    fs.set_times(file, Some(1), None, 8).expect("there");
    let of = fs.attributes(file).expect("there");
    assert_eq!((of.accessed, of.modified, of.changed), (1, 6, 8));
    assert_eq!(fs.attributes(1).expect("root").modified, 5);
}

#[test]
fn a_large_directory_is_listed_while_it_changes() {
    let limits = Limits {
        bytes: 64 << 20,
        inodes: 200_000,
    };
    let mut fs = Ram::new(limits, 10, NOW);
    for number in 0..100_000 {
        fs.create(
            1,
            format!("file {number}").as_bytes(),
            Kind::Regular,
            0o644,
            NOW,
        )
        .expect("room");
    }
    let (mut seen, mut cookie) = (0, 0);
    loop {
        let mut batch = Vec::new();
        let next = fs.list(1, cookie, |_, _, name| {
            batch.push(name.to_vec());
            batch.len() <= 1000
        });
        let next = next.expect("a directory");
        batch.truncate(1000);
        seen += batch.len();
        if batch.is_empty() {
            break;
        }
        for name in batch.iter().filter(|name| name.len() > 2) {
            fs.unlink(1, name, NOW).expect("listed");
        }
        cookie = next;
    }
    assert_eq!(seen, 100_002);
    assert!(names(&fs, 1).is_empty());
}

#[test]
fn numbers_of_another_life_lead_to_nothing() {
    let mut first = Ram::new(LIMITS, 5_000, NOW);
    let file = first
        .create(1, b"f", Kind::Regular, 0o644, NOW)
        .expect("room");
    let mut second = Ram::new(LIMITS, 900_000, NOW);
    second
        .create(1, b"g", Kind::Regular, 0o644, NOW)
        .expect("room");
    assert_eq!(second.attributes(file), Err(Error::NotFound));
    assert_eq!(second.hold(file), Err(Error::NotFound));
    for inode in [0, 2, u64::MAX] {
        assert_eq!(second.attributes(inode), Err(Error::NotFound));
    }
}
