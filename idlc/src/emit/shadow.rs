//! Skeletons of shadows.

use crate::model::{Interface, Model};

/// The skeleton of a shadow of this interface.
pub fn emit(_model: &Model, _interface: &Interface) -> String {
    String::new()
}
