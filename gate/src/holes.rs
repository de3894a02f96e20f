//! Shapes of safe code that holes of the language need. Code that has none of them cannot use these
//! holes.
//!
//! Safe Rust that `-F unsafe_code` passes can break memory safety by errors of the compiler that
//! are known, and for years unmended. The compiler does not notice it, so the shapes are refused
//! that all known ways have in common, in what is left when all macros are expanded, and as syntax,
//! not as text:
//!
//! | shape | hole |
//! | --- | --- |
//! | two names of lifetimes in one signature, `for<'a>` | rust#25860, rust#84591, rust#100051 |
//! | a pointer to a function in whose type a lifetime stands or may be hidden: named, `'static`, `_`, a type parameter, `Self`, an alias, an associated type | rust#25860 |
//! | a struct, enum or alias with bounds by lifetimes | what could hide one there |
//! | a trait implemented for types without a size, but for `&T` | rust#57893 |
//! | an implementation with associated types that come from what a closure gives or an iterator yields, or with bounds by lifetimes; `I::Item` of a type parameter | rust#84366, rust#109628 |
//! | `splice`; the module `core::any`; `Trait<Item: Bound>` | rust#84366: the result of `splice` has in it what an iterator yields, without a word of that in its type |
//!
//! `tests/src/attacks/holes.rs` has programs that use the holes; each is compiled by the plain
//! compiler and refused here. What no shape shows, and holes that nobody has found, stay open: see
//! `CAVEATS.md`.

mod bounds;
mod names;

use std::collections::BTreeSet;

use bounds::{Given, Lifetimes, has_lifetime_bounds, relaxes_size};
use names::{Names, inside};
use syn::visit::{self, Visit};
use syn::{Generics, ReturnType, Type};

/// What the expansion of a crate shows.
pub struct Shapes {
    /// What is wrong with it, each shape once.
    pub found: Vec<String>,
    /// The names of all type parameters.
    pub parameters: BTreeSet<String>,
}

/// Looks at `text`, the expansion of a crate.
///
/// # Errors
/// Why it cannot be looked at, if it is no Rust that we know.
pub fn find(text: &str) -> Result<Shapes, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut names = Names::default();
    names.visit_file(&file);
    let parameters = names.parameters.clone();
    let mut search = Search {
        hiding: names.all(),
        ..Search::default()
    };
    search.visit_file(&file);
    Ok(Shapes {
        found: search.found.into_iter().collect(),
        parameters,
    })
}

/// What is looked at now, and what was found.
#[derive(Default)]
struct Search {
    /// Names of type parameters and aliases.
    hiding: BTreeSet<String>,
    /// How many lifetimes the block of an implementation or a trait around has names for.
    named: usize,
    /// In the block of a trait, where `Self::Item` is that of any iterator.
    is_in_trait: bool,
    /// In the arguments, or in the result, of a pointer to a function.
    in_pointer: Option<Part>,
    found: BTreeSet<String>,
}

/// A part of a function's type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Arguments,
    Result,
}

/// Associated types of the language's own traits by which a closure's result can be named.
const OF_CLOSURES: [&str; 4] = ["Item", "IntoIter", "Output", "IntoFuture"];

/// Words by which a value gets into a type that says nothing of it.
const WORDS: [&str; 2] = ["splice", "Splice"];

impl Search {
    fn refuse(&mut self, text: &str) {
        self.found.insert(format!(
            "{text} is not allowed here: it can be used to break the language"
        ));
    }

    /// Looks at what `generics` declare, inside of a block that names `outer` lifetimes.
    fn signature(&mut self, generics: &Generics, outer: usize) {
        if generics.lifetimes().count() + outer > 1 {
            self.refuse("a second name of a lifetime in one signature");
        }
    }

    fn without_lifetime_bounds(&mut self, generics: &Generics, what: &str) {
        if has_lifetime_bounds(generics) {
            self.refuse(&format!("{what} with a bound by a lifetime"));
        }
    }

    fn implementation(&mut self, item: &syn::ItemImpl) {
        self.signature(&item.generics, 0);
        if item.trait_.is_none() {
            return;
        }
        if relaxes_size(&item.generics) && !matches!(*item.self_ty, Type::Reference(_)) {
            self.refuse("a trait implemented for types without a size");
        }
        let has_types = item
            .items
            .iter()
            .any(|it| matches!(it, syn::ImplItem::Type(_)));
        if !has_types {
            return;
        }
        self.without_lifetime_bounds(&item.generics, "an implementation with associated types");
        let mut header = Given(false);
        header.visit_generics(&item.generics);
        if header.0 {
            self.refuse("an associated type beside a bound on what a closure or an iterator gives");
        }
    }

    fn path(&mut self, path: &syn::TypePath) {
        let segments: Vec<String> = path
            .path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let [.., owner, last] = &segments[..] else {
            return self.single(path);
        };
        let is_own = owner == "Self" && path.qself.is_none() && !self.is_in_trait;
        if OF_CLOSURES.contains(&last.as_str()) && !is_own {
            let is_plain = path.qself.is_none() && owner.starts_with(char::is_lowercase);
            if !is_plain {
                self.refuse("what another type's closure or iterator gives, as a type of its own,");
            }
        }
        let is_projection = path.qself.is_some() || owner.starts_with(char::is_uppercase);
        if self.in_pointer.is_some() && is_projection {
            self.refuse("an associated type in a pointer to a function");
        }
    }

