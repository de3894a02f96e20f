//! Groups: the rules one by one, and a whole way to a device, with deaths of everybody, beside what
//! must come of it. Ways that are broken on purpose are noticed.

use super::below;
use crate::Book;
use crate::group::{Group, Unfit};
use std::vec::Vec;

fn group(members: &[(bool, u32)]) -> Group<u32, char> {
    let mut group = Group::new(8).expect("the host has memory");
    group.fill(7, members.iter().copied()).expect("it fits");
    group
}

fn begin_all(group: &mut Group<u32, char>) -> Vec<u32> {
    let mut begun = Vec::new();
    while let Some(member) = group.next() {
        begun.push(member);
        group.begun();
    }
    begun
}

#[test]
fn a_group_is_filled_whole_or_not_at_all() {
    let mut group = Group::<u32, char>::new(2).expect("the host has memory");
    let three = [(false, 1), (false, 2), (false, 3)];
    assert_eq!(group.fill(1, three.into_iter()), Err(Unfit));
    assert_eq!(group.fill(1, [].into_iter()), Err(Unfit));
    assert!(group.is_empty() && group.next().is_none() && !group.is_open());
    assert_eq!(group.fill(1, three[..2].iter().copied()), Ok(()));
    assert_eq!(
        group.fill(2, three[..1].iter().copied()),
        Err(Unfit),
        "it has some"
    );
}

#[test]
fn members_are_begun_in_order_with_their_barriers() {
    let mut group = group(&[(false, 1), (false, 2), (true, 3), (false, 4)]);
    assert_eq!(begin_all(&mut group), [1, 2]);
    group.ended(None);
    assert_eq!(begin_all(&mut group), []);
    group.ended(None);
    assert_eq!(begin_all(&mut group), [3]);
    group.ended(None);
    assert_eq!(begin_all(&mut group), [4]);
    assert_eq!(group.take(), None, "one is under way");
    group.ended(None);
    assert_eq!(group.take(), Some((7, None)));
    assert!(group.is_empty() && group.take().is_none());
}

#[test]
fn after_a_failure_nothing_is_begun() {
    let mut group = group(&[(false, 1), (false, 2), (true, 3)]);
    begin_all(&mut group);
    group.ended(Some('x'));
    assert!(group.is_open(), "the other is under way");
    group.ended(Some('y'));
    assert_eq!(begin_all(&mut group), []);
    assert_eq!(group.take(), Some((7, Some('x'))));
    assert_eq!(
        group.fill(8, [(false, 1)].into_iter()),
        Ok(()),
        "it is as new"
    );
    assert_eq!(begin_all(&mut group), [1]);
}

/// What is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    Nothing,
    /// The fence forgets a group that was taken.
    FenceForgets,
    /// The fence does not wait for a group's end.
    FenceHurries,
    /// The next driver is not given what the lost one had.
    LossForgets,
    /// Members are begun whatever barriers say.
    NoBarriers,
    /// Members behind a failure are begun.
    NoEnd,
}

const MEMBERS: u64 = 24;

/// Shadow, driver and device: members are numbers of sectors, and what is written is the number of
/// the group.
struct Way {
    book: Book<u32, bool>,
    group: Group<u32, ()>,
    driver: Vec<(u64, u32)>,
    disk: Vec<u64>,
    /// In the order in which the device did them, of the last group.
    done: Vec<u32>,
    bad: Option<u32>,
    broken: Broken,
    number: u64,
}

impl Way {
    fn new(broken: Broken) -> Self {
        Way {
            book: Book::passing_barriers_on(5, 0).expect("the host has memory"),
            group: Group::new(MEMBERS as usize).expect("the host has memory"),
            driver: Vec::new(),
            disk: std::vec![0; MEMBERS as usize],
            done: Vec::new(),
            bad: None,
            broken,
            number: 0,
        }
    }

