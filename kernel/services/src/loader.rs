//! `Loader` and `Image`: from a file to a running domain.

use crate::monitor::DomainObject;
use alloc::sync::Arc;
use interfaces::{
    AnyHandle, DomainSpec, Handle, Image, LoadError, Loader, Port, RVec, RpcError, RpcResult,
    StartError, Started, Text,
};
use isolation::call::thread::caller;
use isolation::domain::group::GroupSpec;
use isolation::domain::{BlockRef, Limits};
use isolation::load::loader::{self, File, MOST_GRANTS, Prepared};

/// Verifies images.
pub struct ImageLoader;

impl Loader for ImageLoader {
    fn prepare(&self, file: RVec<u8>) -> Result<Handle<dyn Image>, LoadError> {
        let payer = caller().map_or(BlockRef::Kernel, BlockRef::Domain);
        let prepared = loader::prepare_for(payer, file)?;
        Ok(Handle::new(ImageObject(prepared))?)
    }
}

/// A verified image.
struct ImageObject(Prepared);

impl ImageObject {
    fn file(&self) -> RpcResult<Arc<File>> {
        self.0.file().ok_or(GONE)
    }
}

/// What an image answers whose file went with the domain that had it verified.
const GONE: RpcError = RpcError::DomainCrashed;

impl Image for ImageObject {
    fn name(&self) -> RpcResult<Text<32>> {
        Ok(Text::new(self.file()?.image().name()))
    }

    fn port(&self, index: u32) -> RpcResult<Option<Port>> {
        Ok(self
            .file()?
            .image()
            .ports()
            .nth(index as usize)
            .map(|port| Port {
                name: Text::new(port.name),
                interface: port.interface,
                offer: port.flags & abi::image::PORT_OFFER != 0,
                optional: port.flags & abi::image::PORT_OPTIONAL != 0,
            }))
    }

    fn start(
        &self,
        spec: DomainSpec,
        grants: [Option<AnyHandle>; MOST_GRANTS],
        options: RVec<u8>,
    ) -> Result<Started, StartError> {
        let limits = Limits {
            pages: spec.page_limit as usize,
            shared: spec.shared_limit as usize,
            threads: spec.thread_limit,
            calls: spec.call_limit,
            call_ms: spec.call_budget_ms,
            reserve: spec.reserve_pages as usize,
            log_rate: spec.log_rate,
            group: GroupSpec {
                number: spec.group,
                pages: spec.group_pages as usize,
                threads: spec.group_threads,
                weight: spec.weight,
                percent: spec.cpu_percent,
                deadline_percent: spec.deadline_percent,
            },
        };
        let instance = self.0.start(spec.name.as_str(), limits, grants, options)?;
        let control = Handle::new(DomainObject(instance.block))?;
        Ok(Started {
            control,
            offers: instance.offers,
        })
    }
}
