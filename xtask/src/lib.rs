//! The project's own tool: everything that builds, runs, tests, checks and measures Trefoil.
//!
//! One file per command (`setup`, `build`, `run`, `test`, `check`, `tcb`, `bench`, `demo`); beside
//! them what they share:
//! - [`project`]: where things are; [`tool`]: running other programs; [`packages`]: what cargo knows;
//! - [`lexer`], [`trust`] and [`holes`]: reading Rust sources, and what is forbidden in them;
//! - [`cargo_toml`] and [`guard`]: the manifests of what must be safe, and the watch over its compilation;
//! - [`glue`], [`elf`], [`archive`], [`stamp`]: the steps of a build; [`keys`], [`signer`] and [`confine`]: the key,
//!   the process that has it, and those that must not;
//! - [`preflight`]: what would keep the system from booting, in words for people; [`doc`]: manuals as pages;
//! - [`qemu`] and [`session`]: a running system and typing at it, also used by the package `tests`;
//! - [`faults`], [`ledger`]: the fault campaign and what it says;
//! - [`cuts`], [`storms`]: campaigns of power cuts and of crashes, with [`campaign`] and [`nbd`];
//! - [`steps`]: kills at every instruction of a call, by a debugger ([`gdb`]);
//! - [`fuzz`]: damaged input for what takes input from outside;
//! - [`model`], [`sanitize`]: the kernel's protocols under a model checker, and tests under sanitizers;
//! - [`disk`]: file system images made with the host's tools.

pub mod archive;
pub mod bench;
pub mod build;
pub mod campaign;
pub mod cargo_toml;
pub mod check;
pub mod confine;
pub mod cuts;
pub mod demo;
pub mod disk;
pub mod doc;
pub mod elf;
pub mod fallible;
pub mod faults;
pub mod fuzz;
pub mod gdb;
pub mod glue;
pub mod guard;
pub mod holes;
pub mod hosted;
pub mod keys;
pub mod ledger;
pub mod lexer;
pub mod linked;
pub mod model;
pub mod nbd;
pub mod packages;
pub mod peer;
pub mod plot;
pub mod preflight;
pub mod project;
pub mod qemu;
pub mod rules;
pub mod run;
pub mod sanitize;
pub mod session;
pub mod setup;
pub mod signer;
pub mod stamp;
pub mod steps;
pub mod storms;
pub mod tcb;
pub mod test;
pub mod texts;
pub mod tool;
pub mod trust;
pub mod wiring;
