//! Images, devices and the host's tools.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use ext2::{BlockDevice, DeviceError, Error, FileKind, FileSystem, Options, Time};

/// A folder that goes away with its owner.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        // Images are many and short-lived: in memory, if the host has such a place.
        let memory = PathBuf::from("/dev/shm");
        let base = match memory.is_dir() {
            true => memory,
            false => std::env::temp_dir(),
        };
        let path = base.join(format!("ext2-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A program of the host; e2fsprogs lie in `/sbin`, which is not in everybody's path.
fn tool(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/sbin:/usr/sbin"));
    command
}

/// Runs a program and returns its status and all it printed.
fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("e2fsprogs is installed");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// Makes an image with `mke2fs ARGUMENTS`, from `content` if given.
pub fn make_image(arguments: &str, content: Option<&Path>, blocks: u32) -> Vec<u8> {
    let folder = Folder::new();
    let image = folder.path("image");
    let mut command = tool("mke2fs");
    // A fixed seed, so that every run has the same hashes.
    let seed = "hash_seed=0b9b4f0e-6b5d-4c0e-8c1f-2d3a41c5e977";
    command.args(["-q", "-F", "-E", &format!("root_owner=0:0,{seed}")]);
    command.args(arguments.split_whitespace());
    if let Some(content) = content {
        command.arg("-d").arg(content);
    }
    let (good, text) = run(command.arg(&image).arg(blocks.to_string()));
    assert!(good, "{text}");
    std::fs::read(image).unwrap()
}

/// An empty ext2 image.
pub fn empty(block_size: u32, blocks: u32) -> Vec<u8> {
    make_image(&format!("-t ext2 -b {block_size}"), None, blocks)
}

/// Asserts that `e2fsck -fn` finds nothing.
#[track_caller]
pub fn assert_clean(image: &[u8]) {
    let (good, text) = check(image);
    assert!(good, "{text}");
}

/// What `e2fsck -fn` says.
pub fn check(image: &[u8]) -> (bool, String) {
    let folder = Folder::new();
    let path = folder.path("image");
    std::fs::write(&path, image).unwrap();
    run(tool("e2fsck").arg("-fn").arg(&path))
}

/// Lets the host replay the journal, and do nothing else.
pub fn host_replay(image: &[u8]) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.path("image");
    std::fs::write(&path, image).unwrap();
    let (good, text) = run(tool("e2fsck").args(["-y", "-E", "journal_only"]).arg(&path));
    // Status 1 is "errors corrected", which a replay may count as.
    assert!(good || !text.contains("rror"), "{text}");
    std::fs::read(path).unwrap()
}

/// Runs commands in `debugfs -w`; says what it printed.
pub fn debugfs_script(image: &mut Vec<u8>, commands: &str) -> String {
    let folder = Folder::new();
    let (path, script) = (folder.path("image"), folder.path("script"));
    std::fs::write(&path, &*image).unwrap();
    std::fs::write(&script, commands).unwrap();
    let (_, text) = run(tool("debugfs").arg("-w").arg("-f").arg(script).arg(&path));
    *image = std::fs::read(&path).unwrap();
    text
}

/// Lets `e2fsck -D` rebuild the directories, so that large ones have an index.
pub fn optimize(image: &mut Vec<u8>) {
    let folder = Folder::new();
    let path = folder.path("image");
    std::fs::write(&path, &*image).unwrap();
    run(tool("e2fsck").arg("-fyD").arg(&path));
    *image = std::fs::read(&path).unwrap();
}

/// The image after `e2fsck -fy`.
pub fn repaired(image: Vec<u8>) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.path("image");
    std::fs::write(&path, image).unwrap();
    run(tool("e2fsck").arg("-fy").arg(&path));
    std::fs::read(path).unwrap()
}

/// What `debugfs -R COMMAND` prints; with `write` the image is changed.
pub fn debugfs(image: &mut Vec<u8>, write: bool, command: &str) -> String {
    let folder = Folder::new();
    let path = folder.path("image");
    std::fs::write(&path, &*image).unwrap();
    let mut tool = tool("debugfs");
    if write {
        tool.arg("-w");
    }
    let (_, text) = run(tool.arg("-R").arg(command).arg(&path));
    *image = std::fs::read(&path).unwrap();
    text
}

