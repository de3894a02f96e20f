//! Copies between objects and programs.

use super::*;
use crate::vmo::object::MOST_BYTES;

/// The memory of a program, from address 0 on.
pub struct Program {
    bytes: Mutex<Vec<u8>>,
    /// What begins here it may not access now.
    end: AtomicU64,
}

impl Program {
    fn new(bytes: Vec<u8>) -> Self {
        let end = AtomicU64::new(bytes.len() as u64);
        let bytes = Mutex::new(bytes);
        Program { bytes, end }
    }

    fn count(&self, at: u64, count: usize) -> usize {
        let end = self.end.load(Ordering::Relaxed);
        end.saturating_sub(at).min(count as u64) as usize
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> usize {
        let count = self.count(at, bytes.len());
        let mut own = self.bytes.lock().expect("no test ended");
        own.iter_mut()
            .skip(at as usize)
            .zip(&bytes[..count])
            .for_each(|(own, byte)| *own = *byte);
        count
    }

    pub fn read(&self, at: u64, bytes: &mut [u8]) -> usize {
        let count = self.count(at, bytes.len());
        let own = self.bytes.lock().expect("no test ended");
        own.iter()
            .skip(at as usize)
            .zip(&mut bytes[..count])
            .for_each(|(own, byte)| *byte = *own);
        count
    }

    fn run(&self, address: u64, count: usize) -> Run<'_, Program> {
        Run {
            program: self,
            address,
            count,
        }
    }
}

fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

fn is_dirty(object: &Object, page: u64) -> bool {
    object.tags(page).expect("it is within").dirty
}

#[test]
fn what_goes_from_a_program_comes_back() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 8, VmoFill::Zero);
    let count = 3 * PAGE as usize;
    let from = Program::new(pattern(count));
    assert_eq!(object.write_from(PAGE - 64, from.run(0, count)), Ok(count));
    let dirty: Vec<_> = (0..8).map(|page| is_dirty(&object, page)).collect();
    assert_eq!(dirty, [true, true, true, true, false, false, false, false]);
    let all = 4 * PAGE as usize;
    let to = Program::new(std::vec![1; 2 * all]);
    // Who reads brings no page.
    assert_eq!(object.read_to(0, to.run(0, 2 * all)), Ok(all));
    assert_eq!(object.info().pages, 4);
    let absent = Err(MemoryError::Absent);
    assert_eq!(object.read_to(all as u64, to.run(0, all)), absent);
    let seen = to.bytes.lock().expect("no test ended");
    let (before, behind) = (PAGE as usize - 64, PAGE as usize - 64 + count);
    assert!(seen[..before].iter().all(|byte| *byte == 0));
    assert_eq!(seen[before..behind], pattern(count));
    assert!(seen[behind..all].iter().all(|byte| *byte == 0));
    assert!(seen[all..].iter().all(|byte| *byte == 1));
}

#[test]
fn a_copy_ends_where_the_program_does() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 4, VmoFill::Zero);
    let program = Program::new(pattern(2 * PAGE as usize));
    for end in [0, 8, PAGE - 8, PAGE, PAGE + 8] {
        object.cut(0, 4).expect("it is not sealed");
        program.end.store(end, Ordering::Relaxed);
        let run = program.run(0, 2 * PAGE as usize);
        let right = match end {
            0 => Err(MemoryError::Unready),
            end => Ok(end as usize),
        };
        assert_eq!(object.write_from(0, run), right, "from it, end {end}");
        // Nothing but what was written to is dirty.
        let pages: Vec<_> = (0..3).map(|page| is_dirty(&object, page)).collect();
        assert_eq!(pages, [end > 0, end > PAGE, false], "end {end}");
        // Of those pages alone: the others are absent.
        put(&object, 0, 1).expect("there is memory");
        put(&object, 1, 1).expect("there is memory");
        assert_eq!(object.read_to(0, run), right, "to it, end {end}");
    }
}

