//! What is behind the network device of a machine.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::qemu::escaped;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// QEMU's user network: the system gets an address by DHCP, and nobody reaches it but by the
    /// ports that are forwarded.
    User {
        /// The system can reach what the host reaches.
        is_open: bool,
        /// Ports of the host's loopback address that lead to the system.
        forwards: Vec<Forward>,
    },
    /// A tap interface that is there.
    Tap {
        /// Its name.
        name: String,
        /// The process in whose network namespace it is, if it is not ours.
        namespace: Option<u32>,
    },
    /// Whoever is at the other end of a pair of Unix sockets: a datagram for each frame.
    Wire {
        /// QEMU's socket, which it makes.
        device: PathBuf,
        /// The other one, which is there.
        peer: PathBuf,
    },
}

/// A port of the host's loopback address, and the system's port that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The host's.
    pub host: u16,
    /// The system's.
    pub guest: u16,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
        let ports = text.split_once(':');
        let ports = ports.and_then(|(host, guest)| Some((port(host)?, port(guest)?)));
        let (host, guest) =
            ports.ok_or_else(|| format!("expected HOST:GUEST, as 8007:7, found `{text}`"))?;
        Ok(Forward { host, guest })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hostfwd=tcp:127.0.0.1:{}-:{}", self.host, self.guest)
    }
}

/// Whether `name` can be that of an interface: nothing in it means anything to QEMU.
///
/// # Errors
/// Why not.
pub fn interface(name: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match (1..=15).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(name.into()),
        false => Err(format!("`{name}` is not the name of an interface")),
    }
}

impl Network {
    /// The process in whose network namespace QEMU has to run, if it is not ours.
    pub(crate) fn namespace(&self) -> Option<u32> {
        match self {
            Network::Tap { namespace, .. } => *namespace,
            _ => None,
        }
    }

    /// QEMU's arguments. The device has no boot ROM: not every host has the file.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let back = match self {
            Network::Tap { name, .. } => {
                format!("tap,id=net,ifname={name},script=no,downscript=no")
            }
            Network::Wire { device, peer } => format!(
                "dgram,id=net,local.type=unix,local.path={},remote.type=unix,remote.path={}",
                escaped(device),
                escaped(peer)
            ),
            Network::User { is_open, forwards } => {
                let mut back = String::from("user,id=net,ipv6=off");
                if !is_open {
                    back += ",restrict=on";
                }
                for forward in forwards {
                    back += &format!(",{forward}");
                }
                back
            }
        };
        let device = String::from("virtio-net-pci,netdev=net,disable-legacy=on,romfile=");
        vec!["-netdev".into(), back, "-device".into(), device]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_forwarded_from_the_loopback_address_alone() {
        let forward: Forward = "8007:7".parse().expect("right");
        let network = Network::User {
            is_open: false,
            forwards: vec![forward],
        };
        let text = network.arguments().join(" ");
        assert!(
            text.contains(
                "-netdev user,id=net,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:8007-:7 "
            )
        );
        for wrong in ["", "8007", "0:7", "8007:0", "8007:7:8", "65536:7", "a:7"] {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_cannot_say_more_to_qemu() {
        assert_eq!(interface("tap0"), Ok("tap0".into()));
        for wrong in ["", "tap0,script=x", "a b", "sixteen-letters-"] {
            assert!(interface(wrong).is_err(), "{wrong}");
        }
    }
}
