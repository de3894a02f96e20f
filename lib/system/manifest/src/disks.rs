//! Disks, and the domains that a further disk needs.
//!
//! `[disk.NAME]` names the domain that is the device and the one that is the file system on it. A
//! disk `like` another gets copies of all domains on the way from that file system down to the
//! driver: whatever is reached by offers and respawns. What is only claimed from, the bus, is
//! shared. The copies are called after the disk, and are started on demand.

use crate::index::DomainIndex;
use crate::model::{Disk, Domain, Manifest, short, string, unknown};
use crate::source::Source;
use crate::syntax::{Error, Section};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A `[disk.NAME]` as it stands in the file.
pub(crate) struct Written {
    name: String,
    device: Option<String>,
    files: Option<String>,
    like: Option<String>,
    line: u32,
}

pub(crate) fn read(name: &str, section: &Section) -> Result<Written, Error> {
    let mut disk = Written {
        name: short(name, section.line)?,
        device: None,
        files: None,
        like: None,
        line: section.line,
    };
    for entry in &section.entries {
        let place = match entry.key.as_str() {
            "device" => &mut disk.device,
            "files" => &mut disk.files,
            "like" => &mut disk.like,
            _ => {
                return Err(unknown(
                    entry,
                    &format!("[disk.{name}]"),
                    "device, files, like",
                ));
            }
        };
        *place = Some(short(string(entry)?, entry.line)?);
    }
    Ok(disk)
}

impl Manifest {
    /// Takes in the disks, and makes the copies of domains that they need.
    pub(crate) fn add_disks(&mut self, written: &[Written]) -> Result<(), Error> {
        for disk in written {
            let made = match (&disk.device, &disk.files, &disk.like) {
                (Some(device), Some(files), None) => self.own(disk, device, files)?,
                (None, None, Some(like)) => self.copy(disk, like)?,
                _ => {
                    let text = format!(
                        "[disk.{}] needs either `device` and `files`, or `like`",
                        disk.name
                    );
                    return Err(Error::new(disk.line, text));
                }
            };
            self.disks.push(made);
        }
        Ok(())
    }

    fn own(&self, disk: &Written, device: &str, files: &str) -> Result<Disk, Error> {
        Ok(Disk {
            name: disk.name.clone(),
            device: self.known(disk, device)?,
            files: self.known(disk, files)?,
            on_demand: false,
        })
    }

    fn known(&self, disk: &Written, domain: &str) -> Result<DomainIndex, Error> {
        let missing = || {
            let text = format!(
                "disk `{}` names `{domain}`, but there is no [domain.{domain}]",
                disk.name
            );
            Error::new(disk.line, text)
        };
        self.index_of(domain).ok_or_else(missing)
    }

    fn copy(&mut self, disk: &Written, like: &str) -> Result<Disk, Error> {
        let missing = || {
            let text = format!(
                "disk `{}` is like `{like}`, which is not above it",
                disk.name
            );
            Error::new(disk.line, text)
        };
        let model = self.disks.iter().find(|other| other.name == like);
        let model = model.filter(|model| !model.on_demand).ok_or_else(missing)?;
        let (device, files) = (model.device, model.files);
        let stack = self.stack(files);
        let place = |index| stack.iter().position(|&other| other == index);
        let missing_device = || {
            let text = format!("the file system of disk `{like}` does not come from its device");
            Error::new(disk.line, text)
        };
        let device = place(device).ok_or_else(missing_device)?;
        let first = self.domains.len();
        let names: Vec<(String, String)> = stack
            .iter()
            .map(|&index| &self[index].name)
            .map(|name| (name.clone(), format!("{name}-{}", disk.name)))
            .collect();
        for (&index, (_, name)) in stack.iter().zip(&names) {
            let copy = copied(&self[index], short(name, disk.line)?, disk, &names);
            self.domains.push(copy);
        }
        Ok(Disk {
            name: disk.name.clone(),
            device: DomainIndex(first + device),
            // The stack begins with it.
            files: DomainIndex(first),
            on_demand: true,
        })
    }

