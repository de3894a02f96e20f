//! An end against a peer of smoltcp's, over a wire in memory and in virtual time; and against
//! frames that lie.

mod sockets;

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetFrame, EthernetProtocol, IpCidr, Ipv4Cidr,
    Ipv4Packet, UdpPacket, UdpRepr,
};

use crate::wire::Wire;
use crate::{Endpoint, Fixed, HEADER, LONGEST, Next, NoUnicast, Settings, WAITING, instant};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OWN_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 2];
const PEER_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MILLISECOND: u64 = 1_000_000;

fn settings(text: &str) -> Settings {
    Settings::parse(text).expect("right")
}

fn end(text: &str) -> Endpoint {
    Endpoint::new(OWN_HARDWARE, &settings(text), 1, 0).expect("an address of one device")
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The other end, with one connection.
struct Peer {
    sockets: SocketSet<'static>,
    wire: Wire,
    socket: SocketHandle,
}

impl Peer {
    fn new() -> Self {
        let mut wire = Wire::new(PEER_HARDWARE, 3, instant(0));
        wire.interface().update_ip_addrs(|list| {
            list.push(IpCidr::Ipv4(Ipv4Cidr::new(PEER, 24)))
                .expect("room");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || SocketBuffer::new(vec![0; 16 << 10]);
        let socket = sockets.add(Socket::new(buffer(), buffer()));
        Peer {
            sockets,
            wire,
            socket,
        }
    }

    fn connect(&mut self, port: u16) {
        let socket = self.sockets.get_mut::<Socket<'static>>(self.socket);
        let context = self.wire.interface().context();
        socket.connect(context, (OWN, port), 49_152).expect("free");
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn turn(&mut self, now: u64) {
        self.wire.poll(instant(now), &mut self.sockets);
    }
}

#[test]
fn what_is_sent_comes_back_over_a_wire_that_loses_and_doubles() {
    let mut random = Random(7);
    let (mut end, mut peer) = (end("echo=7 address=10.0.0.2/24"), Peer::new());
    peer.connect(7);
    let data: Vec<u8> = (0..200_000).map(|_| random.next() as u8).collect();
    let (mut sent, mut back, mut now, mut lost) = (0, Vec::new(), 0, 0);
    while back.len() < data.len() {
        now += MILLISECOND;
        assert!(
            now < 600_000 * MILLISECOND,
            "{} bytes came back",
            back.len()
        );
        peer.turn(now);
        let socket = peer.socket();
        if socket.can_send() {
            sent += socket.send_slice(&data[sent..]).expect("open");
        }
        let mut room = [0; 4096];
        while socket.can_recv() {
            let count = socket.recv_slice(&mut room).expect("open");
            back.extend_from_slice(&room[..count]);
        }
        let mut carry = |frame: &[u8], deliver: &mut dyn FnMut(&[u8])| match random.below(20) {
            0 => lost += 1,
            1 => (0..2).for_each(|_| deliver(frame)),
            _ => deliver(frame),
        };
        while let Some(frame) = peer.wire.take() {
            carry(&frame, &mut |frame| end.receive(frame));
        }
        end.turn(now);
        while let Some(frame) = end.take() {
            carry(&frame, &mut |frame| {
                peer.wire.receive(frame);
            });
        }
    }
    assert_eq!(back, data);
    assert!(lost > 10, "only {lost} frames were lost");
    assert_eq!(end.connections(), 1);
    peer.socket().close();
    for _ in 0..60_000 {
        now += MILLISECOND;
        peer.turn(now);
        while let Some(frame) = peer.wire.take() {
            end.receive(&frame);
        }
        end.turn(now);
        while let Some(frame) = end.take() {
            peer.wire.receive(&frame);
        }
    }
    assert_eq!(end.connections(), 0);
}

/// An echo request for ICMP, as a frame.
fn ping(number: u16) -> Vec<u8> {
    let mut body = vec![8, 0, 0, 0, 0, 1];
    body.extend(number.to_be_bytes());
    let check = sum(&body);
    body[2..4].copy_from_slice(&check);
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0];
    packet.extend(PEER.octets());
    packet.extend(OWN.octets());
    let check = sum(&packet);
    packet[10..12].copy_from_slice(&check);
    packet.extend(body);
    frame(0x0800, &packet)
}

fn frame(kind: u16, body: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 4] = [&OWN_HARDWARE, &PEER_HARDWARE, &kind.to_be_bytes(), body];
    parts.concat()
}

fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2);
    let words = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// "The peer has this hardware address."
fn introduction() -> Vec<u8> {
    let fixed: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 2];
    let parts: [&[u8]; 5] = [
        &fixed,
        &PEER_HARDWARE,
        &PEER.octets(),
        &OWN_HARDWARE,
        &OWN.octets(),
    ];
    frame(0x0806, &parts.concat())
}

