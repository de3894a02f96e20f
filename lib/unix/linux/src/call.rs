//! Numbers of system calls (`asm/unistd_64.h`), as far as somebody asks for them by name.

#![allow(missing_docs)]

pub const READ: u64 = 0;
pub const WRITE: u64 = 1;
pub const CLOSE: u64 = 3;
pub const MPROTECT: u64 = 10;
pub const BRK: u64 = 12;
pub const IOCTL: u64 = 16;
pub const SENDFILE: u64 = 40;
pub const EXIT: u64 = 60;
pub const READLINK: u64 = 89;
pub const GETUID: u64 = 102;
pub const PRCTL: u64 = 157;
pub const ARCH_PRCTL: u64 = 158;
pub const GETDENTS64: u64 = 217;
pub const SET_TID_ADDRESS: u64 = 218;
pub const EXIT_GROUP: u64 = 231;
pub const OPENAT: u64 = 257;
pub const NEWFSTATAT: u64 = 262;
pub const SET_ROBUST_LIST: u64 = 273;
pub const PRLIMIT64: u64 = 302;
pub const GETRANDOM: u64 = 318;
pub const RSEQ: u64 = 334;
