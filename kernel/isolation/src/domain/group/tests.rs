//! Budgets and weights of groups.

use super::*;

fn spec(number: u32, pages: usize) -> GroupSpec {
    GroupSpec {
        number,
        pages,
        threads: 2,
        ..GroupSpec::NONE
    }
}

fn of_weight(id: u32, weight: u32) -> Starter<'static> {
    let group = None;
    Starter { id, weight, group }
}

fn group(starter: u32, number: u32, pages: usize) -> Arc<Group> {
    join(of_weight(starter, WEIGHTS.1), &spec(number, pages)).expect("memory")
}

#[test]
fn a_number_means_something_to_its_starter_only() {
    // Numbers of instances that no other test has.
    const ONE: u32 = u32::MAX - 1;
    const OTHER: u32 = u32::MAX - 2;
    let first = group(ONE, 7, 1);
    let same = group(ONE, 7, 99);
    let foreign = group(OTHER, 7, 3);
    assert_eq!(first.id, same.id);
    assert_eq!(
        same.memory_limit(),
        4096,
        "the first to make it sets its limit"
    );
    assert_ne!(first.id, foreign.id);
    assert_ne!(group(ONE, 0, 1).id, group(ONE, 0, 1).id);
}

#[test]
fn a_number_stays_as_long_as_somebody_has_a_share() {
    // Numbers of instances that no other test has.
    const ONE: u32 = u32::MAX - 3;
    let group = |number| group(ONE, number, 1);
    let first = group(7);
    let (id, paid) = (first.id, first.clone());
    drop(first);
    assert!(paid.take_memory(4000).is_granted());
    let next = group(7);
    assert_eq!(next.id, id, "the memory is still charged to it");
    assert!(next.take_memory(97) == Claim::Refused);
    drop((next, paid));
    let later = group(7);
    assert_ne!(later.id, id, "nobody had a share");
    drop(later);
    // Others take the places of those that nobody has a share of.
    let others: Vec<_> = (100..200).map(&group).collect();
    let all = ALL.lock();
    let is_of = |group: &Arc<Group>, number| (group.starter, group.number) == (ONE, number);
    assert!(all.iter().all(|known| !is_of(known, 7)));
    drop((all, others));
    assert!(group(7).take_memory(4096).is_granted());
    let known = ALL
        .lock()
        .iter()
        .filter(|group| group.starter == ONE)
        .count();
    assert!(known <= 101, "{known} groups are remembered");
}

#[test]
fn a_limit_is_reached_exactly() {
    let group = group(1, 0, 2);
    assert!(group.take_memory(8191).is_granted() && group.take_memory(1).is_granted());
    assert!(group.take_memory(1) == Claim::Refused && group.take_memory(0).is_granted());
    assert!(group.take_memory(usize::MAX) == Claim::Refused);
    group.give_memory(4096);
    assert!(group.take_memory(4097) == Claim::Refused && group.take_memory(4096).is_granted());
    assert!(
        group.take_thread().is_granted()
            && group.take_thread().is_granted()
            && group.take_thread() == Claim::Refused
    );
    group.give_thread();
    assert_eq!((group.memory_used(), group.threads_used()), (8192, 1));
}

#[test]
fn what_is_given_back_twice_is_nothing() {
    let group = group(1, 0, 2);
    assert!(group.take_memory(100).is_granted());
    group.give_memory(100);
    group.give_memory(100);
    group.give_thread();
    assert_eq!((group.memory_used(), group.threads_used()), (0, 0));
    assert!(group.take_memory(8192).is_granted() && group.take_thread().is_granted());
    group.add_memory(usize::MAX);
    assert_eq!(group.memory_used(), usize::MAX);
    assert!(group.take_memory(1) == Claim::Refused);
}

#[test]
fn weights_and_shares_have_ends() {
    let of = |weight, percent| {
        let spec = GroupSpec {
            weight,
            percent,
            ..GroupSpec::NONE
        };
        let group = join(Starter::of(None), &spec).expect("memory");
        (group.weight, group.percent)
    };
    assert_eq!(of(0, 0), (USUAL_WEIGHT, 0));
    assert_eq!(of(1, 1), (1, 1));
    assert_eq!(of(65_537, 102_401), (65_536, 102_400));
    assert_eq!(of(u32::MAX, u32::MAX), (65_536, 102_400));
}

#[test]
fn a_weight_is_bounded_by_the_starters() {
    let of = |starter: u32, weight: u32| {
        let spec = GroupSpec {
            weight,
            ..GroupSpec::NONE
        };
        join(of_weight(1, starter), &spec).expect("memory").weight
    };
    assert_eq!((of(4096, 4096), of(4096, 4097)), (4096, 4096));
    assert_eq!((of(4096, u32::MAX), of(USUAL_WEIGHT, 65_536)), (4096, 1024));
    assert_eq!(of(512, 0), 512, "saying nothing is not asking for nothing");
    assert_eq!((of(512, 511), of(1, 2)), (511, 1));
}

#[test]
fn no_limit_is_no_limit() {
    let group = join(Starter::of(None), &GroupSpec::NONE).expect("memory");
    assert!(group.take_memory(1 << 40).is_granted());
    assert_eq!((group.memory_limit(), group.threads_limit()), (0, 0));
    assert_eq!(group.weight, USUAL_WEIGHT);
}
