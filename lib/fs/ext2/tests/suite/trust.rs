//! Images whose block groups contradict themselves: what is there stays, nothing is written over
//! it, and the host finds no more wrong than before.

use ext2::{Distrusted, Doubt, Error, FileSystem};

use crate::host::*;

const KEEP: usize = 40_000;

/// An image made with `mke2fs ARGUMENTS` of 1 KiB blocks, with `/keep` and `/d/small` in it.
fn victim(arguments: &str, blocks: u32) -> Vec<u8> {
    let folder = Folder::new();
    let root = folder.path("root");
    std::fs::create_dir_all(root.join("d")).unwrap();
    std::fs::write(root.join("keep"), Random(1).bytes(KEEP)).unwrap();
    std::fs::write(root.join("d/small"), Random(2).bytes(3000)).unwrap();
    make_image(&format!("{arguments} -b 1024"), Some(&root), blocks)
}

/// The numbers of a file's blocks.
fn blocks_of(image: &[u8], file: &str) -> Vec<u32> {
    let text = debugfs(&mut image.to_vec(), false, &format!("blocks {file}"));
    let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    numbers.collect()
}

/// Clears the bits of some blocks, and has the descriptors count them if `counted`.
fn free_blocks(image: &mut Vec<u8>, blocks: &[u32], counted: bool) {
    let script: String = blocks.iter().map(|n| format!("freeb {n}\n")).collect();
    debugfs_script(image, &script);
    if counted {
        add_to_descriptor(image, 0, 12, blocks.len() as i32);
    }
}

/// Adds to a number in a group's descriptor, in an image with blocks of 1 KiB.
fn add_to_descriptor(image: &mut [u8], group: usize, field: usize, by: i32) {
    let at = 2048 + 32 * group + field;
    let old = u16::from_le_bytes([image[at], image[at + 1]]);
    let new = (i32::from(old) + by) as u16;
    image[at..at + 2].copy_from_slice(&new.to_le_bytes());
}

fn ino_of(image: &[u8], path: &str) -> u32 {
    walk(&mut mount(&Disk::new(image.to_vec())), path).unwrap()
}

/// Makes files and directories until there is no room; what the last refusal was.
fn fill(fs: &mut Fs<'_>) -> Error {
    let root = fs.root();
    for n in 0.. {
        let dir = match fs.mkdir(root, format!("m{n}").as_bytes(), 0o755) {
            Err(error) => return error,
            Ok(dir) => dir,
        };
        for k in 0..4 {
            let name = format!("f{k}");
            let made = fs.create(dir, name.as_bytes(), 0o644);
            let written = made.and_then(|ino| write_all(fs, ino, 0, &[0xAA; 30_000]));
            match written {
                Ok(()) => {}
                Err(error) => return error,
            }
        }
    }
    unreachable!()
}

/// What is there is as it was.
fn assert_kept(fs: &mut Fs<'_>) {
    for (path, seed, length) in [("keep", 1, KEEP), ("d/small", 2, 3000)] {
        let ino = walk(fs, path).unwrap();
        assert!(
            read_all(fs, ino).unwrap() == Random(seed).bytes(length),
            "{path}"
        );
    }
}

/// The image after `e2fsck -fy`; it must not have found what only a file system can do.
fn mended(image: Vec<u8>) -> Vec<u8> {
    let (_, text) = check(&image);
    for worse in [
        "Multiply-claimed",
        "Unattached",
        "deleted/unused",
        "claimed",
    ] {
        assert!(!text.contains(worse), "{text}");
    }
    let image = repaired(image);
    assert_clean(&image);
    image
}

/// Mounts a damaged image and writes as much as there is room for. What of it was distrusted, and
/// the last refusal.
fn suffer(image: Vec<u8>) -> (Vec<Distrusted>, Error) {
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    assert_kept(&mut fs);
    let refusal = fill(&mut fs);
    fs.sync().unwrap();
    let found = fs.take_distrusted();
    assert_eq!(fs.take_distrusted(), []);
    // Again: nothing new is said.
    let again = fs.create(fs.root(), b"more", 0o644);
    if let Ok(ino) = again {
        let _ = write_all(&mut fs, ino, 0, &[1; 5000]);
    }
    assert_eq!(fs.take_distrusted(), []);
    assert_kept(&mut fs);
    assert!(!fs.is_read_only());
    fs.unmount().unwrap();
    drop(fs);
    // The next mount finds the same, and the host mends it.
    let image = disk.image();
    let disk = Disk::new(image.clone());
    let mut fs = mount(&disk);
    assert_kept(&mut fs);
    assert!(!fs.was_clean(), "the host is told to look at it");
    let disk = Disk::new(mended(image));
    let mut fs = mount(&disk);
    assert_kept(&mut fs);
    let root = fs.root();
    let _ = fs.unlink(root, b"more");
    let dir = walk(&mut fs, "m0");
    assert!(dir.is_ok() || found.len() == 1);
    (found, refusal)
}

