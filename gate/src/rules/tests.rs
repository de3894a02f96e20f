//! Who may depend on whom, row by row.

use super::*;

fn project() -> Project {
    Project {
        root: "/w".into(),
        target: "/w/target".into(),
        out: "/w/target/trefoil".into(),
    }
}

fn depends(folder: &str, name: &str, path: Option<&str>, kind: &str) -> Option<String> {
    let path = path.map(|path| Path::new("/w").join(path));
    let (name, version) = name.split_once(' ').unwrap_or((name, ""));
    let dependency = Dependency {
        name: name.into(),
        path,
        version: version.into(),
        kind: kind.into(),
    };
    let folder = Path::new(folder);
    forbidden(&project(), zone_of(folder), folder, &dependency)
}

#[test]
fn hostile_calls_are_for_tests() {
    let depends = |folder| depends(folder, HOSTILE, Some("abi/interfaces/hostile"), "normal");
    assert_eq!(depends("domains/testing/hostile"), None);
    assert!(depends("domains/fs/ext2").is_some());
    assert!(depends("kernel/image").is_some());
    assert!(depends("abi/interfaces").is_some());
}

#[test]
fn what_the_table_allows() {
    assert_eq!(
        depends("domains/fs/ext2", "ext2", Some("lib/fs/ext2"), "normal"),
        None
    );
    assert_eq!(
        depends(
            "domains/fs/ext2",
            "interfaces",
            Some("abi/interfaces"),
            "normal"
        ),
        None
    );
    assert_eq!(
        depends("domains/fs/ext2", "domain-rt", Some("runtime"), "normal"),
        None
    );
    assert_eq!(
        depends("programs/ls", "ulib", Some("programs/ulib"), "normal"),
        None
    );
    assert_eq!(
        depends("kernel/proxies", "idlc", Some("abi/idlc"), "build"),
        None
    );
    assert_eq!(
        depends("kernel/isolation", "ed25519-compact ^2.1", None, "normal"),
        None
    );
    assert_eq!(depends("lib/fs/ext2", "proptest", None, "dev"), None);
    assert_eq!(depends("xtask", "clap", None, "normal"), None);
}

#[test]
fn the_example_kernel_is_framework_and_policy() {
    let depends = |name, folder| depends("kernel/example", name, Some(folder), "normal");
    assert_eq!(depends("framework", "kernel/framework"), None);
    assert_eq!(depends("policy", "kernel/policy"), None);
    assert!(depends("isolation", "kernel/isolation").is_some());
    assert!(depends("abi", "abi/base").is_some());
    assert!(depends("cpio", "lib/system/cpio").is_some());
}

#[test]
fn a_domain_never_depends_on_another() {
    let text = depends(
        "domains/fs/ext2",
        "virtio-blk",
        Some("domains/drivers/virtio-blk"),
        "normal",
    );
    assert_eq!(
        text.as_deref(),
        Some("`virtio-blk`: domains must not depend on domains")
    );
}

#[test]
fn a_domain_does_not_reach_into_the_kernel() {
    assert!(
        depends(
            "domains/fs/ext2",
            "framework",
            Some("kernel/framework"),
            "normal"
        )
        .is_some()
    );
    assert!(
        depends(
            "programs/ulib",
            "isolation",
            Some("kernel/isolation"),
            "normal"
        )
        .is_some()
    );
}

#[test]
fn a_library_knows_nothing_of_this_system() {
    assert!(
        depends(
            "lib/fs/ext2",
            "interfaces",
            Some("abi/interfaces"),
            "normal"
        )
        .is_some()
    );
    assert!(depends("lib/fs/ext2", "abi", Some("abi/base"), "normal").is_some());
}

#[test]
fn the_kernel_depends_on_no_domain() {
    assert!(depends("kernel/image", "init", Some("domains/init"), "normal").is_some());
    assert!(depends("kernel/image", "ulib", Some("programs/ulib"), "normal").is_some());
}

#[test]
fn interfaces_use_the_shared_vocabulary_alone() {
    assert_eq!(
        depends("abi/interfaces", "abi", Some("abi/base"), "normal"),
        None
    );
    assert!(
        depends(
            "abi/interfaces",
            "isolation",
            Some("kernel/isolation"),
            "normal"
        )
        .is_some()
    );
}

#[test]
fn packages_that_nobody_vetted() {
    assert!(depends("domains/fs/ext2", "rand", None, "normal").is_some());
    assert!(depends("kernel/framework", "rand", None, "normal").is_some());
    assert!(depends("lib/fs/ext2", "rand", None, "normal").is_some());
}

/// What nothing links is not on the list: it would only be one more door.
#[test]
fn packages_that_were_vetted_are_there() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("the workspace has one");
    for (name, _) in VETTED {
        assert!(lock.contains(&format!("\nname = \"{name}\"\n")), "{name}");
    }
}

/// Neither a folder beside it nor one within may have what is for one folder alone.
#[test]
fn packages_that_are_for_one_folder() {
    for (only, name, _) in IN_ONE_FOLDER {
        let vetted = VETTED.iter().find(|(vetted, _)| *vetted == name);
        let (_, version) = vetted.expect("it is on the list of all");
        let depends = |folder: &str| depends(folder, &format!("{name} ^{version}"), None, "normal");
        assert_eq!(depends(only), None);
        for folder in [
            "domains/net/stack",
            "domains/libs/respawn",
            "lib/net",
            "lib/net/endpoint2",
            "lib/net/endpoint/inner",
            "lib/fs/ext2",
            "kernel/isolation",
            "runtime",
        ] {
            assert!(depends(folder).is_some(), "{folder}");
        }
    }
}

#[test]
fn packages_that_were_vetted_as_another_version() {
    assert_eq!(depends("lib/fs/ext2", "elf ^0.8", None, "normal"), None);
    for version in ["^0.5", "=0.8.0", "*", ">=0.5", "^0.8, <0.8.1", "^0.1"] {
        let name = format!("elf {version}");
        assert!(
            depends("lib/fs/ext2", &name, None, "normal").is_some(),
            "{name}"
        );
    }
}

#[test]
fn names_are_given_once() {
    let package = |name: &str, image: &str, update: Option<&str>| Package {
        name: name.into(),
        is_ours: true,
        domain: Some(crate::packages::Domain {
            image: image.into(),
            entry: "a".into(),
            path: format!("boot/domains/{image}"),
            update: update.map(String::from),
        }),
        ..Package::default()
    };
    let clashing = |other| {
        let first = package("virtio-blk", "virtio-blk", Some("virtio-blk-2"));
        clashes(&Packages::of(vec![first, other])).len()
    };
    assert_eq!(clashing(package("a", "a", Some("a-2"))), 0);
    assert_eq!(clashing(package("a", "virtio-blk-2", None)), 1);
    assert_eq!(clashing(package("a", "a", Some("virtio-blk-2"))), 1);
    assert_eq!(clashing(package("a", "a", Some("a"))), 1);
    assert_eq!(clashing(package("a", "a", Some(&"a".repeat(33)))), 1);
    assert_eq!(clashing(package("virtio_blk", "a", None)), 1);
    assert_eq!(clashing(package("core", "a", None)), 1);
}

#[test]
fn nothing_runs_at_build_time_in_a_domain() {
    assert!(depends("domains/fs/ext2", "cc", None, "build").is_some());
    assert!(depends("domains/fs/ext2", "idlc", Some("abi/idlc"), "build").is_some());
}
