//! From the ELF files of the domains to signed images.

use std::fs;

use abi::image::{PORT_OFFER, PORT_OPTIONAL, Port};
use anyhow::{Context, Result};

use super::products;
use crate::packages::{Domain, Package};
use crate::project::Project;
use crate::{elf, signer};

/// Finishes all images and has them signed.
pub(super) fn sign_all(
    project: &Project,
    domains: &[(&Package, &Domain)],
    model: &idlc::Model,
    fingerprint: &[u8; 32],
) -> Result<()> {
    let (images, finished) = (project.images(), project.out.join("unsigned"));
    for folder in [&images, &finished] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    for (_, domain) in domains {
        let file = fs::read(products(project).join(&domain.image))?;
        let elf = elf::stripped(&file).with_context(|| domain.image.clone())?;
        let mut names = vec![(&domain.image, domain.path.clone())];
        let another = domain.update.iter();
        names.extend(another.map(|name| (name, format!("boot/updates/{name}"))));
        for (name, path) in names {
            let image = unsigned(domain, name, model, fingerprint, &elf)?;
            let path = finished.join(path);
            fs::create_dir_all(path.parent().context("an image has a folder")?)?;
            fs::write(&path, image)?;
        }
    }
    signer::sign(project, &finished, &images)?;
    Ok(fs::remove_dir_all(&finished)?)
}

/// What is to be signed: the domain's image, called `name`.
fn unsigned(
    domain: &Domain,
    name: &str,
    model: &idlc::Model,
    fingerprint: &[u8; 32],
    elf: &[u8],
) -> Result<Vec<u8>> {
    let entries = model.entries();
    let entry = entries.iter().find(|(name, _)| *name == domain.entry);
    let (_, ports) = entry.with_context(|| {
        format!(
            "{}: no .idl file declares the entry `{}`",
            domain.image, domain.entry
        )
    })?;
    let flags = |offer, optional| if offer { PORT_OFFER } else { 0 } | if optional { PORT_OPTIONAL } else { 0 };
    let port = |port: &'_ idlc::model::Port| {
        (
            port.name.clone(),
            port.number(),
            flags(port.offer, port.optional),
        )
    };
    let ports: Vec<_> = ports.iter().map(port).collect();
    let ports: Vec<_> = ports
        .iter()
        .map(|(name, interface, flags)| Port {
            name,
            interface: *interface,
            flags: *flags,
        })
        .collect();
    Ok(abi::image::unsigned(name, fingerprint, &ports, elf))
}