fn one(group: u32, doubt: Doubt) -> Vec<Distrusted> {
    vec![Distrusted { group, doubt }]
}

const KINDS: [&str; 2] = ["-t ext2", "-t ext3 -J size=1"];

#[test]
fn blocks_in_use_that_are_marked_as_free_are_not_written_over() {
    for kind in KINDS {
        let mut image = victim(kind, 4096);
        let blocks = blocks_of(&image, "/keep");
        assert!(blocks.len() > 39);
        free_blocks(&mut image, &blocks, false);
        let (found, refusal) = suffer(image);
        assert!(
            matches!(found[..], [Distrusted { group: 0, doubt: Doubt::FreeBlocks(said, counted) }]
                if counted == said + blocks.len() as u32),
            "{found:?}"
        );
        assert!(
            found[0].to_string().contains("group 0 is damaged"),
            "{}",
            found[0]
        );
        assert_eq!(refusal, Error::NoInodes);
    }
}

#[test]
fn an_inode_in_use_that_is_marked_as_free_is_not_taken() {
    for kind in KINDS {
        let base = victim(kind, 4096);
        let ino = ino_of(&base, "d/small");
        let mut image = base.clone();
        debugfs_script(&mut image, "freei /d/small\n");
        let (found, refusal) = suffer(image.clone());
        assert!(matches!(found[0].doubt, Doubt::FreeInodes(..)), "{found:?}");
        assert_eq!(refusal, Error::NoInodes);
        // The descriptor agrees: then the inode itself is what says so.
        add_to_descriptor(&mut image, 0, 14, 1);
        let (found, refusal) = suffer(image);
        assert_eq!(found, one(0, Doubt::InodeInUse(ino)));
        assert_eq!(refusal, Error::NoInodes);
    }
}

#[test]
fn what_the_file_system_itself_needs_is_never_free() {
    let base = victim("-t ext3 -J size=1", 4096);
    let word = |at: usize| u32::from_le_bytes(base[at..at + 4].try_into().unwrap());
    let journal = blocks_of(&base, "<8>");
    assert!(journal.len() > 1000);
    let tables = [
        1,
        2,
        3,
        10,
        word(2048),
        word(2052),
        word(2056),
        word(2056) + 5,
    ];
    for block in tables {
        let mut image = base.clone();
        free_blocks(&mut image, &[block], true);
        assert_eq!(suffer(image).0, one(0, Doubt::Tables), "block {block}");
    }
    for block in [journal[0], journal[500], journal[1000]] {
        let mut image = base.clone();
        free_blocks(&mut image, &[block], true);
        assert_eq!(suffer(image).0, one(0, Doubt::Journal), "block {block}");
    }
    let mut image = base.clone();
    debugfs_script(&mut image, "freei <9>\n");
    add_to_descriptor(&mut image, 0, 14, 1);
    assert_eq!(suffer(image).0, one(0, Doubt::ReservedInodes));
}

#[test]
fn counters_that_lie_keep_their_group_alone() {
    let base = victim("-t ext2", 3 * 8192);
    let cases = [
        (12, -7, 0),
        (12, 9, 0),
        (14, -1, 0),
        (14, 1, 0),
        (16, 1000, 0),
        (12, -7, 1),
        (12, 9000, 2),
        (16, -5, 1),
    ];
    for (field, by, group) in cases {
        let mut image = base.clone();
        add_to_descriptor(&mut image, group, field, by);
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let refusal = fill(&mut fs);
        assert!(
            matches!(refusal, Error::NoSpace | Error::NoInodes),
            "{refusal}"
        );
        let found = fs.take_distrusted();
        assert_eq!(found.len(), 1, "{field} of {group}: {found:?}");
        assert_eq!(found[0].group, group as u32);
        assert_kept(&mut fs);
        fs.unmount().unwrap();
        drop(fs);
        // All other groups were filled.
        let mut image = mended(disk.image());
        let said = debugfs(&mut image, false, "stats");
        let left: Vec<u32> = said
            .lines()
            .filter_map(|line| line.trim_start().split_once(" free blocks, "))
            .filter_map(|(left, _)| left.parse().ok())
            .collect();
        assert_eq!(left.len(), 3, "{said}");
        for (other, left) in left.iter().enumerate().filter(|(other, _)| *other != group) {
            assert!(*left < 100, "{left} blocks left of group {other}");
        }
        assert!(left[group] > 1000, "{left:?}");
    }
}

