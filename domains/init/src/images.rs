//! Verified images. Each is read and checked once and kept, so that a restart needs neither.

use crate::failure;
use crate::files::Files;
use crate::kernel::Kernel;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{Handle, Image, Port, RpcResult};

/// A verified image.
pub struct Prepared {
    /// To start instances.
    pub image: Handle<dyn Image>,
    /// What it wants, in the order of its declaration.
    pub wants: Vec<Port>,
    /// What it offers, in the order of its declaration.
    pub offers: Vec<Port>,
}

/// All images that a manifest names. An image that the kernel refuses stays here with the reason.
#[derive(Default)]
pub struct Images(Vec<(String, Result<Arc<Prepared>, String>)>);

impl Images {
    /// The image with this name.
    ///
    /// # Errors
    /// The archive has no such file: the manifest is wrong. (What is wrong with a file that is
    /// there is in the value.)
    pub fn get(
        &mut self,
        kernel: &Kernel,
        files: &Files,
        name: &str,
    ) -> Result<Result<Arc<Prepared>, String>, String> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| known == name) {
            return Ok(known.clone());
        }
        let path = format!("domains/{name}");
        if !files.has(&path) {
            return Err(format!(
                "there is no image `{name}`: the boot archive has no file {path}"
            ));
        }
        let prepared = prepare(kernel, files, &path).map(Arc::new);
        self.0.push((name.into(), prepared.clone()));
        Ok(prepared)
    }
}

fn prepare(kernel: &Kernel, files: &Files, path: &str) -> Result<Prepared, String> {
    let file = files.read(&kernel.archive, path)?;
    let image = kernel
        .loader
        .prepare(file)
        .map_err(|error| format!("image {path}: {}", failure::load(&error)))?;
    ports(image).map_err(|error| format!("image {path}: {error}"))
}

fn ports(image: Handle<dyn Image>) -> RpcResult<Prepared> {
    let (mut wants, mut offers) = (Vec::new(), Vec::new());
    let mut index = 0;
    while let Some(port) = image.port(index)? {
        if port.offer { &mut offers } else { &mut wants }.push(port);
        index += 1;
    }
    Ok(Prepared {
        image,
        wants,
        offers,
    })
}
