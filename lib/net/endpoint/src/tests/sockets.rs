//! Sockets that others have: against a peer, against themselves, and against their owners.

use super::*;
use crate::{BACKLOG, Failure, Id, Look, MOST, Phase, Refusal};
use core::net::SocketAddrV4;
use smoltcp::socket::tcp::State;

const SECOND: u64 = 1000 * MILLISECOND;
/// At all addresses, and any port that is free.
const ANY: SocketAddrV4 = at(0);

const fn at(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)
}

/// Both ends, and how each frame fares on its way.
struct Pair {
    end: Endpoint,
    peer: Peer,
    now: u64,
    random: Random,
    /// One frame of so many is lost, and another one comes twice; 0: none.
    harm: usize,
}

impl Pair {
    fn new(harm: usize) -> Self {
        Pair {
            end: end("echo=7 address=10.0.0.2/24"),
            peer: Peer::new(),
            now: 0,
            random: Random(5),
            harm,
        }
    }

    fn copies(&mut self) -> usize {
        match self.harm {
            0 => 1,
            harm => match self.random.below(harm) {
                0 => 0,
                1 => 2,
                _ => 1,
            },
        }
    }

    /// A millisecond passes.
    fn step(&mut self) {
        self.now += MILLISECOND;
        self.peer.turn(self.now);
        while let Some(frame) = self.peer.wire.take() {
            for _ in 0..self.copies() {
                self.end.receive(&frame);
            }
        }
        self.end.turn(self.now);
        while let Some(frame) = self.end.take() {
            for _ in 0..self.copies() {
                self.peer.wire.receive(&frame);
            }
        }
    }

    /// Until `is_so`, for ten minutes at most.
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + 600 * SECOND;
        while !is_so(self) {
            self.step();
            assert!(self.now < limit, "it did not come");
        }
    }

    fn look(&mut self, id: Id) -> Look {
        self.end.look(id).expect("nobody has closed it")
    }

    fn connect(&mut self, to: SocketAddrV4) -> Id {
        let id = self.end.open(ANY).expect("there is room");
        self.end.connect(id, to, self.now).expect("it may");
        id
    }

    /// A connection to the peer's port 80, which listens there.
    fn connected(&mut self) -> Id {
        self.peer.socket().listen(80).expect("it is closed");
        let id = self.connect(SocketAddrV4::new(PEER, 80));
        self.until(|pair| pair.look(id).phase == Phase::Open);
        self.until(|pair| pair.peer.socket().state() == State::Established);
        id
    }

    /// A connection that the peer has opened to `listener`.
    fn accepted(&mut self, listener: Id, port: u16) -> Id {
        self.peer.connect(port);
        let mut found = None;
        self.until(|pair| {
            found = pair.end.accept(listener).expect("it listens");
            found.is_some()
        });
        found.expect("it came")
    }
}

fn noise(count: usize) -> Vec<u8> {
    let mut random = Random(11);
    (0..count).map(|_| random.next() as u8).collect()
}

#[test]
fn bytes_pass_both_ways_over_a_wire_that_loses_and_doubles() {
    let mut pair = Pair::new(20);
    let id = pair.connected();
    assert_eq!(pair.look(id).peer, SocketAddrV4::new(PEER, 80));
    assert_eq!(*pair.look(id).own.ip(), OWN);
    let data = noise(200_000);
    let (mut out, mut back, mut returned) = (0, Vec::new(), Vec::new());
    pair.until(|pair| {
        out += pair.end.write(id, &data[out..]).expect("it is open");
        let mut room = [0; 3000];
        let socket = pair.peer.socket();
        if socket.can_recv() {
            let count = socket.recv_slice(&mut room).expect("open");
            back.extend_from_slice(&room[..count]);
        }
        let count = pair.end.read(id, &mut room, false).expect("it is open");
        returned.extend_from_slice(&room[..count]);
        let ahead = (data.len() - returned.len()).min(2000);
        let socket = pair.peer.socket();
        if socket.send_queue() == 0 && ahead > 0 {
            let from = returned.len();
            socket.send_slice(&data[from..from + ahead]).expect("open");
        }
        back.len() == data.len() && returned.len() == data.len()
    });
    assert!(back == data && returned == data);
    pair.end.finish(id).expect("it is open");
    pair.until(|pair| !pair.peer.socket().may_recv());
    assert!(!pair.look(id).has_ended);
    pair.peer.socket().close();
    pair.until(|pair| pair.look(id).has_ended);
    assert_eq!(pair.look(id).failure, None);
    assert_eq!(pair.end.write(id, b"more"), Err(Refusal::Wrong));
}

