//! `cargo xtask test`: the tests on the host, those inside the kernel, and those of the whole
//! system.
//!
//! The last line is `N passed, N failed` over all three, and over the campaigns if those were asked
//! for. Tests of the whole system are a table in the package `tests`, which runs as a program of
//! its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use lab::hosted::Results;
use machine::second;
use trefoil_gate::packages::{self, Package};
use trefoil_gate::project::Project;
use trefoil_gate::rules::{self, Zone};
use trefoil_gate::setup::{self, Toolchain};
use trefoil_gate::{build, guard, tool};

use self::inside::{ISOLATION, Inside, SELFTEST};
use self::notes::Notes;

mod all;
mod inside;
mod notes;

/// The tables of tests inside the machine.
const TABLES: [&Inside; 2] = [&SELFTEST, &ISOLATION];

/// What to test.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Only tests of the whole system whose name contains this, or one of the groups `host`,
    /// `kernel`, `isolation` (or a part of these: `host=ext2`, `isolation=attack`) and `hosted`
    pub name: Option<String>,
    /// Show the names of the tests of the whole system, and the groups
    #[arg(long)]
    pub list: bool,
    /// All tests, also the long ones, then the campaigns, some hours; with `--list`, show those
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
    /// Do not try a failed test a second time, by itself (decision 0028)
    #[arg(long)]
    pub once: bool,
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The command; its result is our exit status.
///
/// # Errors
/// If the tests cannot be run. Tests that fail are no error here.
pub fn test(project: &Project, options: &Options) -> Result<i32> {
    let toolchain = setup::toolchain()?;
    setup::machine()?;
    if options.list && options.all {
        all::listed().for_each(|line| println!("{line}"));
        return Ok(0);
    }
    if options.list {
        println!("host\nkernel\nisolation\nhosted");
        return system(project, &toolchain, &["--list"], &mut Notes::default()).map(|_| 0);
    }
    // Before tests that run side by side want it.
    if let Err(error) = setup::busybox() {
        eprintln!("no static busybox, so the tests `static-*` will fail: {error:#}");
    }
    let (mut count, mut notes) = (Count::default(), Notes::default());
    let (name, once) = (options.name.as_deref(), options.once);
    if let Some(name) = name.filter(|name| !is_group(name)) {
        expect_named(name, &system_names(project, &toolchain)?)?;
    }
    count.add(match name {
        None => all_groups(project, &toolchain, options, &mut notes)?,
        Some(name) => one_group(project, &toolchain, name, once, &mut notes)?,
    });
    if !name.is_some_and(is_group) {
        build::build(project, None)?;
        let flags = [(once, "--once"), (options.all, "--all")];
        let flags = flags
            .into_iter()
            .filter_map(|(is_set, flag)| is_set.then_some(flag));
        let arguments: Vec<_> = name.into_iter().chain(flags).collect();
        count.add(system(project, &toolchain, &arguments, &mut notes)?);
    }
    if options.all {
        count.add(all::run(project, &mut notes)?);
    }
    print!("{}", notes.text());
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(i32::from(count.failed > 0))
}

/// The tables of tests inside the machine that are meant by `name`, and the part of them.
fn tables(name: Option<&str>) -> Option<(&str, Vec<&'static Inside>)> {
    let meant = |tests: &&'static Inside| Some((part_of(tests.name, name)?, *tests));
    let (parts, tables): (Vec<_>, Vec<_>) = TABLES.iter().filter_map(meant).unzip();
    Some((*parts.first()?, tables))
}

/// The tests of the group that is asked for by `name`, if it is one.
fn one_group(
    project: &Project,
    toolchain: &Toolchain,
    name: &str,
    once: bool,
    notes: &mut Notes,
) -> Result<Count> {
    if let Some(package) = part_of("host", Some(name)) {
        return host(project, toolchain, package, notes);
    }
    if let Some((part, tables)) = tables(Some(name)) {
        let first = inside::first(project, &tables, part, &inside::PROCESSORS, notes)?;
        let inside = inside::second(first, part, once, notes)?;
        return match !part.is_empty() && inside == Count::default() {
            true => Err(no_test(part)),
            false => Ok(inside),
        };
    }
    match name {
        "hosted" => {
            let first = hosted(project, notes)?;
            hosted_again(project, first, once, notes)
        }
        _ => Ok(Count::default()),
    }
}

