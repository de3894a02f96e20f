//! Content that others write to where it is to go, late: whatever the moment of a power cut, no
//! file shows what another one had there, and what was committed is there.

use std::cell::{Cell, RefCell};
use std::slice::from_ref;

use ext2::{BlockDevice, DeviceError, Error, FileSystem, Mapped, Time};

use crate::host::*;

/// What files had that were removed before.
const OLD: u8 = 0xee;
/// Bytes of a file that others write.
const LENGTH: u64 = 9 * 1024 + 100;

/// A disk, and content on its way there, which arrives when somebody waits for it.
struct Late<'a> {
    disk: &'a Disk,
    under_way: RefCell<Vec<(u64, Vec<u8>)>>,
    unflushed: Cell<bool>,
    /// Nobody is made to wait.
    is_hasty: bool,
}

impl<'a> Late<'a> {
    fn new(disk: &'a Disk, is_hasty: bool) -> Self {
        Late {
            disk,
            under_way: RefCell::default(),
            unflushed: Cell::new(false),
            is_hasty,
        }
    }

    /// Has `byte` on its way to all that is mapped.
    fn send(&self, mapped: &Mapped, byte: u8) {
        let parts = mapped.extents.iter();
        let parts = parts.map(|extent| (extent.sector, vec![byte; extent.bytes]));
        self.under_way.borrow_mut().extend(parts);
    }
}

impl BlockDevice for &Late<'_> {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.disk.read(sector, buf)
    }
    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        self.disk.write(sector, buf)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.disk.flush()?;
        self.unflushed.set(false);
        Ok(())
    }
    fn await_content(&self) -> Result<bool, DeviceError> {
        if self.is_hasty {
            return Ok(false);
        }
        for (sector, bytes) in self.under_way.take() {
            self.unflushed.set(true);
            self.disk.write(sector, &bytes)?;
        }
        Ok(self.unflushed.get())
    }
    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }
}

/// An image whose free blocks have what was removed, as far as there is room for that.
fn worn(journal: bool) -> Vec<u8> {
    let arguments = if journal {
        "-b 1024 -j -J size=1"
    } else {
        "-b 1024"
    };
    let disk = Disk::new(make_image(arguments, None, 3072));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"old", 0o644).unwrap();
    while fs
        .append(ino, &[OLD; 64 * 1024])
        .is_ok_and(|(_, count)| count > 0)
    {}
    fs.sync().unwrap();
    fs.unlink(root, b"old").unwrap();
    fs.unmount().unwrap();
    drop(fs);
    disk.image()
}

type Files<'a> = FileSystem<&'a Late<'a>>;

/// Makes files with content that others write, and removes some; how many commits were done, and
/// which files were there at the last one.
fn work(fs: &mut Files<'_>, late: &Late<'_>, kept: &mut Vec<u8>) -> Result<(), Error> {
    let root = fs.root();
    let mut made = Vec::new();
    for n in 1..=30u8 {
        let name = [b'a' + n];
        let ino = fs.create(root, &name, 0o644)?;
        let mut at = 0;
        while at < LENGTH {
            let mapped = fs.map_content(ino, from_ref(&(at..LENGTH)), Time::at(1))?;
            late.send(&mapped, n);
            at += mapped.bytes;
        }
        made.push(n);
        if n % 3 == 0 {
            fs.unlink(root, &[b'a' + made.remove(0)])?;
        }
        if n % 4 == 0 {
            fs.commit()?;
            kept.clone_from(&made);
        }
    }
    Ok(())
}

