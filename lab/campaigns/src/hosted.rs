//! `cargo xtask host`: builds the hosted platform and runs `trefoil-host` with the arguments given.
//!
//! The core is compiled for the bare machine, with the fingerprint and the key of the domain
//! images, which are the very files that the booted system uses; the launcher is compiled for
//! Linux.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::backtraces;
use crate::trace::Process;
use machine::{log, stacks};
use trefoil_gate::project::Project;
use trefoil_gate::{build, confine, keys, packages, setup, signer, stamp, tool};

/// Arguments of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Under gdb, in this terminal; `run` starts it there
    #[arg(long)]
    pub gdb: bool,
    /// What `trefoil-host` is called with, such as `run domains/prober domains/victim`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The launcher.
    pub launcher: PathBuf,
}

/// Folders whose change makes a new core necessary.
const CORE_SOURCES: [&str; 11] = [
    "abi/base",
    "domains/libs/line",
    "lab/faults",
    "hosted/core",
    "lib/system",
    "kernel/isolation",
    "kernel/proxies",
    "kernel/services",
    "abi/interfaces",
    "abi/idlc",
    "Cargo.toml",
];

/// Builds images, core and launcher.
///
/// # Errors
/// If something does not compile.
pub fn build(project: &Project) -> Result<Built> {
    build::build(project, None)?;
    let toolchain = setup::toolchain()?;
    core(project, &toolchain)?;
    let mut command = toolchain.cargo(project);
    command.args([
        "build",
        "--quiet",
        "--profile",
        "hosted",
        "--package",
        "hosted",
    ]);
    tool::run(&mut command)?;
    Ok(Built {
        launcher: project.target.join("hosted/trefoil-host"),
    })
}

/// The file of the core.
pub fn core_file(project: &Project) -> PathBuf {
    project.out.join("hosted-core")
}

/// Builds the core, unless nothing in it has changed.
fn core(project: &Project, toolchain: &setup::Toolchain) -> Result<()> {
    let core = core_file(project);
    let mark = project.out.join("hosted-core.stamp");
    let (fingerprint, key) = (
        build::fingerprint_now(project)?,
        signer::public_key(project)?,
    );
    let sources = stamp::of(&CORE_SOURCES.map(|name| project.root.join(name)));
    let wanted = format!("{sources:016x} {}\n", keys::hex(&fingerprint));
    if core.exists() && fs::read_to_string(&mark).unwrap_or_default() == wanted {
        return Ok(());
    }
    let packages = packages::ours(project, toolchain)?;
    let mut command = build::compiler(project, toolchain, &packages)?;
    command.env("TREFOIL_FINGERPRINT", keys::hex(&fingerprint));
    command.env("TREFOIL_PUBLIC_KEY", key);
    command.args(["--package", "hosted-core", "--bin", "hosted-core"]);
    tool::timed("building the hosted core", || tool::run(&mut command))?;
    fs::copy(build::products(project).join("hosted-core"), &core)
        .context("the core was not built")?;
    fs::write(mark, wanted)?;
    Ok(())
}

/// The command; the launcher's status.
///
/// # Errors
/// If it cannot be built or started.
pub fn host(project: &Project, options: &Options) -> Result<i32> {
    let built = build(project)?;
    if options.gdb {
        let mut command = debugged(project, &built, &[], &options.arguments)?;
        // In our place, so that Ctrl-C stops the program and not us.
        return Err(command.exec().into());
    }
    let mut command = launcher(project, &built);
    command.args(&options.arguments).stderr(Stdio::piped());
    let mut child = command.spawn().context("the launcher does not start")?;
    if let Some(log) = child.stderr.take() {
        copy_log(project, log);
    }
    Ok(child.wait()?.code().unwrap_or(1))
}

/// Runs the launcher with `arguments`, of which the first is `run`, while `look` takes what
/// `option` has it note; `take` is called when all is over, and the process still there. Its
/// status, and what was taken.
///
/// # Errors
/// If it cannot be built or started, or nobody may look into it.
pub fn watched<L, T>(
    project: &Project,
    option: &str,
    arguments: &[String],
    look: impl FnOnce(&Process, &Path) -> Result<L>,
    take: impl FnOnce(L) -> Result<T>,
) -> Result<(i32, T)> {
    let Some(("run", rest)) = arguments
        .split_first()
        .map(|(it, rest)| (it.as_str(), rest))
    else {
        let text = "behind `--` stands what `cargo xtask host` is given: run domains/NAME...";
        anyhow::bail!(tool::UsageError(text.into()));
    };
    let built = build(project)?;
    let file = project.out.join(format!("watched-{}", std::process::id()));
    let _ = fs::remove_file(&file);
    let mut command = launcher(project, &built);
    command.args(["run", option]).arg(&file).args(rest);
    command.stderr(Stdio::piped());
    let mut child = command.spawn().context("the launcher does not start")?;
    let (log, here) = (child.stderr.take(), project.clone());
    let log = thread::spawn(move || log.map(|log| copy_log(&here, log)));
    let looked = said(&file, &mut child, 1)?.map(|core| {
        let id = child.id();
        let looker = look(&Process { id, core }, &core_file(project))?;
        said(&file, &mut child, 2)?;
        take(looker)
    });
    // It waits for that.
    let _ = fs::remove_file(&file);
    let status = child.wait()?.code().unwrap_or(1);
    let _ = log.join();
    let taken = looked.context("the launcher ended before its core was there; see above")??;
    Ok((status, taken))
}