/// The tests of all groups, side by side. Those on the host are compiled and run while the rest is
/// built, of which much takes one processor alone: crate after crate of the kernel. Those in a
/// Linux process mostly wait, so they run beside those in the machine. What failed is tried again
/// when all of them have ended.
fn all_groups(
    project: &Project,
    toolchain: &Toolchain,
    options: &Options,
    notes: &mut Notes,
) -> Result<Count> {
    let processors = match options.all {
        true => inside::PROCESSORS.to_vec(),
        false => inside::drawn(project),
    };
    let built = |notes: &mut Notes| {
        build::build_for_tests(project)?;
        lab::hosted::build(project)?;
        let machine = |notes: &mut Notes| inside::first(project, &TABLES, "", &processors, notes);
        both(notes, machine, |notes| {
            let results = hosted(project, notes)?;
            // What comes next would be compiled while nothing else runs.
            let mut tests = toolchain.cargo(project);
            tool::run(tests.args(["build", "--quiet", "--package", "tests"]))?;
            Ok(results)
        })
    };
    let (mut count, (in_machine, in_process)) =
        both(notes, |notes| host(project, toolchain, "", notes), built)?;
    count.add(inside::second(in_machine, "", options.once, notes)?);
    count.add(hosted_again(project, in_process, options.once, notes)?);
    Ok(count)
}

/// Runs two groups of tests at the same time. Their failures are noted one after the other.
fn both<A, B: Send>(
    notes: &mut Notes,
    one: impl FnOnce(&mut Notes) -> Result<A>,
    other: impl FnOnce(&mut Notes) -> Result<B> + Send,
) -> Result<(A, B)> {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut notes = Notes::default();
            other(&mut notes).map(|results| (results, notes))
        });
        let one = one(notes);
        let Ok(other) = other.join() else {
            bail!("a group of tests panicked");
        };
        let (other, noted) = other?;
        notes.append(noted);
        Ok((one?, other))
    })
}

/// The tests in a Linux process; what failed is noted.
fn hosted(project: &Project, notes: &mut Notes) -> Result<Results> {
    let results = lab::hosted::test(project)?;
    results
        .failed
        .iter()
        .for_each(|why| notes.fail(&format!("hosted: {why}")));
    Ok(results)
}

/// All of them once more if some failed at `first`, unless `once`; nothing else may run now.
fn hosted_again(project: &Project, first: Results, once: bool, notes: &mut Notes) -> Result<Count> {
    let mut results = first;
    let failures = results.failed.iter().map(String::as_str);
    if !once && !results.failed.is_empty() && second::are_due(failures) {
        let second = lab::hosted::test(project)?;
        if second.failed.is_empty() {
            notes.unsteady("hosted");
            results = second;
        }
    }
    Ok(Count {
        passed: results.passed,
        failed: results.failed.len() as u32,
    })
}

/// Whether this asks for other tests than those of the whole system.
fn is_group(name: &str) -> bool {
    let divided = ["host", SELFTEST.name, ISOLATION.name];
    name == "hosted"
        || divided
            .iter()
            .any(|group| part_of(group, Some(name)).is_some())
}

/// The part of a group that is asked for, empty for all; `None` if it is not asked for.
fn part_of<'a>(group: &str, name: Option<&'a str>) -> Option<&'a str> {
    let Some(name) = name else { return Some("") };
    let rest = name.strip_prefix(group)?;
    match rest.is_empty() {
        true => Some(""),
        false => rest.strip_prefix('='),
    }
}

/// Fails if none of the tests in `names` is meant by `name`.
fn expect_named(name: &str, names: &[String]) -> Result<()> {
    match names.iter().any(|test| test.contains(name)) {
        true => Ok(()),
        false => Err(no_test(name)),
    }
}

fn no_test(name: &str) -> anyhow::Error {
    let text = format!("no test has `{name}` in its name; `cargo xtask test --list` shows all");
    tool::UsageError(text).into()
}

