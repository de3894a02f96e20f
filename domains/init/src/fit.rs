//! Does another image fit into the place of a domain? Everything that can be known without starting
//! it is looked at here.

use crate::images::Prepared;
use crate::service::Attached;
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::Port;
use manifest::{Domain, DomainIndex, Source};

/// Compares the ports of `new` with what the manifest grants and with those of `old`: it must do
/// with the same grants, and offer at least the same.
///
/// # Errors
/// The first port that does not fit.
pub fn check(domain: &Domain, old: &Prepared, new: &Prepared) -> Result<(), String> {
    for grant in &domain.grants {
        let wants = |image: &Prepared| named(&image.wants, &grant.port).map(|port| port.interface);
        match (wants(old), wants(new)) {
            (_, None) => return Err(format!("it does not want the grant `{}`", grant.port)),
            (there, wanted) if there != wanted => {
                return Err(format!("it wants `{}` with another interface", grant.port));
            }
            _ => {}
        }
    }
    let granted = |port: &Port| {
        let mut grants = domain.grants.iter();
        grants.any(|grant| grant.port == port.name.as_str())
    };
    let lacking = |port: &&Port| !port.optional && !granted(port);
    if let Some(port) = new.wants.iter().find(lacking) {
        return Err(format!("it wants `{}`, which is not granted", port.name));
    }
    offers(old, new)
}

fn named<'a>(ports: &'a [Port], name: &str) -> Option<&'a Port> {
    ports.iter().find(|port| port.name.as_str() == name)
}

/// Offers are known by name or as the first one, so what was there must stay in its order.
fn offers(old: &Prepared, new: &Prepared) -> Result<(), String> {
    for (number, port) in old.offers.iter().enumerate() {
        let there = new.offers.get(number);
        match there.filter(|there| there.name == port.name) {
            None => return Err(format!("it lacks the offer `{}`", port.name)),
            Some(there) if there.interface != port.interface => {
                return Err(format!("its `{}` has another interface", port.name));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The gates of all callers of the domain `index`, each with the domain that attached it.
///
/// # Errors
/// Who calls it past every gate.
pub fn gates(system: &System, index: DomainIndex) -> Result<Vec<Attached>, String> {
    let name = &system.manifest[index].name;
    let gates = system.services[index].gates();
    for holder in system.manifest.indices() {
        let domain = &system.manifest[holder];
        let passes = |source: &Source| match source {
            Source::Respawn { .. } => !gates.iter().any(|(other, _)| *other == holder),
            _ => true,
        };
        let uses = |source: &Source| source.domain() == Some(name.as_str());
        let mut sources = domain.grants.iter().map(|grant| &grant.source);
        if sources.any(|source| uses(source) && passes(source)) {
            return Err(format!(
                "`{}` calls it without a shadow in between",
                domain.name
            ));
        }
    }
    let mut services = system.manifest.services.iter();
    if services.any(|service| service.source.domain() == Some(name.as_str())) {
        return Err(String::from("programs call it without a shadow in between"));
    }
    match gates.is_empty() {
        true => Err(String::from("no shadow stands in front of it")),
        false => Ok(gates),
    }
}
