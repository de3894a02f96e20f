//! The crate `abi/interfaces/hostile`: every method of every interface, called with values that are
//! meant to do harm, and an object for every interface that answers with such values.
//!
//! What a hostile number or text is, is written by hand in that crate; what is generated leads it
//! to every argument, field and variant. So a method that is added to an `.idl` file is attacked
//! from then on.

use super::{Code, INSIDE};
use crate::model::{
    Body, Budget, Definition, Field, Interface, Kind, Method, Model, Type, Variant,
};
use std::collections::{BTreeMap, BTreeSet};

/// The text of `hostile.rs`, which the crate includes.
pub fn emit(model: &Model) -> String {
    let mut code = Code::default();
    code.line("// Written by idlc from the .idl files. Do not edit.");
    for definition in &model.definitions {
        code.line("");
        emit_definition(&mut code, definition);
    }
    let mut number = 0;
    for interface in &model.interfaces {
        code.line("");
        emit_imitation(&mut code, interface);
        for method in &interface.methods {
            code.line("");
            emit_call(&mut code, interface, method, number);
            number += 1;
        }
    }
    code.line("");
    emit_table(&mut code, model);
    code.text
}

fn emit_definition(code: &mut Code, definition: &Definition) {
    code.open(format!("impl crate::Hostile for {} {{", definition.name));
    code.open("fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {");
    match &definition.body {
        Body::Struct(fields) => code.line(format!("Ok(Self {{ {} }})", made(fields))),
        Body::Enum(variants) => emit_choice(code, variants),
    }
    code.close("}");
    code.line("");
    code.open("fn take(self, source: &mut dyn crate::Source) {");
    match &definition.body {
        Body::Struct(fields) => {
            code.line(format!("let Self {{ {} }} = self;", bound(fields)));
            emit_takes(code, fields);
        }
        Body::Enum(variants) => emit_arms(code, variants),
    }
    code.line("let _ = source;");
    code.close("}");
    code.close("}");
}

