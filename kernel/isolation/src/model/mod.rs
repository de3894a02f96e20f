//! Calls, deaths and the shared heap under a model checker, and under sanitizers: the code of this
//! crate itself, with all its assembly, on threads that a test controls.
//!
//! - [`threads`]: threads of the checker and of Linux behind one set of functions; what the model
//!   assumes.
//! - [`machine`]: the [`Platform`](crate::Platform): pages that are watched, no images, no devices.
//! - [`domains`]: domains whose code is this test's, with a real interface, real proxies and
//!   handles.
//! - [`scenes`]: what happens, and what must hold then.
//! - [`checks`]: the scenes under the model checker, many schedules each; and, with a step of the
//!   protocol broken on purpose, that the checker finds it.
//! - [`birth`]: a domain that is ended before it has run.
//! - [`late`]: drops within drops that take too long.
//! - [`refused`]: a dead domain whose calls are not let in.
//! - [`rings`]: frames from ring 3, which are nobody's code.
//! - [`stress`]: the scenes on threads of Linux, for AddressSanitizer and ThreadSanitizer.

mod birth;
mod checks;
mod domains;
mod late;
pub(crate) mod machine;
mod payers;
mod refused;
mod rings;
mod scenes;
mod stress;
pub(crate) mod threads;

pub(crate) use checks::ONE_AT_A_TIME;
pub(crate) use scenes::is_over;
