//! The looks that the watch takes at a crate: each is a call of the compiler with the arguments of
//! the compilation itself, but for what says where results go.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};

use super::MINE;
use crate::{holes, mir, trust};

/// What is seen when all macros are expanded.
#[derive(Clone, Default)]
pub(super) struct Expansion {
    /// What must not be there.
    pub(super) found: Vec<String>,
    /// The names of all type parameters: behind each, lifetimes can be hidden.
    parameters: BTreeSet<String>,
}

/// Expands all macros. `None` if that fails: most often the crate cannot be compiled either, and
/// the compiler's own messages say why better.
pub(super) fn expansion(compiler: &OsStr, arguments: &[OsString]) -> Result<Option<Expansion>> {
    let mut command = looking(compiler, arguments);
    let output = command.arg("-Zunpretty=expanded").output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = trust::expanded(&text);
    let mut parameters = BTreeSet::new();
    match holes::find(&text) {
        Ok(shapes) => {
            found.extend(shapes.found);
            parameters = shapes.parameters;
        }
        Err(error) => found.push(format!("it cannot be looked at: {error}")),
    }
    Ok(Some(Expansion { found, parameters }))
}

/// Two looks by compilers that work beside the one that makes the code.
pub(super) struct Beside {
    /// Prints what it makes of every function, before anything is optimised.
    middle: Child,
    /// Checks the crate with the next trait solver. The old one, which makes the code, takes what
    /// rust#57893 needs.
    opinion: Child,
    /// What they write.
    folder: PathBuf,
}

impl Beside {
    /// Begins both.
    pub(super) fn begin(compiler: &OsStr, arguments: &[OsString]) -> Result<Self> {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), BEGUN.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(format!("trefoil-looks-{process}-{number}"));
        fs::create_dir_all(&folder)?;
        let watched = || {
            let mut command = looking(compiler, arguments);
            command
                .args(MINE)
                .args(["--error-format=short", "-Awarnings"]);
            command
        };
        let mut middle = watched();
        middle.args(mir::FLAGS).stderr(Stdio::null());
        let middle = middle.stdout(File::create(folder.join("mir"))?).spawn()?;
        let mut opinion = watched();
        opinion.args(["-Znext-solver=globally", "--emit=metadata", "--out-dir"]);
        opinion.arg(&folder).stdout(Stdio::null());
        let opinion = opinion.stderr(Stdio::piped()).spawn()?;
        Ok(Beside {
            middle,
            opinion,
            folder,
        })
    }

    /// What they have found in a crate whose expansion showed `expansion`.
    pub(super) fn end(mut self, expansion: &Expansion) -> Result<Vec<String>> {
        let opinion = self.opinion.wait_with_output()?;
        let middle = self.middle.wait()?;
        let text = fs::read(self.folder.join("mir")).context("no MIR was written")?;
        fs::remove_dir_all(&self.folder)?;
        let mut found = match middle.success() {
            true => mir::find(&String::from_utf8_lossy(&text), &expansion.parameters),
            false => vec!["what the compiler makes of it cannot be looked at".into()],
        };
        if !opinion.status.success() {
            let said = String::from_utf8_lossy(&opinion.stderr).into_owned();
            let first = said.lines().next().unwrap_or_default();
            found.push(format!(
                "the compiler's next trait solver refuses it: {first}"
            ));
        }
        Ok(found)
    }
}

/// A compiler with `arguments` that may look in ways which are no part of the stable language.
fn looking(compiler: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new(compiler);
    command
        .args(without_output(arguments))
        .env("RUSTC_BOOTSTRAP", "1");
    command
}

/// The arguments without what says where results and messages go.
pub(super) fn without_output(arguments: &[OsString]) -> Vec<&OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "--out-dir" {
            rest.next();
        } else if !["--emit=", "--json=", "--error-format="]
            .iter()
            .any(|start| text.starts_with(start))
        {
            kept.push(argument);
        }
    }
    kept
}
