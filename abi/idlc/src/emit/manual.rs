//! The reference manual of the interfaces, in Markdown: one chapter a file, then the entries of
//! domains, the built-in types and the rules.

use super::{INSIDE, grouped};
use crate::diagnostics::Rule;
use crate::model::{Body, Budget, Definition, Entry, Field, Interface, Method, Model, Type};

/// The types that every `.idl` file can use, and what they are for.
const BUILT_IN: &[(&str, &str)] = &[
    (
        "`u8` .. `u128`, `i8` .. `i128`, `usize`, `isize`, `bool`, `char`, `()`",
        "As in Rust.",
    ),
    ("`f32`, `f64`", "Only inside `RRef` and `RVec`."),
    (
        "`RRef<T>`",
        "One value on the shared heap. An argument `RRef<T>` changes owner; `&RRef<T>` is lent for the call.",
    ),
    (
        "`RVec<T>`",
        "A run of plain values on the shared heap, of fixed length. Moved or lent like `RRef`.",
    ),
    ("`Text<N>`", "A string of at most N bytes, by value."),
    (
        "`Handle<dyn I>`",
        "An owned reference to an object with interface `I`, in this domain or another. Dropping the last one drops the object.",
    ),
    (
        "`AnyHandle`",
        "A handle whose interface is known only at run time.",
    ),
    (
        "`Option<T>`, `Result<T, E>`, tuples of up to four, `[T; N]`",
        "As in Rust.",
    ),
    (
        "`RpcError`, `RpcResult<T>`",
        "Why a call did not come to its end: the other domain crashed, no memory, no stack, interrupted, refused. `RpcResult<T>` is `Result<T, RpcError>`.",
    ),
];

/// The text of the manual.
pub fn emit(model: &Model) -> String {
    let mut manual = Manual::default();
    manual.line("# Interfaces");
    manual.line("");
    manual.line("Written by `idlc manual` from the `.idl` files; do not edit. Domains call each other only through these");
    manual.line("interfaces. Every method can also fail with the `RpcError` of the call itself, and takes `&self`, since");
    manual.line("several threads call an object at once.");
    manual.contents(model);
    for file in 0..model.sources.len() {
        manual.chapter(model, file);
    }
    manual.entries(model);
    manual.built_in();
    manual.rules();
    manual.text
}

#[derive(Default)]
struct Manual {
    text: String,
}

