//! The rules that need the whole type graph.

use crate::diagnostics::Diagnostic;
use crate::model::Model;

/// Everything that is wrong with the model beyond what parsing found.
pub fn check(_model: &Model) -> Vec<Diagnostic> {
    Vec::new()
}
