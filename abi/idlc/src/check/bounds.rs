//! How much there is of everything: see [`bounds`](crate::bounds) for the numbers and why.

use crate::bounds::{
    MOST_ARGUMENTS, MOST_ENTRIES, MOST_FIELDS, MOST_INTERFACES, MOST_METHODS, MOST_NESTED,
    MOST_TYPES, MOST_VARIANTS,
};
use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Body, Definition, Interface, Method, Model, Type};
use crate::source::Span;

/// Checks the numbers of all items and of their parts.
pub fn check(model: &Model, errors: &mut Vec<Diagnostic>) {
    totals(model, errors);
    for interface in &model.interfaces {
        of_interface(interface, errors);
    }
    for definition in &model.definitions {
        of_definition(definition, errors);
    }
}

/// Checks how deep types are nested. Not with types that contain themselves, which have no depth.
pub fn nesting(model: &Model, errors: &mut Vec<Diagnostic>) {
    for definition in &model.definitions {
        if model.facts(definition).depth > MOST_NESTED {
            let what = format!("`{}`", definition.name);
            too_deep(&what, definition.span, errors);
        }
    }
    for method in model.interfaces.iter().flat_map(|it| &it.methods) {
        method_nesting(model, method, errors);
    }
    for entry in &model.entries {
        let types = entry.arguments.iter().map(|it| &it.ty);
        for ty in types.chain([&entry.result]) {
            type_nesting(model, ty, errors);
        }
    }
}

fn method_nesting(model: &Model, method: &Method, errors: &mut Vec<Diagnostic>) {
    let types = method.arguments.iter().map(|it| &it.ty);
    for ty in types.chain([&method.result]) {
        type_nesting(model, ty, errors);
    }
}

fn type_nesting(model: &Model, ty: &Type, errors: &mut Vec<Diagnostic>) {
    if model.facts_of(ty).depth > MOST_NESTED {
        too_deep(&format!("`{}`", ty.text), ty.span, errors);
    }
}

fn too_deep(what: &str, span: Span, errors: &mut Vec<Diagnostic>) {
    let message = format!("{what} is nested more than {MOST_NESTED} types deep");
    let help = "`RVec` of plain structs that refer to each other by index, or a `Handle<dyn I>` that gives the next part";
    errors.push(Diagnostic::new(Rule::Nesting, span, message, help));
}

fn totals(model: &Model, errors: &mut Vec<Diagnostic>) {
    let interfaces = model.interfaces.iter().map(|it| it.span);
    let definitions = model.definitions.iter().map(|it| it.span);
    let entries = model.entries.iter().map(|it| it.span);
    let kinds: [(&str, usize, Vec<Span>); 3] = [
        ("interfaces", MOST_INTERFACES, interfaces.collect()),
        ("structs and enums", MOST_TYPES, definitions.collect()),
        ("entries of domains", MOST_ENTRIES, entries.collect()),
    ];
    for (what, most, spans) in kinds {
        if let Some(span) = spans.get(most) {
            let message = format!(
                "all files together have {} {what}, and at most {most} are allowed",
                spans.len()
            );
            let help =
                "fewer; the kernel has a proxy for each interface, and every domain all types";
            errors.push(Diagnostic::new(Rule::TooMany, *span, message, help));
        }
    }
}

fn of_interface(interface: &Interface, errors: &mut Vec<Diagnostic>) {
    let name = &interface.name;
    let methods = &interface.methods;
    if let Some(method) = methods.get(MOST_METHODS) {
        let message = format!(
            "interface `{name}` has {} methods, and at most {MOST_METHODS} are allowed",
            methods.len()
        );
        let help = "several interfaces, of which one hands out handles to the others";
        errors.push(Diagnostic::new(Rule::TooMany, method.span, message, help));
    }
    for method in methods {
        let count = method.arguments.len();
        if count > MOST_ARGUMENTS {
            let message = format!(
                "method `{name}::{}` has {count} parameters, and at most {MOST_ARGUMENTS} are allowed",
                method.name
            );
            let help = "a struct, whose fields have names and documentation";
            errors.push(Diagnostic::new(Rule::TooMany, method.span, message, help));
        }
    }
}

fn of_definition(definition: &Definition, errors: &mut Vec<Diagnostic>) {
    let name = &definition.name;
    let mut fields = |what: String, count: usize, span: Span| {
        if count > MOST_FIELDS {
            let message =
                format!("{what} has {count} fields, and at most {MOST_FIELDS} are allowed");
            let help = "an array, or a struct of structs";
            errors.push(Diagnostic::new(Rule::TooMany, span, message, help));
        }
    };
    match &definition.body {
        Body::Struct(all) => fields(format!("struct `{name}`"), all.len(), definition.span),
        Body::Enum(variants) => {
            for it in variants {
                let what = format!("variant `{name}::{}`", it.name);
                fields(what, it.fields.len(), it.span);
            }
            if let Some(variant) = variants.get(MOST_VARIANTS) {
                let message = format!(
                    "enum `{name}` has {} variants, and at most {MOST_VARIANTS} are allowed",
                    variants.len()
                );
                let help = "a number in a field of one variant";
                errors.push(Diagnostic::new(Rule::TooMany, variant.span, message, help));
            }
        }
    }
}
