//! With tables that were made up.

use super::*;

const TABLES: Tables = Tables {
    interfaces: &[
        (7, "Disk", &["read", "tune", "stop"]),
        (9, "Odd", &["none"]),
    ],
    arguments: &[
        &[
            &[
                ("buffer", "length", &[]),
                ("sector", "number", &[]),
                ("name", "nothing", &[]),
                ("twice", "truth", &[]),
            ],
            &[("by", "signed", &[]), ("how", "variant", &["Fast", "Slow"])],
            &[],
        ],
        &[],
    ],
};

#[test]
fn methods_have_names_and_what_is_unknown_its_numbers() {
    assert_eq!(TABLES.method(7, 1), "Disk.tune");
    assert_eq!(TABLES.method(7, 3), "Disk, method 3");
    assert_eq!(TABLES.method(8, 0), "interface 0000000000000008, method 0");
}

#[test]
fn arguments_are_told_by_their_kinds_and_lengths_come_last() {
    let told = TABLES.arguments(7, 0, &[12, 1, 4096, 0]);
    assert_eq!(told, "buffer 4096 elements, sector 12, name _, twice true");
    let told = TABLES.arguments(7, 1, &[(-3_i64).cast_unsigned(), 1, 0, 0]);
    assert_eq!(told, "by -3, how Slow");
    assert_eq!(TABLES.arguments(7, 1, &[0, 2, 0, 0]), "by 0, how variant 2");
    let told = TABLES.arguments(7, 1, &[0, u64::MAX]);
    assert_eq!(told, "by 0, how variant 18446744073709551615");
    assert_eq!(TABLES.arguments(7, 2, &[1, 2, 3, 4]), "");
}

#[test]
fn arguments_of_what_is_unknown_or_not_noted_are_left_out() {
    assert_eq!(TABLES.arguments(8, 0, &[1]), "..");
    assert_eq!(TABLES.arguments(7, 3, &[1]), "..");
    assert_eq!(TABLES.arguments(9, 0, &[1]), "..");
    let told = TABLES.arguments(7, 0, &[12]);
    assert_eq!(told, "buffer _, sector 12, name _, twice _");
    assert_eq!(TABLES.arguments(7, 1, &[]), "by _, how _");
}

fn call(begun: u64, caller: u32, callee: u32) -> Traced {
    Traced {
        begun,
        caller,
        callee,
        interface: 7,
        method: 0,
        arguments: [0; 4],
    }
}

#[test]
fn ends_find_their_beginnings() {
    let mut open = Open::default();
    for one in [call(1, 3, 4), call(2, 4, 5), call(2, 3, 5)] {
        assert_eq!(open.begin(one), None);
    }
    assert_eq!(open.end(3, 4, 2), None);
    assert_eq!(open.end(4, 5, 2), Some(call(2, 4, 5)));
    assert_eq!(open.end(4, 5, 2), None);
    assert_eq!(open.end(3, 4, 1), Some(call(1, 3, 4)));
    assert_eq!(open.give_up(), Some(call(2, 3, 5)));
    assert_eq!(open.give_up(), None);
}

#[test]
fn calls_that_never_end_are_given_up_oldest_first() {
    let mut open = Open::default();
    for time in 0..MOST_OPEN as u64 {
        assert_eq!(open.begin(call(time, 3, 4)), None);
    }
    assert_eq!(open.begin(call(5000, 3, 4)), Some(call(0, 3, 4)));
    assert_eq!(open.end(3, 4, 0), None);
    assert_eq!(open.end(3, 4, 5000), Some(call(5000, 3, 4)));
}
