//! The crate `interfaces`: types, traits, and what ties them to the `abi` crate.

use super::{Code, INSIDE, base, entries, grouped};
use crate::model::{
    Argument, Body, Budget, Definition, Field, Interface, Kind, Method, Model, Seen, Variant,
};
use std::collections::BTreeSet;

/// The text of `interfaces.rs`, which the crate includes. It uses the built-in types by their bare
/// names.
pub fn emit(model: &Model) -> String {
    let mut code = Code::default();
    code.line("// Written by idlc from the .idl files. Do not edit.");
    for definition in &model.definitions {
        code.line("");
        emit_definition(&mut code, model, definition);
    }
    for interface in &model.interfaces {
        code.line("");
        emit_interface(&mut code, model, interface);
    }
    code.line("");
    emit_names(&mut code, model);
    code.line("");
    entries::emit(&mut code, model);
    code.text
}

/// The names of what can be called, for those who show calls. A constant, so that it is in no image
/// that does not use it.
fn emit_names(code: &mut Code, model: &Model) {
    code.line("/// Every interface: its number, its name, and the names of its methods in the order of their numbers.");
    code.open("pub const INTERFACES: &[(u64, &str, &[&str])] = &[");
    for interface in &model.interfaces {
        let (number, name) = (interface.number(), &interface.name);
        code.open(format!("({number:#018x}, \"{name}\", &["));
        for method in &interface.methods {
            code.line(format!("\"{}\",", method.name));
        }
        code.close("]),");
    }
    code.close("];");
    code.line("");
    emit_variants(code, model);
    code.line("/// What a trace shows of arguments, for each method of [`INTERFACES`]: the name of each, in one word what is noted of it");
    code.line("/// (`number`, `signed`, `truth`, `length`, `variant`; `nothing`), and of a variant the names. Lengths are noted behind all others.");
    code.open("pub const ARGUMENTS: &[&[&[(&str, &str, &[&str])]]] = &[");
    for interface in &model.interfaces {
        code.open("&[");
        for method in &interface.methods {
            code.line(format!("&[{}],", noted(model, method).join(", ")));
        }
        code.close("],");
    }
    code.close("];");
}

/// The names of the variants of enums that have numbers. Each list stands here once, however many
/// arguments have it: the text grows with the files and not with their product.
fn emit_variants(code: &mut Code, model: &Model) {
    code.line("/// The variants of the enums that a trace shows.");
    code.line("#[allow(dead_code, non_upper_case_globals)]");
    code.open("mod variants {");
    for definition in &model.definitions {
        if let Some(variants) = definition.numbered() {
            let names: Vec<_> = variants.iter().map(|it| format!("{:?}", it.name)).collect();
            let head = format!("pub const {}: &[&str] = &[", definition.name);
            code.line(format!("{head}{}];", names.join(", ")));
        }
    }
    code.close("}");
    code.line("");
}

/// The arguments of `method` as a trace shows them.
fn noted(model: &Model, method: &Method) -> Vec<String> {
    let arguments = method.arguments.iter().zip(model.seen(method));
    let one = |(argument, seen): (&Argument, Option<Seen<'_>>)| {
        let word = match seen {
            None => "nothing",
            Some(Seen::Number) => "number",
            Some(Seen::Signed) => "signed",
            Some(Seen::Truth) => "truth",
            Some(Seen::Length) => "length",
            Some(Seen::Variant(_)) => "variant",
        };
        let variants = match seen {
            Some(Seen::Variant(definition)) => format!("variants::{}", definition.name),
            _ => "&[]".to_string(),
        };
        format!("(\"{}\", \"{word}\", {variants})", argument.name)
    };
    arguments.map(one).collect()
}

fn emit_definition(code: &mut Code, model: &Model, definition: &Definition) {
    let name = &definition.name;
    if let Some(variants) = definition.numbered() {
        emit_numbered(code, definition, variants);
    } else {
        emit_body(code, model, definition);
    }
    code.line("");
    if definition.plain {
        code.line("// SAFETY: all its fields are plain data (checked by idlc), so it has no pointer and owns nothing.");
        code.line(format!("unsafe impl Plain for {name} {{}}"));
    }
    if model.facts(definition).owns {
        emit_transfer(code, model, definition);
    } else {
        code.line("// SAFETY: it owns nothing (checked by idlc), so there is nothing to transfer.");
        code.line(format!("unsafe impl Exchangeable for {name} {{}}"));
    }
    if definition.is_error() {
        emit_from_rpc_error(code, name);
        emit_failure(code, definition);
    }
}

