//! The methods of interfaces: what they take and what they give.

use super::walk::{Place, Walker};
use crate::bounds::{LARGEST_BY_VALUE, MOST_NESTED};
use crate::diagnostics::Rule;
use crate::model::{Argument, Interface, Kind, Method, Type};

/// Checks an interface and everything that it reaches.
pub fn check(walker: &mut Walker<'_>, interface: &Interface) {
    for method in &interface.methods {
        let step = format!("interface `{}`, method `{}`", interface.name, method.name);
        walker.at(step, |walker| {
            for it in &method.arguments {
                walker.at(format!("argument `{}`", it.name), |walker| {
                    argument(walker, it)
                });
            }
            all_fit(walker, method);
            walker.at("result".to_string(), |walker| result(walker, method));
        });
    }
}

fn argument(walker: &mut Walker<'_>, argument: &Argument) {
    match &argument.ty.kind {
        Kind::Borrow(inner) => match &inner.kind {
            Kind::RRef(_) | Kind::RVec(_) => walker.ty(inner, Place::Value),
            Kind::Wrong(_) => walker.ty(inner, Place::Value),
            Kind::UserBuf => {}
            _ => walker.borrow(&argument.ty, inner),
        },
        _ => walker.ty(&argument.ty, Place::Value),
    }
    fits(walker, &argument.ty);
}

fn result(walker: &mut Walker<'_>, method: &Method) {
    let result = &method.result;
    match &result.kind {
        Kind::Result(_, error) => {
            walker.ty(result, Place::Value);
            error_type(walker, error);
            fits(walker, result);
        }
        Kind::Wrong(_) => walker.ty(result, Place::Value),
        _ => {
            let help = format!(
                "`RpcResult<{}>`, or `Result<{}, E>` with an error enum of its own",
                result.text, result.text
            );
            walker.report(
                Rule::Result,
                result,
                format!(
                    "`{}` gives `{}`, but every call can fail",
                    method.name, result.text
                ),
                help,
            );
            walker.ty(result, Place::Value);
        }
    }
}

fn error_type(walker: &mut Walker<'_>, error: &Type) {
    let good = match &error.kind {
        Kind::RpcError | Kind::Wrong(_) => true,
        // A name that is defined nowhere is reported as that.
        Kind::Named(name) => walker.model.definition(name).is_none_or(|it| it.is_error()),
        _ => false,
    };
    if !good {
        let help = "an enum with a variant `Rpc(RpcError)`, documented as the failure of the call itself; `?` then works on both";
        walker.report(
            Rule::ErrorType,
            error,
            format!("`{}` cannot say that the call itself failed", error.text),
            help,
        );
    }
}

/// All arguments together fit where one may: they lie on the stack at once, more than once on their
/// way through a proxy, and a call promises its callee no more stack than is known beforehand.
fn all_fit(walker: &mut Walker<'_>, method: &Method) {
    let sizes: Vec<u64> = method
        .arguments
        .iter()
        .filter_map(|it| size(walker, &it.ty))
        .collect();
    let sum = sizes.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
    let one_is = sizes.iter().any(|size| *size > LARGEST_BY_VALUE);
    if sum <= LARGEST_BY_VALUE || one_is {
        return;
    }
    let message = format!(
        "the arguments of `{}` take up to {sum} bytes of the stack together, more than {LARGEST_BY_VALUE}",
        method.name,
    );
    let help = "`RRef<T>` for the large ones, or `RVec<T>` for many elements; handles stay outside";
    walker.report_at(Rule::TooLarge, method.span, message, help);
}

fn fits(walker: &mut Walker<'_>, ty: &Type) {
    let size = size(walker, ty).unwrap_or(0);
    if size > LARGEST_BY_VALUE {
        let message = format!(
            "`{}` takes up to {size} bytes of the stack, more than {LARGEST_BY_VALUE}",
            ty.text
        );
        walker.report(
            Rule::TooLarge,
            ty,
            message,
            "`RRef<T>`, or `RVec<T>` for many elements; handles stay outside",
        );
    }
}

/// The size of a value, in bytes; `None` for one that another rule refuses, since it is nested too
/// deep or contains itself.
fn size(walker: &Walker<'_>, ty: &Type) -> Option<u64> {
    let facts = walker.model.facts_of(ty);
    (facts.depth <= MOST_NESTED).then_some(facts.size)
}