#[test]
fn a_listener_gives_each_connection_once() {
    let mut pair = Pair::new(0);
    let listener = pair.end.open(at(80)).expect("free");
    pair.end.listen(listener, 4).expect("it may");
    pair.step();
    for round in 0..20 {
        let id = pair.accepted(listener, 80);
        assert_eq!(pair.look(id).own, SocketAddrV4::new(OWN, 80));
        assert_eq!(pair.look(id).peer.ip(), &PEER);
        let word = [round; 5];
        pair.peer.socket().send_slice(&word).expect("open");
        pair.until(|pair| pair.look(id).readable == 5);
        let mut room = [0; 9];
        assert_eq!(pair.end.read(id, &mut room, true), Ok(5));
        assert_eq!(pair.end.read(id, &mut room, false), Ok(5));
        assert_eq!(room[..5], word);
        assert_eq!(pair.end.accept(listener), Ok(None));
        pair.peer.socket().abort();
        pair.until(|pair| pair.look(id).phase == Phase::Over);
        assert_eq!(pair.look(id).failure, Some(Failure::Reset));
        pair.end.close(id, pair.now);
    }
    pair.end.close(listener, pair.now);
    pair.peer.connect(80);
    pair.until(|pair| !pair.peer.socket().is_open());
}

#[test]
fn a_doubled_question_opens_one_connection() {
    for seed in 1..40 {
        let mut pair = Pair::new(10);
        pair.random = Random(seed);
        let listener = pair.end.open(at(80)).expect("free");
        pair.end.listen(listener, 8).expect("it may");
        pair.step();
        let id = pair.accepted(listener, 80);
        pair.until(|pair| pair.peer.socket().may_send());
        pair.peer.socket().send_slice(b"once").expect("open");
        pair.until(|pair| pair.look(id).readable == 4);
        for _ in 0..3000 {
            pair.step();
        }
        assert_eq!(pair.look(id).phase, Phase::Open, "seed {seed}");
        assert_eq!(pair.end.accept(listener), Ok(None), "seed {seed}");
    }
}

#[test]
fn what_fails_says_why() {
    let mut pair = Pair::new(0);
    // Nobody listens there.
    let id = pair.connect(SocketAddrV4::new(PEER, 81));
    pair.until(|pair| pair.look(id).phase == Phase::Over);
    assert_eq!(pair.look(id).failure, Some(Failure::Refused));
    // Nobody is there.
    let absent = Ipv4Addr::new(10, 0, 0, 77);
    let id = pair.connect(SocketAddrV4::new(absent, 80));
    let before = pair.now;
    pair.until(|pair| pair.look(id).phase == Phase::Over);
    assert_eq!(pair.look(id).failure, Some(Failure::TimedOut));
    assert!((100..200).contains(&((pair.now - before) / SECOND)));
    // No way leads there.
    let id = pair.end.open(ANY).expect("there is room");
    for to in [[8, 8, 8, 8], [255; 4], [224, 0, 0, 1]] {
        let to = SocketAddrV4::new(to.into(), 80);
        assert_eq!(pair.end.connect(id, to, 0), Err(Refusal::Unreachable));
    }
    let nowhere = SocketAddrV4::new(PEER, 0);
    assert_eq!(pair.end.connect(id, nowhere, 0), Err(Refusal::Unreachable));
    for wrong in [
        pair.end.finish(id),
        pair.end.accept(id).map(drop),
        pair.end.write(id, b"x").map(drop),
        pair.end.read(id, &mut [0], false).map(drop),
    ] {
        assert_eq!(wrong, Err(Refusal::Wrong));
    }
}

