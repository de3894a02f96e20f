//! Images that must not load: each damage by itself, signed as if it came from the build, and the
//! reason that the kernel's loader gives.

use abi::image::{MOST_PORTS, PORT_LENGTH, Port, SIGNATURE_LENGTH};
use ed25519_compact::{KeyPair, Seed};
use isolation::load::loader::LoadError;
use lab::fuzz::loader::load;
use lab::fuzz::sample::{
    self, COUNT, DYNAMIC, ENTRY, FINGERPRINT, HEADER, HEADERS, LENGTH, RELOCATIONS, put,
};
use trefoil_gate::keys;

fn answer(file: &[u8]) -> Result<(), LoadError> {
    load(file).expect("the loader did what it must not")
}

/// The answer to the ELF file with these changes: place, value, width.
fn changed(changes: &[(usize, u64, usize)]) -> Result<(), LoadError> {
    let mut elf = sample::elf();
    for &(at, value, width) in changes {
        put(&mut elf, at, value, width);
    }
    answer(&sample::image(&elf))
}

/// The place of a field of program header `index`.
const fn header(index: usize, field: usize) -> usize {
    HEADERS + index * HEADER + field
}

const FLAGS: usize = 4;
const OFFSET: usize = 8;
const ADDRESS: usize = 16;
const IN_FILE: usize = 32;
const IN_MEMORY: usize = 40;
/// More than any image may take.
const GIANT: u64 = u64::MAX;

/// Tests that change fields of the ELF file and expect it to be refused for a reason.
macro_rules! refused {
    ($($name:ident: [$(($at:expr, $value:expr, $width:expr)),+], $reason:literal;)+) => {
        $(#[test]
        fn $name() {
            assert_eq!(changed(&[$(($at, $value, $width)),+]), Err(LoadError::Malformed($reason.into())));
        })+
    };
}

