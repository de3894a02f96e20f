//! Holes: finding and making them, beside a copy in memory, and as the host sees the image.

use ext2::Error;

use crate::host::*;

const BLOCK: u64 = 1024;

/// What there are data and holes of, as `next_data` and `next_hole` tell: where data begins and
/// ends.
fn pieces(fs: &mut Fs<'_>, ino: u32) -> Vec<(u64, u64)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(data) = fs.next_data(ino, at).unwrap() {
        let hole = fs.next_hole(ino, data).unwrap().unwrap();
        assert!(data < hole, "{data} {hole}");
        all.push((data, hole));
        at = hole;
    }
    all
}

#[test]
fn holes_are_found_on_all_levels() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
    assert_eq!(fs.next_data(ino, 0), Ok(None));
    assert_eq!(fs.next_hole(ino, 0), Ok(None));
    let places = [3, 12, 12 + 256 + 5, 12 + 256 + 65536 + 7];
    for place in places {
        fs.write(ino, place * BLOCK + 10, b"data").unwrap();
    }
    let size = places[3] * BLOCK + 14;
    fs.truncate(ino, size + 5 * BLOCK).unwrap();
    let expected = places.map(|place| (place * BLOCK, (place + 1) * BLOCK));
    assert_eq!(pieces(&mut fs, ino), expected);
    // In the middle of either.
    assert_eq!(
        fs.next_data(ino, 3 * BLOCK + 100),
        Ok(Some(3 * BLOCK + 100))
    );
    assert_eq!(fs.next_hole(ino, 2 * BLOCK + 1), Ok(Some(2 * BLOCK + 1)));
    assert_eq!(fs.next_data(ino, size + BLOCK), Ok(None));
    assert_eq!(fs.next_hole(ino, size + BLOCK), Ok(Some(size + BLOCK)));
    assert_eq!(fs.next_hole(ino, size + 5 * BLOCK), Ok(None));
    assert_eq!(fs.next_data(fs.root(), 0), Err(Error::IsDirectory));
}

#[test]
fn punching_frees_blocks_and_leaves_zeros() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
    fs.sync().unwrap();
    let free = fs.statfs().unwrap().free_blocks;
    let mut random = Random(5);
    // Over the direct blocks, the first indirect one and some of the second level.
    let mut sure = random.bytes(600 * BLOCK as usize + 300);
    write_all(&mut fs, ino, 0, &sure).unwrap();
    for (from, to) in [
        (100, 200),
        (BLOCK - 1, BLOCK + 1),
        (5 * BLOCK, 6 * BLOCK),
        (10 * BLOCK + 1, 300 * BLOCK - 1),
        (300 * BLOCK, 520 * BLOCK),
        (600 * BLOCK - 7, 900 * BLOCK),
        (7, 7),
    ] {
        fs.punch(ino, from, to - from).unwrap();
        let end = (to as usize).min(sure.len());
        sure[from as usize..end].fill(0);
        assert_eq!(read_all(&mut fs, ino).unwrap(), sure);
        fs.sync().unwrap();
        assert_clean(&disk.image());
    }
    assert_eq!(fs.getattr(ino).unwrap().size, sure.len() as u64);
    fs.punch(ino, 0, u64::MAX).unwrap();
    assert_eq!(pieces(&mut fs, ino), []);
    assert_eq!(fs.getattr(ino).unwrap().sectors, 0);
    fs.sync().unwrap();
    assert_eq!(fs.statfs().unwrap().free_blocks, free);
    // And filled again.
    write_all(&mut fs, ino, 50 * BLOCK, b"again").unwrap();
    assert_eq!(pieces(&mut fs, ino), [(50 * BLOCK, 51 * BLOCK)]);
    fs.unmount().unwrap();
    let mut image = disk.image();
    assert_clean(&image);
    let blocks = debugfs(&mut image, false, "blocks /f");
    let numbers = blocks.lines().next().unwrap_or_default();
    assert_eq!(numbers.split_whitespace().count(), 2, "{blocks}");
}

/// A file of many islands; its number.
fn islands(fs: &mut Fs<'_>, count: u64) -> u32 {
    let ino = fs.create(fs.root(), b"islands", 0o644).unwrap();
    for number in 0..count {
        write_all(fs, ino, 2 * number * BLOCK, &[7; BLOCK as usize]).unwrap();
    }
    ino
}