#[test]
fn a_connection_waits_for_an_address_and_not_for_ever() {
    let mut end = end("");
    let id = end.open(ANY).expect("there is room");
    let to = SocketAddrV4::new(PEER, 80);
    end.connect(id, to, 0).expect("it may");
    end.turn(MILLISECOND);
    while end.take().is_some() {}
    assert_eq!(end.look(id).map(|look| look.phase), Some(Phase::Opening));
    let Next::At(next) = end.turn(2 * MILLISECOND) else {
        panic!("it waits for a time");
    };
    assert!(next <= 10 * SECOND);
    end.turn(11 * SECOND);
    let look = end.look(id).expect("it is there");
    assert_eq!(look.phase, Phase::Over);
    assert_eq!(look.failure, Some(Failure::Unreachable));
    // What is at the end itself needs no address.
    let id = end.open(ANY).expect("there is room");
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80);
    end.connect(id, to, 11 * SECOND).expect("it may");
    end.turn(11 * SECOND);
    end.turn(11 * SECOND + MILLISECOND);
    let look = end.look(id).expect("it is there");
    assert_eq!(look.failure, Some(Failure::Refused));
}

/// At both of its addresses, and nothing of it is on the wire.
#[test]
fn an_end_talks_to_itself() {
    for own in [Ipv4Addr::LOCALHOST, OWN, Ipv4Addr::UNSPECIFIED] {
        let mut end = end("echo=7 address=10.0.0.2/24");
        let id = end.open(ANY).expect("there is room");
        end.connect(id, SocketAddrV4::new(own, 7), 0)
            .expect("it may");
        let data = noise(300_000);
        let (mut out, mut back, mut now) = (0, Vec::new(), 0);
        while back.len() < data.len() {
            now += MILLISECOND;
            assert!(now < 100 * SECOND, "{} bytes", back.len());
            end.turn(now);
            assert_eq!(end.take(), None);
            if end.look(id).is_some_and(|look| look.phase == Phase::Open) {
                out += end.write(id, &data[out..]).expect("it is open");
                let mut room = [0; 5000];
                let count = end.read(id, &mut room, false).expect("it is open");
                back.extend_from_slice(&room[..count]);
            }
        }
        assert!(back == data);
        end.finish(id).expect("it is open");
        while !end.look(id).expect("it is there").has_ended {
            now += MILLISECOND;
            end.turn(now);
            assert!(now < 200 * SECOND);
        }
    }
}

/// Frames from outside that say they are from the end itself, or go to the loopback network.
#[test]
fn nobody_outside_is_taken_for_the_end_itself() {
    let mut end = end("echo=7 address=10.0.0.2/24");
    let local = Ipv4Addr::new(127, 0, 0, 1);
    let packet = |from: Ipv4Addr, to: Ipv4Addr| {
        let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0];
        packet.extend(from.octets());
        packet.extend(to.octets());
        let check = sum(&packet);
        packet[10..12].copy_from_slice(&check);
        let mut body = vec![8, 0, 0, 0, 0, 1, 0, 1];
        let check = sum(&body);
        body[2..4].copy_from_slice(&check);
        packet.extend(body);
        frame(0x0800, &packet)
    };
    let claim = |from: Ipv4Addr, to: Ipv4Addr| {
        let fixed: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 2];
        let parts: [&[u8]; 5] = [
            &fixed,
            &PEER_HARDWARE,
            &from.octets(),
            &OWN_HARDWARE,
            &to.octets(),
        ];
        frame(0x0806, &parts.concat())
    };
    for (count, (from, to)) in (1..).zip([(OWN, OWN), (local, OWN), (PEER, local)]) {
        end.receive(&packet(from, to));
        end.receive(&claim(from, to));
        assert_eq!(end.dropped(), 2 * count);
    }
    end.receive(&packet(PEER, OWN));
    end.receive(&claim(PEER, OWN));
    assert_eq!(end.dropped(), 6);
}

