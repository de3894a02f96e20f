//! What a program for Linux on x86-64 expects of whoever runs it, without the kernel: numbers of
//! errors, structures, the layout of its memory, and how a program is loaded.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`call`], [`errno`] | system calls, errors and signals by their numbers |
//! | [`memory`] | a program's memory as whoever answers it sees it, and copies |
//! | [`faults`] | what a program did that it must not |
//! | [`program`] | a static ELF program, and the stack that it begins with |
//! | [`executable`] | a program in a file that is mapped, and scripts |
//! | [`frame`] | what stands on the stack while a handler runs |
//! | [`layout`] | where heap and mappings are |
//! | [`areas`] | what is mapped where |
//! | [`cred`] | users, groups and what they may |
//! | [`files`] | paths, and what is told of files |
//! | [`termios`] | a terminal as programs set it |
//! | [`socket`] | sockets: addresses, messages, options, and what waits to be received |
//! | [`epoll`], [`counter`] | sets of what one waits for, and counters that one waits at |
//!
//! Nothing here knows who makes pages ready: that is a [`memory::Memory`], of which the tests have
//! one of their own. What comes from a program, and a program's file, is hostile.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod areas;
pub mod call;
pub mod counter;
pub mod cred;
pub mod epoll;
pub mod errno;
pub mod executable;
#[cfg(test)]
mod fake;
pub mod faults;
pub mod files;
pub mod frame;
pub mod layout;
pub mod memory;
pub mod program;
pub mod socket;
pub mod termios;
