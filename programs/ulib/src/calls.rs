//! What was counted of calls between domains, for the programs that show it.

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{CallCount, CallSample, DomainInfo, Handle, INTERFACES, Monitor, RpcResult, Text};

/// All counts that are not 0.
///
/// # Errors
/// The monitor does not answer.
pub fn call_counts(monitor: &Handle<dyn Monitor>) -> RpcResult<Vec<CallCount>> {
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(count) = monitor.call_count(from)? {
        from = count.index + 1;
        all.push(count);
    }
    Ok(all)
}

/// How many of the calls were timed.
pub fn timed_calls(count: &CallCount) -> u64 {
    count.latency.iter().map(|&calls| u64::from(calls)).sum()
}

/// All samples that are kept, the oldest first.
///
/// # Errors
/// The monitor does not answer.
pub fn call_samples(monitor: &Handle<dyn Monitor>) -> RpcResult<Vec<CallSample>> {
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(sample) = monitor.call_sample(from)? {
        from = sample.number + 1;
        all.push(sample);
    }
    Ok(all)
}

/// The name of a domain in a count.
pub fn caller_name(name: &Text<32>) -> &str {
    match name.as_str() {
        "" => "kernel",
        name => name,
    }
}

/// The name of the domain with this number in a sample; of one that is gone its number.
pub fn sampled_name(domains: &[DomainInfo], id: u32) -> String {
    let known = domains.iter().find(|info| info.id == id);
    match (id, known) {
        (0, _) => String::from("kernel"),
        (_, Some(info)) => alloc::format!("{}", info.name),
        (_, None) => alloc::format!("gone#{id}"),
    }
}

/// What was called, as `Block.open`; `None` for calls that were counted without it.
pub fn method_name(interface: u64, method: u32) -> Option<String> {
    let (_, name, methods) = INTERFACES
        .iter()
        .find(|(number, _, _)| *number == interface)?;
    let method = methods.get(method as usize)?;
    Some(alloc::format!("{name}.{method}"))
}
