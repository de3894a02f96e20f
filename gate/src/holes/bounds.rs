//! What the bounds in a declaration say: of lifetimes, of sizes, and of what something gives.

use syn::visit::Visit;
use syn::{GenericParam, Generics, TypeParamBound, WherePredicate};

/// Whether a bound names a lifetime, as `T: 'a`, `'a: 'b` and `T: Trait + 'static` do.
pub(super) fn has_lifetime_bounds(generics: &Generics) -> bool {
    let names_one = |bound: &TypeParamBound| matches!(bound, TypeParamBound::Lifetime(_));
    let in_list = generics.params.iter().any(|parameter| match parameter {
        GenericParam::Lifetime(it) => !it.bounds.is_empty(),
        GenericParam::Type(it) => it.bounds.iter().any(names_one),
        GenericParam::Const(_) => false,
    });
    in_list
        || predicates(generics).any(|it| match it {
            WherePredicate::Lifetime(it) => !it.bounds.is_empty(),
            WherePredicate::Type(it) => it.bounds.iter().any(names_one),
            _ => true,
        })
}

/// Whether `?Sized` stands in `generics`.
pub(super) fn relaxes_size(generics: &Generics) -> bool {
    let relaxes = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(it) => matches!(it.modifier, syn::TraitBoundModifier::Maybe(_)),
        _ => false,
    };
    let in_list = generics
        .type_params()
        .any(|it| it.bounds.iter().any(relaxes));
    in_list
        || predicates(generics).any(|it| match it {
            WherePredicate::Type(it) => it.bounds.iter().any(relaxes),
            _ => false,
        })
}

fn predicates(generics: &Generics) -> impl Iterator<Item = &WherePredicate> {
    let clause = generics.where_clause.iter();
    clause.flat_map(|clause| clause.predicates.iter())
}

/// Whether there is a lifetime anywhere.
pub(super) struct Lifetimes(pub(super) bool);

impl<'ast> Visit<'ast> for Lifetimes {
    fn visit_lifetime(&mut self, _: &'ast syn::Lifetime) {
        self.0 = true;
    }
}

/// Whether a bound says what something gives: `Fn() -> T`, `Iterator<Item = T>`.
pub(super) struct Given(pub(super) bool);

impl<'ast> Visit<'ast> for Given {
    fn visit_assoc_type(&mut self, _: &'ast syn::AssocType) {
        self.0 = true;
    }

    fn visit_parenthesized_generic_arguments(
        &mut self,
        _: &'ast syn::ParenthesizedGenericArguments,
    ) {
        self.0 = true;
    }
}
