//! The reference manual of the interfaces, in Markdown.

use crate::model::Model;

/// The text of the manual.
pub fn emit(_model: &Model) -> String {
    String::new()
}
