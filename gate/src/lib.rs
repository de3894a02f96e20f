//! The trusted build. What it lets through runs in the kernel's address space with nothing but the
//! language between it and the machine, so every line here is trusted as the kernel is; `cargo
//! xtask tcb` counts it apart.
//!
//! - [`project`]: where things are; [`tool`]: running other programs; [`setup`]: finding or
//!   installing what is needed; [`packages`]: what cargo knows;
//! - [`rules`]: the rules of the folders; [`lexer`], [`trust`], [`holes`] and [`fallible`]: reading
//!   Rust sources, and what is forbidden in them; [`mir`]: reading what the compiler makes of them;
//! - [`cargo_toml`] and [`guard`]: the manifests of what must be safe, and the watch over its
//!   compilation;
//! - [`build`] and its steps [`glue`], [`elf`], [`archive`], [`stamp`], [`wiring`];
//! - [`keys`], [`signer`] and [`confine`]: the key, the process that has it, and those that must
//!   not.

pub mod archive;
pub mod build;
pub mod cargo_toml;
pub mod confine;
pub mod elf;
pub mod fallible;
pub mod glue;
pub mod guard;
pub mod holes;
pub mod keys;
pub mod lexer;
pub mod mir;
pub mod packages;
pub mod project;
pub mod rules;
pub mod setup;
pub mod signer;
pub mod stamp;
pub mod tool;
pub mod trust;
pub mod wiring;
