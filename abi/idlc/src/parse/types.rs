//! Types as written, and what to use instead of those that cannot cross.

use super::Parser;
use crate::diagnostics::Rule;
use crate::model::{Kind, Type, Wrong};
use syn::spanned::Spanned;

/// The built-in types without parameters that are numbers or the like.
const SCALARS: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "bool",
    "char",
];
const FLOATS: &[&str] = &["f32", "f64"];
/// Types of the standard library that point into a private heap.
const COLLECTIONS: &[&str] = &[
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "HashMap",
    "HashSet",
    "LinkedList",
    "VecDeque",
];
/// Types of the standard library with state that changes behind a shared reference.
const CELLS: &[&str] = &[
    "Cell",
    "RefCell",
    "UnsafeCell",
    "OnceCell",
    "Mutex",
    "RwLock",
];

fn wrong(rule: Rule, message: impl Into<String>, help: impl Into<String>) -> Kind {
    Kind::Wrong(Box::new(Wrong {
        rule,
        message: message.into(),
        help: help.into(),
    }))
}

impl Parser<'_> {
    /// A type, allowed or not.
    pub(super) fn ty(&mut self, ty: &syn::Type) -> Type {
        let (span, text) = (self.span(ty.span()), self.text(ty));
        let kind = match ty {
            syn::Type::Paren(inner) => return self.ty(&inner.elem),
            syn::Type::Group(inner) => return self.ty(&inner.elem),
            syn::Type::Tuple(tuple) => self.tuple(tuple),
            syn::Type::Array(array) => self.array(array, &text),
            syn::Type::Reference(reference) => self.reference(reference, &text),
            syn::Type::Path(path) => self.path(path, &text),
            syn::Type::Ptr(_) => wrong(
                Rule::RawPointer,
                format!("`{text}` is a raw pointer"),
                "`RRef<T>` or `RVec<T>` to own memory, `Handle<dyn Mmio>` or `Handle<dyn DmaMemory>` to reach a device's",
            ),
            syn::Type::BareFn(_) => function_pointer(&text),
            syn::Type::TraitObject(object) => bounds(&object.bounds, &text),
            syn::Type::ImplTrait(object) => bounds(&object.bounds, &text),
            syn::Type::Slice(slice) => {
                let element = self.text(&slice.elem);
                wrong(
                    Rule::Borrow,
                    format!("`{text}` has no size of its own"),
                    format!("`RVec<{element}>`, or `[{element}; N]`"),
                )
            }
            _ => unknown(&text),
        };
        Type { kind, span, text }
    }

    fn tuple(&mut self, tuple: &syn::TypeTuple) -> Kind {
        match tuple.elems.len() {
            0 => Kind::Scalar("()"),
            1..=4 => Kind::Tuple(tuple.elems.iter().map(|it| self.ty(it)).collect()),
            count => wrong(
                Rule::TupleSize,
                format!("a tuple of {count} elements"),
                "a struct, whose fields have names and documentation",
            ),
        }
    }

    fn array(&mut self, array: &syn::TypeArray, text: &str) -> Kind {
        match number(&array.len) {
            Some(length @ 1..=0xffff_ffff) => Kind::Array(Box::new(self.ty(&array.elem)), length),
            _ => wrong(
                Rule::Length,
                format!("the length of `{text}` is not a number"),
                "a number: `[u8; 6]`",
            ),
        }
    }

    fn reference(&mut self, reference: &syn::TypeReference, text: &str) -> Kind {
        let inner = self.text(&reference.elem);
        if reference.mutability.is_some() {
            let owned = if inner.starts_with('[') || inner == "str" {
                "RVec<u8>".to_string()
            } else {
                shared(&inner)
            };
            let help = format!(
                "move `{owned}` in and give it back in the result: `buffer: {owned}) -> RpcResult<{owned}>`"
            );
            return wrong(
                Rule::MutableBorrow,
                format!("`{text}` lends something to be changed"),
                help,
            );
        }
        match &reference.lifetime {
            Some(lifetime) if lifetime.ident == "static" => {
                let help =
                    "`Text<N>` for a short name, `RVec<u8>` for longer text, `RRef<T>` for a value";
                return wrong(
                    Rule::StaticBorrow,
                    format!("`{text}` points into the image of one domain"),
                    help,
                );
            }
            Some(lifetime) => {
                let help = format!(
                    "leave `{lifetime}` out: what is lent to a call comes back when it ends"
                );
                return wrong(Rule::Lifetime, format!("`{text}` has a lifetime"), help);
            }
            None => {}
        }
        match &*reference.elem {
            syn::Type::Path(path) if path.path.is_ident("str") => {
                let help = "`Text<N>` for a short name, `&RVec<u8>` for longer text";
                wrong(
                    Rule::Borrow,
                    format!("`{text}` may point into the caller's private memory"),
                    help,
                )
            }
            syn::Type::Slice(slice) => {
                let element = self.text(&slice.elem);
                let help = format!("`&RVec<{element}>`, which lives on the shared heap");
                wrong(
                    Rule::Borrow,
                    format!("`{text}` may point into the caller's private memory"),
                    help,
                )
            }
            inner => Kind::Borrow(Box::new(self.ty(inner))),
        }
    }

    fn path(&mut self, path: &syn::TypePath, text: &str) -> Kind {
        let Some(segment) = path.path.segments.last() else {
            return unknown(text);
        };
        let name = segment.ident.to_string();
        let arguments = match &segment.arguments {
            syn::PathArguments::None => Vec::new(),
            syn::PathArguments::AngleBracketed(list) => list.args.iter().collect(),
            syn::PathArguments::Parenthesized(_) => return function_pointer(text),
        };
        if let Some(kind) = forbidden(&name, &self.arguments_text(&arguments), text) {
            return kind;
        }
        if path.qself.is_some()
            || path.path.segments.len() != 1
            || path.path.leading_colon.is_some()
        {
            return unknown(text);
        }
        self.built_in(&name, &arguments, text)
    }

    fn arguments_text(&self, arguments: &[&syn::GenericArgument]) -> String {
        arguments
            .iter()
            .map(|it| self.text(it))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn built_in(&mut self, name: &str, arguments: &[&syn::GenericArgument], text: &str) -> Kind {
        let scalar = SCALARS.iter().find(|it| **it == name);
        let float = FLOATS.iter().find(|it| **it == name);
        match (name, arguments) {
            (_, []) if scalar.is_some() => Kind::Scalar(scalar.expect("just looked")),
            (_, []) if float.is_some() => Kind::Float(float.expect("just looked")),
            ("RpcError", []) => Kind::RpcError,
            ("AnyHandle", []) => Kind::AnyHandle,
            ("UserBuf", []) => Kind::UserBuf,
            ("RRef", [syn::GenericArgument::Type(inner)]) => Kind::RRef(Box::new(self.ty(inner))),
            ("RVec", [syn::GenericArgument::Type(inner)]) => Kind::RVec(Box::new(self.ty(inner))),
            ("Option", [syn::GenericArgument::Type(inner)]) => {
                Kind::Option(Box::new(self.ty(inner)))
            }
            (
                "Result",
                [
                    syn::GenericArgument::Type(ok),
                    syn::GenericArgument::Type(error),
                ],
            ) => Kind::Result(Box::new(self.ty(ok)), Box::new(self.ty(error))),
            ("RpcResult", [syn::GenericArgument::Type(ok)]) => {
                let ok = self.ty(ok);
                let error = Type {
                    kind: Kind::RpcError,
                    span: ok.span,
                    text: "RpcError".to_string(),
                };
                Kind::Result(Box::new(ok), Box::new(error))
            }
            ("Text", [argument]) => text_length(argument, text),
            ("Handle", [syn::GenericArgument::Type(inner)]) => self.handle(inner),
            (
                "RRef" | "RVec" | "Option" | "Result" | "RpcResult" | "Text" | "Handle" | "UserBuf",
                _,
            ) => wrong(
                Rule::UnknownType,
                format!("`{text}` does not have the right parameters"),
                "`RRef<T>`, `RVec<T>`, `Option<T>`, `Result<T, E>`, `RpcResult<T>`, `Text<32>`, `Handle<dyn I>`, `&UserBuf`",
            ),
            (_, []) => Kind::Named(name.to_string()),
            _ => wrong(
                Rule::Generics,
                format!("`{text}` is generic"),
                "a struct or enum of an .idl file, with the types written out",
            ),
        }
    }

    fn handle(&mut self, inner: &syn::Type) -> Kind {
        let text = self.text(inner);
        let syn::Type::TraitObject(object) = inner else {
            let help = format!(
                "`Handle<dyn {text}>`, if `{text}` is an interface; a handle leads to any object that has it"
            );
            return wrong(
                Rule::TraitObject,
                format!("`Handle<{text}>` does not name an interface"),
                help,
            );
        };
        let bounds: Vec<_> = object.bounds.iter().collect();
        match bounds[..] {
            [syn::TypeParamBound::Trait(bound)]
                if bound.path.get_ident().is_some_and(|it| it != "Any") =>
            {
                Kind::Handle(self.text(&bound.path))
            }
            _ => self::bounds(&object.bounds, &text),
        }
    }
}

