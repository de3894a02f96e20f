//! What stands between cargo and the compiler whenever code of domains is compiled.
//!
//! Cargo starts this tool in place of the compiler (`RUSTC_WRAPPER`). What is trusted or for the
//! host goes through unchanged. A crate that must be safe is compiled so:
//!
//! 1. All macros are expanded, with the very arguments of the compilation, and the result is
//!    searched for what must not be there ([`trust::expanded`], and [`holes`], the shapes by which
//!    safe code can break the language): so it does not matter who wrote it, the crate itself, a
//!    macro of its own that puts it together from pieces, or a macro of a package that it may use.
//! 2. It is compiled with `-F unsafe_code`, which no attribute and no manifest takes back, and
//!    without unstable features, although the build of `core` needs them switched on. Beside that
//!    the compiler prints what it makes of each function, in which types stand that nobody wrote
//!    ([`mir`](crate::mir)); and it checks the crate once more, as a second opinion, with its next
//!    trait solver, which knows better in some places.
//! 3. Every file that the compiler read must lie in the crate's own folder, and be no link, and
//!    goes through the search of sources ([`trust::source`]), whatever it is called; and nothing of
//!    the build's environment may have been asked for.
//!
//! As cargo calls the compiler only for what has changed, all this costs nothing when nothing has;
//! and what was not examined cannot be linked, as there is no other way to it. When the rules
//! themselves change, [`renew`] has everything compiled again.

mod looks;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, ensure};

use crate::packages::Packages;
use crate::project::Project;
use crate::{build, rules, trust};
use looks::{Beside, expansion};

/// What our copy is called that cargo calls in place of the compiler.
pub const GUARD: &str = "guard";
/// The folders of the crates that must be safe, separated as in `PATH`; cargo hands it on to us.
const FOLDERS: &str = "TREFOIL_GUARDED";
/// What a crate that must be safe is compiled with, whatever it or its manifest says.
const MINE: [&str; 2] = ["-Funsafe_code", "-Zallow-features="];
/// The files of the rules, each with its text: a change of one makes it necessary to examine
/// everything again.
macro_rules! rules {
    ($($file:literal)*) => {
        [$(($file, include_str!($file))),*]
    };
}
const RULES: [(&str, &str); 14] = rules![
    "guard.rs"
    "guard/looks.rs"
    "holes.rs"
    "holes/associated.rs"
    "holes/bounds.rs"
    "holes/names.rs"
    "holes/projections.rs"
    "lexer.rs"
    "mir.rs"
    "mir/pointers.rs"
    "rules.rs"
    "trust.rs"
    "packages.rs"
    "../Cargo.toml"
];

/// Has `command`, which is a cargo, call us in place of the compiler for the packages that must be
/// safe.
///
/// # Errors
/// If our own program cannot be found.
pub fn set<'a>(
    project: &Project,
    packages: &Packages,
    command: &'a mut Command,
) -> Result<&'a mut Command> {
    let safe = packages
        .list
        .iter()
        .filter(|package| rules::zone(project, package).is_safe());
    let folders = env::join_paths(safe.map(|package| &package.folder))
        .context("a folder's name has a colon")?;
    Ok(command
        .env("RUSTC_WRAPPER", own_copy(project, GUARD)?)
        .env(FOLDERS, folders))
}

/// A copy of our own program, called `name`: the tests compile the tool once more, and then the
/// file that we were started from is another one, or gone. Each use has a name of its own, since
/// the program of the tests, too, puts itself in the guard's place when it builds.
///
/// # Errors
/// If it cannot be read or written.
pub fn own_copy(project: &Project, name: &str) -> Result<PathBuf> {
    let own = fs::read("/proc/self/exe").context("cannot read my own program")?;
    let copy = project.out.join(name);
    if fs::read(&copy).is_ok_and(|present| present == own) {
        return Ok(copy);
    }
    // By another name first: a compiler may be running under the guard.
    let fresh = project.out.join(format!("{name}.{}", std::process::id()));
    fs::create_dir_all(&project.out)?;
    fs::write(&fresh, own)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755))?;
    fs::rename(&fresh, &copy)?;
    Ok(copy)
}

/// Removes what was compiled under other rules, so that it is examined anew.
///
/// # Errors
/// If it cannot be removed.
pub fn renew(project: &Project, packages: &Packages) -> Result<()> {
    let mark = project.out.join("cargo/rules");
    let wanted = RULES.map(|(_, text)| text).concat();
    if fs::read_to_string(&mark).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    let known = build::products(project).join(".fingerprint");
    for entry in fs::read_dir(&known).into_iter().flatten() {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = name.rsplit_once('-').map_or("", |(name, _)| name);
        let is_safe = |found: &&crate::packages::Package| {
            found.name == name && rules::zone(project, found).is_safe()
        };
        if packages.list.iter().any(|found| is_safe(&found)) {
            fs::remove_dir_all(&folder)?;
        }
    }
    fs::create_dir_all(project.out.join("cargo"))?;
    Ok(fs::write(mark, wanted)?)
}

