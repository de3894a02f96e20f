//! A small well-formed domain image, made by hand, and the places of its fields: to be damaged.
//!
//! ```text
//! file            address         what
//! 0x0000-0x0fff   0x0000-0x0fff   ELF header, program headers, code (read, execute)
//! 0x1000-0x1fff   0x1000-0x2fff   data, dynamic section at 0x1100, zeros behind (read, write)
//! 0x2000-0x2fff   0x3000-0x3fff   two relocations (read)
//! ```

use abi::image::{PORT_OFFER, Port};
use ed25519_compact::{KeyPair, Seed};

use trefoil_gate::keys;

/// Length of the ELF file.
pub const LENGTH: usize = 0x3000;
/// Where the program headers start; each has [`HEADER`] bytes.
pub const HEADERS: usize = 64;
/// Bytes of a program header.
pub const HEADER: usize = 56;
/// How many there are: code, data, relocations, dynamic section, RELRO.
pub const COUNT: usize = 5;
/// Where the dynamic section starts.
pub const DYNAMIC: usize = 0x1100;
/// Where the relocations start, in the file.
pub const RELOCATIONS: usize = 0x2000;
/// Address of the entry point.
pub const ENTRY: u64 = 0x800;
/// The fingerprint of the kernel that it is for.
pub const FINGERPRINT: [u8; 32] = [7; 32];

/// The key that the kernel of the tests believes.
pub fn key() -> KeyPair {
    KeyPair::from_seed(Seed::new([42; 32]))
}

/// Writes `value` in `width` bytes.
pub fn put(file: &mut [u8], at: usize, value: u64, width: usize) {
    file[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// The ELF file.
pub fn elf() -> Vec<u8> {
    let mut file = vec![0; LENGTH];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, value, width) in [
        (16, 3, 2),
        (18, 62, 2),
        (20, 1, 4),
        (24, ENTRY, 8),
        (32, HEADERS as u64, 8),
        (52, 64, 2),
        (54, HEADER as u64, 2),
        (56, COUNT as u64, 2),
    ] {
        put(&mut file, at, value, width);
    }
    // Kind, flags, offset, address, length in the file and in memory.
    let headers = [
        [1, 5, 0, 0, 0x1000, 0x1000],
        [1, 6, 0x1000, 0x1000, 0x1000, 0x2000],
        [1, 4, 0x2000, 0x3000, 0x1000, 0x1000],
        [2, 6, 0x1100, 0x1100, 0x40, 0x40],
        [0x6474_e552, 4, 0x1000, 0x1000, 0x1000, 0x1000],
    ];
    for (index, [kind, flags, offset, address, length, memory]) in headers.into_iter().enumerate() {
        let at = HEADERS + index * HEADER;
        for (field, value, width) in [
            (0, kind, 4),
            (4, flags, 4),
            (8, offset, 8),
            (16, address, 8),
            (24, address, 8),
            (32, length, 8),
            (40, memory, 8),
            (48, 0x1000, 8),
        ] {
            put(&mut file, at + field, value, width);
        }
    }
    let dynamic = [7, 0x3000, 8, 48, 9, 24, 0, 0];
    let relocations = [0x1200, 8, ENTRY, 0x1208, 8, 0x3010];
    for (index, value) in dynamic.into_iter().enumerate() {
        put(&mut file, DYNAMIC + index * 8, value, 8);
    }
    for (index, value) in relocations.into_iter().enumerate() {
        put(&mut file, RELOCATIONS + index * 8, value, 8);
    }
    file
}

/// An image with this ELF file, not signed.
pub fn unsigned(elf: &[u8]) -> Vec<u8> {
    let port = |name, interface, flags| Port {
        name,
        interface,
        flags,
    };
    let ports = [port("device", 7, 0), port("files", 9, PORT_OFFER)];
    abi::image::unsigned("sample", &FINGERPRINT, &ports, elf)
}

/// An image with this ELF file, signed by [`key`].
pub fn image(elf: &[u8]) -> Vec<u8> {
    keys::sign(&key(), unsigned(elf))
}
