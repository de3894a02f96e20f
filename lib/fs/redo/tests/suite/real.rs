//! Crashes of the real file system, `lib/fs/ext2` with a journal and without on a disk in memory,
//! at every request to the disk: what it had asked the disk to write is there, and nothing else. A
//! sequence of writes is one request, since the disk's shadow outlives the file system.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::model::pair::{Life, PIPE, Pair};
use crate::model::{Body, Error, NOW, Random, Result, Setting};
use ext2::{BlockDevice, DeviceError, FileKind, FileSystem, Group, Options, SECTOR_SIZE};
use redo::intent::SETTING;
use redo::{Action, Facts, Fault, Kind, Node, Outcome, Severity, Target};

struct Disk {
    bytes: RefCell<Vec<u8>>,
    /// Requests until the next crash, and those that follow it.
    crashes: RefCell<Vec<usize>>,
    dead: Cell<bool>,
}

#[derive(Clone)]
struct Device(Rc<Disk>);

impl Device {
    fn request(&self) -> std::result::Result<(), DeviceError> {
        let mut crashes = self.0.crashes.borrow_mut();
        if let Some(left) = crashes.first_mut() {
            if *left == 0 {
                crashes.remove(0);
                self.0.dead.set(true);
            } else {
                *left -= 1;
            }
        }
        match self.0.dead.get() {
            true => Err(DeviceError::Unavailable),
            false => Ok(()),
        }
    }
}

impl BlockDevice for Device {
    fn read(&self, sector: u64, buf: &mut [u8]) -> std::result::Result<(), DeviceError> {
        self.request()?;
        let at = sector as usize * SECTOR_SIZE;
        buf.copy_from_slice(&self.0.bytes.borrow()[at..at + buf.len()]);
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> std::result::Result<(), DeviceError> {
        self.request()?;
        let at = sector as usize * SECTOR_SIZE;
        self.0.bytes.borrow_mut()[at..at + buf.len()].copy_from_slice(buf);
        Ok(())
    }

    fn write_groups(&self, groups: Vec<Group>) -> std::result::Result<(), DeviceError> {
        self.request()?;
        let mut bytes = self.0.bytes.borrow_mut();
        for group in groups {
            let mut rest = &group.data[..];
            for (sector, length) in group.extents {
                let (part, later) = rest.split_at(length);
                let at = sector as usize * SECTOR_SIZE;
                bytes[at..at + length].copy_from_slice(part);
                rest = later;
            }
        }
        // The file system may die before it hears that it is done.
        self.request()
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        self.request()
    }

    fn sectors(&self) -> u64 {
        (self.0.bytes.borrow().len() / SECTOR_SIZE) as u64
    }
}

/// The file system, with a journal or without.
#[derive(Clone)]
pub struct Mounted<const JOURNAL: bool> {
    fs: Rc<RefCell<FileSystem<Device>>>,
    disk: Rc<Disk>,
    id: u32,
    serves: Rc<Cell<u32>>,
}

fn mount(disk: &Rc<Disk>) -> FileSystem<Device> {
    let options = Options {
        read_only: false,
        cache_budget_bytes: 1 << 20,
        memory_is_short: || false,
        clock: Box::new(|| ext2::Time::at(NOW as i64)),
    };
    FileSystem::mount(Device(disk.clone()), options).expect("it can be mounted")
}

/// An image without a journal, and one with it.
static IMAGES: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [image(&[]), image(&["-j", "-J", "size=1"])]);

/// A name for an image that no other test uses at the same time.
fn file() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("redo-{}-{number}.img", std::process::id()))
}

fn image(options: &[&str]) -> Vec<u8> {
    let file = file();
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-b", "1024"])
        .args(options)
        .arg(&file)
        .arg("4M")
        .status()
        .expect("mke2fs of e2fsprogs is there");
    assert!(made.success());
    let bytes = std::fs::read(&file).expect("it was made");
    std::fs::remove_file(file).expect("it was made");
    bytes
}