#[test]
fn wrong_numbers_and_states_are_errors() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 2, VmoFill::Load);
    let program = Program::new(pattern(4 * PAGE as usize));
    let all = program.run(0, 4 * PAGE as usize);
    for offset in [2 * PAGE, u64::MAX, u64::MAX - 8 * PAGE, 1 << 63] {
        let beyond = Err(MemoryError::Beyond);
        assert_eq!(object.read_to(offset, all), beyond, "at {offset:#x}");
        assert_eq!(object.write_from(offset, all), beyond, "at {offset:#x}");
        assert_eq!(object.fill_from(offset, all), beyond, "at {offset:#x}");
    }
    assert_eq!(object.read_to(u64::MAX, program.run(0, 0)), Ok(0));
    assert_eq!(object.read_to(0, all), Err(MemoryError::Absent));
    assert_eq!(object.write_from(0, all), Err(MemoryError::Absent));
    assert_eq!(object.fill_from(0, all), Err(MemoryError::Absent));
    object.load(&purse, 0, 1).expect("there is memory");
    assert_eq!(object.read_to(0, all), Err(MemoryError::Loading));
    assert_eq!(object.write_from(0, all), Err(MemoryError::Loading));
    // Only the page that is being loaded is filled, and as far as the program goes.
    program.end.store(800, Ordering::Relaxed);
    assert_eq!(object.fill_from(0, all), Ok(800));
    program.end.store(4 * PAGE, Ordering::Relaxed);
    assert_eq!(object.fill_from(0, all), Ok(PAGE as usize));
    assert_eq!(object.loaded(0, 1), Ok(1));
    assert_eq!(object.fill_from(0, all), Err(MemoryError::Present));
    assert_eq!(object.read_to(8, all), Ok(PAGE as usize - 8));
    object.seal().expect("nobody writes");
    assert_eq!(object.write_from(0, all), Err(MemoryError::Sealed));
    assert_eq!(object.fill_from(0, all), Err(MemoryError::Sealed));
    assert_eq!(object.read_to(0, all), Ok(PAGE as usize));
    const { assert!(MOST_BYTES == 2 << 20) };
}

/// Before a frame is counted for who uses page 0, its leaf has become others' pages.
#[test]
fn a_leaf_that_is_others_by_now_is_looked_up_again() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    for reads in [true, false] {
        let object = Arc::new(object(memory, &purse, 1000, VmoFill::Zero));
        put(&object, 0, 1).expect("there is memory");
        let other = object.clone();
        let swap = move || {
            other.cut(0, 1).expect("it is not sealed");
            put(&other, 64, 2).expect("there is memory");
        };
        *memory.0.before_share.lock().expect("no test ended") = Some(Box::new(swap));
        let program = Program::new(3_u64.to_le_bytes().to_vec());
        if reads {
            let absent = Err(MemoryError::Absent);
            assert_eq!(object.read_to(0, program.run(0, 8)), absent);
            assert_eq!(word(&object, 0), Ok(0));
        } else {
            assert_eq!(object.write_from(0, program.run(0, 8)), Ok(8));
            assert_eq!(word(&object, 0), Ok(3));
        }
        let seen = program.bytes.lock().expect("no test ended").clone();
        assert_eq!(seen, 3_u64.to_le_bytes(), "the program has changed");
        assert_eq!(word(&object, 64), Ok(2));
    }
}

/// What was copied while the page was cut off counts as not written, and is written again.
#[test]
fn what_goes_to_a_page_that_is_cut_off_is_written_to_the_next() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = Arc::new(object(memory, &purse, 10, VmoFill::Zero));
    put(&object, 0, 1).expect("there is memory");
    let (stop, other) = (Arc::new(AtomicBool::new(false)), object.clone());
    let stopped = stop.clone();
    let cutter = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            other.cut(0, 1).expect("it is not sealed");
        }
    });
    let program = Program::new(7_u64.to_le_bytes().to_vec());
    for _ in 0..20_000 {
        assert_eq!(object.write_from(0, program.run(0, 8)), Ok(8));
        let seen = word(&object, 0).expect("it is there or zeros");
        assert!(seen == 7 || seen == 0, "{seen}");
    }
    stop.store(true, Ordering::Relaxed);
    cutter.join().expect("it ends");
    object.write_from(0, program.run(0, 8)).expect("it can");
    assert_eq!(word(&object, 0), Ok(7));
    assert!(is_dirty(&object, 0));
}
