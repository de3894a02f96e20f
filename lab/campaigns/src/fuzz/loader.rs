//! The loader of the kernel as a target: the very code, with memory of this process to load into.
//!
//! The damage is done before the image is signed (most of the time), so that it reaches what stands
//! behind the signature. What is loaded all the same must be within its space, with no page both
//! writable and executable.

use std::fs;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use anyhow::{Result, ensure};
use isolation::load::elf::{Elf, LARGEST_IMAGE};
use isolation::load::loader::{self, LoadError};
use isolation::load::verify::{Identity, set_identity};
use isolation::platform::{ImageSpace, PAGE, Protection};

use super::sample::{self, FINGERPRINT};
use super::{Numbers, Trial};
use trefoil_gate::project::Project;
use trefoil_gate::{build, keys};

/// Has the loader of this process believe [`sample::key`] and [`FINGERPRINT`].
pub fn identify() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let public_key = *sample::key().pk;
        set_identity(Box::leak(Box::new(Identity {
            fingerprint: FINGERPRINT,
            public_key,
        })));
    });
}

/// Image pages in this process, with a page before and behind that nobody may write.
struct Space {
    words: Box<[AtomicU64]>,
    protection: Mutex<Vec<Option<Protection>>>,
}

/// Words in a page.
const WORDS: usize = PAGE / 8;
/// What the pages around are filled with. The pages themselves hold something else, as if they had
/// been somebody's.
const GUARD: u64 = 0xa5a5_5a5a_a5a5_5a5a;

impl Space {
    fn new(pages: usize) -> Self {
        let mut words: Vec<AtomicU64> = Vec::new();
        words.resize_with((pages + 2) * WORDS, || AtomicU64::new(!GUARD));
        let space = Space {
            words: words.into_boxed_slice(),
            protection: Mutex::new(vec![None; pages]),
        };
        let guards = space.guards();
        guards.for_each(|word| word.store(GUARD, Ordering::Relaxed));
        space
    }

    fn guards(&self) -> impl Iterator<Item = &AtomicU64> {
        let end = self.words.len() - WORDS;
        self.words[..WORDS].iter().chain(&self.words[end..])
    }

    fn is_guarded(&self) -> bool {
        self.guards()
            .all(|word| word.load(Ordering::Relaxed) == GUARD)
    }
}

impl ImageSpace for Space {
    fn start(&self) -> NonNull<u8> {
        NonNull::from(&self.words[WORDS..]).cast()
    }

    fn pages(&self) -> usize {
        self.words.len() / WORDS - 2
    }

    fn protect(&self, first: usize, count: usize, protection: Protection) {
        let mut pages = self.protection.lock().expect("nobody panics with it");
        pages[first..first + count].fill(Some(protection));
    }
}

/// Loads `file` as the kernel would; what is wrong with the result is an error of the outer kind.
///
/// # Errors
/// Something that must not be: a write outside, a page without protection, a relocation not done.
pub fn load(file: &[u8]) -> Result<Result<(), LoadError>> {
    identify();
    let elf = match loader::verify(file) {
        Ok(elf) => elf,
        Err(error) => return Ok(Err(error)),
    };
    ensure!(elf.span() <= LARGEST_IMAGE, "it takes {} bytes", elf.span());
    let space = Space::new(loader::pages(&elf));
    loader::place(&elf, &space);
    ensure!(
        space.is_guarded(),
        "something was written outside of its pages"
    );
    look(&elf, &space)?;
    renew(&elf, &space)?;
    Ok(Ok(()))
}

/// Overwrites all that an instance could, and compares what the next one gets with what this one
/// got.
fn renew(elf: &Elf<'_>, space: &Space) -> Result<()> {
    let words = |page: usize| &space.words[(page + 1) * WORDS..(page + 2) * WORDS];
    let all = || (0..space.pages()).flat_map(words);
    let before: Vec<u64> = all().map(|word| word.load(Ordering::Relaxed)).collect();
    let pages = space.protection.lock().expect("nobody panics with it");
    let writable = |page: &usize| pages[*page] == Some(Protection::ReadWrite);
    let overwritten = (0..space.pages()).filter(writable).flat_map(words);
    overwritten.for_each(|word| word.store(!GUARD, Ordering::Relaxed));
    loader::renew(elf, space);
    ensure!(
        space.is_guarded(),
        "something was written outside of its pages when they were used again"
    );
    let same = all().map(|word| word.load(Ordering::Relaxed)).eq(before);
    ensure!(same, "an instance would find what a former one has written");
    Ok(())
}