fn text_length(argument: &syn::GenericArgument, text: &str) -> Kind {
    let length = match argument {
        syn::GenericArgument::Const(expression) => number(expression),
        _ => None,
    };
    match length {
        Some(length @ 1..=65_535) => Kind::Text(length),
        _ => wrong(
            Rule::Length,
            format!("the length of `{text}` is not a number from 1 to 65,535"),
            "`Text<32>`",
        ),
    }
}

fn number(expression: &syn::Expr) -> Option<u64> {
    match expression {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        }) => number.base10_parse().ok(),
        _ => None,
    }
}

/// How a value of type `inner` is owned on the shared heap.
fn shared(inner: &str) -> String {
    match inner.starts_with("RRef<") || inner.starts_with("RVec<") {
        true => inner.to_string(),
        false => format!("RRef<{inner}>"),
    }
}

fn unknown(text: &str) -> Kind {
    let help = "a built-in type, or a struct or enum of any .idl file by its name alone";
    wrong(
        Rule::UnknownType,
        format!("`{text}` is not a type of the interface language"),
        help,
    )
}

fn function_pointer(text: &str) -> Kind {
    let help = "`Handle<dyn I>` with an interface `I` that has the function as its method";
    wrong(
        Rule::FunctionPointer,
        format!("`{text}` is code of one domain"),
        help,
    )
}

