//! Directories with an index on disk: those that the host makes, those that we make, and those that
//! lie. The host's `e2fsck` checks every index that we leave.

use std::collections::{BTreeMap, BTreeSet};

use ext2::{Error, FileSystem};

use crate::host::*;

/// An image with the directory `/dir`, in which are the names of `names`, with an index that the
/// host made.
fn by_host(arguments: &str, settings: &str, names: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let mut image = make_image(&format!("-t ext3 -J size=4 {arguments}"), None, 16 << 10);
    debugfs_script(&mut image, settings);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let file = fs.create(dir, b"first", 0o644).unwrap();
    for name in names.iter().filter(|name| *name != b"first") {
        fs.link(file, dir, name).unwrap();
    }
    fs.unmount().unwrap();
    let mut image = disk.image();
    optimize(&mut image);
    assert_clean(&image);
    image
}

/// What the host shows of the index of `/dir`.
fn dump(image: &[u8]) -> String {
    debugfs(&mut image.to_vec(), false, "htree_dump /dir")
}

/// `/dir` of `image` has an index with nodes between root and leaves, or without.
#[track_caller]
fn assert_indexed(image: &[u8], deep: bool) {
    let text = dump(image);
    let levels = format!("Indirect levels: {}", u8::from(deep));
    assert!(text.contains(&levels), "{:.300}", text);
}

fn plain_names(count: usize) -> BTreeSet<Vec<u8>> {
    let name = |n: usize| format!("{n}-{}", "é".repeat(n % 20)).into_bytes();
    (0..count).map(name).chain([b"first".to_vec()]).collect()
}

/// Names that have one and the same hash, by TEA: it takes them as keys, and of those four are
/// equivalent in every 16 bytes.
fn colliding_names(pieces: usize) -> BTreeSet<Vec<u8>> {
    let made = (0..1usize << (2 * pieces)).map(|choice| {
        let mut name = vec![b'k'; 16 * pieces];
        for bit in 0..2 * pieces {
            let flip = if choice & (1 << bit) == 0 { 0 } else { 0x80 };
            name[8 * bit] ^= flip;
            name[8 * bit + 4] ^= flip;
        }
        name
    });
    made.chain([b"first".to_vec()]).collect()
}

/// All names in `/dir`, read `most` at a time; none is there twice.
fn names_in(fs: &mut Fs<'_>, dir: u32, most: usize) -> BTreeSet<Vec<u8>> {
    let (mut all, mut cookie, mut dots) = (BTreeSet::new(), 0, 0);
    loop {
        let some = fs.readdir(dir, cookie, most).unwrap();
        assert!(some.len() <= most);
        let Some(last) = some.last() else {
            assert_eq!(dots, 2);
            return all;
        };
        assert!(last.next > cookie);
        cookie = last.next;
        for entry in some {
            if entry.name == b"." || entry.name == b".." {
                dots += 1;
            } else {
                assert!(all.insert(entry.name.clone()), "{:?} twice", entry.name);
            }
        }
    }
}

/// The directory has exactly these names, however it is asked.
#[track_caller]
fn assert_names(fs: &mut Fs<'_>, dir: u32, names: &BTreeSet<Vec<u8>>) {
    for most in [1, 7, 1000] {
        assert!(names_in(fs, dir, most) == *names);
    }
    for name in names {
        assert!(fs.lookup(dir, name).is_ok());
    }
    assert_eq!(fs.lookup(dir, b"not there"), Err(Error::NotFound));
}

/// The settings of `debugfs` for each function and each sign of bytes.
fn settings() -> impl Iterator<Item = String> {
    let all = ["legacy", "half_md4", "tea"].into_iter().zip(0..3);
    all.flat_map(|(_, version)| {
        [1, 2].map(|sign| format!("ssv def_hash_version {version}\nssv flags {sign}\n"))
    })
}

