//! How files are told apart and lines are counted.

use super::*;

#[test]
fn the_share_is_trusted_lines_over_all_lines() {
    let row = |part, lines| Row {
        part,
        lines,
        ..Row::default()
    };
    let rows = [
        row(Part::Trusted, 30),
        row(Part::Untrusted, 60),
        row(Part::Untrusted, 10),
        row(Part::Apart, 5),
    ];
    assert_eq!(sums(&rows), (30, 100));
}

#[test]
fn the_tests_of_the_framework_stand_apart() {
    // As debug information has the path of a file that `#[path]` names.
    let is_apart = |file: &str| is_measuring(&Path::new("/x/kernel/framework").join(file));
    assert!(is_apart("src/../selftest/lines.rs"));
    assert!(!is_apart("src/irq/line.rs"));
}

#[test]
fn a_library_without_a_reason_is_refused() {
    let row = |name: &str| Row {
        name: name.into(),
        lines: 10,
        ..Row::default()
    };
    let rows = [
        row("lib/system/cpio"),
        row("dependency sha2"),
        row("abi/base"),
    ];
    let mut packages = Packages::default();
    packages.reasons.insert("cpio".into(), "finds init".into());
    let error = reasons(&rows, &packages).expect_err("sha2 has none");
    assert!(error.to_string().contains("sha2"), "{error}");
    packages.reasons.insert("sha2".into(), "hashes".into());
    assert_eq!(reasons(&rows, &packages).expect("all have").len(), 2);
    assert_eq!(half_lines(&rows, Half::Isolation), 20);
    assert_eq!(half_lines(&rows, Half::Framework), 10);
}

#[test]
fn every_file_has_its_owner() {
    let project = Project {
        root: "/w".into(),
        target: "/w/target".into(),
        out: "/w/target/trefoil".into(),
    };
    let package = |name: &str, folder: &str, is_ours| Package {
        id: name.into(),
        name: name.into(),
        folder: folder.into(),
        is_ours,
        ..Package::default()
    };
    let packages = Packages::of(vec![
        package("framework", "/w/kernel/framework", true),
        package("policy", "/w/kernel/policy", true),
        package("buddy", "/w/lib/system/buddy", true),
        package("ext2", "/w/lib/fs/ext2", true),
        package("idlc", "/w/abi/idlc", true),
        package("sha2", "/r/sha2", false),
        package("syn", "/r/syn", false),
    ]);
    let owner = |file: &str| {
        owner(
            &project,
            &packages,
            &["framework", "policy", "buddy", "sha2"],
            Path::new(file),
        )
    };
    assert_eq!(
        owner("/w/kernel/framework/src/a.rs"),
        Some(("kernel/framework".into(), Part::Trusted))
    );
    assert_eq!(
        owner("/w/kernel/policy/src/a.rs"),
        Some(("kernel/policy".into(), Part::Untrusted))
    );
    assert_eq!(
        owner("/w/lib/system/buddy/src/a.rs"),
        Some(("lib/system/buddy".into(), Part::Trusted))
    );
    assert_eq!(
        owner("/w/lib/fs/ext2/src/a.rs"),
        Some(("lib/fs/ext2".into(), Part::Untrusted))
    );
    assert_eq!(
        owner("/w/abi/idlc/src/a.rs"),
        Some(("abi/idlc".into(), Part::Apart))
    );
    assert_eq!(
        owner("/r/sha2/src/a.rs"),
        Some(("dependency sha2".into(), Part::Trusted))
    );
    assert_eq!(owner("/r/syn/src/a.rs"), None);
    assert_eq!(owner("/rust/library/core/src/a.rs"), None);
    let generated = "/w/target/trefoil/cargo/x/release/build/proxies-12/out/proxies.rs";
    assert_eq!(
        owner(generated),
        Some(("generated: proxies".into(), Part::Trusted))
    );
    assert_eq!(
        owner("/w/target/trefoil/glue/ls/main.rs"),
        Some(("generated: entries".into(), Part::Trusted))
    );
}

#[test]
fn what_tools_link_counts_if_it_makes_images() {
    let of = |name: &str, part| is_builder(&(name.into(), part));
    assert!(of("abi/idlc", Part::Apart));
    assert!(!of("lab/faults", Part::Trusted));
    assert!(!of("lib/fs/ext2", Part::Untrusted));
}

#[test]
fn unsafe_in_comments_does_not_count() {
    assert_eq!(
        unsafes("// unsafe\nunsafe impl A for B {}\nfn a() { unsafe { b() } }\n"),
        2
    );
}
