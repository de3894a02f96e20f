//! Image manifests: which domains an image has, what each is granted, and what is run at the end.
//!
//! A manifest is a file in a subset of TOML ([`syntax`] says which). [`Manifest::parse`] reads it
//! into a typed model and checks all that can be known without the images: names, keys, grant
//! expressions, cycles. Both the build tool and `init` use this crate, so that a manifest that
//! passes on the host means the same when the machine boots.
//!
//! ```toml
//! [boot]
//! personality = "rv6"              # the domain whose `Personality` runs the shell
//! shell = "/bin/sh"
//! fallback = "/boot/bin/sh"        # if the shell cannot be started
//! console = "console"              # where `init` says what went wrong (optional)
//!
//! [domain.ext2]
//! image = "ext2"                   # `domains/ext2` in the boot archive; the domain's name if left out
//! grants = { device = "block" }    # the ports that the image wants, and where they come from
//! options = ""                     # text for the domain
//! pass = ["ro"]                    # words of the kernel's command line that are added to the options;
//!                                  # "free-memory" adds how many bytes of memory are free
//! dump = "host"                    # what it had when it dies goes to whoever runs the machine
//! device = "optional"              # where there is none, only the log says that it is not started
//! limits = { pages = 4096, shared_pages = 1024, threads = 8, calls = 100, call_ms = 500, restarts = 5, window_s = 10 }
//!
//! [disk.vda]
//! device = "block"                 # the domains that are the device, and the file system on it
//! files = "vfs"
//!
//! [disk.vdb]
//! like = "vda"                     # another disk, with copies of these domains, which are started on demand
//!
//! [program.dmesg]
//! services = ["monitor"]           # grants of the personality that this program may ask for
//! ```
//! [`source`] has the grant expressions, [`order`] the order in which domains start, [`sharing`]
//! which domains may use one disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod disks;
mod index;
pub mod model;
pub mod order;
pub mod sharing;
pub mod source;
pub mod syntax;

pub use index::{ByDomain, DomainIndex};
pub use model::{Boot, Disk, Domain, Grant, Limits, Manifest, Program};
pub use source::{DeviceMatch, KernelService, Source};
pub use syntax::Error;
