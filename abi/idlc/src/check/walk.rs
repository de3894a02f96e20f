//! The walk over the graph of types: every type where it is used, with the path that led there.

use crate::bounds::{LARGEST_SHARED, LONGEST_NAME, MOST_ERRORS, MOST_NESTED};
use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Body, Definition, Facts, Kind, Model, Type};
use crate::source::Span;
use std::collections::BTreeSet;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Passed directly.
    Value,
    /// In an `RRef` or `RVec`.
    Shared,
    /// Nothing says, because no interface reaches the type: only what is wrong everywhere is
    /// reported.
    Unknown,
}

/// Walks types and collects errors.
pub struct Walker<'a> {
    /// The model that the types belong to.
    pub model: &'a Model,
    /// What was found.
    pub errors: Vec<Diagnostic>,
    /// How the present type was reached, outermost first.
    path: Vec<String>,
    /// The definitions on the path.
    open: Vec<String>,
    /// Definitions that were walked.
    done: BTreeSet<(String, Place)>,
}

impl<'a> Walker<'a> {
    /// A walker that has seen nothing.
    pub fn new(model: &'a Model) -> Self {
        Walker {
            model,
            errors: Vec::new(),
            path: Vec::new(),
            open: Vec::new(),
            done: BTreeSet::new(),
        }
    }

    /// Does `walk` with `step` at the end of the path.
    pub fn at(&mut self, step: String, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    /// Reports an error about `ty`, with the path.
    pub fn report(
        &mut self,
        rule: Rule,
        ty: &Type,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report_at(rule, ty.span, message, help);
    }

    /// Reports an error at a place that is no type.
    pub fn report_at(
        &mut self,
        rule: Rule,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.errors.len() < MOST_ERRORS {
            let error = Diagnostic::new(rule, span, message, help);
            self.errors.push(error.reached_by(&self.path));
        }
    }

    /// Walks a definition that perhaps no interface reaches.
    pub fn definition(&mut self, definition: &Definition) {
        if !self.done.iter().any(|(name, _)| *name == definition.name) {
            self.body(definition, Place::Unknown);
        }
    }

    /// Walks a type.
    pub fn ty(&mut self, ty: &Type, place: Place) {
        match &ty.kind {
            Kind::Scalar(_) | Kind::RpcError | Kind::Text(_) => {}
            Kind::Float(name) if place == Place::Value => self.report(
                Rule::FloatByValue,
                ty,
                format!("`{name}` is passed by value, and how depends on the compilation target"),
                format!("`RRef<{name}>` or `RVec<{name}>`, or the bits: `u{}` with `to_bits` and `from_bits`", &name[1..]),
            ),
            Kind::Float(_) => {}
            Kind::Named(name) => self.named(name, ty, place),
            Kind::RRef(inner) => {
                self.shared(inner);
                self.at(format!("`{}`", ty.text), |walker| walker.ty(inner, Place::Shared));
            }
            Kind::RVec(inner) => self.elements(ty, inner),
            Kind::Handle(name) => self.handle(name, ty, place),
            Kind::AnyHandle => self.handle_place(ty, place),
            Kind::Option(inner) | Kind::Array(inner, _) => self.ty(inner, place),
            Kind::Result(ok, error) => {
                self.ty(ok, place);
                self.ty(error, place);
            }
            Kind::Tuple(elements) => elements.iter().for_each(|it| self.ty(it, place)),
            Kind::UserBuf => self.user_buf(ty),
            Kind::Borrow(inner) if matches!(inner.kind, Kind::UserBuf) => self.user_buf(ty),
            Kind::Borrow(inner) => self.borrow(ty, inner),
            Kind::Wrong(wrong) => self.report(wrong.rule, ty, &wrong.message, &wrong.help),
        }
    }

    /// A borrow in a place where there may be none.
    pub fn borrow(&mut self, ty: &Type, inner: &Type) {
        let written = &inner.text;
        let help = match &inner.kind {
            Kind::RRef(_) | Kind::RVec(_) => {
                format!("`{written}`, moved; only arguments of methods are lent")
            }
            Kind::Handle(_) | Kind::AnyHandle => {
                format!(
                    "`{written}` by value; a caller that wants to keep its own passes `handle.duplicate()?`"
                )
            }
            Kind::Named(_) => {
                format!("`{written}` by value if it is small, otherwise `&RRef<{written}>`")
            }
            _ => format!("`{written}` by value"),
        };
        self.report(
            Rule::Borrow,
            ty,
            format!("`{}` may point into a domain's private memory", ty.text),
            help,
        );
    }

    /// The memory of a program where it is not lent.
    fn user_buf(&mut self, ty: &Type) {
        let message = format!(
            "`{}` is memory of a program that somebody would keep",
            ty.text
        );
        let help = "`&UserBuf`, as an argument of a method and not inside of another type; for bytes that are kept, `RVec<u8>`";
        self.report(Rule::UserBuf, ty, message, help);
    }

    fn named(&mut self, name: &str, ty: &Type, place: Place) {
        let Some(definition) = self.model.definition(name) else {
            return self.undefined(name, ty);
        };
        if self.open.iter().any(|it| it == name) {
            let help = "`RVec` of plain structs that refer to each other by index, or a `Handle<dyn I>` that gives the next part";
            return self.report(
                Rule::Recursive,
                ty,
                format!("`{name}` contains itself"),
                help,
            );
        }
        // Deeper is refused elsewhere, and this calls itself.
        let is_deep = self.open.len() > MOST_NESTED;
        if !is_deep && !self.done.contains(&(name.to_string(), place)) {
            self.body(definition, place);
        }
    }

    fn body(&mut self, definition: &Definition, place: Place) {
        let name = &definition.name;
        self.done.insert((name.clone(), place));
        self.open.push(name.clone());
        let what = if matches!(definition.body, Body::Struct(_)) {
            "struct"
        } else {
            "enum"
        };
        for (variant, field) in definition.fields() {
            let step = match variant {
                Some(variant) => format!(
                    "{what} `{name}`, variant `{variant}`, field `{}`",
                    field.name
                ),
                None => format!("{what} `{name}`, field `{}`", field.name),
            };
            self.at(step, |walker| walker.ty(&field.ty, place));
        }
        self.open.pop();
    }

    fn undefined(&mut self, name: &str, ty: &Type) {
        if self.model.interface(name).is_some() {
            let help = format!("`Handle<dyn {name}>`");
            return self.report(
                Rule::TraitObject,
                ty,
                format!("`{name}` is an interface, not a type"),
                help,
            );
        }
        let help = match self.nearest(name) {
            Some(near) => {
                format!("`{near}`, if that was meant; otherwise define `{name}` in an .idl file")
            }
            None => "a built-in type, or a struct or enum that some .idl file defines".to_string(),
        };
        self.report(
            Rule::UnknownType,
            ty,
            format!("`{name}` is defined nowhere"),
            help,
        );
    }

    /// The defined or built-in type whose name is most like `name`.
    fn nearest(&self, name: &str) -> Option<&'a str> {
        const BUILT_IN: &[&str] = &[
            "RpcError",
            "AnyHandle",
            "UserBuf",
            "u8",
            "u16",
            "u32",
            "u64",
            "usize",
            "bool",
            "char",
        ];
        let defined = self.model.definitions.iter().map(|it| it.name.as_str());
        let all = defined.chain(BUILT_IN.iter().copied());
        all.map(|it| (distance(it, name), it))
            .filter(|(far, _)| *far <= 2 && *far < name.len())
            .min()
            .map(|(_, it)| it)
    }

