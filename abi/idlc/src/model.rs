//! What the `.idl` files say, once parsed: the types that all other modules work on.
//!
//! A [`Model`] holds three kinds of items. An [`Interface`] is a trait whose methods cross domains.
//! A [`Definition`] is a struct or an enum that they pass. An [`Entry`] is the declaration of what
//! a domain wants and offers (a trait marked `#[domain]`); entries have a namespace of their own.

use crate::diagnostics::Rule;
use crate::source::{Source, Span};
use sha2::{Digest, Sha256};
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

/// A type as written, with its place.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
    /// How it is written there.
    pub text: String,
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A number that is not a float, `bool`, `char` or `()`; its name in Rust.
    Scalar(&'static str),
    /// `f32` or `f64`.
    Float(&'static str),
    /// `RpcError`.
    RpcError,
    /// `Text<N>`.
    Text(u64),
    /// A struct or enum of the model, or a name that nobody defines.
    Named(String),
    /// `RRef<T>`.
    RRef(Box<Type>),
    /// `RVec<T>`.
    RVec(Box<Type>),
    /// `Handle<dyn I>`: the name of the interface.
    Handle(String),
    /// `AnyHandle`.
    AnyHandle,
    /// `Option<T>`.
    Option(Box<Type>),
    /// `Result<T, E>` and `RpcResult<T>`.
    Result(Box<Type>, Box<Type>),
    /// `(A, B)`, with one to four elements.
    Tuple(Vec<Type>),
    /// `[T; N]`.
    Array(Box<Type>, u64),
    /// `&T`.
    Borrow(Box<Type>),
    /// Something that may not stand in an interface.
    Wrong(Box<Wrong>),
}

/// Why a type may not stand in an interface.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The rule that it breaks.
    pub rule: Rule,
    /// What is wrong, as a whole sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Something that a domain wants or offers, as it goes into the header of its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The name of its interface.
    pub interface: String,
    /// It is offered (otherwise wanted).
    pub offer: bool,
    /// The domain starts without it, too.
    pub optional: bool,
}

impl Port {
    /// The number of its interface.
    pub fn number(&self) -> u64 {
        interface_number(&self.interface)
    }
}

/// The number of the interface with this name, the same in every build.
pub fn interface_number(name: &str) -> u64 {
    let digest = Sha256::digest(format!("interface {name}"));
    digest
        .iter()
        .take(8)
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Interface {
    /// Its number, the same in every build.
    pub fn number(&self) -> u64 {
        interface_number(&self.name)
    }
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
        self.definitions.iter().find(|it| it.name == name)
    }

    /// The interface with this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|it| it.name == name)
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

    /// Whether a value of this type owns something: a shared object or a handle. If it does not, it
    /// is copied byte for byte and nothing changes owner when it crosses.
    pub fn owns(&self, ty: &Type) -> bool {
        match &ty.kind {
            Kind::RRef(_) | Kind::RVec(_) | Kind::Handle(_) | Kind::AnyHandle => true,
            Kind::Option(inner) | Kind::Array(inner, _) => self.owns(inner),
            Kind::Result(ok, error) => self.owns(ok) || self.owns(error),
            Kind::Tuple(elements) => elements.iter().any(|it| self.owns(it)),
            Kind::Named(name) => self
                .definition(name)
                .is_some_and(|it| self.definition_owns(it)),
            Kind::Scalar(_) | Kind::Float(_) | Kind::RpcError | Kind::Text(_) => false,
            Kind::Borrow(_) | Kind::Wrong(_) => false,
        }
    }

    /// Whether a value of this struct or enum owns something.
    pub fn definition_owns(&self, definition: &Definition) -> bool {
        !definition.plain
            && definition
                .fields()
                .iter()
                .any(|(_, field)| self.owns(&field.ty))
    }

    /// Whether there is a float anywhere in a value of this type, so that it has no `Eq`.
    pub fn has_float(&self, ty: &Type) -> bool {
        match &ty.kind {
            Kind::Float(_) => true,
            Kind::Option(inner) | Kind::Array(inner, _) | Kind::RRef(inner) | Kind::RVec(inner) => {
                self.has_float(inner)
            }
            Kind::Result(ok, error) => self.has_float(ok) || self.has_float(error),
            Kind::Tuple(elements) => elements.iter().any(|it| self.has_float(it)),
            Kind::Named(name) => {
                let fields = self
                    .definition(name)
                    .map(Definition::fields)
                    .unwrap_or_default();
                fields.iter().any(|(_, field)| self.has_float(&field.ty))
            }
            _ => false,
        }
    }
}

