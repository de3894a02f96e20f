//! `Loader` and `Image`: from a file to a running domain.

use crate::monitor::DomainObject;
use interfaces::{
    AnyHandle, DomainSpec, Handle, Image, LoadError, Loader, Port, RVec, RpcError, RpcResult,
    StartError, Started, Text,
};
use isolation::account::{Charge, Kind};
use isolation::domain::{self, Limits};
use isolation::group::GroupSpec;
use isolation::loader::{self, MOST_GRANTS, Prepared};

/// Verifies images.
pub struct ImageLoader;

impl Loader for ImageLoader {
    fn prepare(&self, file: RVec<u8>) -> Result<Handle<dyn Image>, LoadError> {
        let charge = charge(&file).map_err(LoadError::Rpc)?;
        let prepared = loader::prepare(file).map_err(|error| match error {
            loader::LoadError::NotAnImage => LoadError::NotAnImage,
            loader::LoadError::WrongLength => LoadError::WrongLength,
            loader::LoadError::Malformed(what) => LoadError::Malformed(Text::new(what)),
            loader::LoadError::WrongFingerprint => LoadError::WrongFingerprint,
            loader::LoadError::BadSignature => LoadError::BadSignature,
        })?;
        Ok(Handle::new(ImageObject {
            prepared,
            _charge: charge,
        })?)
    }
}

/// Charges the domain that asks with the memory of `file`.
fn charge(file: &RVec<u8>) -> RpcResult<Option<Charge>> {
    let bytes = abi::shared::footprint(file.len());
    let charged = |block| Charge::new(block, Kind::Notes, bytes).ok_or(RpcError::NoMemory);
    domain::caller().map(charged).transpose()
}

/// A verified image.
struct ImageObject {
    prepared: Prepared,
    /// For the file, which the kernel keeps.
    _charge: Option<Charge>,
}

impl Image for ImageObject {
    fn name(&self) -> RpcResult<Text<32>> {
        Ok(Text::new(self.prepared.image().name()))
    }

    fn port(&self, index: u32) -> RpcResult<Option<Port>> {
        Ok(self
            .prepared
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
            group: GroupSpec {
                number: spec.group,
                pages: spec.group_pages as usize,
                threads: spec.group_threads,
                weight: spec.weight,
                percent: spec.cpu_percent,
            },
        };
        let instance = self
            .prepared
            .start(spec.name.as_str(), limits, grants, options)
            .map_err(|error| match error {
                loader::StartError::MissingGrant(name) => StartError::MissingGrant(name),
                loader::StartError::WrongGrant(name) => StartError::WrongGrant(name),
                loader::StartError::ExtraGrant => StartError::ExtraGrant,
                loader::StartError::Failed(error) => StartError::Failed(error),
                loader::StartError::Crashed => StartError::Crashed,
                loader::StartError::NoMemory => StartError::Rpc(RpcError::NoMemory),
            })?;
        let control = Handle::new(DomainObject(instance.block))?;
        Ok(Started {
            control,
            offers: instance.offers,
        })
    }
}
