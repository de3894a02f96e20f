//! `#[gone]` and `#[base]` where they mean nothing.

use crate::{Case, cases, check};
use idlc::Rule;

cases! {
    what_is_gone_has_no_fields Attribute "9:5" "`DiskError::Away` cannot be `#[gone]`" "one variant without fields" r#"//! D.

/// D.
pub enum DiskError {
    /// D.
    Rpc(RpcError),
    /// D.
    #[gone]
    Away(u8),
}
"#;

    what_is_gone_has_no_named_fields Attribute "9:5" "`DiskError::Away` cannot be `#[gone]`" "one variant without fields" r#"//! D.

/// D.
pub enum DiskError {
    /// D.
    Rpc(RpcError),
    /// D.
    #[gone]
    Away {
        /// D.
        port: u8,
    },
}
"#;

    one_variant_is_gone Attribute "12:5" "`DiskError::Lost` cannot be `#[gone]`" "one variant" r#"//! D.

/// D.
pub enum DiskError {
    /// D.
    Rpc(RpcError),
    /// D.
    #[gone]
    Away,
    /// D.
    #[gone]
    Lost,
}
"#;

    only_errors_have_what_is_gone Attribute "7:5" "`State::Away` cannot be `#[gone]`" "an enum with a variant `Rpc(RpcError)`" r#"//! D.

/// D.
pub enum State {
    /// D.
    #[gone]
    Away,
    /// D.
    There,
}
"#;

    no_type_is_gone Attribute "4:1" "`#[gone]` is unknown, or has no meaning here" "at a variant of its error" r#"//! D.

/// D.
#[gone]
pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    no_field_is_gone Attribute "6:5" "`#[gone]` is unknown, or has no meaning here" "at a variant of its error" r#"//! D.

/// D.
pub struct Point {
    /// D.
    #[gone]
    pub x: u8,
}
"#;

    no_method_is_gone Attribute "6:5" "`#[gone]` is unknown, or has no meaning here" "at a variant of its error" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[gone] fn f(&self) -> RpcResult<()>;
}
"#;

    what_is_gone_takes_no_arguments Attribute "8:5" "`#[gone(now)]` is unknown, or has no meaning here" "at a variant of its error" r#"//! D.

/// D.
pub enum DiskError {
    /// D.
    Rpc(RpcError),
    /// D.
    #[gone(now)]
    Away,
}
"#;

    entries_have_no_base Attribute "6:11" "`#[base]` stands at the entry of a domain" "only an interface" r#"//! D.

/// D.
#[domain]
#[base]
pub trait Disk {
    fn start() -> RpcResult<Handle<dyn Part>>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_type_has_a_base Attribute "4:1" "`#[base]` is unknown, or has no meaning here" "`#[base]` at an interface" r#"//! D.

/// D.
#[base]
pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    no_method_has_a_base Attribute "6:5" "`#[base]` is unknown, or has no meaning here" "`#[base]` at an interface" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[base] fn f(&self) -> RpcResult<()>;
}
"#;
}