/// Asserts that the host finds nothing wrong.
fn assert_clean(image: &[u8]) {
    let file = file();
    std::fs::write(&file, image).expect("there is room");
    let checked = Command::new("e2fsck").arg("-fn").arg(&file).output();
    std::fs::remove_file(file).expect("it was made");
    let checked = checked.expect("e2fsck of e2fsprogs is there");
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{text}");
}

impl<const JOURNAL: bool> Mounted<JOURNAL> {
    fn run<R>(
        &self,
        work: impl FnOnce(&mut FileSystem<Device>) -> std::result::Result<R, ext2::Error>,
    ) -> Result<R> {
        if self.is_dead() {
            return Err(Error::Dead);
        }
        let result = work(&mut self.fs.borrow_mut());
        match result {
            _ if self.disk.dead.get() => Err(Error::Dead),
            Ok(result) => Ok(result),
            Err(ext2::Error::NotFound) => Err(Error::Missing),
            Err(ext2::Error::Exists) => Err(Error::Exists),
            Err(ext2::Error::Device(error)) => panic!("a live disk says {error}"),
            Err(ext2::Error::Corrupt(what)) => panic!("corrupt: {what}"),
            Err(_) => Err(Error::Invalid),
        }
    }
}

fn body(fs: &mut FileSystem<Device>, inode: u32) -> std::result::Result<Body, ext2::Error> {
    let of = fs.getattr(inode)?;
    Ok(match of.kind {
        FileKind::Regular => {
            let mut content = vec![0; of.size as usize];
            fs.read(inode, 0, &mut content)?;
            Body::File(content)
        }
        FileKind::Directory => Body::Directory(Default::default()),
        FileKind::Symlink => Body::Symlink(fs.readlink(inode)?),
        _ => Body::Node(Node {
            kind: PIPE,
            mode: of.mode,
            device: of.device,
        }),
    })
}

fn print(fs: &mut FileSystem<Device>, directory: u32, path: &str, text: &mut String) {
    let mut entries = fs.readdir(directory, 0, 1000).expect("it can be read");
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        let is_left_out = directory == 2 && entry.name == b"lost+found";
        if entry.name == b"." || entry.name == b".." || is_left_out {
            continue;
        }
        let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
        let of = fs.getattr(entry.ino).expect("it is there");
        let mode = of.mode & 0o7777;
        match body(fs, entry.ino).expect("it can be read") {
            Body::Directory(_) => {
                text.push_str(&format!("{path}/ {mode:o}\n"));
                print(fs, entry.ino, &path, text);
            }
            body => {
                let times = [of.atime, of.mtime].map(|time| time.seconds);
                text.push_str(&format!(
                    "{path} {mode:o} {} {times:?} {body:?}\n",
                    of.links
                ));
            }
        }
    }
}

impl<const JOURNAL: bool> Life for Mounted<JOURNAL> {
    const EXACT: bool = false;
    const EXCHANGES: bool = JOURNAL;

    fn first(_: u64) -> Self {
        let disk = Rc::new(Disk {
            bytes: RefCell::new(IMAGES[usize::from(JOURNAL)].clone()),
            crashes: RefCell::default(),
            dead: Cell::new(false),
        });
        Mounted {
            fs: Rc::new(RefCell::new(mount(&disk))),
            disk,
            id: 1,
            serves: Rc::new(Cell::new(1)),
        }
    }

    fn next(&self) -> Self {
        self.disk.dead.set(false);
        // A crash under the mount is `init`'s affair; here it comes after it.
        let later = self.disk.crashes.take();
        let fs = mount(&self.disk);
        self.disk.crashes.replace(later);
        self.serves.set(self.id + 1);
        Mounted {
            fs: Rc::new(RefCell::new(fs)),
            id: self.id + 1,
            ..self.clone()
        }
    }

    fn is_dead(&self) -> bool {
        self.disk.dead.get() || self.serves.get() != self.id
    }

