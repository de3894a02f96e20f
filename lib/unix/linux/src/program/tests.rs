//! Programs that are as they should be, and others.

use super::*;
use crate::errno::{EFAULT, EINVAL};
use crate::fake::Fake;
use crate::memory::{read, read_text, read_word, read_words};

const START: u64 = 0x40_0000;
const HEADERS: usize = 64 + 2 * 56;

/// A segment: flags, offset in the file, address, bytes in the file and in memory.
type Segment = [u64; 5];

/// A file with two segments, the first of which begins with the file.
fn file(kind: u16, machine: u16, segments: [Segment; 2]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(kind.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for word in [START + HEADERS as u64, 64, 0] {
        file.extend(u64::to_le_bytes(word));
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 2, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for [flags, offset, at, in_file, in_memory] in segments {
        file.extend(1_u32.to_le_bytes());
        file.extend((flags as u32).to_le_bytes());
        for word in [offset, at, at, in_file, in_memory, PAGE] {
            file.extend(word.to_le_bytes());
        }
    }
    file.extend(b"code and data");
    file
}

const LENGTH: u64 = HEADERS as u64 + 13;
const CODE: Segment = [5, 0, START, LENGTH, LENGTH];
/// The last four bytes of the file, in the midst of a page, and zeros behind them to the next one.
const DATA: Segment = [6, LENGTH - 4, START + 0x1ffc, 4, 0x10];

fn load(file: &[u8], space: &Fake) -> Result<Begin, Error> {
    let arguments = [b"name".to_vec(), b"".to_vec()];
    Image::new(file)?.load(
        space,
        &Words {
            path: b"/bin/name",
            arguments: &arguments,
            environment: &[b"A=1".to_vec()],
            seed: &[7; 16],
        },
    )
}

#[test]
fn segments_are_where_they_belong_and_no_more_is_permitted() {
    let space = Fake::default();
    let begin = load(&file(2, 62, [CODE, DATA]), &space).expect("it is a program");
    assert_eq!(begin.entry, START + HEADERS as u64);
    assert_eq!(begin.layout, Layout::new(START + 3 * PAGE));
    let mut code = [0; 4];
    read(&space, begin.entry, &mut code).expect("it is there");
    assert_eq!(&code, b"code");
    let mut data = [1; 8];
    read(&space, START + 0x1ffc, &mut data).expect("it is there");
    assert_eq!(&data, b"data\0\0\0\0");
    assert_eq!(space.bits(START), Some(READ | EXECUTE));
    assert_eq!(space.bits(START + PAGE), Some(READ | WRITE));
    assert_eq!(space.bits(START + 2 * PAGE), Some(READ | WRITE));
    assert_eq!(space.bits(begin.stack), Some(READ | WRITE));
}

/// As the program sees it: a count, arguments, environment, and pairs that end with zero.
#[test]
fn a_stack_has_all_words() {
    let space = Fake::default();
    let begin = load(&file(2, 62, [CODE, DATA]), &space).expect("it is a program");
    assert!(begin.stack.is_multiple_of(16));
    let [count, name, empty, end, variable, last] =
        read_words(&space, begin.stack).expect("it is there");
    assert_eq!((count, end, last), (2, 0, 0));
    let text = |at| read_text(&space, at).expect("it is there");
    assert_eq!(
        [text(name), text(empty), text(variable)],
        [b"name".to_vec(), Vec::new(), b"A=1".to_vec()]
    );
    let mut pairs = Vec::new();
    for at in (begin.stack + 48..).step_by(16) {
        let [kind, value] = read_words(&space, at).expect("it is there");
        pairs.push((kind, value));
        if kind == 0 {
            break;
        }
    }
    let value = |wanted| {
        pairs
            .iter()
            .find(|(kind, _)| *kind == wanted)
            .map(|it| it.1)
    };
    assert_eq!(value(3), Some(START + 64));
    assert_eq!(
        (value(4), value(5), value(6)),
        (Some(56), Some(2), Some(PAGE))
    );
    assert_eq!(value(9), Some(begin.entry));
    assert_eq!(text(value(31).expect("a path")), b"/bin/name");
    assert_eq!(
        read_word(&space, value(25).expect("a seed")),
        Ok(u64::from_le_bytes([7; 8]))
    );
}

#[test]
fn what_is_no_static_program_is_refused() {
    let of = |kind, machine| load(&file(kind, machine, [CODE, DATA]), &Fake::default());
    assert!(of(2, 62).is_ok());
    assert_eq!(of(3, 62), Err(ENOEXEC));
    assert_eq!(of(2, 183), Err(ENOEXEC));
    let whole = file(2, 62, [CODE, DATA]);
    for length in 0..HEADERS {
        let begin = load(&whole[..length], &Fake::default());
        assert_eq!(begin, Err(ENOEXEC), "{length} bytes");
    }
    assert_eq!(load(b"#!/bin/sh\n", &Fake::default()), Err(ENOEXEC));
}

/// Headers that a hostile author has written: content behind the end of the file, more of it than
/// memory, addresses beyond all, of nobody, or twice.
#[test]
fn segments_that_contradict_are_refused() {
    let with = |data| load(&file(2, 62, [CODE, data]), &Fake::default());
    for (data, why) in [
        ([6, LENGTH, START + 0x2000, 1, 1], ENOEXEC),
        ([6, u64::MAX, START + 0x2000, 4, 4], ENOEXEC),
        ([6, 0, START + 0x2000, 4, 3], ENOEXEC),
        ([6, 0, START + 0x2000, 0, 0], ENOEXEC),
        ([6, 0, u64::MAX, 4, 4], ENOEXEC),
        ([6, 0, u64::MAX - 4, 1, 4], ENOEXEC),
        (
            [6, 0, START + 0x2000, 0, u64::MAX - START - 0x2000],
            ENOEXEC,
        ),
        ([6, 0, 1 << 47, 4, 4], EINVAL),
        ([6, 0, 0xffff_8000_0000_0000, 4, 4], EINVAL),
        (CODE, EINVAL),
    ] {
        assert_eq!(with(data), Err(why), "{data:x?}");
    }
}

/// More words than a stack has room for do not get there; nothing else is written over.
#[test]
fn words_that_do_not_fit_are_refused() {
    let (file, space) = (file(2, 62, [CODE, DATA]), Fake::default());
    let words = Words {
        path: b"",
        arguments: &[alloc::vec![b'x'; STACK as usize]],
        environment: &[],
        seed: &[0; 16],
    };
    let image = Image::new(&file).expect("it is a program");
    assert_eq!(image.load(&space, &words), Err(EFAULT));
}
