//! What follows for a value from the graph of types: whether it owns something, its size, its
//! depth.
//!
//! A type can lead to another in very many ways (two fields of a type with two fields of a type
//! ...), so nothing may go through the graph once for each way. Here each definition is looked at
//! in rounds, with what the round before found of those that it names. No type is nested deeper
//! than [`MOST_NESTED`], so after a few rounds nothing changes; what changes still is nested deeper
//! or contains itself, which [`check`](crate::check) refuses.

use super::{Definition, Kind, Model, Type};
use crate::bounds::MOST_NESTED;
use std::collections::BTreeMap;

/// What is known of a definition or a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// A value owns something: a shared object or a handle. If it does not, it is copied byte for
    /// byte and nothing changes owner when it crosses.
    pub owns: bool,
    /// There is a float in it, so that it has no `Eq`.
    pub has_float: bool,
    /// An upper bound for the bytes of a value: every part is counted at a multiple of 8, or of 16
    /// where the alignment may be 16; `()` counts as one byte, so that nothing can be repeated for
    /// nothing.
    pub size: u64,
    /// How deep it is nested: 1 for a number, one more for all that has parts.
    pub depth: usize,
}

/// The place of each definition and interface, and the facts of each definition.
#[derive(Debug, Default)]
pub(super) struct Index {
    definitions: BTreeMap<String, usize>,
    interfaces: BTreeMap<String, usize>,
    facts: Vec<Facts>,
}

impl Model {
    /// Finds out what is known of the definitions. Called once, when all are there.
    pub(crate) fn settle(&mut self) {
        // Of two with one name, which is an error, the first one counts.
        let places = |names: &mut dyn Iterator<Item = &String>| {
            let mut places: Vec<_> = names.cloned().enumerate().collect();
            places.reverse();
            places.into_iter().map(|(at, name)| (name, at)).collect()
        };
        self.index = Index {
            definitions: places(&mut self.definitions.iter().map(|it| &it.name)),
            interfaces: places(&mut self.interfaces.iter().map(|it| &it.name)),
            facts: vec![Facts::default(); self.definitions.len()],
        };
        for _ in 0..MOST_NESTED + 2 {
            let facts = self.definitions.iter().map(|it| self.found(it)).collect();
            if facts == self.index.facts {
                break;
            }
            self.index.facts = facts;
        }
    }

    /// Where the definition with this name stands in the list.
    pub(super) fn definition_at(&self, name: &str) -> Option<usize> {
        self.index.definitions.get(name).copied()
    }

    /// Where the interface with this name stands in the list.
    pub(super) fn interface_at(&self, name: &str) -> Option<usize> {
        self.index.interfaces.get(name).copied()
    }

    /// What is known of a value of this struct or enum.
    pub fn facts(&self, definition: &Definition) -> Facts {
        let at = self.definition_at(&definition.name);
        at.map_or_else(Facts::default, |at| self.index.facts[at])
    }

    /// What is known of a value of this type.
    pub fn facts_of(&self, ty: &Type) -> Facts {
        match &ty.kind {
            // A borrow and what is wrong, which other rules judge, own nothing here.
            Kind::UserBuf | Kind::Wrong(_) => Facts::flat(8),
            Kind::Borrow(inner) => Facts {
                owns: false,
                size: 8,
                ..self.facts_of(inner)
            },
            Kind::Scalar("()") => Facts::flat(1),
            Kind::Scalar("u128" | "i128") => Facts::flat(16),
            Kind::Scalar(_) | Kind::RpcError => Facts::flat(8),
            Kind::Text(length) => Facts::flat(padded(length + 2)),
            Kind::Float(_) => Facts {
                has_float: true,
                ..Facts::flat(8)
            },
            Kind::Handle(_) => Facts::flat(16).owning(),
            Kind::AnyHandle => Facts::flat(24).owning(),
            Kind::RRef(inner) => self.facts_of(inner).around(|_| 8).owning(),
            Kind::RVec(inner) => self.facts_of(inner).around(|_| 16).owning(),
            Kind::Option(inner) => self.facts_of(inner).around(|size| size.saturating_add(16)),
            Kind::Array(inner, length) => self.facts_of(inner).around(|size| match small(inner) {
                Some(bytes) => padded(length.saturating_mul(bytes)),
                None => size.saturating_mul(*length),
            }),
            Kind::Result(ok, error) => {
                let (ok, error) = (self.facts_of(ok), self.facts_of(error));
                let size = ok.size.max(error.size).saturating_add(16);
                ok.beside(error).around(|_| size)
            }
            Kind::Tuple(elements) => self.all(elements.iter()).around(|size| size),
            Kind::Named(name) => self
                .definition_at(name)
                .map_or_else(|| Facts::flat(1), |at| self.index.facts[at]),
        }
    }

    /// What is known of all of these together.
    fn all<'a>(&self, types: impl Iterator<Item = &'a Type>) -> Facts {
        types
            .map(|it| self.facts_of(it))
            .fold(Facts::default(), Facts::beside)
    }

    /// What one round finds of a definition.
    fn found(&self, definition: &Definition) -> Facts {
        let facts = match &definition.body {
            super::Body::Struct(fields) => self.all(fields.iter().map(|it| &it.ty)),
            super::Body::Enum(variants) => {
                let variants = variants.iter();
                let each = variants.map(|it| self.all(it.fields.iter().map(|field| &field.ty)));
                let all = each.fold(Facts::default(), |sum, it| Facts {
                    size: sum.size.max(it.size),
                    ..sum.beside(it)
                });
                Facts {
                    size: all.size.saturating_add(16),
                    ..all
                }
            }
        };
        Facts {
            owns: facts.owns && !definition.plain,
            ..facts.around(|size| size)
        }
    }

    /// Whether a value of this type owns something. See [`Facts::owns`].
    pub fn owns(&self, ty: &Type) -> bool {
        self.facts_of(ty).owns
    }
}

impl Facts {
    /// Those of a value without parts.
    fn flat(size: u64) -> Self {
        Facts {
            size,
            depth: 1,
            ..Facts::default()
        }
    }

    fn owning(self) -> Self {
        Facts { owns: true, ..self }
    }

    /// Those of a value with such a part, of the size that `size` makes of the part's.
    fn around(self, size: impl FnOnce(u64) -> u64) -> Self {
        Facts {
            size: size(self.size),
            depth: self.depth.saturating_add(1),
            ..self
        }
    }

    /// Those of both, one behind the other.
    fn beside(self, other: Self) -> Self {
        Facts {
            owns: self.owns || other.owns,
            has_float: self.has_float || other.has_float,
            size: self.size.saturating_add(other.size),
            depth: self.depth.max(other.depth),
        }
    }
}

/// The exact size of a small number, so that arrays of bytes are not counted eightfold.
fn small(ty: &Type) -> Option<u64> {
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
