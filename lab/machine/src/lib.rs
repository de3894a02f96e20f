//! The machine that tests, campaigns and `cargo xtask run` drive: nothing in it is linked into the
//! system.
//!
//! - [`qemu`], [`guest`] and [`session`]: a machine, one that runs, and typing at it;
//! - [`log`]: what its kernel says, with stacks in words;
//! - [`preflight`]: what would keep it from booting, in words for people;
//! - [`dumps`]: of domains that die, as the manifest asks for;
//! - [`stacks`]: where a machine stands that says nothing any more;
//! - `slot`: a device that can be pulled out;
//! - [`second`]: which failed tests are tried again;
//! - [`tables`]: symbols for the system's own disk;
//! - [`disk`]: file system images made with the host's tools; [`image`]: what is on one;
//! - [`nbd`]: a disk served to QEMU;
//! - [`debian`]: a disk with Debian's packages; [`programs`]: whether one has a shell;
//! - [`network`]: what is behind a network device;
//! - [`manifests`]: changes of the default manifest;
//! - [`nvme`]: the system with its disk behind an NVMe controller.

pub mod debian;
pub mod disk;
pub mod dumps;
pub mod guest;
pub mod image;
pub mod log;
pub mod manifests;
pub mod nbd;
pub mod network;
pub mod nvme;
pub mod preflight;
pub mod programs;
pub mod qemu;
pub mod second;
mod sectors;
pub mod session;
mod slot;
pub mod stacks;
pub mod tables;
