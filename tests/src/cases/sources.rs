//! Sources of domains that must not build: every attack of the table in [`crate::attacks`] is
//! refused, and for the right reason.
//!
//! Those that pass the search of manifests and sources, and those that are to meet a second
//! defence, are compiled as the build compiles domains: all of them at once, in a workspace of
//! their own with the real interfaces and the real runtime.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use trefoil_gate::project::Project;
use trefoil_gate::{build, cargo_toml, confine, keys, packages, setup, tool};

use super::{Case, case};
use crate::attacks::{self, Attack};
use crate::bench::Bench;

/// One test for each attack; it is called as the attack.
pub(super) fn cases() -> Vec<Case> {
    let attacks = attacks::all();
    let mut cases: Vec<Case> = attacks
        .iter()
        .map(|attack| case(attack.name, refused))
        .collect();
    cases.push(case("source-holes-are-open", open));
    cases.push(case("build-hides-the-key", hidden));
    cases
}

/// The plain compiler takes all programs that break the language: what refuses them is the build.
/// If this fails, a new compiler has closed a hole.
fn open(bench: &Bench<'_>) -> Result<()> {
    let compiler = setup::toolchain()?.bin.join("rustc");
    for (name, text) in attacks::plain() {
        let file = bench.folder.join("hole.rs");
        write(&file, &format!("#![no_std]\n{text}\n"))?;
        let mut command = Command::new(&compiler);
        command.args(["--edition=2024", "--crate-type=lib", "--emit=metadata"]);
        command.args(["-Funsafe_code", "-Awarnings", "--out-dir"]);
        tool::output(command.arg(&bench.folder).arg(&file)).with_context(|| name)?;
    }
    Ok(())
}

/// Code that cargo runs, as it would run a build script or a test, does not find the signing key.
fn hidden(bench: &Bench<'_>) -> Result<()> {
    let project = &bench.site.project;
    let key = keys::folder(&project.out).join("key");
    ensure!(key.exists(), "there is no key");
    let folder = bench.folder.join("reads");
    let manifest =
        "[package]\nname = \"reads\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    write(&folder.join("Cargo.toml"), manifest)?;
    let script = format!(
        "fn main() {{ let key = std::fs::read({key:?}); println!(\"{{}}\", key.is_ok()); }}"
    );
    write(&folder.join("src/main.rs"), &script)?;
    let toolchain = setup::toolchain()?;
    let run = |mut command: Command| {
        command.args(["run", "--quiet", "--offline", "--manifest-path"]);
        tool::output(command.arg(folder.join("Cargo.toml"))).map(|text| text.trim().to_string())
    };
    let with_key = run(toolchain.cargo_with_key(project))?;
    ensure!(
        with_key == "true",
        "the key cannot be read at all: {with_key}"
    );
    let without = run(toolchain.cargo(project))?;
    let is_possible = confine::way() != confine::Way::None;
    ensure!(
        (without == "false") == is_possible,
        "the key is found: {without}, folders can be hidden: {is_possible}"
    );
    Ok(())
}

/// What the compiler said about each attack; all are compiled by the first test that asks.
static COMPILED: OnceLock<Result<BTreeMap<String, String>, String>> = OnceLock::new();

/// What the workspace of the attacks has in common with ours.
const WORKSPACE: &str = include_str!("../../sources/workspace.toml");
/// Another domain, whose name is taken.
const INIT: &str = include_str!("../../sources/first.toml");
/// Its source, which has all macros in it that domains use and does no harm: it must be compiled.
const DECENT: &str = include_str!("../../sources/first.rs");

/// The attack that the test is called as is refused, twice if it says so.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let name = bench.folder.file_name().unwrap_or_default();
    let attacks = attacks::all();
    let attack = attacks.iter().find(|attack| name == attack.name);
    let attack = attack.context("no attack is called so")?;
    ensure!(
        !attack.before.is_empty() || !attack.compiling.is_empty(),
        "nothing is expected"
    );
    lay(bench, &bench.folder, attack)?;
    let said = complaints(&within(bench, &bench.folder), attack)
        .unwrap_or_else(|error| format!("{error:#}"));
    let is_right = match attack.before {
        "" => said.is_empty(),
        reason => said.contains(reason),
    };
    ensure!(
        is_right,
        "before it is compiled: expected {:?}, got {said:?}",
        attack.before
    );
    if attack.compiling.is_empty() {
        return Ok(());
    }
    let compiled = COMPILED.get_or_init(|| compiling(bench).map_err(|error| format!("{error:#}")));
    let said = compiled.as_ref().map_err(|error| anyhow!("{error}"))?;
    let said = said
        .get(&attack.name.replace('-', "_"))
        .map_or("nothing", String::as_str);
    ensure!(
        said.contains(attack.compiling),
        "while it is compiled: expected {:?}, got {said:?}",
        attack.compiling
    );
    Ok(())
}

