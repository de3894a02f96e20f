//! The journal's format against the host's tools, and journals that lie.

use std::time::Instant;

use ext2::{Error, FileSystem};

use crate::host::*;

const JOURNAL: &str = "-t ext3 -b 1024 -J size=1";

fn journaled() -> Vec<u8> {
    make_image(JOURNAL, None, 8192)
}

/// The numbers that stand alone in a line.
fn numbers(text: &str) -> Vec<usize> {
    let lines = text.lines();
    lines.filter_map(|line| line.trim().parse().ok()).collect()
}

/// Where positions of the journal lie in an image with blocks of 1 KiB.
fn log_offsets(image: &[u8], positions: std::ops::Range<u32>) -> Vec<usize> {
    let commands: String = positions
        .clone()
        .map(|at| format!("bmap <8> {at}\n"))
        .collect();
    let blocks = numbers(&debugfs_script(&mut image.to_vec(), &commands));
    assert_eq!(blocks.len(), positions.len());
    blocks.into_iter().map(|block| block * 1024).collect()
}

/// Where position `at` of the journal lies.
fn log_offset(image: &[u8], at: u32) -> usize {
    log_offsets(image, at..at + 1)[0]
}

/// Files with known content, committed to the journal and nowhere else.
fn committed(files: u32) -> Vec<u8> {
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    let root = fs.root();
    for n in 0..files {
        let ino = fs
            .create(root, format!("file{n}").as_bytes(), 0o644)
            .unwrap();
        write_all(&mut fs, ino, 0, &Random(n.into()).bytes(5000)).unwrap();
        fs.fsync(ino).unwrap();
    }
    drop(fs);
    disk.image()
}

#[test]
fn the_host_replays_what_was_committed() {
    let image = committed(5);
    assert!(debugfs(&mut image.clone(), false, "features").contains("needs_recovery"));
    assert!(!debugfs(&mut image.clone(), false, "ls").contains("file4"));
    let replayed = host_replay(&image);
    assert_clean(&replayed);
    let disk = Disk::new(replayed);
    let mut fs = mount(&disk);
    assert_eq!(fs.replayed(), None);
    for n in 0..5u32 {
        let ino = walk(&mut fs, &format!("file{n}")).unwrap();
        assert!(read_all(&mut fs, ino).unwrap() == Random(n.into()).bytes(5000));
    }
}

#[test]
fn a_mount_replays_and_comes_to_rest_at_unmount() {
    let disk = Disk::new(committed(5));
    let mut fs = mount(&disk);
    let replayed = fs.replayed().unwrap();
    assert_eq!(replayed.transactions, 5);
    assert!(replayed.blocks >= 6, "{replayed:?}");
    assert!(fs.was_clean() && fs.has_journal());
    assert_clean(&disk.image());
    let root = fs.root();
    fs.unlink(root, b"file1").unwrap();
    fs.commit().unwrap();
    assert!(debugfs(&mut disk.image(), false, "features").contains("needs_recovery"));
    fs.unmount().unwrap();
    assert!(!debugfs(&mut disk.image(), false, "features").contains("needs_recovery"));
    assert_clean(&disk.image());
    assert_eq!(mount(&disk).replayed(), None);
}

#[test]
fn a_mount_alone_writes_nothing_and_sync_twice_writes_once() {
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    fs.sync().unwrap();
    assert_eq!(disk.writes.get(), 0);
    let root = fs.root();
    fs.create(root, b"f", 0o644).unwrap();
    fs.sync().unwrap();
    let writes = disk.writes.get();
    fs.sync().unwrap();
    fs.commit().unwrap();
    assert_eq!(disk.writes.get(), writes);
    assert_clean(&disk.image());
}

