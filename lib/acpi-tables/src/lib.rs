//! Parsers of ACPI tables.
#![no_std]
#![forbid(unsafe_code)]