/// All that the build complains of about the attack, before it compiles.
fn complaints(project: &Project, attack: &Attack) -> Result<String> {
    let file = project
        .root
        .join("domains")
        .join(attack.name)
        .join("Cargo.toml");
    let mut found = cargo_toml::check(&file, &fs::read_to_string(&file)?);
    // Of what is refused, cargo would not make sense either.
    if found.is_empty() {
        let packages = packages::ours(project, &setup::toolchain()?)?;
        found = build::breaches(project, &packages)?;
    }
    let mut texts: Vec<_> = found.into_iter().map(|breach| breach.text).collect();
    // The interfaces are read by the build as well, before anything is made of them.
    texts.extend(
        build::fingerprint_now(project)
            .err()
            .map(|it| format!("{it:#}")),
    );
    Ok(texts.join("\n"))
}

/// The project whose sources are in `root`, built into the folders of ours.
fn within(bench: &Bench<'_>, root: &Path) -> Project {
    let ours = &bench.site.project;
    Project {
        root: root.to_path_buf(),
        ..ours.clone()
    }
}

/// Writes the attack into the workspace in `root`.
fn lay(bench: &Bench<'_>, root: &Path, attack: &Attack) -> Result<()> {
    fs::create_dir_all(root)?;
    for name in ["abi", "runtime", "kernel"] {
        let link = root.join(name);
        if !link.exists() {
            symlink(bench.site.project.root.join(name), link)?;
        }
    }
    let folder = root.join("domains").join(attack.name);
    let usual = format!(
        "[package]\nname = \"{}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         abi = {{ path = \"../../abi/base\" }}\ndomain-rt = {{ path = \"../../runtime\" }}\n\
         interfaces = {{ path = \"../../abi/interfaces\" }}\n",
        attack.name
    );
    write(&root.join("Cargo.toml"), WORKSPACE)?;
    write(&root.join("outside.rs"), "//! Outside of every package.\n")?;
    write(&folder.join("Cargo.toml"), &usual)?;
    for (name, text) in attack.files {
        // What the compiler skips or reads first must stay first.
        let is_root = *name == "src/lib.rs" && !text.starts_with("#!");
        let head = if is_root { "#![no_std]\n" } else { "" };
        write(&folder.join(name), &format!("{head}{text}\n"))?;
    }
    for (name, target) in attack.links {
        symlink(target, folder.join(name)).context("cannot make a link")?;
    }
    write(&root.join("domains/a-first/Cargo.toml"), INIT)?;
    write(&root.join("domains/a-first/src/lib.rs"), DECENT)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(file.parent().context("a file has a folder")?)?;
    fs::write(file, text).with_context(|| file.display().to_string())
}

/// The second defence: all attacks that name one are compiled although the search would have
/// refused them.
fn compiling(bench: &Bench<'_>) -> Result<BTreeMap<String, String>> {
    let root = bench.folder.join("all");
    let tried: Vec<Attack> = attacks::all()
        .into_iter()
        .filter(|attack| !attack.compiling.is_empty())
        .collect();
    for attack in &tried {
        lay(bench, &root, attack)?;
    }
    let lock = bench.site.project.root.join("Cargo.lock");
    fs::copy(lock, root.join("Cargo.lock"))?;
    compile(&bench.site.project, &within(bench, &root), &tried)
}

/// Compiles all of them; what is said about each crate. The flags are those of `ours`, in which the
/// place of the sources stands: with others `core` would be compiled anew.
fn compile(
    ours: &Project,
    project: &Project,
    tried: &[Attack],
) -> Result<BTreeMap<String, String>> {
    let toolchain = setup::toolchain()?;
    let packages = packages::ours(project, &toolchain)?;
    let mut command = build::compiler(project, &toolchain, &packages)?;
    build::for_target(ours, &toolchain, &mut command);
    command.args(["--keep-going", "--message-format=json"]);
    command.args(["--package", "a-first"]);
    for attack in tried {
        command.args(["--package", attack.name]);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("cargo does not start")?;
    ensure!(!output.status.success(), "all of them were compiled");
    let mut decent = false;
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let text = message["message"]["rendered"].as_str().unwrap_or_default();
        decent |= name == "a_first" && message["reason"] == "compiler-artifact";
        *said.entry(name.replace('-', "_")).or_default() += text;
    }
    ensure!(
        decent,
        "a decent domain was not compiled: {:?}",
        said.get("a_first")
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in errors.lines() {
        let named = line
            .strip_prefix("error: ")
            .and_then(|line| line.split_once(": "));
        if let Some((name, text)) = named {
            *said.entry(name.to_string()).or_default() += text;
        }
    }
    Ok(said)
}
