//! Grant expressions: where a granted capability comes from.
//!
//! | expression | what the domain gets |
//! | --- | --- |
//! | `kernel.loader`, `.monitor`, `.control`, `.hardware`, `.power`, `.archive`, `.command_line`, `.memory`, `.objects`, `.events`, `.random`, `.spaces`, `.tracer`, `.auditor` (in kernels for tests) | that service of the kernel |
//! | `kernel.ports(0x3f8,8)` | I/O ports: first, count |
//! | `kernel.interrupt(4)` | an input of the I/O APIC |
//! | `kernel.mmio(0xfed40000,4096)` | device memory: physical address, length in bytes |
//! | `block` | what domain `block` offers first |
//! | `console.errors` | the offer `errors` of domain `console` |
//! | `ext2.respawn` | the right to ask for a working instance of `ext2` and what that offers first |
//! | `console.errors.respawn` | the same for the offer `errors` |
//! | `pci.claim(1af4:1042,1001)` | the first free PCI function with one of these vendor:device numbers (a number alone has the vendor before it) |
//! | `pci.claim(class:010802)` | the same by class, subclass and programming interface |
//! | `init.supervisor` | what `init` knows of its domains |
//! | `init.updater` | the right to replace them by other images |
//! | `init.disks` | the disks, and the right to have file systems on them started and ended |
//! | `init.services` | what the section `[services]` names: for a personality, which hands it on |

use crate::syntax::integer;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A service of the kernel that can be granted as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelService {
    /// `Loader`.
    Loader,
    /// `Monitor`.
    Monitor,
    /// `DomainControl`.
    Control,
    /// `Hardware`.
    Hardware,
    /// `Power`.
    Power,
    /// `Archive`.
    Archive,
    /// `CommandLine`.
    CommandLine,
    /// `MemoryWatch`.
    Memory,
    /// Makes memory objects.
    Objects,
    /// Makes events.
    Events,
    /// Makes random numbers.
    Random,
    /// Makes address spaces.
    Spaces,
    /// Shows calls with their arguments.
    Tracer,
    /// Tells what the kernel keeps of memory, in kernels for tests.
    Auditor,
}

/// Which PCI functions fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceMatch {
    /// Vendor and device number.
    Id(u16, u16),
    /// Class, subclass and programming interface, as one number of 24 bits.
    Class(u32),
}

/// Where a grant comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A service of the kernel.
    Kernel(KernelService),
    /// I/O ports.
    Ports {
        /// The first port.
        first: u16,
        /// How many.
        count: u16,
    },
    /// An input of the I/O APIC.
    Interrupt(u32),
    /// Device memory.
    Mmio {
        /// Its physical address.
        physical: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// An offer of another domain.
    Offer {
        /// The domain's name in the manifest.
        domain: String,
        /// The name of the offer; the first if there is none.
        port: Option<String>,
    },
    /// The right to ask for a working instance of another domain.
    Respawn {
        /// The domain's name in the manifest.
        domain: String,
        /// The name of the offer that comes with it; the first if there is none.
        port: Option<String>,
    },
    /// A PCI function.
    Claim {
        /// The name of the domain that offers the bus.
        domain: String,
        /// What fits.
        devices: Vec<DeviceMatch>,
    },
    /// What `init` knows of its domains.
    Supervisor,
    /// The right to replace them by other images.
    Updater,
    /// The disks.
    Disks,
    /// What programs may ask for.
    Services,
}

