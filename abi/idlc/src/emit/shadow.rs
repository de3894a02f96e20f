//! Skeletons of shadows: safe domains that stand in front of another one, have the same interface,
//! and have it restarted when it crashes.
//!
//! A skeleton compiles as it is. It makes a call again on the new instance wherever all that the
//! call needs is still there: arguments that are plain, that are lent, or that can be copied.
//! Whether doing a call twice is right, and what must be set up again in a new instance, is for the
//! author to decide.

use super::{Code, INSIDE, free};
use crate::model::{Argument, Interface, Kind, Method, Model, snake_case};
use std::collections::BTreeSet;

/// The text of the `lib.rs` of a shadow of this interface.
pub fn emit(model: &Model, interface: &Interface) -> String {
    let mut code = Code::default();
    emit_head(&mut code, interface);
    emit_imports(&mut code, model, interface);
    emit_start(&mut code, interface);
    code.line("");
    code.open(format!("impl {0} for Shadow {{", interface.name));
    for method in &interface.methods {
        emit_method(&mut code, model, method);
    }
    code.close("}");
    code.text
}

fn emit_head(code: &mut Code, interface: &Interface) {
    let Interface { name, .. } = interface;
    let module = snake_case(name);
    code.line(format!(
        "//! A shadow of `{name}`: hides that the domain behind it crashes."
    ));
    code.line("//!");
    code.line("//! Calls go to the instance that serves now. If it crashes in a call, a new one is asked for, and the");
    code.line("//! call is made again where that is right: see `domains/libs/respawn`, which `Cargo.toml` has to name.");
    code.line("//!");
    code.line(format!(
        "//! Its entry, in `{module}-shadow.idl` beside `Cargo.toml`:"
    ));
    code.line("//! ```text");
    code.line(format!("//! //! The shadow of `{name}`."));
    code.line(format!(
        "//! /// Hides crashes of a domain that serves `{name}`."
    ));
    code.line("//! #[domain]");
    code.line(format!("//! pub trait {name}Shadow {{"));
    code.line(format!(
        "//!     fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn {name}>>;"
    ));
    code.line("//! }");
    code.line("//! ```");
    code.line("#![no_std]");
    code.line("#![forbid(unsafe_code)]");
}

fn emit_imports(code: &mut Code, model: &Model, interface: &Interface) {
    let mut names: BTreeSet<String> = ["Handle", "Respawn", "RpcResult"]
        .map(str::to_string)
        .into();
    names.insert(interface.name.clone());
    for method in &interface.methods {
        method
            .arguments
            .iter()
            .for_each(|it| mentioned(&INSIDE.ty(&it.ty), &mut names));
        mentioned(&INSIDE.ty(&method.result), &mut names);
    }
    let known = |name: &String| {
        let built_in = [
            "AnyHandle",
            "Handle",
            "RRef",
            "RVec",
            "RpcError",
            "RpcResult",
            "Text",
        ];
        built_in.contains(&name.as_str())
            || model.definition(name).is_some()
            || model.interface(name).is_some()
    };
    let names: Vec<_> = names.into_iter().filter(|it| known(it)).collect();
    code.line("");
    code.line(format!("use interfaces::{{{}}};", names.join(", ")));
    code.line("use respawn::Client;");
}

/// Every name in a type as it is written.
fn mentioned(text: &str, names: &mut BTreeSet<String>) {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    names.extend(words.filter(|it| !it.is_empty()).map(str::to_string));
}

fn emit_start(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    code.line("");
    code.line("/// Starts the shadow in front of what `driver` restarts.");
    code.line("///");
    code.line("/// # Errors");
    code.line("/// If there is no memory.");
    code.open(format!(
        "pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn {name}>> {{"
    ));
    code.line("// A new instance knows nothing: set it up here as the old one was, before anybody calls it.");
    code.line(format!("let set_up = |_: &Handle<dyn {name}>| Ok(());"));
    code.line(format!(
        "Handle::new(Shadow(Client::with_set_up(driver, \"{}\", set_up)))",
        snake_case(name)
    ));
    code.close("}");
    code.line("");
    code.line(format!("struct Shadow(Client<dyn {name}>);"));
}

fn emit_method(code: &mut Code, model: &Model, method: &Method) {
    let (name, it) = (&method.name, free(method, "it"));
    let arguments: Option<Vec<_>> = method.arguments.iter().map(|it| again(model, it)).collect();
    let head = format!("fn {name}");
    code.list(
        &head,
        &INSIDE.arguments(method),
        &format!(" -> {} {{", INSIDE.ty(&method.result)),
    );
    code.depth += 1;
    if let Some(arguments) = arguments {
        code.line(format!(
            "self.0.call(|{it}| {it}.{name}({}))",
            arguments.join(", ")
        ));
    } else {
        let names: Vec<_> = method.arguments.iter().map(|it| it.name.as_str()).collect();
        code.line(
            "// An argument is gone with the instance that crashes, so this is tried only once.",
        );
        code.line(format!(
            "self.0.call_once(|{it}| {it}.{name}({}))",
            names.join(", ")
        ));
    }
    code.close("}");
}

/// How an argument is passed when the call may be made again; `None` if it cannot be had twice.
fn again(model: &Model, argument: &Argument) -> Option<String> {
    let name = &argument.name;
    match &argument.ty.kind {
        Kind::RVec(_) => Some(format!("RVec::from_slice(&{name})?")),
        Kind::Handle(_) | Kind::AnyHandle => Some(format!("{name}.duplicate()?")),
        _ if model.owns(&argument.ty) => None,
        _ => Some(name.clone()),
    }
}
