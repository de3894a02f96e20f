//! From the ELF files of the domains to signed images.

use std::fs;

use abi::image::{PORT_OFFER, PORT_OPTIONAL, Port, SIGNATURE_LENGTH};
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
    keep_symbols(project, domains)?;
    Ok(fs::remove_dir_all(&finished)?)
}

/// The folder with what the compiler knows of each image, by the build that the kernel tells of in
/// the log: the beginning of the signature, in hexadecimal digits.
const SYMBOLS: &str = "symbols";
const BUILD_BYTES: usize = 8;

/// Keeps the files that images were made of, under the builds of those. Older ones go.
fn keep_symbols(project: &Project, domains: &[(&Package, &Domain)]) -> Result<()> {
    let folder = project.out.join(SYMBOLS);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for (_, domain) in domains {
        let another = domain
            .update
            .iter()
            .map(|name| format!("boot/updates/{name}"));
        for path in [domain.path.clone()].into_iter().chain(another) {
            let image = fs::read(project.images().join(&path))?;
            let signature = image
                .len()
                .checked_sub(SIGNATURE_LENGTH)
                .context("an image has a signature")?;
            let build: String = image[signature..][..BUILD_BYTES]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let (file, kept) = (products(project).join(&domain.image), folder.join(build));
            // Most often they are the same file then; the compiler never writes into an old one.
            if fs::hard_link(&file, &kept).is_err() {
                fs::copy(&file, &kept)?;
            }
        }
    }
    Ok(())
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
