//! Budgets of methods, and entries of domains: each breaks one of these rules.

use crate::{Case, cases, check};
use idlc::Rule;

cases! {
    budgets_are_milliseconds Budget "6:13" "`0` is not a budget" "`#[unbounded]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[budget(0)]
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_budget_without_bound Budget "5:5" "is unbounded and has a budget" "one of the two" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[budget(5)]
    #[unbounded]
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_have_start Entry "6:8" "the function of entry `Disk` is not `start`" "without `self`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn begin() -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_have_one_function Entry "5:11" "does not have exactly one function" "nothing else" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<()>;
    fn stop() -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_take_handles Entry "6:23" "`sectors: u64` is nothing that a domain can be granted" "`Option<Handle<dyn I>>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start(sectors: u64) -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    options_come_last Entry "6:23" "is nothing that a domain can be granted" "at last" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start(options: RVec<u8>, other: Handle<dyn Part>) -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_offer_handles Entry "6:29" "`u64` is nothing that a domain can offer" "`Handle<dyn I>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<u64>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_can_fail Entry "6:19" "`start` gives `Handle<dyn Part>`" "`RpcResult<Handle<dyn I>>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> Handle<dyn Part>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    offers_have_one_name_each Entry "5:11" "2 names for 1 offers" "one name" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    #[offers(a, b)]
    fn start() -> RpcResult<Handle<dyn Part>>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    offers_have_different_names Entry "5:11" "two offers have the same name" "a name of its own" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    #[offers(a, a)]
    fn start() -> RpcResult<(Handle<dyn Part>, Handle<dyn Part>)>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_want_little Entry "5:11" "0 wants and 5 offers" "at most 16 wants" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<[Handle<dyn Part>; 5]>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;
}
