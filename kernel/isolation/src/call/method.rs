//! What a proxy tells of a method.

use super::UNBOUNDED;
use abi::bounds::{LONGEST_BUDGET, LONGEST_NAME};

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
    ///
    /// # Panics
    /// A name or the budget is longer than it may be; in a constant, when it is compiled.
    pub const fn new(
        stub: *const (),
        interface: &'static str,
        name: &'static str,
        budget: u32,
        frees: bool,
    ) -> Self {
        assert!(
            interface.len() <= LONGEST_NAME && name.len() <= LONGEST_NAME,
            "the name of an interface or a method is too long"
        );
        assert!(
            budget <= LONGEST_BUDGET || budget == UNBOUNDED,
            "a budget is too long"
        );
        Method {
            stub,
            interface,
            name,
            budget,
            frees,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(name: &'static str, budget: u32) -> Method {
        Method::new(core::ptr::null(), "Some", name, budget, false)
    }

    #[test]
    fn what_has_room_is_a_method() {
        for budget in [0, LONGEST_BUDGET, UNBOUNDED] {
            assert_eq!(
                method("a_name_of_thirty_two_bytes_12345", budget).budget,
                budget
            );
        }
    }

    #[test]
    #[should_panic(expected = "the name of an interface or a method is too long")]
    fn a_long_name_is_refused() {
        let _ = method("a_name_of_thirty_three_bytes_6789", 0);
    }

    #[test]
    #[should_panic(expected = "a budget is too long")]
    fn a_long_budget_is_refused() {
        let _ = method("a", LONGEST_BUDGET + 1);
    }
}
