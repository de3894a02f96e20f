//! Changing images, judged by the host's tools.

use ext2::{Error, FileKind, FileSystem, Time};

use crate::host::*;

const BLOCK_SIZES: [u32; 3] = [1024, 2048, 4096];

/// A size that needs double indirection, and triple with blocks of 1 KiB, which begins at 64.3 MiB.
fn deep_size(block_size: u32) -> usize {
    if block_size == 1024 {
        66 << 20
    } else {
        12 << 20
    }
}

#[test]
fn a_mount_alone_writes_nothing() {
    let image = empty(4096, 4096);
    let disk = Disk::new(image.clone());
    let mut fs = mount(&disk);
    fs.sync().unwrap();
    fs.unmount().unwrap();
    assert!(disk.image() == image);
}

#[test]
fn what_is_written_reads_back_and_the_host_agrees() {
    for block_size in BLOCK_SIZES {
        let size = deep_size(block_size);
        let disk = Disk::new(empty(block_size, (size as u32 + (8 << 20)) / block_size));
        let data = Random(block_size.into()).bytes(size);
        let mut fs = mount(&disk);
        let root = fs.root();
        let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
        let ino = fs.create(dir, b"big", 0o640).unwrap();
        for (n, chunk) in data.chunks(100_000).enumerate() {
            write_all(&mut fs, ino, n as u64 * 100_000, chunk).unwrap();
        }
        assert!(read_all(&mut fs, ino).unwrap() == data);
        fs.unmount().unwrap();
        let mut image = disk.image();
        assert_clean(&image);
        let mut fs = mount(&disk);
        let ino = walk(&mut fs, "dir/big").unwrap();
        assert!(read_all(&mut fs, ino).unwrap() == data);
        let folder = Folder::new();
        let out = folder.path("out");
        debugfs(
            &mut image,
            false,
            &format!("dump /dir/big {}", out.display()),
        );
        assert!(std::fs::read(out).unwrap() == data);
        assert!(debugfs(&mut image, false, "stat /dir/big").contains("Mode:  0640"));
    }
}

#[test]
fn sequential_writes_are_contiguous_and_clustered() {
    let disk = Disk::new(empty(4096, 16384));
    let mut fs = FileSystem::mount(&disk, options(false, 8 << 20)).unwrap();
    let root = fs.root();
    let ino = fs.create(root, b"big", 0o644).unwrap();
    let data = Random(3).bytes(4096);
    for block in 0..10240 {
        assert_eq!(fs.write(ino, block * 4096, &data), Ok(4096));
    }
    fs.unmount().unwrap();
    let writes = disk.writes.get();
    assert!(writes < 800, "{writes} requests for 10240 blocks");
    let mut image = disk.image();
    assert_clean(&image);
    let listing = debugfs(&mut image, false, "stat /big");
    let runs = listing.split("BLOCKS:").nth(1).unwrap().split(", ").count();
    assert!(runs < 40, "{runs} runs: {listing}");
}

#[test]
fn small_files_are_written_together() {
    let disk = Disk::new(empty(4096, 8192));
    let mut fs = FileSystem::mount(&disk, options(false, 8 << 20)).unwrap();
    let root = fs.root();
    for n in 0..400 {
        let ino = fs.create(root, format!("f{n}").as_bytes(), 0o644).unwrap();
        assert_eq!(fs.write(ino, 0, &[n as u8; 1000]), Ok(1000));
    }
    fs.unmount().unwrap();
    let writes = disk.writes.get();
    assert!(writes < 60, "{writes} requests for 400 files of a block");
    assert_clean(&disk.image());
}

