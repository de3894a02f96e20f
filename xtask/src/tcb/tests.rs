//! How files are told apart and lines are counted.

use super::*;

#[test]
fn the_three_figures_are_sums_of_their_parts() {
    let row = |part, lines| Row {
        part,
        lines,
        ..Row::default()
    };
    let rows = [
        row(Part::Unsafe, 30),
        row(Part::Package, 7),
        row(Part::Kernel, 20),
        row(Part::Untrusted, 60),
        row(Part::Untrusted, 10),
        row(Part::Tool, 40),
        row(Part::Tool, 2),
        row(Part::Apart, 5),
    ];
    let expected = Figures {
        may_be_unsafe: 37,
        safe_in_kernel: 20,
        tools: 42,
        linked: 127,
    };
    assert_eq!(figures(&rows), expected);
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

fn sample() -> (Project, Packages) {
    let project = Project {
        root: "/w".into(),
        target: "/w/target".into(),
        out: "/w/target/trefoil".into(),
    };
    // Whether a crate forbids `unsafe` is read in its root: this file does not, that of `idlc`
    // does.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = ["src/tcb/tests.rs", "../abi/idlc/src/lib.rs"].map(|file| here.join(file));
    let package = |name: &str, folder: &str, is_ours, is_safe| Package {
        id: name.into(),
        name: name.into(),
        folder: folder.into(),
        is_ours,
        targets: vec![("lib".into(), roots[usize::from(is_safe)].clone())],
        ..Package::default()
    };
    let packages = Packages::of(vec![
        package("framework", "/w/kernel/framework", true, false),
        package("services", "/w/kernel/services", true, true),
        package("policy", "/w/kernel/policy", true, true),
        package("buddy", "/w/lib/system/buddy", true, true),
        package("ext2", "/w/lib/fs/ext2", true, true),
        package("idlc", "/w/abi/idlc", true, true),
        package("sha2", "/r/sha2", false, false),
        package("hashbrown", "/r/hashbrown", false, false),
        package("syn", "/r/syn", false, false),
        package("clap", "/r/clap", false, false),
    ]);
    (project, packages)
}

#[test]
fn every_file_of_the_system_has_its_owner() {
    let (project, packages) = sample();
    let in_kernel = ["framework", "services", "policy", "buddy", "sha2"];
    let owner = |file: &str| owner(&project, &packages, &in_kernel, Path::new(file));
    let generated = "/w/target/trefoil/cargo/x/release/build/proxies-12/out/proxies.rs";
    let cases = [
        (
            "/w/kernel/framework/src/a.rs",
            "kernel/framework",
            Part::Unsafe,
        ),
        (
            "/w/kernel/services/src/a.rs",
            "kernel/services",
            Part::Kernel,
        ),
        ("/w/kernel/policy/src/a.rs", "kernel/policy", Part::Kernel),
        (
            "/w/lib/system/buddy/src/a.rs",
            "lib/system/buddy",
            Part::Kernel,
        ),
        ("/w/lib/fs/ext2/src/a.rs", "lib/fs/ext2", Part::Untrusted),
        ("/r/sha2/src/a.rs", "dependency sha2", Part::Unsafe),
        (
            "/r/hashbrown/src/a.rs",
            "dependency hashbrown",
            Part::Package,
        ),
        (generated, "generated: proxies", Part::Unsafe),
        (
            "/w/target/trefoil/glue/ls/main.rs",
            "generated: entries",
            Part::Unsafe,
        ),
    ];
    for (file, name, part) in cases {
        assert_eq!(owner(file), Some((name.into(), part)), "{file}");
    }
    assert_eq!(owner("/w/abi/idlc/src/a.rs"), None);
    assert_eq!(owner("/rust/library/core/src/a.rs"), None);
}

#[test]
fn what_tools_link_counts_if_it_makes_images() {
    let (project, packages) = sample();
    let of = |file: &str| {
        tool_owner(
            &project,
            &packages,
            &["idlc", "syn", "sha2"],
            Path::new(file),
        )
    };
    let tool = |name: &str| Some((name.into(), Part::Tool));
    assert_eq!(of("/w/abi/idlc/src/a.rs"), tool("abi/idlc"));
    assert_eq!(of("/r/syn/src/a.rs"), tool("dependency syn, in the tools"));
    assert_eq!(
        of("/r/sha2/src/a.rs"),
        tool("dependency sha2, in the tools")
    );
    assert_eq!(of("/r/clap/src/a.rs"), None);
    assert_eq!(of("/w/lib/fs/ext2/src/a.rs"), None);
}

#[test]
fn unsafe_in_comments_does_not_count() {
    assert_eq!(
        unsafes("// unsafe\nunsafe impl A for B {}\nfn a() { unsafe { b() } }\n"),
        2
    );
}
