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
//! | `<T as Trait>::A` of more than plain names; a bound by a trait with a reference or a lifetime among its arguments | rust#25860 without a pointer |
//! | an implementation for an associated type, or whose trait has one among its arguments | rust#100051 |
//! | a trait implemented for types without a size, but for `&T`; a name for a trait object | rust#57893 |
//! | an associated type in an implementation for all types, or that is one of another type (but an iterator's own `Item`), or beside a bound on what a closure gives or an iterator yields, or beside bounds by lifetimes; `I::Item` of a type parameter | rust#84366, rust#109628, rust#135011 |
//! | another name for what keeps items; the module `core::any`; `Trait<Item: Bound>` | rust#84366: the result of `splice` has in it what an iterator yields, without a word of that in its type |
//!
//! What the compiler finds where nobody writes it is looked at in [`crate::mir`].
//! `tests/src/attacks/holes.rs` has programs that use the holes; each is compiled by the plain
//! compiler and refused here, and so are those in `guard/corpus.rs`. What no shape shows, and holes
//! that nobody has found, stay open: see `CAVEATS.md`.

mod associated;
mod bounds;
mod names;
mod projections;

use std::collections::BTreeSet;

use associated::own_types;
use bounds::{Lifetimes, has_lifetime_bounds};
use names::{Names, inside, plain};
use projections::has_lifetime_arguments;
use syn::visit::{self, Visit};
use syn::{Generics, ReturnType, Type};

use crate::mir::HOLDERS;

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
    let mut search = Search {
        parameters: names.parameters.clone(),
        hiding: names.all(),
        ..Search::default()
    };
    search.visit_file(&file);
    Ok(Shapes {
        found: search.found.into_iter().collect(),
        parameters: search.parameters,
    })
}

/// What is looked at now, and what was found.
#[derive(Default)]
struct Search {
    /// Names of type parameters.
    parameters: BTreeSet<String>,
    /// Names of type parameters and aliases.
    hiding: BTreeSet<String>,
    /// How many lifetimes the block of an implementation or a trait around has names for.
    named: usize,
    /// The associated types that the implementation around says itself: of these alone `Self` may
    /// be asked, since those of a trait or of other types are those of any iterator.
    own_types: BTreeSet<String>,
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

/// What to write instead of naming what a closure or an iterator gives.
const PARAMETER: &str = "add a type parameter for it: `I: Iterator<Item = T>`";
/// What to write instead of a pointer to a function.
const CLOSURE: &str = "take `impl Fn` or `&dyn Fn` instead";
/// What to do where nothing stands for it.
const PLAIN: &str = "write it in another way";

/// An attribute that has the compiler leave out parts of what it prints of types.
const LIMIT: &str = "type_length_limit";

impl Search {
    /// Notes that `what` is there, and what to write `instead`.
    fn refuse(&mut self, what: &str, instead: &str) {
        self.found.insert(format!(
            "{what} is not allowed here: it can be used to break the language; {instead}"
        ));
    }

    /// Looks at what `generics` declare, inside of a block that names `outer` lifetimes.
    fn signature(&mut self, generics: &Generics, outer: usize) {
        if generics.lifetimes().count() + outer > 1 {
            let what = "a second name of a lifetime in one signature";
            self.refuse(what, "one name, or none, has to do");
        }
    }

    /// What waits in the middle of a function keeps what its type does not name.
    fn without_async(&mut self, is_async: bool) {
        if is_async {
            self.refuse("`async`", PLAIN);
        }
    }

    fn without_lifetime_bounds(&mut self, generics: &Generics, what: &str) {
        if has_lifetime_bounds(generics) {
            let what = format!("{what} with a bound by a lifetime");
            self.refuse(
                &what,
                "leave the bound out, or move it to the functions that need it",
            );
        }
    }