#[test]
fn a_peer_that_sends_to_who_has_closed_is_reset() {
    let mut pair = Pair::new(0);
    let id = pair.connected();
    pair.peer.socket().send_slice(b"unread").expect("open");
    pair.until(|pair| pair.look(id).readable == 6);
    pair.end.close(id, pair.now);
    assert_eq!(pair.end.look(id).map(|look| look.phase), Some(Phase::Open));
    pair.until(|pair| !pair.peer.socket().is_open());
    pair.until(|pair| pair.end.look(id).is_none());
}

/// What was taken is sent after the close, and the peer's end is waited for a minute at most.
#[test]
fn what_is_to_be_sent_is_sent_after_the_close() {
    let mut pair = Pair::new(10);
    let id = pair.connected();
    let data = noise(60_000);
    assert_eq!(pair.end.write(id, &data), Ok(data.len()));
    pair.end.close(id, pair.now);
    let closed = pair.now;
    let mut back = Vec::new();
    pair.until(|pair| {
        let mut room = [0; 3000];
        let count = pair.peer.socket().recv_slice(&mut room).unwrap_or(0);
        back.extend_from_slice(&room[..count]);
        back.len() == data.len()
    });
    assert!(back == data);
    pair.until(|pair| pair.end.look(id).is_none());
    let took = (pair.now - closed) / SECOND;
    assert!((59..70).contains(&took), "{took} s");
}

#[test]
fn sockets_have_a_bound_and_come_back() {
    let mut pair = Pair::new(0);
    let mut all = Vec::new();
    while let Ok(id) = pair.end.open(ANY) {
        let look = pair.look(id);
        assert!(all.iter().all(|(_, own)| *own != look.own), "{look:?}");
        all.push((id, look.own));
    }
    assert_eq!(all.len(), MOST);
    assert_eq!(pair.end.open(ANY), Err(Refusal::Full));
    for (id, _) in all {
        pair.end.close(id, pair.now);
    }
    let one = pair.end.open(at(80)).expect("there is room");
    assert_eq!(pair.end.open(at(80)), Err(Refusal::InUse));
    pair.end.listen(one, 0).expect("it may");
    assert_eq!(pair.end.open(at(80)), Err(Refusal::InUse));
    pair.end.close(one, pair.now);
    let one = pair.end.open(at(80)).expect("it is free again");
    pair.end.close(one, pair.now);
    assert_eq!(pair.end.open(at(7)), Err(Refusal::InUse));
    let foreign = SocketAddrV4::new(PEER, 80);
    assert_eq!(pair.end.open(foreign), Err(Refusal::NotOurs));
    // More connections than there is room for, in less time than closed ones are kept.
    let before = pair.now;
    for round in 0..MOST + 50 {
        let id = pair.connected();
        pair.end.close(id, pair.now);
        pair.until(|pair| !pair.peer.socket().may_recv());
        pair.peer.socket().close();
        pair.until(|pair| !pair.peer.socket().is_active());
        assert!(pair.now - before < 10 * SECOND, "round {round}");
    }
}

/// A listener has no more connections wait than it was asked for, and all of them are good.
#[test]
fn a_backlog_has_a_bound() {
    let mut end = end("address=10.0.0.2/24");
    let listener = end.open(at(80)).expect("free");
    end.listen(listener, BACKLOG * 9).expect("it may");
    let mut ids = Vec::new();
    let mut now = 0;
    for _ in 0..BACKLOG + 9 {
        let id = end.open(ANY).expect("there is room");
        end.connect(id, SocketAddrV4::new(OWN, 80), now)
            .expect("it may");
        for _ in 0..50 {
            now += MILLISECOND;
            end.turn(now);
        }
        ids.push(id);
    }
    let mut told = 0;
    end.changes(|id| told += usize::from(id == listener));
    assert_eq!(told, 1);
    let phases = ids.iter().map(|id| end.look(*id).map(|look| look.phase));
    let open = phases.filter(|phase| *phase == Some(Phase::Open)).count();
    assert_eq!(open, BACKLOG);
    assert_eq!(end.look(listener).map(|look| look.readable), Some(BACKLOG));
    for _ in 0..BACKLOG {
        assert!(matches!(end.accept(listener), Ok(Some(_))));
    }
    assert_eq!(end.accept(listener), Ok(None));
}

