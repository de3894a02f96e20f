//! Images that lie. Nothing here may panic, hang, or use memory without bound; what the operations
//! answer does not matter.

use std::slice::from_ref;

use ext2::{Error, FileKind, FileSystem, Time};

use crate::host::*;

/// An image with a bit of everything, small enough to hit its metadata often.
fn victim(block_size: u32) -> Vec<u8> {
    let disk = Disk::new(empty(block_size, (2 << 20) / block_size));
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let deep = fs.mkdir(dir, b"deep", 0o755).unwrap();
    let big = fs.create(dir, b"big", 0o644).unwrap();
    write_all(&mut fs, big, 0, &Random(1).bytes(400_000)).unwrap();
    write_all(&mut fs, big, 300 << 20, b"sparse").unwrap();
    fs.symlink(deep, b"slow", &[b'x'; 300]).unwrap();
    fs.symlink(deep, b"fast", b"target").unwrap();
    for n in 0..60 {
        fs.create(deep, format!("entry {n}").as_bytes(), 0o644)
            .unwrap();
    }
    fs.unmount().unwrap();
    disk.image()
}

/// Does everything that can be done, whatever the answers.
fn exercise(image: Vec<u8>) {
    let disk = Disk::new(image);
    for read_only in [true, false] {
        let Ok(mut fs) = FileSystem::mount(&disk, options(read_only, 0)) else {
            continue;
        };
        let root = fs.root();
        let mut budget = 300;
        explore(&mut fs, root, 0, &mut budget);
        let _ = fs.statfs();
        if let Ok(ino) = fs.create(root, b"new", 0o644) {
            let _ = fs.write(ino, 5000, &[7; 20_000]);
            let _ = fs.write(ino, 200 << 20, &[7; 2000]);
            let _ = fs.rename(root, b"new", root, b"newer");
        }
        let _ = fs.mkdir(root, b"newdir", 0o755);
        for path in ["dir/big", "dir/deep", "dir/deep/slow", "dir"] {
            let Ok(ino) = walk(&mut fs, path) else {
                continue;
            };
            let _ = fs.open(ino);
            let _ = fs.truncate(ino, 30_000);
            let _ = fs.truncate(ino, 400 << 20);
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            if let Ok(dir) = walk(&mut fs, dir) {
                let _ = fs.rename(dir, name.as_bytes(), root, b"there");
                let _ = fs.unlink(root, b"there");
                let _ = fs.rmdir(root, b"there");
            }
            let _ = fs.close(ino);
        }
        let _ = fs.unmount();
    }
}

/// Reads what can be reached, up to a budget, because directories may contain each other.
fn explore(fs: &mut Fs<'_>, dir: u32, depth: u32, budget: &mut u32) {
    let Ok(entries) = fs.readdir(dir, 0, 100) else {
        return;
    };
    for entry in entries {
        if *budget == 0 || depth > 6 {
            return;
        }
        *budget -= 1;
        let Ok(attributes) = fs.getattr(entry.ino) else {
            continue;
        };
        match attributes.kind {
            FileKind::Directory => explore(fs, entry.ino, depth + 1, budget),
            FileKind::Symlink => drop(fs.readlink(entry.ino)),
            _ => {
                for offset in [
                    0,
                    12 << 10,
                    300_000,
                    300 << 20,
                    attributes.size / 2,
                    attributes.size,
                ] {
                    let _ = fs.read(entry.ino, offset.saturating_sub(10), &mut [0; 5000]);
                }
            }
        }
    }
}

/// Where the metadata of a small image lies: everything up to the inode tables' used part, and a
/// little of what follows.
fn flip(image: &mut [u8], random: &mut Random, reach: u64) {
    for _ in 0..1 + random.below(6) {
        let at = random.below(reach) as usize;
        image[at] ^= 1 << random.below(8);
    }
}