#[test]
fn many_operations_share_a_commit() {
    let disk = Disk::new(make_image("-t ext3 -b 4096", None, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    for n in 0..200 {
        fs.create(root, format!("f{n}").as_bytes(), 0o644).unwrap();
    }
    assert_eq!(fs.statistics().commits, 0);
    fs.commit().unwrap();
    assert_eq!(fs.statistics().commits, 1);
    let before = disk.flushes.get();
    fs.create(root, b"one more", 0o644).unwrap();
    fs.commit().unwrap();
    assert_eq!(disk.flushes.get(), before + 2);
}

#[test]
fn the_log_wraps_around_many_times() {
    let disk = Disk::new(journaled());
    let mut fs = FileSystem::mount(&disk, options(false, 0)).unwrap();
    let root = fs.root();
    for n in 0..300u32 {
        let name = format!("f{}", n % 20);
        if n >= 20 {
            fs.unlink(root, name.as_bytes()).unwrap();
        }
        let ino = fs.create(root, name.as_bytes(), 0o644).unwrap();
        write_all(&mut fs, ino, 0, &Random(n.into()).bytes(20_000)).unwrap();
        fs.fsync(ino).unwrap();
        if n % 37 == 0 {
            let left = disk.image();
            assert_clean(&host_replay(&left));
            let disk = Disk::new(left);
            let mut fs = mount(&disk);
            let ino = walk(&mut fs, &name).unwrap();
            assert!(read_all(&mut fs, ino).unwrap() == Random(n.into()).bytes(20_000));
        }
    }
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

/// A freed directory block becomes the content of a file while the log still has a copy of it.
#[test]
fn a_revoked_block_is_not_replayed() {
    let disk = Disk::new(make_image(JOURNAL, None, 2400));
    let mut fs = mount(&disk);
    let root = fs.root();
    for n in 0..40 {
        let dir = fs.mkdir(root, format!("d{n}").as_bytes(), 0o755).unwrap();
        fs.create(dir, b"entry", 0o644).unwrap();
    }
    fs.commit().unwrap();
    for n in 0..40 {
        let name = format!("d{n}");
        let dir = fs.lookup(root, name.as_bytes()).unwrap();
        fs.unlink(dir, b"entry").unwrap();
        fs.rmdir(root, name.as_bytes()).unwrap();
    }
    fs.commit().unwrap();
    let free = fs.statfs().unwrap().free_blocks as usize;
    let ino = fs.create(root, b"f", 0o644).unwrap();
    let data = Random(3).bytes(free * 1024);
    let written = fs.write(ino, 0, &data).unwrap();
    let data = &data[..written];
    fs.fsync(ino).unwrap();
    drop(fs);
    let mut image = disk.image();
    assert!(debugfs(&mut image, false, "logdump -a").contains("evoke"));
    for image in [host_replay(&image), image] {
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let ino = walk(&mut fs, "f").unwrap();
        assert!(read_all(&mut fs, ino).unwrap() == data);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// A symbolic link's block that starts like a block of the journal.
#[test]
fn the_magic_number_in_metadata_is_escaped() {
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    let root = fs.root();
    let mut target = vec![0xC0, 0x3B, 0x39, 0x98, 1, 1, 1, 1];
    target.extend([b'x'; 300]);
    fs.symlink(root, b"link", &target).unwrap();
    fs.commit().unwrap();
    drop(fs);
    let image = disk.image();
    for image in [host_replay(&image), image] {
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let ino = walk(&mut fs, "link").unwrap();
        assert_eq!(fs.readlink(ino).unwrap(), target);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// Lets the host write a journal: a copy of `content` for a block of a file, revokes, and more.
#[test]
fn journals_of_the_host_are_replayed() {
    let folder = Folder::new();
    let mut image = journaled();
    std::fs::write(folder.path("f"), vec![b'a'; 4096]).unwrap();
    debugfs(
        &mut image,
        true,
        &format!("write {} f", folder.path("f").display()),
    );
    let text = debugfs_script(&mut image, "bmap f 0\nbmap f 1\nbmap f 2\nbmap f 3\n");
    let blocks = numbers(&text);
    let new = folder.path("new");
    let mut magic = vec![0xC0, 0x3B, 0x39, 0x98];
    magic.resize(1024, b'm');
    std::fs::write(
        &new,
        [vec![b'b'; 1024], magic.clone(), vec![b'c'; 1024]].concat(),
    )
    .unwrap();
    let (a, b, c) = (blocks[0], blocks[1], blocks[2]);
    let text = debugfs_script(
        &mut image,
        &format!(
            "jo\njw -b {a},{b},{c} {}\njw -r {c}\njw -b {} /dev/null -c\njc\n",
            new.display(),
            blocks[3]
        ),
    );
    assert!(!text.contains("nknown request"), "{text}");
    let expected = [vec![b'b'; 1024], magic, vec![b'a'; 1024], vec![b'a'; 1024]].concat();
    let host = host_replay(&image);
    for image in [host, image.clone()] {
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let ino = walk(&mut fs, "f").unwrap();
        assert!(read_all(&mut fs, ino).unwrap() == expected);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
    let disk = Disk::new(image);
    assert!(mount(&disk).replayed().unwrap().transactions >= 2);
}

#[test]
fn journals_that_cannot_be_written_are_refused_by_name() {
    let mut image = journaled();
    let before = image.clone();
    let text = debugfs_script(&mut image, "jo -c -v 3\njw -b 5000 /dev/zero\njc\n");
    assert!(image != before, "{text}");
    let error = mount_error(image, false);
    assert!(error.to_string().contains("journal_checksum"), "{error}");
    let at = log_offset(&before, 0);
    let mut image = before.clone();
    image[at + 43] = 2;
    let error = mount_error(image.clone(), false);
    assert!(matches!(error, Error::OnlyReadable(_)), "{error}");
    assert!(error.to_string().contains("journal_64bit"), "{error}");
    let disk = Disk::new(image);
    assert!(FileSystem::mount(&disk, options(true, 1 << 20)).is_ok());
    let mut image = before.clone();
    image[at + 7] = 3;
    assert!(matches!(mount_error(image, false), Error::Journal(_)));
    let mut image = before;
    image[1024 + 224] = 0;
    let error = mount_error(image, false).to_string();
    assert!(error.contains("another device"), "{error}");
}

#[test]
fn a_journal_file_that_lies_is_refused() {
    let image = journaled();
    let word = |n: usize| u32::from_le_bytes(image[n..n + 4].try_into().unwrap());
    let record = usize::from(image[1024 + 88]) | usize::from(image[1024 + 89]) << 8;
    let at = word(2048 + 8) as usize * 1024 + 7 * record;
    let pointer = at + 40;
    for (field, value) in [
        (at, 0),
        (at + 4, 1024),
        (at + 4, u32::MAX),
        (pointer, 0),
        (pointer, 1),
        (pointer, u32::MAX),
        (pointer + 4, word(pointer)),
        (pointer + 8, 2),
        (pointer + 48, 0),
        (pointer + 52, word(pointer + 48)),
    ] {
        let mut copy = image.clone();
        copy[field..field + 4].copy_from_slice(&value.to_le_bytes());
        let disk = Disk::new(copy);
        let mounted = FileSystem::mount(&disk, options(false, 0));
        assert!(mounted.is_err(), "{field} {value}");
    }
}

/// Journals with garbage in them: whatever the answer, there is one.
#[test]
fn garbage_in_a_journal_does_no_harm() {
    let image = committed(12);
    let mut random = Random(4);
    let positions = log_offsets(&image, 0..80);
    for _ in 0..300 {
        let mut copy = image.clone();
        for _ in 0..1 + random.below(3) {
            let block = positions[random.below(positions.len() as u64) as usize];
            let reach = [12, 256][random.below(2) as usize];
            let at = block + 4 * random.below(reach) as usize;
            let value = [
                0,
                1,
                2,
                5,
                u32::MAX,
                random.next() as u32,
                1 << random.below(32),
            ];
            let value = value[random.below(7) as usize];
            copy[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        exercise(&copy);
    }
}

/// Mounts and uses an image, whatever the answers.
fn exercise(image: &[u8]) {
    for read_only in [true, false] {
        let disk = Disk::new(image.to_vec());
        let Ok(mut fs) = FileSystem::mount(&disk, options(read_only, 0)) else {
            continue;
        };
        let root = fs.root();
        for (_, ino) in list(&mut fs, root).unwrap_or_default() {
            let _ = fs.read(ino, 0, &mut [0; 6000]);
        }
        let _ = fs.create(root, b"new", 0o644);
        let _ = fs.unlink(root, b"file3");
        let _ = (fs.commit(), fs.unmount());
    }
}

/// Flipped bits anywhere in the metadata of a file system that must be recovered first.
#[test]
fn garbage_around_a_journal_does_no_harm() {
    let image = committed(12);
    let mut random = Random(6);
    for round in 0..200 {
        let mut copy = image.clone();
        let reach = [2048, 16 << 10, 64 << 10, 300 << 10][round % 4];
        for _ in 0..1 + random.below(5) {
            copy[1024 + random.below(reach) as usize] ^= 1 << random.below(8);
        }
        exercise(&copy);
    }
}

/// A journal full of revoke blocks, descriptors without end, and sequences that wrap.
#[test]
fn a_journal_made_to_be_slow_is_not() {
    let image = committed(1);
    let positions = log_offsets(&image, 0..1024);
    for kind in [1u32, 5, 2] {
        let mut copy = image.clone();
        for at in &positions[1..] {
            let block = &mut copy[*at..at + 1024];
            block.fill(2);
            let sequence = 1 + if kind == 2 {
                (at - positions[1]) / 1024
            } else {
                0
            };
            for (n, value) in [0xC03B_3998, kind, sequence as u32, 1024]
                .iter()
                .enumerate()
            {
                block[4 * n..4 * n + 4].copy_from_slice(&value.to_be_bytes());
            }
        }
        let disk = Disk::new(copy);
        let _ = FileSystem::mount(&disk, options(false, 0));
        assert!(disk.reads.get() < 10_000, "{}", disk.reads.get());
    }
}

#[test]
fn the_sequence_wraps_to_zero() {
    let mut image = journaled();
    let at = log_offset(&image, 0) + 24;
    image[at..at + 4].copy_from_slice(&(u32::MAX - 1).to_be_bytes());
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    for n in 0..5 {
        fs.create(root, format!("f{n}").as_bytes(), 0o644).unwrap();
        fs.commit().unwrap();
    }
    drop(fs);
    let mut fs = mount(&disk);
    assert_eq!(fs.replayed().unwrap().transactions, 5);
    assert!(walk(&mut fs, "f4").is_ok());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

/// Any one write or flush of a commit fails; the next commit must not be hurt by what it left.
#[test]
fn a_commit_that_failed_is_made_good() {
    for n in 0..12 {
        let disk = Disk::new(journaled());
        let mut fs = mount(&disk);
        let root = fs.root();
        fs.create(root, b"first", 0o644).unwrap();
        disk.once.set(true);
        disk.fail_writes_from.set(Some(n));
        let failed = fs.commit().is_err();
        for m in 0..30 {
            fs.create(root, format!("second {m}").as_bytes(), 0o644)
                .unwrap();
        }
        fs.commit().or_else(|_| fs.commit()).unwrap();
        drop(fs);
        assert!(failed || n > 1);
        let image = disk.image();
        for image in [host_replay(&image), image] {
            let disk = Disk::new(image);
            let mut fs = mount(&disk);
            assert!(walk(&mut fs, "first").is_ok() && walk(&mut fs, "second 29").is_ok());
            fs.unmount().unwrap();
            assert_clean(&disk.image());
        }
    }
}

#[test]
fn a_full_journal_of_64_megabytes_is_replayed() {
    let disk = Disk::new(make_image("-t ext3 -b 4096 -J size=64", None, 40 << 10));
    let mut fs = FileSystem::mount(&disk, options(false, 128 << 20)).unwrap();
    let root = fs.root();
    // Directory blocks are metadata: each goes into the log.
    for n in 1..=250 {
        let dir = fs.mkdir(root, format!("d{n}").as_bytes(), 0o755).unwrap();
        for m in 0..40 {
            fs.symlink(dir, format!("s{m}").as_bytes(), &[b'x'; 400])
                .unwrap();
        }
        if n % 25 == 0 {
            fs.commit().unwrap();
        }
    }
    drop(fs);
    let start = Instant::now();
    let mut fs = FileSystem::mount(&disk, options(false, 8 << 20)).unwrap();
    let replayed = fs.replayed().unwrap();
    println!("{replayed:?} in {:?}", start.elapsed());
    assert!(replayed.blocks > 8000, "{replayed:?}");
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}