/// The type itself, with what can be derived.
fn emit_body(code: &mut Code, model: &Model, definition: &Definition) {
    let name = &definition.name;
    code.docs(&definition.docs);
    code.line(format!("#[derive({})]", derives(model, definition)));
    match &definition.body {
        Body::Struct(fields) => {
            code.open(format!("pub struct {name} {{"));
            emit_fields(code, fields, "pub ");
        }
        Body::Enum(variants) => {
            code.open(format!("pub enum {name} {{"));
            variants
                .iter()
                .for_each(|variant| emit_variant(code, variant));
        }
    }
    code.close("}");
}

/// A plain enum without fields. It has numbers, from 0 on in the order of the source, since kernel
/// and tools keep such values in words.
fn emit_numbered(code: &mut Code, definition: &Definition, variants: &[Variant]) {
    code.open("abi::numbered! {");
    code.docs(&definition.docs);
    code.open(format!("pub enum {} {{", definition.name));
    for (number, variant) in variants.iter().enumerate() {
        code.docs(&variant.docs);
        code.line(format!("{} = {number},", variant.name));
    }
    code.close("}");
    code.close("}");
}

/// What can be derived: a type that owns nothing is copied and compared, others are moved.
fn derives(model: &Model, definition: &Definition) -> &'static str {
    let facts = model.facts(definition);
    match (facts.owns, facts.has_float) {
        (true, _) => "Debug",
        (false, true) => "Clone, Copy, Debug, PartialEq",
        (false, false) => "Clone, Copy, Debug, PartialEq, Eq",
    }
}

fn emit_fields(code: &mut Code, fields: &[Field], visibility: &str) {
    for field in fields {
        code.docs(&field.docs);
        code.line(format!(
            "{visibility}{}: {},",
            field.name,
            INSIDE.ty(&field.ty)
        ));
    }
}

fn emit_variant(code: &mut Code, variant: &Variant) {
    let Variant {
        name,
        docs,
        named,
        fields,
        ..
    } = variant;
    code.docs(docs);
    if fields.is_empty() {
        code.line(format!("{name},"));
    } else if *named {
        code.open(format!("{name} {{"));
        emit_fields(code, fields, "");
        code.close("},");
    } else {
        let types: Vec<_> = fields.iter().map(|field| INSIDE.ty(&field.ty)).collect();
        code.line(format!("{name}({}),", types.join(", ")));
    }
}

fn emit_transfer(code: &mut Code, model: &Model, definition: &Definition) {
    code.line("// SAFETY: transfers every field that can own something; the others are plain data (checked by idlc).");
    code.open(format!(
        "unsafe impl Exchangeable for {} {{",
        definition.name
    ));
    emit_constants(code, model, definition);
    code.line("#[inline]");
    code.open("unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {");
    match &definition.body {
        Body::Struct(fields) => {
            for field in fields.iter().filter(|field| model.owns(&field.ty)) {
                emit_transfer_of(code, &format!("self.{}", field.name));
            }
        }
        Body::Enum(variants) => emit_transfer_variants(code, model, variants),
    }
    code.line("Ok(())");
    code.close("}");
    code.close("}");
}

/// Whether a value can hold handles, if one of its fields can, and how deep it is nested.
fn emit_constants(code: &mut Code, model: &Model, definition: &Definition) {
    let fields = definition.fields();
    let owning = fields.iter().filter(|(_, field)| model.owns(&field.ty));
    let types: BTreeSet<_> = owning.map(|(_, field)| INSIDE.ty(&field.ty)).collect();
    code.line("const HANDLES: bool = false");
    for ty in &types {
        code.line(format!("    || <{ty} as Exchangeable>::HANDLES"));
    }
    code.line(";");
    code.open("const DEPTH: usize = abi::bounds::deeper(&[");
    for ty in &types {
        code.line(format!("<{ty} as Exchangeable>::DEPTH,"));
    }
    code.close("]);");
    code.line("");
}

fn emit_transfer_variants(code: &mut Code, model: &Model, variants: &[Variant]) {
    code.open("match self {");
    for variant in variants {
        emit_transfer_variant(code, model, variant);
    }
    code.close("}");
}

