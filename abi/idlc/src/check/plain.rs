//! Plain data: what `#[plain]` promises.

use crate::diagnostics::{Diagnostic, Rule};
use crate::model::{Kind, Model, Type};

/// Checks the fields of all `#[plain]` types.
pub fn check(model: &Model, errors: &mut Vec<Diagnostic>) {
    for definition in model.definitions.iter().filter(|it| it.plain) {
        for (variant, field) in definition.fields() {
            let Some(what) = not_plain(model, &field.ty) else {
                continue;
            };
            let message = format!("`{}` is marked #[plain], but {what}", definition.name);
            let help = "plain data only (numbers, `Text<N>`, arrays, `#[plain]` types); or leave the mark out, the type can still be passed by value";
            let place = variant.map_or(String::new(), |it| format!("variant `{it}`, "));
            let path = [format!(
                "type `{}`, {place}field `{}`",
                definition.name, field.name
            )];
            errors.push(
                Diagnostic::new(Rule::PlainField, field.ty.span, message, help).reached_by(&path),
            );
        }
    }
}

/// Why a type is not plain data, or `None` if it is (or is wrong in a way that another rule
/// reports).
pub fn not_plain(model: &Model, ty: &Type) -> Option<String> {
    match &ty.kind {
        Kind::Scalar(_) | Kind::Float(_) | Kind::RpcError | Kind::Text(_) => None,
        Kind::Option(inner) | Kind::Array(inner, _) => not_plain(model, inner),
        Kind::Result(ok, error) => not_plain(model, ok).or_else(|| not_plain(model, error)),
        Kind::Tuple(elements) => elements.iter().find_map(|it| not_plain(model, it)),
        Kind::RRef(_) | Kind::RVec(_) => {
            Some(format!("`{}` owns an object on the shared heap", ty.text))
        }
        Kind::Handle(_) | Kind::AnyHandle => Some(format!("`{}` is a handle", ty.text)),
        Kind::Named(name) => {
            let definition = model.definition(name)?;
            (!definition.plain).then(|| format!("`{name}` is not marked #[plain]"))
        }
        Kind::UserBuf | Kind::Borrow(_) | Kind::Wrong(_) => None,
    }
}
