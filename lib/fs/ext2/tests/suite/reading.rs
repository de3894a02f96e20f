//! Reading what the host wrote; refusing what cannot be read.

use std::os::unix::fs::{FileExt, symlink};

use ext2::{Error, FileKind, FileSystem};

use crate::host::*;

/// A tree with everything that a file system must read.
fn sample() -> Folder {
    let folder = Folder::new();
    let mut random = Random(7);
    let deep = folder.path("a/b/c/d/e/f/g/h/i/j/k");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("bottom"), "here\n").unwrap();
    for size in [
        0,
        1,
        1023,
        1024,
        1025,
        12 * 1024,
        12 * 4096 + 1,
        300_000,
        5_000_000,
    ] {
        std::fs::write(folder.path(&format!("size-{size}")), random.bytes(size)).unwrap();
    }
    let sparse = std::fs::File::create(folder.path("sparse")).unwrap();
    for offset in [0, 100_000, 3_000_000, 70_000_000] {
        sparse.write_all_at(b"data", offset).unwrap();
    }
    for length in [1, 59, 60, 61, 200, 1000] {
        symlink("x".repeat(length), folder.path(&format!("link-{length}"))).unwrap();
    }
    std::fs::create_dir(folder.path("many")).unwrap();
    for n in 0..1500 {
        std::fs::write(
            folder.path(&format!("many/file with a long name {n}")),
            n.to_string(),
        )
        .unwrap();
    }
    std::fs::write(folder.path("n".repeat(255).as_str()), "long").unwrap();
    folder
}

#[test]
fn every_block_and_inode_size_reads_as_the_host_wrote() {
    let folder = sample();
    let cases = [
        ("-t ext2 -b 1024 -I 128", 65536),
        ("-t ext2 -b 2048 -I 256", 32768),
        ("-t ext2 -b 4096 -I 256", 16384),
        (
            "-t ext2 -b 4096 -I 512 -O ^filetype,^sparse_super,^resize_inode",
            16384,
        ),
        ("-t ext2 -b 1024 -r 0 -O none", 65536),
        ("-t ext3 -b 4096", 16384),
    ];
    for (arguments, blocks) in cases {
        let image = make_image(arguments, Some(&folder.0), blocks);
        let disk = Disk::new(image.clone());
        let mut fs = FileSystem::mount(&disk, options(true, 1 << 20)).unwrap();
        let root = fs.root();
        compare_tree(&mut fs, root, &folder.0);
        fs.unmount().unwrap();
        assert!(
            disk.image() == image,
            "a read-only mount wrote: {arguments}"
        );
        assert_eq!(disk.writes.get(), 0);
    }
}

#[test]
fn attributes_are_those_of_the_host() {
    let folder = sample();
    let disk = Disk::new(make_image("-t ext2 -b 1024", Some(&folder.0), 65536));
    let mut fs = mount(&disk);
    let ino = walk(&mut fs, "a/b/c/d/e/f/g/h/i/j/k/bottom").unwrap();
    let attributes = fs.getattr(ino).unwrap();
    assert_eq!((attributes.kind, attributes.size), (FileKind::Regular, 5));
    assert_eq!((attributes.links, attributes.sectors), (1, 2));
    let meta = std::fs::metadata(folder.path("a/b/c/d/e/f/g/h/i/j/k/bottom")).unwrap();
    let modified = meta
        .modified()
        .unwrap()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(attributes.mtime.seconds, modified.as_secs() as i64);
    assert!(fs.was_clean() && !fs.is_read_only());
}