#[test]
fn indexes_of_the_host_are_read_and_kept() {
    let mut names = plain_names(700);
    for (n, settings) in settings().enumerate() {
        let size = [1024, 2048, 4096][n % 3];
        let image = by_host(&format!("-b {size}"), &settings, &names);
        assert_indexed(&image, false);
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let dir = walk(&mut fs, "dir").unwrap();
        assert_names(&mut fs, dir, &names);
        let file = fs.lookup(dir, b"first").unwrap();
        for n in 0..900 {
            let name = format!("more {n}").into_bytes();
            fs.link(file, dir, &name).unwrap();
            assert!(names.insert(name));
            let old = names.iter().nth(n * 7 % names.len()).unwrap().clone();
            if n % 3 > 0 && old != b"first" {
                fs.unlink(dir, &old).unwrap();
                names.remove(&old);
            }
        }
        assert_names(&mut fs, dir, &names);
        fs.unmount().unwrap();
        assert_indexed(&disk.image(), false);
        assert_clean(&disk.image());
        names = plain_names(700);
    }
}

#[test]
fn an_index_is_made_where_a_directory_grows() {
    for settings in settings() {
        let mut image = make_image("-t ext3 -J size=1 -b 1024", None, 16 << 10);
        debugfs_script(&mut image, &settings);
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let root = fs.root();
        let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
        let file = fs.create(dir, b"first", 0o644).unwrap();
        let mut names: BTreeSet<_> = [b"first".to_vec()].into();
        for name in plain_names(200).into_iter().filter(|name| name != b"first") {
            fs.link(file, dir, &name).unwrap();
            names.insert(name);
        }
        assert_names(&mut fs, dir, &names);
        assert_eq!(fs.lookup(dir, b".."), Ok(root));
        fs.unmount().unwrap();
        assert_indexed(&disk.image(), false);
        assert_clean(&disk.image());
    }
}

/// Without a journal an index could be torn by a power cut: it is left as it is until the first
/// change, which does without.
#[test]
fn without_a_journal_no_index_is_changed() {
    let names = plain_names(300);
    let mut image = by_host("-b 1024", "", &names);
    debugfs_script(&mut image, "feature -has_journal\nssv journal_inum 0\n");
    optimize(&mut image);
    assert_indexed(&image, false);
    let read_only = Disk::new(image.clone());
    let mut fs = FileSystem::mount(&read_only, options(true, 0)).unwrap();
    assert!(!fs.has_journal());
    let dir = walk(&mut fs, "dir").unwrap();
    assert_names(&mut fs, dir, &names);
    drop(fs);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    assert_names(&mut fs, dir, &names);
    fs.create(dir, b"one more", 0o644).unwrap();
    fs.unmount().unwrap();
    assert!(dump(&disk.image()).contains("Not a hash-indexed"));
    assert_clean(&disk.image());
}

#[test]
fn names_of_one_hash_fill_several_leaves() {
    let tea = "ssv def_hash_version 2\n";
    let names = colliding_names(4);
    let image = by_host("-b 1024", tea, &plain_names(60));
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let dir = walk(&mut fs, "dir").unwrap();
    let file = fs.lookup(dir, b"first").unwrap();
    let mut present = plain_names(60);
    for name in names.iter().filter(|name| *name != b"first") {
        fs.link(file, dir, name).unwrap();
        present.insert(name.clone());
    }
    assert_names(&mut fs, dir, &present);
    fs.sync().unwrap();
    assert_clean(&disk.image());
    for name in names.iter().step_by(2).filter(|name| *name != b"first") {
        fs.unlink(dir, name).unwrap();
        present.remove(name);
    }
    for name in names.iter().step_by(4).filter(|name| *name != b"first") {
        fs.link(file, dir, name).unwrap();
        present.insert(name.clone());
    }
    assert_names(&mut fs, dir, &present);
    fs.unmount().unwrap();
    assert_indexed(&disk.image(), false);
    assert_clean(&disk.image());
    // The same names, as the host lays them out.
    let disk = Disk::new(by_host("-b 1024", tea, &names));
    let mut fs = mount(&disk);
    let dir = walk(&mut fs, "dir").unwrap();
    assert_names(&mut fs, dir, &names);
}