fn emit_transfer_variant(code: &mut Code, model: &Model, variant: &Variant) {
    let owning: Vec<_> = variant
        .fields
        .iter()
        .filter(|field| model.owns(&field.ty))
        .collect();
    if owning.is_empty() {
        return code.line(format!("Self::{} {{ .. }} => {{}}", variant.name));
    }
    // A position can stand for a name in a struct pattern, so both kinds of variants look alike.
    let bindings: Vec<_> = owning
        .iter()
        .map(|field| format!("{}: field_{}", field.name, field.name))
        .collect();
    code.open(format!(
        "Self::{} {{ {}, .. }} => {{",
        variant.name,
        bindings.join(", ")
    ));
    for field in owning {
        emit_transfer_of(code, &format!("field_{}", field.name));
    }
    code.close("}");
}

fn emit_transfer_of(code: &mut Code, place: &str) {
    code.line(
        "// SAFETY: the caller's duty is passed on unchanged; the field crosses with the whole.",
    );
    code.line(format!("unsafe {{ {place}.transfer(transfer)? }};"));
}

fn emit_from_rpc_error(code: &mut Code, name: &str) {
    code.line("");
    code.open(format!("impl From<RpcError> for {name} {{"));
    code.open("fn from(error: RpcError) -> Self {");
    code.line("Self::Rpc(error)");
    code.close("}");
    code.close("}");
}

/// What whoever calls again after a crash has to know of an error.
fn emit_failure(code: &mut Code, definition: &Definition) {
    let crashed = "Self::Rpc(RpcError::DomainCrashed)";
    let (gone, pattern) = match definition.gone() {
        Some(variant) => {
            let gone = format!("Self::{}", variant.name);
            let pattern = format!("{crashed} | {gone}");
            (gone, pattern)
        }
        None => (crashed.to_string(), crashed.to_string()),
    };
    code.line("");
    code.open(format!("impl Failure for {} {{", definition.name));
    code.open("fn gone() -> Self {");
    code.line(gone);
    code.close("}");
    code.open("fn is_gone(&self) -> bool {");
    code.line(format!("matches!(self, {pattern})"));
    code.close("}");
    code.close("}");
}

fn emit_interface(code: &mut Code, model: &Model, interface: &Interface) {
    let name = &interface.name;
    code.docs(&interface.docs);
    code.open(format!("pub trait {name}: Send + Sync + 'static {{"));
    for method in &interface.methods {
        emit_method(code, method);
    }
    code.close("}");
    code.line("");
    code.line("// SAFETY: the number is derived from the name, which no other interface has (checked by idlc).");
    code.open(format!("unsafe impl Interface for dyn {name} {{"));
    code.line(format!("const NUMBER: u64 = {:#018x};", interface.number()));
    code.line(format!("const NAME: &'static str = \"{name}\";"));
    code.close("}");
    code.line("");
    code.line("// SAFETY: the pointer is only unsized.");
    code.open(format!(
        "unsafe impl<T: {name}> ObjectOf<T> for dyn {name} {{"
    ));
    code.line("#[inline(always)]");
    code.open("fn object(pointer: *mut T) -> *mut Self {");
    code.line("pointer");
    code.close("}");
    code.close("}");
    if interface.base {
        base::emit(code, model, interface);
    }
}

fn emit_method(code: &mut Code, method: &Method) {
    code.docs(&method.docs);
    match method.budget {
        Budget::Default => {}
        Budget::Milliseconds(milliseconds) => {
            code.line("///");
            code.line(format!("/// Time budget: {} ms.", grouped(milliseconds)));
        }
        Budget::Unbounded => {
            code.line("///");
            code.line("/// May block without a limit.");
        }
    }
    if method.frees {
        code.line("///");
        code.line("/// Let into a domain that is short of memory.");
    }
    if method.arguments.len() > 6 {
        code.line("#[allow(clippy::too_many_arguments)]");
    }
    code.list(
        &format!("fn {}", method.name),
        &INSIDE.arguments(method),
        &result(method),
    );
}

fn result(method: &Method) -> String {
    match &method.result.kind {
        Kind::Scalar("()") => ";".to_string(),
        _ => format!(" -> {};", INSIDE.ty(&method.result)),
    }
}
