//! What the `.idl` files say, once parsed: the types that all other modules work on.
//!
//! A [`Model`] holds three kinds of items. An [`Interface`] is a trait whose methods cross domains.
//! A [`Definition`] is a struct or an enum that they pass. An [`Entry`] is the declaration of what
//! a domain wants and offers (a trait marked `#[domain]`); entries have a namespace of their own.
//! [`types`] has what they all pass, [`ports`] what an entry is to those who load and connect
//! domains, [`facts`] what follows from the graph of types, [`seen`] what a trace shows of
//! arguments.

mod facts;
mod ports;
mod seen;
mod types;

pub use facts::Facts;
pub use ports::{Port, handle, interface_number, snake_case};
pub use seen::{MOST_SEEN, Seen};
pub use types::{Kind, Type, Wrong};

use crate::source::{Source, Span};
use std::collections::BTreeMap;

/// All items of all sources.
#[derive(Debug, Default)]
pub struct Model {
    /// The sources that it was made of.
    pub sources: Vec<Source>,
    /// In the order of the sources.
    pub interfaces: Vec<Interface>,
    /// Structs and enums, in the order of the sources.
    pub definitions: Vec<Definition>,
    /// Domain entries, in the order of the sources.
    pub entries: Vec<Entry>,
    /// What each source says of itself (its `//!` lines), by index of the source.
    pub headers: BTreeMap<usize, Vec<String>>,
    /// What is known of the definitions.
    index: facts::Index,
}

/// A trait that domains call across their boundary.
#[derive(Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its doc comment, one string a line, as written behind the slashes.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Marked `#[base]`: there is a base to build objects on that pass calls on.
    pub base: bool,
    /// In the order of the source, which is that of the method table.
    pub methods: Vec<Method>,
}

/// A method of an interface.
#[derive(Debug)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Its doc comment.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Without `&self`.
    pub arguments: Vec<Argument>,
    /// The whole result type.
    pub result: Type,
    /// How long it may run.
    pub budget: Budget,
    /// Marked `#[frees]`: it is let into a domain that is short of memory.
    pub frees: bool,
}

/// How long a call may run inside its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// As long as the domain's default says.
    Default,
    /// So many milliseconds.
    Milliseconds(u32),
    /// For ever: it may block.
    Unbounded,
}

/// A parameter of a method or an entry.
#[derive(Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its doc comment (entries only).
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Its type.
    pub ty: Type,
}

/// A struct or an enum.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its doc comment.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Marked `#[plain]`: plain data, all the way down.
    pub plain: bool,
    /// What it consists of.
    pub body: Body,
}

/// What a definition consists of.
#[derive(Debug)]
pub enum Body {
    /// A struct with named fields.
    Struct(Vec<Field>),
    /// An enum.
    Enum(Vec<Variant>),
}

/// A variant of an enum.
#[derive(Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its doc comment.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Marked `#[gone]`: whoever was called is of no use any more.
    pub gone: bool,
    /// The fields have names (otherwise positions).
    pub named: bool,
    /// None for a bare variant.
    pub fields: Vec<Field>,
}

/// A field of a struct or a variant.
#[derive(Debug)]
pub struct Field {
    /// Its name, or its position.
    pub name: String,
    /// Its doc comment.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Its type.
    pub ty: Type,
}

/// What a domain wants and offers.
#[derive(Debug)]
pub struct Entry {
    /// The name of its trait.
    pub name: String,
    /// Its doc comment.
    pub docs: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Parameters of `start`.
    pub arguments: Vec<Argument>,
    /// Result of `start`.
    pub result: Type,
    /// The names that `#[offers(..)]` gives; empty if it is missing.
    pub offer_names: Vec<String>,
}

impl Definition {
    /// The fields of the struct, or of all variants, with the variant's name.
    pub fn fields(&self) -> Vec<(Option<&str>, &Field)> {
        match &self.body {
            Body::Struct(fields) => fields.iter().map(|field| (None, field)).collect(),
            Body::Enum(variants) => variants.iter().flat_map(Variant::qualified).collect(),
        }
    }

    /// Whether it is an enum with a variant `Rpc(RpcError)`, so that a method may have it as its
    /// error.
    pub fn is_error(&self) -> bool {
        let Body::Enum(variants) = &self.body else {
            return false;
        };
        variants.iter().any(|variant| {
            let rpc = |field: &Field| matches!(field.ty.kind, Kind::RpcError);
            variant.name == "Rpc"
                && !variant.named
                && variant.fields.len() == 1
                && variant.fields.iter().all(rpc)
        })
    }

    /// The variants of a plain enum without fields, each of which has a number.
    pub fn numbered(&self) -> Option<&[Variant]> {
        let Body::Enum(variants) = &self.body else {
            return None;
        };
        let is_bare = variants.iter().all(|variant| variant.fields.is_empty());
        (self.plain && is_bare && variants.len() <= 256).then_some(variants)
    }

    /// The variant marked `#[gone]`.
    pub fn gone(&self) -> Option<&Variant> {
        match &self.body {
            Body::Enum(variants) => variants.iter().find(|variant| variant.gone),
            Body::Struct(_) => None,
        }
    }
}

impl Variant {
    /// The fields, each with the variant's name.
    fn qualified(&self) -> impl Iterator<Item = (Option<&str>, &Field)> {
        self.fields
            .iter()
            .map(|field| (Some(self.name.as_str()), field))
    }
}

impl Model {
    /// The definition with this name.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definition_at(name).map(|at| &self.definitions[at])
    }

    /// The interface with this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interface_at(name).map(|at| &self.interfaces[at])
    }

    /// The entry whose module (`virtio_blk`) or trait (`VirtioBlk`) has this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|it| it.name == name || it.module() == name)
    }

    /// Every entry: the name of its module, and its ports.
    pub fn entries(&self) -> Vec<(String, Vec<Port>)> {
        self.entries
            .iter()
            .map(|it| (it.module(), it.ports()))
            .collect()
    }
}
