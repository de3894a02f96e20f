//! Attacks without a word that could be looked for: the language itself must refuse them.

use super::{Attack, source};

pub(super) const ATTACKS: &[Attack] = &[
    // Unsafe things without the word: the language itself refuses.
    source!(
        "source-raw-pointer",
        "pub fn a(p: *const u8) -> u8 { *p }",
        "",
        "E0133"
    ),
    source!(
        "source-union",
        "pub union A { a: u64, b: fn() }\npub fn a(a: A) -> u64 { match a { A { a } => a } }",
        "",
        "E0133"
    ),
    source!(
        "source-transmute",
        "pub fn a(f: u64) -> fn() { core::mem::transmute(f) }",
        "",
        "E0133"
    ),
    source!(
        "source-intrinsics",
        "pub fn a(f: u64) -> fn() { core::intrinsics::transmute_unchecked(f) }",
        "",
        "E0658"
    ),
    source!(
        "source-internals-of-the-library",
        "pub use core::panicking::panic_fmt;",
        "",
        "E0658"
    ),
    source!(
        "source-unstable-feature",
        "#![feature(core_intrinsics)]\npub fn a() { core::intrinsics::abort() }",
        "unstable",
        "E0725"
    ),
    source!(
        "source-unstable-feature-by-cfg-attr",
        "#![cfg_attr(all(), feature(core_intrinsics))]\npub fn a() {}",
        "unstable",
        "E0725"
    ),
    source!(
        "source-language-item",
        "#[lang = \"eh_personality\"]\npub fn a() {}",
        "",
        "E0658"
    ),
    source!(
        "source-allocator",
        "struct A;\n#[global_allocator]\nstatic B: A = A;",
        "`global_allocator`",
        "after the expansion of macros: `unsafe`"
    ),
    source!(
        "source-panic-handler",
        "#[panic_handler]\nfn a(_: &core::panic::PanicInfo) -> ! { loop {} }",
        "`panic_handler`",
        "`panic_handler` is not allowed"
    ),
    source!("source-without-core", "#![no_core]\n", "`no_core`", ""),
    source!(
        "source-procedural-macro-interface",
        "extern crate proc_macro;",
        "`proc_macro`",
        ""
    ),
    // What the runtime and the shared vocabulary offer does not help.
    source!(
        "source-runtime-entry",
        "pub fn a() -> u64 { domain_rt::enter(core::ptr::null_mut(), |_, _, _| Ok(())) }",
        "",
        "E0133"
    ),
    source!(
        "source-replaced-kernel-functions",
        "pub fn a(api: abi::api::Api) { abi::api::set_api(api) }",
        "",
        "E0133"
    ),
    source!(
        "source-free-what-is-not-mine",
        "pub fn a() { (abi::api::api().shared_free)(4096 as *mut u8) }",
        "",
        "E0133"
    ),
    source!(
        "source-handle-from-an-address",
        "use abi::*;\npub fn a(raw: abi::handle::RawHandle) -> Handle<dyn interfaces::Block> { Handle::from_raw(raw) }",
        "",
        "E0133"
    ),
    source!(
        "source-handle-by-its-fields",
        "use interfaces::*;\npub fn a(h: AnyHandle) -> u64 { let AnyHandle { interface, .. } = h; interface }",
        "",
        "E0451"
    ),
    source!(
        "source-object-from-an-address",
        "use interfaces::RRef;\npub fn a() -> RRef<u64> { RRef(core::ptr::NonNull::dangling()) }",
        "",
        "E0423"
    ),
    source!(
        "source-text-of-another-length",
        "use interfaces::Text;\npub fn a() -> Text<8> { Text { len: 9999, bytes: [0; 8] } }",
        "",
        "E0451"
    ),
    source!(
        "source-own-plain-type",
        "#[derive(Clone, Copy)]\npub struct A(&'static str);\nimpl abi::Plain for A {}",
        "",
        "E0200"
    ),
    source!(
        "source-own-exchangeable-type",
        "pub struct A(fn());\nimpl abi::Exchangeable for A {}",
        "",
        "E0200"
    ),
    source!(
        "source-own-object-table",
        "impl abi::handle::ObjectOf<u8> for dyn interfaces::Block { }",
        "",
        "E0200"
    ),
    source!(
        "source-pointer-in-an-object",
        "pub fn a() { let _ = interfaces::RRef::new(core::ptr::null::<u8>()); }",
        "",
        "E0277"
    ),
    source!(
        "source-function-in-an-object",
        "pub fn a() { let _ = interfaces::RRef::new(a as fn()); }",
        "",
        "E0277"
    ),
    source!(
        "source-box-in-an-object",
        "extern crate alloc;\npub fn a() { let _ = interfaces::RRef::new(alloc::boxed::Box::new(1u8)); }",
        "",
        "E0277"
    ),
    source!(
        "source-static-in-an-object",
        "pub fn a() { let _ = interfaces::RRef::new(\"text\"); }",
        "",
        "E0277"
    ),
    source!(
        "source-objects-as-plain-data",
        "use interfaces::*;\npub fn a(r: RRef<u64>) { let _ = RVec::from_slice(&[r]); }",
        "",
        "E0277"
    ),
    source!(
        "source-bytes-as-an-object",
        "use interfaces::*;\npub fn a(bytes: RVec<u8>) -> RRef<u64> { bytes.into() }",
        "",
        "E0277"
    ),
    source!(
        "source-lent-object-kept",
        "use interfaces::*;\nuse domain_rt::sync::Mutex;\nstatic KEPT: Mutex<Option<&'static RRef<u64>>> = Mutex::new(None);\n\
        pub fn a(lent: &RRef<u64>) { *KEPT.lock() = Some(lent); }",
        "",
        "borrowed data escapes"
    ),
    source!(
        "source-lent-object-changed",
        "use interfaces::*;\npub fn a(lent: &RRef<u64>) { **lent = 1; }",
        "",
        "E0596"
    ),
    source!(
        "source-lent-object-taken",
        "use interfaces::*;\npub fn a(lent: &RRef<u64>) -> u64 { RRef::into_inner(*lent) }",
        "",
        "E0507"
    ),
    source!(
        "source-program-memory-kept",
        "use interfaces::*;\npub fn a(kept: &mut Option<&'static UserBuf<'static>>, lent: &UserBuf<'_>) { *kept = Some(lent); }",
        "",
        "lifetime may not live long enough"
    ),
    source!(
        "source-program-memory-in-a-thread",
        "use interfaces::*;\npub fn a(lent: &'static UserBuf<'static>) { let _ = domain_rt::thread::spawn(\"a\", move || { let _ = lent.len(); }); }",
        "",
        "E0277"
    ),
    source!(
        "source-program-memory-by-its-fields",
        "use interfaces::*;\npub fn a(lent: &UserBuf<'_>) -> u64 { let UserBuf { segments, .. } = lent; segments[0].start }",
        "",
        "E0451"
    ),
    source!(
        "source-program-memory-taken",
        "use interfaces::*;\npub fn a(lent: &UserBuf<'static>, kept: &mut UserBuf<'static>) { *kept = *lent; }",
        "",
        "E0507"
    ),
    source!(
        "source-program-memory-crosses",
        "use interfaces::*;\npub fn a(lent: UserBuf<'static>) { let _ = RRef::new(lent); }",
        "",
        "E0277"
    ),
    source!(
        "source-thread-with-a-borrow",
        "pub fn a(text: &str) { let _ = domain_rt::thread::spawn(\"a\", || { let _ = text.len(); }); }",
        "",
        "borrowed data escapes"
    ),
    source!(
        "source-thread-with-a-cell",
        "extern crate alloc;\npub fn a(c: alloc::rc::Rc<u8>) { let _ = domain_rt::thread::spawn(\"a\", move || drop(c)); }",
        "",
        "E0277"
    ),
];
