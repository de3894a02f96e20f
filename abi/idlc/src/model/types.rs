//! The types that interfaces pass, as written.

use crate::diagnostics::Rule;
use crate::source::Span;

/// A type as written, with its place.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
    /// How it is written there.
    pub text: String,
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A number that is not a float, `bool`, `char` or `()`; its name in Rust.
    Scalar(&'static str),
    /// `f32` or `f64`.
    Float(&'static str),
    /// `RpcError`.
    RpcError,
    /// `Text<N>`.
    Text(u64),
    /// A struct or enum of the model, or a name that nobody defines.
    Named(String),
    /// `RRef<T>`.
    RRef(Box<Type>),
    /// `RVec<T>`.
    RVec(Box<Type>),
    /// `Handle<dyn I>`: the name of the interface.
    Handle(String),
    /// `AnyHandle`.
    AnyHandle,
    /// `Option<T>`.
    Option(Box<Type>),
    /// `Result<T, E>` and `RpcResult<T>`.
    Result(Box<Type>, Box<Type>),
    /// `(A, B)`, with one to four elements.
    Tuple(Vec<Type>),
    /// `[T; N]`.
    Array(Box<Type>, u64),
    /// `UserBuf`, the memory of a program.
    UserBuf,
    /// `&T`.
    Borrow(Box<Type>),
    /// Something that may not stand in an interface.
    Wrong(Box<Wrong>),
}

/// Why a type may not stand in an interface.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The rule that it breaks.
    pub rule: Rule,
    /// What is wrong, as a whole sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: String,
}
