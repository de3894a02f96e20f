//! What personalities share that run Linux programs in ring 3: what there is of `lib/unix/linux`
//! for the kernel's address spaces.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod space;