/// A trait object outside a handle, or in one but not of a single interface.
fn bounds(
    bounds: &syn::punctuated::Punctuated<syn::TypeParamBound, syn::Token![+]>,
    text: &str,
) -> Kind {
    let name = bounds.iter().find_map(|bound| match bound {
        syn::TypeParamBound::Trait(bound) => {
            bound.path.segments.last().map(|it| it.ident.to_string())
        }
        _ => None,
    });
    match name.as_deref().unwrap_or_default() {
        "Fn" | "FnMut" | "FnOnce" => function_pointer(text),
        "Any" => wrong(
            Rule::DynAny,
            format!("`{text}` can be anything, and nobody can tell what"),
            "an enum of what it can be; `AnyHandle` for a handle of any interface",
        ),
        name => wrong(
            Rule::TraitObject,
            format!("`{text}` is a trait object without a handle"),
            format!("`Handle<dyn {name}>`"),
        ),
    }
}

/// What is wrong with a type of the standard library, if it is one that people reach for.
fn forbidden(name: &str, arguments: &str, text: &str) -> Option<Kind> {
    let private = |help: String| {
        Some(wrong(
            Rule::PrivateHeap,
            format!("`{text}` lives on the private heap of one domain"),
            help,
        ))
    };
    match name {
        "Box" if arguments.starts_with("dyn Fn") => Some(function_pointer(text)),
        "Box" if arguments.contains("dyn Any") => Some(wrong(
            Rule::DynAny,
            format!("`{text}` can be anything, and nobody can tell what"),
            "an enum of what it can be; `AnyHandle` for a handle of any interface",
        )),
        "Box" if arguments.starts_with("dyn ") => private(format!("`Handle<{arguments}>`")),
        "Box" => private(format!(
            "`RRef<{arguments}>`, which lives on the shared heap"
        )),
        "Vec" => private(format!(
            "`RVec<{arguments}>`, which lives on the shared heap (plain elements, fixed length)"
        )),
        "String" => private("`Text<32>` for a short name, `RVec<u8>` for longer text".to_string()),
        "Rc" | "Arc" => private(
            "`RRef<T>` for one owner; `Handle<dyn I>`, which can be duplicated, for several"
                .to_string(),
        ),
        "Cow" => private("`RVec<u8>`".to_string()),
        it if COLLECTIONS.contains(&it) => {
            private("`RVec` of plain structs; each domain keeps its own collection".to_string())
        }
        it if CELLS.contains(&it) || it.starts_with("Atomic") => Some(wrong(
            Rule::PrivateHeap,
            format!("`{text}` changes behind a shared reference"),
            "the value itself, moved in and given back; locks stay inside the domain",
        )),
        _ => None,
    }
}
