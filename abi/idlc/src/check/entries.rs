//! The entries of domains: what they want and offer.

use super::walk::{Place, Walker};
use crate::bounds::{MOST_OFFERS, MOST_WANTS};
use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Entry, Kind, Type, handle};
use std::collections::BTreeSet;

/// Checks an entry and the interfaces that it names.
pub fn check(walker: &mut Walker<'_>, entry: &Entry) {
    walker.at(format!("entry `{}`", entry.name), |walker| {
        wants(walker, entry);
        walker.at("result".to_string(), |walker| offers(walker, entry));
        ports(walker, entry);
    });
}

fn wants(walker: &mut Walker<'_>, entry: &Entry) {
    let last = entry.arguments.len().saturating_sub(1);
    for (index, argument) in entry.arguments.iter().enumerate() {
        walker.at(format!("parameter `{}`", argument.name), |walker| {
            let options = argument.is_options() && index == last;
            if options || wrong(&argument.ty) || handle(&argument.ty).is_some() {
                return walker.ty(&argument.ty, Place::Value);
            }
            let message = format!("`{}: {}` is nothing that a domain can be granted", argument.name, argument.ty.text);
            let help = "`Handle<dyn I>`, `Option<Handle<dyn I>>` if it starts without it too, and at last perhaps `options: RVec<u8>`";
            walker.report(Rule::Entry, &argument.ty, message, help);
        });
    }
}

fn offers(walker: &mut Walker<'_>, entry: &Entry) {
    let result = &entry.result;
    if wrong(result) {
        return walker.ty(result, Place::Value);
    }
    let Some(error) = error_of(result).filter(|it| matches!(it.kind, Kind::RpcError)) else {
        let help =
            "`RpcResult<Handle<dyn I>>`, a tuple or array of handles in it, or `RpcResult<()>`";
        return walker.report(
            Rule::Entry,
            result,
            format!("`start` gives `{}`", result.text),
            help,
        );
    };
    walker.ty(error, Place::Value);
    for offer in entry.offered() {
        if handle(offer).is_none() && !wrong(offer) {
            let help = "`Handle<dyn I>`, or `Option<Handle<dyn I>>` if it is not always offered";
            walker.report(
                Rule::Entry,
                offer,
                format!("`{}` is nothing that a domain can offer", offer.text),
                help,
            );
        } else {
            walker.ty(offer, Place::Value);
        }
    }
}

fn ports(walker: &mut Walker<'_>, entry: &Entry) {
    let ports = entry.ports();
    let (offers, wants): (Vec<_>, Vec<_>) = ports.iter().partition(|port| port.offer);
    let mut errors = Vec::new();
    let mut error = |message: String, help: &str| {
        errors.push(Diagnostic::new(
            Rule::Entry,
            entry.span,
            format!("entry `{}`: {message}", entry.name),
            help,
        ));
    };
    if wants.len() > MOST_WANTS || offers.len() > MOST_OFFERS {
        let message = format!("{} wants and {} offers", wants.len(), offers.len());
        error(
            message,
            "at most 16 wants and 4 offers; one more interface can hand out several handles",
        );
    }
    if !entry.offer_names.is_empty() && entry.offer_names.len() != offers.len() {
        let message = format!(
            "{} names for {} offers",
            entry.offer_names.len(),
            offers.len()
        );
        error(
            message,
            "one name in `#[offers(..)]` for each handle that `start` gives",
        );
    }
    let distinct: BTreeSet<_> = offers.iter().map(|port| &port.name).collect();
    if distinct.len() != offers.len() {
        error(
            "two offers have the same name".to_string(),
            "a name of its own for each, in `#[offers(..)]`",
        );
    }
    walker.errors.extend(errors);
}

fn error_of(result: &Type) -> Option<&Type> {
    match &result.kind {
        Kind::Result(_, error) => Some(error),
        _ => None,
    }
}

/// Whether another rule reports the type.
fn wrong(ty: &Type) -> bool {
    matches!(ty.kind, Kind::Wrong(_))
}
