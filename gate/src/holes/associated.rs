//! Implementations and their associated types, and where associated types are named.

use syn::visit::Visit;
use syn::{Generics, Type, TypePath};

use super::bounds::{Given, relaxes_size};
use super::names::plain;
use super::projections::{
    asks_plain_names, has_projected_header, is_blanket, is_object, projected_types,
};
use super::{CLOSURE, PARAMETER, Search};

/// Associated types of the language's own traits by which a closure's result can be named.
const OF_CLOSURES: [&str; 4] = ["Item", "IntoIter", "Output", "IntoFuture"];

/// What to write instead of an associated type of another type.
const NAME_IT: &str = "write the type that it is, or add a type parameter for it";

impl Search {
    pub(super) fn implementation(&mut self, item: &syn::ItemImpl) {
        self.signature(&item.generics, 0);
        if has_projected_header(item, &self.parameters) {
            self.refuse("an implementation for an associated type", NAME_IT);
        }
        if item.trait_.is_none() {
            return;
        }
        if relaxes_size(&item.generics) && !matches!(*item.self_ty, Type::Reference(_)) {
            self.refuse(
                "a trait implemented for types without a size",
                "leave out `?Sized`",
            );
        }
        if own_types(item).next().is_some() {
            self.types_of(item);
        }
    }

    /// Looks at an implementation that has associated types.
    pub(super) fn types_of(&mut self, item: &syn::ItemImpl) {
        self.without_lifetime_bounds(&item.generics, "an implementation with associated types");
        let mut header = Given(false);
        header.visit_generics(&item.generics);
        if header.0 {
            let what = "an associated type beside a bound on what a closure or an iterator gives";
            self.refuse(what, PARAMETER);
        }
        if is_blanket(item) {
            let what = "an associated type in an implementation for all types";
            self.refuse(
                what,
                "implement the trait for each type, or give it a parameter",
            );
        }
        let parameters = self.parameters.clone();
        for name in projected_types(item, &parameters) {
            let what = format!("an associated type (`{name}`) that is one of another type");
            self.refuse(&what, NAME_IT);
        }
    }

    /// Looks at what an alias, or an associated type, stands for.
    pub(super) fn stands_for(&mut self, ty: &Type) {
        if is_object(ty) {
            let what = "a name for a trait object";
            self.refuse(what, "write `dyn Trait` where it is used");
        }
    }

    pub(super) fn path(&mut self, path: &TypePath) {
        if path.qself.is_some() && !asks_plain_names(path) {
            let what = "an associated type of a type with arguments, lifetimes or references";
            self.refuse(what, NAME_IT);
        }
        let segments: Vec<String> = path
            .path
            .segments
            .iter()
            .map(|it| plain(&it.ident))
            .collect();
        let [.., owner, last] = &segments[..] else {
            return self.single(path);
        };
        let is_own = owner == "Self" && path.qself.is_none() && self.own_types.contains(last);
        let is_module = path.qself.is_none()
            && owner.starts_with(char::is_lowercase)
            && !self.hiding.contains(owner);
        if OF_CLOSURES.contains(&last.as_str()) && !is_own && !is_module {
            let what = "what another type's closure or iterator gives, as a type of its own,";
            self.refuse(what, PARAMETER);
        }
        if self.in_pointer.is_some() && (path.qself.is_some() || !is_module) {
            let what = "an associated type in a pointer to a function";
            self.refuse(what, CLOSURE);
        }
    }

    /// An associated type has no lifetimes of its own.
    pub(super) fn generic_associated(&mut self, generics: &Generics) {
        if generics.lifetimes().count() > 0 {
            self.refuse("an associated type with a lifetime of its own", PARAMETER);
        }
    }
}

/// The names of the associated types that `item` says.
pub(super) fn own_types(item: &syn::ItemImpl) -> impl Iterator<Item = String> {
    item.items.iter().filter_map(|it| match it {
        syn::ImplItem::Type(it) => Some(plain(&it.ident)),
        _ => None,
    })
}