#[test]
fn room_that_became_free_is_taken_before_more() {
    let disk = Disk::new(empty(4096, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let make = |fs: &mut Fs<'_>, name: &str| {
        let ino = fs.create(root, name.as_bytes(), 0o644).unwrap();
        assert_eq!(fs.write(ino, 0, b"x"), Ok(1));
    };
    (0..40).for_each(|n| make(&mut fs, &format!("f{n}")));
    (0..20).for_each(|n| fs.unlink(root, format!("f{n}").as_bytes()).unwrap());
    fs.sync().unwrap();
    make(&mut fs, "new");
    fs.unmount().unwrap();
    let mut image = disk.image();
    assert_clean(&image);
    let mut block = |name: &str| -> u32 {
        let listing = debugfs(&mut image, false, &format!("blocks {name}"));
        let number = listing.split_whitespace().next().unwrap();
        number.parse().unwrap_or_else(|_| panic!("{listing}"))
    };
    assert!(block("/new") < block("/f20"));
}

#[test]
fn a_second_write_within_a_second_writes_no_inode() {
    let disk = Disk::new(empty(4096, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    write_all(&mut fs, ino, 0, &[1; 8192]).unwrap();
    fs.sync().unwrap();
    let before = disk.writes.get();
    write_all(&mut fs, ino, 4096, &[2; 4096]).unwrap();
    fs.sync().unwrap();
    assert_eq!(disk.writes.get() - before, 1);
    assert_eq!(
        read_all(&mut fs, ino).unwrap(),
        [[1; 4096], [2; 4096]].concat()
    );
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn sparse_files_take_no_room() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let free = fs.statfs().unwrap().free_blocks;
    let ino = fs.create(root, b"sparse", 0o644).unwrap();
    assert_eq!(fs.write(ino, 5 << 30, b"end"), Ok(3));
    assert_eq!(fs.write(ino, 1 << 20, b"middle"), Ok(6));
    assert_eq!(fs.getattr(ino).unwrap().sectors, 2 * (1 + 3 + 1 + 2));
    assert_eq!(fs.statfs().unwrap().free_blocks, free - 7);
    let mut buf = [0xEE; 10];
    fs.read(ino, (1 << 20) - 2, &mut buf).unwrap();
    assert_eq!(&buf, b"\0\0middle\0\0");
    fs.sync().unwrap();
    assert_clean(&disk.image());
    fs.truncate(ino, 6 << 30).unwrap();
    fs.truncate(ino, (1 << 20) + 3).unwrap();
    fs.truncate(ino, 1 << 21).unwrap();
    fs.read(ino, 1 << 20, &mut buf).unwrap();
    assert_eq!(&buf, b"mid\0\0\0\0\0\0\0");
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn truncation_frees_everything_at_every_size() {
    for block_size in BLOCK_SIZES {
        let whole = deep_size(block_size);
        let disk = Disk::new(empty(block_size, (whole as u32 + (8 << 20)) / block_size));
        let mut fs = mount(&disk);
        let root = fs.root();
        let free = fs.statfs().unwrap();
        let ino = fs.create(root, b"f", 0o644).unwrap();
        let data = Random(9).bytes(whole);
        write_all(&mut fs, ino, 0, &data).unwrap();
        for size in [whole, whole - 1_500_001, 4 << 20, 300_001, 12 * 1024, 1, 0] {
            fs.truncate(ino, size as u64).unwrap();
            let mut buf = vec![0; 300_000.min(size)];
            let at = size - buf.len();
            fs.read(ino, at as u64, &mut buf).unwrap();
            assert!(buf == data[at..size]);
            fs.sync().unwrap();
            assert_clean(&disk.image());
        }
        fs.unlink(root, b"f").unwrap();
        fs.unmount().unwrap();
        assert_eq!(fs.statfs().unwrap(), free);
        assert_clean(&disk.image());
    }
}

#[test]
fn thousands_of_entries_come_and_go() {
    for (arguments, blocks) in [("-b 1024", 32768), ("-b 4096 -N 8192 -O ^filetype", 8192)] {
        let disk = Disk::new(make_image(&format!("-t ext2 {arguments}"), None, blocks));
        let mut fs = mount(&disk);
        let root = fs.root();
        let dir = fs.mkdir(root, b"many", 0o755).unwrap();
        let name = |n: u32| format!("entry number {n}").into_bytes();
        for n in 0..2000 {
            let ino = fs.create(dir, &name(n), 0o644).unwrap();
            fs.write(ino, 0, &n.to_le_bytes()).unwrap();
        }
        (0..2000)
            .step_by(3)
            .for_each(|n| fs.unlink(dir, &name(n)).unwrap());
        let listed = list(&mut fs, dir).unwrap();
        assert_eq!(listed.len(), 2000 - 667);
        for n in (0..2000).filter(|n| n % 3 != 0) {
            let ino = fs.lookup(dir, &name(n)).unwrap();
            assert_eq!(read_all(&mut fs, ino).unwrap(), n.to_le_bytes());
        }
        fs.sync().unwrap();
        assert_clean(&disk.image());
        assert_eq!(fs.rmdir(root, b"many"), Err(Error::NotEmpty));
        for (name, _) in listed {
            fs.unlink(dir, &name).unwrap();
        }
        fs.rmdir(root, b"many").unwrap();
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// A directory that is large enough for an index, under a cache that has room for it and one that
/// has not; failed operations in between.
#[test]
fn large_directories_keep_their_names() {
    for (budget, count) in [(8 << 20, 6_000), (0, 1000)] {
        let disk = Disk::new(make_image("-t ext3 -b 1024 -N 16384", None, 32 << 10));
        let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
        let root = fs.root();
        let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
        let name = |n: u32| format!("{n}-{}", "x".repeat(n as usize % 40)).into_bytes();
        for n in 0..count {
            let ino = fs.create(dir, &name(n), 0o644).unwrap();
            assert_eq!(fs.lookup(dir, &name(n)), Ok(ino));
            assert_eq!(fs.create(dir, &name(n / 2), 0o644), Err(Error::Exists));
            assert_eq!(fs.lookup(dir, &name(n + 1)), Err(Error::NotFound));
        }
        for n in (0..count).filter(|n| n % 3 > 0) {
            assert_eq!(fs.rmdir(dir, &name(n)), Err(Error::NotDirectory));
            fs.unlink(dir, &name(n)).unwrap();
            assert_eq!(fs.unlink(dir, &name(n)), Err(Error::NotFound));
        }
        let size = fs.getattr(dir).unwrap().size;
        for n in (0..count).filter(|n| n % 3 == 2) {
            fs.create(dir, &name(n), 0o644).unwrap();
        }
        assert_eq!(fs.getattr(dir).unwrap().size, size, "gaps are used again");
        let mut names: Vec<_> = list(&mut fs, dir).unwrap();
        names.sort();
        let mut expected: Vec<_> = (0..count).filter(|n| n % 3 != 1).map(name).collect();
        expected.sort();
        assert!(names.iter().map(|(name, _)| name).eq(&expected));
        for name in expected {
            fs.unlink(dir, &name).unwrap();
        }
        fs.rmdir(root, b"dir").unwrap();
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

#[test]
fn links_count_and_symbolic_links_keep_their_target() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"one", 0o644).unwrap();
    fs.write(ino, 0, b"content").unwrap();
    assert_eq!(fs.append(ino, b" and more"), Ok((7, 9)));
    fs.truncate(ino, 7).unwrap();
    fs.link(ino, root, b"two").unwrap();
    assert_eq!(fs.link(ino, root, b"two"), Err(Error::Exists));
    assert_eq!(fs.link(root, root, b"loop"), Err(Error::IsDirectory));
    fs.unlink(root, b"one").unwrap();
    assert_eq!(fs.getattr(ino).unwrap().links, 1);
    assert_eq!(read_all(&mut fs, ino).unwrap(), b"content");
    for length in [1, 59, 60, 61, 1023] {
        let target = vec![b't'; length];
        let link = fs
            .symlink(root, format!("link{length}").as_bytes(), &target)
            .unwrap();
        assert_eq!(fs.readlink(link).unwrap(), target);
    }
    assert_eq!(
        fs.symlink(root, b"long", &[b't'; 1024]),
        Err(Error::NameTooLong)
    );
    assert!(matches!(
        fs.symlink(root, b"none", b""),
        Err(Error::Invalid(_))
    ));
    let pipe = fs.mknod(root, b"pipe", FileKind::Pipe, 0o600, 0).unwrap();
    let tty = fs
        .mknod(root, b"tty", FileKind::CharacterDevice, 0o600, 0x0501)
        .unwrap();
    assert_eq!(fs.getattr(pipe).unwrap().kind, FileKind::Pipe);
    assert_eq!(fs.getattr(tty).unwrap().device, 0x0501);
    fs.sync().unwrap();
    assert_clean(&disk.image());
    for name in [
        "link1", "link59", "link60", "link61", "link1023", "two", "pipe", "tty",
    ] {
        fs.unlink(root, name.as_bytes()).unwrap();
    }
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn attributes_change_and_stay() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    fs.chmod(ino, 0o4711).unwrap();
    fs.chown(ino, Some(100_000), None).unwrap();
    fs.chown(ino, None, Some(65_537)).unwrap();
    let modified = Time::from_nanoseconds(5_000_000_000_123_456_789);
    fs.set_times(ino, Some(Time::at(1)), Some(modified))
        .unwrap();
    fs.unmount().unwrap();
    let mut fs = mount(&disk);
    let attributes = fs.getattr(ino).unwrap();
    assert_eq!(
        (attributes.mode, attributes.uid, attributes.gid),
        // It no longer runs with the rights of its owner, who is another.
        (0o711, 100_000, 65_537)
    );
    assert_eq!(
        (attributes.atime, attributes.mtime, attributes.ctime),
        (Time::at(1), modified, Time::at(NOW))
    );
    let mut image = disk.image();
    assert_clean(&image);
    let told = debugfs(&mut image, false, "stat /f");
    assert!(told.contains("User: 100000   Group: 65537"), "{told}");
    // Of each time the seconds, and behind them the word with epoch and nanoseconds.
    let word = 123_456_789_u32 << 2 | 1;
    assert!(
        told.contains(&format!("mtime: 0x2a05f200:{word:08x}")),
        "{told}"
    );
    assert!(
        told.contains(&format!("crtime: 0x{NOW:08x}:00000000")),
        "{told}"
    );
}

#[test]
fn an_owner_takes_the_rights_of_the_one_before_away() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    // A directory keeps its bits, and a group's bit that means something else stays.
    let kept = [(fs.mkdir(root, b"d", 0o7777).unwrap(), 0o7777)];
    let lost = [
        (fs.create(root, b"a", 0o6755).unwrap(), 0o755),
        (fs.create(root, b"b", 0o6745).unwrap(), 0o2745),
        (fs.create(root, b"c", 0o1644).unwrap(), 0o1644),
    ];
    for (ino, mode) in kept.into_iter().chain(lost) {
        fs.chown(ino, Some(7), Some(8)).unwrap();
        let of = fs.getattr(ino).unwrap();
        assert_eq!((of.mode, of.uid, of.gid), (mode, 7, 8));
    }
    let gone = fs.create(root, b"gone", 0o644).unwrap();
    fs.unlink(root, b"gone").unwrap();
    assert_eq!(fs.chown(gone, Some(1), None), Err(Error::NotFound));
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn devices_have_the_numbers_that_the_host_reads() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let (block, character) = (FileKind::BlockDevice, FileKind::CharacterDevice);
    for (name, kind, device) in [
        ("old", character, 0xffff),
        ("minor", block, 0x0010_fd03),
        ("major", character, 0x000f_ff00),
        ("most", block, u32::MAX),
    ] {
        let name = name.as_bytes();
        let ino = fs.mknod(root, name, kind, 0o640, device).unwrap();
        let of = fs.getattr(ino).unwrap();
        assert_eq!((of.kind, of.mode, of.device), (kind, 0o640, device));
    }
    // What is no device has no number.
    let ino = fs.mknod(root, b"s", FileKind::Socket, 0o600, 5).unwrap();
    assert_eq!(fs.getattr(ino).unwrap().device, 0);
    let refused = fs.mknod(root, b"f", FileKind::Regular, 0o600, 0);
    assert!(matches!(refused, Err(Error::Invalid(_))));
    fs.unmount().unwrap();
    let mut image = disk.image();
    assert_clean(&image);
    for (name, major, minor) in [("old", 255, 255), ("minor", 253, 259), ("major", 4095, 0)] {
        let told = debugfs(&mut image, false, &format!("stat /{name}"));
        let right = format!("Device major/minor number: {major:02}:{minor:02}");
        assert!(told.contains(&right), "{told}");
    }
}

#[test]
fn a_small_inode_has_whole_seconds() {
    let image = make_image("-t ext2 -b 1024 -I 128", None, 8192);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
    let time = Time::from_nanoseconds(1_700_000_000_999_999_999);
    fs.set_times(ino, Some(time), Some(Time::at(5_000_000_000)))
        .unwrap();
    let attributes = fs.getattr(ino).unwrap();
    let last = Time::at(i32::MAX.into());
    assert_eq!(
        (attributes.atime, attributes.mtime),
        (Time::at(1_700_000_000), last)
    );
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn a_removed_file_stays_while_it_is_open() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let free = fs.statfs().unwrap();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    fs.open(ino).unwrap();
    fs.open(ino).unwrap();
    fs.write(ino, 0, b"still").unwrap();
    fs.unlink(root, b"f").unwrap();
    assert_eq!(fs.lookup(root, b"f"), Err(Error::NotFound));
    fs.write(ino, 5, b" here").unwrap();
    fs.sync().unwrap();
    assert_eq!(read_all(&mut fs, ino).unwrap(), b"still here");
    assert_eq!(fs.link(ino, root, b"again"), Err(Error::NotFound));
    fs.close(ino).unwrap();
    assert_eq!(fs.getattr(ino).unwrap().links, 0);
    fs.close(ino).unwrap();
    assert_eq!(fs.getattr(ino), Err(Error::NotFound));
    assert!(matches!(fs.close(ino), Err(Error::Invalid(_))));
    assert_eq!(fs.statfs().unwrap(), free);
    fs.sync().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn a_removed_directory_takes_no_new_entries() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"d", 0o755).unwrap();
    fs.open(dir).unwrap();
    fs.rmdir(root, b"d").unwrap();
    assert_eq!(fs.create(dir, b"f", 0o644), Err(Error::NotFound));
    assert!(list(&mut fs, dir).unwrap().is_empty());
    fs.close(dir).unwrap();
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn orphans_of_a_power_cut_are_freed_by_the_next_mount() {
    let disk = Disk::new(empty(1024, 65536));
    let mut fs = mount(&disk);
    let root = fs.root();
    let free = fs.statfs().unwrap();
    for name in [b"a", b"b", b"c"] {
        let ino = fs.create(root, name, 0o644).unwrap();
        write_all(&mut fs, ino, 0, &Random(4).bytes(12 << 20)).unwrap();
        fs.open(ino).unwrap();
        fs.unlink(root, name).unwrap();
    }
    fs.sync().unwrap();
    drop(fs);
    let mut fs = mount(&disk);
    assert!(!fs.was_clean());
    assert_eq!(fs.statfs().unwrap(), free);
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn sync_leaves_a_clean_image_and_the_next_change_marks_it() {
    let disk = Disk::new(empty(1024, 8192));
    let state = |disk: &Disk| disk.data.borrow()[1024 + 58];
    let mut fs = mount(&disk);
    let root = fs.root();
    fs.create(root, b"f", 0o644).unwrap();
    assert_eq!(state(&disk), 1);
    fs.sync().unwrap();
    assert_eq!(state(&disk), 1);
    assert_clean(&disk.image());
    let ino = fs.create(root, b"g", 0o644).unwrap();
    fs.open(ino).unwrap();
    fs.unlink(root, b"g").unwrap();
    fs.sync().unwrap();
    assert_eq!(state(&disk), 0);
    fs.close(ino).unwrap();
    // That is safe, but not marked.
    fs.fsync(ino).unwrap();
    assert_eq!(state(&disk), 0);
    fs.sync().unwrap();
    assert_eq!(state(&disk), 1);
    assert_clean(&disk.image());
}

#[test]
fn large_files_set_the_feature() {
    let disk = Disk::new(make_image("-t ext2 -b 4096 -O ^large_file", None, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    fs.write(ino, (1 << 31) - 1, b"x").unwrap();
    assert!(matches!(
        fs.write(ino, 1 << 42, b"x"),
        Err(Error::FileTooLarge)
    ));
    assert!(matches!(
        fs.write(ino, u64::MAX, b"xy"),
        Err(Error::FileTooLarge)
    ));
    assert!(matches!(
        fs.truncate(ino, 1 << 42),
        Err(Error::FileTooLarge)
    ));
    fs.unmount().unwrap();
    let mut image = disk.image();
    assert_clean(&image);
    assert!(debugfs(&mut image, false, "features").contains("large_file"));
}

#[test]
fn files_of_an_ext3_image_can_be_changed() {
    let disk = Disk::new(make_image("-t ext3 -b 1024", None, 32768));
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    write_all(&mut fs, ino, 0, &Random(4).bytes(2 << 20)).unwrap();
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn shared_attributes_are_freed_with_their_last_owner() {
    let mut image = empty(1024, 8192);
    let folder = Folder::new();
    std::fs::write(folder.path("f"), "content").unwrap();
    debugfs(
        &mut image,
        true,
        &format!("write {} f", folder.path("f").display()),
    );
    let long = "v".repeat(200);
    debugfs(&mut image, true, &format!("ea_set /f user.name {long}"));
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let ino = walk(&mut fs, "f").unwrap();
    fs.write(ino, 0, b"changed").unwrap();
    fs.sync().unwrap();
    assert_clean(&disk.image());
    assert!(debugfs(&mut disk.image(), false, "ea_get /f user.name").contains(&long));
    fs.unlink(root, b"f").unwrap();
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}
