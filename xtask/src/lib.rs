//! The project's own tool: everything that builds, runs, tests, checks and measures Trefoil.
//!
//! One file per command (`setup`, `build`, `run`, `test`, `check`, `tcb`, `bench`, `demo`); beside
//! them what they share:
//! - [`project`]: where things are; [`tool`]: running other programs; [`packages`]: what cargo knows;
//! - [`lexer`] and [`trust`]: reading Rust sources, and what is forbidden in them;
//! - [`glue`], [`elf`], [`keys`], [`archive`], [`stamp`]: the steps of a build;
//! - [`qemu`] and [`session`]: a running system and typing at it, also used by the package `tests`;
//! - [`faults`], [`ledger`]: the fault campaign and what it says;
//! - [`disk`]: file system images made with the host's tools.

pub mod archive;
pub mod bench;
pub mod build;
pub mod check;
pub mod demo;
pub mod disk;
pub mod elf;
pub mod faults;
pub mod glue;
pub mod hosted;
pub mod keys;
pub mod ledger;
pub mod lexer;
pub mod linked;
pub mod packages;
pub mod peer;
pub mod project;
pub mod qemu;
pub mod rules;
pub mod run;
pub mod session;
pub mod setup;
pub mod stamp;
pub mod tcb;
pub mod test;
pub mod tool;
pub mod trust;
pub mod wiring;
