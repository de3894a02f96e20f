//! Content made safe without a commit where nothing but times has changed, counted by requests to
//! the device, and cut at every one of them.

use ext2::{Error, Time};

use crate::host::*;

const LENGTH: usize = 20_000;

fn journaled() -> Vec<u8> {
    make_image("-t ext3 -b 1024 -J size=1", None, 4096)
}

/// Writes, flushes and commits so far.
fn counts(fs: &Fs<'_>, disk: &Disk) -> (u32, u32, u64) {
    (
        disk.writes.get(),
        disk.flushes.get(),
        fs.statistics().commits,
    )
}

/// A file of [`LENGTH`] bytes that is committed.
fn file(fs: &mut Fs<'_>) -> u32 {
    let root = fs.root();
    let ino = fs.create(root, b"f", 0o644).unwrap();
    write_all(fs, ino, 0, &Random(1).bytes(LENGTH)).unwrap();
    fs.fsync(ino).unwrap();
    ino
}

#[test]
fn bytes_written_over_others_take_a_write_and_a_flush() {
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    let ino = file(&mut fs);
    for n in 0..8 {
        let time = Time::at(NOW + 10 + n as i64);
        write_all(&mut fs, ino, 1000 * n, &Random(n).bytes(900)).unwrap();
        fs.set_times(ino, None, Some(time)).unwrap();
        let (writes, flushes, commits) = counts(&fs, &disk);
        fs.fdatasync(ino).unwrap();
        assert_eq!(counts(&fs, &disk), (writes + 1, flushes + 1, commits));
    }
    // The times are there as soon as somebody wants them.
    let commits = fs.statistics().commits;
    fs.fsync(ino).unwrap();
    assert_eq!(fs.statistics().commits, commits + 1);
    drop(fs);
    let disk = Disk::new(host_replay(&disk.image()));
    let mut fs = mount(&disk);
    assert_eq!(fs.getattr(ino).unwrap().mtime, Time::at(NOW + 17));
}

/// What content is found by is committed; what is somebody else's is not waited for.
#[test]
fn what_content_is_found_by_is_committed() {
    type Change = fn(&mut Fs<'_>, u32) -> Result<(), Error>;
    let changes: [(&str, Change); 6] = [
        ("longer", |fs, ino| {
            write_all(fs, ino, LENGTH as u64, b"more")
        }),
        ("shorter", |fs, ino| fs.truncate(ino, 9000)),
        ("a hole", |fs, ino| fs.punch(ino, 4096, 4096)),
        ("filled", |fs, ino| write_all(fs, ino, 5000, b"in the hole")),
        ("a name", |fs, ino| fs.link(ino, fs.root(), b"other")),
        ("a mode", |fs, ino| fs.chmod(ino, 0o600)),
    ];
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    let ino = file(&mut fs);
    let root = fs.root();
    let other = fs.create(root, b"g", 0o644).unwrap();
    fs.fsync(other).unwrap();
    for (what, change) in changes {
        assert!(fs.is_settled(ino), "before: {what}");
        change(&mut fs, ino).unwrap();
        assert!(!fs.is_settled(ino) && fs.is_settled(other), "{what}");
        let commits = fs.statistics().commits;
        fs.fdatasync(other).unwrap();
        assert_eq!(fs.statistics().commits, commits, "{what}");
        fs.fdatasync(ino).unwrap();
        assert_eq!(fs.statistics().commits, commits + 1, "{what}");
    }
    assert!(fs.is_settled(ino));
}

/// A commit that is being written has not settled anything yet, and one that fails has not at all.
#[test]
fn a_commit_settles_when_it_is_written() {
    let disk = Disk::new(journaled());
    let mut fs = mount(&disk);
    let ino = file(&mut fs);
    for fails in [true, false] {
        write_all(&mut fs, ino, LENGTH as u64 + 5000, b"more").unwrap();
        fs.chmod(ino, 0o600 + u16::from(fails)).unwrap();
        let commit = fs.begin_commit(|| Ok(())).unwrap().unwrap();
        assert!(!fs.is_settled(ino));
        let result = match fails {
            true => Err(ext2::DeviceError::Io),
            false => commit.write(&disk),
        };
        fs.finish_commit(&commit, result);
        assert_eq!(fs.is_settled(ino), !fails);
    }
}

#[test]
fn without_a_journal_nothing_is_known() {
    let disk = Disk::new(empty(1024, 2048));
    let mut fs = mount(&disk);
    let ino = file(&mut fs);
    assert!(!fs.is_settled(ino));
    write_all(&mut fs, ino, 0, b"over").unwrap();
    fs.fdatasync(ino).unwrap();
}

/// Whatever request is the last: what was acknowledged is there.
#[test]
fn a_cut_at_every_request() {
    let base = journaled();
    let mut random = Random(11);
    let mut acknowledged = 0;
    for requests in (1..60).chain(1..60) {
        let disk = Disk::new(base.clone());
        let mut fs = mount(&disk);
        let ino = file(&mut fs);
        disk.remember();
        disk.requests_left.set(Some(requests));
        let mut safe = Random(1).bytes(LENGTH);
        let mut now = safe.clone();
        let mut touched = vec![false; LENGTH + 8000];
        let result = (0..30).try_for_each(|n| {
            let (at, bytes) = (random.below(LENGTH as u64) as usize, Random(n).bytes(700));
            touched[at..at + bytes.len()].fill(true);
            write_all(&mut fs, ino, at as u64, &bytes)?;
            now.resize(now.len().max(at + bytes.len()), 0);
            now[at..at + bytes.len()].copy_from_slice(&bytes);
            fs.set_times(ino, None, Some(Time::at(NOW + n as i64)))?;
            if random.below(2) == 0 {
                return Ok(());
            }
            fs.fdatasync(ino)?;
            acknowledged += 1;
            safe.clone_from(&now);
            touched.fill(false);
            Ok::<_, Error>(())
        });
        assert!(result.is_err() || requests > 30);
        drop(fs);
        let left = host_replay(&disk.cut(&mut random));
        assert_clean(&left);
        let disk = Disk::new(left);
        let mut fs = mount(&disk);
        let found = read_all(&mut fs, ino).unwrap();
        assert!(found.len() >= safe.len());
        for (at, byte) in safe.iter().enumerate() {
            assert!(touched[at] || found[at] == *byte, "byte {at}");
        }
    }
    assert!(acknowledged > 300, "{acknowledged}");
}