/// Compares what was loaded with what the file says.
fn look(elf: &Elf<'_>, space: &Space) -> Result<()> {
    let pages = space.protection.lock().expect("nobody panics with it");
    for segment in elf.segments().iter().filter(|segment| segment.memory > 0) {
        let page = pages[segment.address as usize / PAGE];
        ensure!(page.is_some(), "a page of a segment has no protection");
        let is_wrong = segment.write && page == Some(Protection::ReadExecute)
            || !segment.execute && page == Some(Protection::ReadExecute)
            || !segment.write && page == Some(Protection::ReadWrite);
        ensure!(
            !is_wrong,
            "a page may be used otherwise than its segment says"
        );
    }
    let words = space.words[WORDS..]
        .iter()
        .map(|it| it.load(Ordering::Relaxed));
    ensure!(
        words
            .zip(expected(elf, space)?)
            .all(|(is, should)| is == should),
        "it is not what the file says"
    );
    Ok(())
}

/// What is to be in the pages: what the file says, and else zeros.
fn expected(elf: &Elf<'_>, space: &Space) -> Result<Vec<u64>> {
    let mut bytes = vec![0; space.pages() * PAGE];
    for segment in elf.segments() {
        let content = elf.content(segment);
        bytes[segment.address as usize..][..content.len()].copy_from_slice(content);
    }
    let base = space.start().as_ptr().addr() as u64;
    let mut words: Vec<u64> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|it| u64::from_le_bytes(*it))
        .collect();
    // The last one counts where there are several; they are aligned, so no two overlap in part.
    for relocation in elf.relocations() {
        let (place, value) = relocation.map_err(anyhow::Error::msg)?;
        words[place as usize / 8] = base + value;
    }
    Ok(words)
}

/// The target: the hand-made image and, if there is a project, its domains' images.
///
/// # Errors
/// If the project does not build.
pub fn start(project: Option<&Project>) -> Result<Trial> {
    let mut elves = vec![sample::elf()];
    if let Some(project) = project {
        build::build(project, None)?;
        for name in ["domains/victim", "domains/prober"] {
            let file = fs::read(project.images().join(name))?;
            let image = abi::image::Image::parse(&file);
            elves.extend(image.ok().map(|image| image.elf().to_vec()));
        }
    }
    Ok(Box::new(move |numbers| {
        let elf = numbers.one_of(&elves).clone();
        let outcome = load(&damaged(elf, numbers))?;
        Ok(match outcome {
            Ok(()) => "loaded".into(),
            Err(LoadError::Malformed(what)) => format!("refused: {what}"),
            Err(error) => format!("refused: {error:?}"),
        })
    }))
}

/// An image made of `elf`, damaged in one to four places, before or after it was signed.
fn damaged(mut elf: Vec<u8>, numbers: &mut Numbers) -> Vec<u8> {
    let damages = 1 + numbers.below(4);
    match numbers.below(8) {
        0 => {
            let mut image = sample::image(&elf);
            (0..damages).for_each(|_| damage(&mut image, numbers));
            image
        }
        1 => {
            let mut unsigned = sample::unsigned(&elf);
            (0..damages).for_each(|_| damage_head(&mut unsigned, numbers));
            keys::sign(&sample::key(), unsigned)
        }
        2 => {
            elf.truncate(numbers.below(elf.len()));
            sample::image(&elf)
        }
        _ => {
            (0..damages).for_each(|_| damage(&mut elf, numbers));
            sample::image(&elf)
        }
    }
}

