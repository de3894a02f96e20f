//! Structs and enums, down to their fields and variants.

use super::Parser;
use super::attributes::{Attributes, Place};
use crate::diagnostics::Rule;
use crate::model::{Body, Definition, Field, Variant};
use crate::source::Span;

impl Parser<'_> {
    pub(super) fn structure(&mut self, item: &syn::ItemStruct) {
        let name = item.ident.to_string();
        let (span, attributes) =
            self.definition(&item.attrs, &item.ident, &item.vis, &item.generics);
        let syn::Fields::Named(fields) = &item.fields else {
            let help = "a struct with named fields, each of them documented";
            return self.error(
                Rule::Body,
                span,
                format!("struct `{name}` has no named fields"),
                help,
            );
        };
        if fields.named.is_empty() {
            self.error(
                Rule::Body,
                span,
                format!("struct `{name}` is empty"),
                "`()` where nothing is passed",
            );
        }
        let fields = fields
            .named
            .iter()
            .enumerate()
            .map(|(index, field)| self.field(index, field, &name, true))
            .collect();
        let Attributes { docs, plain, .. } = attributes;
        self.model.definitions.push(Definition {
            name,
            docs,
            span,
            plain,
            body: Body::Struct(fields),
        });
    }

    pub(super) fn enumeration(&mut self, item: &syn::ItemEnum) {
        let name = item.ident.to_string();
        let (span, attributes) =
            self.definition(&item.attrs, &item.ident, &item.vis, &item.generics);
        if item.variants.is_empty() {
            self.error(
                Rule::Body,
                span,
                format!("enum `{name}` is empty"),
                "give it a variant",
            );
        }
        let variants = item
            .variants
            .iter()
            .map(|variant| self.variant(variant, &name))
            .collect();
        let Attributes { docs, plain, .. } = attributes;
        let definition = Definition {
            name,
            docs,
            span,
            plain,
            body: Body::Enum(variants),
        };
        self.gone(&definition);
        self.model.definitions.push(definition);
    }

    /// `#[gone]` is one variant of an error, and has no fields: it is made where nothing is known.
    fn gone(&mut self, definition: &Definition) {
        let Body::Enum(variants) = &definition.body else {
            return;
        };
        let marked = variants.iter().filter(|variant| variant.gone);
        for (index, variant) in marked.enumerate() {
            if index > 0 || !variant.fields.is_empty() || !definition.is_error() {
                let message = format!(
                    "`{}::{}` cannot be `#[gone]`",
                    definition.name, variant.name
                );
                let help = "one variant without fields, of an enum with a variant `Rpc(RpcError)`";
                self.error(Rule::Attribute, variant.span, message, help);
            }
        }
    }

    /// What structs and enums have in common.
    fn definition(
        &mut self,
        attributes: &[syn::Attribute],
        name: &syn::Ident,
        visibility: &syn::Visibility,
        generics: &syn::Generics,
    ) -> (Span, Attributes) {
        let span = self.span(name.span());
        let attributes = self.attributes(attributes, Place::Definition);
        self.documented(
            &attributes,
            span,
            &format!("type `{name}`"),
            "say in a `///` comment what a value means",
        );
        self.public(visibility, span, &format!("type `{name}`"));
        self.generics(generics, &name.to_string());
        (span, attributes)
    }

    fn variant(&mut self, variant: &syn::Variant, owner: &str) -> Variant {
        let (name, span) = (variant.ident.to_string(), self.span(variant.ident.span()));
        let attributes = self.attributes(&variant.attrs, Place::Variant);
        self.documented(
            &attributes,
            span,
            &format!("variant `{owner}::{name}`"),
            "say in a `///` comment what it means",
        );
        if variant.discriminant.is_some() {
            let help = "leave the number out; a number that matters is a field";
            self.error(
                Rule::Body,
                span,
                format!("variant `{owner}::{name}` has a number of its own"),
                help,
            );
        }
        let named = matches!(variant.fields, syn::Fields::Named(_));
        let owner = format!("{owner}::{name}");
        let fields = variant
            .fields
            .iter()
            .enumerate()
            .map(|(index, field)| self.field(index, field, &owner, false))
            .collect();
        Variant {
            name,
            docs: attributes.docs,
            span,
            gone: attributes.gone,
            named,
            fields,
        }
    }

    fn field(&mut self, index: usize, field: &syn::Field, owner: &str, of_struct: bool) -> Field {
        let ty = self.ty(&field.ty);
        let span = field
            .ident
            .as_ref()
            .map_or(ty.span, |name| self.span(name.span()));
        let name = field
            .ident
            .as_ref()
            .map_or(index.to_string(), ToString::to_string);
        let attributes = self.attributes(&field.attrs, Place::Other);
        if of_struct {
            let what = format!("field `{owner}.{name}`");
            self.documented(
                &attributes,
                span,
                &what,
                "say in a `///` comment what it means, with its unit",
            );
            self.public(&field.vis, span, &what);
        }
        Field {
            name,
            docs: attributes.docs,
            span,
            ty,
        }
    }
}
