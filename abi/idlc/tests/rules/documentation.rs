//! What documentation must be there, and what must not stand in it: each breaks one of these rules.

use crate::{Case, cases, check};
use idlc::Rule;

cases! {
    docs_have_no_fenced_code DocText "3:1" "code block" "plain text" r#"//! D.

/// ```
/// std::fs::read("/etc/passwd");
/// ```
pub struct Point {
    /// D.
    pub x: u64,
}
"#;
    docs_have_no_code_in_a_list DocText "3:1" "code block" "plain text" r#"//! D.

/// - ~~~
pub struct Point {
    /// D.
    pub x: u64,
}
"#;
    docs_have_no_indented_code DocText "6:5" "code block" "plain text" r#"//! D.
/// D.
pub struct Point {
    /// D.
    ///
    ///     std::process::exit(0)
    pub x: u64,
}
"#;
    docs_have_no_code_by_attribute DocText "3:3" "code block" "plain text" "//! D.

#[doc = \"a\\n\\tstd::process::exit(0)\"]
pub struct Point {
    /// D.
    pub x: u64,
}
";
    docs_have_no_control_characters DocText "3:3" "control character" "plain text" "//! D.

#[doc = \"a\\u{202e}b\"]
pub struct Point {
    /// D.
    pub x: u64,
}
";
    types_are_documented Undocumented "3:12" "type `Point` has no documentation" "`///`" r#"//! D.

pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    fields_are_documented Undocumented "5:9" "field `Point.x` has no documentation" "`///`" r#"//! D.

/// D.
pub struct Point {
    pub x: u8,
}
"#;

    variants_are_documented Undocumented "5:5" "variant `Level::High` has no" "`///`" r#"//! D.

/// D.
pub enum Level {
    High,
}
"#;

    methods_are_documented Undocumented "5:8" "method `Thing::f` has no" "`///`" r#"//! D.

/// D.
pub trait Thing {
    fn f(&self) -> RpcResult<()>;
}
"#;
}
