//! No block is used again before the transaction that freed it is on the disk, and no metadata is
//! there before the content it names: under a load that reuses blocks all the time, the power is
//! cut at every request, and every file must then have content of its own and no other's.

use ext2::Error;

use crate::host::*;

/// A file's content: each word says whose it is.
fn content(of: u64, length: usize) -> Vec<u8> {
    let word = (of + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    word.iter().copied().cycle().take(length).collect()
}

/// The length of file `of`: a few blocks, with indirect ones in some.
fn length(of: u64) -> usize {
    1024 * (1 + Random(of).below(24) as usize)
}

/// The first file that is there, and the one behind the last.
pub type Files = (u64, u64);

/// Removes the oldest files and makes new ones, in a file system that is nearly full, until the
/// device dies or `most` files were made. At times `commit` is called with what is there, and
/// returns what is safe; the last of that is returned.
pub fn churn(
    fs: &mut Fs<'_>,
    dir: u32,
    most: u64,
    commit: &mut impl FnMut(&mut Fs<'_>, Files) -> Result<Files, Error>,
) -> Files {
    let (mut oldest, mut next, mut safe) = (0, 0, (0, 0));
    let mut step = || -> Result<(), Error> {
        let data = content(next, length(next));
        let ino = fs.create(dir, format!("{next}").as_bytes(), 0o644)?;
        match write_all(fs, ino, 0, &data) {
            Err(Error::NoSpace) => fs.truncate(ino, 0)?,
            other => other?,
        }
        next += 1;
        while next - oldest > 12 {
            fs.unlink(dir, format!("{oldest}").as_bytes())?;
            oldest += 1;
        }
        if next % 5 == 0 {
            safe = commit(fs, (oldest, next))?;
        }
        match next < most {
            true => Ok(()),
            false => Err(Error::NotFound),
        }
    };
    while step().is_ok() {}
    safe
}

/// Every file that is there has its own content, and whole if it was safe; and there are as many as
/// then, or later ones.
pub fn check_files(fs: &mut Fs<'_>, dir: u32, safe: Files) {
    let all = list(fs, dir).unwrap();
    let (mut last, least) = (0, safe.1.min(12));
    assert!(all.len() as u64 >= least, "{} files", all.len());
    for (name, ino) in all {
        let of: u64 = String::from_utf8(name).unwrap().parse().unwrap();
        last = last.max(of + 1);
        let data = read_all(fs, ino).unwrap();
        assert!(
            data == content(of, data.len()),
            "file {of} has what is another's"
        );
        let whole = data.len() == length(of) || data.is_empty();
        assert!(whole || of >= safe.1, "file {of} is short");
    }
    assert!(last >= safe.1, "{last} of {} files", safe.1);
}

/// Blocks that are free for the work.
const FREE: usize = 330;

/// A small file system in which little is free, and its directory `/dir`.
pub fn tight() -> (Vec<u8>, u32) {
    let image = make_image("-t ext3 -J size=1 -b 1024 -N 64 -m 0", None, 2560);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"dir", 0o755).unwrap();
    let ballast = fs.create(root, b"ballast", 0o644).unwrap();
    let free = fs.statfs().unwrap().free_blocks as usize - FREE;
    write_all(&mut fs, ballast, 0, &vec![7; free * 1024]).unwrap();
    assert!(fs.has_journal());
    fs.unmount().unwrap();
    (disk.image(), dir)
}

#[test]
fn a_cut_at_every_request_shows_no_block_of_another_file() {
    let (base, dir) = tight();
    let mut random = Random(5);
    for requests in 1..150 {
        let disk = Disk::new(base.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        let mut fs = mount(&disk);
        let mut commit = |fs: &mut Fs<'_>, files| fs.commit().map(|()| files);
        let safe = churn(&mut fs, dir, u64::MAX, &mut commit);
        drop(fs);
        let left = disk.cut(&mut random);
        assert_clean(&host_replay(&left));
        let disk = Disk::new(left);
        let mut fs = mount(&disk);
        check_files(&mut fs, dir, safe);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}
