//! Names: defined once, not reserved, in Rust's style.

use crate::bounds::LONGEST_NAME;
use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Argument, Body, Definition, Field, Interface, Model};
use crate::source::Span;
use std::collections::BTreeMap;

/// Names that mean something else wherever interfaces are used: built-in types and Rust's prelude.
const RESERVED_TYPES: &[&str] = &[
    "AnyHandle",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "EntryError",
    "Eq",
    "Err",
    "Exchangeable",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Handle",
    "Interface",
    "Into",
    "Iterator",
    "None",
    "Failure",
    "ObjectOf",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Plain",
    "RRef",
    "RVec",
    "UserBuf",
    "Result",
    "RpcError",
    "RpcResult",
    "Self",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "Text",
    "Transfer",
    "Vec",
];

/// Methods that every handle has: they would hide an interface's method of the same name.
const RESERVED_METHODS: &[&str] = &[
    "as_raw",
    "deref",
    "drop",
    "duplicate",
    "fmt",
    "from_raw",
    "into",
    "into_any",
    "new",
    "transfer",
    "try_into",
];

/// The method by which a base passes calls on.
const BASE_METHOD: &str = "pass";

/// Checks all names.
pub fn check(model: &Model, errors: &mut Vec<Diagnostic>) {
    let mut names = Names { model, errors };
    names.items();
    model.interfaces.iter().for_each(|it| names.interface(it));
    model.definitions.iter().for_each(|it| names.definition(it));
    for entry in &model.entries {
        names.style(true, &entry.name, entry.span);
        names.written(false, &entry.module(), entry.span);
        for offer in &entry.offer_names {
            names.style(false, offer, entry.span);
        }
        names.arguments(&format!("entry `{}`", entry.name), &entry.arguments);
    }
}

struct Names<'a> {
    model: &'a Model,
    errors: &'a mut Vec<Diagnostic>,
}

/// Whether generated code could not use `name`, which edition 2024 has taken.
fn is_keyword(name: &str) -> bool {
    name == "gen" || syn::parse_str::<syn::Ident>(name).is_err()
}

