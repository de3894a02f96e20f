//! Commits that are written while the file system goes on: many threads share them, and neither a
//! power cut nor a failure of the device in the middle of one tears what it was to keep.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use ext2::{BlockDevice, Commit, DeviceError, Error, FileSystem};

use crate::host::*;
use crate::reuse::{Files, check_files, churn, tight};

/// A commit that was begun, what it makes safe, and whether the file system gave it up.
struct Begun {
    commit: Commit,
    files: Files,
    given_up: Arc<AtomicBool>,
}

/// Begins commits, and writes each when the next is asked for.
struct Delayed<'a> {
    disk: &'a Disk,
    begun: Option<Begun>,
    safe: Files,
    random: Random,
    /// Whether requests are reported as failed at times.
    doubt: bool,
    written: u32,
    given_up: u32,
}

impl<'a> Delayed<'a> {
    fn new(disk: &'a Disk, seed: u64, doubt: bool) -> Self {
        Delayed {
            disk,
            begun: None,
            safe: (0, 0),
            random: Random(seed),
            doubt,
            written: 0,
            given_up: 0,
        }
    }

    fn commit(&mut self, fs: &mut Fs<'_>, files: Files) -> Result<Files, Error> {
        if let Some(begun) = self.begun.take() {
            self.write(fs, begun)?;
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let note = given_up.clone();
        let commit = fs.begin_commit(move || {
            note.store(true, Ordering::Relaxed);
            Err(DeviceError::Io)
        })?;
        self.begun = commit.map(|commit| Begun {
            commit,
            files,
            given_up,
        });
        Ok(self.safe)
    }

    fn write(&mut self, fs: &mut Fs<'_>, begun: Begun) -> Result<(), Error> {
        if begun.given_up.load(Ordering::Relaxed) {
            // What it was to write went with a commit of the file system's own.
            self.given_up += 1;
            return Ok(());
        }
        if self.doubt && self.random.below(3) == 0 {
            self.disk.doubt_in.set(Some(self.random.below(5) as u32));
        }
        let result = begun.commit.write(&self.disk);
        self.disk.doubt_in.set(None);
        fs.finish_commit(&begun.commit, result);
        match result {
            Ok(()) => (self.safe, self.written) = (begun.files, self.written + 1),
            Err(DeviceError::Io) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// As with commits that others wait for: see `reuse`. Here blocks are freed, used again, and freed
/// again while a commit is under way.
#[test]
fn a_cut_at_every_request_of_commits_under_way() {
    let (base, dir) = tight();
    for requests in 1..150 {
        let disk = Disk::new(base.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        let mut fs = mount(&disk);
        let mut delayed = Delayed::new(&disk, requests.into(), requests % 2 == 0);
        let mut commit = |fs: &mut Fs<'_>, files| delayed.commit(fs, files);
        let safe = churn(&mut fs, dir, u64::MAX, &mut commit);
        drop(fs);
        let left = disk.cut(&mut Random(requests.into()));
        assert_clean(&host_replay(&left));
        let disk = Disk::new(left);
        let mut fs = mount(&disk);
        check_files(&mut fs, dir, safe);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// A commit that failed, or of which nobody knows how it ended, is made good by the next.
#[test]
fn a_commit_under_way_that_fails_is_made_good() {
    let (base, dir) = tight();
    let (mut written, mut given_up) = (0, 0);
    for seed in 0..12 {
        let disk = Disk::new(base.clone());
        let budget = [0, 4 << 20][seed as usize % 2];
        let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
        let mut delayed = Delayed::new(&disk, seed, true);
        let mut commit = |fs: &mut Fs<'_>, files| delayed.commit(fs, files);
        churn(&mut fs, dir, 300, &mut commit);
        written += delayed.written;
        given_up += delayed.given_up;
        fs.unmount().unwrap();
        assert_clean(&disk.image());
        let mut fs = mount(&disk);
        check_files(&mut fs, dir, (288, 300));
        assert_eq!(list(&mut fs, dir).unwrap().len(), 12);
    }
    assert!(written > 100 && given_up > 0, "{written} {given_up}");
}

/// A disk that threads share and whose flushes take time.
#[derive(Clone)]
struct Slow(Arc<Mutex<Vec<u8>>>);

impl BlockDevice for Slow {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        let at = sector as usize * 512;
        buf.copy_from_slice(&self.0.lock().unwrap()[at..at + buf.len()]);
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        let at = sector as usize * 512;
        self.0.lock().unwrap()[at..at + buf.len()].copy_from_slice(buf);
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Ok(())
    }

    fn sectors(&self) -> u64 {
        self.0.lock().unwrap().len() as u64 / 512
    }
}

/// How many changes are committed, and whether somebody commits more.
#[derive(Default)]
struct Group {
    committed: u64,
    is_busy: bool,
}

/// A file system that threads share.
struct Shared {
    fs: Mutex<FileSystem<Slow>>,
    changes: AtomicU64,
    group: Mutex<Group>,
    ended: Condvar,
    flight: Arc<Mutex<Result<(), DeviceError>>>,
    disk: Slow,
}

impl Shared {
    fn fsync(&self) {
        let wanted = self.changes.load(Ordering::SeqCst);
        let mut group = self.group.lock().unwrap();
        while group.is_busy && group.committed < wanted {
            group = self.ended.wait(group).unwrap();
        }
        if group.committed < wanted {
            group.is_busy = true;
            drop(group);
            let committed = self.commit_for_all();
            group = self.group.lock().unwrap();
            (group.committed, group.is_busy) = (committed, false);
            self.ended.notify_all();
        }
    }

    /// Commits all changes so far; how many they are.
    fn commit_for_all(&self) -> u64 {
        let mut fs = self.fs.lock().unwrap();
        let covered = self.changes.load(Ordering::SeqCst);
        let waited_for = self.flight.clone();
        let wait = move || *waited_for.lock().unwrap();
        let commit = fs.begin_commit(wait).unwrap().expect("a journal");
        // Locked before others can have the file system, and wait for the result.
        let mut flight = self.flight.lock().unwrap();
        drop(fs);
        let result = commit.write(&self.disk);
        *flight = result;
        drop(flight);
        self.fs.lock().unwrap().finish_commit(&commit, result);
        result.unwrap();
        covered
    }

    fn work(&self, thread: u32, rounds: u32) {
        let mut fs = self.fs.lock().unwrap();
        let root = fs.root();
        let ino = fs.create(root, format!("{thread}").as_bytes(), 0o644);
        let ino = ino.unwrap();
        drop(fs);
        for round in 0..rounds {
            let mut fs = self.fs.lock().unwrap();
            let data = [thread as u8 ^ round as u8; 700];
            fs.write(ino, u64::from(round) * 700, &data).unwrap();
            self.changes.fetch_add(1, Ordering::SeqCst);
            drop(fs);
            self.fsync();
        }
    }
}

/// Sixteen threads that write and fsync need far fewer commits than they fsync. The journal is so
/// small that the file system has to wait for commits under way at times.
#[test]
fn threads_that_fsync_share_commits() {
    const THREADS: u32 = 16;
    const ROUNDS: u32 = 25;
    let image = make_image("-t ext3 -J size=1 -b 1024", None, 8 << 10);
    let disk = Slow(Arc::new(Mutex::new(image)));
    let shared = Shared {
        fs: Mutex::new(FileSystem::mount(disk.clone(), options(false, 1 << 20)).unwrap()),
        changes: AtomicU64::new(0),
        group: Mutex::default(),
        ended: Condvar::new(),
        flight: Arc::new(Mutex::new(Ok(()))),
        disk: disk.clone(),
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || shared.work(thread, ROUNDS));
        }
    });
    let fs = shared.fs.into_inner().unwrap();
    let commits = fs.statistics().commits;
    assert!(
        commits * 3 < u64::from(THREADS * ROUNDS),
        "{commits} commits"
    );
    // The power is cut here: nothing was unmounted.
    drop(fs);
    let left = disk.0.lock().unwrap().clone();
    assert_clean(&host_replay(&left));
    let disk = Disk::new(left);
    let mut fs = mount(&disk);
    for thread in 0..THREADS {
        let ino = walk(&mut fs, &format!("{thread}")).unwrap();
        let expected = (0..ROUNDS).flat_map(|round| [thread as u8 ^ round as u8; 700]);
        assert!(read_all(&mut fs, ino).unwrap().into_iter().eq(expected));
    }
}
