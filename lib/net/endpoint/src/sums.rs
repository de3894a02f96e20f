//! Checksums of IPv4, ICMP, UDP and TCP: made for what goes, compared for what comes. And the size
//! of segments that a peer asks for.
//!
//! The device that smoltcp is given ([`crate::wire`]) has it leave them out, so they stand here, as
//! they would in a device that makes them.

use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4Packet, IpAddress, IpProtocol, Ipv4Packet, TcpPacket,
    UdpPacket,
};

/// Makes the checksums of a frame that goes. One that is no IPv4 has none.
pub fn make(frame: &mut [u8]) {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else {
        return;
    };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return;
    }
    let Ok(mut packet) = Ipv4Packet::new_checked(ethernet.payload_mut()) else {
        return;
    };
    packet.fill_checksum();
    let ends = (packet.src_addr().into(), packet.dst_addr().into());
    let protocol = packet.next_header();
    make_inner(protocol, ends, packet.payload_mut());
}

fn make_inner(protocol: IpProtocol, (from, to): (IpAddress, IpAddress), body: &mut [u8]) {
    match protocol {
        IpProtocol::Icmp => {
            if let Ok(mut packet) = Icmpv4Packet::new_checked(body) {
                packet.fill_checksum();
            }
        }
        IpProtocol::Tcp => {
            if let Ok(mut packet) = TcpPacket::new_checked(body) {
                packet.fill_checksum(&from, &to);
            }
        }
        IpProtocol::Udp => {
            if let Ok(mut packet) = UdpPacket::new_checked(body) {
                packet.fill_checksum(&from, &to);
            }
        }
        _ => {}
    }
}

/// Whether the checksums of a frame that came are right, as far as it has such.
pub fn are_right(frame: &[u8]) -> bool {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else {
        return false;
    };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return true;
    }
    let Ok(packet) = Ipv4Packet::new_checked(ethernet.payload()) else {
        return false;
    };
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    let body = packet.payload();
    packet.verify_checksum()
        && match packet.next_header() {
            IpProtocol::Icmp => {
                Icmpv4Packet::new_checked(body).is_ok_and(|inner| inner.verify_checksum())
            }
            IpProtocol::Tcp => {
                TcpPacket::new_checked(body).is_ok_and(|inner| inner.verify_checksum(&from, &to))
            }
            IpProtocol::Udp => {
                UdpPacket::new_checked(body).is_ok_and(|inner| inner.verify_checksum(&from, &to))
            }
            _ => true,
        }
}

/// The largest segment that a frame has room for.
const SEGMENT: u16 = 1460;

/// Has a peer that would take larger segments say that it takes [`SEGMENT`] bytes: the bound that
/// the interface goes by is a little longer than a frame may be.
pub fn clamp(frame: &mut [u8]) {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else {
        return;
    };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return;
    }
    let Ok(mut packet) = Ipv4Packet::new_checked(ethernet.payload_mut()) else {
        return;
    };
    if packet.next_header() != IpProtocol::Tcp {
        return;
    }
    let Ok(mut segment) = TcpPacket::new_checked(packet.payload_mut()) else {
        return;
    };
    if segment.syn() {
        clamp_options(segment.options_mut());
    }
}

/// As [`clamp`], in the options of a segment (RFC 9293, section 3.2).
fn clamp_options(mut options: &mut [u8]) {
    loop {
        let length = match options {
            [2, 4, high, low, ..] => {
                let wanted = u16::from_be_bytes([*high, *low]).min(SEGMENT);
                [*high, *low] = wanted.to_be_bytes();
                return;
            }
            [1, ..] => 1,
            [0, ..] | [] | [_] => return,
            [_, length, ..] => usize::from(*length).max(2),
        };
        let Some(rest) = options.get_mut(length..) else {
            return;
        };
        options = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_segments_is_clamped_wherever_it_stands() {
        let clamped = |options: &[u8]| {
            let mut options = options.to_vec();
            clamp_options(&mut options);
            options
        };
        assert_eq!(clamped(&[2, 4, 0xff, 0xff]), [2, 4, 5, 0xb4]);
        assert_eq!(clamped(&[2, 4, 2, 0x18]), [2, 4, 2, 0x18]);
        let behind = clamped(&[1, 4, 2, 8, 3, 0, 2, 4, 6, 0, 1, 0]);
        assert_eq!(behind[..6], [1, 4, 2, 8, 3, 0]);
        // What lies is left as it is.
        for wrong in [
            &[2, 4, 0xff][..],
            &[8, 0, 1],
            &[3],
            &[3, 200, 1, 1],
            &[0, 2, 4, 9, 9],
        ] {
            assert_eq!(clamped(wrong), wrong);
        }
    }
}
