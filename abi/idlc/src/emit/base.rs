//! Bases: for an interface marked `#[base]`, a second trait with a body for every method.
//!
//! An object that implements `IBase` has to say how it passes a call on, and writes only those
//! methods that it does otherwise. All others go that way, also one that the interface gets later.
//! The code runs in the domain that implements it, and nothing in it is trusted.

use super::{Code, INSIDE, free};
use crate::model::{Interface, Kind, Method, Model};
use std::collections::BTreeSet;

/// Writes the base of `interface`, and that who implements it implements the interface.
pub fn emit(code: &mut Code, model: &Model, interface: &Interface) {
    let name = &interface.name;
    code.line("");
    code.line(format!(
        "/// [`{name}`] for objects that pass on every call which they do not write themselves."
    ));
    code.open(format!("pub trait {name}Base: Send + Sync + 'static {{"));
    emit_pass(code, interface);
    for method in &interface.methods {
        emit_default(code, model, method);
    }
    code.close("}");
    code.line("");
    code.open(format!("impl<T: {name}Base> {name} for T {{"));
    for method in &interface.methods {
        emit_delegation(code, name, method);
    }
    code.close("}");
}

fn emit_pass(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    let errors: BTreeSet<String> = interface.methods.iter().filter_map(error).collect();
    // Most interfaces have one type of errors; then whoever writes this can name its variants.
    let (generic, error) = match errors.iter().next() {
        Some(only) if errors.len() == 1 => ("", only.as_str()),
        _ => (", E: Failure", "E"),
    };
    code.line("/// Makes `call` on the object behind, or answers with an error in its place. May make it again; what it");
    code.line("/// moved is gone then, and it fails like one that crashed.");
    code.line("///");
    code.line("/// # Errors");
    code.line("/// Those of the call.");
    code.line(format!(
        "fn pass<T{generic}>(&self, call: impl FnMut(&dyn {name}) -> Result<T, {error}>) -> Result<T, {error}>;"
    ));
}

fn error(method: &Method) -> Option<String> {
    match &method.result.kind {
        Kind::Result(_, error) => Some(INSIDE.ty(error)),
        _ => None,
    }
}

/// The arguments that can be passed once only, since they own something.
fn moved(model: &Model, method: &Method) -> String {
    let owning = method.arguments.iter().filter(|it| model.owns(&it.ty));
    let names: Vec<_> = owning.map(|it| it.name.as_str()).collect();
    names.join(", ")
}

fn emit_default(code: &mut Code, model: &Model, method: &Method) {
    code.docs(&method.docs);
    emit_head(code, method);
    let names: Vec<_> = method.arguments.iter().map(|it| it.name.as_str()).collect();
    let [it, rest] = ["it", "moved"].map(|name| free(method, name));
    let call = format!("{it}.{}({})", method.name, names.join(", "));
    let moved = moved(model, method);
    if moved.is_empty() {
        code.line(format!("self.pass(|{it}| {call})"));
    } else {
        code.line(format!("let mut {rest} = Some(({moved},));"));
        code.open(format!("self.pass(|{it}| match {rest}.take() {{"));
        code.line(format!("Some(({moved},)) => {call},"));
        code.line("None => Err(RpcError::DomainCrashed.into()),");
        code.close("})");
    }
    code.close("}");
}

fn emit_delegation(code: &mut Code, name: &str, method: &Method) {
    code.line("#[inline]");
    emit_head(code, method);
    let names = method.arguments.iter().map(|it| it.name.as_str());
    let arguments: Vec<_> = ["self"].into_iter().chain(names).collect();
    code.line(format!(
        "{name}Base::{}({})",
        method.name,
        arguments.join(", ")
    ));
    code.close("}");
}

fn emit_head(code: &mut Code, method: &Method) {
    if method.arguments.len() > 6 {
        code.line("#[allow(clippy::too_many_arguments)]");
    }
    let tail = format!(" -> {} {{", INSIDE.ty(&method.result));
    code.list(
        &format!("fn {}", method.name),
        &INSIDE.arguments(method),
        &tail,
    );
    code.depth += 1;
}