/// How many images a test tries: `EXT2_ROUNDS` for a long search, else `usual`.
fn rounds(usual: usize) -> usize {
    let wanted = std::env::var("EXT2_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    wanted.unwrap_or(usual)
}

#[test]
fn flipped_bits_in_metadata() {
    for block_size in [1024, 2048, 4096] {
        let image = victim(block_size);
        let mut random = Random(block_size.into());
        for round in 0..rounds(100) {
            let mut copy = image.clone();
            let reach = [1024 + 256, 16 << 10, 64 << 10, image.len() as u64][round % 4];
            flip(&mut copy, &mut random, reach);
            exercise(copy);
        }
    }
}

#[test]
fn garbage_in_the_superblock_and_descriptors() {
    let image = victim(1024);
    let mut random = Random(99);
    for _ in 0..rounds(200) {
        let mut copy = image.clone();
        let at = 1024 + 4 * random.below(300) as usize;
        if !(1024 + 56..1024 + 60).contains(&at) {
            let value = [0, 1, u32::MAX, random.next() as u32, 1 << random.below(32)];
            let value = value[random.below(5) as usize];
            copy[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        exercise(copy);
    }
}

#[test]
fn garbage_in_every_field_of_an_inode() {
    let image = victim(1024);
    let disk = Disk::new(image.clone());
    let mut fs = mount(&disk);
    let mut random = Random(5);
    for path in ["dir", "dir/big", "dir/deep", "dir/deep/slow", ""] {
        let ino = walk(&mut fs, path).unwrap();
        let at = inode_offset(&image, ino);
        for field in (0..32).filter(|field| !(15..22).contains(field)) {
            for value in [
                0,
                1,
                5,
                u32::MAX,
                random.below(2048) as u32,
                random.next() as u32,
            ] {
                let mut copy = image.clone();
                copy[at + 4 * field..at + 4 * field + 4].copy_from_slice(&value.to_le_bytes());
                exercise(copy);
            }
        }
    }
}

/// Where the record of inode `ino` lies in an image with one group and blocks of 1 KiB.
fn inode_offset(image: &[u8], ino: u32) -> usize {
    let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
    let size = usize::from(u16::from_le_bytes(
        image[1024 + 88..1024 + 90].try_into().unwrap(),
    ));
    word(2048 + 8) * 1024 + (ino as usize - 1) * size
}

#[test]
fn pointers_into_the_tables_are_never_written_through() {
    let image = victim(1024);
    let disk = Disk::new(image.clone());
    let ino = walk(&mut mount(&disk), "dir/big").unwrap();
    let table = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let (blocks, inodes, records) = (table(2048), table(2052), table(2056));
    let cases = [
        (0, 2, 0),
        (0, blocks, 0),
        (0, inodes, 0),
        (0, records, 0),
        (0, records + 1, 0),
    ];
    let indirect = [
        (12, 2, 12 << 10),
        (13, 2, 300 << 10),
        (12, blocks, 12 << 10),
    ];
    for (pointer, block, offset) in cases.into_iter().chain(indirect) {
        let mut copy = image.clone();
        let at = inode_offset(&image, ino) + 40 + 4 * pointer;
        copy[at..at + 4].copy_from_slice(&block.to_le_bytes());
        let disk = Disk::new(copy);
        let mut fs = mount(&disk);
        let dir = walk(&mut fs, "dir").unwrap();
        let error = fs.write(ino, offset, &[7; 100]);
        assert!(
            matches!(error, Err(Error::Corrupt(_))),
            "{pointer} to {block}: {error:?}"
        );
        assert!(fs.is_read_only());
        assert_eq!(fs.unlink(dir, b"big"), Err(Error::ReadOnly));
        assert!(fs.lookup(dir, b"big").is_ok());
        fs.unmount().unwrap();
    }
}

#[test]
fn content_is_never_to_go_into_the_tables() {
    let image = victim(1024);
    let ino = walk(&mut mount(&Disk::new(image.clone())), "dir/big").unwrap();
    let table = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    for block in [1, 2, table(2048), table(2052), table(2056), table(2056) + 1] {
        for (pointer, first) in [(0, 0), (12, 12 << 10)] {
            let mut copy = image.clone();
            let at = inode_offset(&image, ino) + 40 + 4 * pointer;
            copy[at..at + 4].copy_from_slice(&block.to_le_bytes());
            let disk = Disk::new(copy);
            let mut fs = mount(&disk);
            let mapped = fs.map_content(ino, from_ref(&(first..first + 4096)), Time::at(1));
            assert!(
                matches!(mapped, Err(Error::Corrupt(_))),
                "{pointer} to {block}: {mapped:?}"
            );
        }
    }
}

#[test]
fn one_block_in_two_files_is_freed_once() {
    let image = victim(1024);
    let disk = Disk::new(image.clone());
    let ino = walk(&mut mount(&disk), "dir/big").unwrap();
    let at = inode_offset(&image, ino) + 40;
    let mut copy = image.clone();
    copy.copy_within(at..at + 4, at + 4);
    let disk = Disk::new(copy);
    let mut fs = mount(&disk);
    let dir = walk(&mut fs, "dir").unwrap();
    let free = fs.statfs().unwrap();
    assert!(matches!(fs.unlink(dir, b"big"), Err(Error::Corrupt(_))));
    assert_eq!(fs.statfs().unwrap(), free);
    assert!(fs.lookup(dir, b"big").is_ok());
}

#[test]
fn directories_that_contain_each_other_do_not_trap_a_rename() {
    let image = victim(1024);
    let disk = Disk::new(image.clone());
    let mut fs = mount(&disk);
    let (dir, deep) = (
        walk(&mut fs, "dir").unwrap(),
        walk(&mut fs, "dir/deep").unwrap(),
    );
    drop(fs);
    // The `..` of /dir, 12 bytes into its block, names its own child.
    let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let block = word(inode_offset(&image, dir) + 40) as usize * 1024;
    let mut copy = image.clone();
    copy[block + 12..block + 16].copy_from_slice(&deep.to_le_bytes());
    let disk = Disk::new(copy);
    let mut fs = mount(&disk);
    let root = fs.root();
    fs.mkdir(root, b"other", 0o755).unwrap();
    assert!(matches!(
        fs.rename(root, b"other", deep, b"x"),
        Err(Error::Corrupt(_))
    ));
}

#[test]
fn a_list_of_orphans_that_is_a_loop_ends() {
    let image = victim(1024);
    for (orphan, time) in [(12u32, 12u32), (12, 13), (5, 0), (u32::MAX, 0), (200, 200)] {
        let mut copy = image.clone();
        copy[1024 + 232..1024 + 236].copy_from_slice(&orphan.to_le_bytes());
        if orphan < 1000 {
            let at = inode_offset(&image, orphan) + 20;
            copy[at..at + 4].copy_from_slice(&time.to_le_bytes());
        }
        exercise(copy);
    }
}

#[test]
fn truncated_images_are_refused() {
    let image = victim(4096);
    for length in [2048, 4096, 8192, 65536, image.len() - 512] {
        let error = mount_error(image[..length].to_vec(), false);
        assert!(
            matches!(error, Error::Corrupt(_) | Error::NotExt2(_)),
            "{error}"
        );
    }
}