/// The unit tests of everything that can be built for the host, or of one package.
fn host(
    project: &Project,
    toolchain: &Toolchain,
    package: &str,
    notes: &mut Notes,
) -> Result<Count> {
    let packages = packages::ours(project, toolchain)?;
    let is_meant = |name: &str| package.is_empty() || name == package;
    let chosen: Vec<&Package> = packages
        .list
        .iter()
        .filter(|package| runs_on_the_host(project, package) && is_meant(&package.name))
        .collect();
    if chosen.is_empty() {
        let text = format!("no package `{package}` has tests that run on the host");
        return Err(tool::UsageError(text).into());
    }
    tool::step("testing on the host");
    let mut command = toolchain.cargo(project);
    command.args(["test", "--quiet", "--no-fail-fast"]);
    for package in chosen {
        command.args(["--package", &package.name]);
    }
    let mut count = Count::default();
    let succeeded = each_line(&mut command, |line| {
        let result = host_result(line);
        count.add(result.unwrap_or_default());
        notes.take(line);
        println!("{line}");
    })?;
    if !succeeded && count.failed == 0 {
        // Something did not even compile.
        count.failed = 1;
    }
    Ok(count)
}

/// Whether the package can be compiled for the host: it brings no panic handler of its own.
pub fn runs_on_the_host(project: &Project, package: &Package) -> bool {
    match rules::zone(project, package) {
        Zone::Library | Zone::Host | Zone::Abi | Zone::Interfaces | Zone::Runtime => true,
        Zone::Kernel => matches!(
            package.name.as_str(),
            "isolation" | "framework" | "services"
        ),
        Zone::Policy | Zone::Campaign => true,
        // Its tests call no function of the kernel, which is not there on the host.
        Zone::DomainLibrary => ["lanes", "respawn"].contains(&package.name.as_str()),
        Zone::Domain | Zone::Example | Zone::Foreign => false,
    }
}

/// The counts in a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
fn host_result(line: &str) -> Option<Count> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |what: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(what));
        part.and_then(|number| number.trim().parse().ok())
            .unwrap_or(0)
    };
    Some(Count {
        passed: number(" passed"),
        failed: number(" failed"),
    })
}

/// The names of the tests of the whole system.
fn system_names(project: &Project, toolchain: &Toolchain) -> Result<Vec<String>> {
    let mut command = toolchain.cargo(project);
    command.args(["run", "--quiet", "--package", "tests", "--", "--list"]);
    let names = tool::output(&mut command)?;
    Ok(names.lines().map(String::from).collect())
}

/// Runs the program of the package `tests`, whose last line has its counts.
fn system(
    project: &Project,
    toolchain: &Toolchain,
    arguments: &[&str],
    notes: &mut Notes,
) -> Result<Count> {
    tool::step("testing the whole system");
    let mut command = toolchain.cargo_with_key(project);
    command
        .args(["run", "--quiet", "--package", "tests", "--"])
        .args(arguments);
    // Some tests start this very tool.
    command.env("TREFOIL_XTASK", guard::own_copy(project, "tool")?);
    let mut count = None;
    each_line(&mut command, |line| match system_result(line) {
        Some(result) => count = Some(result),
        None => {
            notes.take(line);
            println!("{line}");
        }
    })?;
    match arguments.contains(&"--list") {
        true => Ok(Count::default()),
        false => Ok(count.unwrap_or(Count {
            passed: 0,
            failed: 1,
        })),
    }
}

fn system_result(line: &str) -> Option<Count> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some(Count {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    })
}

/// Runs `command`, giving each line of its standard output to `take`; whether it succeeded.
fn each_line(command: &mut Command, mut take: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let output = child.stdout.take().context("its output is piped")?;
    for line in BufReader::new(output).split(b'\n') {
        take(&String::from_utf8_lossy(&line?));
        std::io::stdout().flush()?;
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(
            host_result(line),
            Some(Count {
                passed: 3,
                failed: 1
            })
        );
        assert_eq!(host_result("running 3 tests"), None);
        assert_eq!(
            system_result("12 passed, 1 failed"),
            Some(Count {
                passed: 12,
                failed: 1
            })
        );
        assert_eq!(system_result("all passed"), None);
    }

    #[test]
    fn a_name_that_no_test_has_is_a_usage_error() {
        let names = ["limits-pipes", "shell-jobs"].map(String::from);
        assert!(expect_named("limits", &names).is_ok());
        let error = expect_named("nosuch", &names).expect_err("no such test");
        assert!(error.is::<tool::UsageError>(), "{error:#}");
        assert!(is_group("isolation=attack") && is_group("host") && !is_group("hosts"));
        assert!(is_group("hosted") && is_group("host=ext2"));
        assert_eq!(part_of("host", Some("host=ext2")), Some("ext2"));
        assert_eq!(part_of("host", Some("hosted")), None);
        assert!(is_group("kernel=user") && is_group("kernel") && !is_group("kernels"));
    }
}
