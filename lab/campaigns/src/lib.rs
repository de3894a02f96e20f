//! What is measured and broken on purpose: campaigns, benchmarks and fuzzers over the whole system.
//!
//! - [`backtraces`]: what the log must say of domains that died;
//! - [`bench`]: figures beside peers, with [`peer`] (Debian's kernel in the same QEMU) and
//!   [`plot`];
//! - [`faults`], [`ledger`]: the fault campaign and what it says;
//! - [`cuts`], [`storms`]: campaigns of power cuts and of crashes, with [`campaign`];
//! - [`profile`]: where the time goes;
//! - [`records`]: what Debian's kernel answers to scripts;
//! - [`steps`]: kills at every instruction of a call, by a debugger ([`gdb`]);
//! - [`fuzz`]: damaged input and hostile calls for what takes input from outside;
//! - [`hosted`]: the system in a Linux process; [`running`]: a kernel at work, there or in QEMU;
//! - [`trace`]: a time line of calls, threads, interrupts, deaths and restarts;
//! - [`model`], [`sanitize`]: the kernel's protocols under a model checker, and tests under
//!   sanitizers.

pub mod backtraces;
pub mod bench;
pub mod campaign;
pub mod cuts;
pub mod faults;
pub mod fuzz;
pub mod gdb;
pub mod hosted;
pub mod ledger;
pub mod model;
pub mod peer;
pub mod plot;
pub mod profile;
pub mod records;
pub mod running;
pub mod sanitize;
pub mod steps;
pub mod storms;
pub mod trace;
