//! What the rules say in the cases that programs meet.

use super::*;
use alloc::vec;

fn user(id: u32, others: &[u32]) -> Cred {
    let ids = Ids {
        real: id,
        effective: id,
        saved: id,
        files: id,
    };
    Cred {
        user: ids,
        group: ids,
        others: others.to_vec(),
    }
}

fn file(mode: u32, user: u32, group: u32) -> Attributes {
    Attributes {
        user,
        group,
        ..Attributes::new(mode, 0)
    }
}

#[test]
fn one_class_of_bits_decides() {
    let own = user(7, &[3, 9]);
    for (mode, owner, group, may) in [
        (0o700, 7, 7, 7),
        (0o077, 7, 7, 0),
        (0o070, 1, 9, 7),
        (0o707, 1, 9, 0),
        (0o007, 1, 2, 7),
        (0o770, 1, 2, 0),
        (0o654, 7, 1, 6),
        (0o654, 1, 3, 5),
        (0o654, 1, 1, 4),
    ] {
        for wanted in 0..8 {
            let right = may & wanted == wanted;
            let found = own.may(&file(REGULAR | mode, owner, group), wanted);
            assert_eq!(found, right, "{mode:o} {owner} {group} {wanted}");
        }
    }
}

#[test]
fn root_may_all_but_execute_what_nobody_may() {
    let root = Cred::default();
    assert!(root.may(&file(REGULAR, 5, 5), READ | WRITE));
    assert!(!root.may(&file(REGULAR | 0o666, 0, 0), EXECUTE));
    assert!(root.may(&file(REGULAR | 0o001, 5, 5), EXECUTE));
    assert!(root.may(&file(DIRECTORY, 5, 5), READ | WRITE | EXECUTE));
    // The ids for files count, not the effective ones.
    let mut server = Cred::default();
    assert_eq!(server.user.set_files(5, true), 0);
    assert!(server.is_root() && !server.may(&file(REGULAR | 0o070, 5, 5), READ));
    assert!(server.as_real().is_ok_and(|real| real.has_all_files()));
}

#[test]
fn sticky_directories_keep_what_is_anothers() {
    let own = user(7, &[]);
    let shared = file(DIRECTORY | 0o1777, 0, 0);
    assert_eq!(own.may_remove(&shared, &file(REGULAR, 7, 0)), Ok(()));
    assert_eq!(own.may_remove(&shared, &file(REGULAR, 8, 0)), Err(EPERM));
    let mine = file(DIRECTORY | 0o1777, 7, 0);
    assert_eq!(own.may_remove(&mine, &file(REGULAR, 8, 0)), Ok(()));
    let open = file(DIRECTORY | 0o777, 0, 0);
    assert_eq!(own.may_remove(&open, &file(REGULAR, 8, 0)), Ok(()));
    let closed = file(DIRECTORY | 0o755, 0, 0);
    assert_eq!(own.may_remove(&closed, &file(REGULAR, 7, 7)), Err(EACCES));
    let root = Cred::default();
    assert_eq!(root.may_remove(&mine, &file(REGULAR, 8, 0)), Ok(()));
    // Links in shared directories.
    let link = |owner| file(crate::files::LINK | 0o777, owner, owner);
    assert!(own.may_follow(&shared, &link(7)) && own.may_follow(&shared, &link(0)));
    assert!(!own.may_follow(&shared, &link(8)) && own.may_follow(&open, &link(8)));
    assert!(!root.may_follow(&shared, &link(8)));
}

#[test]
fn names_are_given_to_what_is_ones_own_or_plain() {
    let own = user(7, &[]);
    assert!(own.may_link(&file(REGULAR, 7, 7)));
    assert!(own.may_link(&file(REGULAR | 0o666, 0, 0)));
    assert!(!own.may_link(&file(REGULAR | 0o644, 0, 0)));
    assert!(!own.may_link(&file(REGULAR | 0o4666, 0, 0)));
    assert!(!own.may_link(&file(REGULAR | 0o2676, 0, 0)));
    assert!(own.may_link(&file(REGULAR | 0o2666, 0, 0)));
    assert!(!own.may_link(&file(crate::files::FIFO | 0o666, 0, 0)));
    assert!(Cred::default().may_link(&file(crate::files::FIFO | 0o666, 5, 5)));
}