/// Whether `end` answers a ping; what else it sends meanwhile is thrown away.
fn answers(end: &mut Endpoint, number: u16, now: &mut u64) -> bool {
    for _ in 0..4000 {
        *now += MILLISECOND;
        end.receive(&introduction());
        end.receive(&ping(number));
        end.turn(*now);
        while let Some(frame) = end.take() {
            let is_echo = frame.get(34) == Some(&0) && frame.get(12..14) == Some(&[8, 0]);
            if is_echo && frame.get(40..42) == Some(&number.to_be_bytes()) {
                return true;
            }
        }
    }
    false
}

#[test]
fn frames_that_lie_are_dropped_and_nothing_grows() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for text in ["echo=7 address=10.0.0.2/24,10.0.0.1", "echo=7"] {
        let mut end = end(text);
        let mut now = 0;
        for round in 0..30_000u32 {
            let mut body = vec![0; random.below(1600)];
            body.iter_mut().for_each(|byte| *byte = random.next() as u8);
            let mut lie = match random.below(5) {
                0 => body,
                1 => frame(0x0806, &body),
                2 => frame(0x0800, &body),
                3 => segment(&mut random, &body),
                _ => ping(round as u16),
            };
            for _ in 0..random.below(4) {
                let at = random.below(lie.len().max(1));
                if let Some(byte) = lie.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            if random.below(4) == 0 {
                lie.truncate(random.below(lie.len() + 1));
            }
            end.receive(&lie);
            if random.below(8) == 0 {
                now += random.next() % (100 * MILLISECOND);
                end.turn(now);
                let count = core::iter::from_fn(|| end.take()).count();
                assert!(count <= 2 * WAITING);
            }
        }
        if text.contains("address") {
            assert!(answers(&mut end, 7, &mut now));
        }
    }
}

/// TCP or UDP with right sums and wrong contents.
fn segment(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let tcp = random.below(3) > 0;
    let mut body = body[..body.len().min(random.below(100) + 20)].to_vec();
    body.resize(body.len().next_multiple_of(2).max(20), 0);
    let ports: [u8; 4] = [0, random.next() as u8, 0, if tcp { 7 } else { 68 }];
    body[..4].copy_from_slice(&ports);
    let length = body.len() as u16;
    let protocol = if tcp { 6 } else { 17 };
    let at = if tcp { 16 } else { 6 };
    if tcp {
        // A header of a length that may be.
        body[12] = 0x50 + (random.below(3) as u8) * 0x10;
        body[13] &= 0x3f;
    } else {
        body[4..6].copy_from_slice(&length.to_be_bytes());
    }
    body[at..at + 2].fill(0);
    let mut pseudo = [PEER.octets(), OWN.octets()].concat();
    pseudo.extend([0, protocol]);
    pseudo.extend(length.to_be_bytes());
    pseudo.extend(&body);
    let check = sum(&pseudo);
    body[at..at + 2].copy_from_slice(&check);
    let [high, low] = (20 + length).to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend(PEER.octets());
    packet.extend(OWN.octets());
    let check = sum(&packet);
    packet[10..12].copy_from_slice(&check);
    packet.extend(body);
    frame(0x0800, &packet)
}

#[test]
fn a_flood_waits_in_bounded_room() {
    let mut end = end("address=10.0.0.2/24");
    for number in 0..10_000 {
        end.receive(&ping(number));
    }
    assert_eq!(end.dropped(), 10_000 - WAITING as u64);
    end.turn(MILLISECOND);
    let count = core::iter::from_fn(|| end.take()).count();
    assert!(count <= 2 * WAITING);
    let mut now = MILLISECOND;
    assert!(answers(&mut end, 9, &mut now));
}

#[test]
fn frames_of_no_length_that_may_be_are_dropped() {
    let mut end = end("address=10.0.0.2/24");
    for length in [0, HEADER - 1, LONGEST + 1, 1 << 16] {
        end.receive(&vec![0; length]);
    }
    assert_eq!(end.dropped(), 4);
    for length in [HEADER, LONGEST] {
        end.receive(&vec![0; length]);
    }
    assert_eq!(end.dropped(), 4);
}

