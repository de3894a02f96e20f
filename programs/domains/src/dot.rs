//! `domains --dot`: who may call whom, and who did, as a graph for Graphviz.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{CallCount, DomainInfo, INTERFACES, Monitor, RpcResult};
use ulib::{Handle, call_counts, caller_name};

/// What is known between two domains.
#[derive(Default)]
struct Edge {
    /// Interfaces, of handles that one holds and of calls, with the number of calls.
    interfaces: BTreeMap<String, u64>,
    errors: u64,
}

/// Edges by the names of caller and callee.
type Graph = BTreeMap<(String, String), Edge>;

/// The graph in the language DOT. An edge is dashed where only a handle is held: nothing was called
/// through it while calls were counted.
///
/// # Errors
/// The monitor does not answer.
pub fn graph(monitor: &Handle<dyn Monitor>) -> RpcResult<String> {
    let domains = ulib::domains(monitor)?;
    let mut graph = Graph::new();
    for info in &domains {
        add_held(&mut graph, monitor, info)?;
    }
    for count in call_counts(monitor)? {
        add_calls(&mut graph, &count);
    }
    let mut text = String::from("digraph domains {\n    rankdir=LR;\n    node [shape=box];\n");
    for info in &domains {
        text += &format!("    {};\n", quoted(&info.name.to_string()));
    }
    for ((caller, callee), edge) in &graph {
        text += &line(caller, callee, edge);
    }
    text.push_str("}\n");
    Ok(text)
}

/// Adds the handles that a domain holds.
fn add_held(graph: &mut Graph, monitor: &Handle<dyn Monitor>, info: &DomainInfo) -> RpcResult<()> {
    let mut index = 0;
    while let Some((interface, server)) = monitor.holds(info.id, index)? {
        index += 1;
        let names = (info.name.to_string(), server.to_string());
        let edge = graph.entry(names).or_default();
        edge.interfaces.entry(interface.to_string()).or_default();
    }
    Ok(())
}

fn add_calls(graph: &mut Graph, count: &CallCount) {
    let names = [caller_name(&count.caller), caller_name(&count.callee)].map(ToString::to_string);
    let mut known = INTERFACES.iter();
    // Calls that found no room of their own are between nobody.
    let Some((_, interface, _)) = known.find(|(number, _, _)| *number == count.interface) else {
        return;
    };
    let edge = graph.entry(names.into()).or_default();
    *edge.interfaces.entry(interface.to_string()).or_default() += count.calls;
    edge.errors += count.errors;
}

fn line(caller: &str, callee: &str, edge: &Edge) -> String {
    let labels = edge
        .interfaces
        .iter()
        .map(|(interface, calls)| match calls {
            0 => interface.clone(),
            _ => format!("{interface} {calls}"),
        });
    let mut label = labels.collect::<Vec<_>>().join(", ");
    if edge.errors > 0 {
        label += &format!(", {} errors", edge.errors);
    }
    let style = match edge.interfaces.values().any(|&calls| calls > 0) {
        true => "solid",
        false => "dashed",
    };
    let [caller, callee, label] = [caller, callee, &label].map(quoted);
    format!("    {caller} -> {callee} [label={label}, style={style}];\n")
}

/// A string of the language.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
