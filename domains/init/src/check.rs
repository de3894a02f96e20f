//! Does the manifest fit the images? What the manifest alone can be checked for was checked when it
//! was read.

use crate::images::Prepared;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{Interface, Port, Steward};
use manifest::{ByDomain, Domain, Grant, Manifest, Source};

/// An image, or why the kernel refused it. A refused one is not checked: its domain does not start,
/// and the reason is said then.
type Checked = Result<Arc<Prepared>, String>;

/// Checks all grants against the ports of the images.
///
/// # Errors
/// The first grant that the image does not want, want that is not granted, or offer that is not
/// there.
pub fn check(manifest: &Manifest, images: &ByDomain<Checked>) -> Result<(), String> {
    for (index, image) in images.iter() {
        let domain = &manifest[index];
        if let Ok(image) = image {
            unwanted(domain, &image.wants)?;
            missing(domain, &image.wants)?;
        }
        let who = format!("domain `{}` is", domain.name);
        for grant in &domain.grants {
            offered(manifest, images, &who, grant)?;
        }
    }
    let mut services = manifest.services.iter();
    services.try_for_each(|service| offered(manifest, images, "programs are", service))
}

/// Whether an image offers to be the steward.
pub fn offers_a_steward(image: &Checked) -> bool {
    let offers = image.as_ref().map(|image| &image.offers[..]);
    let first = offers.unwrap_or_default().first();
    first.is_some_and(|port| port.interface == <dyn Steward>::NUMBER)
}

fn names(ports: &[Port]) -> String {
    let names: Vec<String> = ports.iter().map(|port| port.name.to_string()).collect();
    if names.is_empty() {
        String::from("nothing")
    } else {
        names.join(", ")
    }
}

fn unwanted(domain: &Domain, wants: &[Port]) -> Result<(), String> {
    let known = |grant: &&Grant| wants.iter().all(|port| port.name.as_str() != grant.port);
    match domain.grants.iter().find(known) {
        None => Ok(()),
        Some(grant) => Err(format!(
            "manifest.toml, line {}: domain `{}` is granted `{}`, but its image `{}` wants {}",
            grant.line,
            domain.name,
            grant.port,
            domain.image,
            names(wants)
        )),
    }
}

fn missing(domain: &Domain, wants: &[Port]) -> Result<(), String> {
    let granted = |port: &Port| {
        domain
            .grants
            .iter()
            .any(|grant| port.name.as_str() == grant.port)
    };
    match wants.iter().find(|port| !port.optional && !granted(port)) {
        None => Ok(()),
        Some(port) => Err(format!(
            "manifest.toml, line {}: domain `{}` lacks the grant `{}`, which its image `{}` wants",
            domain.line, domain.name, port.name, domain.image
        )),
    }
}

fn offered(
    manifest: &Manifest,
    images: &ByDomain<Checked>,
    who: &str,
    grant: &Grant,
) -> Result<(), String> {
    let (from, port) = match &grant.source {
        Source::Offer { domain, port } | Source::Respawn { domain, port } => {
            (domain, port.as_deref())
        }
        Source::Claim { domain, .. } => (domain, None),
        _ => return Ok(()),
    };
    let index = manifest
        .index_of(from)
        .expect("checked when the manifest was read");
    let Ok(image) = &images[index] else {
        return Ok(());
    };
    match offer_index(&image.offers, port) {
        Some(_) => Ok(()),
        None => Err(format!(
            "manifest.toml, line {}: {who} to be granted {} of `{from}`, which offers {}",
            grant.line,
            port.map_or(String::from("the first offer"), |port| format!(
                "the offer `{port}`"
            )),
            names(&image.offers)
        )),
    }
}

/// The number of the offer with this name, or of the first one.
pub fn offer_index(offers: &[Port], name: Option<&str>) -> Option<usize> {
    match name {
        None => (!offers.is_empty()).then_some(0),
        Some(name) => offers.iter().position(|port| port.name.as_str() == name),
    }
}