#[test]
fn what_is_made_belongs_to_who_makes_it_or_to_the_directorys_group() {
    let own = user(7, &[]);
    let plain = file(DIRECTORY | 0o777, 0, 77);
    assert_eq!(own.made(&plain, REGULAR, 0o2674), (7, 7, 0o2674));
    let shared = file(DIRECTORY | 0o2777, 0, 77);
    assert_eq!(own.made(&shared, REGULAR, 0o644), (7, 77, 0o644));
    assert_eq!(own.made(&shared, DIRECTORY, 0o755), (7, 77, 0o2755));
    assert_eq!(own.made(&shared, REGULAR, 0o2674), (7, 77, 0o674));
    assert_eq!(own.made(&shared, REGULAR, 0o2644), (7, 77, 0o2644));
    let member = user(7, &[77]);
    assert_eq!(member.made(&shared, REGULAR, 0o2674), (7, 77, 0o2674));
    let root = Cred::default();
    assert_eq!(root.made(&shared, DIRECTORY, 0o755), (0, 77, 0o2755));
}

#[test]
fn owners_alone_change_modes_owners_and_times() {
    let own = user(7, &[9]);
    let mine = file(REGULAR | 0o600, 7, 5);
    let theirs = file(REGULAR | 0o666, 8, 9);
    assert_eq!(own.new_mode(&mine, 0o6755), Ok(0o4755));
    assert_eq!(own.new_mode(&file(REGULAR, 7, 9), 0o6755), Ok(0o6755));
    assert_eq!(own.new_mode(&theirs, 0o600), Err(EPERM));
    assert_eq!(own.may_give(&mine, [None, Some(9)]), Ok(()));
    assert_eq!(own.may_give(&mine, [Some(7), Some(7)]), Ok(()));
    assert_eq!(own.may_give(&mine, [None, Some(4)]), Err(EPERM));
    assert_eq!(own.may_give(&mine, [Some(8), None]), Err(EPERM));
    assert_eq!(own.may_give(&theirs, [None, Some(9)]), Err(EPERM));
    assert_eq!(own.may_give(&theirs, [None, None]), Ok(()));
    assert_eq!(own.may_date(&mine, false), Ok(()));
    assert_eq!(own.may_date(&theirs, false), Err(EPERM));
    assert_eq!(own.may_date(&theirs, true), Ok(()));
    assert_eq!(
        own.may_date(&file(REGULAR | 0o644, 8, 8), true),
        Err(EACCES)
    );
}

#[test]
fn ids_go_where_they_may() {
    let mut root = Ids::default();
    root.set_three([1000, 1000, 1000], true).expect("it may");
    assert_eq!(root, user(1000, &[]).user);
    assert_eq!(root.set(0, false), Err(EPERM));
    assert_eq!(root.set(u32::MAX, true), Err(EINVAL));
    // For a while another one.
    let mut ids = Ids::default();
    ids.set_three([SAME, 1000, SAME], true).expect("it may");
    assert_eq!((ids.real, ids.effective, ids.saved), (0, 1000, 0));
    ids.set(0, false).expect("the saved one");
    assert_eq!(ids, Ids::default());
    // `setreuid` keeps the effective one where the real one is set, or another comes.
    let mut ids = Ids::default();
    ids.set_two([1000, SAME], true).expect("it may");
    assert_eq!((ids.real, ids.effective, ids.saved), (1000, 0, 0));
    ids.set_two([SAME, 1000], false).expect("the real one");
    assert_eq!((ids.effective, ids.saved, ids.files), (1000, 0, 1000));
    assert_eq!(ids.set_two([5, SAME], false), Err(EPERM));
    assert_eq!(ids.set_two([0, SAME], false), Err(EPERM));
    assert_eq!(ids.set_files(0, false), 1000);
    assert_eq!(ids.set_files(5, false), 0);
    assert_eq!(ids.files, 0);
    let mut cred = Cred::default();
    cred.user.set_three([SAME, 5, SAME], true).expect("it may");
    assert_eq!(cred.set_others(vec![1]), Err(EPERM));
    cred.executed();
    assert_eq!(cred.user.saved, 5);
    assert!(cred.is_other());
}

#[test]
fn signals_go_to_ones_own() {
    let [own, other] = [7, 8].map(|id| user(id, &[]));
    assert!(own.may_signal(&own) && !own.may_signal(&other));
    assert!(Cred::default().may_signal(&own) && !own.may_signal(&Cred::default()));
    let mut started = Cred::default();
    started.user.set_two([7, SAME], true).expect("it may");
    assert!(own.may_signal(&started) && !own.may_look_into(&started));
    assert!(own.may_look_into(&own) && !own.may_look_into(&other));
    assert!(Cred::default().may_look_into(&own));
}
