//! From the text of `.idl` files to the [`Model`]: items and their attributes.
//!
//! What has no place in the model (a function, a generic parameter, an unknown attribute) is an
//! error here; parsing goes on behind it, so that one run reports all errors. Types that are not
//! allowed become [`Kind::Wrong`](crate::model::Kind::Wrong) and are reported by
//! [`check`](crate::check), which knows how they are reached.

mod attributes;
mod definitions;
mod depth;
mod methods;
mod types;

use crate::bounds::{MOST_FILES, MOST_TEXT};
use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Entry, Interface, Model};
use crate::source::{Source, Span};
use attributes::{Attributes, Place};
use proc_macro2::LineColumn;
use syn::spanned::Spanned;

/// Parses all sources. The model holds whatever could be made sense of.
pub fn parse(sources: Vec<Source>) -> (Model, Vec<Diagnostic>) {
    let mut model = Model::default();
    let mut errors = Vec::new();
    let mut all = 0;
    for (file, source) in sources.iter().enumerate() {
        let mut parser = Parser {
            file,
            text: &source.text,
            model: &mut model,
            errors: &mut errors,
        };
        all += source.text.len();
        if file >= MOST_FILES || all > MOST_TEXT {
            let message = "there are more than 1,024 files, or more than 4 MiB of them";
            let span = parser.first_line();
            parser.error(Rule::FileSize, span, message, "fewer or shorter files");
            break;
        }
        if let Err((rule, message)) = depth::check(&source.text) {
            let span = parser.first_line();
            parser.error(rule, span, message, "");
            continue;
        }
        match syn::parse_file(&source.text) {
            Ok(tree) => parser.file(&tree),
            Err(error) => parser.syntax(&error),
        }
    }
    model.sources = sources;
    model.settle();
    (model, errors)
}

/// Parses one file into the model.
struct Parser<'a> {
    file: usize,
    text: &'a str,
    model: &'a mut Model,
    errors: &'a mut Vec<Diagnostic>,
}