#[test]
fn a_frame_with_a_wrong_checksum_is_dropped() {
    let mut end = end("address=10.0.0.2/24");
    // The header's sum, that of the echo, and a byte of each that only the sum guards.
    for at in [24, 36, 22, 40] {
        let mut wrong = ping(3);
        wrong[at] ^= 1;
        end.receive(&wrong);
    }
    assert_eq!(end.dropped(), 4);
    end.receive(&ping(3));
    assert_eq!(end.dropped(), 4);
}

#[test]
fn a_device_without_an_address_of_its_own_is_refused() {
    for hardware in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        let found = Endpoint::new(hardware, &Settings::default(), 1, 0);
        assert_eq!(found.err(), Some(NoUnicast));
    }
}

#[test]
fn without_timers_only_a_frame_is_waited_for() {
    let mut end = end("echo=7 address=10.0.0.2/24");
    end.turn(0);
    while end.take().is_some() {}
    assert_eq!(end.turn(MILLISECOND), Next::Never);
}

/// What a server of DHCP answers to `asked`, a frame: `None` if that asks it nothing.
fn served(asked: &[u8], address: Ipv4Addr, lease: u32) -> Option<Vec<u8>> {
    let ethernet = EthernetFrame::new_checked(asked).ok()?;
    let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    let udp = UdpPacket::new_checked(ip.payload()).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 || udp.dst_port() != 67 {
        return None;
    }
    let packet = DhcpPacket::new_checked(udp.payload()).ok()?;
    let asked = DhcpRepr::parse(&packet).ok()?;
    let message_type = match asked.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request => DhcpMessageType::Ack,
        _ => return None,
    };
    let answer = DhcpRepr {
        message_type,
        your_ip: address,
        server_ip: PEER,
        router: Some(PEER),
        subnet_mask: Some(Ipv4Addr::new(255, 255, 255, 0)),
        server_identifier: Some(PEER),
        lease_duration: Some(lease),
        requested_ip: None,
        client_identifier: None,
        parameter_request_list: None,
        max_size: None,
        ..asked
    };
    let length = answer.buffer_len();
    let header = UdpRepr {
        src_port: 67,
        dst_port: 68,
    };
    let mut datagram = vec![0; header.header_len() + length];
    let (from, to) = (PEER.into(), Ipv4Addr::BROADCAST.into());
    header.emit(
        &mut UdpPacket::new_unchecked(&mut datagram),
        &from,
        &to,
        length,
        |body| {
            let mut packet = DhcpPacket::new_unchecked(body);
            answer.emit(&mut packet).expect("room");
        },
        &ChecksumCapabilities::default(),
    );
    let [high, low] = (20 + datagram.len() as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, 17, 0, 0];
    packet.extend(PEER.octets());
    packet.extend(Ipv4Addr::BROADCAST.octets());
    let check = sum(&packet);
    packet[10..12].copy_from_slice(&check);
    packet.extend(datagram);
    Some(frame(0x0800, &packet))
}

/// Lets time go on until `seconds`, with a server of DHCP if `address` is one.
fn lease(end: &mut Endpoint, now: &mut u64, seconds: u64, address: Option<Ipv4Addr>) {
    while *now < seconds * 1000 * MILLISECOND {
        *now += 100 * MILLISECOND;
        end.turn(*now);
        while let Some(frame) = end.take() {
            let answer = address.and_then(|address| served(&frame, address, 60));
            if let Some(answer) = answer {
                end.receive(&answer);
            }
        }
    }
}

#[test]
fn an_address_is_leased_renewed_and_given_up() {
    let mut end = end("echo=7");
    let mut now = 0;
    lease(&mut end, &mut now, 5, Some(OWN));
    let leased = Some(Fixed {
        address: OWN,
        prefix: 24,
        router: Some(PEER),
    });
    assert_eq!(end.address(), leased);
    // Long after its end: it was renewed.
    lease(&mut end, &mut now, 600, Some(OWN));
    assert_eq!(end.address(), leased);
    // The server is gone.
    lease(&mut end, &mut now, 800, None);
    assert_eq!(end.address(), None);
}

#[test]
fn an_address_that_no_host_may_have_is_not_taken() {
    for wrong in [
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
        Ipv4Addr::UNSPECIFIED,
    ] {
        let mut end = end("");
        let mut now = 0;
        lease(&mut end, &mut now, 30, Some(wrong));
        assert_eq!(end.address(), None);
    }
}
