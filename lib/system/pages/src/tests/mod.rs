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

/// A seal stops writes that begin, but is final only when the last one that had begun is over.
#[test]
fn a_seal_is_final_when_the_last_write_is_over() {
    let seal = crate::Seal::<core::sync::atomic::AtomicU64>::open();
    let writing = seal.begin_write().expect("it is open");
    assert!(!seal.close(), "somebody writes");
    assert!(seal.is_closed() && !seal.is_final());
    assert!(seal.begin_write().is_err());
    drop(writing);
    assert!(seal.is_final() && seal.close());
}