impl Parser<'_> {
    fn error(
        &mut self,
        rule: Rule,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.errors.push(Diagnostic::new(rule, span, message, help));
    }

    fn syntax(&mut self, error: &syn::Error) {
        let span = self.span(error.span());
        let message = match error.to_string() {
            // What the tokenizer says, whatever it stumbled over.
            it if it.starts_with("cannot parse string") => {
                "a bracket or a quotation mark has no counterpart".to_string()
            }
            it => it,
        };
        self.error(Rule::Syntax, span, message, "");
    }

    fn first_line(&self) -> Span {
        Span {
            file: self.file,
            line: 1,
            column: 1,
        }
    }

    /// The start of a syntax node.
    fn span(&self, span: proc_macro2::Span) -> Span {
        let LineColumn { line, column } = span.start();
        Span {
            file: self.file,
            line,
            column: column + 1,
        }
    }

    /// How a syntax node is written in the source, on one line.
    fn text(&self, node: &impl Spanned) -> String {
        let range = node.span().byte_range();
        let text = self.text.get(range).unwrap_or("?");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn file(&mut self, tree: &syn::File) {
        let header = self.attributes(&tree.attrs, Place::File);
        let span = self.first_line();
        self.documented(
            &header,
            span,
            "the file",
            "start it with `//! ` and what it is for",
        );
        self.model.headers.insert(self.file, header.docs);
        for item in &tree.items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &syn::Item) {
        match item {
            syn::Item::Trait(item) => self.interface(item),
            syn::Item::Struct(item) => self.structure(item),
            syn::Item::Enum(item) => self.enumeration(item),
            syn::Item::Const(item) => {
                self.foreign(Rule::Const, item.const_token.span, "a constant")
            }
            syn::Item::Static(item) => {
                self.foreign(Rule::Const, item.static_token.span, "a static")
            }
            syn::Item::Fn(item) => self.foreign(Rule::Item, item.sig.span(), "a function"),
            syn::Item::Impl(item) => {
                self.foreign(Rule::Item, item.impl_token.span, "an implementation")
            }
            syn::Item::Use(item) => self.foreign(Rule::Item, item.use_token.span, "an import"),
            syn::Item::Mod(item) => self.foreign(Rule::Item, item.mod_token.span, "a module"),
            syn::Item::Type(item) => self.foreign(Rule::Item, item.type_token.span, "a type alias"),
            syn::Item::Union(item) => self.foreign(Rule::Item, item.union_token.span, "a union"),
            syn::Item::Macro(item) => self.foreign(Rule::Item, item.span(), "a macro"),
            other => self.foreign(Rule::Item, other.span(), "this item"),
        }
    }

    fn foreign(&mut self, rule: Rule, span: proc_macro2::Span, what: &str) {
        let span = self.span(span);
        let help = "a trait, a struct or an enum; all .idl files are one namespace, and code goes into a crate of its own";
        self.error(
            rule,
            span,
            format!("{what} has no place in an .idl file"),
            help,
        );
    }

    fn interface(&mut self, item: &syn::ItemTrait) {
        let span = self.span(item.ident.span());
        let name = item.ident.to_string();
        let attributes = self.attributes(&item.attrs, Place::Trait);
        self.documented(
            &attributes,
            span,
            &format!("trait `{name}`"),
            "say in a `///` comment what it stands for",
        );
        self.public(&item.vis, span, &format!("trait `{name}`"));
        self.generics(&item.generics, &name);
        if item.unsafety.is_some() || item.auto_token.is_some() || !item.supertraits.is_empty() {
            let help = "`pub trait Name { .. }`; what one interface shares with another goes into a third, got by a method";
            self.error(
                Rule::Qualifier,
                span,
                format!("trait `{name}` has a qualifier or a supertrait"),
                help,
            );
        }
        let Attributes {
            docs,
            domain,
            base,
            offers,
            ..
        } = attributes;
        if domain && base {
            let help = "leave it out; only an interface can have a base";
            let message = "`#[base]` stands at the entry of a domain";
            self.error(Rule::Attribute, span, message, help);
        }
        if domain {
            if let Some((arguments, result, more)) = self.start(item, span) {
                let offer_names = if offers.is_empty() { more } else { offers };
                self.model.entries.push(Entry {
                    name,
                    docs,
                    span,
                    arguments,
                    result,
                    offer_names,
                });
            }
        } else {
            if !offers.is_empty() {
                let help = "leave it out; only what a domain's `start` gives has such names";
                let message = "`#[offers(..)]` stands at an interface that is no `#[domain]`";
                self.error(Rule::Attribute, span, message, help);
            }
            if item.items.is_empty() {
                let help = "a method; nobody has a use for an object with nothing to call";
                let message = format!("interface `{name}` has no method");
                self.error(Rule::Body, span, message, help);
            }
            let methods = self.methods(item);
            self.model.interfaces.push(Interface {
                name,
                docs,
                span,
                base,
                methods,
            });
        }
    }

    fn documented(&mut self, attributes: &Attributes, span: Span, what: &str, help: &str) {
        if attributes.docs.iter().all(|line| line.trim().is_empty()) {
            self.error(
                Rule::Undocumented,
                span,
                format!("{what} has no documentation"),
                help,
            );
        }
    }

    fn public(&mut self, visibility: &syn::Visibility, span: Span, what: &str) {
        if !matches!(visibility, syn::Visibility::Public(_)) {
            self.error(
                Rule::NotPublic,
                span,
                format!("{what} is not public"),
                "write `pub` in front of it",
            );
        }
    }

    fn generics(&mut self, generics: &syn::Generics, owner: &str) {
        for parameter in &generics.params {
            let span = self.span(parameter.span());
            let (rule, what, help) = match parameter {
                syn::GenericParam::Lifetime(_) => (
                    Rule::Lifetime,
                    "a lifetime parameter",
                    "own the data (`RRef<T>`, `RVec<T>`), or lend it for one call (`&RRef<T>`)",
                ),
                _ => (
                    Rule::Generics,
                    "a generic parameter",
                    "write the type out; if several are needed, one item for each",
                ),
            };
            self.error(rule, span, format!("`{owner}` has {what}"), help);
        }
        if let Some(clause) = &generics.where_clause {
            let span = self.span(clause.where_token.span);
            self.error(
                Rule::Qualifier,
                span,
                format!("`{owner}` has a where clause"),
                "leave it out",
            );
        }
    }
}