    /// A type that is one word.
    fn single(&mut self, path: &syn::TypePath) {
        let Some(name) = path.path.get_ident().map(ToString::to_string) else {
            return;
        };
        let hides = name == "Self" || self.hiding.contains(&name);
        if self.in_pointer == Some(Part::Arguments) && hides {
            self.refuse("a type parameter, an alias or `Self` among the arguments of a pointer to a function");
        }
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_bound_lifetimes(&mut self, _: &'ast syn::BoundLifetimes) {
        self.refuse("`for<'a>`");
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.implementation(item);
        let before = std::mem::replace(&mut self.named, item.generics.lifetimes().count());
        let was_in_trait = std::mem::replace(&mut self.is_in_trait, false);
        visit::visit_item_impl(self, item);
        (self.named, self.is_in_trait) = (before, was_in_trait);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.signature(&item.generics, 0);
        let before = std::mem::replace(&mut self.named, item.generics.lifetimes().count());
        let was_in_trait = std::mem::replace(&mut self.is_in_trait, true);
        visit::visit_item_trait(self, item);
        (self.named, self.is_in_trait) = (before, was_in_trait);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // A function of its own knows nothing of the block around it.
        let before = std::mem::take(&mut self.named);
        visit::visit_item_fn(self, item);
        self.named = before;
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.signature(&signature.generics, self.named);
        visit::visit_signature(self, signature);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.signature(&item.generics, 0);
        self.without_lifetime_bounds(&item.generics, "a struct");
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.signature(&item.generics, 0);
        self.without_lifetime_bounds(&item.generics, "an enum");
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, _: &'ast syn::ItemUnion) {
        self.refuse("a union");
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let mut lifetimes = Lifetimes(false);
        lifetimes.visit_item_type(item);
        // One that other crates cannot name is found where it is used.
        if lifetimes.0 && !matches!(item.vis, syn::Visibility::Inherited) {
            self.refuse("a public alias with a lifetime in it");
        }
        visit::visit_item_type(self, item);
    }

    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        self.generic_associated(&item.generics);
        visit::visit_impl_item_type(self, item);
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.generic_associated(&item.generics);
        visit::visit_trait_item_type(self, item);
    }

    fn visit_type_bare_fn(&mut self, pointer: &'ast syn::TypeBareFn) {
        if pointer.lifetimes.is_some() {
            self.refuse("`for<'a>`");
        }
        let before = self.in_pointer;
        self.in_pointer = Some(Part::Arguments);
        pointer.inputs.iter().for_each(|it| self.visit_type(&it.ty));
        self.in_pointer = Some(Part::Result);
        if let ReturnType::Type(_, result) = &pointer.output {
            self.visit_type(result);
        }
        self.in_pointer = before;
    }

    fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
        if self.in_pointer.is_some() && lifetime.ident != "_" {
            self.refuse("a lifetime in a pointer to a function");
        }
    }

    fn visit_type(&mut self, ty: &'ast Type) {
        match ty {
            Type::Infer(_) if self.in_pointer.is_some() => {
                self.refuse("`_` in a pointer to a function");
            }
            Type::Macro(_) | Type::Verbatim(_) => self.refuse("a type that is no plain Rust"),
            _ => {}
        }
        visit::visit_type(self, ty);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        self.path(path);
        visit::visit_type_path(self, path);
    }

    fn visit_ident(&mut self, word: &'ast syn::Ident) {
        if WORDS.iter().any(|it| word == it) {
            self.refuse(&format!("`{word}`"));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let before = path.segments.len().saturating_sub(1);
        if path
            .segments
            .iter()
            .take(before)
            .any(|it| it.ident == "any")
        {
            self.refuse("`core::any`");
        }
        visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
        let name = match tree {
            syn::UseTree::Path(it) => Some(&it.ident),
            syn::UseTree::Name(it) => Some(&it.ident),
            syn::UseTree::Rename(it) => Some(&it.ident),
            _ => None,
        };
        if name.is_some_and(|name| name == "any") {
            self.refuse("`core::any`");
        }
        visit::visit_use_tree(self, tree);
    }

    fn visit_constraint(&mut self, constraint: &'ast syn::Constraint) {
        self.refuse("a bound on an associated type among the arguments of its trait");
        visit::visit_constraint(self, constraint);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if matches!(item, syn::Item::Verbatim(_) | syn::Item::TraitAlias(_)) {
            self.refuse("an item that is no plain Rust");
        }
        visit::visit_item(self, item);
    }

    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        if matches!(
            expression,
            syn::Expr::Verbatim(_) | syn::Expr::Async(_) | syn::Expr::Await(_)
        ) {
            self.refuse("an expression that is no plain Rust, or `async`,");
        }
        visit::visit_expr(self, expression);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        if !inside(self, invocation) {
            self.refuse("a macro that cannot be looked into");
        }
    }
}

impl Search {
    /// An associated type has no lifetimes of its own.
    fn generic_associated(&mut self, generics: &Generics) {
        if generics.lifetimes().count() > 0 {
            self.refuse("an associated type with a lifetime of its own");
        }
    }
}

#[cfg(test)]
mod tests;
