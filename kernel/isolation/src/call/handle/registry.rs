//! The proxies that there are, one type for each interface, and their method tables.

use super::Proxy;
use abi::bounds::MOST_METHODS;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Words of a method table in front of the methods: drop, size, alignment. That is how the compiler
/// of this very version lays it out for a trait without supertraits that have methods.
pub const TABLE_HEAD: usize = 3;

/// What `idlc` registers for each interface.
pub struct ProxyEntry {
    /// The interface's number.
    pub number: u64,
    /// Its name.
    pub name: &'static str,
    /// The method table that handles have: a copy of one of the other two.
    live: &'static [AtomicUsize],
    /// That of its proxy.
    pub(crate) plain: *const usize,
    /// That of its proxy with methods that count.
    pub(crate) counting: *const usize,
}

// SAFETY: the tables are read only, and what is copied is atomic.
unsafe impl Sync for ProxyEntry {}

impl ProxyEntry {
    /// For the generated proxies.
    ///
    /// # Panics
    /// The interface has more methods than calls can be counted of; in a constant, when it is
    /// compiled.
    ///
    /// # Safety
    /// `plain` and `counting` are method tables of the interface, and `live` has as many words.
    pub const unsafe fn new(
        number: u64,
        name: &'static str,
        live: &'static [AtomicUsize],
        plain: *const usize,
        counting: *const usize,
    ) -> Self {
        assert!(
            live.len() <= TABLE_HEAD + MOST_METHODS,
            "an interface has too many methods"
        );
        ProxyEntry {
            number,
            name,
            live,
            plain,
            counting,
        }
    }

    /// How many methods the interface has.
    pub(crate) fn methods(&self) -> usize {
        self.live.len() - TABLE_HEAD
    }

    /// The table that handles have.
    pub(super) fn vtable(&self) -> *const () {
        self.live.as_ptr().cast()
    }

    /// Whether its table is laid out as [`TABLE_HEAD`] says.
    fn fits(&self) -> bool {
        // SAFETY: a method table of any type is longer.
        let head = unsafe { [self.plain.add(1).read(), self.plain.add(2).read()] };
        head == [size_of::<Proxy>(), align_of::<Proxy>()]
    }

    /// Has all handles use the table at `source`, one of the two, from now on. Each word is either,
    /// and either does.
    pub(crate) fn install(&self, source: *const usize) {
        for (index, word) in self.live.iter().enumerate() {
            // SAFETY: a method table of the interface has as many words.
            word.store(unsafe { source.add(index).read() }, Ordering::Relaxed);
        }
    }
}

pub(super) static mut REGISTRY: &[ProxyEntry] = &[];

/// Makes the generated proxies known, sorted by number. Called once at boot, before any domain
/// exists.
///
/// # Panics
/// The compiler lays method tables out in another way, or the numbers do not ascend: two interfaces
/// with one number would be one type.
pub fn set_registry(registry: &'static [ProxyEntry]) {
    let is_sorted = registry.is_sorted_by(|one, next| one.number < next.number);
    assert!(
        is_sorted,
        "the proxies are not in the order of their numbers"
    );
    // SAFETY: at boot, before anything reads it.
    unsafe { REGISTRY = registry };
    for entry in registry {
        assert!(entry.fits(), "a method table has another layout");
        entry.install(entry.plain);
    }
}

/// All of them.
pub(crate) fn registry() -> &'static [ProxyEntry] {
    // SAFETY: written once at boot.
    unsafe { REGISTRY }
}

/// The proxy of the interface with this number.
pub fn proxy_entry(interface: u64) -> Option<&'static ProxyEntry> {
    let registry = registry();
    registry
        .binary_search_by_key(&interface, |entry| entry.number)
        .ok()
        .map(|index| &registry[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn entry(number: u64, methods: usize) -> ProxyEntry {
        let mut words = Vec::new();
        words.resize_with(TABLE_HEAD + methods, || AtomicUsize::new(0));
        let none = core::ptr::null();
        // SAFETY: nothing is done with the tables.
        unsafe { ProxyEntry::new(number, "Some", Vec::leak(words), none, none) }
    }

    #[test]
    fn an_interface_has_as_many_methods_as_can_be_counted() {
        assert_eq!(entry(1, MOST_METHODS).methods(), MOST_METHODS);
    }

    #[test]
    #[should_panic(expected = "an interface has too many methods")]
    fn an_interface_with_more_methods_is_refused() {
        let _ = entry(1, MOST_METHODS + 1);
    }

    #[test]
    #[should_panic(expected = "in the order of their numbers")]
    fn two_interfaces_with_one_number_are_refused() {
        set_registry(Box::leak(Box::new([entry(1, 1), entry(1, 1)])));
    }
}