/// Cuts the power in all moments; whether a file ever showed what was not its own.
fn cuts(journal: bool, is_hasty: bool) -> bool {
    let base = worn(journal);
    let mut has_leaked = false;
    for requests in 1..100 {
        let disk = Disk::new(base.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        let late = Late::new(&disk, is_hasty);
        let mut kept = Vec::new();
        if let Ok(mut fs) = FileSystem::mount(&late, options(false, 1 << 20)) {
            let _ = work(&mut fs, &late, &mut kept);
        }
        let left = disk.cut(&mut Random(requests.into()));
        let disk = Disk::new(left);
        let mut fs = mount(&disk);
        let root = fs.root();
        for (name, ino) in list(&mut fs, root).unwrap() {
            if name.len() != 1 || name == b"." {
                continue;
            }
            let n = name[0] - b'a';
            let content = match read_all(&mut fs, ino) {
                // Without a journal there may be names of no inode.
                Err(Error::NotFound) if !journal => continue,
                content => content.unwrap(),
            };
            has_leaked |= content.contains(&OLD);
            let is_whole = content.len() as u64 == LENGTH && content.iter().all(|byte| *byte == n);
            // A file that was there and is removed since may be cut already.
            let is_safe = kept.contains(&n) && kept.first() != Some(&n) && kept.get(1) != Some(&n);
            assert!(
                is_hasty || is_whole || !is_safe,
                "file {n} after {requests} requests"
            );
        }
        fs.unmount().unwrap();
        drop(fs);
        if journal {
            assert_clean(&disk.image());
        }
    }
    has_leaked
}

#[test]
fn a_file_never_shows_what_another_had_in_a_place_that_others_write() {
    assert!(!cuts(true, false));
    assert!(!cuts(false, false));
}

/// So the tests above would find it.
#[test]
fn a_device_that_does_not_wait_for_content_shows_it() {
    assert!(cuts(true, true));
    assert!(cuts(false, true));
}

#[test]
fn content_that_others_write_is_read_as_it_was_written() {
    for block in [1024, 4096] {
        let disk = Disk::new(empty(block, 8192));
        let mut fs = mount(&disk);
        let root = fs.root();
        let ino = fs.create(root, b"f", 0o644).unwrap();
        let size = u64::from(block);
        // What the library has in memory of the file is older.
        write_all(&mut fs, ino, 0, &[1; 20_000]).unwrap();
        let ranges = [size..3 * size, 4 * size..4 * size + 10];
        let mapped = fs.map_content(ino, &ranges, Time::at(77)).unwrap();
        assert_eq!(mapped.bytes, 2 * size + 10);
        for extent in &mapped.extents {
            disk.write(extent.sector, &vec![2; extent.bytes]).unwrap();
        }
        fs.forget_content(&mapped);
        let content = read_all(&mut fs, ino).unwrap();
        let is_new = |at: u64| (size..3 * size).contains(&at) || (at >= 4 * size && at < 5 * size);
        assert_eq!(content.len() as u64, 20_000.max(4 * size + 10));
        for (byte, at) in content.iter().zip(0..) {
            assert_eq!(
                *byte,
                1 + u8::from(is_new(at)),
                "at {at} of blocks of {block}"
            );
        }
        assert_eq!(fs.getattr(ino).unwrap().mtime, Time::at(77));
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

#[test]
fn content_that_does_not_arrive_leaves_zeros_in_new_places() {
    let base = worn(true);
    let disk = Disk::new(base);
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    write_all(&mut fs, ino, 0, &[1; 1024]).unwrap();
    let mapped = fs
        .map_content(ino, from_ref(&(0..5000)), Time::at(1))
        .unwrap();
    fs.clear_content(&mapped).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let mut fs = mount(&disk);
    let content = read_all(&mut fs, ino).unwrap();
    assert!(content.len() == 5000 && !content[1024..].contains(&OLD));
}

#[test]
fn content_is_mapped_by_blocks_and_where_there_is_room() {
    let disk = Disk::new(empty(1024, 300));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    for range in [10..1024, 1024..1024] {
        assert!(matches!(
            fs.map_content(ino, from_ref(&range), Time::at(1)),
            Err(Error::Invalid(_))
        ));
    }
    assert!(
        fs.map_content(root, from_ref(&(0..10)), Time::at(1))
            .is_err()
    );
    assert_eq!(
        fs.map_content(ino, from_ref(&(1 << 50..(1 << 50) + 1)), Time::at(1)),
        Err(Error::FileTooLarge)
    );
    let mut at = 0;
    let end = loop {
        match fs.map_content(ino, from_ref(&(at..1 << 20)), Time::at(1)) {
            Ok(mapped) => at += mapped.bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(end, Error::NoSpace);
    assert!(at > 100 * 1024 && fs.getattr(ino).unwrap().size == at);
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}
