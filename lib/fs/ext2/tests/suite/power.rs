//! Power cuts at random points of random work: after each, our replay and the host's agree, the
//! host finds nothing wrong, and everything that was acknowledged is there.

use ext2::{DeviceError, Error, FileSystem};

use crate::host::*;
use crate::model::{Model, Node, read_model, step};

/// Work since the last acknowledgement.
pub struct History {
    /// The model after each operation since then; the first is what was acknowledged.
    pub moments: Vec<Model>,
}

impl History {
    pub fn now(&self) -> &Model {
        self.moments.last().unwrap()
    }

    pub fn acknowledge(&mut self) {
        self.moments.drain(..self.moments.len() - 1);
    }

    /// Asserts that `found` is what a power cut may leave: the names of some moment, and the
    /// content of all files that did not change since the acknowledgement.
    pub fn check(&self, found: &Model) {
        let kinds = |model: &Model| -> Vec<(String, bool)> {
            let nodes = model.iter();
            nodes
                .map(|(path, node)| (path.clone(), *node == Node::Directory))
                .collect()
        };
        let names = kinds(found);
        let moment = self.moments.iter().find(|moment| kinds(moment) == names);
        assert!(moment.is_some(), "names of no moment since the last sync");
        for (path, node) in &self.moments[0] {
            let constant = |moment: &Model| moment.get(path) == Some(node);
            if self.moments.iter().all(constant) {
                assert!(found.get(path) == Some(node), "content of {path}");
            }
        }
    }
}

/// Commits while one request to the device fails; says whether the commit did. It may be on the
/// medium.
fn commit_in_doubt(fs: &mut Fs<'_>, disk: &Disk, random: &mut Random) -> Result<bool, Error> {
    disk.doubt_in.set(Some(random.below(6) as u32));
    let result = fs.commit();
    disk.doubt_in.set(None);
    match result {
        Err(Error::Device(DeviceError::Io)) => Ok(true),
        other => other.map(|()| false),
    }
}

/// Works until the device dies.
fn work(
    fs: &mut Fs<'_>,
    disk: &Disk,
    history: &mut History,
    random: &mut Random,
) -> Result<(), Error> {
    loop {
        let mut model = history.now().clone();
        let done = step(fs, &mut model, random);
        history.moments.push(model);
        done?;
        match random.below(24) {
            0 => fs.sync()?,
            1 | 2 => fs.commit()?,
            // Kept open to the end, so that removing it leaves an orphan.
            3 => {
                let path = history.now().keys().next().cloned().unwrap_or_default();
                let ino = walk(fs, &path)?;
                fs.open(ino)?;
                continue;
            }
            4 if commit_in_doubt(fs, disk, random)? => continue,
            4 => {}
            _ => continue,
        }
        history.acknowledge();
    }
}

/// What our mount makes of the image, and the image after its unmount.
pub fn recover(image: Vec<u8>) -> (Model, Vec<u8>) {
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    assert!(fs.was_clean() && !fs.is_read_only());
    let found = read_model(&mut fs);
    assert_eq!(fs.take_distrusted(), []);
    fs.unmount().unwrap();
    drop(fs);
    (found, disk.data.into_inner())
}

pub fn assert_same(one: &Model, other: &Model) {
    assert!(one.keys().eq(other.keys()));
    assert!(one.iter().all(|(path, node)| other[path] == *node));
}

/// In every other case, cuts the power again while a mount replays what the first cut left.
fn cut_mount(image: Vec<u8>, random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        return image;
    }
    let disk = Disk::new(image);
    disk.remember();
    disk.requests_left.set(Some(1 + random.below(12) as u32));
    drop(FileSystem::mount(&disk, options(false, 1 << 20)));
    disk.cut(random)
}

