//! Power cuts without a journal: a file that was synced is there under its name, as it was or as
//! one that was renamed over it, and nothing that a cut leaves is taken for damage.

use ext2::{Error, FileSystem};

use crate::host::*;
use crate::model::{Model, step};

/// Content of version `n` of a file: of a length of its own, with indirect blocks in some.
fn version(n: u64) -> Vec<u8> {
    let length = [300, 5000, 1, 40_000, 12 * 1024, 1024][n as usize % 6];
    Random(n + 100).bytes(length)
}

/// Replaces `/w/conf` by newer versions; `safe` is the last one that must be there.
fn replace(fs: &mut Fs<'_>, syncs: bool, safe: &mut u64) -> Result<(), Error> {
    let dir = walk(fs, "w")?;
    for n in *safe + 1..*safe + 5 {
        let new = fs.create(dir, b"conf.new", 0o644)?;
        write_all(fs, new, 0, &version(n))?;
        if syncs {
            fs.fsync(new)?;
        }
        fs.rename(dir, b"conf.new", dir, b"conf")?;
        // What lies beside it in the table comes and goes.
        fs.create(dir, format!("other {n}").as_bytes(), 0o644)?;
        if n > 2 {
            fs.unlink(dir, format!("other {}", n - 1).as_bytes())?;
        }
        if syncs || n % 3 == 0 {
            fs.fsync(dir)?;
            *safe = n;
        }
    }
    Ok(())
}

/// A disk with version 0 of `/w/conf`, synced.
fn configured(block_size: u32) -> Vec<u8> {
    let disk = Disk::new(empty(block_size, (4 << 20) / block_size));
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"w", 0o755).unwrap();
    let conf = fs.create(dir, b"conf", 0o644).unwrap();
    write_all(&mut fs, conf, 0, &version(0)).unwrap();
    fs.unmount().unwrap();
    disk.image()
}

/// Which version `/w/conf` is.
fn found(image: &[u8]) -> Option<u64> {
    let disk = Disk::new(image.to_vec());
    let mut fs = FileSystem::mount(&disk, options(true, 1 << 20)).unwrap();
    let conf = walk(&mut fs, "w/conf").ok()?;
    let data = read_all(&mut fs, conf).ok()?;
    (0..20).find(|n| version(*n) == data)
}

#[test]
fn a_cut_in_a_rename_over_a_synced_file_leaves_one_of_both() {
    for (block_size, syncs) in [(1024, true), (1024, false), (4096, true), (4096, false)] {
        let base = configured(block_size);
        let (mut cuts, mut replaced) = (0, 0);
        for requests in 1.. {
            let mut ended = false;
            for dice in 0..4 {
                let disk = Disk::new(base.clone());
                let mut fs = mount(&disk);
                disk.remember();
                disk.requests_left.set(Some(requests));
                let mut safe = 0;
                ended = replace(&mut fs, syncs, &mut safe).is_ok();
                drop(fs);
                let left = disk.cut(&mut Random(u64::from(requests) * 10 + dice));
                let seen = found(&left);
                assert!(
                    seen.is_some_and(|seen| seen >= safe),
                    "{requests}: {seen:?} of {safe}"
                );
                // The host's repair keeps it.
                assert_eq!(found(&repaired(left)), seen, "{requests}");
                cuts += 1;
                replaced += u32::from(seen > Some(0));
            }
            if ended {
                break;
            }
        }
        assert!(cuts > 60 && replaced > 20, "{replaced} of {cuts}");
    }
}

/// A file of many pieces takes several steps to be freed: none of them comes before its name leads
/// to the other.
#[test]
fn a_large_file_stays_whole_until_it_is_replaced() {
    let disk = Disk::new(empty(1024, 16 << 10));
    let mut fs = mount(&disk);
    let root = fs.root();
    let conf = fs.create(root, b"conf", 0o644).unwrap();
    let content = Random(3).bytes(9 << 20);
    write_all(&mut fs, conf, 0, &content).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let base = disk.image();
    let mut requests = 1;
    loop {
        let disk = Disk::new(base.clone());
        let mut fs = mount(&disk);
        disk.remember();
        disk.requests_left.set(Some(requests));
        let done = (|| {
            let new = fs.create(root, b"new", 0o644)?;
            write_all(&mut fs, new, 0, b"short")?;
            fs.rename(root, b"new", root, b"conf")?;
            fs.sync()
        })();
        drop(fs);
        let left = Disk::new(disk.cut(&mut Random(requests.into())));
        let mut fs = FileSystem::mount(&left, options(true, 1 << 20)).unwrap();
        let conf = walk(&mut fs, "conf").unwrap();
        let data = read_all(&mut fs, conf).unwrap();
        assert!(
            data == content || data == b"short",
            "{requests}: {} bytes",
            data.len()
        );
        match done {
            Ok(()) => break,
            Err(_) => requests += 1,
        }
    }
    assert!(requests > 8, "{requests}");
}

/// Counters are older than bitmaps after a cut, never smaller: what the next mount makes of that
/// is no damage.
#[test]
fn what_a_cut_leaves_is_not_taken_for_damage() {
    let base = empty(1024, 12 << 10);
    let mut lagged = 0;
    for seed in 0..80 {
        let mut random = Random(seed);
        let disk = Disk::new(base.clone());
        let budget = [0, 4 << 20][seed as usize % 2];
        let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
        disk.remember();
        disk.requests_left.set(Some(3 + random.below(90) as u32));
        let mut model = Model::new();
        while step(&mut fs, &mut model, &mut random).is_ok() {
            if random.below(9) == 0 && fs.commit().is_err() {
                break;
            }
        }
        drop(fs);
        let disk = Disk::new(disk.cut(&mut random));
        let mut fs = mount(&disk);
        lagged += u32::from(!fs.was_clean());
        let root = fs.root();
        let dir = fs.mkdir(root, b"after", 0o755).unwrap();
        for n in 0..20 {
            let ino = fs.create(dir, format!("{n}").as_bytes(), 0o644).unwrap();
            write_all(&mut fs, ino, 0, &[1; 3000]).unwrap();
        }
        assert_eq!(fs.take_distrusted(), [], "seed {seed}");
        fs.unmount().unwrap();
    }
    assert!(lagged > 60, "{lagged}");
}
