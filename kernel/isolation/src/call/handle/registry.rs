//! The proxies that there are, one type for each interface.

/// What `idlc` registers for each interface.
pub struct ProxyEntry {
    /// The interface's number.
    pub number: u64,
    /// Its name.
    pub name: &'static str,
    /// The method table of its proxy.
    pub vtable: fn() -> *const (),
}

pub(super) static mut REGISTRY: &[ProxyEntry] = &[];

/// Makes the generated proxies known, sorted by number. Called once at boot, before any domain
/// exists.
pub fn set_registry(registry: &'static [ProxyEntry]) {
    // SAFETY: at boot, before anything reads it.
    unsafe { REGISTRY = registry };
}

/// The proxy of the interface with this number.
pub fn proxy_entry(interface: u64) -> Option<&'static ProxyEntry> {
    // SAFETY: written once at boot.
    let registry = unsafe { REGISTRY };
    registry
        .binary_search_by_key(&interface, |entry| entry.number)
        .ok()
        .map(|index| &registry[index])
}