/// One cut after so many writes and flushes; returns what is left.
fn cut(image: Vec<u8>, budget: usize, requests: u32, random: &mut Random) -> Vec<u8> {
    let disk = Disk::new(image);
    let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
    let mut history = History {
        moments: vec![read_model(&mut fs)],
    };
    disk.remember();
    disk.requests_left.set(Some(requests));
    let error = work(&mut fs, &disk, &mut history, random).unwrap_err();
    assert!(matches!(error, Error::Device(_)), "{error}");
    drop(fs);
    let left = cut_mount(disk.cut(random), random);
    let read_only = Disk::new(left.clone());
    let mut fs = FileSystem::mount(&read_only, options(true, 1 << 20)).unwrap();
    let seen = read_model(&mut fs);
    drop(fs);
    assert_eq!(read_only.writes.get(), 0);
    let host = host_replay(&left);
    let (ours, image) = recover(left);
    history.check(&ours);
    assert_same(&ours, &seen);
    assert_clean(&image);
    assert_clean(&host);
    let (theirs, _) = recover(host);
    assert_same(&ours, &theirs);
    image
}

/// `EXT2_CUTS` cuts per case for a long search, else `usual`.
fn cuts(arguments: &str, blocks: u32, budget: usize, seed: u64, usual: u64) {
    let wanted = std::env::var("EXT2_CUTS").ok();
    let count = wanted.and_then(|text| text.parse().ok()).unwrap_or(usual);
    let base = make_image(arguments, None, blocks);
    let mut image = base.clone();
    for n in 0..count {
        let mut random = Random(seed * 1_000_000 + n);
        if n % 6 == 0 {
            image = base.clone();
        }
        let requests = 1 + random.below(if n % 3 == 0 { 20 } else { 300 }) as u32;
        eprintln!("{arguments}: cut {n} after {requests} requests");
        image = cut(image, budget, requests, &mut random);
    }
}

#[test]
fn cuts_with_small_blocks_and_a_small_cache() {
    cuts("-t ext3 -b 1024 -J size=1", 6 << 10, 0, 1, 100);
}

#[test]
fn cuts_with_a_large_cache() {
    cuts("-t ext3 -b 2048 -J size=2", 7 << 9, 8 << 20, 2, 60);
}

#[test]
fn cuts_with_large_blocks() {
    cuts("-t ext3 -b 4096 -J size=4", 9 << 8, 1 << 20, 3, 60);
}

/// Each single write and flush is the last, several times.
#[test]
fn a_cut_at_every_request_of_a_short_work() {
    let base = make_image("-t ext3 -b 1024 -J size=1", None, 2560);
    let mut random = Random(7);
    for requests in (1..36).chain(1..36) {
        let disk = Disk::new(base.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        let mut fs = mount(&disk);
        let root = fs.root();
        let mut done = 0;
        let result = (0..6).try_for_each(|n| {
            let ino = fs.create(root, format!("f{n}").as_bytes(), 0o644)?;
            write_all(&mut fs, ino, 0, &Random(n).bytes(3000))?;
            fs.fsync(ino)?;
            done = n + 1;
            Ok::<_, Error>(())
        });
        assert!(result.is_err() || requests > 30);
        drop(fs);
        let left = disk.cut(&mut random);
        assert_clean(&host_replay(&left));
        let (found, image) = recover(left);
        assert_clean(&image);
        for n in 0..done {
            let content = Node::File(Random(n).bytes(3000).into());
            assert!(found[&format!("/f{n}")] == content);
        }
    }
}

/// The replay of a mount is cut at each of its requests, and what that leaves is replayed.
#[test]
fn a_cut_at_every_request_of_a_replay() {
    let disk = Disk::new(make_image("-t ext3 -b 1024 -J size=1", None, 2560));
    let mut fs = mount(&disk);
    let root = fs.root();
    let content = Random(1).bytes(3000);
    for n in 0..3 {
        let dir = fs.mkdir(root, format!("d{n}").as_bytes(), 0o755).unwrap();
        let ino = fs.create(dir, b"f", 0o644).unwrap();
        write_all(&mut fs, ino, 0, &content).unwrap();
        fs.fsync(ino).unwrap();
    }
    drop(fs);
    let image = disk.image();
    let mut random = Random(9);
    for requests in (1..20).cycle().take(100) {
        let disk = Disk::new(image.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        drop(FileSystem::mount(&disk, options(false, 1 << 20)));
        let left = disk.cut(&mut random);
        let (found, image) = recover(left);
        assert_eq!(found.len(), 6);
        assert!(found["/d2/f"] == Node::File(content.clone().into()));
        assert_clean(&image);
    }
}