/// Others are let in between the steps, and may even remove the file.
#[test]
fn a_large_hole_is_made_in_steps() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let ino = islands(&mut fs, 1000);
    fs.open(ino).unwrap();
    let (mut at, mut steps) = (1, 0);
    while at < 1900 * BLOCK {
        let done = fs.punch_some(ino, at, 1900 * BLOCK - at).unwrap();
        assert!((1..=130 * BLOCK).contains(&done), "{done} bytes at {at}");
        (at, steps) = (at + done, steps + 1);
        fs.create(fs.root(), format!("other-{steps}").as_bytes(), 0o644)
            .unwrap();
    }
    assert!(steps >= 15, "{steps}");
    let left = (950..1000).map(|n| (2 * n * BLOCK, (2 * n + 1) * BLOCK));
    let mut expected = vec![(0, BLOCK)];
    expected.extend(left);
    assert_eq!(pieces(&mut fs, ino), expected);
    fs.close(ino).unwrap();
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

#[test]
fn a_long_file_is_cut_in_steps() {
    for is_removed in [false, true] {
        let disk = Disk::new(empty(1024, 8192));
        let mut fs = mount(&disk);
        let free = fs.statfs().unwrap().free_blocks;
        let ino = islands(&mut fs, 1000);
        fs.open(ino).unwrap();
        let mut is_done = fs.begin_truncate(ino, 0).unwrap();
        assert_eq!(fs.getattr(ino).unwrap().size, 0);
        let mut steps = 1;
        while !is_done {
            if is_removed && steps == 3 {
                fs.unlink(fs.root(), b"islands").unwrap();
            }
            is_done = fs.cut_some(ino).unwrap();
            steps += 1;
        }
        assert!(steps >= 5, "{steps}");
        fs.close(ino).unwrap();
        match is_removed {
            true => assert_eq!(fs.getattr(ino).map(drop), Err(Error::NotFound)),
            false => assert_eq!(pieces(&mut fs, ino), []),
        }
        fs.sync().unwrap();
        assert_eq!(fs.statfs().unwrap().free_blocks, free);
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

#[test]
fn what_the_host_has_punched_is_a_hole() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
    write_all(&mut fs, ino, 0, &[1; 40 * BLOCK as usize]).unwrap();
    fs.unmount().unwrap();
    let mut image = disk.image();
    debugfs(&mut image, true, "punch /f 4 29");
    assert_clean(&image);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let expected = [(0, 4 * BLOCK), (30 * BLOCK, 40 * BLOCK)];
    assert_eq!(pieces(&mut fs, ino), expected);
}

#[test]
fn what_is_no_file_or_cannot_be_written_is_not_punched() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    assert_eq!(fs.punch(root, 0, 10), Err(Error::IsDirectory));
    assert_eq!(fs.punch(100, 0, 10), Err(Error::NotFound));
    let ino = fs.create(root, b"f", 0o644).unwrap();
    fs.write(ino, 0, &[1; 5000]).unwrap();
    fs.unmount().unwrap();
    assert_eq!(fs.punch(ino, 0, 5000), Err(Error::ReadOnly));
}

/// Sizes, places and lengths around the ends of blocks: of each kind a few.
const SIZES: [u64; 9] = [1, 5, 1023, 1024, 1025, 1500, 5000, 14 * 1024, 20_000];

fn around(size: u64) -> [u64; 9] {
    let last = size - size % BLOCK;
    [
        0,
        1,
        BLOCK - 1,
        BLOCK,
        size / 2,
        size - 1,
        size,
        size + 1,
        last,
    ]
}

const LENGTHS: [u64; 9] = [1, 10, 500, 1023, 1024, 1025, 5000, 100_000, u64::MAX];

/// Each hole of a few in each file of a few, then the file is made longer over what its last block
/// has behind the end: all beside a copy in memory, in memory and on the disk.
#[test]
fn all_small_holes_agree_with_a_plain_model() {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let ino = fs.create(fs.root(), b"f", 0o644).unwrap();
    for (n, size) in SIZES.into_iter().enumerate() {
        for offset in around(size) {
            for (m, length) in LENGTHS.into_iter().enumerate() {
                let what = format!("{offset}+{length} of {size}");
                fs.truncate(ino, 0).unwrap();
                // Not zero anywhere, also where the file ended before.
                write_all(&mut fs, ino, 0, &vec![b'G'; size as usize + 700]).unwrap();
                fs.truncate(ino, size).unwrap();
                if (n + m) % 3 == 0 {
                    fs.sync().unwrap();
                }
                fs.punch(ino, offset, length).unwrap();
                let mut model = vec![b'G'; size as usize];
                let end = offset.saturating_add(length).min(size);
                model[offset.min(end) as usize..end as usize].fill(0);
                assert_eq!(fs.getattr(ino).unwrap().size, size, "{what}");
                assert!(read_all(&mut fs, ino).unwrap() == model, "{what}");
                fs.truncate(ino, size + 900).unwrap();
                model.resize(size as usize + 900, 0);
                assert!(read_all(&mut fs, ino).unwrap() == model, "{what}, longer");
            }
        }
        fs.sync().unwrap();
        assert_clean(&disk.image());
    }
}