/// A hundred thousand names: in a fresh mount with a small cache, a look-up reads the inode, the
/// map of the directory, and a block of each level.
#[test]
fn a_look_up_among_a_hundred_thousand_names_reads_few_blocks() {
    let disk = Disk::new(make_image("-t ext3 -J size=4 -b 4096", None, 8 << 10));
    let mut fs = FileSystem::mount(&disk, options(false, 8 << 20)).unwrap();
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let name = |n: u32| format!("name {n}").into_bytes();
    let mut file = 0;
    for n in 0..100_000 {
        match n % 30_000 {
            0 => file = fs.create(dir, &name(n), 0o644).unwrap(),
            _ => fs.link(file, dir, &name(n)).unwrap(),
        }
    }
    fs.unmount().unwrap();
    drop(fs);
    assert_indexed(&disk.image(), true);
    assert_clean(&disk.image());
    let mut fs = FileSystem::mount(&disk, options(false, 0)).unwrap();
    fs.lookup(dir, &name(1)).unwrap();
    let mut random = Random(1);
    for _ in 0..200 {
        let before = disk.reads.get();
        fs.lookup(dir, &name(random.below(100_000) as u32)).unwrap();
        assert!(disk.reads.get() - before <= 6);
        assert_eq!(fs.lookup(dir, b"none"), Err(Error::NotFound));
    }
    assert_eq!(names_in(&mut fs, dir, 64).len(), 100_000);
}

/// With long names in small blocks both levels fill up. Then a name that needs one key more does
/// not fit, and nothing else happens.
#[test]
fn a_full_index_says_so() {
    let disk = Disk::new(make_image("-t ext3 -J size=4 -b 1024", None, 32 << 10));
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let name = |n: u32| format!("{n:0>250}").into_bytes();
    let (mut file, mut count) = (fs.create(dir, &name(0), 0o644).unwrap(), 1);
    let full = loop {
        match fs.link(file, dir, &name(count)) {
            Ok(()) => count += 1,
            Err(Error::TooManyLinks) => {
                file = fs
                    .create(root, format!("{count}").as_bytes(), 0o644)
                    .unwrap();
            }
            Err(error) => break error,
        }
    };
    assert_eq!(full, Error::NoSpace);
    assert!(
        fs.statfs().unwrap().free_blocks > 1000 && count > 15_000,
        "{count}"
    );
    assert_eq!(fs.lookup(dir, &name(count)), Err(Error::NotFound));
    assert_eq!(names_in(&mut fs, dir, 1000).len(), count as usize);
    // A name that leaves makes room for one in its leaf.
    fs.unlink(dir, &name(17)).unwrap();
    fs.link(file, dir, &name(17)).unwrap();
    fs.unmount().unwrap();
    assert_indexed(&disk.image(), true);
    assert_clean(&disk.image());
}

/// Names come, go and are renamed, beside a model; in between the directory is listed in pieces,
/// and what was there all the time is listed once.
#[test]
fn random_histories_agree_with_a_model() {
    for seed in 0..rounds(16) {
        let mut random = Random(seed);
        let version = random.below(3);
        let mut image = make_image("-t ext3 -J size=1 -b 1024", None, 8 << 10);
        debugfs_script(&mut image, &format!("ssv def_hash_version {version}\n"));
        let disk = Disk::new(image);
        let budget = [0, 1 << 20][seed as usize % 2];
        let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
        let root = fs.root();
        let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
        let mut history = History {
            dir,
            model: BTreeMap::new(),
            pool: pool(&mut random),
        };
        for n in 0..10 {
            history.work(&mut fs, &mut random, 120);
            if n % 3 == 2 {
                fs.unmount().unwrap();
                drop(fs);
                assert_clean(&disk.image());
                fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
            }
            history.compare(&mut fs);
        }
    }
}