/// If cargo called us in place of the compiler: does its work, and says how we have to end. The
/// first thing that `main` asks.
pub fn called() -> Option<ExitCode> {
    let folders = env::var_os(FOLDERS)?;
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let (compiler, arguments) = arguments.split_first()?;
    if !Path::new(compiler).ends_with("rustc") {
        return None;
    }
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    Some(match stand_in(compiler, arguments, &folders) {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Does what the compiler was called for.
fn stand_in(compiler: &OsStr, arguments: &[OsString], folders: &[PathBuf]) -> Result<ExitStatus> {
    let folder = root(arguments).and_then(|root| {
        let root = root.canonicalize().ok()?;
        folders.iter().find(|folder| {
            folder
                .canonicalize()
                .is_ok_and(|folder| root.starts_with(folder))
        })
    });
    let mut command = Command::new(compiler);
    command.args(arguments);
    let Some(folder) = folder else {
        return Ok(command.status()?);
    };
    let mut expansion = expansion(compiler, arguments)?;
    let beside = Beside::begin(compiler, arguments)?;
    let status = command.args(MINE).status()?;
    let made = beside.end(&expansion.clone().unwrap_or_default())?;
    if let (Some(expansion), true) = (&mut expansion, status.success()) {
        expansion.found.extend(made);
    }
    let found = expansion.map(|it| it.found);
    let name = value(arguments, "--crate-name").unwrap_or_default();
    judge(found.as_deref(), status.success())
        .with_context(|| name.to_string_lossy().into_owned())?;
    if status.success() {
        files(arguments, folder)?;
    }
    Ok(status)
}

/// Whether a crate may pass in whose expansion this was found, `None` if it could not be expanded.
///
/// The compiler prints an expansion with less stack than it compiles with, so that an expression
/// may be nested too deeply for the one and not for the other. What nobody has looked at does not
/// pass.
fn judge(found: Option<&[String]>, is_compiled: bool) -> Result<()> {
    match found {
        None => ensure!(
            !is_compiled,
            "its macros cannot be expanded for a look at them"
        ),
        Some(found) => ensure!(
            found.is_empty(),
            "after the expansion of macros: {}",
            found.join("; ")
        ),
    }
    Ok(())
}

/// The root file of the crate that `arguments` are for.
fn root(arguments: &[OsString]) -> Option<&Path> {
    let files = arguments.iter().map(Path::new);
    let mut sources = files.filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
    sources.next()
}

/// The argument that follows `name`.
fn value<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsStr> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(OsString::as_os_str)
}

/// Looks at the list of files that the compiler has read.
fn files(arguments: &[OsString], folder: &Path) -> Result<()> {
    let name = value(arguments, "--crate-name").context("a crate has a name")?;
    let out = value(arguments, "--out-dir").context("cargo says where results go")?;
    let extra = arguments.iter().find_map(|argument| {
        let text = argument.to_str()?;
        text.strip_prefix("extra-filename=")
    });
    let name = name.to_string_lossy();
    let list = Path::new(out).join(format!("{name}{}.d", extra.unwrap_or_default()));
    let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let found = strangers(&text, folder);
    ensure!(found.is_empty(), "{name}: {}", found.join("; "));
    let found = searched(&text)?;
    ensure!(found.is_empty(), "{name}: {}", found.join("; "));
    Ok(())
}

/// The files in a list of dependencies.
fn listed(list: &str) -> impl Iterator<Item = PathBuf> {
    let files = list.lines().filter_map(|line| line.strip_suffix(':'));
    files.map(|file| PathBuf::from(file.replace("\\ ", " ")))
}

/// What the search of sources finds in the listed files. What is no text is no source either.
fn searched(list: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in listed(list) {
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        for trust::Breach { line, text, .. } in trust::source(&file, &text) {
            found.push(format!("{}:{line}: {text}", file.display()));
        }
    }
    Ok(found)
}

/// What a list of dependencies (in the form of `make`) has that does not belong to the package in
/// `folder`.
fn strangers(list: &str, folder: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    for line in list.lines() {
        if let Some(variable) = line.strip_prefix("# env-dep:") {
            let name = variable.split('=').next().unwrap_or_default();
            found.insert(format!("the build's environment is asked for `{name}`"));
        }
    }
    for file in listed(list).filter(|file| !is_own(file, folder)) {
        found.insert(format!(
            "{} is read, which is not in the package's folder",
            file.display()
        ));
    }
    found.into_iter().collect()
}

/// Whether `file`, with all links followed, lies in `folder`.
fn is_own(file: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(file), real(folder)) {
        (Some(file), Some(folder)) => file.starts_with(folder),
        _ => false,
    }
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
