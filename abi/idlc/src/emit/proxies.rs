//! The crate `kernel/proxies`: one invocation of `isolation::proxy!` for every interface, and the
//! registry in which the kernel looks proxies up by interface number.
//!
//! All code of the proxies is in that macro, written and audited by hand; what is generated is only
//! its input.

use super::{Code, Names};
use crate::model::{Argument, Budget, Interface, Kind, Method, Model, Seen};

/// Outside the crate `interfaces`. The result is spelt out because the macro takes it apart.
const OUTSIDE: Names = Names {
    prefix: "interfaces::",
    spell_out: true,
};

/// The text of `proxies.rs`, which the crate includes.
pub fn emit(model: &Model) -> String {
    let mut code = Code::default();
    code.line("// Written by idlc from the .idl files. Do not edit.");
    for interface in &model.interfaces {
        code.line("");
        emit_proxy(&mut code, model, interface);
    }
    code.line("");
    emit_registry(&mut code, model);
    code.text
}

fn emit_proxy(code: &mut Code, model: &Model, interface: &Interface) {
    let name = &interface.name;
    code.open(format!(
        "isolation::proxy! {{ {name}Proxy: interfaces::{name}, \"{name}\" {{"
    ));
    for method in &interface.methods {
        let result = format!(" -> {};", OUTSIDE.ty(&method.result));
        code.list(
            &format!("fn {}", method.name),
            &OUTSIDE.arguments(method),
            &result,
        );
        let moved = moved(model, method).join(", ");
        let [numbers, lengths] = seen(model, method).map(|names| names.join(", "));
        code.line(format!(
            "    moved [{moved}]; budget {}; frees {}; seen [{numbers}] [{lengths}]; fails ({});",
            budget(method.budget),
            method.frees,
            fails(method)
        ));
    }
    code.close("} }");
}

/// The arguments that own something, so that their owner changes.
fn moved<'a>(model: &Model, method: &'a Method) -> Vec<&'a str> {
    let owning = |it: &&Argument| !matches!(it.ty.kind, Kind::Borrow(_)) && model.owns(&it.ty);
    method
        .arguments
        .iter()
        .filter(owning)
        .map(|it| it.name.as_str())
        .collect()
}

/// The arguments that a trace notes by their numbers, and those by their lengths.
fn seen<'a>(model: &Model, method: &'a Method) -> [Vec<&'a str>; 2] {
    let (mut numbers, mut lengths) = (Vec::new(), Vec::new());
    for (argument, seen) in method.arguments.iter().zip(model.seen(method)) {
        match seen {
            Some(Seen::Length) => lengths.push(argument.name.as_str()),
            Some(_) => numbers.push(argument.name.as_str()),
            None => {}
        }
    }
    [numbers, lengths]
}

/// The pattern of an error that is an `RpcError`.
fn fails(method: &Method) -> String {
    match &method.result.kind {
        Kind::Result(_, error) if !matches!(error.kind, Kind::RpcError) => {
            format!("{}::Rpc(_)", OUTSIDE.ty(error))
        }
        _ => "_".to_string(),
    }
}

/// The budget as the macro takes it: 0 is the domain's default, the largest number is none.
fn budget(budget: Budget) -> String {
    match budget {
        Budget::Default => "0".to_string(),
        Budget::Milliseconds(milliseconds) => milliseconds.to_string(),
        Budget::Unbounded => format!("{:#x}", u32::MAX),
    }
}

fn emit_registry(code: &mut Code, model: &Model) {
    let mut interfaces: Vec<_> = model.interfaces.iter().collect();
    interfaces.sort_by_key(|it| it.number());
    code.line("/// Every interface with its proxy, in ascending order of the interface numbers.");
    code.open("pub static REGISTRY: &[isolation::ProxyEntry] = &[");
    for interface in interfaces {
        let (name, number) = (&interface.name, interface.number());
        code.line(format!("{name}Proxy::entry({number:#018x}),"));
    }
    code.close("];");
}