/// A disk in memory that counts requests and fails on demand.
#[derive(Default)]
pub struct Disk {
    pub data: RefCell<Vec<u8>>,
    pub reads: Cell<u32>,
    pub writes: Cell<u32>,
    /// The number of the first read that fails, and of all after it.
    pub fail_reads_from: Cell<Option<u32>>,
    /// The number of the first write that fails, and of all after it.
    pub fail_writes_from: Cell<Option<u32>>,
    /// Only the one request fails, not those after it.
    pub once: Cell<bool>,
    /// What a power cut leaves, see [`Disk::remember`].
    medium: RefCell<Option<Medium>>,
    /// Flushes so far.
    pub flushes: Cell<u32>,
    /// Writes and flushes until the power is cut. The request of that moment fails, and what it
    /// writes may be on the medium.
    pub requests_left: Cell<Option<u32>>,
    /// Writes and flushes until one is done, but reported as failed.
    pub doubt_in: Cell<Option<u32>>,
}

/// The medium behind the volatile cache of a disk.
struct Medium {
    data: Vec<u8>,
    /// Sectors written since the last flush, in order: where they start and their content.
    unflushed: Vec<(usize, Vec<u8>)>,
}

impl Disk {
    pub fn new(image: Vec<u8>) -> Self {
        Disk {
            data: RefCell::new(image),
            ..Disk::default()
        }
    }

    pub fn image(&self) -> Vec<u8> {
        self.data.borrow().clone()
    }

    /// From here on the disk distinguishes what is flushed from what is only written.
    pub fn remember(&self) {
        *self.medium.borrow_mut() = Some(Medium {
            data: self.image(),
            unflushed: Vec::new(),
        });
    }

    /// The image after a power cut: what was flushed, and of each sector that was written since any
    /// of its contents; or no newer one, or the newest of all.
    pub fn cut(&self, random: &mut Random) -> Vec<u8> {
        let medium = self.medium.borrow();
        let medium = medium.as_ref().expect("remember was called");
        let mut image = medium.data.clone();
        let mode = random.below(4);
        let mut taken = std::collections::BTreeSet::new();
        let mut order: Vec<_> = medium.unflushed.iter().collect();
        // Backwards the last content is seen first, so it wins if the coin says so.
        order.reverse();
        for (at, sector) in order {
            let keep = match mode {
                0 => false,
                1 => true,
                _ => random.below(mode) == 0,
            };
            if keep && taken.insert(*at) {
                image[*at..at + 512].copy_from_slice(sector);
            }
        }
        image
    }

    /// Counts a write or flush; an error once the power is cut.
    fn power(&self) -> Result<(), DeviceError> {
        match self.requests_left.get() {
            Some(0) => return Err(DeviceError::Unavailable),
            left => self.requests_left.set(left.map(|left| left - 1)),
        }
        Ok(())
    }

    /// What is said of a write or flush that was done.
    fn doubt(&self) -> Result<(), DeviceError> {
        let left = self.doubt_in.get();
        self.doubt_in.set(left.and_then(|left| left.checked_sub(1)));
        match left {
            Some(0) => Err(DeviceError::Io),
            _ => Ok(()),
        }
    }

    fn fails(&self, count: &Cell<u32>, from: &Cell<Option<u32>>) -> bool {
        let n = count.get();
        count.set(n + 1);
        from.get().is_some_and(|from| {
            if self.once.get() {
                n == from
            } else {
                n >= from
            }
        })
    }
}

impl BlockDevice for Disk {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        assert!(buf.len().is_multiple_of(512) && !buf.is_empty());
        if self.fails(&self.reads, &self.fail_reads_from) {
            return Err(DeviceError::Io);
        }
        let at = sector as usize * 512;
        let data = self.data.borrow();
        buf.copy_from_slice(
            data.get(at..at + buf.len())
                .ok_or(DeviceError::OutOfRange)?,
        );
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        assert!(buf.len().is_multiple_of(512) && !buf.is_empty());
        if self.fails(&self.writes, &self.fail_writes_from) {
            return Err(DeviceError::Io);
        }
        let at = sector as usize * 512;
        let last = self.requests_left.get() == Some(1);
        self.power()?;
        let mut data = self.data.borrow_mut();
        data.get_mut(at..at + buf.len())
            .ok_or(DeviceError::OutOfRange)?
            .copy_from_slice(buf);
        if let Some(medium) = self.medium.borrow_mut().as_mut() {
            let sectors = buf.chunks(512).zip(0..);
            medium
                .unflushed
                .extend(sectors.map(|(sector, n)| (at + n * 512, sector.to_vec())));
        }
        match last {
            true => Err(DeviceError::Unavailable),
            false => self.doubt(),
        }
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.set(self.flushes.get() + 1);
        self.power()?;
        if let Some(medium) = self.medium.borrow_mut().as_mut() {
            for (at, sector) in medium.unflushed.drain(..) {
                medium.data[at..at + 512].copy_from_slice(&sector);
            }
        }
        self.doubt()
    }

    fn sectors(&self) -> u64 {
        self.data.borrow().len() as u64 / 512
    }
}

