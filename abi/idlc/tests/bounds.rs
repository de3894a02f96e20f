//! The numbers that `idlc` lets files have are those that kernel and runtime have room for.

use abi::{bounds, image};

#[test]
fn what_is_accepted_has_its_room() {
    assert_eq!(idlc::bounds::MOST_METHODS, bounds::MOST_METHODS);
    assert_eq!(idlc::bounds::LONGEST_NAME, bounds::LONGEST_NAME);
    assert_eq!(idlc::bounds::LONGEST_BUDGET, bounds::LONGEST_BUDGET);
    assert_eq!(idlc::bounds::MOST_NESTED, bounds::MOST_NESTED);
    let by_value = usize::try_from(idlc::bounds::LARGEST_BY_VALUE);
    assert_eq!(by_value, Ok(bounds::LARGEST_BY_VALUE));
    let ports = idlc::bounds::MOST_WANTS + idlc::bounds::MOST_OFFERS;
    assert_eq!(ports, image::MOST_PORTS);
}