/// Every field with a hostile value. A position can stand for a name, so tuples look alike.
fn made(fields: &[Field]) -> String {
    let field = |it: &Field| format!("{}: crate::Hostile::make(source)?", it.name);
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn bound(fields: &[Field]) -> String {
    let field = |it: &Field| format!("{0}: field_{0}", it.name);
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn emit_takes(code: &mut Code, fields: &[Field]) {
    for field in fields {
        code.line(format!(
            "crate::Hostile::take(field_{}, source);",
            field.name
        ));
    }
}

fn emit_choice(code: &mut Code, variants: &[Variant]) {
    code.open(format!(
        "Ok(match crate::below(source, {}) {{",
        variants.len()
    ));
    for (index, variant) in variants.iter().enumerate() {
        let pattern = if index + 1 == variants.len() {
            "_".to_string()
        } else {
            index.to_string()
        };
        code.line(format!(
            "{pattern} => Self::{} {{ {} }},",
            variant.name,
            made(&variant.fields)
        ));
    }
    code.close("})");
}

fn emit_arms(code: &mut Code, variants: &[Variant]) {
    code.open("match self {");
    for variant in variants {
        code.open(format!(
            "Self::{} {{ {} }} => {{",
            variant.name,
            bound(&variant.fields)
        ));
        emit_takes(code, &variant.fields);
        code.close("}");
    }
    code.close("}");
}

/// The object that answers with what `crate::Rogue` thinks of.
fn emit_imitation(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    code.open(format!("impl {name} for crate::Rogue {{"));
    for method in &interface.methods {
        let mut parts = vec!["&self".to_string()];
        let types = method.arguments.iter().map(|it| INSIDE.ty(&it.ty));
        parts.extend(types.map(|ty| format!("_: {ty}")));
        let tail = format!(" -> {} {{", INSIDE.ty(&method.result));
        if parts.len() > 7 {
            code.line("#[allow(clippy::too_many_arguments)]");
        }
        code.list(&format!("fn {}", method.name), &parts, &tail);
        code.depth += 1;
        code.line("self.answer()");
        code.close("}");
    }
    code.close("}");
    code.line("");
    code.open(format!("impl crate::Imitated for dyn {name} {{"));
    code.open("fn imitate(rogue: crate::Rogue) -> RpcResult<Handle<Self>> {");
    code.line("Handle::new(rogue)");
    code.close("}");
    code.close("}");
}

fn emit_call(code: &mut Code, interface: &Interface, method: &Method, number: usize) {
    code.open(format!(
        "fn call_{number}(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {{"
    ));
    code.line(format!(
        "let Ok(target) = target.downcast::<dyn {}>() else {{ return crate::Outcome::OtherType }};",
        interface.name
    ));
    let (mut values, mut shown) = (Vec::new(), Vec::new());
    for (index, argument) in method.arguments.iter().enumerate() {
        let (ty, lent) = match &argument.ty.kind {
            Kind::Borrow(inner) => (INSIDE.ty(inner), "&"),
            _ => (INSIDE.ty(&argument.ty), ""),
        };
        code.line(format!(
            "let Ok(value{index}) = <{ty} as crate::Hostile>::make(source) else {{ return crate::Outcome::Unmade }};"
        ));
        values.push(format!("{lent}value{index}"));
        shown.push(format!("{}: {{value{index}:?}}", argument.name));
    }
    code.line(format!(
        "source.begins(&format_args!(\"{}\"));",
        shown.join(", ")
    ));
    code.list(
        &format!("let result = target.{}", method.name),
        &values,
        ";",
    );
    code.line("crate::ended(result, source)");
    code.close("}");
}

fn emit_table(code: &mut Code, model: &Model) {
    code.line("/// Every method, in the order of the files.");
    code.open("pub static METHODS: &[crate::Method] = &[");
    let mut number = 0;
    let mut gives = Given {
        model,
        known: BTreeMap::new(),
    };
    for interface in &model.interfaces {
        for method in &interface.methods {
            let mut given = BTreeSet::new();
            gives.by(&method.result, &mut given);
            let given: Vec<_> = given.iter().map(|it| format!("{it:#018x}")).collect();
            code.open("crate::Method {");
            code.line(format!("interface: {:#018x},", interface.number()));
            code.line(format!("of: \"{}\",", interface.name));
            code.line(format!("name: \"{}\",", method.name));
            code.line(format!("gives: &[{}],", given.join(", ")));
            code.line(format!("waits: {},", method.budget == Budget::Unbounded));
            code.line(format!("call: call_{number},"));
            code.close("},");
            number += 1;
        }
    }
    code.close("];");
}

/// To which interfaces values can hold handles: their numbers; 0 stands for `AnyHandle`.
struct Given<'a> {
    model: &'a Model,
    /// Of each definition that was looked into. Types lead to it in many ways, and are gone through
    /// once.
    known: BTreeMap<&'a str, BTreeSet<u64>>,
}

impl<'a> Given<'a> {
    /// Adds those of a value of type `ty` to `found`.
    fn by(&mut self, ty: &'a Type, found: &mut BTreeSet<u64>) {
        match &ty.kind {
            Kind::Handle(name) => {
                found.extend(self.model.interface(name).map(Interface::number));
            }
            Kind::AnyHandle => {
                found.insert(0);
            }
            Kind::RRef(inner)
            | Kind::Option(inner)
            | Kind::Array(inner, _)
            | Kind::Borrow(inner) => self.by(inner, found),
            Kind::Result(ok, _) => self.by(ok, found),
            Kind::Tuple(elements) => elements.iter().for_each(|it| self.by(it, found)),
            Kind::Named(name) => {
                if let Some(definition) = self.model.definition(name) {
                    found.extend(self.of(definition));
                }
            }
            _ => {}
        }
    }

    fn of(&mut self, definition: &'a Definition) -> &BTreeSet<u64> {
        let name = definition.name.as_str();
        if !self.known.contains_key(name) {
            let mut found = BTreeSet::new();
            // Whoever has handles owns something, so plain data is not looked into.
            for (_, field) in definition.fields() {
                if self.model.owns(&field.ty) {
                    self.by(&field.ty, &mut found);
                }
            }
            self.known.insert(name, found);
        }
        &self.known[name]
    }
}
