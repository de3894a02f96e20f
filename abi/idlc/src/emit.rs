//! What is written from a checked model. Every emitter gives the text of a whole file.
//!
//! The code is written as text rather than as syntax trees, so that the comments on its `unsafe`
//! stay in it: generated code is read, by those who audit it and by the golden tests.

mod base;
mod entries;
pub mod hostile;
pub mod interfaces;
pub mod manual;
pub mod proxies;
pub mod shadow;

use crate::model::{Kind, Method, Type};
use std::fmt::Write;

/// The longest line of generated code, where it can be broken.
const LINE: usize = 110;

/// Text that grows line by line, indented.
#[derive(Default)]
struct Code {
    text: String,
    depth: usize,
}

impl Code {
    /// A line; an empty one has no spaces in it.
    fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// A line that opens a block.
    fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// A line that closes a block.
    fn close(&mut self, line: impl AsRef<str>) {
        self.depth -= 1;
        self.line(line);
    }

    /// A doc comment.
    fn docs(&mut self, docs: &[String]) {
        for line in docs {
            self.line(format!("///{line}"));
        }
    }

    /// `head(a, b)tail` on one line if it fits, otherwise with one part a line.
    fn list(&mut self, head: &str, parts: &[String], tail: &str) {
        let line = format!("{head}({}){tail}", parts.join(", "));
        if line.len() + 4 * self.depth <= LINE {
            return self.line(line);
        }
        self.open(format!("{head}("));
        for part in parts {
            self.line(format!("{part},"));
        }
        self.close(format!("){tail}"));
    }
}

/// How names are written in the emitted code.
#[derive(Clone, Copy)]
struct Names {
    /// In front of every name that the crate `interfaces` exports, as `interfaces::`.
    prefix: &'static str,
    /// `RpcResult<T>` is written out as `Result<T, RpcError>`.
    spell_out: bool,
}

/// Inside the crate `interfaces`.
const INSIDE: Names = Names {
    prefix: "",
    spell_out: false,
};

impl Names {
    /// A type in Rust.
    fn ty(self, ty: &Type) -> String {
        let Names { prefix, .. } = self;
        match &ty.kind {
            Kind::Scalar(name) | Kind::Float(name) => (*name).to_string(),
            Kind::RpcError => format!("{prefix}RpcError"),
            Kind::Text(length) => format!("{prefix}Text<{length}>"),
            Kind::Named(name) => format!("{prefix}{name}"),
            Kind::RRef(inner) => format!("{prefix}RRef<{}>", self.ty(inner)),
            Kind::RVec(inner) => format!("{prefix}RVec<{}>", self.ty(inner)),
            Kind::Handle(name) => format!("{prefix}Handle<dyn {prefix}{name}>"),
            Kind::AnyHandle => format!("{prefix}AnyHandle"),
            Kind::UserBuf => format!("{prefix}UserBuf<'_>"),
            Kind::Option(inner) => format!("Option<{}>", self.ty(inner)),
            Kind::Result(ok, error) if matches!(error.kind, Kind::RpcError) && !self.spell_out => {
                format!("{prefix}RpcResult<{}>", self.ty(ok))
            }
            Kind::Result(ok, error) => format!("Result<{}, {}>", self.ty(ok), self.ty(error)),
            Kind::Tuple(elements) => match &elements[..] {
                [only] => format!("({},)", self.ty(only)),
                all => format!(
                    "({})",
                    all.iter()
                        .map(|it| self.ty(it))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            },
            Kind::Array(element, length) => format!("[{}; {length}]", self.ty(element)),
            Kind::Borrow(inner) => format!("&{}", self.ty(inner)),
            Kind::Wrong(_) => ty.text.clone(),
        }
    }

    /// `&self` and the arguments of a method.
    fn arguments(self, method: &Method) -> Vec<String> {
        let mut parts = vec!["&self".to_string()];
        parts.extend(
            method
                .arguments
                .iter()
                .map(|it| format!("{}: {}", it.name, self.ty(&it.ty))),
        );
        parts
    }
}

/// `name`, or something like it that no parameter of `method` is called: generated code has names
/// of its own beside those of a file.
fn free(method: &Method, name: &str) -> String {
    let mut name = name.to_string();
    while method.arguments.iter().any(|it| it.name == name) {
        name.push('_');
    }
    name
}

/// A number with commas between thousands.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        let _ = out.write_char(digit);
    }
    out
}
