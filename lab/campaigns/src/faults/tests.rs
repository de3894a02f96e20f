//! What a campaign reads from the lines of a kernel.

use super::*;

#[test]
fn what_is_no_image_has_no_instructions() {
    assert!(instructions(b"").is_err());
    assert!(instructions(&[0; 4096]).is_err());
}

#[test]
fn instructions_are_found_and_padding_is_not() {
    // push rbp; mov rbp, rsp; nop; int3; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x90, 0xcc, 0xc3];
    let file = elf_with(&code);
    let image = abi::image::unsigned("test", &[0; 32], &[], &file);
    let mut signed = image.clone();
    signed.extend([0; abi::image::SIGNATURE_LENGTH]);
    let found = instructions(&signed).or_else(|_| instructions(&image));
    let found: Vec<_> = found
        .expect("an image")
        .iter()
        .map(|one| (one.place, one.length))
        .collect();
    assert_eq!(found, [(0x1000, 1), (0x1001, 3), (0x1006, 1)]);
}

#[test]
fn a_leak_goes_on_and_a_moment_passes() {
    let lines = |samples: &[(u64, u64)]| {
        let line = |&(free, heap): &(u64, u64)| serde_json::json!({ "free": free, "heap": heap });
        samples.iter().map(line).collect::<Vec<_>>()
    };
    let grown = lines(&[(90, 10), (80, 12), (80, 12), (80, 12), (80, 12), (80, 12)]);
    assert!(!has_leaked(&grown));
    let moment = lines(&[(80, 12), (80, 12), (80, 12), (80, 12), (80, 12), (70, 13)]);
    assert!(!has_leaked(&moment));
    let memory = lines(&[(80, 12), (79, 12), (78, 12), (77, 12), (76, 12), (75, 12)]);
    assert!(has_leaked(&memory));
    let heap = lines(&[(80, 12), (80, 13), (80, 14), (80, 15), (80, 16), (80, 17)]);
    assert!(has_leaked(&heap));
    assert!(!has_leaked(&lines(&[(80, 12)])));
}

/// An ELF file with one executable segment at 0x1000.
fn elf_with(code: &[u8]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(3u16.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    [0x1000u64, 64, 0]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(0u32.to_le_bytes());
    [64u16, 56, 1, 64, 0, 0]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(1u32.to_le_bytes());
    file.extend(5u32.to_le_bytes());
    let length = code.len() as u64;
    [120u64, 0x1000, 0x1000, length, length, 0x1000]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(code);
    file
}
