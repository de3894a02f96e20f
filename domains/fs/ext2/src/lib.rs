//! Empty yet.
#![no_std]
#![forbid(unsafe_code)]
