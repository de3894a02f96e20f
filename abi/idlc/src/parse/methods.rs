//! The functions in traits: methods of interfaces and `start` of an entry.

use super::Parser;
use super::attributes::{Attributes, Place};
use crate::diagnostics::Rule;
use crate::model::{Argument, Budget, Kind, Method, Type};
use crate::source::Span;
use syn::spanned::Spanned;

impl Parser<'_> {
    /// The methods of an interface.
    pub(super) fn methods(&mut self, item: &syn::ItemTrait) -> Vec<Method> {
        let functions: Vec<_> = item
            .items
            .iter()
            .filter_map(|inner| self.function(inner))
            .collect();
        functions
            .into_iter()
            .map(|function| self.method(function, &item.ident))
            .collect()
    }

    fn method(&mut self, function: &syn::TraitItemFn, owner: &syn::Ident) -> Method {
        let name = function.sig.ident.to_string();
        let span = self.span(function.sig.ident.span());
        let attributes = self.attributes(&function.attrs, Place::Method);
        let what = format!("method `{owner}::{name}`");
        self.documented(
            &attributes,
            span,
            &what,
            "say in a `///` comment what it does and what it gives",
        );
        self.signature(function, span, &what);
        self.receiver(function, span, &what);
        let Attributes {
            docs,
            unbounded,
            budget,
            frees,
            ..
        } = attributes;
        let budget = match (unbounded, budget) {
            (true, _) => Budget::Unbounded,
            (false, Some(milliseconds)) => Budget::Milliseconds(milliseconds),
            (false, None) => Budget::Default,
        };
        let (arguments, result) = (self.arguments(function), self.result(function));
        Method {
            name,
            docs,
            span,
            arguments,
            result,
            budget,
            frees,
        }
    }

    /// The parameters, the result and the names of the offers of an entry.
    pub(super) fn start(
        &mut self,
        item: &syn::ItemTrait,
        span: Span,
    ) -> Option<(Vec<Argument>, Type, Vec<String>)> {
        let functions: Vec<_> = item
            .items
            .iter()
            .filter_map(|inner| self.function(inner))
            .collect();
        let [function] = functions[..] else {
            let help = "`fn start(device: Handle<dyn PciDevice>) -> RpcResult<Handle<dyn Block>>;` and nothing else";
            self.error(
                Rule::Entry,
                span,
                format!("entry `{}` does not have exactly one function", item.ident),
                help,
            );
            return None;
        };
        let span = self.span(function.sig.ident.span());
        let what = format!("entry `{}`", item.ident);
        if function.sig.ident != "start" || function.sig.receiver().is_some() {
            let help = "`fn start(..)` without `self`: nothing of the domain exists yet";
            self.error(
                Rule::Entry,
                span,
                format!("the function of {what} is not `start`, or takes `self`"),
                help,
            );
        }
        let attributes = self.attributes(&function.attrs, Place::Start);
        self.signature(function, span, &what);
        Some((
            self.arguments(function),
            self.result(function),
            attributes.offers,
        ))
    }

    fn function<'t>(&mut self, inner: &'t syn::TraitItem) -> Option<&'t syn::TraitItemFn> {
        let (rule, what) = match inner {
            syn::TraitItem::Fn(function) => return Some(function),
            syn::TraitItem::Const(_) => (Rule::Const, "a constant"),
            syn::TraitItem::Type(_) => (Rule::Const, "an associated type"),
            _ => (Rule::Item, "this"),
        };
        let span = self.span(inner.span());
        self.error(
            rule,
            span,
            format!("{what} has no place in an interface"),
            "a method that gives the value",
        );
        None
    }

    /// What is forbidden for every function.
    fn signature(&mut self, function: &syn::TraitItemFn, span: Span, what: &str) {
        let signature = &function.sig;
        if let Some(body) = &function.default {
            let span = self.span(body.span());
            let help = "end the signature with `;` and put shared code into a library crate";
            self.error(
                Rule::DefaultBody,
                span,
                format!("{what} has a default body"),
                help,
            );
        }
        let qualified = signature.constness.is_some()
            || signature.asyncness.is_some()
            || signature.unsafety.is_some();
        if qualified || signature.abi.is_some() || signature.variadic.is_some() {
            let help = "`fn name(..) -> ..;`; a call that may block says so with `#[unbounded]`";
            self.error(
                Rule::Qualifier,
                span,
                format!("{what} has a qualifier"),
                help,
            );
        }
        self.generics(&signature.generics, &signature.ident.to_string());
    }

    fn receiver(&mut self, function: &syn::TraitItemFn, span: Span, what: &str) {
        let plain = function.sig.receiver().is_some_and(|it| {
            let lifetime = it
                .reference
                .as_ref()
                .is_some_and(|(_, lifetime)| lifetime.is_some());
            it.reference.is_some()
                && it.mutability.is_none()
                && it.colon_token.is_none()
                && !lifetime
        });
        if !plain {
            let help = "`&self`; state that changes is behind a lock inside the domain";
            self.error(
                Rule::Receiver,
                span,
                format!("{what} does not take `&self`"),
                help,
            );
        }
    }

    fn arguments(&mut self, function: &syn::TraitItemFn) -> Vec<Argument> {
        let inputs = &function.sig.inputs;
        inputs
            .iter()
            .filter_map(typed)
            .map(|it| self.argument(it))
            .collect()
    }

    fn argument(&mut self, argument: &syn::PatType) -> Argument {
        let docs = self.attributes(&argument.attrs, Place::Other).docs;
        let span = self.span(argument.pat.span());
        let name = match &*argument.pat {
            syn::Pat::Ident(it)
                if it.by_ref.is_none() && it.mutability.is_none() && it.subpat.is_none() =>
            {
                it.ident.to_string()
            }
            pattern => {
                let text = self.text(pattern);
                self.error(
                    Rule::NameStyle,
                    span,
                    format!("`{text}` is not the name of a parameter"),
                    "a simple name",
                );
                "argument".to_string()
            }
        };
        Argument {
            name,
            docs,
            span,
            ty: self.ty(&argument.ty),
        }
    }

    fn result(&mut self, function: &syn::TraitItemFn) -> Type {
        match &function.sig.output {
            syn::ReturnType::Type(_, ty) => self.ty(ty),
            syn::ReturnType::Default => {
                let span = self.span(function.sig.ident.span());
                Type {
                    kind: Kind::Scalar("()"),
                    span,
                    text: "()".to_string(),
                }
            }
        }
    }
}

/// A parameter other than `self`.
fn typed(input: &syn::FnArg) -> Option<&syn::PatType> {
    match input {
        syn::FnArg::Typed(argument) => Some(argument),
        syn::FnArg::Receiver(_) => None,
    }
}
