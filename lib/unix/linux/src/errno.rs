//! Linux's numbers of errors and signals, as far as they are used (`asm-generic/errno-base.h`,
//! `signal(7)`).

#![allow(missing_docs)]

/// An error that a program sees. As wide as what a call gives, so that a result of either fits in
/// two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub u64);

impl Error {
    /// As a program sees it, in the place of a result.
    pub fn result(self) -> u64 {
        self.0.wrapping_neg()
    }
}

pub const EPERM: Error = Error(1);
pub const ENOENT: Error = Error(2);
pub const ESRCH: Error = Error(3);
pub const EINTR: Error = Error(4);
pub const EIO: Error = Error(5);
pub const ENXIO: Error = Error(6);
pub const E2BIG: Error = Error(7);
pub const ENOEXEC: Error = Error(8);
pub const EBADF: Error = Error(9);
pub const ECHILD: Error = Error(10);
pub const EAGAIN: Error = Error(11);
pub const ENOMEM: Error = Error(12);
pub const EACCES: Error = Error(13);
pub const EFAULT: Error = Error(14);
pub const EBUSY: Error = Error(16);
pub const EEXIST: Error = Error(17);
pub const EXDEV: Error = Error(18);
pub const ENODEV: Error = Error(19);
pub const ENOTDIR: Error = Error(20);
pub const EISDIR: Error = Error(21);
pub const EINVAL: Error = Error(22);
pub const ENFILE: Error = Error(23);
pub const EMFILE: Error = Error(24);
pub const ENOTTY: Error = Error(25);
pub const EFBIG: Error = Error(27);
pub const ENOSPC: Error = Error(28);
pub const ESPIPE: Error = Error(29);
pub const EROFS: Error = Error(30);
pub const EMLINK: Error = Error(31);
pub const EPIPE: Error = Error(32);
pub const EDOM: Error = Error(33);
pub const ERANGE: Error = Error(34);
pub const ENOLCK: Error = Error(37);
pub const ENAMETOOLONG: Error = Error(36);
pub const ENOSYS: Error = Error(38);
pub const ENOTEMPTY: Error = Error(39);
pub const ELOOP: Error = Error(40);
pub const ELIBBAD: Error = Error(80);
pub const ENOTSOCK: Error = Error(88);
pub const EDESTADDRREQ: Error = Error(89);
pub const EMSGSIZE: Error = Error(90);
pub const EPROTOTYPE: Error = Error(91);
pub const ENOPROTOOPT: Error = Error(92);
pub const EPROTONOSUPPORT: Error = Error(93);
pub const ESOCKTNOSUPPORT: Error = Error(94);
pub const EOPNOTSUPP: Error = Error(95);
pub const EAFNOSUPPORT: Error = Error(97);
pub const EADDRINUSE: Error = Error(98);
pub const EADDRNOTAVAIL: Error = Error(99);
pub const ECONNRESET: Error = Error(104);
pub const ENOBUFS: Error = Error(105);
pub const EISCONN: Error = Error(106);
pub const ENOTCONN: Error = Error(107);
pub const ETOOMANYREFS: Error = Error(109);
pub const ENETDOWN: Error = Error(100);
pub const ENETUNREACH: Error = Error(101);
pub const ETIMEDOUT: Error = Error(110);
pub const ECONNREFUSED: Error = Error(111);
pub const EALREADY: Error = Error(114);
pub const EINPROGRESS: Error = Error(115);
pub const ESTALE: Error = Error(116);

pub const SIGHUP: u32 = 1;
pub const SIGINT: u32 = 2;
pub const SIGQUIT: u32 = 3;
pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
pub const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
pub const SIGPIPE: u32 = 13;
pub const SIGALRM: u32 = 14;
pub const SIGCHLD: u32 = 17;
pub const SIGCONT: u32 = 18;
pub const SIGSTOP: u32 = 19;
pub const SIGTSTP: u32 = 20;
pub const SIGTTIN: u32 = 21;
pub const SIGTTOU: u32 = 22;
