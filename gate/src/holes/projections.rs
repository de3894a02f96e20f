//! Associated types: where one may be named, and what one may be.
//!
//! The compiler takes it that what stands in a signature is sound, also an associated type that it
//! replaces by another before anybody asks: `<&'static &'b () as Trait>::A` says that `'b` lasts
//! for ever, even where `A` is `()`. Whoever calls the function by its name has to show that;
//! whoever calls it as a pointer, as a `F: Fn()`, or an implementation for such a type, has not
//! (rust#25860, rust#100051, rust#129005). So what is asked for its associated type must itself say
//! nothing of how long anything lasts.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{GenericArgument, ImplItem, PathArguments, Type, TypePath};

use super::names::plain;

/// Whether all that `path` asks, as in `<T as Trait<U>>::A`, is a plain name or asks such names.
pub(super) fn asks_plain_names(path: &TypePath) -> bool {
    let asked = path.qself.as_ref().map(|it| is_plain_name(&it.ty));
    let named = |segment: &syn::PathSegment| match &segment.arguments {
        PathArguments::None => true,
        PathArguments::AngleBracketed(all) => all.args.iter().all(|argument| match argument {
            GenericArgument::Type(it) => is_plain_name(it),
            _ => false,
        }),
        PathArguments::Parenthesized(_) => false,
    };
    asked.unwrap_or(true) && path.path.segments.iter().all(named)
}

/// Whether `ty` is a name without arguments, or what such a name is asked for.
fn is_plain_name(ty: &Type) -> bool {
    match ty {
        Type::Path(it) if it.qself.is_some() => asks_plain_names(it),
        Type::Path(it) => it.path.segments.iter().all(|it| it.arguments.is_none()),
        Type::Paren(it) => is_plain_name(&it.elem),
        _ => false,
    }
}

/// Whether there is an associated type of something anywhere; `parameters` are the names of type
/// parameters.
pub(super) struct Projected<'a> {
    parameters: &'a BTreeSet<String>,
    found: bool,
}

impl<'ast> Visit<'ast> for Projected<'_> {
    fn visit_type_path(&mut self, path: &'ast TypePath) {
        let asked = path.path.segments.iter().rev().nth(1);
        let is_asked = asked.is_some_and(|it| {
            let name = plain(&it.ident);
            name == "Self" || self.parameters.contains(&name)
        });
        self.found |= path.qself.is_some() || is_asked;
        visit::visit_type_path(self, path);
    }
}

/// Whether `visit` meets an associated type.
pub(super) fn projects(
    parameters: &BTreeSet<String>,
    visit: impl FnOnce(&mut Projected<'_>),
) -> bool {
    let mut search = Projected {
        parameters,
        found: false,
    };
    visit(&mut search);
    search.found
}

/// Whether the header of `item` says by an associated type whom it is for, or of which trait.
pub(super) fn has_projected_header(item: &syn::ItemImpl, parameters: &BTreeSet<String>) -> bool {
    projects(parameters, |search| {
        search.visit_type(&item.self_ty);
        if let Some((_, path, _)) = &item.trait_ {
            search.visit_path(path);
        }
    })
}

/// The associated types of `item` that are associated types of something else; an iterator's own
/// `Item` may be.
pub(super) fn projected_types<'a>(
    item: &'a syn::ItemImpl,
    parameters: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + use<'a> {
    let of = item
        .trait_
        .as_ref()
        .and_then(|(_, path, _)| path.segments.last());
    let is_iterator = of.is_some_and(|it| it.ident == "Iterator");
    item.items.iter().filter_map(move |it| {
        let ImplItem::Type(it) = it else {
            return None;
        };
        let is_own = is_iterator && it.ident == "Item";
        let is_projected = projects(parameters, |search| search.visit_type(&it.ty));
        (is_projected && !is_own).then(|| plain(&it.ident))
    })
}

/// Whether `ty` is a trait object itself. By another name for one, a trait can be implemented for
/// it once more than the compiler does.
pub(super) fn is_object(ty: &Type) -> bool {
    match ty {
        Type::Paren(it) => is_object(&it.elem),
        Type::Group(it) => is_object(&it.elem),
        Type::TraitObject(_) => true,
        _ => false,
    }
}

/// Whether `item` is for every type, or for a reference to every type, that its bounds let.
pub(super) fn is_blanket(item: &syn::ItemImpl) -> bool {
    let mut ty = &*item.self_ty;
    loop {
        ty = match ty {
            Type::Paren(it) => &it.elem,
            Type::Group(it) => &it.elem,
            Type::Reference(it) => &it.elem,
            _ => break,
        };
    }
    let Type::Path(path) = ty else {
        return false;
    };
    let name = path.path.get_ident().map(plain);
    name.is_some_and(|name| {
        let mut parameters = item.generics.type_params();
        parameters.any(|it| plain(&it.ident) == name)
    })
}

/// Whether the arguments of a trait in a bound have a reference or a lifetime in them. `Fn(&T)` and
/// what the trait gives (`Iterator<Item = &T>`) are none.
///
/// `hiding` are names that may stand for one.
pub(super) fn has_lifetime_arguments(path: &syn::Path, hiding: &BTreeSet<String>) -> bool {
    let mut search = Lasting {
        hiding,
        found: false,
    };
    for segment in &path.segments {
        let PathArguments::AngleBracketed(all) = &segment.arguments else {
            continue;
        };
        for argument in &all.args {
            match argument {
                GenericArgument::Lifetime(_) => search.found = true,
                GenericArgument::Type(it) => search.visit_type(it),
                _ => {}
            }
        }
    }
    search.found
}

/// Whether there is a reference, a lifetime or a trait object, which has one, anywhere.
struct Lasting<'a> {
    hiding: &'a BTreeSet<String>,
    found: bool,
}

impl<'ast> Visit<'ast> for Lasting<'_> {
    fn visit_lifetime(&mut self, _: &'ast syn::Lifetime) {
        self.found = true;
    }

    fn visit_type_reference(&mut self, _: &'ast syn::TypeReference) {
        self.found = true;
    }

    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        let is_hiding = self.hiding.contains(&plain(&segment.ident));
        self.found |= is_hiding && !segment.arguments.is_none();
        visit::visit_path_segment(self, segment);
    }

    fn visit_type_trait_object(&mut self, _: &'ast syn::TypeTraitObject) {
        self.found = true;
    }
}
