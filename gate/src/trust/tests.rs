//! Texts that are refused, each by its line, and some that are not.

use super::*;

fn lines(text: &str) -> Vec<usize> {
    source(Path::new("x.rs"), text)
        .iter()
        .map(|breach| breach.line)
        .collect()
}

#[test]
fn decent_code_passes() {
    let text = "//! unsafe in a comment\n#![forbid(unsafe_code)]\nextern crate alloc;\n#[cfg(feature = \"x\")]\nfn path(s: &str) { let path = s; log!(\"unsafe asm\"); }";
    assert!(lines(text).is_empty());
    assert!(lines("const A: &[u8] = include_bytes!(\"data/a.bin\");").is_empty());
}

#[test]
fn unsafe_is_found_wherever_it_stands() {
    assert_eq!(lines("fn a() {\n unsafe { b() }\n}"), [2]);
    assert_eq!(lines("unsafe impl A for B {}"), [1]);
    assert_eq!(lines("#[unsafe(no_mangle)] fn a() {}"), [1, 1]);
    assert_eq!(lines("macro_rules! m { () => { unsafe { a() } } }"), [1]);
    assert_eq!(lines("#[cfg(never)] mod a { unsafe fn b() {} }"), [1]);
}

#[test]
fn naked_functions_and_assembly() {
    assert_eq!(
        lines("#[naked] fn a() { core::arch::naked_asm!(\"\") }"),
        [1, 1]
    );
    assert_eq!(lines("core::arch::global_asm!(\"\");"), [1]);
    assert_eq!(lines("use core::arch::asm as harmless;"), [1]);
    assert_eq!(lines("use core::arch::r#asm as harmless;"), [1]);
}

#[test]
fn forced_target_features() {
    assert_eq!(
        lines("#[force_target_feature(enable = \"avx\")] fn a() {}"),
        [1]
    );
    assert_eq!(lines("#[target_feature(enable = \"avx\")] fn a() {}"), [1]);
}

#[test]
fn linkage_sections_and_symbol_names() {
    for attribute in [
        "linkage = \"weak\"",
        "link_section = \".text\"",
        "no_mangle",
        "export_name = \"memcpy\"",
    ] {
        assert_eq!(
            lines(&format!("#[{attribute}] fn a() {{}}")),
            [1],
            "{attribute}"
        );
    }
}

#[test]
fn scripts_for_a_debugger() {
    for text in [
        "#![debugger_visualizer(gdb_script_file = \"x.py\")]",
        "#![cfg_attr(all(), debugger_visualizer(natvis_file = \"x.natvis\"))]",
        "#[r#debugger_visualizer(gdb_script_file = \"x.py\")] mod a {}",
    ] {
        assert_eq!(lines(text), [1], "{text}");
    }
}

#[test]
fn foreign_functions() {
    assert_eq!(lines("extern \"C\" { fn a(); }"), [1]);
    assert_eq!(lines("extern \"C\" fn a() {}"), [1]);
    assert_eq!(lines("extern crate compiler_builtins;"), [1]);
}

#[test]
fn files_from_outside() {
    assert_eq!(lines("const A: &str = include_str!(\"/etc/passwd\");"), [1]);
    assert_eq!(
        lines("const A: &[u8] = include_bytes!(\"../../key\");"),
        [1]
    );
    assert_eq!(
        lines("const A: &[u8] = include_bytes!(concat!(\"..\", \"/key\"));"),
        [1]
    );
    assert_eq!(lines("include!(\"a.rs\");"), [1]);
    assert_eq!(lines("#[path = \"../../x.rs\"]\nmod x;"), [1]);
    assert_eq!(
        lines("#[cfg_attr(all(), path = \"../../x.rs\")]\nmod x;"),
        [1]
    );
}

#[test]
fn unstable_features() {
    assert_eq!(lines("#![feature(core_intrinsics)]"), [1]);
    assert_eq!(lines("#![cfg_attr(all(), feature(core_intrinsics))]"), [1]);
}