impl Names<'_> {
    fn items(&mut self) {
        let model = self.model;
        let mut items: Vec<_> = model
            .interfaces
            .iter()
            .map(|it| (it.name.clone(), it.span))
            .collect();
        items.extend(
            model
                .definitions
                .iter()
                .map(|it| (it.name.clone(), it.span)),
        );
        items.sort_by_key(|(_, span)| *span);
        for (name, span) in &items {
            self.style(true, name, *span);
            if RESERVED_TYPES.contains(&name.as_str()) {
                let message = format!("`{name}` is the name of something built in");
                self.errors.push(Diagnostic::new(
                    Rule::Reserved,
                    *span,
                    message,
                    "another name",
                ));
            }
        }
        // The trait that is written for `#[base]` is named, too.
        let based = model.interfaces.iter().filter(|it| it.base);
        items.extend(based.map(|it| (format!("{}Base", it.name), it.span)));
        self.unique("", items);
        // That two names have the same number is as good as impossible; then one of them must
        // change.
        let numbers = model
            .interfaces
            .iter()
            .map(|it| (format!("{:#x}", it.number()), it.span))
            .collect();
        self.unique("interface number ", numbers);
        let entries = model
            .entries
            .iter()
            .map(|it| (it.module(), it.span))
            .collect();
        self.unique("entry module ", entries);
    }

    fn interface(&mut self, interface: &Interface) {
        let owner = format!("interface `{}`", interface.name);
        let methods = interface
            .methods
            .iter()
            .map(|it| (it.name.clone(), it.span))
            .collect();
        self.unique(&format!("{owner}: method "), methods);
        for method in &interface.methods {
            self.style(false, &method.name, method.span);
            self.arguments(
                &format!("{owner}, method `{}`", method.name),
                &method.arguments,
            );
            let in_handles = RESERVED_METHODS.contains(&method.name.as_str());
            if in_handles || interface.base && method.name == BASE_METHOD {
                let owner = if in_handles { "handle" } else { "base" };
                let message = format!(
                    "every {owner} has a method `{}` already, which would be called instead",
                    method.name
                );
                let help = format!(
                    "a name that says more, as `{}_{}`",
                    method.name,
                    crate::model::snake_case(&interface.name)
                );
                self.errors
                    .push(Diagnostic::new(Rule::Reserved, method.span, message, help));
            }
        }
    }

    fn arguments(&mut self, owner: &str, arguments: &[Argument]) {
        for argument in arguments {
            self.style(false, &argument.name, argument.span);
        }
        let names = arguments
            .iter()
            .map(|it| (it.name.clone(), it.span))
            .collect();
        self.unique(&format!("{owner}: parameter "), names);
    }

    fn definition(&mut self, definition: &Definition) {
        let name = &definition.name;
        match &definition.body {
            Body::Struct(fields) => self.fields(&format!("struct `{name}`"), fields),
            Body::Enum(variants) => {
                let names = variants
                    .iter()
                    .map(|it| (it.name.clone(), it.span))
                    .collect();
                self.unique(&format!("enum `{name}`: variant "), names);
                for variant in variants {
                    self.style(true, &variant.name, variant.span);
                    if variant.named {
                        self.fields(
                            &format!("variant `{name}::{}`", variant.name),
                            &variant.fields,
                        );
                    }
                }
            }
        }
    }

    fn fields(&mut self, owner: &str, fields: &[Field]) {
        for field in fields {
            self.style(false, &field.name, field.span);
        }
        let names = fields.iter().map(|it| (it.name.clone(), it.span)).collect();
        self.unique(&format!("{owner}: field "), names);
    }

    /// No name twice; an error is at the later one and says where the first is.
    fn unique(&mut self, what: &str, names: Vec<(String, Span)>) {
        let mut first: BTreeMap<String, Span> = BTreeMap::new();
        for (name, span) in names {
            let Some(before) = first.get(&name) else {
                first.insert(name, span);
                continue;
            };
            let file = self
                .model
                .sources
                .get(before.file)
                .map_or("?", |it| it.name.as_str());
            let message = format!(
                "{what}`{name}` is defined twice; the first is at {file}:{}",
                before.line
            );
            self.errors.push(Diagnostic::new(
                Rule::Duplicate,
                span,
                message,
                "another name; all .idl files are one namespace",
            ));
        }
    }

    /// A name in a file: of this style, and not too long.
    fn style(&mut self, camel: bool, name: &str, span: Span) {
        self.written(camel, name, span);
        if name.len() > LONGEST_NAME {
            let message = format!("`{name}` is longer than {LONGEST_NAME} bytes");
            self.errors.push(Diagnostic::new(
                Rule::NameLength,
                span,
                message,
                "a shorter name; the documentation says the rest",
            ));
        }
    }

    fn written(&mut self, camel: bool, name: &str, span: Span) {
        let upper = name.starts_with(|it: char| it.is_ascii_uppercase());
        let lower = name.starts_with(|it: char| it.is_ascii_lowercase());
        let odd = |it: char| !it.is_ascii_alphanumeric() && (camel || it != '_');
        let raw = name.starts_with("r#");
        let good = match camel {
            true => upper && !name.contains(odd),
            false => {
                lower
                    && !raw
                    && !is_keyword(name)
                    && !name.contains(odd)
                    && !name.contains(char::is_uppercase)
                    && !name.contains("__")
            }
        };
        if !good {
            let style = if camel { "CamelCase" } else { "snake_case" };
            let message = format!("`{name}` is not {style}");
            let help = "letters and digits of ASCII, in Rust's style, that are no keyword";
            self.errors
                .push(Diagnostic::new(Rule::NameStyle, span, message, help));
        }
    }
}
