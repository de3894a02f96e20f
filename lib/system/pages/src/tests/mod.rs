//! The protocol under a model checker and on threads of the host: the same code and the same
//! scenes.
//!
//! - [`memory`]: frames with counts, and what a scene works on.
//! - [`scenes`]: what happens at the same time, and what must hold then.
//! - [`checks`]: the scenes under many schedules, whole and with a step broken on purpose.
//! - [`stress`]: the scenes on threads of the host.

mod checks;
mod memory;
mod scenes;
mod stress;