    /// The value of an `RRef` or an element of an `RVec` has a bounded size: trusted code goes
    /// through it, and nothing ends a thread meanwhile.
    fn shared(&mut self, inner: &Type) {
        let Facts { size, depth, .. } = self.model.facts_of(inner);
        if size > LARGEST_SHARED && depth <= MOST_NESTED {
            let message = format!(
                "`{}` takes up to {size} bytes, more than {LARGEST_SHARED}",
                inner.text
            );
            let help = "`RVec<T>` for many elements";
            self.report(Rule::TooLarge, inner, message, help);
        }
    }

    fn elements(&mut self, ty: &Type, inner: &Type) {
        self.shared(inner);
        if let Some(what) = super::plain::not_plain(self.model, inner) {
            let message = format!("the elements of `{}` are not plain data: {what}", ty.text);
            let help =
                "elements of plain data, the rest beside the `RVec`; or an array `[T; N]` by value";
            self.report(Rule::VecElement, ty, message, help);
        } else {
            self.at(format!("`{}`", ty.text), |walker| {
                walker.ty(inner, Place::Shared)
            });
        }
    }

    fn handle(&mut self, name: &str, ty: &Type, place: Place) {
        self.handle_place(ty, place);
        if self.model.interface(name).is_none() {
            let known: Vec<_> = self
                .model
                .interfaces
                .iter()
                .map(|it| (distance(&it.name, name), &it.name))
                .collect();
            let help = match known.iter().min().filter(|(far, _)| *far <= 2) {
                Some((_, near)) => format!("`Handle<dyn {near}>`, if that was meant"),
                None => format!(
                    "`dyn I` with an interface of an .idl file; or define `pub trait {name}` in one"
                ),
            };
            self.report(
                Rule::TraitObject,
                ty,
                format!("`{name}` is not an interface"),
                help,
            );
        }
    }

    fn handle_place(&mut self, ty: &Type, place: Place) {
        if place == Place::Shared {
            let help = "the handle by value, beside the `RRef` or `RVec`: as an argument of its own, or in a struct that is passed by value";
            self.report(
                Rule::HandleInShared,
                ty,
                format!("`{}` lies in an object on the shared heap", ty.text),
                help,
            );
        }
    }
}

/// How many letters must be added, removed or changed to make one name of the other. Names of which
/// one is much longer, or longer than a name may be, are not compared: as far as can be.
fn distance(a: &str, b: &str) -> usize {
    if a.len().max(b.len()) > LONGEST_NAME || a.len().abs_diff(b.len()) > LONGEST_NAME / 4 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for j in 0..b.len() {
            let changed = diagonal + usize::from(letter != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        assert_eq!(distance("Block", "Block"), 0);
        assert_eq!(distance("Blcok", "Block"), 2);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(distance("FsError", "FSEror"), 2);
    }
}
