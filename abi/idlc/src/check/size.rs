//! How much of the stack a value takes that is passed directly.

use crate::model::{Body, Kind, Model, Type};

/// The most, in bytes.
pub const LARGEST: u64 = 4096;

/// An upper bound for the size of a value in bytes: every part is counted at a multiple of 8, or of
/// 16 where the alignment may be 16. A type that contains itself counts as nothing, another rule
/// reports it.
pub fn of(model: &Model, ty: &Type) -> u64 {
    Sizes {
        model,
        open: Vec::new(),
    }
    .ty(ty)
}

struct Sizes<'a> {
    model: &'a Model,
    open: Vec<&'a str>,
}

impl<'a> Sizes<'a> {
    fn ty(&mut self, ty: &'a Type) -> u64 {
        match &ty.kind {
            // Another rule lets nobody pass the memory of a program.
            Kind::Scalar("()") | Kind::UserBuf | Kind::Wrong(_) => 0,
            Kind::Scalar("u128" | "i128") | Kind::RVec(_) | Kind::Handle(_) => 16,
            Kind::Scalar(_) | Kind::Float(_) | Kind::RpcError | Kind::RRef(_) | Kind::Borrow(_) => {
                8
            }
            Kind::AnyHandle => 24,
            Kind::Text(length) => padded(length + 2),
            Kind::Option(inner) => self.ty(inner).saturating_add(16),
            Kind::Result(ok, error) => self.ty(ok).max(self.ty(error)).saturating_add(16),
            Kind::Tuple(elements) => elements
                .iter()
                .fold(0, |sum, it| sum.saturating_add(self.ty(it))),
            Kind::Array(element, length) => match scalar(element) {
                Some(bytes) => padded(length.saturating_mul(bytes)),
                None => self.ty(element).saturating_mul(*length),
            },
            Kind::Named(name) => self.named(name),
        }
    }

    fn named(&mut self, name: &'a str) -> u64 {
        let Some(definition) = self.model.definition(name) else {
            return 0;
        };
        if self.open.contains(&name) {
            return 0;
        }
        self.open.push(name);
        let size = match &definition.body {
            Body::Struct(fields) => fields
                .iter()
                .fold(0u64, |sum, it| sum.saturating_add(self.ty(&it.ty))),
            Body::Enum(variants) => {
                let one = |fields: &'a [crate::model::Field], sizes: &mut Self| {
                    fields
                        .iter()
                        .fold(0u64, |sum, it| sum.saturating_add(sizes.ty(&it.ty)))
                };
                variants
                    .iter()
                    .map(|it| one(&it.fields, self))
                    .max()
                    .unwrap_or(0)
                    .saturating_add(16)
            }
        };
        self.open.pop();
        size
    }
}

/// The exact size of a small number, so that arrays of bytes are not counted eightfold.
fn scalar(ty: &Type) -> Option<u64> {
    match ty.kind {
        Kind::Scalar("u8" | "i8" | "bool") => Some(1),
        Kind::Scalar("u16" | "i16") => Some(2),
        Kind::Scalar("u32" | "i32" | "char") | Kind::Float("f32") => Some(4),
        _ => None,
    }
}

fn padded(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(8).unwrap_or(u64::MAX)
}
