//! What a file and its items look like: each breaks one of these rules.

use crate::{Case, cases, check};
use idlc::Rule;

cases! {
    a_file_is_rust Syntax "3:12" "a bracket or a quotation mark has no counterpart" "" r#"//! D.

pub struct {
"#;

    a_file_is_rust_in_its_grammar Syntax "3:12" "expected identifier" "" r#"//! D.

pub struct {}
"#;

    no_functions Item "4:5" "a function" "a trait, a struct or an enum" r#"//! D.

/// D.
pub fn f() {}
"#;

    no_imports Item "3:1" "an import" "one namespace" r#"//! D.

use core::fmt;
"#;

    no_aliases Item "3:1" "a type alias" "a trait, a struct or an enum" r#"//! D.

type A = u8;
"#;

    no_tuple_structs Body "4:12" "struct `Pair` has no named fields" "named fields" r#"//! D.

/// D.
pub struct Pair(pub u8, pub u8);
"#;

    no_empty_enums Body "4:10" "enum `Never` is empty" "variant" r#"//! D.

/// D.
pub enum Never {}
"#;

    no_empty_structs Body "4:12" "struct `Nothing` is empty" "`()`" r#"//! D.

/// D.
pub struct Nothing {}
"#;

    no_numbers_of_variants Body "6:5" "`Level::High` has a number" "leave the number out" r#"//! D.

/// D.
pub enum Level {
    /// D.
    High = 3,
}
"#;

    items_are_public NotPublic "4:8" "type `Point` is not public" "`pub`" r#"//! D.

/// D.
struct Point {
    /// D.
    pub x: u8,
}
"#;

    fields_are_public NotPublic "6:5" "field `Point.x` is not public" "`pub`" r#"//! D.

/// D.
pub struct Point {
    /// D.
    x: u8,
}
"#;

    no_unknown_attributes Attribute "4:1" "`#[derive(Debug)]` is unknown" "derives are automatic" r#"//! D.

/// D.
#[derive(Debug)]
pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    no_misplaced_attributes Attribute "6:5" "`#[plain]` is unknown, or has no meaning here" "at a struct or enum" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[plain] fn f(&self) -> RpcResult<()>;
}
"#;

    offers_only_at_domains Attribute "5:11" "no `#[domain]`" "leave it out" r#"//! D.

/// D.
#[offers(a)]
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_name_twice Duplicate "9:10" "`Point` is defined twice; the first is at test.idl:4" "another name" r#"//! D.

/// D.
pub struct Point {
    /// D.
    pub x: u8,
}
/// D.
pub enum Point {
    /// D.
    X,
}
"#;

    no_method_twice Duplicate "8:8" "interface `Thing`: method `f` is defined twice" "another name" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()>;
    /// D.
    fn f(&self) -> RpcResult<u8>;
}
"#;

    no_built_in_names Reserved "4:12" "`Handle` is the name of something built in" "another name" r#"//! D.

/// D.
pub struct Handle {
    /// D.
    pub x: u8,
}
"#;

    no_methods_of_handles Reserved "6:8" "every handle has a method `duplicate`" "`duplicate_thing`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn duplicate(&self) -> RpcResult<()>;
}
"#;

    types_in_camel_case NameStyle "4:12" "`point_2d` is not CamelCase" "style" r#"//! D.

/// D.
pub struct point_2d {
    /// D.
    pub x: u8,
}
"#;

    methods_in_snake_case NameStyle "6:8" "`doIt` is not snake_case" "style" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn doIt(&self) -> RpcResult<()>;
}
"#;

    parameters_are_names NameStyle "6:17" "`(a, b)` is not the name of a parameter" "simple name" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, (a, b): (u8, u8)) -> RpcResult<()>;
}
"#;

    no_generic_items Generics "4:18" "`Point` has a generic parameter" "write the type out" r#"//! D.

/// D.
pub struct Point<T> {
    /// D.
    pub x: u8,
}
"#;

    no_generic_methods Generics "6:10" "`f` has a generic parameter" "write the type out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f<T: Copy>(&self) -> RpcResult<()>;
}
"#;

    no_generic_types Generics "6:20" "`Wrapper<u8>` is generic" "written out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Wrapper<u8>) -> RpcResult<()>;
}
"#;

    no_lifetime_parameters Lifetime "6:10" "`f` has a lifetime parameter" "lend it for one call" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f<'a>(&self) -> RpcResult<()>;
}
"#;

    no_lifetimes_of_borrows Lifetime "6:20" "has a lifetime" "leave `'a` out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &'a RRef<u8>) -> RpcResult<()>;
}
"#;

    no_default_bodies DefaultBody "6:34" "method `Thing::f` has a default body" "library crate" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()> { Ok(()) }
}
"#;

    no_constants Const "4:5" "a constant" "a trait, a struct or an enum" r#"//! D.

/// D.
pub const LIMIT: u8 = 3;
"#;

    no_associated_constants Const "5:5" "a constant" "a method that gives the value" r#"//! D.

/// D.
pub trait Thing {
    const LIMIT: u8;
}
"#;

    no_associated_types Const "5:5" "an associated type" "a method" r#"//! D.

/// D.
pub trait Thing {
    type Item;
}
"#;

    no_async_methods Qualifier "6:14" "method `Thing::f` has a qualifier" "`#[unbounded]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    async fn f(&self) -> RpcResult<()>;
}
"#;

    no_unsafe_methods Qualifier "6:15" "method `Thing::f` has a qualifier" "" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    unsafe fn f(&self) -> RpcResult<()>;
}
"#;

    no_supertraits Qualifier "4:11" "a qualifier or a supertrait" "pub trait Name" r#"//! D.

/// D.
pub trait Thing: Send {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_where_clauses Qualifier "6:34" "`f` has a where clause" "leave it out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()> where u8: Copy;
}
"#;

    methods_take_self Receiver "6:8" "does not take `&self`" "behind a lock" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(x: u8) -> RpcResult<()>;
}
"#;

    methods_do_not_change_self Receiver "6:8" "does not take `&self`" "behind a lock" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&mut self) -> RpcResult<()>;
}
"#;

    methods_do_not_take_self_away Receiver "6:8" "does not take `&self`" "`&self`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(self) -> RpcResult<()>;
}
"#;

    every_method_can_fail Result "6:20" "`f` gives `u8`, but every call can fail" "`RpcResult<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> u8;
}
"#;

    a_method_without_result Result "6:8" "`f` gives `()`" "`RpcResult<()>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self);
}
"#;
}
