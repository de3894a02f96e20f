//! What a trace of calls shows of their arguments: one number of each, as far as it has one.

use super::{Definition, Kind, Method, Model, Type};

/// Arguments of one call that are shown: the first that can be.
pub const MOST_SEEN: usize = 4;

/// What the number of an argument is. Lengths are noted behind all others.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// The number itself, without a sign.
    Number,
    /// The number itself, with a sign.
    Signed,
    /// 0 or 1.
    Truth,
    /// How many elements there are.
    Length,
    /// The number of a variant of this enum.
    Variant(&'a Definition),
}

impl Model {
    /// What is shown of each argument of `method`; `None`: nothing.
    pub fn seen<'a>(&'a self, method: &Method) -> Vec<Option<Seen<'a>>> {
        let mut left = MOST_SEEN;
        let mut one = |ty: &Type| {
            let seen = self.seen_of(ty).filter(|_| left > 0)?;
            left -= 1;
            Some(seen)
        };
        method.arguments.iter().map(|it| one(&it.ty)).collect()
    }

    fn seen_of(&self, ty: &Type) -> Option<Seen<'_>> {
        match &ty.kind {
            Kind::Scalar("bool") => Some(Seen::Truth),
            Kind::Scalar("()" | "char" | "u128" | "i128") => None,
            Kind::Scalar(name) if name.starts_with('i') => Some(Seen::Signed),
            Kind::Scalar(_) => Some(Seen::Number),
            Kind::RVec(_) => Some(Seen::Length),
            Kind::Borrow(lent) if matches!(lent.kind, Kind::RVec(_)) => Some(Seen::Length),
            Kind::Named(name) => {
                let definition = self.definition(name)?;
                definition.numbered()?;
                Some(Seen::Variant(definition))
            }
            _ => None,
        }
    }
}
