//! Devices that are made of nothing, and the terminal (Linux, "devices.txt").

use super::{DEVICE, Special, names};
use crate::errno::{ENOENT, Error};
use crate::files::Open;
use crate::terminal::Terminal;
use crate::walk::View;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux::files::{DIRECTORY, LINK};

const DEVICES: [&str; 7] = [
    "null", "zero", "full", "random", "urandom", "tty", "console",
];
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

impl View<'_> {
    /// What stands in `/dev`.
    pub(super) fn device_at(&self, path: &[&[u8]]) -> Result<Special, Error> {
        let open = |open| Ok(Special::Open(Arc::new(open)));
        match path {
            [] => Ok(Special::Directory(all())),
            [b"null"] => open(Open::Nothing),
            [b"zero"] => open(Open::Zeros),
            [b"full"] => open(Open::Full),
            [b"random" | b"urandom"] => open(Open::Random),
            [name @ (b"tty" | b"console")] => {
                let is_console = *name == b"console";
                let terminal = self.system.terminal.clone();
                let session = self.system.kin(self.own).map(|[_, _, session]| session);
                let is_own = |it: &Arc<Terminal>| is_console || it.is_of(session);
                match terminal.filter(is_own) {
                    Some(terminal) => open(Open::Terminal(terminal)),
                    None => Ok(Special::Device(0x500 | u32::from(is_console))),
                }
            }
            [name] => {
                let link = LINKS.iter().find(|(link, _)| link.as_bytes() == *name);
                let (_, target) = link.ok_or(ENOENT)?;
                Ok(Special::Link(target.as_bytes().to_vec()))
            }
            _ => Err(ENOENT),
        }
    }
}

fn all() -> Vec<(Vec<u8>, u32)> {
    let links = LINKS.map(|(name, _)| name);
    let links = names(&links, LINK).collect::<Vec<_>>();
    names(&DEVICES, DEVICE)
        .chain(links)
        .chain(names(&[], DIRECTORY))
        .collect()
}