impl Source {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, arguments) = split_call(text)?;
        let parts: Vec<&str> = path.split('.').collect();
        if let Some(bad) = parts.iter().find(|part| !is_name(part)) {
            return Err(format!(
                "`{bad}` in `{text}` is not a name of letters, digits, `-` and `_`"
            ));
        }
        match (parts.as_slice(), arguments) {
            (["kernel", name], arguments) => kernel(name, arguments),
            (["init", "supervisor"], None) => Ok(Source::Supervisor),
            (["init", "updater"], None) => Ok(Source::Updater),
            (["init", "disks"], None) => Ok(Source::Disks),
            (["init", "services"], None) => Ok(Source::Services),
            (["init" | "kernel", ..], _) => Err(format!(
                "expected `init.supervisor`, `init.updater`, `init.disks`, `init.services` or `kernel.` with a service, found `{text}`"
            )),
            ([domain, "claim"], Some(devices)) => Ok(Source::Claim {
                domain: (*domain).to_owned(),
                devices: device_list(devices)?,
            }),
            ([_, "claim"], None) => Err(format!(
                "`{text}` lacks the devices: write `{text}(1af4:1042)`"
            )),
            (_, Some(_)) => Err(format!(
                "only `kernel.ports`, `.interrupt`, `.mmio` and `NAME.claim` take arguments, found `{text}`"
            )),
            ([domain], None) => Ok(offer(domain, None)),
            ([domain, "respawn"], None) => Ok(respawn(domain, None)),
            ([domain, port], None) => Ok(offer(domain, Some(port))),
            ([domain, port, "respawn"], None) => Ok(respawn(domain, Some(port))),
            _ => Err(format!(
                "expected `NAME`, `NAME.OFFER` or `NAME.respawn`, found `{text}`"
            )),
        }
    }

    /// Whether programs can have it. A device is not shared, and who holds the right to restart a
    /// domain is known to it by number, which a program has not.
    pub fn is_for_programs(&self) -> bool {
        matches!(
            self,
            Source::Kernel(_)
                | Source::Offer { .. }
                | Source::Supervisor
                | Source::Updater
                | Source::Disks
        )
    }

    /// The domain that has to be there before this grant can be given.
    pub fn domain(&self) -> Option<&str> {
        match self {
            Source::Offer { domain, .. }
            | Source::Respawn { domain, .. }
            | Source::Claim { domain, .. } => Some(domain),
            _ => None,
        }
    }
}

fn offer(domain: &str, port: Option<&str>) -> Source {
    Source::Offer {
        domain: domain.to_owned(),
        port: port.map(str::to_owned),
    }
}

