//! What a personality and the kernel say to each other of a program in ring 3.

/// A program's registers while it does not run. Whatever stands here, the kernel stays unharmed: it
/// takes of `rflags` what is a program's business. A `rip` beyond user space is a page fault, and a
/// base of a segment that is no user address a general-protection fault, before the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct UserRegisters {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
    /// Base of the segment FS.
    pub fs_base: u64,
    /// Base of the segment GS.
    pub gs_base: u64,
}

/// Why a program does not run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, u32)]
pub enum UserEvent {
    /// It asks for something, by SYSCALL.
    Syscall,
    /// It met a page that it may not use, or not so.
    PageFault {
        /// The address.
        address: u64,
        /// It wanted to write there.
        write: bool,
        /// It wanted to execute what is there.
        execute: bool,
    },
    /// An exception of the processor.
    Exception {
        /// Its vector.
        vector: u8,
        /// What the processor adds; 0 where it adds nothing.
        error_code: u64,
    },
    /// Somebody has kicked the thread.
    Kicked,
    /// It did not run at all: the handle leads to no user thread of the kernel's, or somebody runs
    /// it now.
    Refused,
    /// It was interrupted. The kernel lets it go on, so nobody else sees this.
    Interrupted,
}