#[test]
fn the_entry_is_written_by_the_build_alone() {
    assert_eq!(lines("domain_rt::entry!(a, b);"), [1]);
}

#[test]
fn code_that_runs_at_build_time_or_stands_elsewhere() {
    let target = |kind: &str, file: &str| Package {
        folder: "/w/domains/a".into(),
        targets: vec![(kind.into(), file.into())],
        ..Package::default()
    };
    assert_eq!(targets(&target("lib", "/w/domains/a/src/lib.rs")).len(), 0);
    assert_eq!(
        targets(&target("custom-build", "/w/domains/a/build.rs")).len(),
        1
    );
    assert_eq!(
        targets(&target("proc-macro", "/w/domains/a/src/lib.rs")).len(),
        1
    );
    assert_eq!(targets(&target("lib", "/w/elsewhere/lib.rs")).len(), 1);
}

#[test]
fn expansions_have_no_unsafe_but_the_derived_one() {
    let derived = "#[automatically_derived]\nunsafe impl<T: F<fn() -> u8>, const N: u8> \
                       ::core::clone::TrivialClone for A<T, N> { }\nunsafe impl ::core::clone::TrivialClone for B { }\n\
                       fn a() { unsafe { ::core::intrinsics::unreachable() } }";
    assert!(expanded(derived).is_empty());
    for text in [
        "unsafe impl ::core::marker::Send for A { }",
        "unsafe impl<T: ::core::clone::TrivialClone> Send for A<T> { }",
        "unsafe impl core::clone::TrivialClone for A { }",
        "unsafe { ::core::clone::TrivialClone for () }",
        "unsafe { ::core::intrinsics::unreachable(); a() }",
        "unsafe { core::intrinsics::unreachable() }",
        "#[unsafe(naked)] fn a() { naked_asm!(\"\") }",
    ] {
        assert!(!expanded(text).is_empty(), "{text}");
    }
}

#[test]
fn characters_that_nobody_sees() {
    assert_eq!(lines("include\u{200e}!(\"a\");"), [1, 1]);
    assert_eq!(lines("\nenv\u{200f}!(\"A\");"), [2, 2]);
    assert_eq!(lines("fn a() {}\n// \u{202e}"), [2]);
    assert_eq!(lines("fn \u{430}() {}"), [1]);
    assert!(lines("/// é\nconst A: &str = \"é\";").is_empty());
    assert_eq!(expanded("fn \u{430}() { \u{430}() }").len(), 1);
}

#[test]
fn lines_that_the_compiler_skips() {
    assert_eq!(lines("#!/*\nfn a() { unsafe { b() } }\n/**/"), [1]);
    assert_eq!(lines("\u{feff}#! /*\nfn a() {}"), [1, 1]);
    assert!(lines("#![no_std]").is_empty());
}

#[test]
fn modules_may_be_called_as_a_build_folder() {
    let folder = std::env::temp_dir().join(format!("trefoil-target-{}", std::process::id()));
    fs::create_dir_all(folder.join("src/target")).expect("made");
    fs::create_dir_all(folder.join("target")).expect("made");
    fs::write(folder.join("src/target/mod.rs"), "unsafe fn a() {}").expect("written");
    fs::write(folder.join("target/mod.rs"), "").expect("written");
    let files = rust_files(&folder).expect("read");
    fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(files, [folder.join("src/target/mod.rs")]);
}

#[test]
fn links_are_refused() {
    let folder = std::env::temp_dir().join(format!("trefoil-trust-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    std::os::unix::fs::symlink("/etc", folder.join("src")).expect("made");
    let breaches = package(&Package {
        folder: folder.clone(),
        ..Package::default()
    })
    .expect("read");
    fs::remove_dir_all(folder).expect("removed");
    assert_eq!(breaches.len(), 1);
}