/// Names of all lengths, some of one hash.
fn pool(random: &mut Random) -> Vec<Vec<u8>> {
    let longest = [12, 60, 200][random.below(3) as usize];
    let mut pool: Vec<Vec<u8>> = (0..600u32)
        .map(|n| {
            let length = random.below(longest) as usize;
            format!("{n}{}", "y".repeat(length)).into_bytes()
        })
        .collect();
    pool.extend(colliding_names(3));
    pool
}

struct History {
    dir: u32,
    model: BTreeMap<Vec<u8>, u32>,
    pool: Vec<Vec<u8>>,
}

impl History {
    fn name(&self, random: &mut Random) -> Vec<u8> {
        self.pool[random.below(self.pool.len() as u64) as usize].clone()
    }

    fn step(&mut self, fs: &mut Fs<'_>, random: &mut Random) {
        let (name, other) = (self.name(random), self.name(random));
        let here = self.model.get(&name).copied();
        match random.below(10) {
            0..=5 => match (fs.create(self.dir, &name, 0o644), here) {
                (Ok(ino), None) => drop(self.model.insert(name, ino)),
                (Err(Error::Exists), Some(_)) => {}
                (other, _) => panic!("{other:?}"),
            },
            6 | 7 => match (fs.unlink(self.dir, &name), here) {
                (Ok(()), Some(_)) => drop(self.model.remove(&name)),
                (Err(Error::NotFound), None) => {}
                (other, _) => panic!("{other:?}"),
            },
            8 => match (fs.rename(self.dir, &name, self.dir, &other), here) {
                (Ok(()), Some(ino)) => {
                    self.model.remove(&name);
                    self.model.insert(other, ino);
                }
                (Err(Error::NotFound), None) => {}
                (other, _) => panic!("{other:?}"),
            },
            _ => assert_eq!(fs.lookup(self.dir, &name).ok(), here),
        }
    }

    /// Steps, while the directory is listed in pieces.
    fn work(&mut self, fs: &mut Fs<'_>, random: &mut Random, steps: usize) {
        let mut constant: BTreeSet<_> = self.model.keys().cloned().collect();
        let (mut cookie, mut listed) = (0, Vec::new());
        for _ in 0..steps {
            self.step(fs, random);
            constant.retain(|name| self.model.contains_key(name));
            let some = fs.readdir(self.dir, cookie, 4).unwrap();
            cookie = some.last().map_or(cookie, |last| last.next);
            listed.extend(some.into_iter().map(|entry| entry.name));
        }
        loop {
            let some = fs.readdir(self.dir, cookie, 4).unwrap();
            let Some(last) = some.last() else { break };
            cookie = last.next;
            listed.extend(some.into_iter().map(|entry| entry.name));
        }
        for name in constant {
            let times = listed.iter().filter(|other| **other == name).count();
            assert_eq!(times, 1, "{}", String::from_utf8_lossy(&name));
        }
    }

    fn compare(&self, fs: &mut Fs<'_>) {
        assert!(names_in(fs, self.dir, 50).iter().eq(self.model.keys()));
        for (name, ino) in &self.model {
            assert_eq!(fs.lookup(self.dir, name), Ok(*ino));
        }
    }
}

