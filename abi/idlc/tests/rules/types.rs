//! Types that may stand nowhere in an interface, and those that are written wrongly.

use crate::{Case, cases, check};
use idlc::Rule;

cases! {
    errors_are_enums_with_rpc ErrorType "6:31" "`Trouble` cannot say that the call itself failed" "`Rpc(RpcError)`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> Result<u8, Trouble>;
}
/// D.
pub enum Trouble {
    /// D.
    Broken,
}
"#;

    errors_are_not_numbers ErrorType "6:31" "`u32` cannot say" "`Rpc(RpcError)`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> Result<(), u32>;
}
"#;

    no_unknown_types UnknownType "6:20" "`Blurb` is defined nowhere" "some .idl file defines" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Blurb) -> RpcResult<()>;
}
"#;

    a_misspelt_type UnknownType "6:20" "`RpcEror` is defined nowhere" "`RpcError`, if that was meant" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RpcEror) -> RpcResult<()>;
}
"#;

    no_paths UnknownType "6:20" "is not a type of the interface language" "name alone" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: core::time::Duration) -> RpcResult<()>;
}
"#;

    no_wrong_parameters UnknownType "6:20" "does not have the right parameters" "`RVec<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec) -> RpcResult<()>;
}
"#;

    no_boxes PrivateHeap "6:20" "`Box<u64>` lives on the private heap" "`RRef<u64>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<u64>) -> RpcResult<()>;
}
"#;

    no_boxed_interfaces PrivateHeap "6:20" "lives on the private heap" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_vecs PrivateHeap "6:30" "`Vec<u8>` lives on the private heap" "`RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<Vec<u8>>;
}
"#;

    no_vecs_by_path PrivateHeap "6:30" "lives on the private heap" "`RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<alloc::vec::Vec<u8>>;
}
"#;

    no_strings PrivateHeap "6:23" "`String` lives on the private heap" "`Text<32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, name: String) -> RpcResult<()>;
}
"#;

    no_arcs PrivateHeap "6:20" "lives on the private heap" "duplicated" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Arc<u8>) -> RpcResult<()>;
}
"#;

    no_cells PrivateHeap "6:25" "changes behind a shared reference" "moved in and given back" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Cell<u8>>) -> RpcResult<()>;
}
"#;

    no_atomics PrivateHeap "6:20" "changes behind a shared reference" "moved in" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: AtomicU32) -> RpcResult<()>;
}
"#;

    no_mutable_borrows MutableBorrow "6:20" "`&mut RRef<u8>` lends something to be changed" "`RRef<u8>` in and give it back" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &mut RRef<u8>) -> RpcResult<()>;
}
"#;

    no_mutable_slices MutableBorrow "6:20" "lends something to be changed" "`RVec<u8>` in" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &mut [u8]) -> RpcResult<()>;
}
"#;

    no_static_borrows StaticBorrow "6:30" "points into the image of one domain" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<&'static u8>;
}
"#;

    no_borrowed_strings Borrow "6:20" "`&str` may point" "`&RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &str) -> RpcResult<()>;
}
"#;

    no_slices Borrow "6:20" "`&[u16]` may point" "`&RVec<u16>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &[u16]) -> RpcResult<()>;
}
"#;

    no_borrows_of_values Borrow "6:20" "`&u64` may point" "`u64` by value" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &u64) -> RpcResult<()>;
}
"#;

    no_borrows_of_handles Borrow "6:20" "may point" "`handle.duplicate()?`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &Handle<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_borrows_in_results Borrow "6:30" "`&RVec<u8>` may point" "moved" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<&RVec<u8>>;
}
"#;

    no_borrows_inside Borrow "6:27" "`&RVec<u8>` may point" "moved" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Option<&RVec<u8>>) -> RpcResult<()>;
}
"#;

    no_raw_pointers RawPointer "6:20" "`*const u8` is a raw pointer" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: *const u8) -> RpcResult<()>;
}
"#;

    no_function_pointers FunctionPointer "6:20" "`fn(u8)` is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: fn(u8)) -> RpcResult<()>;
}
"#;

    no_closures FunctionPointer "6:20" "`impl Fn(u8)` is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: impl Fn(u8)) -> RpcResult<()>;
}
"#;

    no_boxed_closures FunctionPointer "6:20" "is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn FnOnce()>) -> RpcResult<()>;
}
"#;

    no_any DynAny "6:20" "can be anything" "`AnyHandle`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn Any>) -> RpcResult<()>;
}
"#;

    no_handle_of_any DynAny "6:20" "can be anything" "`AnyHandle`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<dyn Any>) -> RpcResult<()>;
}
"#;

    no_bare_trait_objects TraitObject "6:25" "is a trait object without a handle" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_interface_as_type TraitObject "6:20" "`Thing` is an interface, not a type" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Thing) -> RpcResult<()>;
}
"#;

    no_handle_without_dyn TraitObject "6:20" "does not name an interface" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<Thing>) -> RpcResult<()>;
}
"#;

    no_handle_of_nothing TraitObject "6:20" "`Thnig` is not an interface" "`Handle<dyn Thing>`, if" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<dyn Thnig>) -> RpcResult<()>;
}
"#;

    no_long_tuples TupleSize "6:20" "a tuple of 5 elements" "a struct" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: (u8, u8, u8, u8, u8)) -> RpcResult<()>;
}
"#;

    lengths_are_numbers Length "6:20" "is not a number" "`[u8; 6]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; N]) -> RpcResult<()>;
}
"#;

    texts_are_short Length "6:20" "1 to 65,535" "`Text<32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Text<70000>) -> RpcResult<()>;
}
"#;
}