refused! {
    // The ELF header, field by field.
    elf_wrong_magic: [(0, 0x7f, 4)], "not a 64-bit little-endian ELF file";
    elf_of_32_bits: [(4, 1, 1)], "not a 64-bit little-endian ELF file";
    elf_big_endian: [(5, 2, 1)], "not a 64-bit little-endian ELF file";
    elf_of_another_version: [(6, 2, 1)], "not a 64-bit little-endian ELF file";
    elf_at_a_fixed_place: [(16, 2, 2)], "not a position-independent x86-64 program";
    elf_object_file: [(16, 1, 2)], "not a position-independent x86-64 program";
    elf_for_another_processor: [(18, 183, 2)], "not a position-independent x86-64 program";
    entry_behind_the_code: [(24, 0x1000, 8)], "entry point outside the code";
    entry_in_the_data: [(24, 0x1800, 8)], "entry point outside the code";
    entry_outside_of_everything: [(24, GIANT, 8)], "entry point outside the code";
    headers_outside_the_file: [(32, LENGTH as u64, 8)], "header outside the file";
    headers_at_the_end_of_numbers: [(32, GIANT - 20, 8)], "header outside the file";
    headers_of_another_size: [(54, 32, 2)], "program header of the wrong size";
    headers_none: [(56, 0, 2)], "nothing to load";
    headers_more_than_there_are: [(32, (LENGTH - 2 * HEADER) as u64, 8), (56, 0xffff, 2)], "header outside the file";

    // Segments.
    segments_none: [(header(0, 0), 6, 4), (header(1, 0), 6, 4), (header(2, 0), 6, 4)], "nothing to load";
    segment_writable_and_executable: [(header(1, FLAGS), 7, 4)], "a segment is both writable and executable";
    segments_on_one_page: [(header(1, ADDRESS), 0x0fff, 8)], "segments overlap or share a page";
    segments_overlap: [(header(1, ADDRESS), 0x800, 8)], "segments overlap or share a page";
    segments_the_same: [(header(2, ADDRESS), 0x1000, 8)], "segments overlap or share a page";
    segments_in_the_wrong_order: [(header(0, ADDRESS), 0x8000, 8)], "segments overlap or share a page";
    segment_behind_the_file: [(header(1, OFFSET), LENGTH as u64, 8)], "a segment lies outside the file";
    segment_across_the_end_of_the_file: [(header(2, OFFSET), 0x2800, 8)], "a segment lies outside the file";
    segment_offset_overflows: [(header(1, OFFSET), GIANT, 8)], "a segment lies outside the file";
    segment_offset_and_length_overflow: [(header(1, OFFSET), GIANT - 0xfff, 8)], "a segment lies outside the file";
    segment_of_giant_length: [(header(1, IN_FILE), GIANT, 8)], "a segment lies outside the file";
    segment_longer_in_the_file_than_in_memory: [(header(1, IN_MEMORY), 0xfff, 8)], "a segment lies outside the file";
    segment_of_giant_memory: [(header(2, IN_MEMORY), GIANT, 8)], "the image is too large";
    segment_at_a_giant_address: [(header(2, ADDRESS), GIANT, 8)], "the image is too large";
    segment_address_and_length_overflow: [(header(2, ADDRESS), GIANT - 0xfff, 8)], "the image is too large";
    segment_just_too_large: [(header(2, IN_MEMORY), (64 << 20) - 0x3000 + 1, 8)], "the image is too large";
    segments_too_many: [
        (32, 0x1400, 8), (56, 9, 2),
        (0x1400, 1, 4), (0x1400 + 16, 0, 8),
        (0x1438, 1, 4), (0x1438 + 16, 0x1000, 8),
        (0x1470, 1, 4), (0x1470 + 16, 0x2000, 8),
        (0x14a8, 1, 4), (0x14a8 + 16, 0x3000, 8),
        (0x14e0, 1, 4), (0x14e0 + 16, 0x4000, 8),
        (0x1518, 1, 4), (0x1518 + 16, 0x5000, 8),
        (0x1550, 1, 4), (0x1550 + 16, 0x6000, 8),
        (0x1588, 1, 4), (0x1588 + 16, 0x7000, 8),
        (0x15c0, 1, 4), (0x15c0 + 16, 0x8000, 8)
    ], "too many segments";

    // Other program headers.
    needs_a_dynamic_linker: [(header(4, 0), 3, 4)], "needs a dynamic linker";
    has_thread_local_storage: [(header(4, 0), 7, 4)], "has thread-local storage";
    relro_outside: [(header(4, IN_MEMORY), 0x4000, 8)], "RELRO outside the image";
    relro_far_outside: [(header(4, ADDRESS), 1 << 40, 8)], "RELRO outside the image";
    relro_overflows: [(header(4, IN_MEMORY), GIANT, 8)], "RELRO too large";

    // The dynamic section.
    dynamic_section_outside: [(header(3, ADDRESS), 0x9000, 8)], "dynamic section outside the file";
    dynamic_section_in_the_zeros: [(header(3, ADDRESS), 0x2800, 8)], "dynamic section outside the file";
    dynamic_section_overflows: [(header(3, ADDRESS), GIANT - 8, 8)], "dynamic section outside the file";
    dynamic_section_without_end: [(header(3, ADDRESS), 0x1ff8, 8)], "dynamic section outside the file";
    needs_a_library: [(DYNAMIC, 1, 8)], "needs a shared library";
    relocations_in_the_code: [(DYNAMIC, 22, 8)], "has relocations in its code";
    relocations_with_implicit_addends: [(DYNAMIC, 17, 8)], "has relocations of another form";
    relocations_of_a_linkage_table: [(DYNAMIC, 23, 8)], "has relocations of another form";
    relocations_packed: [(DYNAMIC, 36, 8)], "has relocations of another form";
    relocations_of_another_size: [(DYNAMIC + 40, 16, 8)], "relocations of the wrong size";
    relocation_table_outside: [(DYNAMIC + 8, 0x9000, 8)], "relocation table outside the file";
    relocation_table_at_the_end_of_numbers: [(DYNAMIC + 8, GIANT - 47, 8)], "relocation table outside the file";
    relocation_table_too_long: [(DYNAMIC + 24, 0x1001, 8)], "relocation table outside the file";
    relocation_table_of_giant_length: [(DYNAMIC + 24, GIANT, 8)], "relocation table outside the file";

    // Relocations.
    relocation_of_another_type: [(RELOCATIONS + 8, 1, 8)], "relocation of an unknown type";
    relocation_by_a_function: [(RELOCATIONS + 8, 37, 8)], "relocation of an unknown type";
    relocation_in_the_code: [(RELOCATIONS, 0x900, 8)], "relocation outside the writable part";
    relocation_in_the_tables: [(RELOCATIONS, 0x3000, 8)], "relocation outside the writable part";
    relocation_behind_the_image: [(RELOCATIONS, 0x4000, 8)], "relocation outside the writable part";
    relocation_far_outside: [(RELOCATIONS, GIANT - 7, 8)], "relocation outside the writable part";
    relocation_not_aligned: [(RELOCATIONS, 0x1201, 8)], "relocation at a place that is not aligned";
    relocation_across_the_end: [(RELOCATIONS, 0x2ffc, 8)], "relocation at a place that is not aligned";
    relocation_to_outside: [(RELOCATIONS + 16, 0x4001, 8)], "relocation to outside the image";
    relocation_to_far_outside: [(RELOCATIONS + 16, GIANT, 8)], "relocation to outside the image";
}