    fn tree(&self) -> String {
        let mut text = String::new();
        self.disk.crashes.take();
        print(&mut self.fs.borrow_mut(), 2, "", &mut text);
        text
    }

    fn body(&self, real: u64) -> Body {
        body(&mut self.fs.borrow_mut(), real as u32).expect("it can be read")
    }
}

impl<const JOURNAL: bool> Target for Mounted<JOURNAL> {
    type Data = Vec<u8>;
    type Setting = Setting;
    type Error = Error;
    type Kept = ();
    type Known = (u32, u64);

    fn id(&self) -> u32 {
        self.id
    }

    fn root(&self) -> u64 {
        2
    }

    fn unnamed(&self) -> Result<u64> {
        self.run(|fs| {
            let directory = fs.unnamed(true)?.expect("it was made");
            fs.commit()?;
            Ok(directory.into())
        })
    }

    fn look_up(&self, directory: u64, name: &Vec<u8>) -> Result<u64> {
        self.run(|fs| fs.lookup(directory as u32, name))
            .map(u64::from)
    }

    fn facts(&self, inode: u64) -> Result<Facts> {
        let of = self.run(|fs| fs.getattr(inode as u32))?;
        let kind = match of.kind {
            FileKind::Regular => Kind::File,
            FileKind::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        Ok(Facts {
            kind,
            links: of.links.into(),
            size: of.size,
        })
    }

    fn perform(&self, action: &Action<Vec<u8>, Setting>, on: [u64; 2]) -> Result<Outcome> {
        let [first, second] = on.map(|number| number as u32);
        let made = |number: u32| Outcome::Made(number.into());
        let done = |()| Outcome::Done;
        self.run(|fs| match action {
            Action::Write { offset, data } => fs
                .write(first, *offset, data)
                .map(|count| Outcome::Wrote(count as u64)),
            Action::Truncate { size } => fs.truncate(first, *size).map(done),
            Action::Set(Setting::Mode(mode)) => fs.chmod(first, *mode).map(done),
            Action::Set(Setting::Times(times)) => {
                let [accessed, modified] =
                    times.map(|time| time.map(|seconds| ext2::Time::at(seconds as i64)));
                fs.set_times(first, accessed, modified).map(done)
            }
            Action::Create {
                name,
                kind: Kind::File,
                mode,
            } => fs.create(first, name, *mode).map(made),
            Action::Create { name, mode, .. } => fs.mkdir(first, name, *mode).map(made),
            Action::Node { name, node } => {
                assert_eq!((node.kind, node.device), (PIPE, 0));
                fs.mknod(first, name, FileKind::Pipe, node.mode, 0)
                    .map(made)
            }
            Action::Symlink { name, target } => fs.symlink(first, name, target).map(made),
            Action::Link { name } => fs.link(second, first, name).map(done),
            Action::Unlink { name } => fs.unlink(first, name).map(done),
            Action::RemoveDirectory { name } => fs.rmdir(first, name).map(done),
            Action::Rename { name, new_name } => fs.rename(first, name, second, new_name).map(done),
            Action::Exchange { name, new_name } => {
                fs.exchange(first, name, second, new_name).map(done)
            }
        })
    }

    fn write(&self, inode: u64, offset: u64, data: &Vec<u8>) -> Result<u64> {
        let data = data.clone();
        match self.perform(&Action::Write { offset, data }, [inode; 2])? {
            Outcome::Wrote(count) => Ok(count),
            other => panic!("a write that ends with {other:?}"),
        }
    }

    fn keep(&self, inode: u64) -> Result<()> {
        self.run(|fs| fs.open(inode as u32))
    }

    fn commit(&self) -> Result<()> {
        self.run(FileSystem::commit)
    }

    fn sync(&self) -> Result<()> {
        self.run(FileSystem::sync)
    }

    fn pack_setting(setting: &Setting, place: &mut [u8; SETTING]) -> Option<()> {
        setting.pack(place);
        Some(())
    }

    fn unpack_setting(bytes: &[u8; SETTING]) -> Option<Setting> {
        Setting::unpack(bytes)
    }

    fn data(bytes: &[u8]) -> Result<Vec<u8>> {
        Ok(bytes.into())
    }

    fn cut(mut data: Vec<u8>, length: usize) -> Vec<u8> {
        data.truncate(length);
        data
    }

    fn error(fault: Fault) -> Error {
        fault.into()
    }

    fn severity(error: &Error) -> Severity {
        error.severity()
    }
}

/// Work whose operations are chosen by these numbers, one each, with crashes after so many requests
/// to the disk.
pub fn run_chosen<const JOURNAL: bool>(steps: &[u64], crashes: &[usize], budget: usize) {
    let mut pair: Pair<Mounted<JOURNAL>> = Pair::new(1, budget);
    let disk = pair.site.last.borrow().disk.clone();
    disk.crashes.replace(crashes.to_vec());
    for step in steps {
        pair.step(&mut Random(step | 1));
        if step >> 60 < 4 {
            pair.go_on_with_commits((step >> 40) as usize);
        }
    }
    finish(pair);
}

/// The last checks, the host's included; what was seen of recoveries.
fn finish<const JOURNAL: bool>(mut pair: Pair<Mounted<JOURNAL>>) -> Vec<redo::Report> {
    pair.compare();
    let last = pair.site.last.borrow().clone();
    last.fs.borrow_mut().unmount().expect("the disk works");
    assert_clean(&last.disk.bytes.borrow());
    pair.site.reports.take()
}

/// Random work with these crashes; what was seen of recoveries.
fn run<const JOURNAL: bool>(seed: u64, steps: usize, crashes: Vec<usize>) -> Vec<redo::Report> {
    let mut pair: Pair<Mounted<JOURNAL>> = Pair::new(seed, 1 << 20);
    let mut random = Random(seed);
    pair.site.last.borrow().disk.crashes.replace(crashes);
    for _ in 0..steps {
        pair.step(&mut random);
    }
    finish(pair)
}

fn agrees<const JOURNAL: bool>() {
    for seed in 1..20 {
        assert!(run::<JOURNAL>(seed, 100, Vec::new()).is_empty());
    }
}

#[test]
fn without_a_crash_it_agrees_with_the_model() {
    agrees::<true>();
    agrees::<false>();
}

fn one_crash<const JOURNAL: bool>() {
    let mut recoveries = 0;
    for seed in 1..4 {
        for at in 0..120 {
            recoveries += run::<JOURNAL>(seed, 120, vec![at]).len();
        }
    }
    assert!(recoveries > 20, "{recoveries}");
}

#[test]
fn a_crash_at_any_request_is_not_noticed() {
    one_crash::<true>();
}

#[test]
fn a_crash_at_any_request_without_a_journal_is_not_noticed() {
    one_crash::<false>();
}

/// Without half-written changes each recovery knows exactly how many changes were on the disk.
fn many_crashes<const JOURNAL: bool>() {
    let (mut recoveries, mut partly) = (0, 0);
    for seed in 50..90 {
        let mut random = Random(seed * 31);
        let crashes = (0..8).map(|_| random.below(60)).collect();
        let reports = run::<JOURNAL>(seed, 400, crashes);
        assert!(reports.iter().all(|report| report.found.is_some()));
        recoveries += reports.len();
        let is_partly = |report: &&redo::Report| report.found.is_some_and(|found| found > 0);
        partly += reports.iter().filter(is_partly).count();
    }
    assert!(recoveries > 40 && partly > 5, "{recoveries}, {partly}");
}

#[test]
fn many_crashes_are_not_noticed() {
    many_crashes::<true>();
}

#[test]
fn many_crashes_without_a_journal_are_not_noticed() {
    many_crashes::<false>();
}