/// A number that is likely to be at the edge of something.
fn edge(file: &[u8], numbers: &mut Numbers) -> u64 {
    let length = file.len() as u64;
    let base = *numbers.one_of(&[
        0,
        1,
        7,
        8,
        24,
        56,
        64,
        4096,
        0x1000,
        0x3000,
        length,
        LARGEST_IMAGE,
        1 << 31,
        1 << 32,
        1 << 47,
        1 << 63,
        u64::MAX,
    ]);
    match numbers.below(4) {
        0 => base.wrapping_sub(numbers.next() % 17),
        1 => base.wrapping_add(numbers.next() % 17),
        2 => numbers.next() >> numbers.below(64),
        _ => base,
    }
}

/// Damages the header of the image or one of its ports.
fn damage_head(file: &mut [u8], numbers: &mut Numbers) {
    let at = 8 + numbers.below(88 + 2 * 48 - 8);
    let width = 1 << numbers.below(4);
    let value = edge(file, numbers);
    put(file, at, value, width);
}

/// Damages one field of the ELF file, or anything.
fn damage(file: &mut [u8], numbers: &mut Numbers) {
    let value = edge(file, numbers);
    let (at, width) = match numbers.below(8) {
        0 => (numbers.below(64), 1 << numbers.below(4)),
        1..=3 => {
            let header = sample::HEADERS + numbers.below(12) * sample::HEADER;
            let field = *numbers.one_of(&[0usize, 4, 8, 16, 32, 40]);
            (header + field, if field < 8 { 4 } else { 8 })
        }
        4 => (dynamic(file).saturating_add(numbers.below(24) * 8), 8),
        5 => (relocations(file).saturating_add(numbers.below(12) * 8), 8),
        _ => (numbers.below(file.len()), 1 << numbers.below(4)),
    };
    put(file, at, value, width);
}

/// Writes as much of `value` as there is place for.
fn put(file: &mut [u8], at: usize, value: u64, width: usize) {
    let end = at.saturating_add(width).min(file.len());
    if at < end {
        sample::put(file, at, value, end - at);
    }
}

/// Where the dynamic section stands in the file, as far as it can be found.
fn dynamic(file: &[u8]) -> usize {
    let headers = (0..12).map(|index| sample::HEADERS + index * sample::HEADER);
    let mut found = headers.filter(|&at| file.get(at..at + 4) == Some(&[2, 0, 0, 0]));
    found
        .next()
        .and_then(|at| long(file, at.saturating_add(8)))
        .unwrap_or(sample::DYNAMIC)
}

/// Where the relocations stand in the file, as far as they can be found.
fn relocations(file: &[u8]) -> usize {
    let entries = (0..24).map(|index| dynamic(file).saturating_add(index * 16));
    let mut found = entries.filter(|&at| long(file, at) == Some(7));
    let address = found
        .next()
        .and_then(|at| long(file, at.saturating_add(8)))
        .unwrap_or(0);
    let headers = (0..12).map(|index| sample::HEADERS + index * sample::HEADER);
    let mut segments = headers.filter_map(|at| {
        let (offset, start, length) = (
            long(file, at.saturating_add(8))?,
            long(file, at + 16)?,
            long(file, at + 32)?,
        );
        let is_in = address >= start && address - start < length;
        is_in.then(|| offset.wrapping_add(address - start))
    });
    segments.next().unwrap_or(sample::RELOCATIONS)
}

fn long(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::image::SIGNATURE_LENGTH;

    #[test]
    fn the_sample_is_loaded() {
        let image = sample::image(&sample::elf());
        assert_eq!(load(&image).expect("well loaded"), Ok(()));
        assert!(image.len() > sample::LENGTH + SIGNATURE_LENGTH);
    }

    #[test]
    fn thousands_of_damaged_images_do_no_harm() {
        let summary = super::super::first(&super::super::TARGETS[0], 1, 3000).expect("started");
        assert!(summary.failures.is_empty(), "{summary}");
        // The damage must reach what stands behind the signature, and not all of it matters.
        assert!(summary.count("refused: Bad") < 600, "{summary}");
        assert!(summary.count("loaded") > 100, "{summary}");
    }
}
