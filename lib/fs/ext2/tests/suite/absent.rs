//! Blocks that are read while others use the file system: nobody who has it waits for the device,
//! and what was read too early is not believed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use ext2::{Attempt, BlockDevice, DeviceError, Error, FileSystem, Load, Time};

use crate::host::*;

/// A disk that threads share.
struct Shared {
    data: Mutex<Vec<u8>>,
    reads: AtomicU32,
}

impl Shared {
    fn new(image: Vec<u8>) -> Self {
        Shared {
            data: Mutex::new(image),
            reads: AtomicU32::new(0),
        }
    }
}

impl BlockDevice for &Shared {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let at = sector as usize * 512;
        let data = self.data.lock().unwrap();
        buf.copy_from_slice(&data[at..at + buf.len()]);
        Ok(())
    }
    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        let at = sector as usize * 512;
        self.data.lock().unwrap()[at..at + buf.len()].copy_from_slice(buf);
        Ok(())
    }
    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn sectors(&self) -> u64 {
        self.data.lock().unwrap().len() as u64 / 512
    }
}

type SharedFs<'a> = FileSystem<&'a Shared>;

/// Does an operation whatever it needs; how often something was read for it.
fn patiently<D: BlockDevice + Copy, T>(
    fs: &mut FileSystem<D>,
    device: D,
    operation: &mut impl FnMut(&mut FileSystem<D>) -> T,
) -> (T, u32) {
    for loads in 0.. {
        match fs.attempt_cached(&mut *operation) {
            Attempt::Done(result) => return (result, loads),
            Attempt::Missing(load) => {
                let content = load.read(&device).unwrap();
                fs.loaded(load, Some(content));
            }
        }
    }
    unreachable!()
}

/// Bytes of the file `big`.
const BIG: usize = 700 * 1024;

/// What it has.
fn big_content() -> Vec<u8> {
    Random(3).bytes(BIG)
}