pub const NOW: i64 = 1_790_000_000;

pub fn options(read_only: bool, budget: usize) -> Options {
    Options {
        read_only,
        cache_budget_bytes: budget,
        memory_is_short: || false,
        clock: Box::new(|| Time::at(NOW)),
    }
}

pub type Fs<'a> = FileSystem<&'a Disk>;

pub fn mount(disk: &Disk) -> Fs<'_> {
    FileSystem::mount(disk, options(false, 4 << 20)).unwrap()
}

pub fn mount_error(image: Vec<u8>, read_only: bool) -> Error {
    let disk = Disk::new(image);
    FileSystem::mount(&disk, options(read_only, 1 << 20))
        .err()
        .expect("refused")
}

/// The inode at a path from the root, links not followed.
pub fn walk(fs: &mut Fs<'_>, path: &str) -> Result<u32, Error> {
    let mut at = fs.root();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = fs.lookup(at, name.as_bytes())?;
    }
    Ok(at)
}

/// All entries but `.` and `..`, in the order of the directory, read three at a time.
pub fn list(fs: &mut Fs<'_>, dir: u32) -> Result<Vec<(Vec<u8>, u32)>, Error> {
    let (mut all, mut cookie) = (Vec::new(), 0);
    loop {
        let some = fs.readdir(dir, cookie, 3)?;
        let Some(last) = some.last() else {
            return Ok(all);
        };
        cookie = last.next;
        let named = some
            .into_iter()
            .filter(|entry| entry.name != b"." && entry.name != b"..");
        all.extend(named.map(|entry| (entry.name, entry.ino)));
    }
}

pub fn read_all(fs: &mut Fs<'_>, ino: u32) -> Result<Vec<u8>, Error> {
    let size = fs.getattr(ino)?.size as usize;
    let mut data = vec![0xEE; size];
    let mut at = 0;
    while at < size {
        let end = size.min(at + 50_000);
        at += fs.read(ino, at as u64, &mut data[at..end])?;
    }
    assert_eq!(fs.read(ino, size as u64, &mut [0; 10])?, 0);
    Ok(data)
}

pub fn write_all(fs: &mut Fs<'_>, ino: u32, offset: u64, data: &[u8]) -> Result<(), Error> {
    let mut done = 0;
    while done < data.len() {
        done += fs.write(ino, offset + done as u64, &data[done..])?;
    }
    Ok(())
}

/// Asserts that directory `dir` of the image holds what `host` does, all the way down.
pub fn compare_tree(fs: &mut Fs<'_>, dir: u32, host: &Path) {
    let mut ours = list(fs, dir).unwrap();
    ours.retain(|(name, _)| name != b"lost+found");
    let mut theirs: Vec<_> = std::fs::read_dir(host)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    ours.sort();
    theirs.sort_by_key(|entry| entry.file_name());
    assert_eq!(ours.len(), theirs.len(), "{}", host.display());
    for ((name, ino), entry) in ours.iter().zip(theirs) {
        assert_eq!(name, entry.file_name().as_encoded_bytes());
        let kind = fs.getattr(*ino).unwrap().kind;
        let path = entry.path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            assert_eq!(
                fs.readlink(*ino).unwrap(),
                target.as_os_str().as_encoded_bytes()
            );
        } else if meta.is_dir() {
            assert_eq!(kind, FileKind::Directory);
            compare_tree(fs, *ino, &path);
        } else {
            assert_eq!(kind, FileKind::Regular);
            let data = read_all(fs, *ino).unwrap();
            assert!(data == std::fs::read(&path).unwrap(), "{}", path.display());
        }
    }
}

/// Numbers that look random and are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes());
        words.take(count).collect()
    }
}