#[test]
fn the_counters_of_the_superblock_are_sums() {
    let base = victim("-t ext2", 3 * 8192);
    let sure = mount(&Disk::new(base.clone())).statfs().unwrap();
    for (field, value) in [(12, 0u32), (12, 5000), (16, 0), (16, 7)] {
        let mut image = base.clone();
        image[1024 + field..1024 + field + 4].copy_from_slice(&value.to_le_bytes());
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        assert_eq!(fs.statfs().unwrap(), sure);
        let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
        write_all(&mut fs, ino, 0, &[7; 50_000]).unwrap();
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// A new file must not get a name that somebody else has given.
#[test]
fn a_name_that_leads_to_a_free_inode_keeps_it_from_being_taken() {
    let base = victim("-t ext2", 4096);
    let ino = ino_of(&base, "d/small");
    let mut image = base;
    // The blocks are freed as well, so that only the name is wrong.
    debugfs_script(
        &mut image,
        "kill_file /d/small\nsif /d/small links_count 0\n",
    );
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let dir = walk(&mut fs, "d").unwrap();
    assert_eq!(fs.lookup(dir, b"small"), Ok(ino));
    assert_eq!(fs.getattr(ino).err(), Some(Error::NotFound));
    assert_eq!(fs.take_distrusted(), one(0, Doubt::Named(ino)));
    assert_eq!(fs.create(dir, b"new", 0o644), Err(Error::NoInodes));
    // It can be removed, and the next mount trusts the group again.
    fs.unlink(dir, b"small").unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let image = repaired(disk.image());
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    assert!(fs.create(dir, b"new", 0o644).is_ok());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

/// What belongs to a distrusted group is left over where it is removed: nobody knows what of it is
/// another's.
#[test]
fn what_is_removed_from_a_distrusted_group_is_left_for_the_host() {
    let mut image = victim("-t ext2", 4096);
    let blocks = blocks_of(&image, "/keep");
    free_blocks(&mut image, &blocks[3..5], false);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let before = fs.statfs().unwrap();
    let small = walk(&mut fs, "d/small").unwrap();
    fs.truncate(small, 1000).unwrap();
    fs.unlink(root, b"keep").unwrap();
    assert_eq!(fs.lookup(root, b"keep"), Err(Error::NotFound));
    assert_eq!(fs.statfs().unwrap(), before);
    assert_eq!(fs.take_distrusted().len(), 1);
    assert!(!fs.is_read_only());
    fs.unmount().unwrap();
    drop(fs);
    let disk = Disk::new(mended(disk.image()));
    let mut fs = mount(&disk);
    assert!(fs.statfs().unwrap().free_blocks >= before.free_blocks + 40);
    assert_eq!(fs.getattr(small).unwrap().size, 1000);
}

/// A run of blocks that begins in a file's own and goes on into the tables of the next group, or
/// into the journal.
#[test]
fn no_run_of_a_file_reaches_into_what_is_not_its_own() {
    let disk = Disk::new(victim("-t ext3 -J size=1", 2 * 8192));
    let image = disk.image();
    let ino = ino_of(&image, "keep");
    let journal = blocks_of(&image, "<8>");
    for first in [8192, journal[0] - 1, journal[5]] {
        let mut copy = image.clone();
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
        let size = u16::from_le_bytes(image[1112..1114].try_into().unwrap());
        let at = word(2056) as usize * 1024 + (ino as usize - 1) * usize::from(size) + 40;
        for n in 0..4 {
            copy[at + 4 * n..at + 4 * n + 4].copy_from_slice(&(first + n as u32).to_le_bytes());
        }
        let disk = Disk::new(copy.clone());
        let mut fs = FileSystem::mount(&disk, options(false, 1 << 20)).unwrap();
        let error = fs.write(ino, 0, &[7; 4096]);
        assert!(
            matches!(error, Err(Error::Corrupt(_))),
            "{first}: {error:?}"
        );
        let root = fs.root();
        assert_eq!(fs.unlink(root, b"keep"), Err(Error::ReadOnly));
        drop(fs);
        let disk = Disk::new(copy);
        let mut fs = mount(&disk);
        let error = fs.unlink(root, b"keep");
        assert!(
            matches!(error, Err(Error::Corrupt(_))),
            "{first}: {error:?}"
        );
    }
}