#[test]
fn indexed_directories_are_read_linearly_without_a_journal() {
    let folder = sample();
    let mut image = make_image("-t ext2 -b 1024", Some(&folder.0), 65536);
    optimize(&mut image);
    assert!(debugfs(&mut image, false, "htree_dump /many").contains("Root node"));
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    compare_tree(&mut fs, root, &folder.0);
    let many = walk(&mut fs, "many").unwrap();
    let ino = fs.create(many, b"one more", 0o644).unwrap();
    assert_eq!(fs.lookup(many, b"one more"), Ok(ino));
    fs.unlink(many, b"file with a long name 77").unwrap();
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn files_beyond_4_gib_read_at_both_ends() {
    let folder = Folder::new();
    let file = std::fs::File::create(folder.path("huge")).unwrap();
    file.write_all_at(b"first", 0).unwrap();
    file.write_all_at(b"last", 5 << 30).unwrap();
    let disk = Disk::new(make_image("-t ext2 -b 4096", Some(&folder.0), 4096));
    let mut fs = mount(&disk);
    let ino = walk(&mut fs, "huge").unwrap();
    assert_eq!(fs.getattr(ino).unwrap().size, (5 << 30) + 4);
    let mut buf = [0xEE; 8];
    assert_eq!(fs.read(ino, (5 << 30) - 2, &mut buf), Ok(6));
    assert_eq!(&buf[..6], b"\0\0last");
    assert_eq!(fs.read(ino, 3 << 30, &mut buf), Ok(8));
    assert_eq!(buf, [0; 8]);
    assert_eq!(fs.read(ino, u64::MAX, &mut buf), Ok(0));
}

#[test]
fn a_sequential_reader_needs_few_requests() {
    let folder = Folder::new();
    std::fs::write(folder.path("big"), Random(1).bytes(40 << 20)).unwrap();
    let disk = Disk::new(make_image("-t ext2 -b 4096", Some(&folder.0), 16384));
    let mut fs = FileSystem::mount(&disk, options(true, 8 << 20)).unwrap();
    let ino = walk(&mut fs, "big").unwrap();
    let before = disk.reads.get();
    let mut buf = [0; 4096];
    for block in 0..10240 {
        assert_eq!(fs.read(ino, block * 4096, &mut buf), Ok(4096));
    }
    let requests = disk.reads.get() - before;
    assert!(requests < 400, "{requests} requests for 10240 blocks");
    let statistics = fs.statistics();
    assert!(statistics.cached_blocks <= statistics.cache_capacity);
}

#[test]
fn a_random_reader_reads_only_what_it_asks_for() {
    let folder = Folder::new();
    std::fs::write(folder.path("big"), Random(1).bytes(8 << 20)).unwrap();
    let disk = Disk::new(make_image("-t ext2 -b 4096", Some(&folder.0), 4096));
    let mut fs = FileSystem::mount(&disk, options(true, 8 << 20)).unwrap();
    let ino = walk(&mut fs, "big").unwrap();
    let before = fs.statistics().cached_blocks;
    for block in [700, 100, 1500, 300, 1900] {
        fs.read(ino, block * 4096, &mut [0; 4096]).unwrap();
    }
    assert!(fs.statistics().cached_blocks < before + 12);
}

#[test]
fn wrong_names_and_kinds_are_refused() {
    let folder = sample();
    let disk = Disk::new(make_image("-t ext2 -b 1024", Some(&folder.0), 65536));
    let mut fs = mount(&disk);
    let root = fs.root();
    let file = walk(&mut fs, "size-1").unwrap();
    let link = walk(&mut fs, "link-1").unwrap();
    assert_eq!(fs.lookup(root, b"nothing"), Err(Error::NotFound));
    assert_eq!(fs.lookup(root, &[b'n'; 256]), Err(Error::NameTooLong));
    assert!(matches!(fs.lookup(root, b""), Err(Error::Invalid(_))));
    assert!(matches!(fs.lookup(root, b"a/b"), Err(Error::Invalid(_))));
    assert_eq!(fs.lookup(file, b"x"), Err(Error::NotDirectory));
    assert_eq!(fs.readdir(file, 0, 10), Err(Error::NotDirectory));
    assert_eq!(fs.read(root, 0, &mut [0; 4]), Err(Error::IsDirectory));
    assert!(matches!(
        fs.read(link, 0, &mut [0; 4]),
        Err(Error::Invalid(_))
    ));
    assert!(matches!(fs.readlink(file), Err(Error::Invalid(_))));
    assert!(matches!(fs.getattr(0), Err(Error::Corrupt(_))));
    assert!(matches!(fs.getattr(u32::MAX), Err(Error::Corrupt(_))));
    assert_eq!(fs.getattr(9000), Err(Error::NotFound));
    assert!(!fs.is_read_only());
}

#[test]
fn unknown_features_are_refused_by_name() {
    let message = |image: Vec<u8>, read_only| mount_error(image, read_only).to_string();
    let ext4 = make_image("-t ext4 -b 4096", None, 4096);
    let text = message(ext4, true);
    assert!(
        text.contains("extent") && text.contains("64bit") && text.contains("flex_bg"),
        "{text}"
    );
    let journal = make_image("-t ext3 -b 4096", None, 4096);
    let mut dirty = journal.clone();
    debugfs(&mut dirty, true, "feature needs_recovery");
    debugfs(&mut dirty, true, "feature ^has_journal");
    assert!(message(dirty, true).contains("no journal"));
    let sums = make_image("-t ext2 -b 4096 -O metadata_csum", None, 4096);
    let text = message(sums.clone(), false);
    assert!(
        text.contains("read-only") && text.contains("metadata_csum"),
        "{text}"
    );
    let disk = Disk::new(sums);
    let mut fs = FileSystem::mount(&disk, options(true, 1 << 20)).unwrap();
    let root = fs.root();
    assert_eq!(fs.create(root, b"x", 0o644), Err(Error::ReadOnly));
    assert!(list(&mut fs, root).is_ok());
}

#[test]
fn what_is_no_file_system_is_refused() {
    for size in [0, 512, 1024, 2047] {
        assert!(matches!(
            mount_error(vec![0; size], true),
            Error::NotExt2(_)
        ));
    }
    assert!(matches!(
        mount_error(vec![0; 1 << 20], true),
        Error::NotExt2(_)
    ));
    let image = empty(1024, 8192);
    assert!(matches!(
        mount_error(image[..4 << 20].to_vec(), true),
        Error::Corrupt(_)
    ));
}
