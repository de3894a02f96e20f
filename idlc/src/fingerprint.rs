//! The part of the ABI fingerprint that the interfaces contribute.
//!
//! Two sets of `.idl` files have the same fingerprint if the generated code means the same: comments and
//! the order of items do not count; the order of fields, variants and methods does.

use crate::model::{Body, Definition, Entry, Field, Interface, Model, Type};
use sha2::{Digest, Sha256};

impl Model {
    /// SHA-256 over the normalised sources, and over `extra` (compiler version, target, flags).
    pub fn fingerprint(&self, extra: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut update = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        update(self.normalised().as_bytes());
        extra.iter().for_each(|part| update(part));
        hash.finalize().into()
    }

    /// Every item on a line of its own, sorted, without comments.
    pub fn normalised(&self) -> String {
        let mut lines: Vec<String> = self.interfaces.iter().map(interface).collect();
        lines.extend(self.definitions.iter().map(definition));
        lines.extend(self.entries.iter().map(entry));
        lines.sort();
        lines.join("\n")
    }
}

fn ty(ty: &Type) -> String {
    ty.text.split_whitespace().collect()
}

fn interface(interface: &Interface) -> String {
    let method = |it: &crate::model::Method| {
        let arguments: Vec<_> = it.arguments.iter().map(|it| ty(&it.ty)).collect();
        format!(
            "{}({})->{} {:?}",
            it.name,
            arguments.join(","),
            ty(&it.result),
            it.budget
        )
    };
    let methods: Vec<_> = interface.methods.iter().map(method).collect();
    format!("trait {} {{{}}}", interface.name, methods.join(";"))
}

fn definition(definition: &Definition) -> String {
    let list = |fields: &[Field]| -> String {
        fields
            .iter()
            .map(|it| format!("{}:{},", it.name, ty(&it.ty)))
            .collect()
    };
    let body = match &definition.body {
        Body::Struct(fields) => list(fields),
        Body::Enum(variants) => variants
            .iter()
            .map(|it| format!("{}({}),", it.name, list(&it.fields)))
            .collect(),
    };
    format!(
        "type {} plain={} {{{body}}}",
        definition.name, definition.plain
    )
}

fn entry(entry: &Entry) -> String {
    let ports = entry.ports();
    let ports: Vec<_> = ports
        .iter()
        .map(|it| format!("{}:{}:{}:{}", it.name, it.interface, it.offer, it.optional))
        .collect();
    format!(
        "entry {} options={} {} {}",
        entry.name,
        entry.has_options(),
        ports.join(","),
        ty(&entry.result)
    )
}
