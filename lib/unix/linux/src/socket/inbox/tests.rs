//! What waits in a socket: streams, messages, marks, and what goes with them.

use super::*;
use alloc::rc::Rc;
use alloc::vec;
use core::cell::Cell;

/// What is paid, in a purse that says how much is out.
struct Paid(Rc<Cell<usize>>, usize);

impl Charge for Paid {
    fn join(&mut self, mut more: Self) {
        self.1 += core::mem::take(&mut more.1);
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.0.set(self.0.get() - self.1);
    }
}

struct Bench {
    out: Rc<Cell<usize>>,
    inbox: Inbox<u32, Paid>,
}

impl Bench {
    fn new(kind: Kind) -> Self {
        Bench {
            out: Rc::default(),
            inbox: Inbox::new(kind),
        }
    }

    fn send_as(&mut self, process: u32, bytes: &[u8], rights: &[u32]) {
        let cost = cost(bytes.len());
        self.out.set(self.out.get() + cost);
        let letter = Letter {
            from: None,
            sender: Sender {
                process,
                ..Sender::default()
            },
            rights: rights.to_vec(),
            charge: Paid(self.out.clone(), cost),
        };
        self.inbox.push(bytes, &mut Some(letter)).unwrap();
    }

    fn send(&mut self, bytes: &[u8], rights: &[u32]) {
        self.send_as(1, bytes, rights);
    }

    fn take(&mut self, room: usize, how: How) -> Option<(Vec<u8>, Vec<u32>, usize)> {
        let mut to = vec![0; room];
        let taken = self.inbox.take(&mut to, how).unwrap()?;
        to.truncate(taken.count);
        Some((to, taken.rights, taken.whole))
    }

    fn read(&mut self, room: usize) -> (Vec<u8>, Vec<u32>) {
        let (bytes, rights, _) = self.take(room, How::default()).unwrap();
        (bytes, rights)
    }
}

const LOOK: How = How {
    looks: true,
    by_sender: false,
};

fn pair(bytes: &[u8], rights: &[u32]) -> (Vec<u8>, Vec<u32>) {
    (bytes.to_vec(), rights.to_vec())
}

#[test]
fn a_stream_has_no_boundaries_but_behind_descriptors() {
    let mut bench = Bench::new(Kind::Stream);
    bench.send(b"ab", &[]);
    bench.send(b"cd", &[]);
    bench.send(b"ef", &[7, 8]);
    bench.send(b"gh", &[]);
    assert_eq!(bench.inbox.bytes(), 8);
    assert_eq!(bench.take(3, LOOK).unwrap().0, b"abc");
    assert_eq!(bench.read(3), pair(b"abc", &[]));
    // Bytes in front of descriptors come with them, and none behind.
    let looked = bench.take(100, LOOK).unwrap();
    assert_eq!((&looked.0[..], &looked.1[..]), (&b"def"[..], &[7, 8][..]));
    assert_eq!(bench.read(100), pair(b"def", &[7, 8]));
    assert_eq!(bench.read(100), pair(b"gh", &[]));
    assert!(bench.take(1, How::default()).is_none());
    assert_eq!((bench.out.get(), bench.inbox.bytes()), (0, 0));
}

#[test]
fn descriptors_come_with_the_first_byte_and_once() {
    let mut bench = Bench::new(Kind::Stream);
    bench.send(b"abc", &[5]);
    bench.send(b"d", &[]);
    assert_eq!(bench.read(1), pair(b"a", &[5]));
    assert_eq!(bench.read(9), pair(b"bcd", &[]));
    assert_eq!(bench.out.get(), 0);
}

#[test]
fn senders_are_told_apart_where_that_is_asked_for() {
    let mut bench = Bench::new(Kind::Stream);
    bench.send_as(1, b"ab", &[]);
    bench.send_as(2, b"cd", &[]);
    let apart = How {
        looks: false,
        by_sender: true,
    };
    assert_eq!(bench.take(9, LOOK).unwrap().0, b"abcd");
    assert_eq!(bench.take(9, apart).unwrap().0, b"ab");
    assert_eq!(bench.take(9, apart).unwrap().0, b"cd");
}

