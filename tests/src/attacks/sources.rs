//! Attacks by what stands in a domain's Rust files.

use super::{Attack, attack, source};

/// What `-F unsafe_code` says.
const FORBIDDEN: &str = "-F unsafe-code";
/// What the search of the expanded source says.
const EXPANDED: &str = "after the expansion of macros: `unsafe`";
/// What the look at the files that the compiler has read says.
const FOREIGN: &str = "is read, which is not in the package's folder";

pub(super) const ATTACKS: &[Attack] = &[
    // Unsafe code in every guise: the sources show it, and the compiler forbids it once more.
    source!(
        "source-unsafe-block",
        "pub fn a(p: *const u8) -> u8 { unsafe { *p } }",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-function",
        "pub unsafe fn a() {}",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-impl",
        "pub struct A(*mut u8);\nunsafe impl Send for A {}",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-trait",
        "pub unsafe trait A {}",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-extern-block",
        "unsafe extern \"C\" { pub fn a(); }",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-attribute",
        "#[unsafe(no_mangle)]\npub fn memcpy() {}",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-unsafe-behind-cfg",
        "#[cfg(any())]\nmod a { pub unsafe fn b() {} }",
        "`unsafe`",
        ""
    ),
    source!(
        "source-unsafe-in-a-macro",
        "macro_rules! m { ($p:expr) => { unsafe { *$p } } }\npub fn a(p: *const u8) -> u8 { m!(p) }",
        "`unsafe`",
        FORBIDDEN
    ),
    source!(
        "source-allow-unsafe-code",
        "#![allow(unsafe_code)]\npub fn a(p: *const u8) -> u8 { unsafe { *p } }",
        "`unsafe`",
        "incompatible with previous forbid"
    ),
    source!(
        "source-allow-unsafe-code-by-cfg-attr",
        "#![cfg_attr(all(), allow(unsafe_code))]\npub fn a(p: *const u8) -> u8 { unsafe { *p } }",
        "`unsafe`",
        "incompatible with previous forbid"
    ),
    source!(
        "source-naked-function",
        "#[unsafe(naked)]\npub extern \"C\" fn a() { core::arch::naked_asm!(\"ret\") }",
        "`naked_asm`",
        EXPANDED
    ),
    source!(
        "source-naked-assembly-renamed",
        "pub use core::arch::naked_asm as harmless;",
        "`naked_asm`",
        ""
    ),
    source!(
        "source-assembly",
        "pub fn a() { unsafe { core::arch::asm!(\"cli\") } }",
        "`asm`",
        FORBIDDEN
    ),
    source!(
        "source-global-assembly",
        "core::arch::global_asm!(\"memcpy: ret\");",
        "`global_asm`",
        "`global_asm` is not allowed"
    ),
    source!(
        "source-forced-target-feature",
        "#![feature(effective_target_features)]\n#[unsafe(force_target_feature(enable = \"avx\"))]\npub fn a() {}",
        "`force_target_feature`",
        ""
    ),
    source!(
        "source-target-feature",
        "#[target_feature(enable = \"avx2\")]\npub fn a() {}",
        "`target_feature`",
        "`target_feature` is not allowed"
    ),
    source!(
        "source-linkage",
        "#[linkage = \"weak\"]\npub fn a() {}",
        "`linkage`",
        "E0658"
    ),
    source!(
        "source-link-section",
        "#[unsafe(link_section = \".init_array\")]\npub static A: fn() = || ();",
        "`link_section`",
        EXPANDED
    ),
    source!(
        "source-no-mangle",
        "#[no_mangle]\npub fn memcpy() {}",
        "`no_mangle`",
        "`no_mangle` is not allowed"
    ),
    source!(
        "source-export-name",
        "#[export_name = \"memcpy\"]\npub fn a() {}",
        "`export_name`",
        "`export_name` is not allowed"
    ),
    source!(
        "source-attribute-pasted-by-a-macro",
        "macro_rules! m { ($a:ident) => { #[$a] pub fn memcpy() {} } }\nm!(no_mangle);",
        "`no_mangle`",
        "`no_mangle` is not allowed"
    ),
    attack(
        "source-script-for-a-debugger",
        &[
            (
                "src/lib.rs",
                "#![no_std]\n#![debugger_visualizer(gdb_script_file = \"x.py\")]",
            ),
            ("src/x.py", "import os\nos.system('id')"),
        ],
        "`debugger_visualizer`",
        "`debugger_visualizer` is not allowed",
    ),
    source!(
        "source-foreign-function",
        "pub extern \"C\" fn a() {}",
        "`extern`",
        ""
    ),
    source!(
        "source-foreign-crate",
        "extern crate compiler_builtins;",
        "`extern`",
        ""
    ),
    source!(
        "source-static-mut",
        "pub static mut A: u8 = 0;",
        "`static mut`",
        ""
    ),
    // What only the expansion of macros shows.
    source!(
        "source-entry-macro",
        "domain_rt::entry!(interfaces::domains::forwarder, a);\n\
         pub fn a(next: interfaces::Handle<dyn interfaces::Subject>, _: interfaces::RVec<u8>) -> interfaces::RpcResult<interfaces::Handle<dyn interfaces::Subject>> { Ok(next) }",
        "`entry!`",
        EXPANDED
    ),
    source!(
        "source-entry-macro-renamed",
        "use domain_rt::entry as harmless;\nharmless!(interfaces::domains::forwarder, a);\n\
         pub fn a(next: interfaces::Handle<dyn interfaces::Subject>, _: interfaces::RVec<u8>) -> interfaces::RpcResult<interfaces::Handle<dyn interfaces::Subject>> { Ok(next) }",
        "",
        EXPANDED
    ),
    source!(
        "source-entry-macro-by-a-macro",
        "macro_rules! m { ($m:ident) => { domain_rt::$m!(interfaces::domains::forwarder, a); } }\nm!(entry);\n\
         pub fn a(next: interfaces::Handle<dyn interfaces::Subject>, _: interfaces::RVec<u8>) -> interfaces::RpcResult<interfaces::Handle<dyn interfaces::Subject>> { Ok(next) }",
        "",
        EXPANDED
    ),
    // Files and variables from outside of the package.
    source!(
        "source-include",
        "include!(\"../../../Cargo.toml\");",
        "`include!`",
        ""
    ),
    source!(
        "source-include-str",
        "pub const A: &str = include_str!(\"/etc/passwd\");",
        "`include_str!`",
        FOREIGN
    ),
    source!(
        "source-include-bytes",
        "pub const A: &[u8] = include_bytes!(\"../../../Cargo.toml\");",
        "`include_bytes!`",
        FOREIGN
    ),
    source!(
        "source-include-renamed",
        "use core::include_str as text;\npub const A: &str = text!(\"../../../Cargo.toml\");",
        "",
        FOREIGN
    ),
    source!(
        "source-include-in-documentation",
        "#![no_std]\n#![doc = include_str!(\"/etc/passwd\")]",
        "`include_str!`",
        FOREIGN
    ),
    source!(
        "source-path-attribute",
        "#[path = \"../../../outside.rs\"]\npub mod a;",
        "`#[path]`",
        FOREIGN
    ),
    source!(
        "source-path-by-cfg-attr",
        "#[cfg_attr(all(), path = \"../../../outside.rs\")]\npub mod a;",
        "`#[path]`",
        FOREIGN
    ),
    source!(
        "source-path-pasted-by-a-macro",
        "macro_rules! m { ($p:ident) => { #[$p = \"../../../outside.rs\"] pub mod a; } }\nm!(path);",
        "",
        FOREIGN
    ),
    source!(
        "source-environment",
        "pub const A: &str = env!(\"PATH\");",
        "`env!`",
        "environment is asked for `PATH`"
    ),
    source!(
        "source-environment-renamed",
        "use core::option_env as a;\npub const A: Option<&str> = a!(\"TREFOIL_PUBLIC_KEY\");",
        "",
        "environment is asked for `TREFOIL_PUBLIC_KEY`"
    ),
    Attack {
        name: "source-link-to-a-file",
        files: &[("src/lib.rs", "pub mod a;")],
        links: &[("src/a.rs", "../../../outside.rs")],
        before: "links are not allowed",
        compiling: FOREIGN,
    },
    Attack {
        name: "source-link-to-a-folder",
        files: &[("src/lib.rs", "pub mod a { pub mod outside; }")],
        links: &[("src/a", "../../..")],
        before: "links are not allowed",
        compiling: FOREIGN,
    },
    // Code that the search might not see.
    source!(
        "source-behind-a-skipped-line",
        "#!/*\n#![no_std]\npub fn a(p: *const u8) -> u8 { unsafe { *p } }\n/* */",
        "the compiler skips",
        FORBIDDEN
    ),
    attack(
        "source-in-a-module-called-target",
        &[
            ("src/lib.rs", "pub mod target;"),
            ("src/target/mod.rs", "pub unsafe fn a() {}"),
        ],
        "`unsafe`",
        FORBIDDEN,
    ),
    source!(
        "source-raw-identifier",
        "pub fn a() { core::arch::r#asm!(\"\") }",
        "`asm`",
        ""
    ),
    source!(
        "source-behind-odd-literals",
        "pub const A: (char, u8, &str) = ('\"', b'\\'', r#\"'\"#);\npub unsafe fn a<'a>() {}",
        "`unsafe`",
        FORBIDDEN
    ),
    // Characters that the compiler and the search, or the compiler and a reader, might take for
    // different things.
    attack(
        "source-include-behind-a-direction-mark",
        &[
            ("src/lib.rs", "include\u{200e}!(\"a.txt\");"),
            ("src/a.txt", "pub fn a() -> u64 { 1 }"),
        ],
        "\\u{200e}",
        "\\u{200e}",
    ),
    source!(
        "source-environment-behind-a-direction-mark",
        "pub const A: &str = env\u{200f}!(\"PATH\");",
        "\\u{200f}",
        "environment is asked for `PATH`"
    ),
    source!(
        "source-entry-behind-a-next-line",
        "domain_rt::entry\u{85}!(interfaces::domains::forwarder, a);\n\
         pub fn a(next: interfaces::Handle<dyn interfaces::Subject>, _: interfaces::RVec<u8>) -> interfaces::RpcResult<interfaces::Handle<dyn interfaces::Subject>> { Ok(next) }",
        "\\u{85}",
        EXPANDED
    ),
    source!(
        "source-letters-that-look-alike",
        "pub fn \u{430}() {}",
        "\\u{430}",
        "\\u{430}"
    ),
    source!(
        "source-text-that-is-shown-in-another-order",
        "#![no_std]\n#![allow(text_direction_codepoint_in_comment)]\n/* \u{202e} */ pub fn a() {}",
        "\\u{202e}",
        "\\u{202e}"
    ),
    attack(
        "source-code-in-a-file-of-another-kind",
        &[
            (
                "src/lib.rs",
                "macro_rules! m { ($p:ident) => { #[$p = \"a.txt\"] pub mod a; } }\nm!(path);",
            ),
            (
                "src/a.txt",
                "//! A module.\n#[cfg(any())]\npub unsafe fn a() {}",
            ),
        ],
        "",
        "`unsafe`",
    ),
    // What a domain's author writes must not run on the builder's machine.
    attack(
        "source-code-in-documentation-of-an-interface",
        &[
            ("src/lib.rs", ""),
            (
                "evil.idl",
                "//! D.\n\n/// ```\n/// std::fs::read(\"target/trefoil/signing/key\").unwrap();\n/// ```\n\
                 pub struct Evil {\n    /// D.\n    pub a: u64,\n}",
            ),
        ],
        "error[doc-text]",
        "",
    ),
    attack(
        "source-settings-for-the-compiler",
        &[
            ("src/lib.rs", ""),
            (
                ".cargo/config.toml",
                "[build]\nrustflags = [\"-Zcrate-attr=feature(x)\"]",
            ),
        ],
        "is not the package's to say",
        "",
    ),
];