/// Waits until `file` has so many lines, or the process has ended; the number in its first.
fn said(file: &Path, child: &mut Child, lines: usize) -> Result<Option<u64>> {
    loop {
        // It is not there at first.
        let text = fs::read_to_string(file).unwrap_or_default();
        if text.matches('\n').count() >= lines {
            let first = text.lines().next().unwrap_or_default();
            return Ok(Some(u64::from_str_radix(first, 16)?));
        }
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Copies the core's log to our standard error, with stacks in words.
fn copy_log(project: &Project, log: impl Read) {
    let mut reader = log::reader(&core_file(project));
    let mut lines = BufReader::new(log);
    let mut line = Vec::new();
    while let Ok(1..) = lines.read_until(b'\n', &mut line) {
        let said = reader.lines(&String::from_utf8_lossy(&line));
        // Nothing can be done for a reader that has gone away.
        let _ = io::stderr().write_all(said.as_bytes());
        line.clear();
    }
}

/// Measures without goals and peers: `names` as for `trefoil-host bench`; its status.
///
/// # Errors
/// As for [`host`].
pub fn bench(project: &Project, names: &[String], json: bool) -> Result<i32> {
    let mut arguments = vec!["bench".to_string()];
    arguments.extend(json.then(|| "--json".to_string()));
    arguments.extend_from_slice(names);
    let gdb = false;
    host(project, &Options { gdb, arguments })
}

/// The launcher as a command, told where the build is. Domains run in its process, with nothing but
/// the language between them and what their user may do: it does not find the key.
pub fn launcher(project: &Project, built: &Built) -> Command {
    let mut command = confine::command(project, &built.launcher);
    command
        .env("TREFOIL_OUT", &project.out)
        .current_dir(&project.root);
    command
}

/// gdb, with the arguments `first`, on the launcher with `arguments`. It is confined as the
/// launcher is.
///
/// # Errors
/// If there is no gdb.
pub fn debugged(
    project: &Project,
    built: &Built,
    first: &[String],
    arguments: &[String],
) -> Result<Command> {
    let mut command = confine::command(project, &tool::need("gdb", "gdb")?);
    command
        .env("TREFOIL_OUT", &project.out)
        .current_dir(&project.root);
    stacks::with_script(&mut command)
        .args(first)
        .arg("--args")
        .arg(&built.launcher);
    command.args(arguments);
    Ok(command)
}

/// What came of the tests in a Linux process.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// How many passed.
    pub passed: u32,
    /// What failed, and how.
    pub failed: Vec<String>,
}

impl Results {
    /// Counts a line such as `test NAME ok` or `test NAME FAILED: why`, and shows it.
    fn take(&mut self, line: &str) {
        let line = &*tool::plain(line);
        println!("{line}");
        if line.contains(" FAILED") {
            self.failed.push(line.to_string());
        } else if line.contains(" ok") {
            self.passed += 1;
        }
    }
}

/// Runs the isolation tests in a Linux process, the steps, and the example of the guide to
/// plug-ins.
///
/// # Errors
/// If they cannot be built or started.
pub fn test(project: &Project) -> Result<Results> {
    let built = build(project)?;
    tool::step("testing in a Linux process");
    let mut results = Results::default();
    let mut prober = launcher(project, &built);
    prober.args(["run", "domains/prober", "domains/victim"]);
    prober.args(["domains/nullnet", "domains/net-shadow", "domains/forwarder"]);
    let output = tool::captured(&mut prober)?;
    let mut reader = log::reader(&core_file(project));
    let text = reader.lines(&String::from_utf8_lossy(&output.stderr));
    let told = text.lines().filter_map(|line| line.split_once(" prober: "));
    for (_, result) in told.filter(|(_, result)| result.starts_with("test ")) {
        results.take(result);
    }
    for (name, judged) in backtraces::judge(&text, &project.root) {
        if let Err(error) = judged {
            results.passed = results.passed.saturating_sub(1);
            results.take(&format!("test {name} FAILED: {error:#}"));
        }
    }
    if !output.status.success() && results.failed.is_empty() {
        results.take(&broken_off("the prober", &output));
    }
    let output = tool::captured(launcher(project, &built).arg("steps"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let steps: Vec<_> = text
        .lines()
        .filter_map(|line| Some(&line[line.find("test step-")?..]))
        .collect();
    steps.iter().for_each(|line| results.take(line));
    if steps.is_empty() {
        results.take(&broken_off("the steps", &output));
    }
    let example = if example(project)? { "ok" } else { "FAILED" };
    results.take(&format!("test plug-ins-live-update {example}"));
    Ok(results)
}

/// The line for tests that did not come to their end, with the last that was printed.
fn broken_off(what: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(5)..].join("\n");
    format!("test {what} FAILED: {}\n{last}", output.status)
}

/// Runs the example of the guide to plug-ins; whether all went as the guide says.
fn example(project: &Project) -> Result<bool> {
    let mut command = setup::toolchain()?.cargo(project);
    command.args([
        "run",
        "--quiet",
        "--profile",
        "hosted",
        "--package",
        "hosted",
        "--example",
        "filter",
        "--",
    ]);
    command.arg(&project.out).arg("1000");
    Ok(tool::captured(&mut command)?.status.success())
}
