//! The types that interfaces pass, as written, and what can be asked of them: whether a value owns
//! something, and whether a float is in it.

use super::{Definition, Model};
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

impl Model {
    /// Whether a value of this type owns something: a shared object or a handle. If it does not, it
    /// is copied byte for byte and nothing changes owner when it crosses.
    pub fn owns(&self, ty: &Type) -> bool {
        match &ty.kind {
            Kind::RRef(_) | Kind::RVec(_) | Kind::Handle(_) | Kind::AnyHandle => true,
            Kind::Option(inner) | Kind::Array(inner, _) => self.owns(inner),
            Kind::Result(ok, error) => self.owns(ok) || self.owns(error),
            Kind::Tuple(elements) => elements.iter().any(|it| self.owns(it)),
            Kind::Named(name) => self
                .definition(name)
                .is_some_and(|it| self.definition_owns(it)),
            Kind::Scalar(_) | Kind::Float(_) | Kind::RpcError | Kind::Text(_) => false,
            Kind::UserBuf | Kind::Borrow(_) | Kind::Wrong(_) => false,
        }
    }

    /// Whether a value of this struct or enum owns something.
    pub fn definition_owns(&self, definition: &Definition) -> bool {
        !definition.plain
            && definition
                .fields()
                .iter()
                .any(|(_, field)| self.owns(&field.ty))
    }

    /// Whether there is a float anywhere in a value of this type, so that it has no `Eq`.
    pub fn has_float(&self, ty: &Type) -> bool {
        match &ty.kind {
            Kind::Float(_) => true,
            Kind::Option(inner) | Kind::Array(inner, _) | Kind::RRef(inner) | Kind::RVec(inner) => {
                self.has_float(inner)
            }
            Kind::Result(ok, error) => self.has_float(ok) || self.has_float(error),
            Kind::Tuple(elements) => elements.iter().any(|it| self.has_float(it)),
            Kind::Named(name) => {
                let fields = self
                    .definition(name)
                    .map(Definition::fields)
                    .unwrap_or_default();
                fields.iter().any(|(_, field)| self.has_float(&field.ty))
            }
            _ => false,
        }
    }
}