    /// The domain and all that it reaches by offers and respawns, itself first.
    fn stack(&self, top: DomainIndex) -> Vec<DomainIndex> {
        let mut stack = Vec::from([top]);
        let mut at = 0;
        while let Some(&index) = stack.get(at) {
            for grant in &self[index].grants {
                let below = server(&grant.source).and_then(|name| self.index_of(name));
                if let Some(below) = below.filter(|below| !stack.contains(below)) {
                    stack.push(below);
                }
            }
            at += 1;
        }
        stack
    }
}

fn server(source: &Source) -> Option<&str> {
    match source {
        Source::Offer { domain, .. } | Source::Respawn { domain, .. } => Some(domain),
        _ => None,
    }
}

/// A domain under another name, whose grants come from the other copies.
fn copied(domain: &Domain, name: String, disk: &Written, names: &[(String, String)]) -> Domain {
    let mut copy = Domain {
        name,
        disk: Some(disk.name.clone()),
        line: disk.line,
        ..domain.clone()
    };
    for grant in &mut copy.grants {
        if let Source::Offer { domain, .. } | Source::Respawn { domain, .. } = &mut grant.source
            && let Some((_, new)) = names.iter().find(|(old, _)| old == domain)
        {
            domain.clone_from(new);
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "
[domain.pci]
[domain.driver]
grants = { device = \"pci.claim(1af4:1042)\" }
[domain.block]
grants = { driver = \"driver.respawn\" }
[domain.ext2]
grants = { device = \"block\" }
[domain.vfs]
grants = { fs = \"ext2.respawn\" }
[disk.vda]
device = \"block\"
files = \"vfs\"
";

    #[test]
    fn a_disk_like_another_has_domains_of_its_own() {
        let text = format!("{STACK}[disk.vdb]\nlike = \"vda\"\n");
        let manifest = Manifest::parse(&text).expect("well-formed");
        let names: Vec<_> = manifest
            .domains
            .iter()
            .map(|domain| domain.name.as_str())
            .collect();
        assert_eq!(
            names[5..],
            ["vfs-vdb", "ext2-vdb", "block-vdb", "driver-vdb"]
        );
        let [first, second] = &manifest.disks[..] else {
            panic!("two disks");
        };
        assert!(!first.on_demand && second.on_demand);
        let named = |name| manifest.index_of(name).expect("there");
        assert_eq!((first.device, first.files), (named("block"), named("vfs")));
        assert_eq!(
            (second.device, second.files),
            (named("block-vdb"), named("vfs-vdb"))
        );
        assert_eq!(
            manifest.domains[5].grants[0].source.domain(),
            Some("ext2-vdb")
        );
        assert_eq!(manifest.domains[8].grants[0].source.domain(), Some("pci"));
        assert_eq!(manifest.domains[8].disk.as_deref(), Some("vdb"));
        assert_eq!(manifest.domains[4].disk, None);
    }

    #[test]
    fn refuses_disks_that_make_no_sense() {
        for (text, wanted) in [
            ("[disk.b]\nlike = \"nothing\"", "not above it"),
            ("[disk.b]\ndevice = \"block\"", "needs either"),
            ("[disk.b]\nlike = \"vda\"\nfiles = \"vfs\"", "needs either"),
            (
                "[disk.b]\ndevice = \"no\"\nfiles = \"vfs\"",
                "no [domain.no]",
            ),
            ("[disk.b]\nsize = \"1\"", "no key `size`"),
            ("[disk.vda]\nlike = \"vda\"", "was there"),
        ] {
            let error = Manifest::parse(&format!("{STACK}{text}\n")).expect_err(text);
            assert!(error.message.contains(wanted), "{text}: {error}");
        }
    }
}
