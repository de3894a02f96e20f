//! Headers and control messages from memory that may be anything.

use super::*;
use crate::fake::Fake;
use crate::memory::{READ, WRITE};
use alloc::vec;

fn part(length: u64, level: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(level.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

#[test]
fn control_data_is_read_as_linux_reads_it() {
    let two = part(24, 1, 1, &[3, 0, 0, 0, 7, 0, 0, 0]);
    let sender = part(28, 1, 2, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    let other = part(20, 41, 50, &[1, 2, 3, 4]);
    let all = [&two[..], &other, &sender, &two].concat();
    let beside = Beside::from_bytes(&all).unwrap();
    assert_eq!(beside.rights, [3, 7, 3, 7]);
    let sender = beside.sender.unwrap();
    assert_eq!((sender.process, sender.user, sender.group), (1, 2, 3));
    // What is too short for a header is no part.
    let read = |bytes: &[u8]| Beside::from_bytes(bytes);
    assert_eq!(read(&[]), Ok(Beside::default()));
    assert_eq!(read(&[16; 15]), Ok(Beside::default()));
    for (bytes, error) in [
        (part(15, 1, 1, &[]), EINVAL),
        (part(0, 1, 1, &[]), EINVAL),
        (part(u64::MAX, 1, 1, &[]), EINVAL),
        (part(1 << 40, 1, 1, &[]), EINVAL),
        (part(25, 1, 1, &[0; 8]), EINVAL),
        (part(27, 1, 2, &[0; 16]), EINVAL),
        (part(16, 1, 3, &[]), EINVAL),
        (part(20, 1, 1, &[255; 4]), EBADF),
    ] {
        assert_eq!(read(&bytes), Err(error), "{bytes:?}");
    }
    let most = |count: usize| part((16 + 4 * count) as u64, 1, 1, &vec![0; 4 * count]);
    assert_eq!(read(&most(253)).unwrap().rights.len(), 253);
    assert_eq!(read(&most(254)), Err(EINVAL));
    assert_eq!(read(&[most(200), most(54)].concat()), Err(EINVAL));
}

#[test]
fn no_control_data_takes_long_or_reads_beyond_its_end() {
    let mut seed = 1_u64;
    for _ in 0..200_000 {
        let mut bytes = [0; 96];
        for byte in &mut bytes {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let small = (seed >> 60) as u8;
            *byte = if seed >> 40 & 3 == 0 {
                small * 4
            } else {
                small & 1
            };
        }
        let length = (seed >> 33) as usize % 97;
        if let Ok(beside) = Beside::from_bytes(&bytes[..length]) {
            assert!(beside.rights.len() <= 20);
        }
    }
}

#[test]
fn what_is_told_fits_and_says_if_it_does_not() {
    let mut told = Told::new(1000).unwrap();
    told.sender(Sender {
        process: 9,
        user: 8,
        group: 7,
    });
    assert_eq!(told.room_for_rights(3), 3);
    told.rights(&[1, 2, 3]);
    let (bytes, flags) = told.bytes();
    assert_eq!((bytes.len(), flags), (32 + 32, 0));
    let beside = Beside::from_bytes(bytes).unwrap();
    assert_eq!(beside.rights, [1, 2, 3]);
    assert_eq!(beside.sender.unwrap().process, 9);
    // The end of the last part is not filled where there is no room for that.
    let mut told = Told::new(20).unwrap();
    assert_eq!(told.room_for_rights(2), 1);
    told.rights(&[5]);
    let (bytes, flags) = told.bytes();
    assert_eq!((bytes.len(), flags), (20, MSG_CTRUNC));
    for room in 0..17 {
        let mut told = Told::new(room).unwrap();
        assert_eq!(told.room_for_rights(1), 0);
        assert_eq!(told.bytes(), (&[][..], MSG_CTRUNC));
    }
    let mut told = Told::new(20).unwrap();
    told.sender(Sender::default());
    let (bytes, flags) = told.bytes();
    assert_eq!((bytes.len(), bytes[0], flags), (20, 20, MSG_CTRUNC));
}

#[test]
fn headers_are_checked() {
    let space = Fake::default();
    space.map_zero(0x1000, 4096, READ | WRITE).unwrap();
    let with = |words: [u64; 7]| {
        crate::memory::write_words(&space, 0x1000, &words).unwrap();
        Header::read(&space, 0x1000)
    };
    let header = with([0x10, 200, 0x20, 3, 0x30, 40, 0]).unwrap();
    assert_eq!((header.name, header.name_length), (0x10, 128));
    assert_eq!((header.control, header.control_length), (0x30, 40));
    assert_eq!(with([0, 16, 0, 0, 0, 9, 0]).unwrap().name_length, 0);
    assert_eq!(with([0, 0, 0, 0, 0, 9, 0]).unwrap().control_length, 0);
    assert_eq!(with([1, 0xffff_ffff, 0, 0, 0, 0, 0]), Err(EINVAL));
    assert_eq!(with([1, 4, 0, 1025, 0, 0, 0]), Err(EMSGSIZE));
    let much = with([0, 0, 0, 0, 0x1000, 1 << 20, 0]).unwrap();
    assert_eq!(much.control(&space), Err(ENOBUFS));
    let far = with([0, 0, 0, 0, 0x5000, 16, 0]).unwrap();
    assert_eq!(far.control(&space), Err(crate::errno::EFAULT));
    let header = with([0x10, 5, 0, 0, 0x30, 40, 0]).unwrap();
    header.tell(&space, 6, 32, 8).unwrap();
    let words: [u64; 7] = read_words(&space, 0x1000).unwrap();
    assert_eq!([words[1], words[5], words[6]], [6, 32, 8]);
}
