//! Names that can hide a lifetime, in a whole crate; and how the arguments of a macro are looked
//! into.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

/// A name as the compiler knows it: `r#a` is `a`.
pub(super) fn plain(name: &syn::Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_string()
}

/// The names of type parameters and aliases in a crate: behind each, a lifetime can be hidden.
#[derive(Default)]
pub(super) struct Names {
    found: BTreeSet<String>,
    /// Those of type parameters alone.
    pub(super) parameters: BTreeSet<String>,
    /// What `use` calls otherwise: the name and the other one.
    renamed: Vec<(String, String)>,
}

impl Names {
    /// All of them, also those by another name.
    pub(super) fn all(self) -> BTreeSet<String> {
        let Names {
            mut found, renamed, ..
        } = self;
        for _ in 0..renamed.len() {
            let others = renamed.iter().filter(|(name, _)| found.contains(name));
            let others: Vec<String> = others.map(|(_, other)| other.clone()).collect();
            found.extend(others);
        }
        found
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_type_param(&mut self, parameter: &'ast syn::TypeParam) {
        self.found.insert(plain(&parameter.ident));
        self.parameters.insert(plain(&parameter.ident));
        visit::visit_type_param(self, parameter);
    }

    fn visit_item_type(&mut self, alias: &'ast syn::ItemType) {
        self.found.insert(plain(&alias.ident));
        visit::visit_item_type(self, alias);
    }

    fn visit_use_rename(&mut self, rename: &'ast syn::UseRename) {
        let (name, other) = (plain(&rename.ident), plain(&rename.rename));
        self.renamed.push((name, other));
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        inside(self, invocation);
    }
}

/// Visits the expressions that the arguments of a macro are, as those of `format_args!`, which an
/// expansion leaves as it is. Definitions of macros are no code. Whether they could be read.
pub(super) fn inside<V: for<'ast> Visit<'ast> + ?Sized>(
    visitor: &mut V,
    invocation: &syn::Macro,
) -> bool {
    if invocation.path.is_ident("macro_rules") {
        return true;
    }
    let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
    let arguments = invocation.parse_body_with(parser);
    if let Ok(arguments) = &arguments {
        arguments.iter().for_each(|it| visitor.visit_expr(it));
    }
    arguments.is_ok()
}