/// An image with a directory `d` of 300 files, a large file `big`, and `one`.
fn image(options: &str) -> Vec<u8> {
    let disk = Disk::new(make_image(options, None, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let d = fs.mkdir(root, b"d", 0o755).unwrap();
    for n in 0..300 {
        fs.create(d, format!("file{n}").as_bytes(), 0o644).unwrap();
    }
    let big = fs.create(root, b"big", 0o644).unwrap();
    fs.write(big, 0, &big_content()).unwrap();
    fs.create(root, b"one", 0o644).unwrap();
    fs.unmount().unwrap();
    disk.image()
}

const KINDS: [&str; 2] = ["-t ext2 -b 1024", "-t ext2 -j -J size=1 -b 1024"];

/// Has an operation done that reads nothing while it has the file system; how often something was
/// read for it.
fn without_reading<'a>(
    fs: &mut SharedFs<'a>,
    disk: &'a Shared,
    mut operation: impl FnMut(&mut SharedFs<'a>) -> Result<(), Error>,
) -> u32 {
    let before = disk.reads.load(Ordering::Relaxed);
    let (result, loads) = patiently(fs, disk, &mut operation);
    assert_eq!(result, Ok(()));
    assert_eq!(disk.reads.load(Ordering::Relaxed), before + loads);
    loads
}

#[test]
fn who_has_the_file_system_reads_nothing() {
    for kind in KINDS {
        let disk = Shared::new(image(kind));
        let mut fs = FileSystem::mount(&disk, options(false, 4 << 20)).unwrap();
        let root = fs.root();
        let mut loads = without_reading(&mut fs, &disk, |fs| {
            let d = fs.lookup(root, b"d")?;
            fs.lookup(d, b"file299").map(drop)
        });
        loads += without_reading(&mut fs, &disk, |fs| {
            let one = fs.lookup(root, b"one")?;
            fs.getattr(one).map(drop)
        });
        loads += without_reading(&mut fs, &disk, |fs| {
            fs.create(root, b"new", 0o600).map(drop)
        });
        loads += without_reading(&mut fs, &disk, |fs| fs.rename(root, b"one", root, b"two"));
        loads += without_reading(&mut fs, &disk, |fs| fs.mkdir(root, b"e", 0o700).map(drop));
        loads += without_reading(&mut fs, &disk, |fs| fs.unlink(root, b"two"));
        let big = fs.lookup(root, b"big").unwrap();
        loads += without_reading(&mut fs, &disk, |fs| {
            fs.read(big, 300 << 10, &mut [0; 9000]).map(drop)
        });
        assert!(loads > 5, "{loads}");
        fs.unmount().unwrap();
        assert_clean(&disk.data.lock().unwrap());
    }
}

/// What an attempt is given up for.
fn missing<D: BlockDevice, T>(
    fs: &mut FileSystem<D>,
    operation: impl FnOnce(&mut FileSystem<D>) -> T,
) -> Load {
    match fs.attempt_cached(operation) {
        Attempt::Missing(load) => load,
        Attempt::Done(_) => panic!("everything was there"),
    }
}

#[test]
fn what_was_changed_and_given_up_meanwhile_is_not_taken_as_it_was() {
    for kind in KINDS {
        let disk = Disk::new(image(kind));
        let mut fs = FileSystem::mount(&disk, options(false, 128 << 10)).unwrap();
        let (d, big) = (walk(&mut fs, "d").unwrap(), walk(&mut fs, "big").unwrap());
        let file = fs.lookup(d, b"file299").unwrap();
        let turn_over = |fs: &mut Fs<'_>| read_all(fs, big).map(drop).unwrap();
        turn_over(&mut fs);
        let load = missing(&mut fs, |fs| fs.getattr(file));
        let content = load.read(&&disk).unwrap();
        fs.chmod(file, 0o4711).unwrap();
        fs.sync().unwrap();
        turn_over(&mut fs);
        fs.loaded(load, Some(content));
        assert_eq!(fs.getattr(file).unwrap().mode & 0o7777, 0o4711);
        fs.chmod(file, 0o600).unwrap();
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

#[test]
fn what_has_become_content_of_another_meanwhile_is_not_taken_as_it_was() {
    let disk = Disk::new(image(KINDS[0]));
    let mut fs = FileSystem::mount(&disk, options(false, 128 << 10)).unwrap();
    let root = fs.root();
    let (d, big) = (walk(&mut fs, "d").unwrap(), walk(&mut fs, "big").unwrap());
    read_all(&mut fs, big).unwrap();
    fs.getattr(d).unwrap();
    // The names of a directory are read, which is removed with everything.
    let load = missing(&mut fs, |fs| fs.lookup(d, b"file0"));
    let content = load.read(&&disk).unwrap();
    for n in 0..300 {
        fs.unlink(d, format!("file{n}").as_bytes()).unwrap();
    }
    fs.rmdir(root, b"d").unwrap();
    fs.unlink(root, b"big").unwrap();
    fs.sync().unwrap();
    // Others write all free blocks, past the file system.
    let new = fs.create(root, b"new", 0o644).unwrap();
    let mut end = 0;
    loop {
        let length = 128 << 10;
        let Ok(mapped) = fs.map_content(
            new,
            std::slice::from_ref(&(end..end + length)),
            Time::at(NOW),
        ) else {
            break;
        };
        for extent in &mapped.extents {
            disk.write(extent.sector, &vec![0x77; extent.bytes])
                .unwrap();
        }
        fs.forget_content(&mapped);
        end += mapped.bytes;
        if mapped.bytes < length {
            break;
        }
    }
    fs.loaded(load, Some(content));
    let all = read_all(&mut fs, new).unwrap();
    assert!(all.len() as u64 == end && all.iter().all(|byte| *byte == 0x77));
}

#[test]
fn what_could_not_be_read_is_asked_for_again() {
    let disk = Disk::new(image(KINDS[0]));
    let mut fs = mount(&disk);
    // The root directory itself was read by the mount.
    let d = walk(&mut fs, "d").unwrap();
    let load = missing(&mut fs, |fs| fs.lookup(d, b"file0"));
    fs.loaded(load, None);
    let load = missing(&mut fs, |fs| fs.lookup(d, b"file0"));
    // A wrong length is no content.
    fs.loaded(load, Some(vec![0; 512]));
    let (found, loads) = patiently(&mut fs, &disk, &mut |fs| fs.lookup(d, b"file0"));
    assert!(found.is_ok() && loads > 0);
}

/// Does an operation as who shares the file system with others does.
fn among_others<'a, T>(
    shared: &Mutex<SharedFs<'a>>,
    disk: &'a Shared,
    random: &mut Random,
    mut operation: impl FnMut(&mut SharedFs<'a>) -> T,
) -> T {
    for _ in 0..8 {
        let attempt = shared.lock().unwrap().attempt_cached(&mut operation);
        let load = match attempt {
            Attempt::Done(result) => return result,
            Attempt::Missing(load) => load,
        };
        let content = load.read(&disk).unwrap();
        // The later it comes the more has happened.
        for _ in 0..random.below(20) {
            std::thread::yield_now();
        }
        shared.lock().unwrap().loaded(load, Some(content));
    }
    operation(&mut shared.lock().unwrap())
}

/// Random work in a directory that nobody else changes; what is in it then.
fn work<'a>(
    shared: &Mutex<SharedFs<'a>>,
    disk: &'a Shared,
    seed: u64,
) -> (u32, BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut random = Random(seed);
    let content_of_big = big_content();
    let own = format!("own{seed}");
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let act = |random: &mut Random,
               operation: &mut dyn FnMut(&mut SharedFs<'a>) -> Result<u32, Error>| {
        among_others(shared, disk, random, operation)
    };
    let directory = act(&mut random, &mut |fs| fs.mkdir(2, own.as_bytes(), 0o755)).unwrap();
    for _ in 0..300 {
        let name = format!("a name that is not short {}", random.below(60)).into_bytes();
        let there = model.contains_key(&name);
        match random.below(8) {
            0 | 1 => {
                let made = act(&mut random, &mut |fs| fs.create(directory, &name, 0o644));
                assert_eq!(made.is_ok(), !there, "{made:?}");
                model.entry(name).or_default();
            }
            2 => {
                let gone = act(&mut random, &mut |fs| {
                    fs.unlink(directory, &name).map(|()| 0)
                });
                assert_eq!(gone.is_ok(), there, "{gone:?}");
                model.remove(&name);
            }
            3 => {
                let to = format!("a name that is not short {}", random.below(60)).into_bytes();
                let moved = act(&mut random, &mut |fs| {
                    fs.rename(directory, &name, directory, &to).map(|()| 0)
                });
                assert_eq!(moved.is_ok(), there, "{moved:?}");
                if let Some(content) = model.remove(&name) {
                    model.insert(to, content);
                }
            }
            4 if there => {
                let length = 1 + random.below(9000) as usize;
                let content = random.bytes(length);
                let ino = act(&mut random, &mut |fs| fs.lookup(directory, &name)).unwrap();
                act(&mut random, &mut |fs| fs.truncate(ino, 0).map(|()| 0)).unwrap();
                let written = act(&mut random, &mut |fs| {
                    fs.write(ino, 0, &content).map(|count| count as u32)
                });
                assert_eq!(written, Ok(content.len() as u32));
                model.insert(name, content);
            }
            // So that what others need goes.
            6 => {
                let at = random.below((BIG - 40_000) as u64);
                let mut buffer = vec![0; 40_000];
                let big = act(&mut random, &mut |fs| fs.lookup(2, b"big")).unwrap();
                let read = &mut |fs: &mut SharedFs<'a>| fs.read(big, at, &mut buffer).map(|_| 0);
                act(&mut random, read).unwrap();
                assert!(buffer == content_of_big[at as usize..][..40_000]);
            }
            5 if random.below(20) == 0 => {
                shared.lock().unwrap().commit().unwrap();
            }
            _ => {
                let ino = act(&mut random, &mut |fs| fs.lookup(directory, &name));
                assert_eq!(ino.is_ok(), there, "{ino:?}");
                let Some(content) = model.get(&name) else {
                    continue;
                };
                let mut buffer = vec![0; content.len() + 1];
                let ino = ino.unwrap();
                let count = act(&mut random, &mut |fs| {
                    fs.read(ino, 0, &mut buffer).map(|count| count as u32)
                });
                assert_eq!(count, Ok(content.len() as u32));
                assert!(buffer[..content.len()] == *content);
            }
        }
    }
    (directory, model)
}

#[test]
fn threads_that_read_beside_each_other_agree_with_their_models() {
    for kind in KINDS {
        let disk = Shared::new(image(kind));
        // Far less than all of it, so that blocks come and go.
        let fs = FileSystem::mount(&disk, options(false, 128 << 10)).unwrap();
        let before = disk.reads.load(Ordering::Relaxed);
        let shared = Mutex::new(fs);
        let models: Vec<_> = std::thread::scope(|scope| {
            let spawn = |seed| {
                let (shared, disk) = (&shared, &disk);
                scope.spawn(move || work(shared, disk, seed))
            };
            let threads: Vec<_> = (1..5).map(spawn).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(disk.reads.load(Ordering::Relaxed) > before + 500);
        let mut fs = shared.into_inner().unwrap();
        for (directory, model) in models {
            let listed = fs.readdir(directory, 0, 1000).unwrap();
            assert_eq!(listed.len(), model.len() + 2);
            for (name, content) in model {
                let ino = fs.lookup(directory, &name).unwrap();
                let mut buffer = vec![0; content.len() + 1];
                assert_eq!(fs.read(ino, 0, &mut buffer), Ok(content.len()));
                assert!(buffer[..content.len()] == content);
            }
        }
        fs.unmount().unwrap();
        assert_clean(&disk.data.lock().unwrap());
    }
}
