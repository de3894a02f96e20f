//! Packets of 64 bytes: Ethernet, IPv4, UDP, and a number.

use interfaces::Packet;

/// Bytes of a packet.
const LENGTH: usize = 64;
/// Where the IPv4 header starts, and its length.
const IP: usize = 14;
const IP_LENGTH: usize = 20;
/// Where the data starts, behind 8 bytes of UDP header.
const DATA: usize = IP + IP_LENGTH + 8;

/// All that is the same in every packet: documentation addresses (RFC 5737), the discard port (RFC
/// 863).
const TEMPLATE: [u8; LENGTH] = template();

const fn template() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let ethernet = [0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00];
    let ip = [
        0x45,
        0,
        0,
        (LENGTH - IP) as u8,
        0,
        0,
        0x40,
        0,
        64,
        17,
        0,
        0,
        192,
        0,
        2,
        1,
        192,
        0,
        2,
        2,
    ];
    let udp = [0xc0, 0, 0, 9, 0, (LENGTH - IP - IP_LENGTH) as u8, 0, 0];
    let mut index = 0;
    while index < DATA {
        bytes[index] = match index {
            0..IP => ethernet[index],
            IP..34 => ip[index - IP],
            _ => udp[index - IP - IP_LENGTH],
        };
        index += 1;
    }
    bytes
}

/// The checksum of an IPv4 header whose checksum field is zero (RFC 791, section 3.1).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Writes packet number `number`.
#[inline]
pub fn write(packet: &mut Packet, number: u64) {
    packet.length = LENGTH as u32;
    let (bytes, _) = packet.bytes.split_at_mut(LENGTH);
    bytes.copy_from_slice(&TEMPLATE);
    bytes[IP + 4..IP + 6].copy_from_slice(&(number as u16).to_be_bytes());
    let sum = checksum(&bytes[IP..IP + IP_LENGTH]);
    bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    bytes[DATA..DATA + 8].copy_from_slice(&number.to_be_bytes());
}
