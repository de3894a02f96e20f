//! Finding domains by name, for the programs that watch and end them.

use crate::error::{Error, Stop};
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{DomainInfo, DomainState, Handle, Monitor, RpcResult};

/// All domains that live or are dying, in ascending order of their numbers.
///
/// # Errors
/// The monitor does not answer.
pub fn domains(monitor: &Handle<dyn Monitor>) -> RpcResult<Vec<DomainInfo>> {
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(info) = monitor.next(from)? {
        all.push(info);
        match info.id.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(all)
}

/// What was found under a name.
pub enum Found {
    /// One domain.
    One(DomainInfo),
    /// None.
    None,
    /// Several; their numbers.
    Several(Vec<u32>),
}

/// The live domain with this name, or with this number.
///
/// # Errors
/// A stop with a message that says which names there are several of, or that there is none.
pub fn find_domain(monitor: &Handle<dyn Monitor>, name: &[u8]) -> Result<DomainInfo, Stop> {
    match find(monitor, name)? {
        Found::One(info) => Ok(info),
        Found::None => Err(Stop::about(name, Error::text("no such domain"))),
        Found::Several(ids) => {
            let ids: Vec<String> = ids.iter().map(|id| alloc::format!("{id}")).collect();
            let text = alloc::format!(
                "several domains have this name: {}; give a number",
                ids.join(", ")
            );
            Err(Stop::about(name, Error::Text(text)))
        }
    }
}

fn find(monitor: &Handle<dyn Monitor>, name: &[u8]) -> RpcResult<Found> {
    let number: Option<u32> = core::str::from_utf8(name)
        .ok()
        .and_then(|text| text.parse().ok());
    let alive =
        |info: &DomainInfo| matches!(info.state, DomainState::Starting | DomainState::Running);
    let wanted =
        |info: &DomainInfo| info.name.as_str().as_bytes() == name || Some(info.id) == number;
    let found = domains(monitor)?
        .into_iter()
        .filter(|info| alive(info) && wanted(info));
    let found: Vec<DomainInfo> = found.collect();
    Ok(match found.as_slice() {
        [] => Found::None,
        [one] => Found::One(*one),
        _ => Found::Several(found.iter().map(|info| info.id).collect()),
    })
}