    /// A type that is one word.
    fn single(&mut self, path: &syn::TypePath) {
        let Some(name) = path.path.get_ident().map(plain) else {
            return;
        };
        let hides = name == "Self" || self.hiding.contains(&name);
        if self.in_pointer == Some(Part::Arguments) && hides {
            let what = "a type parameter, an alias or `Self` among the arguments of a pointer to a function";
            self.refuse(what, CLOSURE);
        }
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_bound_lifetimes(&mut self, _: &'ast syn::BoundLifetimes) {
        self.refuse("`for<'a>`", "leave the lifetime out: `Fn(&T)`");
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.implementation(item);
        let before = std::mem::replace(&mut self.named, item.generics.lifetimes().count());
        let others = std::mem::replace(&mut self.own_types, own_types(item).collect());
        visit::visit_item_impl(self, item);
        (self.named, self.own_types) = (before, others);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.signature(&item.generics, 0);
        let is_type = |it: &syn::TraitItem| matches!(it, syn::TraitItem::Type(_));
        if item.items.iter().any(is_type) {
            self.without_lifetime_bounds(&item.generics, "a trait with associated types");
        }
        let before = std::mem::replace(&mut self.named, item.generics.lifetimes().count());
        let others = std::mem::take(&mut self.own_types);
        visit::visit_item_trait(self, item);
        (self.named, self.own_types) = (before, others);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // A function of its own knows nothing of the block around it.
        let before = std::mem::take(&mut self.named);
        visit::visit_item_fn(self, item);
        self.named = before;
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.signature(&signature.generics, self.named);
        self.without_async(signature.asyncness.is_some());
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
        self.refuse("a union", "use an enum");
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let mut lifetimes = Lifetimes(false);
        lifetimes.visit_item_type(item);
        // One that other crates cannot name is found where it is used.
        if lifetimes.0 && !matches!(item.vis, syn::Visibility::Inherited) {
            self.refuse(
                "a public alias with a lifetime in it",
                "write the type itself",
            );
        }
        self.stands_for(&item.ty);
        visit::visit_item_type(self, item);
    }

    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        self.generic_associated(&item.generics);
        self.stands_for(&item.ty);
        visit::visit_impl_item_type(self, item);
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.generic_associated(&item.generics);
        visit::visit_trait_item_type(self, item);
    }

    fn visit_type_bare_fn(&mut self, pointer: &'ast syn::TypeBareFn) {
        if pointer.lifetimes.is_some() {
            self.refuse("`for<'a>`", "leave the lifetime out: `Fn(&T)`");
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
            self.refuse("a lifetime in a pointer to a function", CLOSURE);
        }
    }

    fn visit_type(&mut self, ty: &'ast Type) {
        match ty {
            Type::Infer(_) if self.in_pointer.is_some() => {
                self.refuse("`_` in a pointer to a function", "write the type");
            }
            Type::Macro(_) | Type::Verbatim(_) => {
                self.refuse("a type that is no plain Rust", PLAIN)
            }
            _ => {}
        }
        visit::visit_type(self, ty);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        self.path(path);
        visit::visit_type_path(self, path);
    }

    fn visit_ident(&mut self, word: &'ast syn::Ident) {
        if plain(word) == LIMIT {
            self.refuse(&format!("`{LIMIT}`"), "leave it out");
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let before = path.segments.len().saturating_sub(1);
        if path
            .segments
            .iter()
            .take(before)
            .any(|it| plain(&it.ident) == "any")
        {
            self.refuse("`core::any`", "use an enum, or a trait of your own");
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
        if name.is_some_and(|name| plain(name) == "any") {
            self.refuse("`core::any`", "use an enum, or a trait of your own");
        }
        if let syn::UseTree::Rename(it) = tree
            && HOLDERS.contains(&plain(&it.ident).as_str())
        {
            let what = format!("another name for `{}`", it.ident);
            self.refuse(&what, "use it by its own");
        }
        visit::visit_use_tree(self, tree);
    }

    fn visit_trait_bound(&mut self, bound: &'ast syn::TraitBound) {
        if has_lifetime_arguments(&bound.path, &self.hiding) {
            let what = "a bound by a trait with a lifetime or a reference among its arguments";
            self.refuse(what, "have the trait's methods take the reference");
        }
        visit::visit_trait_bound(self, bound);
    }

    fn visit_constraint(&mut self, constraint: &'ast syn::Constraint) {
        self.refuse(
            "a bound on an associated type among the arguments of its trait",
            PARAMETER,
        );
        visit::visit_constraint(self, constraint);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if matches!(item, syn::Item::Verbatim(_) | syn::Item::TraitAlias(_)) {
            self.refuse("an item that is no plain Rust", PLAIN);
        }
        visit::visit_item(self, item);
    }

    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        if matches!(
            expression,
            syn::Expr::Verbatim(_) | syn::Expr::Async(_) | syn::Expr::Await(_)
        ) {
            self.refuse("an expression that is no plain Rust, or `async`,", PLAIN);
        }
        visit::visit_expr(self, expression);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.without_async(closure.asyncness.is_some());
        visit::visit_expr_closure(self, closure);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        if !inside(self, invocation) {
            self.refuse("a macro that cannot be looked into", PLAIN);
        }
    }
}

#[cfg(test)]
mod tests;
