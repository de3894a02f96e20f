//! What a proxy tells of a method.

/// What is known of a method at compile time.
#[derive(Debug)]
pub struct Method {
    /// Returns `Err(DomainCrashed)` of the method's own result type.
    pub(super) stub: *const (),
    /// The interface's name.
    pub interface: &'static str,
    /// The method's name.
    pub name: &'static str,
    /// How long the callee's own code may run, in milliseconds; 0: as the domain's default says.
    pub budget: u32,
    /// It is let into a domain that is short of memory: it takes next to none, and perhaps gives
    /// some back.
    pub frees: bool,
}

// SAFETY: immutable; the pointer is a function's address.
unsafe impl Sync for Method {}

impl Method {
    /// For the generated proxies. `stub` is a function of the method's signature without arguments.
    pub const fn new(
        stub: *const (),
        interface: &'static str,
        name: &'static str,
        budget: u32,
        frees: bool,
    ) -> Self {
        Method {
            stub,
            interface,
            name,
            budget,
            frees,
        }
    }
}