impl Entry {
    /// The name of its module in `interfaces::domains`: `VirtioBlk` is `virtio_blk`.
    pub fn module(&self) -> String {
        snake_case(&self.name)
    }

    /// Whether the last parameter is `options: RVec<u8>`.
    pub fn has_options(&self) -> bool {
        self.arguments.last().is_some_and(Argument::is_options)
    }

    /// What it wants, in the order of the parameters, then what it offers.
    pub fn ports(&self) -> Vec<Port> {
        let wants = self.arguments.iter().filter_map(|argument| {
            let (interface, optional) = handle(&argument.ty)?;
            Some(Port {
                name: argument.name.clone(),
                interface,
                offer: false,
                optional,
            })
        });
        let types = self.offered();
        let alone =
            types.len() == 1 && !matches!(self.success().map(|it| &it.kind), Some(Kind::Array(..)));
        let offers = types.into_iter().enumerate().filter_map(|(index, ty)| {
            let (interface, optional) = handle(ty)?;
            let default = if alone {
                "service".to_string()
            } else {
                format!("service{index}")
            };
            let name = self.offer_names.get(index).cloned().unwrap_or(default);
            Some(Port {
                name,
                interface,
                offer: true,
                optional,
            })
        });
        wants.chain(offers).collect()
    }

    /// What `start` gives if it succeeds.
    pub fn success(&self) -> Option<&Type> {
        match &self.result.kind {
            Kind::Result(ok, _) => Some(ok),
            _ => None,
        }
    }

    /// The types of the offers, one by one.
    pub fn offered(&self) -> Vec<&Type> {
        let Some(success) = self.success() else {
            return Vec::new();
        };
        match &success.kind {
            Kind::Scalar("()") => Vec::new(),
            Kind::Tuple(elements) => elements.iter().collect(),
            Kind::Array(element, length) => {
                // Far more than the checker lets pass.
                let length = usize::try_from(*length).map_or(64, |it| it.min(64));
                vec![&**element; length]
            }
            _ => vec![success],
        }
    }
}

impl Argument {
    /// Whether it is `options: RVec<u8>`, which is not a port.
    pub fn is_options(&self) -> bool {
        let Kind::RVec(element) = &self.ty.kind else {
            return false;
        };
        self.name == "options" && matches!(element.kind, Kind::Scalar("u8"))
    }
}

/// The interface of `Handle<dyn I>` or `Option<Handle<dyn I>>`, and whether it is optional.
pub fn handle(ty: &Type) -> Option<(String, bool)> {
    match &ty.kind {
        Kind::Handle(name) => Some((name.clone(), false)),
        Kind::Option(inner) => match &inner.kind {
            Kind::Handle(name) => Some((name.clone(), true)),
            _ => None,
        },
        _ => None,
    }
}

/// `VirtioBlk` as `virtio_blk`; digits stay with what stands before them.
pub fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| letters[at]);
        let starts = before.is_some_and(|it| !it.is_uppercase() && it != '_');
        let acronym_ends = before.is_some_and(char::is_uppercase)
            && letters.get(index + 1).is_some_and(|it| it.is_lowercase());
        if letter.is_uppercase() && (starts || acronym_ends) {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{interface_number, snake_case};

    #[test]
    fn module_names() {
        let cases = [
            ("VirtioBlk", "virtio_blk"),
            ("Ext2", "ext2"),
            ("Rv6", "rv6"),
            ("PCIBus", "pci_bus"),
            ("ProgramEntry", "program_entry"),
            ("BlockPCI", "block_pci"),
        ];
        for (name, module) in cases {
            assert_eq!(snake_case(name), module);
        }
    }

    #[test]
    fn interface_numbers_never_change() {
        // `printf 'interface Block' | sha256sum`, its first eight bytes in little-endian order.
        assert_eq!(interface_number("Block"), 0xdc5a_4d1f_8aa6_6218);
    }
}
