//! `idlc`, the interface compiler.
//!
//! Interfaces between domains are Rust traits in `.idl` files: those in `abi/interfaces/` are
//! common, and every domain has one of its own that declares its entry. This crate reads all of
//! them as one namespace ([`source`], [`parse`]), checks that nothing can cross a boundary that
//! would break isolation ([`check`]; [`Rule`] lists the rules), and writes Rust and Markdown
//! ([`emit`]).
//!
//! It belongs to the trusted base, for the kernel's proxies come from it. Two build scripts call it
//! through [`build`]: that of `interfaces` and that of `kernel/proxies`.
//!
//! ```no_run
//! let model = idlc::load(std::path::Path::new("."))?;
//! println!("{}", idlc::emit::manual::emit(&model));
//! # Ok::<(), idlc::Report>(())
//! ```
#![forbid(unsafe_code)]

pub mod bounds;
pub mod build;
pub mod check;
pub mod diagnostics;
pub mod emit;
pub mod fingerprint;
pub mod model;
pub mod parse;
pub mod source;

pub use diagnostics::{Diagnostic, Report, Rule};
pub use emit::hostile::emit as emit_hostile;
pub use emit::interfaces::emit as emit_interfaces;
pub use emit::manual::emit as emit_manual;
pub use emit::proxies::emit as emit_proxies;
pub use emit::shadow::emit as emit_shadow;
pub use model::Model;
pub use source::Source;

use std::path::Path;

/// The checked model of all `.idl` files of the workspace at `root`.
///
/// # Errors
/// Everything that is wrong with them.
pub fn load(root: &Path) -> Result<Model, Report> {
    compile(source::find(root)?)
}

/// The checked model of `sources`.
///
/// # Errors
/// Everything that is wrong with them.
pub fn compile(sources: Vec<Source>) -> Result<Model, Report> {
    let (model, mut errors) = parse::parse(sources);
    errors.extend(check::check(&model));
    match errors.is_empty() {
        true => Ok(model),
        false => Err(Report::new(&model.sources, errors)),
    }
}
