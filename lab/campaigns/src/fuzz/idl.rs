//! `.idl` files as input of the interface compiler, which is trusted: whatever the author of a
//! domain writes into one must not make it panic, run on or take the memory of the machine, and
//! what it accepts must be within the bounds of `abi::bounds` and give code that means what the
//! file says.
//!
//! [`texts`] makes the files: of a grammar, of the project's own with damage, and such as are meant
//! to be long in coming to an end. What is accepted is looked at here, with numbers of its own, and
//! one in some hundred is given to the compiler ([`compiled`]).

mod compiled;
mod grammar;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use idlc::model::{Argument, Body, Budget, Kind, Method, Type};
use idlc::{Model, Source};

use super::{Numbers, Trial};
use compiled::Compiler;
use texts::Texts;
use trefoil_gate::project::Project;

/// Of so many accepted inputs one is compiled,
const COMPILED: usize = 256;
/// if its files have no more bytes than this.
const COMPILED_BYTES: usize = 16 * 1024;
/// The longest that `idlc` may take with one input, without optimisation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of the stack on which `idlc` runs: as much as a test has, a quarter of a build script's.
const STACK: usize = 2 << 20;
/// The most memory that one input may take, in KiB.
const MEMORY: u64 = 256 * 1024;
/// Bytes that may be written for each byte of a file, and besides.
const WRITTEN: [usize; 2] = [256, 64 * 1024];
/// Letters of an input that a finding shows.
const SHOWN: usize = 4000;

/// The target. Without a project nothing is compiled, and memory is not looked at: other tests run
/// in the same process.
///
/// # Errors
/// If the project's own files cannot be read, or the compiler's libraries cannot be built.
pub fn start(project: Option<&Project>) -> Result<Trial> {
    let texts = Texts::new()?;
    let compiler = project.map(Compiler::new).transpose()?;
    Ok(Box::new(move |numbers| {
        let files = texts.files(numbers);
        let length: usize = files.iter().map(|it| it.text.len()).sum();
        let is_compiled = numbers.below(COMPILED) == 0 && length <= COMPILED_BYTES;
        let shown = || {
            let all: Vec<_> = files.iter().map(|it| it.text.as_str()).collect();
            all.join("\n---\n").chars().take(SHOWN).collect::<String>()
        };
        let outcome = in_a_thread(files.clone(), compiler.is_some());
        let (outcome, written) = outcome.with_context(shown)?;
        if let (Some(written), Some(compiler), true) = (written, &compiler, is_compiled) {
            compiler.check(&written).with_context(shown)?;
            return Ok("accepted and compiled".to_string());
        }
        Ok(outcome)
    }))
}

/// What came of some files, and what was written of them if they were accepted.
type Judged = (String, Option<Written>);