/// The power is cut at every request while leaves and the root are split: what is left has the
/// names of some moment, no older than the last commit, and a good index.
#[test]
fn a_cut_at_every_request_leaves_a_good_index() {
    let base = make_image("-t ext3 -J size=1 -b 1024", None, 8 << 10);
    let name = |n: usize| format!("{n}{}", "z".repeat(150)).into_bytes();
    let mut random = Random(3);
    for requests in 1..rounds(70) as u32 {
        let disk = Disk::new(base.clone());
        disk.remember();
        let mut fs = mount(&disk);
        let root = fs.root();
        let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
        let file = fs.create(root, b"file", 0o644).unwrap();
        fs.commit().unwrap();
        disk.requests_left.set(Some(requests));
        let (mut made, mut safe) = (0, 0);
        let ended = (0..2000).try_for_each(|n| {
            fs.link(file, dir, &name(n))?;
            made = n + 1;
            if n % 23 == 22 {
                fs.commit()?;
                safe = made;
            }
            Ok::<_, Error>(())
        });
        assert!(matches!(ended, Err(Error::Device(_))), "{ended:?}");
        drop(fs);
        let left = disk.cut(&mut random);
        assert_clean(&host_replay(&left));
        let disk = Disk::new(left);
        let mut fs = mount(&disk);
        let found = names_in(&mut fs, dir, 100);
        assert!((safe..=made + 1).contains(&found.len()));
        assert!((0..found.len()).all(|n| found.contains(&name(n))));
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// An image with an index of two levels, its names, and where the blocks of `/dir` are.
fn deep() -> (Vec<u8>, BTreeSet<Vec<u8>>, Vec<usize>) {
    let name = |n: u32| format!("{n:0>120}").into_bytes();
    let names: BTreeSet<_> = (0..900).map(name).chain([b"first".to_vec()]).collect();
    let mut image = make_image("-t ext3 -J size=1 -b 1024", None, 8 << 10);
    debugfs_script(&mut image, "ssv def_hash_version 1\n");
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let file = fs.create(dir, b"first", 0o644).unwrap();
    for name in names.iter().filter(|name| *name != b"first") {
        fs.link(file, dir, name).unwrap();
    }
    fs.unmount().unwrap();
    let mut image = disk.image();
    assert_indexed(&image, true);
    let text = debugfs(&mut image, false, "blocks /dir");
    let numbers = text
        .split_whitespace()
        .filter_map(|word| word.parse::<usize>().ok());
    (image, names, numbers.map(|block| block * 1024).collect())
}

/// Where in the image block `n` of the directory is; the list of the host has the indirect block
/// in it, behind the twelve direct ones.
fn place(blocks: &[usize], n: usize) -> usize {
    blocks[if n < 12 { n } else { n + 1 }]
}

/// An index that makes no sense is as if it were not there, and gone after the first change.
#[test]
fn a_bad_index_is_read_linearly() {
    let (image, names, blocks) = deep();
    let word = |image: &[u8], at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let root = place(&blocks, 0);
    let first_node = word(&image, root + 36);
    let second_node = word(&image, root + 44);
    let node = place(&blocks, first_node as usize);
    let bad = [
        ("function", root + 28, 3),
        ("levels", root + 30, 0),
        ("too many levels", root + 30, 2),
        ("limit", root + 32, 125 | 2 << 16),
        ("no key", root + 32, 124),
        ("too many keys", root + 32, 124 | 125 << 16),
        ("root named by itself", root + 36, 0),
        ("node twice", root + 44, first_node),
        ("outside", root + 36, 0x0FFF_FFFF),
        ("leaf for a node", root + 36, 1),
        ("node out of order", root + 40, 2),
        ("limit of a node", node + 8, 126 | 3 << 16),
        ("too many keys in a node", node + 8, 127 | 128 << 16),
        ("loop", node + 12, first_node),
        ("node for a leaf", node + 12, second_node),
        ("leaf twice", node + 12, word(&image, node + 20)),
        ("out of order", node + 16, u32::MAX),
    ];
    for (what, at, value) in bad {
        let mut image = image.clone();
        let old = word(&image, at);
        // What has a byte of its own keeps those around it.
        let value = match at - root {
            28 | 30 => old & !0xFF | value,
            _ => value,
        };
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
        // The host does not compare the keys of a node with those around the node's own.
        if what != "node out of order" {
            assert!(!check(&image).0, "{what}: the host sees it, too");
        }
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let dir = walk(&mut fs, "dir").unwrap();
        assert!(names_in(&mut fs, dir, 50) == names, "{what}");
        assert!(
            names.iter().all(|name| fs.lookup(dir, name).is_ok()),
            "{what}"
        );
        fs.create(dir, b"one more", 0o644).unwrap();
        assert!(fs.lookup(dir, b"one more").is_ok(), "{what}");
        fs.unmount().unwrap();
        assert!(dump(&disk.image()).contains("Not a hash-indexed"), "{what}");
        assert_clean(&disk.image());
    }
}

/// Names in a wrong leaf are listed once; a split that meets them says what is wrong.
#[test]
fn a_name_in_a_wrong_leaf_is_an_exact_error() {
    let (image, names, blocks) = deep();
    let mut image = image;
    let root = place(&blocks, 0);
    let word = |image: &[u8], at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let node = place(&blocks, word(&image, root + 36) as usize);
    let leaf = |key: usize| place(&blocks, word(&image, node + 12 + 8 * key) as usize);
    let (one, other) = (leaf(0), leaf(2));
    for n in 0..1024 {
        image.swap(one + n, other + n);
    }
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let dir = walk(&mut fs, "dir").unwrap();
    let file = fs
        .lookup(fs.root(), b"dir")
        .and_then(|_| fs.lookup(dir, b"first"));
    assert!(names_in(&mut fs, dir, 50) == names);
    let Ok(file) = file else { return };
    let mut ended = Ok(());
    for n in 0..2000 {
        ended = fs.link(file, dir, format!("{n:x>120}").as_bytes());
        if ended.is_err() {
            break;
        }
    }
    assert!(matches!(ended, Err(Error::Corrupt(_))), "{ended:?}");
    assert!(fs.is_read_only());
}

fn rounds(usual: u64) -> u64 {
    let wanted = std::env::var("EXT2_ROUNDS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Whatever stands in an index: no panic, no endless loop; what is answered does not matter.
#[test]
fn garbage_in_an_index_does_no_harm() {
    let (image, names, blocks) = deep();
    let root = place(&blocks, 0);
    let nodes = [36, 44].map(|at| {
        let n = u32::from_le_bytes(image[root + at..root + at + 4].try_into().unwrap());
        place(&blocks, n as usize)
    });
    let mut random = Random(11);
    for _ in 0..rounds(120) {
        let mut image = image.clone();
        for _ in 0..1 + random.below(4) {
            let block = [root, nodes[0], nodes[1], blocks[random.below(60) as usize]];
            let at = block[random.below(4) as usize] + random.below(80) as usize;
            match random.below(3) {
                0 => image[at] = random.next() as u8,
                1 => image[at] ^= 1 << random.below(8),
                _ => image[at] = [0, 1, 0xFF][random.below(3) as usize],
            }
        }
        let disk = Disk::new(image);
        let Ok(mut fs) = FileSystem::mount(&disk, options(false, 0)) else {
            continue;
        };
        let Ok(dir) = walk(&mut fs, "dir") else {
            continue;
        };
        let file = fs.lookup(dir, b"first").unwrap_or(12);
        let (mut cookie, mut most) = (0, 3000);
        while let Ok(some) = fs.readdir(dir, cookie, 40)
            && let Some(last) = some.last()
            && most > 0
        {
            assert!(last.next > cookie);
            (cookie, most) = (last.next, most - 1);
        }
        for (n, name) in names.iter().enumerate().filter(|(n, _)| n % 9 == 0) {
            let _ = fs.lookup(dir, name);
            let _ = fs.link(file, dir, format!("{n:w>180}").as_bytes());
            let _ = fs.unlink(dir, name);
        }
        let _ = fs.unmount();
    }
}
