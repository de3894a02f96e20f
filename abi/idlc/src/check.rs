//! The rules that need more than one item: names, the graph of types, signatures, entries.
//!
//! Every type is visited from the interfaces and entries that reach it, so that an error can say
//! how. What nothing reaches is visited on its own.

mod bounds;
mod entries;
mod names;
mod plain;
mod signatures;
mod walk;

use crate::diagnostics::{Diagnostic, Rule};
use crate::model::Model;
use walk::Walker;

/// Everything that is wrong with the model beyond what parsing found.
pub fn check(model: &Model) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    names::check(model, &mut errors);
    bounds::check(model, &mut errors);
    let mut walker = Walker::new(model);
    for interface in &model.interfaces {
        signatures::check(&mut walker, interface);
    }
    for entry in &model.entries {
        entries::check(&mut walker, entry);
    }
    for definition in &model.definitions {
        walker.definition(definition);
    }
    let is_recursive = |it: &Diagnostic| it.rule == Rule::Recursive;
    if !walker.errors.iter().any(is_recursive) {
        bounds::nesting(model, &mut errors);
    }
    errors.extend(walker.errors);
    plain::check(model, &mut errors);
    errors
}
