//! Files without a name, held by clients of a shadow that has died.

use crate::model::Instance;
use redo::Front;

/// A hidden name's number, with these marks of clients.
const fn number(marks: u64) -> u64 {
    9 << 2 | marks
}

fn front(orphan: u64) -> Front<Instance> {
    let mut front = Front::new(Instance::new(1));
    front.leave_over(7, orphan);
    front
}

/// Comes back with two holds, and gives both back; whether the last hold has gone.
fn come_and_go(front: &mut Front<Instance>, client: usize) -> bool {
    assert!(front.hold_for_client(7, client) && front.hold_for_client(7, client));
    let mut remains = (0..2).map(|_| {
        front.leave(7, client);
        front.release(7)
    });
    assert!(remains.next().is_some_and(|first| first.is_none()));
    let last = remains.next().flatten();
    last.is_some_and(|remains| remains.orphan.is_some())
}

/// Whoever comes first, the other one finds the file.
#[test]
fn a_file_waits_for_each_client_that_had_it() {
    for [first, second] in [[0, 1], [1, 0]] {
        let mut front = front(number(3));
        assert!(!come_and_go(&mut front, first) && front.is_orphan(7));
        assert!(!front.is_left(8) && come_and_go(&mut front, second));
        assert!(!front.is_held(7) && !front.has_orphans());
    }
}

/// Another one may come and go before.
#[test]
fn a_file_waits_for_the_one_that_had_it() {
    let mut front = front(number(2));
    assert!(!come_and_go(&mut front, 0) && come_and_go(&mut front, 1));
}

/// The number of a former image says nothing.
#[test]
fn a_file_of_nobody_knows_whom_waits_for_the_first() {
    for client in [0, 1, 2] {
        assert!(come_and_go(&mut front(number(0)), client));
    }
}
