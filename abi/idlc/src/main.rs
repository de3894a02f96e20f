//! The command line of the interface compiler. Build scripts use the library; this is for people.
#![forbid(unsafe_code)]

use idlc::{Model, Report, Rule, Source};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
idlc, the interface compiler of Trefoil

usage: idlc COMMAND [ARGUMENT..]

  check [PATH..]   check the .idl files of the workspace; with PATHs, only those files and
                   folders, together with the workspace's abi/interfaces/ that they may use
  emit interfaces  the Rust source of the crate `interfaces`
  emit proxies     the Rust source of the crate `kernel/proxies`
  emit hostile     the Rust source of the crate `abi/interfaces/hostile`
  manual           the reference manual of all interfaces, in Markdown
  shadow NAME      the skeleton of a shadow domain for interface NAME
  entries          what each domain wants and offers
  rules            the rules that .idl files obey, and why
  help             this text

The workspace is the nearest folder, from the current one upwards, that has a folder
`interfaces` with .idl files. Exit status: 0 good, 1 errors in .idl files, 2 wrong usage.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["help" | "--help" | "-h"] => Ok(HELP.to_string()),
        ["rules"] => Ok(rules()),
        ["check", ref paths @ ..] => check(paths),
        ["emit", "interfaces"] => workspace().map(|model| idlc::emit_interfaces(&model)),
        ["emit", "hostile"] => workspace().map(|model| idlc::emit_hostile(&model)),
        ["emit", "proxies"] => workspace().map(|model| idlc::emit_proxies(&model)),
        ["manual"] => workspace().map(|model| idlc::emit_manual(&model)),
        ["entries"] => workspace().map(|model| entries(&model)),
        ["shadow", name] => workspace().and_then(|model| shadow(&model, name)),
        _ => return usage(&words),
    };
    match outcome {
        Ok(text) => print(&text),
        Err(report) => {
            eprint!("{report}");
            ExitCode::from(1)
        }
    }
}

fn usage(words: &[&str]) -> ExitCode {
    match words {
        [] => eprint!("{HELP}"),
        _ => eprintln!(
            "idlc: `{}` is not a command; `idlc help` lists them",
            words.join(" ")
        ),
    }
    ExitCode::from(2)
}

/// Prints to standard output; that nobody reads on (`idlc manual | head`) is no error.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("idlc: standard output: {error}");
            ExitCode::from(1)
        }
        _ => ExitCode::SUCCESS,
    }
}

fn root() -> Result<PathBuf, Report> {
    let here = std::env::current_dir()
        .map_err(|error| Report::plain(format!("current folder: {error}")))?;
    let found = here.ancestors().find(|folder| {
        idlc::source::below(&folder.join("abi/interfaces"), "idl")
            .is_ok_and(|files| !files.is_empty())
    });
    let message = "neither this folder nor one above it has abi/interfaces/*.idl; go to the workspace, or name files: idlc check PATH..";
    found
        .map(Path::to_path_buf)
        .ok_or_else(|| Report::plain(message.to_string()))
}

fn workspace() -> Result<Model, Report> {
    idlc::load(&root()?)
}

fn check(paths: &[&str]) -> Result<String, Report> {
    let model = if paths.is_empty() {
        workspace()?
    } else {
        idlc::compile(sources(paths)?)?
    };
    let Model {
        sources,
        interfaces,
        definitions,
        entries,
        ..
    } = &model;
    let counts = [interfaces.len(), definitions.len(), entries.len()];
    Ok(format!(
        "{} files: {} interfaces, {} types, {} entries; no errors\n",
        sources.len(),
        counts[0],
        counts[1],
        counts[2]
    ))
}

/// The given files and those in the given folders, and the common interfaces if this is a
/// workspace.
fn sources(paths: &[&str]) -> Result<Vec<Source>, Report> {
    let mut files = Vec::new();
    for path in paths.iter().map(Path::new) {
        match path.is_dir() {
            true => files.extend(below(path)?),
            false => files.push(path.to_path_buf()),
        }
    }
    if files.is_empty() {
        let paths = paths.join(", ");
        return Err(Report::plain(format!("there are no .idl files in {paths}")));
    }
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let given: Vec<_> = files.iter().map(real).collect();
    if let Ok(root) = root() {
        let common = below(&root.join("abi/interfaces"))?;
        files.extend(
            common
                .into_iter()
                .filter(|path| !given.contains(&real(path))),
        );
    }
    idlc::source::read(Path::new(""), &files)
}

fn below(folder: &Path) -> Result<Vec<PathBuf>, Report> {
    let found = idlc::source::below(folder, "idl");
    found.map_err(|error| Report::plain(format!("{}: {error}", folder.display())))
}

fn shadow(model: &Model, name: &str) -> Result<String, Report> {
    match model.interface(name) {
        Some(interface) => Ok(idlc::emit_shadow(model, interface)),
        None => {
            let names: Vec<_> = model.interfaces.iter().map(|it| it.name.as_str()).collect();
            Err(Report::plain(format!(
                "there is no interface `{name}`; there are {}",
                names.join(", ")
            )))
        }
    }
}

fn entries(model: &Model) -> String {
    let mut text = String::new();
    for (module, ports) in model.entries() {
        text.push_str(&format!("{module}\n"));
        for port in ports {
            let what = if port.offer { "offers" } else { "wants" };
            let optional = if port.optional { " (optional)" } else { "" };
            text.push_str(&format!(
                "    {what:6} {}: {}{optional}\n",
                port.name, port.interface
            ));
        }
    }
    text
}

fn rules() -> String {
    Rule::ALL
        .iter()
        .map(|rule| format!("{}\n    {}\n", rule.name(), rule.text()))
        .collect()
}
