//! The module `interfaces::domains`: for every entry its ports, and the step from untyped grants to
//! its typed `start` function and back.

use super::{Code, INSIDE};
use crate::model::{Argument, Entry, Kind, Model, Port, handle};

/// Writes the module. It uses `crate::entry`, which is written by hand.
pub(super) fn emit(code: &mut Code, model: &Model) {
    code.line("/// The entries of domains, one module each.");
    code.open("pub mod domains {");
    for (index, entry) in model.entries.iter().enumerate() {
        if index > 0 {
            code.line("");
        }
        emit_entry(code, entry);
    }
    code.close("}");
}

fn emit_entry(code: &mut Code, entry: &Entry) {
    code.docs(&entry.docs);
    code.open(format!("pub mod {} {{", entry.module()));
    code.line("use crate::*;");
    code.line("");
    emit_ports(code, entry);
    code.line("");
    emit_start(code, entry);
    code.line("");
    emit_dispatch(code, entry);
    code.close("}");
}

fn emit_ports(code: &mut Code, entry: &Entry) {
    let ports = entry.ports();
    code.line(
        "/// What the domain wants, in the order of its parameters, and then what it offers.",
    );
    if ports.is_empty() {
        return code.line("pub const PORTS: &[abi::image::Port<'static>] = &[];");
    }
    code.open("pub const PORTS: &[abi::image::Port<'static>] = &[");
    for port in &ports {
        let Port {
            name, interface, ..
        } = port;
        code.line(format!(
            "entry::port::<dyn {interface}>(\"{name}\", {}),",
            flags(port)
        ));
    }
    code.close("];");
}

fn flags(port: &Port) -> &'static str {
    match (port.offer, port.optional) {
        (false, false) => "0",
        (false, true) => "abi::image::PORT_OPTIONAL",
        (true, false) => "abi::image::PORT_OFFER",
        (true, true) => "abi::image::PORT_OFFER | abi::image::PORT_OPTIONAL",
    }
}

fn emit_start(code: &mut Code, entry: &Entry) {
    code.line("/// The domain's function that `dispatch` calls.");
    for argument in entry.arguments.iter().filter(|it| !it.docs.is_empty()) {
        code.line("///");
        let text = argument.docs.join(" ");
        code.line(format!("/// `{}`:{text}", argument.name));
    }
    let types: Vec<_> = entry.arguments.iter().map(|it| INSIDE.ty(&it.ty)).collect();
    code.list(
        "pub type Start = fn",
        &types,
        &format!(" -> {};", INSIDE.ty(&entry.result)),
    );
}

fn emit_dispatch(code: &mut Code, entry: &Entry) {
    let offered = entry.offered();
    let wants = entry.arguments.len() - usize::from(entry.has_options());
    let unused = |used: bool, name: &str| {
        if used {
            name.to_string()
        } else {
            format!("_{name}")
        }
    };
    code.line("/// Gives the grants to `start`, each with its type, and puts what it offers into `offers`.");
    code.line("///");
    code.line("/// # Errors");
    code.line("/// [`EntryError::Grants`] if a grant is missing or of another interface, or there is no room for the");
    code.line("/// offers; otherwise what `start` gives.");
    let parts = [
        format!("{}: &mut [Option<AnyHandle>]", unused(wants > 0, "grants")),
        format!(
            "{}: Option<RVec<u8>>",
            unused(entry.has_options(), "options")
        ),
        format!(
            "{}: &mut [Option<AnyHandle>]",
            unused(!offered.is_empty(), "offers")
        ),
        "start: Start".to_string(),
    ];
    code.list("pub fn dispatch", &parts, " -> Result<(), EntryError> {");
    code.depth += 1;
    if !offered.is_empty() {
        let places: Vec<_> = (0..offered.len())
            .map(|it| format!("offer{it}, "))
            .collect();
        code.line(format!(
            "let [{}..] = offers else {{ return Err(EntryError::Grants) }};",
            places.concat()
        ));
    }
    for (index, argument) in entry.arguments.iter().enumerate() {
        emit_argument(code, index, argument);
    }
    let arguments: Vec<_> = (0..entry.arguments.len())
        .map(|index| format!("grant{index}"))
        .collect();
    let head = format!("{}start", pattern(entry));
    code.list(&head, &arguments, ".map_err(EntryError::Failed)?;");
    for (index, ty) in offered.iter().enumerate() {
        let optional = handle(ty).is_some_and(|(_, optional)| optional);
        let value = if optional {
            format!("value{index}.map(Handle::into_any)")
        } else {
            format!("Some(value{index}.into_any())")
        };
        code.line(format!("*offer{index} = {value};"));
    }
    code.line("Ok(())");
    code.close("}");
}

fn emit_argument(code: &mut Code, index: usize, argument: &Argument) {
    if argument.is_options() {
        return code.line(format!("let grant{index} = entry::options(options)?;"));
    }
    if let Some((interface, optional)) = handle(&argument.ty) {
        let function = if optional { "optional" } else { "required" };
        code.line(format!(
            "let grant{index} = entry::{function}::<dyn {interface}>(grants, {index})?;"
        ));
    }
}

/// `let` with a pattern that takes what `start` gives apart.
fn pattern(entry: &Entry) -> String {
    let values: Vec<_> = (0..entry.offered().len())
        .map(|it| format!("value{it}"))
        .collect();
    match entry.success().map(|it| &it.kind) {
        Some(Kind::Scalar("()")) | None => String::new(),
        Some(Kind::Tuple(elements)) if elements.len() == 1 => "let (value0,) = ".to_string(),
        Some(Kind::Tuple(_)) => format!("let ({}) = ", values.join(", ")),
        Some(Kind::Array(..)) => format!("let [{}] = ", values.join(", ")),
        Some(_) => "let value0 = ".to_string(),
    }
}
