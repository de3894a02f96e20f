//! Everything that there is once.

use crate::check;
use crate::claims::Claims;
use crate::files::Files;
use crate::images::Images;
use crate::kernel::Kernel;
use crate::restarts::Restarts;
use crate::service::Service;
use crate::words::Words;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::{AnyHandle, Mandate, RpcResult};
use manifest::{ByDomain, DomainIndex, Manifest, order};

/// Makes what a mandate says, one of `init`'s own services for a domain.
pub type Own = fn(&Arc<System>, &Mandate) -> RpcResult<AnyHandle>;

/// The system that a manifest describes.
pub struct System {
    /// Makes what `init` itself offers: who makes it needs all of this, and so is passed in.
    pub own: Own,
    /// The kernel's services.
    pub kernel: Arc<Kernel>,
    /// The manifest.
    pub manifest: Manifest,
    /// The kernel's command line.
    pub words: Words,
    /// The supervised domains, in the order of the manifest.
    pub services: ByDomain<Service>,
    /// Which of them are to be restarted.
    pub restarts: Restarts,
    /// Their numbers, each after those that it needs.
    pub order: Vec<DomainIndex>,
    /// Which driver has which PCI function.
    pub claims: Claims,
    /// Names of disks that are mounted on demand, and only read.
    pub read_only_disks: Mutex<Vec<String>>,
    /// The domain that outlives `init`, if the manifest has one: who offers to be the steward.
    pub steward: Option<DomainIndex>,
    /// Held while a domain is replaced by another image.
    pub updating: Mutex<()>,
}

impl System {
    /// Reads and verifies all images, and checks the manifest against them. Nothing is started yet.
    ///
    /// # Errors
    /// What is wrong with the manifest. An image that the kernel refuses is no such error: its
    /// domain will not start, and perhaps the system can do without.
    pub fn new(
        kernel: Arc<Kernel>,
        manifest: Manifest,
        words: Words,
        files: &Files,
        own: Own,
    ) -> Result<Self, String> {
        let mut order = order::start_order(&manifest).map_err(|error| error.to_string())?;
        let mut images = Images::default();
        let mut of_domains = Vec::new();
        for domain in &manifest.domains {
            let image = images.get(&kernel, files, &domain.image);
            of_domains.push(image.map_err(|text| {
                format!(
                    "manifest.toml, line {}: domain `{}`: {text}",
                    domain.line, domain.name
                )
            })?);
        }
        let images = ByDomain::new(of_domains);
        check::check(&manifest, &images)?;
        let steward = images
            .iter()
            .find(|(_, image)| check::offers_a_steward(image));
        let steward = steward.map(|(index, _)| index);
        if let Some(index) = steward {
            // Whoever starts is left to it, so it must not need anybody itself.
            order.retain(|other| *other != index);
            order.insert(0, index);
        }
        let services = images.into_rows().zip(&manifest.domains);
        let services = services
            .map(|(image, domain)| Service::new(image, domain.limits))
            .collect();
        let services = ByDomain::new(services);
        Ok(System {
            own,
            kernel,
            restarts: Restarts::new(manifest.domains.len()),
            manifest,
            words,
            services,
            order,
            claims: Claims::default(),
            read_only_disks: Mutex::default(),
            steward,
            updating: Mutex::default(),
        })
    }

    /// The number of the domain that instance `id` serves.
    pub fn served_by(&self, id: u32) -> Option<DomainIndex> {
        let mut services = self.services.iter();
        let (index, _) = services.find(|(_, service)| service.status().id == id)?;
        Some(index)
    }
}
