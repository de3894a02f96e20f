//! Empty yet.
