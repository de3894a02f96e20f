//! Skeletons of shadows: safe domains that stand in front of another one, have the same interface, and
//! have it restarted when it crashes.
//!
//! A skeleton compiles as it is. It makes a call again on the new instance wherever all that the call needs
//! is still there: arguments that are plain, that are lent, or that can be copied. Whether doing a call
//! twice is right, and what must be set up again in a new instance, is for the author to decide.

use super::{Code, INSIDE};
use crate::model::{Argument, Interface, Kind, Method, Model, snake_case};
use std::collections::BTreeSet;

/// The text of the `lib.rs` of a shadow of this interface.
pub fn emit(model: &Model, interface: &Interface) -> String {
    let mut code = Code::default();
    let errors = errors(interface);
    emit_head(&mut code, interface);
    emit_imports(&mut code, model, interface, &errors);
    emit_start(&mut code, interface);
    emit_current(&mut code, interface);
    emit_retry(&mut code, interface);
    for error in &errors {
        emit_failure(&mut code, error);
    }
    code.line("");
    code.open(format!("impl {0} for Shadow {{", interface.name));
    for method in &interface.methods {
        emit_method(&mut code, model, method);
    }
    code.close("}");
    code.text
}

/// The error types of the interface's methods, each once.
fn errors(interface: &Interface) -> BTreeSet<String> {
    let error = |method: &Method| match &method.result.kind {
        Kind::Result(_, error) => Some(INSIDE.ty(error)),
        _ => None,
    };
    interface.methods.iter().filter_map(error).collect()
}

fn emit_head(code: &mut Code, interface: &Interface) {
    let Interface { name, .. } = interface;
    let module = snake_case(name);
    code.line(format!(
        "//! A shadow of `{name}`: hides that the domain behind it crashes."
    ));
    code.line("//!");
    code.line("//! Calls go to the instance that serves now. If it crashes in a call, a new one is asked for, and the");
    code.line("//! call is made again where that is right.");
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

fn emit_imports(code: &mut Code, model: &Model, interface: &Interface, errors: &BTreeSet<String>) {
    let mut names: BTreeSet<String> = ["Handle", "Respawn", "RpcError", "RpcResult"]
        .map(str::to_string)
        .into();
    names.insert(interface.name.clone());
    names.extend(errors.iter().cloned());
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
    code.line("use domain_rt::sync::Mutex;");
    code.line(format!("use interfaces::{{{}}};", names.join(", ")));
}

/// Every name in a type as it is written.
fn mentioned(text: &str, names: &mut BTreeSet<String>) {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    names.extend(words.filter(|it| !it.is_empty()).map(str::to_string));
}

fn emit_start(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    code.line("");
    code.line("/// How often one call is made at most before its caller gets the error.");
    code.line("const TRIES: u32 = 3;");
    code.line("");
    code.line("/// Starts the shadow in front of what `driver` restarts.");
    code.line("///");
    code.line("/// # Errors");
    code.line("/// If there is no memory.");
    code.open(format!(
        "pub fn start(driver: Handle<dyn Respawn>) -> RpcResult<Handle<dyn {name}>> {{"
    ));
    code.line("Handle::new(Shadow { driver, current: Mutex::new(None) })");
    code.close("}");
}

fn emit_current(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    code.line("");
    code.line("/// The instance that serves now.");
    code.open("struct Current {");
    code.line("id: u32,");
    code.line(format!("service: Handle<dyn {name}>,"));
    code.close("}");
    code.line("");
    code.open("struct Shadow {");
    code.line("driver: Handle<dyn Respawn>,");
    code.line("current: Mutex<Option<Current>>,");
    code.close("}");
}

fn emit_retry(code: &mut Code, interface: &Interface) {
    let name = &interface.name;
    let text = format!(
        "
impl Shadow {{
    /// The instance that serves now; another one if `failed` is it (0: none failed).
    fn instance(&self, failed: u32) -> RpcResult<(u32, Handle<dyn {name}>)> {{
        let mut current = self.current.lock();
        if let Some(it) = current.as_ref().filter(|it| it.id != failed) {{
            return Ok((it.id, it.service.duplicate()?));
        }}
        let incarnation = self.driver.instance(failed).map_err(|_| RpcError::DomainCrashed)?;
        let service = incarnation.service.downcast().map_err(|_| RpcError::Refused)?;
        // A new instance knows nothing: set it up here as the old one was, before anybody calls it.
        let result = (incarnation.id, Handle::duplicate(&service)?);
        *current = Some(Current {{ id: incarnation.id, service }});
        Ok(result)
    }}

    /// Makes a call that may be made twice, until an instance lives through it.
    fn retry<T, E: Failure>(&self, call: impl Fn(&dyn {name}) -> Result<T, E>) -> Result<T, E> {{
        let mut failed = 0;
        for _ in 1..TRIES {{
            let (id, service) = self.instance(failed)?;
            match call(&*service) {{
                Err(error) if error.crashed() => failed = id,
                result => return result,
            }}
        }}
        call(&*self.instance(failed)?.1)
    }}
}}

/// Errors that can say that the domain behind the handle crashed.
trait Failure: From<RpcError> {{
    /// Whether it did.
    fn crashed(&self) -> bool;
}}"
    );
    text.lines().for_each(|line| code.line(line));
}

fn emit_failure(code: &mut Code, error: &str) {
    let pattern = match error {
        "RpcError" => "RpcError::DomainCrashed".to_string(),
        name => format!("{name}::Rpc(RpcError::DomainCrashed)"),
    };
    code.line("");
    code.open(format!("impl Failure for {error} {{"));
    code.open("fn crashed(&self) -> bool {");
    code.line(format!("matches!(self, {pattern})"));
    code.close("}");
    code.close("}");
}

fn emit_method(code: &mut Code, model: &Model, method: &Method) {
    let name = &method.name;
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
            "self.retry(|it| it.{name}({}))",
            arguments.join(", ")
        ));
    } else {
        let names: Vec<_> = method.arguments.iter().map(|it| it.name.as_str()).collect();
        code.line(
            "// An argument is gone with the instance that crashes, so this is tried only once.",
        );
        code.line(format!("self.instance(0)?.1.{name}({})", names.join(", ")));
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