    fn pump(&mut self) {
        while let Some(member) = self.group.next() {
            if self.book.enter(0, false, member).is_err() {
                break;
            }
            self.group.begun();
        }
        while let Some((number, member)) = self.book.peek().map(|(number, it)| (number, *it)) {
            self.book.give();
            self.driver.push((number, member));
        }
    }

    /// The device does one of those that it has, and the driver says so.
    fn work(&mut self, random: &mut u64) {
        if self.driver.is_empty() {
            return;
        }
        let index = below(random, self.driver.len() as u64) as usize;
        let (number, member) = self.driver.remove(index);
        let fails = self.bad == Some(member);
        if !fails {
            self.disk[member as usize] = self.number;
            self.done.push(member);
        }
        if self.book.settle(number, |_, _| None).is_ok() {
            let failure = (fails && self.broken != Broken::NoEnd).then_some(());
            self.group.ended(failure);
        }
        self.book.forget_settled();
    }

    fn driver_dies(&mut self) {
        self.driver.clear();
        if self.broken != Broken::LossForgets {
            self.book.again();
        }
    }

    /// Another submitter opens: what is to be done is done, and nothing after it.
    fn fence(&mut self, random: &mut u64) {
        let mut patience = 1000;
        while self.group.is_open() && self.broken != Broken::FenceForgets {
            self.pump();
            self.work(random);
            patience -= 1;
            if self.broken == Broken::FenceHurries || patience == 0 {
                break;
            }
        }
        self.book = Book::passing_barriers_on(5, 0).expect("the host has memory");
        self.group = Group::new(MEMBERS as usize).expect("the host has memory");
        self.driver.clear();
    }
}

/// What is wrong with what a group has left behind, whose submitter died after `steps` steps.
fn trial(way: &mut Way, random: &mut u64) -> Result<(), &'static str> {
    way.number += 1;
    way.done.clear();
    let barrier = below(random, MEMBERS) as u32;
    way.bad = (below(random, 4) == 0).then(|| below(random, MEMBERS) as u32);
    let is_barrier = |member: u32| member == barrier && way.broken != Broken::NoBarriers;
    let members: Vec<(bool, u32)> = (0..MEMBERS as u32).map(|it| (is_barrier(it), it)).collect();
    let before = way.disk.clone();
    let dies_before = below(random, 5) == 0;
    if !dies_before {
        way.group.fill(1, members.into_iter()).expect("it is empty");
        for _ in 0..below(random, 80) {
            match below(random, 12) {
                0 => way.driver_dies(),
                1..=5 => way.pump(),
                _ => way.work(random),
            }
        }
    }
    way.fence(random);
    let new = way.disk.iter().filter(|it| **it == way.number).count();
    if dies_before {
        return if way.disk == before {
            Ok(())
        } else {
            Err("something of nothing")
        };
    }
    let first_behind = way.done.iter().position(|it| *it >= barrier);
    let late = first_behind.is_some_and(|at| way.done[at..].iter().any(|it| *it < barrier));
    match way.bad {
        None if new < MEMBERS as usize => Err("not all of it"),
        None if late => Err("the barrier was not kept"),
        Some(bad) if bad < barrier && first_behind.is_some() => Err("begun behind a failure"),
        _ => Ok(()),
    }
}

fn run(broken: Broken) -> Result<(), &'static str> {
    for seed in 1..300u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut way = Way::new(broken);
        for _ in 0..4 {
            trial(&mut way, &mut random)?;
        }
    }
    Ok(())
}

#[test]
fn all_or_nothing_whoever_dies() {
    assert_eq!(run(Broken::Nothing), Ok(()));
}

#[test]
fn what_is_broken_is_noticed() {
    for broken in [
        Broken::FenceForgets,
        Broken::FenceHurries,
        Broken::LossForgets,
        Broken::NoBarriers,
        Broken::NoEnd,
    ] {
        assert!(run(broken).is_err());
    }
}