/// Has `idlc` read `files` in a thread of its own: it has a bounded stack, it can be left behind if
/// it does not end, and what the parser keeps of each text goes with it.
fn in_a_thread(files: Vec<Source>, is_alone: bool) -> Result<Judged> {
    let before = if is_alone { most_memory(true)? } else { 0 };
    let (sender, receiver) = mpsc::channel();
    let builder = thread::Builder::new().name("idlc".into()).stack_size(STACK);
    let worker = builder.spawn(move || {
        let judged = judge(files);
        // Nobody listens if it came too late.
        let _ = sender.send(judged);
    })?;
    let judged = match receiver.recv_timeout(PATIENCE) {
        Ok(judged) => judged?,
        Err(mpsc::RecvTimeoutError::Timeout) => bail!("it has not ended after {PATIENCE:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => bail!("idlc panicked"),
    };
    worker.join().ok().context("the thread panicked")?;
    if is_alone {
        let taken = most_memory(false)?.saturating_sub(before);
        ensure!(taken <= MEMORY, "it took {taken} KiB of memory");
    }
    Ok(judged)
}

/// The most memory that this process has had at a time, in KiB; counted anew from here if `reset`.
fn most_memory(reset: bool) -> Result<u64> {
    if reset {
        // proc(5): this resets the mark.
        fs::write("/proc/self/clear_refs", "5")?;
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let number = line.and_then(|it| it.split_whitespace().next());
    Ok(number.context("there is no VmHWM")?.parse()?)
}

/// What the compiler of interfaces wrote.
struct Written {
    interfaces: String,
    hostile: String,
    proxies: String,
}

fn judge(files: Vec<Source>) -> Result<Judged> {
    let length: usize = files.iter().map(|it| it.text.len()).sum();
    let model = match idlc::compile(files) {
        Ok(model) => model,
        Err(report) => {
            let text = report.to_string();
            ensure!(
                text.len() <= WRITTEN[0] * length + WRITTEN[1],
                "{length} bytes gave a report of {}",
                text.len()
            );
            let first = report.errors.first().context("refused without an error")?;
            return Ok((format!("refused: {}", first.rule.name()), None));
        }
    };
    within(&model)?;
    let written = Written {
        interfaces: idlc::emit_interfaces(&model),
        hostile: idlc::emit_hostile(&model),
        proxies: idlc::emit_proxies(&model),
    };
    let mut other = vec![idlc::emit_manual(&model), model.normalised()];
    for interface in &model.interfaces {
        let shadow = idlc::emit_shadow(&model, interface);
        syn::parse_file(&shadow).context("a shadow is no Rust")?;
        other.push(shadow);
    }
    // A shadow names what its interface uses, however often others do.
    let most = WRITTEN[0] * length + WRITTEN[1];
    let all = [&written.interfaces, &written.hostile, &written.proxies];
    for text in all.into_iter().chain(&other) {
        ensure!(text.len() <= most, "{length} bytes gave {}", text.len());
    }
    items_of_interfaces(&model, &written.interfaces)?;
    items_of_proxies(&model, &written.proxies)?;
    let hostile = syn::parse_file(&written.hostile).context("`hostile` is no Rust")?;
    let is_known = |it: &syn::Item| {
        matches!(it, syn::Item::Impl(it) if it.unsafety.is_none())
            || matches!(it, syn::Item::Fn(it) if it.sig.unsafety.is_none())
            || matches!(it, syn::Item::Static(_))
    };
    ensure!(hostile.items.iter().all(is_known), "`hostile` has more");
    Ok(("accepted".to_string(), Some(written)))
}

/// Whether the crate `interfaces` consists of what the model says and nothing else: no text of a
/// file has become code.
fn items_of_interfaces(model: &Model, text: &str) -> Result<()> {
    for bad in ["```", "~~~", "\u{202e}"] {
        ensure!(!text.contains(bad), "{bad:?} stands in generated code");
    }
    let file = syn::parse_file(text).context("`interfaces` is no Rust")?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in &file.items {
        let kind = match item {
            syn::Item::Struct(_) | syn::Item::Enum(_) => "type",
            syn::Item::Macro(it) if it.mac.path.segments.len() == 2 => "type",
            syn::Item::Trait(it) if it.unsafety.is_none() => "trait",
            syn::Item::Impl(it) if it.unsafety.is_some() => "unsafe impl",
            syn::Item::Impl(it) if it.trait_.is_some() => "impl",
            syn::Item::Const(_) => "const",
            syn::Item::Mod(_) => "mod",
            _ => bail!("`interfaces` has an item of another kind"),
        };
        *counts.entry(kind.to_string()).or_default() += 1;
    }
    let plain = model.definitions.iter().filter(|it| it.plain).count();
    let errors = model.definitions.iter().filter(|it| it.is_error()).count();
    let bases = model.interfaces.iter().filter(|it| it.base).count();
    let expected = [
        ("type", model.definitions.len()),
        ("trait", model.interfaces.len() + bases),
        (
            "unsafe impl",
            model.definitions.len() + plain + 2 * model.interfaces.len(),
        ),
        ("impl", 2 * errors + bases),
        ("const", 2),
        ("mod", 2),
    ];
    for (kind, count) in expected {
        let found = counts.get(kind).copied().unwrap_or(0);
        ensure!(
            found == count,
            "`interfaces` has {found} of {kind}, not {count}"
        );
    }
    Ok(())
}

/// Whether the crate `proxies` is one macro for each interface, and the registry.
fn items_of_proxies(model: &Model, text: &str) -> Result<()> {
    let file = syn::parse_file(text).context("`proxies` is no Rust")?;
    let is_proxy = |it: &&syn::Item| matches!(it, syn::Item::Macro(it) if it.ident.is_none());
    let proxies = file.items.iter().filter(is_proxy).count();
    ensure!(
        proxies == model.interfaces.len() && file.items.len() == proxies + 1,
        "`proxies` has {proxies} proxies of {} items",
        file.items.len()
    );
    Ok(())
}

/// Whether all numbers of the model are within their bounds, by a count of its own.
fn within(model: &Model) -> Result<()> {
    let mut numbers = BTreeSet::new();
    for it in &model.interfaces {
        let name = &it.name;
        ensure!(
            (1..=abi::bounds::MOST_METHODS).contains(&it.methods.len()),
            "`{name}` has {} methods",
            it.methods.len()
        );
        ensure!(numbers.insert(it.number()), "`{name}` has a number twice");
        check_name(name)?;
        it.methods.iter().try_for_each(|it| method(model, it))?;
    }
    for it in &model.entries {
        let ports = it.ports();
        ensure!(
            ports.len() <= abi::image::MOST_PORTS,
            "{} ports",
            ports.len()
        );
        let offers = ports.iter().filter(|it| it.offer).count();
        ensure!(offers <= 4 && ports.len() - offers <= 16, "{offers} offers");
        check_name(&it.name)?;
        ports.iter().try_for_each(|it| check_name(&it.name))?;
    }
    for it in &model.definitions {
        let (name, fields) = (&it.name, it.fields());
        check_name(name)?;
        fields.iter().try_for_each(|(_, it)| check_name(&it.name))?;
        let (parts, most) = match &it.body {
            Body::Struct(fields) => (fields.len(), fields.len()),
            Body::Enum(variants) => {
                let most = variants.iter().map(|it| it.fields.len()).max();
                variants.iter().try_for_each(|it| check_name(&it.name))?;
                (variants.len(), most.unwrap_or(0))
            }
        };
        ensure!(
            (1..=256).contains(&parts) && most <= 256,
            "`{name}`: {parts}, {most}"
        );
    }
    Ok(())
}

fn method(model: &Model, method: &Method) -> Result<()> {
    let name = &method.name;
    check_name(name)?;
    ensure!(
        method.arguments.len() <= 16,
        "`{name}` has too many parameters"
    );
    method
        .arguments
        .iter()
        .try_for_each(|it| check_name(&it.name))?;
    if let Budget::Milliseconds(budget) = method.budget {
        ensure!(
            budget <= abi::bounds::LONGEST_BUDGET,
            "`{name}`: {budget} ms"
        );
    }
    let types = |it: &Argument| depth(model, &it.ty, abi::bounds::MOST_NESTED);
    let is_shallow = method.arguments.iter().all(types);
    ensure!(
        is_shallow && depth(model, &method.result, abi::bounds::MOST_NESTED),
        "`{name}` has a type that is too deep"
    );
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = name
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || it == '_');
    ensure!(
        is_plain && (1..=abi::bounds::LONGEST_NAME).contains(&name.len()),
        "a name is {name:?}"
    );
    Ok(())
}

/// Whether the type is nested no more than `most` deep. It is followed along the first part that a
/// definition has and the last one: all ways together would be too many.
fn depth(model: &Model, ty: &Type, most: usize) -> bool {
    let Some(most) = most.checked_sub(1) else {
        return false;
    };
    let within = |ty: &Type| depth(model, ty, most);
    match &ty.kind {
        Kind::RRef(inner)
        | Kind::RVec(inner)
        | Kind::Option(inner)
        | Kind::Array(inner, _)
        | Kind::Borrow(inner) => within(inner),
        Kind::Result(ok, error) => within(ok) && within(error),
        Kind::Tuple(elements) => elements.iter().all(within),
        Kind::Named(name) => {
            let fields = model.definition(name).map(|it| it.fields());
            let fields = fields.unwrap_or_default();
            let ends = [fields.first(), fields.last()];
            let mut different: Vec<&Type> = ends.into_iter().flatten().map(|it| &it.1.ty).collect();
            different.dedup_by_key(|it| it.text.clone());
            different.into_iter().all(within)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TARGETS, first};
    use super::*;

    #[test]
    fn hundreds_of_files_do_no_harm() {
        // Alone they take some 20 s without optimisation.
        let target = TARGETS.iter().find(|it| it.name == "idl");
        let summary = first(target.expect("listed"), 1, 800).expect("started");
        assert!(summary.failures.is_empty(), "{summary}");
        assert!(summary.count("accepted") > 200, "{summary}");
        assert!(summary.count("refused") > 200, "{summary}");
    }

    fn judged(text: &str) -> Result<Judged> {
        let (name, text) = ("a.idl".to_string(), text.to_string());
        in_a_thread(vec![Source { name, text }], false)
    }

    #[test]
    fn what_is_accepted_is_looked_at() {
        let text = "//! D.\n/// D.\npub trait Thing {\n/// D.\nfn f(&self) -> RpcResult<()>;\n}\n";
        let (outcome, written) = judged(text).expect("it is decent");
        assert_eq!(outcome, "accepted");
        let source = Source {
            name: "a.idl".to_string(),
            text: text.to_string(),
        };
        let model = idlc::compile(vec![source]).expect("accepted above");
        let written = written.expect("accepted");
        for more in [
            "use a::b;",
            "unsafe impl Send for A {}",
            "static A: u8 = 1;",
        ] {
            let with = format!("{}{more}\n", written.interfaces);
            assert!(items_of_interfaces(&model, &with).is_err(), "{more}");
            let with = format!("{}{more}\n", written.proxies);
            assert!(items_of_proxies(&model, &with).is_err(), "{more}");
        }
    }

    #[test]
    fn a_number_beyond_its_bound_is_found() {
        let text = "//! D.\n/// D.\npub trait Thing {\n/// D.\nfn f(&self) -> RpcResult<()>;\n}\n";
        let source = Source {
            name: "a.idl".to_string(),
            text: text.to_string(),
        };
        let mut model = idlc::compile(vec![source]).expect("it is decent");
        assert!(within(&model).is_ok());
        let mut methods = std::mem::take(&mut model.interfaces[0].methods);
        assert!(within(&model).is_err());
        methods[0].name = "f".repeat(33);
        model.interfaces[0].methods = methods;
        assert!(within(&model).is_err());
    }
}