fn respawn(domain: &str, port: Option<&str>) -> Source {
    Source::Respawn {
        domain: domain.to_owned(),
        port: port.map(str::to_owned),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Takes `path(arguments)` apart.
fn split_call(text: &str) -> Result<(&str, Option<&str>), String> {
    let Some((path, rest)) = text.split_once('(') else {
        return Ok((text.trim(), None));
    };
    match rest.trim_end().strip_suffix(')') {
        Some(arguments) => Ok((path.trim(), Some(arguments))),
        None => Err(format!("expected `)` at the end of `{text}`")),
    }
}

fn kernel(name: &str, arguments: Option<&str>) -> Result<Source, String> {
    let service = match (name, arguments) {
        ("ports", Some(list)) => {
            let [first, count] = numbers(list, "kernel.ports(first,count)", 0xffff)?;
            let whole = first + count <= 0x1_0000 && count > 0;
            let error = || {
                format!(
                    "ports {first:#x} to {:#x} are not all there: they end at 0xffff",
                    first + count
                )
            };
            return match whole {
                true => Ok(Source::Ports {
                    first: first as u16,
                    count: count as u16,
                }),
                false => Err(error()),
            };
        }
        ("interrupt", Some(list)) => {
            let [line] = numbers(list, "kernel.interrupt(line)", 0xff_ffff)?;
            return Ok(Source::Interrupt(line as u32));
        }
        ("mmio", Some(list)) => {
            let [physical, length] = numbers(list, "kernel.mmio(address,bytes)", i64::MAX as u64)?;
            return Ok(Source::Mmio { physical, length });
        }
        ("ports" | "interrupt" | "mmio", None) => {
            return Err(format!(
                "`kernel.{name}` lacks its numbers: write `kernel.{name}(...)`"
            ));
        }
        (_, Some(_)) => return Err(format!("`kernel.{name}` takes no arguments")),
        ("loader", None) => KernelService::Loader,
        ("monitor", None) => KernelService::Monitor,
        ("control", None) => KernelService::Control,
        ("hardware", None) => KernelService::Hardware,
        ("power", None) => KernelService::Power,
        ("archive", None) => KernelService::Archive,
        ("command_line", None) => KernelService::CommandLine,
        ("memory", None) => KernelService::Memory,
        ("objects", None) => KernelService::Objects,
        ("events", None) => KernelService::Events,
        ("random", None) => KernelService::Random,
        ("spaces", None) => KernelService::Spaces,
        ("tracer", None) => KernelService::Tracer,
        ("auditor", None) => KernelService::Auditor,
        _ => {
            let known = "loader, monitor, control, hardware, power, archive, command_line, memory, objects, events, random, spaces, tracer, auditor, ports, interrupt, mmio";
            return Err(format!(
                "the kernel has no service `{name}`; it has {known}"
            ));
        }
    };
    Ok(Source::Kernel(service))
}

/// Exactly `N` numbers, none above `most`.
fn numbers<const N: usize>(list: &str, shape: &str, most: u64) -> Result<[u64; N], String> {
    let mut values = [0; N];
    let mut given = list.split(',');
    for value in &mut values {
        let word = given
            .next()
            .ok_or_else(|| format!("too few numbers: expected `{shape}`"))?
            .trim();
        let number = integer(word).and_then(|number| u64::try_from(number).ok());
        *value = number
            .filter(|&number| number <= most)
            .ok_or_else(|| format!("`{word}` is not a number for `{shape}`"))?;
    }
    match given.next() {
        Some(_) => Err(format!("too many numbers: expected `{shape}`")),
        None => Ok(values),
    }
}

fn device_list(list: &str) -> Result<Vec<DeviceMatch>, String> {
    let mut vendor = None;
    list.split(',')
        .map(|item| device(item.trim(), &mut vendor))
        .collect()
}

fn device(item: &str, vendor: &mut Option<u16>) -> Result<DeviceMatch, String> {
    let bad = || {
        format!(
            "`{item}` is not a PCI device: expected VENDOR:DEVICE in hexadecimal, as 1af4:1042, or class:010802"
        )
    };
    if let Some(class) = item.strip_prefix("class:") {
        let number = u32::from_str_radix(class, 16)
            .ok()
            .filter(|_| class.len() == 6);
        return number.map(DeviceMatch::Class).ok_or_else(bad);
    }
    let hex = |word: &str| {
        u16::from_str_radix(word, 16)
            .ok()
            .filter(|_| word.len() == 4)
    };
    let device = match item.split_once(':') {
        Some((before, after)) => {
            *vendor = Some(hex(before).ok_or_else(bad)?);
            after
        }
        None => item,
    };
    Ok(DeviceMatch::Id(
        vendor.ok_or_else(bad)?,
        hex(device).ok_or_else(bad)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn reads_every_expression() {
        let parse = |text| Source::parse(text).expect(text);
        assert_eq!(
            parse("kernel.command_line"),
            Source::Kernel(KernelService::CommandLine)
        );
        assert_eq!(
            parse("kernel.ports(0x3f8, 8)"),
            Source::Ports {
                first: 0x3f8,
                count: 8
            }
        );
        assert_eq!(parse("kernel.interrupt(4)"), Source::Interrupt(4));
        assert_eq!(
            parse("kernel.mmio(0xfed40000,4096)"),
            Source::Mmio {
                physical: 0xfed4_0000,
                length: 4096
            }
        );
        assert_eq!(parse("block"), offer("block", None));
        assert_eq!(parse("console.errors"), offer("console", Some("errors")));
        assert_eq!(parse("ext2.respawn"), respawn("ext2", None));
        assert_eq!(
            parse("console.errors.respawn"),
            respawn("console", Some("errors"))
        );
        assert_eq!(parse("init.supervisor"), Source::Supervisor);
        assert_eq!(parse("init.updater"), Source::Updater);
        assert_eq!(parse("init.disks"), Source::Disks);
        let devices = vec![
            DeviceMatch::Id(0x1af4, 0x1042),
            DeviceMatch::Id(0x1af4, 0x1001),
            DeviceMatch::Class(0x01_0802),
        ];
        assert_eq!(
            parse("pci.claim(1af4:1042,1001, class:010802)"),
            Source::Claim {
                domain: "pci".into(),
                devices
            }
        );
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for (text, wanted) in [
            ("", "not a name"),
            ("a..b", "not a name"),
            ("kernel.root", "has no service `root`"),
            ("kernel", "expected `init.supervisor`"),
            ("init.power", "expected `init.supervisor`"),
            ("kernel.loader(1)", "takes no arguments"),
            ("kernel.ports", "lacks its numbers"),
            ("kernel.ports(1)", "too few"),
            ("kernel.ports(1,2,3)", "too many"),
            ("kernel.ports(0xffff,2)", "end at 0xffff"),
            ("kernel.ports(0x3f8,0)", "not all there"),
            ("kernel.ports(-1,2)", "not a number"),
            ("kernel.interrupt(four)", "not a number"),
            ("pci.claim", "lacks the devices"),
            ("pci.claim(1042)", "not a PCI device"),
            ("pci.claim(1af4:10421)", "not a PCI device"),
            ("pci.claim(class:1)", "not a PCI device"),
            ("pci.claim(1af4:1042", "expected `)`"),
            ("block.respawn(1)", "take arguments"),
            ("a.b.c.d", "expected `NAME`"),
        ] {
            let message = Source::parse(text).expect_err(text);
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }
}
