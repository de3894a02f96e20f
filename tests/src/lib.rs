//! Tests of the whole system: each boots it in QEMU, types at it or has it run a line, and compares
//! what it prints with what the host's tools say.
//!
//! [`attacks`] are sources that must not build; [`bench`] has what a test is given, [`scratch`] a
//! copy of the sources to change, [`cases`] the table of all tests by subject. A test is a
//! function; it fails by returning an error that says what was expected and what came.
//! `cargo xtask test NAME` runs those whose name contains NAME.

pub mod attacks;
pub mod bench;
pub mod cases;
pub mod runner;
pub mod scratch;
