//! Types that may not stand where they do: inside of others, or by value.

use crate::{Case, cases, check, compile};
use idlc::Rule;

cases! {
    no_handles_in_rrefs HandleInShared "6:32" "lies in an object on the shared heap" "beside" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Option<Handle<dyn Thing>>>) -> RpcResult<()>;
}
"#;

    no_any_handles_in_rrefs HandleInShared "11:15" "`AnyHandle` lies in an object" "beside" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Box2>) -> RpcResult<()>;
}
/// D.
pub struct Box2 {
    /// D.
    pub link: AnyHandle,
}
"#;

    no_user_bufs_by_value UserBuf "6:20" "`UserBuf` is memory of a program" "`&UserBuf`, as an argument" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: UserBuf) -> RpcResult<()>;
}
"#;

    no_user_bufs_in_results UserBuf "6:30" "`UserBuf` is memory of a program" "`RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<UserBuf>;
}
"#;

    no_borrowed_user_bufs_in_results UserBuf "6:50" "`&UserBuf` is memory of a program" "`&UserBuf`, as an argument" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &UserBuf) -> RpcResult<Option<&UserBuf>>;
}
"#;

    no_user_bufs_in_structs UserBuf "11:16" "`UserBuf` is memory of a program" "not inside of another type" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Parcel) -> RpcResult<()>;
}
/// D.
pub struct Parcel {
    /// D.
    pub bytes: UserBuf,
}
"#;

    no_borrowed_user_bufs_in_structs UserBuf "11:16" "`&UserBuf` is memory of a program" "not inside of another type" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Parcel) -> RpcResult<()>;
}
/// D.
pub struct Parcel {
    /// D.
    pub bytes: &UserBuf,
}
"#;

    no_user_bufs_in_rrefs UserBuf "6:25" "`UserBuf` is memory of a program" "`&UserBuf`, as an argument" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<UserBuf>) -> RpcResult<()>;
}
"#;

    no_user_bufs_in_rvecs UserBuf "6:25" "`UserBuf` is memory of a program" "`&UserBuf`, as an argument" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<UserBuf>) -> RpcResult<()>;
}
"#;

    no_user_bufs_in_tuples UserBuf "6:25" "`&UserBuf` is memory of a program" "`&UserBuf`, as an argument" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: (u8, &UserBuf)) -> RpcResult<()>;
}
"#;

    no_user_bufs_lent_twice Borrow "6:20" "may point into a domain's private memory" "by value" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &Option<&UserBuf>) -> RpcResult<()>;
}
"#;

    no_user_bufs_to_be_changed MutableBorrow "6:20" "lends something to be changed" "move" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &mut UserBuf) -> RpcResult<()>;
}
"#;

    no_user_bufs_with_lifetimes Lifetime "6:20" "has a lifetime" "leave" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &'a UserBuf) -> RpcResult<()>;
}
"#;

    no_user_bufs_with_parameters UnknownType "6:21" "does not have the right parameters" "`&UserBuf`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &UserBuf<u8>) -> RpcResult<()>;
}
"#;

    no_floats_by_value FloatByValue "6:20" "`f64` is passed by value" "`u64` with `to_bits`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: f64) -> RpcResult<()>;
}
"#;

    no_floats_in_structs FloatByValue "12:12" "`f32` is passed by value" "`RRef<f32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<Level>;
}
/// D.
#[plain]
pub struct Level {
    /// D.
    pub x: f32,
}
"#;

    elements_are_plain VecElement "6:20" "`RVec<u8>` owns an object" "plain data" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<RVec<u8>>) -> RpcResult<()>;
}
"#;

    elements_are_marked_plain VecElement "6:20" "`Level` is not marked #[plain]" "plain data" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<Level>) -> RpcResult<()>;
}
/// D.
pub struct Level {
    /// D.
    pub x: u8,
}
"#;

    fields_of_plain_types_are_plain PlainField "7:12" "`Level` is marked #[plain], but `RVec<u8>` owns" "leave the mark out" r#"//! D.

/// D.
#[plain]
pub struct Level {
    /// D.
    pub x: RVec<u8>,
}
"#;

    variants_of_plain_types_are_plain PlainField "7:10" "`AnyHandle` is a handle" "leave the mark out" r#"//! D.

/// D.
#[plain]
pub enum Level {
    /// D.
    High(AnyHandle),
}
"#;

    no_recursion Recursive "6:22" "`Tree` contains itself" "by index" r#"//! D.

/// D.
pub struct Tree {
    /// D.
    pub rest: Option<Tree>,
}
"#;

    no_recursion_behind_rref Recursive "16:10" "`List` contains itself" "by index" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: List) -> RpcResult<()>;
}
/// D.
pub struct List {
    /// D.
    pub rest: Option<RRef<More>>,
}
/// D.
pub enum More {
    /// D.
    Rest(List),
}
"#;

    no_large_values TooLarge "6:20" "takes up to 5000 bytes" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; 5000]) -> RpcResult<()>;
}
"#;

    no_large_results TooLarge "6:20" "bytes of the stack" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<[Text<1000>; 5]>;
}
"#;

    no_arguments_that_are_large_together TooLarge "6:8" "take up to 4104 bytes of the stack together" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; 2048], y: [u8; 2048], z: u8) -> RpcResult<()>;
}
"#;
}

#[test]
fn arguments_that_just_fit_together_are_accepted() {
    let text = r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; 2048], y: [u8; 2048]) -> RpcResult<[u8; 4000]>;
}
"#;
    assert!(compile(text).is_ok());
}
