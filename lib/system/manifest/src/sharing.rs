//! Which domains may use the files of one disk.
//!
//! A file service with a keeper notes what came of each client's change, and which files a client
//! has open, so that its next instance can tell. Clients go by numbers there, and there are two
//! numbers: a domain takes the first, or the second if its image is made for a place
//! [beside](BESIDE) another. Two domains with one number would be told what came of each other's
//! changes, and after a crash the first to come back would be taken for both. So a manifest with
//! two such is refused, unless nothing can be changed on the disk: then there is nothing to note.

use crate::model::{Domain, Grant, Manifest};
use crate::source::Source;
use crate::syntax::Error;
use alloc::format;
use alloc::vec::Vec;

/// Images that take the second number of a file service's clients: those whose code says
/// `Mount::beside` (`domains/libs/mounts`).
pub const BESIDE: [&str; 1] = ["linux"];

/// The image of a file service.
const SERVICE: &str = "vfs-shadow";
/// The port of its keeper; without one nothing is noted.
const KEEPER: &str = "keep";
/// The option of a file system that is not to be changed.
const READ_ONLY: &str = "ro";

/// Whether it takes the second number.
fn is_beside(domain: &Domain) -> bool {
    BESIDE.contains(&domain.image.as_str())
}

impl Manifest {
    /// Refuses two clients with one number at a file service that notes what they do, and two that
    /// mount disks, since one may mount what the other has mounted.
    pub(crate) fn check_sharing(&self) -> Result<(), Error> {
        for service in &self.domains {
            let notes = service.grants.iter().any(|grant| grant.port == KEEPER);
            if service.image == SERVICE && notes && !self.is_read_only(service) {
                let name = service.name.as_str();
                let from = |source: &Source| source.domain() == Some(name);
                self.check_clients(&format!("the files of `{name}`"), from)?;
            }
        }
        self.check_clients("`init.disks`", |source| *source == Source::Disks)
    }

    /// Refuses two domains with one number that are both granted `what`.
    fn check_clients(&self, what: &str, is_meant: impl Fn(&Source) -> bool) -> Result<(), Error> {
        let mut clients: Vec<(&Domain, &Grant)> = Vec::new();
        for domain in &self.domains {
            let Some(grant) = domain.grants.iter().find(|grant| is_meant(&grant.source)) else {
                continue;
            };
            let is_same = |(other, _): &&(&Domain, &Grant)| is_beside(other) == is_beside(domain);
            if let Some((other, first)) = clients.iter().find(is_same) {
                let message = format!(
                    "`{}` and `{}` (line {}) are both granted {what}, where what came of a change is noted for one of them only: give one a disk of its own, or the file system the option `{READ_ONLY}`",
                    domain.name, other.name, first.line
                );
                return Err(Error::new(grant.line, message));
            }
            clients.push((domain, grant));
        }
        Ok(())
    }

    /// Whether the file system behind this service says that it is not to be changed.
    fn is_read_only(&self, service: &Domain) -> bool {
        let behind = service.grants.iter().filter(|grant| grant.port != KEEPER);
        let mut behind = behind.filter_map(|grant| self.index_of(grant.source.domain()?));
        behind.any(|index| self[index].options.split(' ').any(|it| it == READ_ONLY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    const DISK: &str = "[domain.keep]
[domain.ext2]
options = \"cache=40% OPTION\"
[domain.vfs]
image = \"vfs-shadow\"
grants = { fs = \"ext2.respawn\", keep = \"keep.b.respawn\" }
";

    /// A disk, and these domains with these images, each with the files of `vfs`.
    fn with(clients: &[(&str, &str)]) -> String {
        let client = |(name, image)| {
            format!("[domain.{name}]\nimage = \"{image}\"\ngrants = {{ root = \"vfs.respawn\" }}\n")
        };
        let clients: String = clients.iter().copied().map(client).collect();
        DISK.replace(" OPTION", "") + &clients
    }

    #[test]
    fn two_that_would_be_taken_for_one_are_refused_by_name() {
        for clients in [
            [("rv6", "rv6"), ("other", "rv6")],
            [("linux", "linux"), ("other", "linux")],
            [("rv6", "rv6"), ("other", "my-own")],
        ] {
            let error = Manifest::parse(&with(&clients)).expect_err("both may write");
            let [first, _] = clients.map(|(name, _)| name);
            let both =
                format!("`other` and `{first}` (line 9) are both granted the files of `vfs`");
            assert!(error.message.starts_with(&both), "{error}");
            assert_eq!(error.line, 12);
        }
        let three = [("rv6", "rv6"), ("linux", "linux"), ("late", "linux")];
        let error = Manifest::parse(&with(&three)).expect_err("the last is one too many");
        assert!(error.message.starts_with("`late` and `linux`"), "{error}");
        let plain = with(&[("rv6", "rv6"), ("other", "rv6")]);
        let plain = plain.replace("root = \"vfs.respawn\"", "root = \"vfs\"");
        assert!(
            Manifest::parse(&plain).is_err(),
            "without a right to ask for more"
        );
    }

    #[test]
    fn one_beside_another_is_allowed() {
        let beside = with(&[("rv6", "rv6"), ("linux", "linux")]);
        assert!(Manifest::parse(&beside).is_ok());
    }

    #[test]
    fn what_nobody_changes_or_notes_is_for_all() {
        let two = with(&[("rv6", "rv6"), ("other", "rv6")]);
        let read_only = two.replace("cache=40%", "cache=40% ro");
        assert!(Manifest::parse(&read_only).is_ok());
        let other_word = two.replace("cache=40%", "cache=40% romeo");
        assert!(Manifest::parse(&other_word).is_err());
        let unkept = two.replace(", keep = \"keep.b.respawn\"", "");
        assert!(Manifest::parse(&unkept).is_ok());
    }

    #[test]
    fn one_may_mount_disks() {
        let two = |image| {
            format!(
                "[domain.rv6]\ngrants = {{ disks = \"init.disks\" }}\n\
                 [domain.other]\nimage = \"{image}\"\ngrants = {{ disks = \"init.disks\" }}\n"
            )
        };
        let error = Manifest::parse(&two("rv6")).expect_err("both mount");
        let both = "`other` and `rv6` (line 2) are both granted `init.disks`";
        assert!(error.message.starts_with(both), "{error}");
        assert!(Manifest::parse(&two("linux")).is_ok());
    }
}
