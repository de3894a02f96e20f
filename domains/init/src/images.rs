//! Verified images. Each is read and checked once and kept, so that a restart needs neither.

use crate::failure;
use crate::files::Files;
use crate::kernel::Kernel;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{Handle, Image, Port, RVec, RpcResult, Text};

/// A verified image.
pub struct Prepared {
    /// The name that it was built under.
    pub name: Text<32>,
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
    verify(kernel, file).map_err(|error| format!("image {path}: {error}"))
}

/// Has the kernel check a whole image file, and looks at its ports.
///
/// # Errors
/// Why it is refused.
pub fn verify(kernel: &Kernel, file: RVec<u8>) -> Result<Prepared, String> {
    let image = kernel.loader.prepare(file);
    let image = image.map_err(|error| failure::load(&error))?;
    ports(image).map_err(|error| error.to_string())
}

fn ports(image: Handle<dyn Image>) -> RpcResult<Prepared> {
    let (mut wants, mut offers) = (Vec::new(), Vec::new());
    let mut index = 0;
    while let Some(port) = image.port(index)? {
        if port.offer { &mut offers } else { &mut wants }.push(port);
        index += 1;
    }
    Ok(Prepared {
        name: image.name()?,
        image,
        wants,
        offers,
    })
}
