//! The part of the ABI fingerprint that the interfaces contribute.
//!
//! Two sets of `.idl` files have the same fingerprint if the generated code means the same:
//! comments and the order of items do not count; the order of fields, variants and methods does.

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
            "{}({})->{} {:?}{}",
            it.name,
            arguments.join(","),
            ty(&it.result),
            it.budget,
            if it.frees { " frees" } else { "" }
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

#[cfg(test)]
mod tests {
    use crate::{Model, Source};

    const BASE: &str = "//! D.\n/// A point.\n#[plain]\npub struct Point {\n/// D.\npub x: u8,\n/// D.\npub y: u8,\n}\n\
                        /// D.\npub trait Plane {\n/// D.\n\
                        fn at(&self, p: Point) -> RpcResult<bool>;\n}\n";

    fn model(text: &str) -> Model {
        let source = Source {
            name: "test.idl".to_string(),
            text: text.to_string(),
        };
        crate::compile(vec![source]).unwrap_or_else(|report| panic!("{report}"))
    }

    fn fingerprint(text: &str) -> [u8; 32] {
        model(text).fingerprint(&[b"rustc 1.96"])
    }

    #[test]
    fn comments_and_layout_do_not_count() {
        let other = BASE
            .replace("/// A point.", "/// Another comment.")
            .replace("p: Point", "point : Point");
        assert_eq!(fingerprint(BASE), fingerprint(&other));
    }

    #[test]
    fn every_change_of_meaning_counts() {
        let changes = [
            ("pub x: u8", "pub x: i8"),
            ("pub x: u8", "pub z: u8"),
            ("#[plain]", ""),
            ("fn at(", "fn on("),
            ("RpcResult<bool>", "RpcResult<u8>"),
            ("fn at(&self, p: Point)", "fn at(&self, p: Point, q: Point)"),
            ("fn at(", "#[unbounded]\nfn at("),
            ("trait Plane", "trait Plain2"),
        ];
        for (from, to) in changes {
            let other = BASE.replace(from, to);
            assert_ne!(other, BASE);
            assert_ne!(fingerprint(BASE), fingerprint(&other), "{from} -> {to}");
        }
    }

    #[test]
    fn the_order_of_fields_counts() {
        let swapped = BASE
            .replace("pub x", "pub w")
            .replace("pub y", "pub x")
            .replace("pub w", "pub y");
        assert_ne!(fingerprint(BASE), fingerprint(&swapped));
    }

    #[test]
    fn extras_count_and_do_not_run_together() {
        let model = model(BASE);
        let all = [&[&b"ab"[..], b"c"][..], &[b"a", b"bc"], &[b"abc"], &[]];
        let prints: std::collections::BTreeSet<_> =
            all.iter().map(|extra| model.fingerprint(extra)).collect();
        assert_eq!(prints.len(), all.len());
    }
}
