//! Full disks and failing devices.

use ext2::{DeviceError, Error, FileKind, FileSystem};

use crate::host::*;

#[test]
fn a_full_disk_says_so_keeps_what_fits_and_empties_again() {
    for block_size in [1024, 4096] {
        let disk = Disk::new(empty(block_size, (8 << 20) / block_size));
        let mut fs = mount(&disk);
        let root = fs.root();
        let before = fs.statfs().unwrap();
        for _ in 0..3 {
            let ino = fs.create(root, b"fill", 0o644).unwrap();
            let data = Random(5).bytes(16 << 20);
            let written = fs.write(ino, 0, &data).unwrap();
            assert!(written > 7 << 20 && written < 8 << 20, "{written}");
            assert_eq!(fs.write(ino, written as u64, &data), Err(Error::NoSpace));
            assert!(fs.statfs().unwrap().free_blocks <= 1);
            let small = fs.create(root, b"small", 0o644).unwrap();
            assert_eq!(fs.write(small, 1 << 20, b"no room"), Err(Error::NoSpace));
            assert_eq!(fs.mkdir(root, b"dir", 0o755), Err(Error::NoSpace));
            assert!(read_all(&mut fs, ino).unwrap() == data[..written]);
            fs.sync().unwrap();
            assert_clean(&disk.image());
            fs.unlink(root, b"small").unwrap();
            fs.unlink(root, b"fill").unwrap();
        }
        fs.unmount().unwrap();
        assert_eq!(fs.statfs().unwrap(), before);
        assert_clean(&disk.image());
    }
}

