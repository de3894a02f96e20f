//! Attributes: doc comments and those of the interface language.

use super::Parser;
use crate::bounds::LONGEST_BUDGET;
use crate::diagnostics::Rule;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;

/// Where attributes stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At the head of a file.
    File,
    /// At a trait.
    Trait,
    /// At a struct or enum.
    Definition,
    /// At a method of an interface.
    Method,
    /// At the function of an entry.
    Start,
    /// At a variant of an enum.
    Variant,
    /// At a field or a parameter.
    Other,
}

/// What the attributes of one item say.
#[derive(Default)]
pub(super) struct Attributes {
    pub docs: Vec<String>,
    pub plain: bool,
    pub domain: bool,
    pub base: bool,
    pub gone: bool,
    pub unbounded: bool,
    pub frees: bool,
    pub budget: Option<u32>,
    pub offers: Vec<String>,
}

/// Whether `c` steers the direction in which text is shown.
fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Parser<'_> {
    /// Reads attributes; unknown and misplaced ones are errors.
    pub(super) fn attributes(&mut self, attributes: &[syn::Attribute], place: Place) -> Attributes {
        let mut found = Attributes::default();
        for attribute in attributes {
            self.attribute(attribute, place, &mut found);
        }
        if let (true, Some(_), Some(first)) = (found.unbounded, found.budget, attributes.first()) {
            let span = self.span(first.pound_token.span);
            self.error(
                Rule::Budget,
                span,
                "the method is unbounded and has a budget",
                "one of the two",
            );
        }
        found
    }

    fn attribute(&mut self, attribute: &syn::Attribute, place: Place, found: &mut Attributes) {
        let name = attribute
            .path()
            .get_ident()
            .map(ToString::to_string)
            .unwrap_or_default();
        match (name.as_str(), place, &attribute.meta) {
            ("doc", _, syn::Meta::NameValue(pair)) => self.doc(pair, found),
            ("plain", Place::Definition, syn::Meta::Path(_)) => found.plain = true,
            ("domain", Place::Trait, syn::Meta::Path(_)) => found.domain = true,
            ("base", Place::Trait, syn::Meta::Path(_)) => found.base = true,
            ("gone", Place::Variant, syn::Meta::Path(_)) => found.gone = true,
            ("unbounded", Place::Method, syn::Meta::Path(_)) => found.unbounded = true,
            ("frees", Place::Method, syn::Meta::Path(_)) => found.frees = true,
            ("budget", Place::Method, syn::Meta::List(list)) => self.budget(list, found),
            ("offers", Place::Trait | Place::Start, syn::Meta::List(list)) => {
                self.offers(list, found)
            }
            _ => self.unknown(attribute),
        }
    }

    fn doc(&mut self, pair: &syn::MetaNameValue, found: &mut Attributes) {
        if let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) = &pair.value
        {
            self.plain_text(&text.value(), pair);
            // A block comment has several lines in one attribute.
            found
                .docs
                .extend(text.value().lines().map(|line| line.trim_end().to_string()));
            if text.value().is_empty() {
                found.docs.push(String::new());
            }
        }
    }

    /// What is generated has these comments in it, and tools such as `cargo test` compile and run
    /// the code blocks that they find in comments. What may begin one, however it is nested in
    /// lists and quotations, is refused.
    fn plain_text(&mut self, text: &str, pair: &syn::MetaNameValue) {
        let is_code = ["    ", "\t", "```", "~~~"]
            .iter()
            .any(|it| text.contains(it));
        let is_control = |c: char| c != '\n' && c.is_control();
        if is_code || text.contains(is_control) || text.contains(is_bidirectional) {
            let span = self.span(pair.path.span());
            let help =
                "plain text; lists are indented by two spaces, names stand in single backquotes";
            let message = "documentation with a code block or a control character in it";
            self.error(Rule::DocText, span, message, help);
        }
    }

    fn budget(&mut self, list: &syn::MetaList, found: &mut Attributes) {
        let number = list
            .parse_args::<syn::LitInt>()
            .ok()
            .and_then(|it| it.base10_parse::<u32>().ok());
        match number {
            Some(number @ 1..=LONGEST_BUDGET) => found.budget = Some(number),
            _ => {
                let span = self.span(list.delimiter.span().join());
                let help = "`#[budget(30000)]` for half a minute, or `#[unbounded]` for a call that may block for ever";
                self.error(
                    Rule::Budget,
                    span,
                    format!("`{}` is not a budget in milliseconds", list.tokens),
                    help,
                );
            }
        }
    }

    fn offers(&mut self, list: &syn::MetaList, found: &mut Attributes) {
        let parser = Punctuated::<syn::Ident, syn::Token![,]>::parse_terminated;
        match list.parse_args_with(parser) {
            Ok(names) => found.offers = names.iter().map(ToString::to_string).collect(),
            Err(error) => {
                let span = self.span(error.span());
                self.error(
                    Rule::Attribute,
                    span,
                    format!("`{}` is not a list of names", list.tokens),
                    "`#[offers(terminal, errors)]`",
                );
            }
        }
    }

    fn unknown(&mut self, attribute: &syn::Attribute) {
        let span = self.span(attribute.pound_token.span);
        let text = self.text(attribute);
        let help = "`#[plain]` at a struct or enum of plain data, `#[domain]` at the trait that declares a domain's entry, \
                    `#[unbounded]`, `#[budget(MILLISECONDS)]` or `#[frees]` at a method, `#[offers(NAME, ..)]` beside `#[domain]`, \
                    `#[base]` at an interface, `#[gone]` at a variant of its error; derives are automatic";
        self.error(
            Rule::Attribute,
            span,
            format!("`{text}` is unknown, or has no meaning here"),
            help,
        );
    }
}