#[test]
fn messages_come_one_by_one_and_are_cut() {
    let mut bench = Bench::new(Kind::Packets);
    bench.send(b"abcd", &[1]);
    bench.send(b"", &[]);
    bench.send(b"ef", &[]);
    let looked = bench.take(2, LOOK).unwrap();
    assert_eq!(looked, (b"ab".to_vec(), vec![1], 4));
    let taken = bench.take(2, How::default()).unwrap();
    assert_eq!(taken, (b"ab".to_vec(), vec![1], 4));
    assert_eq!(bench.read(9), pair(b"", &[]));
    assert_eq!(bench.inbox.bytes(), 2);
    assert_eq!(bench.read(9), pair(b"ef", &[]));
    assert_eq!((bench.out.get(), bench.inbox.bytes()), (0, 0));
    let mut bench = Bench::new(Kind::Datagram);
    bench.send(b"abcd", &[]);
    bench.send(b"ef", &[]);
    assert_eq!((bench.inbox.bytes(), bench.inbox.len()), (4, 2));
}

#[test]
fn what_cannot_be_handed_over_is_received_again() {
    for (room, sent) in [(5, 2), (2, 1), (9, 3)] {
        let mut bench = Bench::new(Kind::Stream);
        for rights in [&[][..], &[3], &[]].iter().take(sent) {
            bench.send(b"abc", rights);
        }
        let mut to = vec![0; room];
        let mut taken = bench.inbox.take(&mut to, How::default()).unwrap().unwrap();
        let before = taken.rights.clone();
        bench.inbox.give_back(&to[..taken.count], &mut taken);
        drop(taken);
        assert_eq!(bench.inbox.bytes(), 3 * sent);
        let (bytes, rights) = bench.read(room);
        assert_eq!((&bytes[..], rights), (&b"abcabcabc"[..bytes.len()], before));
        while bench.take(9, How::default()).is_some() {}
        assert_eq!((bench.out.get(), bench.inbox.bytes()), (0, 0));
    }
}

#[test]
fn an_inbox_is_emptied_of_all_descriptors() {
    let mut bench = Bench::new(Kind::Stream);
    bench.send(b"a", &[1, 2]);
    bench.send(b"b", &[]);
    bench.send(b"c", &[3]);
    assert!(bench.inbox.has_right(|right| *right == 3));
    assert!(!bench.inbox.has_right(|right| *right == 4));
    let mut contents = bench.inbox.empty();
    let rights: Vec<u32> = core::iter::from_fn(|| contents.next_right()).collect();
    assert_eq!(rights, [2, 1, 3]);
    assert_eq!((bench.out.get(), bench.inbox.bytes()), (0, 0));
}

/// Random sends and receives, beside one long text: what comes is that text, and all is paid back.
#[test]
fn a_stream_loses_and_doubles_nothing() {
    let mut bench = Bench::new(Kind::Stream);
    let (mut seed, mut sent, mut got) = (9_u64, 0_u64, 0_u64);
    for _ in 0..50_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let size = (seed >> 40) as usize % 700;
        if seed >> 60 < 8 && bench.inbox.len() < 50 {
            let bytes: Vec<u8> = (sent..sent + size as u64).map(|it| it as u8).collect();
            sent += size as u64;
            bench.send(&bytes, if size.is_multiple_of(5) { &[1] } else { &[] });
        } else if let Some((bytes, ..)) = bench.take(size, How::default()) {
            assert!(bytes.iter().zip(got..).all(|(byte, at)| *byte == at as u8));
            got += bytes.len() as u64;
        }
        assert_eq!(bench.inbox.bytes() as u64, sent - got);
    }
    drop(bench.inbox.empty());
    assert_eq!(bench.out.get(), 0);
}
