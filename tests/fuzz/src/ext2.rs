//! The file system against images that lie, guided by coverage.
//!
//! An input is not an image, which libFuzzer would change in places that nobody reads, but a
//! recipe: which of the good images to start from, which of its words to change and how, and what
//! to do with the file system then. The good images lie in the folder that `TREFOIL_FUZZ_SEEDS`
//! names. `TREFOIL_FUZZ_DUMP` names a file for the changed image of an input, to look at it.
#![no_main]

mod disk;
mod script;

use std::sync::OnceLock;

use ext2::{FileSystem, Options};
use libfuzzer_sys::fuzz_target;

use disk::Disk;
use script::{Bytes, run};

/// A good image, and where in it something other than zero stands: nearly all of that is metadata.
struct Seed {
    image: Vec<u8>,
    words: Vec<usize>,
}

impl Seed {
    fn new(image: Vec<u8>) -> Self {
        let words = (0..image.len())
            .step_by(4)
            .filter(|at| image[*at..at + 4] != [0; 4]);
        let words = words.collect();
        Seed { image, words }
    }
}

fn seeds() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let folder = std::env::var("TREFOIL_FUZZ_SEEDS").expect("TREFOIL_FUZZ_SEEDS is set");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder of seeds")
            .map(|file| file.expect("a file").path())
            .collect();
        files.sort();
        let images = files
            .iter()
            .map(|file| std::fs::read(file).expect("a seed"));
        let mut seeds: Vec<_> = images.map(Seed::new).collect();
        // With a journal that is to be replayed.
        let dirty: Vec<_> = seeds
            .iter()
            .filter_map(|seed| interrupted(&seed.image))
            .collect();
        seeds.extend(dirty.into_iter().map(Seed::new));
        seeds
    })
}

/// What a power cut leaves of `image` after some changes, if it has a journal.
fn interrupted(image: &[u8]) -> Option<Vec<u8>> {
    let disk = Disk::new(image);
    let mut fs = FileSystem::mount(&disk, options(false)).ok()?;
    if !fs.has_journal() {
        return None;
    }
    let root = fs.root();
    for round in 0..3 {
        let dir = fs
            .mkdir(root, format!("cut{round}").as_bytes(), 0o755)
            .ok()?;
        let file = fs.create(dir, b"file", 0o644).ok()?;
        fs.write(file, 0, &[0; 9000]).ok()?;
        fs.commit().ok()?;
        fs.truncate(file, 100).ok()?;
        fs.commit().ok()?;
    }
    Some(disk.content())
}

fn options(read_only: bool) -> Options {
    Options {
        read_only,
        cache_budget_bytes: 1 << 20,
        memory_is_short: || false,
        clock: Box::new(|| ext2::Time::at(1_700_000_000)),
    }
}

fn damaged(bytes: &mut Bytes<'_>) -> Disk<'static> {
    let seeds = seeds();
    let seed = &seeds[bytes.byte() as usize % seeds.len()];
    let image = &seed.image;
    let disk = Disk::new(image);
    for _ in 0..bytes.byte() % 12 {
        let kind = bytes.byte();
        let place = bytes.word();
        let at = match kind & 0x80 {
            0 => seed.words[place as usize % seed.words.len()],
            _ => place as usize % (image.len() / 4) * 4,
        };
        let word =
            |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().expect("four bytes"));
        let old = word(at);
        let new = match kind & 7 {
            0 => bytes.word(),
            1 => old.wrapping_add(u32::from(bytes.byte())),
            2 => old.wrapping_sub(u32::from(bytes.byte())),
            3 => old ^ 1 << (bytes.byte() & 31),
            4 => [0, 1, 2, u32::MAX, i32::MAX as u32, 1 << 31][bytes.byte() as usize % 6],
            5 => old & !0xffff | u32::from(bytes.byte()) << 8 | u32::from(bytes.byte()),
            6 => old & 0xffff | u32::from(bytes.byte()) << 24 | u32::from(bytes.byte()) << 16,
            _ => word(seed.words[bytes.word() as usize % seed.words.len()]),
        };
        disk.patch(at, new.to_le_bytes());
    }
    disk
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let disk = damaged(&mut bytes);
    if let Some(file) = std::env::var_os("TREFOIL_FUZZ_DUMP") {
        std::fs::write(file, disk.content()).expect("the image can be written");
    }
    for read_only in [true, false, false] {
        let Ok(mut fs) = FileSystem::mount(&disk, options(read_only)) else {
            continue;
        };
        run(&mut fs, &disk, &mut bytes);
        let _ = fs.unmount();
    }
});