impl Manual {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.line("");
        self.line(format!("{} {text}", "#".repeat(level)));
        self.line("");
    }

    fn docs(&mut self, docs: &[String]) {
        for line in docs {
            self.line(line.strip_prefix(' ').unwrap_or(line));
        }
    }

    fn contents(&mut self, model: &Model) {
        self.heading(2, "Contents");
        self.line("| interface | what it is | file |");
        self.line("| --- | --- | --- |");
        let mut interfaces: Vec<_> = model.interfaces.iter().collect();
        interfaces.sort_by_key(|it| &it.name);
        for it in interfaces {
            let file = model
                .sources
                .get(it.span.file)
                .map_or("", |source| source.name.as_str());
            let (name, first) = (&it.name, first_sentence(&it.docs));
            self.line(format!(
                "| [`{name}`](#interface-{}) | {first} | {file} |",
                name.to_lowercase()
            ));
        }
    }

    /// The interfaces and types of one file; nothing for a file that only declares entries.
    fn chapter(&mut self, model: &Model, file: usize) {
        let interfaces: Vec<_> = model
            .interfaces
            .iter()
            .filter(|it| it.span.file == file)
            .collect();
        let definitions: Vec<_> = model
            .definitions
            .iter()
            .filter(|it| it.span.file == file)
            .collect();
        if interfaces.is_empty() && definitions.is_empty() {
            return;
        }
        self.heading(2, &model.sources[file].name);
        self.docs(model.headers.get(&file).map_or(&[], Vec::as_slice));
        for interface in interfaces {
            self.interface(interface);
        }
        for definition in definitions {
            self.definition(definition);
        }
    }

    fn interface(&mut self, interface: &Interface) {
        self.heading(3, &format!("Interface `{}`", interface.name));
        self.docs(&interface.docs);
        self.line("");
        self.line(format!("Number {:#018x}.", interface.number()));
        for method in &interface.methods {
            self.method(method);
        }
    }

    fn method(&mut self, method: &Method) {
        let arguments: Vec<_> = method
            .arguments
            .iter()
            .map(|it| format!("{}: {}", it.name, INSIDE.ty(&it.ty)))
            .collect();
        self.line("");
        self.line(format!(
            "**`{}({}) -> {}`**  ",
            method.name,
            arguments.join(", "),
            INSIDE.ty(&method.result)
        ));
        self.docs(&method.docs);
        match method.budget {
            Budget::Default => {}
            Budget::Milliseconds(budget) => {
                self.line(format!("*Time budget: {} ms.*", grouped(budget)));
            }
            Budget::Unbounded => self.line("*May block without a limit.*"),
        }
        if method.frees {
            self.line("*Let into a domain that is short of memory.*");
        }
    }

    fn definition(&mut self, definition: &Definition) {
        let kind = match (&definition.body, definition.plain) {
            (Body::Struct(_), false) => "Struct",
            (Body::Struct(_), true) => "Plain struct",
            (Body::Enum(_), false) => "Enum",
            (Body::Enum(_), true) => "Plain enum",
        };
        self.heading(3, &format!("{kind} `{}`", definition.name));
        self.docs(&definition.docs);
        self.line("");
        match &definition.body {
            Body::Struct(fields) => {
                self.line("| field | type | meaning |");
                self.line("| --- | --- | --- |");
                for field in fields {
                    let (name, docs) = (&field.name, cell(&field.docs));
                    self.line(format!("| `{name}` | {} | {docs} |", code(&field.ty)));
                }
            }
            Body::Enum(variants) => {
                self.line("| variant | meaning |");
                self.line("| --- | --- |");
                for variant in variants {
                    let fields = variant_fields(variant.named, &variant.fields);
                    let docs = cell(&variant.docs);
                    self.line(format!("| `{}{fields}` | {docs} |", variant.name));
                }
            }
        }
    }

    fn entries(&mut self, model: &Model) {
        self.heading(2, "Domains");
        self.line("What each domain wants to be granted, and what it offers.");
        for entry in &model.entries {
            self.entry(entry);
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.heading(3, &format!("Domain `{}`", entry.module()));
        self.docs(&entry.docs);
        self.line("");
        self.line("| | name | interface | |");
        self.line("| --- | --- | --- | --- |");
        for port in entry.ports() {
            let what = if port.offer { "offers" } else { "wants" };
            let optional = if port.optional { "optional" } else { "" };
            let (name, interface) = (&port.name, &port.interface);
            self.line(format!(
                "| {what} | {name} | [`{interface}`](#interface-{}) | {optional} |",
                interface.to_lowercase()
            ));
        }
        if entry.has_options() {
            self.line("| takes | options | text from the manifest | |");
        }
    }

    fn built_in(&mut self) {
        self.heading(2, "Built-in types");
        self.line("| type | what it is |");
        self.line("| --- | --- |");
        for (ty, meaning) in BUILT_IN {
            self.line(format!("| {ty} | {meaning} |"));
        }
    }

    fn rules(&mut self) {
        self.heading(2, "Rules");
        self.line("What an `.idl` file must obey; `idlc check` names the rule in every error.");
        self.line("");
        for rule in Rule::ALL {
            self.line(format!("- **{}**: {}", rule.name(), rule.text()));
        }
    }
}

fn code(ty: &Type) -> String {
    format!("`{}`", INSIDE.ty(ty))
}

fn variant_fields(named: bool, fields: &[Field]) -> String {
    let field = |it: &Field| match named {
        true => format!("{}: {}", it.name, INSIDE.ty(&it.ty)),
        false => INSIDE.ty(&it.ty),
    };
    let list: Vec<_> = fields.iter().map(field).collect();
    match (fields.is_empty(), named) {
        (true, _) => String::new(),
        (false, true) => format!(" {{ {} }}", list.join(", ")),
        (false, false) => format!("({})", list.join(", ")),
    }
}

/// A doc comment in a cell of a table.
fn cell(docs: &[String]) -> String {
    let words: Vec<_> = docs.iter().map(|line| line.trim()).collect();
    words.join(" ").replace('|', "\\|")
}

fn first_sentence(docs: &[String]) -> String {
    let text = cell(docs);
    match text.find(". ") {
        Some(end) => text[..=end].to_string(),
        None => text,
    }
}
