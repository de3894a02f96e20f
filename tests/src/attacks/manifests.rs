//! Attacks by what stands in a domain's `Cargo.toml`.

use super::{Attack, attack};

/// What the check of manifests says.
const REFUSED: &str = "is not allowed in the Cargo.toml";

/// A manifest that begins as usual, and goes on with `$text`.
macro_rules! manifest {
    ($name:literal, $text:literal, $before:expr) => {
        manifest!($name, $text, $before, [])
    };
    ($name:literal, $text:literal, $before:expr, [$($file:expr),*]) => {
        attack(
            $name,
            &[
                (
                    "Cargo.toml",
                    concat!("[package]\nname = \"", $name, "\"\nversion = \"0.1.0\"\nedition = \"2024\"\n", $text),
                ),
                ("src/lib.rs", "#![no_std]\n"),
                $($file),*
            ],
            $before,
            "",
        )
    };
}

pub(super) const ATTACKS: &[Attack] = &[
    manifest!(
        "manifest-build-script",
        "build = \"other.rs\"\n",
        REFUSED,
        [("other.rs", "fn main() {}")]
    ),
    manifest!(
        "manifest-build-script-by-its-name",
        "",
        "build scripts are not allowed",
        [("build.rs", "fn main() {}")]
    ),
    manifest!(
        "manifest-procedural-macro",
        "[lib]\nproc-macro = true\n",
        REFUSED
    ),
    manifest!(
        "manifest-sources-elsewhere",
        "[lib]\npath = \"../../../outside.rs\"\n",
        REFUSED
    ),
    manifest!(
        "manifest-other-kind-of-library",
        "[lib]\ncrate-type = [\"cdylib\"]\n",
        REFUSED
    ),
    manifest!(
        "manifest-renamed-package",
        "[dependencies]\nelf = { package = \"rand\", version = \"0.9\" }\n",
        REFUSED
    ),
    manifest!(
        "manifest-listed-name-from-git",
        "[dependencies]\nelf = { git = \"https://example.org/elf\" }\n",
        REFUSED
    ),
    manifest!(
        "manifest-listed-name-from-another-registry",
        "[dependencies]\nelf = { version = \"0.8\", registry-index = \"https://example.org\" }\n",
        REFUSED
    ),
    manifest!(
        "manifest-listed-package-as-an-older-version",
        "[dependencies]\nelf = \"0.5\"\n",
        "was vetted as version 0.8"
    ),
    manifest!(
        "manifest-tool-as-dependency",
        "[dependencies]\nidlc = { path = \"../../abi/idlc\" }\n",
        "domains must not depend on"
    ),
    manifest!(
        "manifest-kernel-internals",
        "[dependencies]\nisolation = { path = \"../../kernel/isolation\" }\n",
        "domains must not depend on crates of the kernel"
    ),
    manifest!(
        "manifest-another-domain",
        "[dependencies]\na-first = { path = \"../a-first\" }\n",
        "domains must not depend on domains"
    ),
    manifest!(
        "manifest-features-of-others",
        "[dependencies]\nsha2 = { version = \"0.11\", features = [\"asm\"] }\n",
        REFUSED
    ),
    manifest!(
        "manifest-own-features",
        "[features]\ndefault = [\"dep:x\"]\n",
        REFUSED
    ),
    manifest!(
        "manifest-target-dependencies",
        "[target.'cfg(all())'.dependencies]\nelf = \"0.8\"\n",
        REFUSED
    ),
    manifest!(
        "manifest-build-dependencies",
        "[build-dependencies]\ncc = \"1\"\n",
        REFUSED
    ),
    manifest!(
        "manifest-patch",
        "[patch.crates-io]\nspin = { path = \"../x\" }\n",
        REFUSED
    ),
    manifest!(
        "manifest-replace",
        "[replace]\n\"spin:0.10.0\" = { path = \"../x\" }\n",
        REFUSED
    ),
    manifest!(
        "manifest-profile",
        "[profile.release]\noverflow-checks = false\n",
        REFUSED
    ),
    manifest!(
        "manifest-compiler-flags",
        "[profile.release]\nrustflags = [\"-Zcrate-attr=feature(core_intrinsics)\"]\n",
        REFUSED
    ),
    manifest!("manifest-links", "links = \"c\"\n", REFUSED),
    manifest!(
        "manifest-lints-off",
        "[lints.rust]\nunsafe_code = \"allow\"\n",
        REFUSED
    ),
    manifest!("manifest-own-workspace", "[workspace]\n", REFUSED),
    manifest!(
        "manifest-other-targets",
        "[[bin]]\nname = \"trefoil\"\npath = \"src/lib.rs\"\n",
        REFUSED
    ),
    attack(
        "manifest-unstable-cargo",
        &[
            (
                "Cargo.toml",
                "cargo-features = [\"profile-rustflags\"]\n[package]\nname = \"manifest-unstable-cargo\"\n",
            ),
            ("src/lib.rs", ""),
        ],
        REFUSED,
        "",
    ),
    attack(
        "manifest-older-language",
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"manifest-older-language\"\nversion = \"0.1.0\"\nedition = \"2015\"\n",
            ),
            ("src/lib.rs", "#![no_std]\n"),
        ],
        REFUSED,
        "",
    ),
    manifest!(
        "manifest-image-called-as-the-kernel",
        "[package.metadata.trefoil]\nimage = \"trefoil\"\nentry = \"a\"\n",
        "is taken"
    ),
    manifest!(
        "manifest-image-called-as-another",
        "[package.metadata.trefoil]\nimage = \"init\"\nentry = \"a\"\n",
        "is taken"
    ),
    manifest!(
        "manifest-update-called-as-another",
        "[package.metadata.trefoil]\nimage = \"a\"\nentry = \"a\"\nupdate = \"init\"\n",
        "is taken"
    ),
    manifest!(
        "manifest-image-with-a-long-name",
        "[package.metadata.trefoil]\nimage = \"abcdefghijklmnopqrstuvwxyz0123456\"\nentry = \"a\"\n",
        "longer than 32 bytes"
    ),
    manifest!(
        "manifest-image-that-leaves-its-folder",
        "[package.metadata.trefoil]\nimage = \"a\"\nentry = \"a\"\npath = \"../../x\"\n",
        "is not a plain path"
    ),
    manifest!(
        "manifest-entry-that-is-code",
        "[package.metadata.trefoil]\nimage = \"a\"\nentry = \"x, y); unsafe { } //\"\n",
        "is not a plain name"
    ),
];
