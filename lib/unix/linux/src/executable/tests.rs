//! Files as compilers make them, and files as somebody makes them who wants to get in.

use super::*;

/// An entry of the table: kind, flags, offset, address, bytes in the file and in memory.
type Entry = [u64; 6];

const LOAD: u64 = PT_LOAD as u64;
const INTERP: u64 = PT_INTERP as u64;
const TEXT: Entry = [LOAD, 5, 0, 0x40_0000, 0x1800, 0x1800];
const DATA: Entry = [LOAD, 6, 0x1f00, 0x40_2f00, 0x200, 0x3000];

fn head(kind: u16, machine: u16, table: u64, entries: &[Entry]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [kind, machine, 1, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [0x40_0100, table, 0] {
        file.extend(u64::to_le_bytes(word));
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, entries.len() as u16, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    if table == 64 {
        file.extend(table_of(entries));
    }
    file
}

fn table_of(entries: &[Entry]) -> Vec<u8> {
    let mut table = Vec::new();
    for [kind, flags, offset, at, in_file, in_memory] in entries {
        table.extend((*kind as u32).to_le_bytes());
        table.extend((*flags as u32).to_le_bytes());
        for word in [*offset, *at, *at, *in_file, *in_memory, PAGE] {
            table.extend(word.to_le_bytes());
        }
    }
    table
}

fn nothing_else(_: u64, _: usize) -> Result<Vec<u8>, Error> {
    Err(EINVAL)
}

fn read(entries: &[Entry]) -> Result<Executable, Error> {
    Executable::new(&head(ET_DYN, EM_X86_64, 64, entries), nothing_else)
}

#[test]
fn segments_are_of_whole_pages_and_know_where_the_file_ends() {
    let program = read(&[TEXT, DATA]).expect("it is a program");
    assert!(program.is_movable);
    assert_eq!(program.entry, 0x40_0100);
    assert_eq!(program.headers, (0x40_0040, 2));
    assert_eq!(program.span(), (0x40_0000, 0x40_6000));
    let [text, data] = program.segments[..] else {
        panic!("{program:?}");
    };
    assert_eq!((text.start, text.end, text.page), (0x40_0000, 0x40_2000, 0));
    assert_eq!((text.bits, text.mapped_bytes()), (READ | EXECUTE, 0x2000));
    assert_eq!((data.start, data.end, data.page), (0x40_2000, 0x40_6000, 1));
    assert_eq!((data.content_end, data.mapped_bytes()), (0x40_3100, 0x2000));
    assert_eq!((data.bits, data.has_zeros), (READ | WRITE, true));
    assert!(!text.has_zeros);
    let moved = data.moved(0x1000_0000).expect("it fits");
    assert_eq!((moved.start, moved.page), (0x1040_2000, 1));
    assert_eq!(moved.mapped_bytes(), data.mapped_bytes());
    assert_eq!(data.moved(USER_END), Err(EINVAL));
    assert_eq!(data.moved(u64::MAX), Err(EINVAL));
}

/// Zeros alone take no page of the file, wherever they say that they begin there.
#[test]
fn a_segment_without_content_maps_no_file() {
    let program = read(&[TEXT, [LOAD, 6, 0x3000, 0x41_0000, 0, 0x5000]]).expect("it is a program");
    assert_eq!(program.segments[1].mapped_bytes(), 0);
}

#[test]
fn an_interpreter_is_named_once_and_has_none_itself() {
    let program = read(&[[INTERP, 4, 0x200, 0, 28, 28], TEXT, DATA]).expect("it is a program");
    assert_eq!(program.interpreter, Some((0x200, 28)));
    assert_eq!(program.as_interpreter(), Err(ELIBBAD));
    assert!(read(&[TEXT]).expect("one").as_interpreter().is_ok());
    assert_eq!(read(&[[INTERP, 4, 0, 0, 1, 1], TEXT]), Err(ENOEXEC));
    assert_eq!(read(&[[INTERP, 4, 0, 0, 5000, 5000], TEXT]), Err(ENOEXEC));
    assert_eq!(Executable::path_of(b"/lib/ld.so\0"), Ok(&b"/lib/ld.so"[..]));
    for wrong in [&b""[..], b"\0", b"/lib/ld.so", b"/lib\0/ld.so\0"] {
        assert_eq!(Executable::path_of(wrong), Err(ENOEXEC));
    }
}

#[test]
fn a_table_behind_the_first_bytes_is_read() {
    let file = head(ET_EXEC, EM_X86_64, 0x10_0000, &[TEXT, DATA]);
    let read = |at, count| {
        assert_eq!((at, count), (0x10_0000, 112));
        Ok(table_of(&[TEXT, DATA]))
    };
    let program = Executable::new(&file, read).expect("it is a program");
    assert!(!program.is_movable);
    // No segment has it, so the program does not find it.
    assert_eq!(program.headers, (0, 2));
    let short = |_, _| Ok(table_of(&[TEXT]));
    assert_eq!(Executable::new(&file, short), Err(ENOEXEC));
    assert_eq!(Executable::new(&file, nothing_else), Err(EINVAL));
}

#[test]
fn other_files_are_no_programs() {
    let of = |kind, machine| Executable::new(&head(kind, machine, 64, &[TEXT]), nothing_else);
    assert!(of(ET_EXEC, EM_X86_64).is_ok());
    assert_eq!(of(1, EM_X86_64), Err(ENOEXEC));
    assert_eq!(of(ET_EXEC, 183), Err(ENOEXEC));
    let whole = head(ET_EXEC, EM_X86_64, 64, &[TEXT]);
    for length in 0..HEADER {
        let cut = Executable::new(&whole[..length], nothing_else);
        assert_eq!(cut, Err(ENOEXEC), "{length} bytes");
    }
    for (at, byte) in [(4, 1), (5, 2), (54, 55), (56, 0)] {
        let mut file = whole.clone();
        file[at] = byte;
        assert_eq!(
            Executable::new(&file, nothing_else),
            Err(ENOEXEC),
            "byte {at}"
        );
    }
    assert_eq!(read(&[[2, 6, 0, 0x1000, 8, 8]]), Err(ENOEXEC));
    assert_eq!(read(&[[LOAD, 6, 0, 0x1000, 0, 0]]), Err(ENOEXEC));
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    for wrong in [
        // More in the file than in memory; places that do not fit each other.
        [LOAD, 6, 0, 0x41_0000, 9, 8],
        [LOAD, 6, 1, 0x41_0000, 8, 8],
        // Beyond all addresses, or around them.
        [LOAD, 6, 0, USER_END, 0, 1],
        [LOAD, 6, 0, USER_END - PAGE, 0, PAGE + 1],
        [LOAD, 6, 0, u64::MAX - 4095, 1, 4096],
        [LOAD, 6, 0, 0x41_0000, 1, u64::MAX],
        [LOAD, 6, u64::MAX - 4095, 0x41_0000, 4096, 4096],
        [LOAD, 6, i64::MAX as u64 - 4095, 0x41_0000, 4096, 4096],
        // In front of the one before, or over it.
        [LOAD, 6, 0, 0x1000, 8, 8],
        [LOAD, 6, 0, 0x40_1000, 8, 8],
    ] {
        assert_eq!(read(&[TEXT, wrong]), Err(ENOEXEC), "{wrong:x?}");
    }
}

#[test]
fn the_first_line_of_a_script_is_read_as_linux_reads_it() {
    let parts = |text: &'static [u8]| {
        let script = script(text).expect("it is right")?;
        Some((script.interpreter, script.argument.unwrap_or_default()))
    };
    assert_eq!(parts(b"\x7fELF"), None);
    assert_eq!(
        parts(b"#! /bin/sh\necho"),
        Some((&b"/bin/sh"[..], &b""[..]))
    );
    assert_eq!(
        parts(b"#!/bin/sh -e -u \n"),
        Some((&b"/bin/sh"[..], &b"-e -u"[..]))
    );
    assert_eq!(
        parts(b"#!\t/bin/awk\t-f"),
        Some((&b"/bin/awk"[..], &b"-f"[..]))
    );
    for wrong in [&b"#!"[..], b"#!\n/bin/sh", b"#!  \t \n"] {
        assert_eq!(script(wrong), Err(ENOEXEC));
    }
    let long = [b"#!/".to_vec(), b"x".repeat(300), b"\n".to_vec()].concat();
    assert_eq!(script(&long), Err(ENOEXEC));
    let cut = [b"#!/bin/sh ".to_vec(), b"x".repeat(300), b"\n".to_vec()].concat();
    let script = script(&cut).expect("its name is whole").expect("a script");
    assert_eq!(script.argument.map(<[u8]>::len), Some(FIRST_LINE - 10));
}