#[test]
fn the_sample_itself_loads() {
    assert_eq!(changed(&[(24, ENTRY, 8)]), Ok(()));
}

#[test]
fn every_length_class_is_refused() {
    let whole = sample::image(&sample::elf());
    let ends = [0, 1, 7, 8, 79, 80, 87, 88, 88 + PORT_LENGTH, 151, 152, 1000];
    let ends = ends
        .into_iter()
        .chain([whole.len() / 2, whole.len() - SIGNATURE_LENGTH]);
    for end in ends.chain([whole.len() - 1]) {
        let error = answer(&whole[..end]);
        let expected = matches!(error, Err(LoadError::NotAnImage | LoadError::WrongLength));
        assert!(expected, "{end} bytes: {error:?}");
    }
}

#[test]
fn every_length_of_the_program_is_refused_or_loads_whole() {
    // Cut at every multiple of 61 and signed: all that is cut off belongs to some segment.
    let elf = sample::elf();
    for end in (0..LENGTH).step_by(61) {
        assert!(answer(&sample::image(&elf[..end])).is_err(), "{end} bytes");
    }
}

#[test]
fn something_behind_is_refused() {
    let mut longer = sample::image(&sample::elf());
    longer.push(0);
    assert_eq!(answer(&longer), Err(LoadError::WrongLength));
}

/// The image with this byte of its own header set, signed.
fn with_byte(at: usize, value: u8) -> Result<(), LoadError> {
    let mut unsigned = sample::unsigned(&sample::elf());
    unsigned[at] = value;
    answer(&keys::sign(&sample::key(), unsigned))
}

#[test]
fn every_field_of_the_header_garbled() {
    for (at, what) in [
        (0, LoadError::NotAnImage),
        (7, LoadError::NotAnImage),
        (8, LoadError::Malformed("port count".into())),
        (11, LoadError::Malformed("port count".into())),
        (12, LoadError::WrongLength),
        (15, LoadError::WrongLength),
        (16, LoadError::WrongFingerprint),
        (47, LoadError::WrongFingerprint),
        (80, LoadError::Malformed("port count".into())),
        (83, LoadError::Malformed("port count".into())),
        (84, LoadError::Malformed("reserved field".into())),
        (87, LoadError::Malformed("reserved field".into())),
        // The flags of a port, and what is reserved behind them.
        (88 + 40, LoadError::Malformed("port".into())),
        (88 + 43, LoadError::Malformed("port".into())),
        (88 + 44, LoadError::Malformed("port".into())),
        (88 + 47, LoadError::Malformed("port".into())),
    ] {
        assert_eq!(with_byte(at, 0xee), Err(what), "byte {at}");
    }
}