/// After a look, a read or a write the owner knows what was there; what came later is told once,
/// also if all of it has happened between two turns.
#[test]
fn owners_are_told_of_what_they_have_not_seen() {
    let mut end = end("echo=7 address=10.0.0.2/24");
    let id = end.open(ANY).expect("there is room");
    end.connect(id, SocketAddrV4::new(OWN, 7), 0)
        .expect("it may");
    let mut now = 0;
    let mut told = |end: &mut Endpoint| {
        now += 50 * MILLISECOND;
        end.turn(now);
        let mut told = 0;
        end.changes(|it| told += usize::from(it == id));
        told
    };
    assert_eq!((0..3).map(|_| told(&mut end)).sum::<usize>(), 1);
    assert_eq!(end.look(id).map(|look| look.phase), Some(Phase::Open));
    let data = noise(2 * crate::BUFFER);
    let (mut out, mut back) = (0, 0);
    while back < data.len() {
        let sent = end.write(id, &data[out..]).expect("it is open");
        let mut room = [0; 10_000];
        let count = end.read(id, &mut room, false).expect("it is open");
        assert!(room[..count] == data[back..back + count]);
        (out, back) = (out + sent, back + count);
        // A side that can do nothing more is told when that has changed.
        if sent == 0 && count == 0 && back < data.len() {
            let mut turns = 0;
            while told(&mut end) == 0 {
                turns += 1;
                assert!(turns < 20, "nobody is told after {out} and {back} bytes");
            }
        }
    }
    while told(&mut end) != 0 {}
    assert_eq!((0..9).map(|_| told(&mut end)).sum::<usize>(), 0);
}

/// A listener at one address is not reached at another one, and is in nobody's way there.
#[test]
fn a_listener_is_at_its_address_alone() {
    let mut end = end("address=10.0.0.2/24");
    let places = [Ipv4Addr::LOCALHOST, OWN].map(|host| SocketAddrV4::new(host, 80));
    let listener = end.open(places[0]).expect("it is free");
    assert_eq!(end.open(places[0]), Err(Refusal::InUse));
    assert_eq!(end.open(at(80)), Err(Refusal::InUse));
    end.listen(listener, 1).expect("it may");
    end.turn(0);
    let [reached, refused] = places.map(|place| {
        let id = end.open(ANY).expect("there is room");
        end.connect(id, place, 0).expect("it may");
        id
    });
    for now in 1..100 {
        end.turn(now * 50 * MILLISECOND);
    }
    assert_eq!(end.look(reached).map(|look| look.phase), Some(Phase::Open));
    let look = end.look(refused).expect("it is there");
    assert_eq!(look.failure, Some(Failure::Refused));
    let other = end.open(places[1]).expect("it is free");
    end.listen(other, 1).expect("it may");
}

/// A refusal that comes in the same turn as the question is not taken for an end in order.
#[test]
fn a_refusal_is_seen_with_its_reason() {
    let mut end = end("address=10.0.0.2/24");
    for turn in 1..50 {
        let id = end.open(ANY).expect("there is room");
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 81);
        end.connect(id, to, 0).expect("it may");
        let mut look = end.look(id).expect("it is there");
        for step in 0..100 {
            end.turn((turn * 100 + step) * MILLISECOND);
            look = end.look(id).expect("it is there");
            if look.phase == Phase::Over {
                break;
            }
        }
        assert_eq!(look.failure, Some(Failure::Refused), "turn {turn}");
        end.close(id, 0);
    }
}