#[test]
fn a_directory_that_cannot_grow_leaks_nothing() {
    let disk = Disk::new(empty(1024, 2048));
    let mut fs = mount(&disk);
    let root = fs.root();
    let fill = fs.create(root, b"fill", 0o644).unwrap();
    fs.write(fill, 0, &vec![1; 4 << 20]).unwrap();
    let inodes = fs.statfs().unwrap().free_inodes;
    let mut made = 0;
    let error = loop {
        match fs.create(
            root,
            format!("a rather long name {made:0200}").as_bytes(),
            0o644,
        ) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::NoSpace);
    assert_eq!(fs.statfs().unwrap().free_inodes, inodes - made);
    assert!(matches!(
        fs.symlink(root, b"long", &[b'x'; 500]),
        Err(Error::NoSpace)
    ));
    assert!(fs.symlink(root, b"short", b"target").is_ok());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn no_inode_left_says_so() {
    let disk = Disk::new(make_image("-t ext2 -b 1024 -N 64", None, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let mut made = 0;
    while let Ok(ino) = fs.create(root, format!("{made}").as_bytes(), 0o644) {
        fs.write(ino, 0, b"x").unwrap();
        made += 1;
    }
    assert_eq!(fs.create(root, b"more", 0o644), Err(Error::NoInodes));
    fs.unlink(root, b"0").unwrap();
    assert!(fs.create(root, b"more", 0o644).is_ok());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn a_read_only_mount_refuses_every_change() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    fs.unmount().unwrap();
    let mut fs = FileSystem::mount(&disk, options(true, 1 << 20)).unwrap();
    assert_eq!(fs.create(root, b"g", 0o644), Err(Error::ReadOnly));
    assert_eq!(fs.mkdir(root, b"g", 0o755), Err(Error::ReadOnly));
    assert_eq!(fs.write(ino, 0, b"x"), Err(Error::ReadOnly));
    assert_eq!(fs.truncate(ino, 9), Err(Error::ReadOnly));
    assert_eq!(fs.unlink(root, b"f"), Err(Error::ReadOnly));
    assert_eq!(fs.rename(root, b"f", root, b"g"), Err(Error::ReadOnly));
    assert_eq!(fs.chmod(ino, 0), Err(Error::ReadOnly));
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

/// Work that touches everything; stops at the first error.
fn workload(fs: &mut Fs<'_>) -> Result<(), Error> {
    let root = fs.root();
    for n in 0..6u32 {
        let dir = fs.mkdir(root, format!("dir{n}").as_bytes(), 0o755)?;
        for m in 0..8 {
            let ino = fs.create(dir, format!("file{m}").as_bytes(), 0o644)?;
            write_all(fs, ino, m * 500, &Random(m).bytes(40_000))?;
        }
        fs.rename(dir, b"file0", root, format!("moved{n}").as_bytes())?;
        fs.unlink(dir, b"file1")?;
        let ino = fs.lookup(dir, b"file2")?;
        fs.truncate(ino, 5000)?;
        fs.symlink(dir, b"link", &[b'x'; 100])?;
        if n % 2 == 0 {
            fs.sync()?;
        }
    }
    for (name, ino) in list(fs, root)? {
        if name.starts_with(b"moved") {
            read_all(fs, ino)?;
            fs.unlink(root, &name)?;
        }
    }
    fs.sync()
}

#[test]
fn a_device_that_fails_any_one_request_loses_nothing() {
    let image = empty(1024, 8192);
    let disk = Disk::new(image.clone());
    let mut fs = FileSystem::mount(&disk, options(false, 0)).unwrap();
    workload(&mut fs).unwrap();
    drop(fs);
    let (reads, writes) = (disk.reads.get(), disk.writes.get());
    assert_clean(&disk.image());
    for n in (0..reads).step_by(7).chain(0..3) {
        one_failure(&image, |disk| disk.fail_reads_from.set(Some(n)));
    }
    for n in (0..writes).step_by(5).chain(0..3) {
        one_failure(&image, |disk| disk.fail_writes_from.set(Some(n)));
    }
}

/// Runs the workload on a disk of which one request fails: after that all is consistent, in memory
/// and, after a sync, on disk.
fn one_failure(image: &[u8], arrange: impl Fn(&Disk)) {
    let disk = Disk::new(image.to_vec());
    disk.once.set(true);
    arrange(&disk);
    let mut fs = match FileSystem::mount(&disk, options(false, 0)) {
        Ok(fs) => fs,
        Err(error) => return assert_eq!(error, Error::Device(DeviceError::Io)),
    };
    if let Err(error) = workload(&mut fs) {
        assert_eq!(error, Error::Device(DeviceError::Io));
    }
    assert!(!fs.is_read_only());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn a_dead_device_ends_the_work_and_nothing_hangs() {
    let image = empty(1024, 8192);
    for n in 0..40 {
        let disk = Disk::new(image.clone());
        disk.fail_reads_from.set(Some(n * 2));
        disk.fail_writes_from.set(Some(n));
        let Ok(mut fs) = FileSystem::mount(&disk, options(false, 0)) else {
            continue;
        };
        assert_eq!(workload(&mut fs), Err(Error::Device(DeviceError::Io)));
        let _ = (fs.sync(), fs.unmount());
    }
}

#[test]
fn what_cannot_be_written_stays_in_memory_until_it_can() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    disk.fail_writes_from.set(Some(0));
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    let data = Random(8).bytes(500_000);
    write_all(&mut fs, ino, 0, &data).unwrap();
    assert_eq!(fs.sync(), Err(Error::Device(DeviceError::Io)));
    assert_eq!(fs.unmount(), Err(Error::Device(DeviceError::Io)));
    assert!(read_all(&mut fs, ino).unwrap() == data);
    disk.fail_writes_from.set(None);
    fs.unmount().unwrap();
    assert_clean(&disk.image());
    assert!(read_all(&mut mount(&disk), ino).unwrap() == data);
}

/// Removes everything in a directory; entries that name nothing too.
fn remove_all(fs: &mut Fs<'_>, dir: u32) {
    for (name, ino) in list(fs, dir).unwrap() {
        if fs
            .getattr(ino)
            .is_ok_and(|attributes| attributes.kind == FileKind::Directory)
        {
            remove_all(fs, ino);
            fs.rmdir(dir, &name).unwrap();
        } else {
            fs.unlink(dir, &name).unwrap();
        }
    }
}

/// After a power cut no block has two owners, everything that was synced is there, and everything
/// can be removed.
#[test]
fn a_power_cut_at_any_write_leaves_what_was_synced() {
    let image = empty(1024, 8192);
    let disk = Disk::new(image.clone());
    let keep = Random(11).bytes(100_000);
    let prepare = |disk: &Disk| {
        let mut fs = FileSystem::mount(disk, options(false, 0)).unwrap();
        let root = fs.root();
        let ino = fs.create(root, b"keep", 0o644).unwrap();
        write_all(&mut fs, ino, 0, &keep).unwrap();
        fs.unmount().unwrap();
    };
    prepare(&disk);
    let prepared = disk.image();
    let disk = Disk::new(prepared.clone());
    workload(&mut FileSystem::mount(&disk, options(false, 0)).unwrap()).unwrap();
    let writes = disk.writes.get();
    for n in (0..writes).step_by(4) {
        let disk = Disk::new(prepared.clone());
        disk.fail_writes_from.set(Some(n));
        let _ = workload(&mut FileSystem::mount(&disk, options(false, 0)).unwrap());
        disk.fail_writes_from.set(None);
        let (_, text) = check(&disk.image());
        assert!(
            !text.contains("ultiply-claimed"),
            "cut at write {n}: {text}"
        );
        let mut fs = FileSystem::mount(&disk, options(false, 0)).unwrap();
        let ino = walk(&mut fs, "keep").unwrap();
        assert!(read_all(&mut fs, ino).unwrap() == keep, "cut at write {n}");
        fs.unmount().unwrap();
        let (_, text) = check(&disk.image());
        assert!(!text.contains("Free blocks count wrong (") || text.contains("Block bitmap diff"));
        remove_all(&mut mount(&disk), 2);
    }
}