#[test]
fn names_that_are_none() {
    for (at, value) in [
        (48, 0),
        (48, 0xff),
        (49, b'\n'),
        (49, 0x1b),
        (48 + 31, b'x'),
    ] {
        let answer = with_byte(at, value);
        assert_eq!(
            answer,
            Err(LoadError::Malformed("name".into())),
            "{value} at {at}"
        );
    }
    for (at, value) in [(88, 0), (88, 0xff), (89, 7), (88 + 31, b'x')] {
        let answer = with_byte(at, value);
        assert_eq!(
            answer,
            Err(LoadError::Malformed("port".into())),
            "{value} at {at}"
        );
    }
}

#[test]
fn ports_more_than_there_may_be() {
    let elf = sample::elf();
    let port = Port {
        name: "a",
        interface: 1,
        flags: 0,
    };
    let mut unsigned = abi::image::unsigned("a", &FINGERPRINT, &[port; MOST_PORTS], &elf);
    put(&mut unsigned, 80, MOST_PORTS as u64 + 1, 4);
    put(
        &mut unsigned,
        8,
        (88 + (MOST_PORTS + 1) * PORT_LENGTH) as u64,
        4,
    );
    let answer = answer(&keys::sign(&sample::key(), unsigned));
    assert_eq!(answer, Err(LoadError::Malformed("port count".into())));
}

#[test]
fn not_signed() {
    let mut image = sample::image(&sample::elf());
    let end = image.len() - SIGNATURE_LENGTH;
    image[end..].fill(0);
    assert_eq!(answer(&image), Err(LoadError::BadSignature));
}

#[test]
fn signed_by_another_key() {
    let stranger = KeyPair::from_seed(Seed::new([43; 32]));
    let image = keys::sign(&stranger, sample::unsigned(&sample::elf()));
    assert_eq!(answer(&image), Err(LoadError::BadSignature));
}

#[test]
fn signature_of_another_image() {
    let mut image = sample::image(&sample::elf());
    let mut elf = sample::elf();
    elf[0x900] = 1;
    let other = sample::image(&elf);
    let end = image.len() - SIGNATURE_LENGTH;
    image[end..].copy_from_slice(&other[end..]);
    assert_eq!(answer(&image), Err(LoadError::BadSignature));
}

#[test]
fn every_bit_of_the_signature_counts() {
    let image = sample::image(&sample::elf());
    for bit in 0..SIGNATURE_LENGTH * 8 {
        let mut flipped = image.clone();
        let at = image.len() - SIGNATURE_LENGTH + bit / 8;
        flipped[at] ^= 1 << (bit % 8);
        assert_eq!(answer(&flipped), Err(LoadError::BadSignature), "bit {bit}");
    }
}

#[test]
fn of_other_interfaces_or_another_compiler() {
    // Both are part of the fingerprint; so is each of its bits.
    for bit in 0..256 {
        let mut fingerprint = FINGERPRINT;
        fingerprint[bit / 8] ^= 1 << (bit % 8);
        let unsigned = abi::image::unsigned("a", &fingerprint, &[], &sample::elf());
        let answer = answer(&keys::sign(&sample::key(), unsigned));
        assert_eq!(answer, Err(LoadError::WrongFingerprint), "bit {bit}");
    }
}

#[test]
fn all_program_headers_are_looked_at() {
    // The last one of many, so that none is passed over.
    assert_eq!(
        changed(&[(56, COUNT as u64, 2), (header(COUNT - 1, 0), 7, 4)]),
        Err(LoadError::Malformed("has thread-local storage".into()))
    );
}
