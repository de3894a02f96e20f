//! `cargo xtask test`: the tests on the host, those inside the kernel, and those of the whole
//! system.
//!
//! The last line is `N passed, N failed` over all three. Tests of the whole system are a table in
//! the package `tests`, which runs as a program of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::packages::{self, Package};
use trefoil_gate::project::Project;
use trefoil_gate::rules::{self, Zone};
use trefoil_gate::setup::{self, Toolchain};
use trefoil_gate::{build, guard, tool};

/// What to test.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Only tests of the whole system whose name contains this, or one of the groups `host`,
    /// `kernel`, `isolation` (or a part of these: `host=ext2`, `isolation=attack`) and `hosted`
    pub name: Option<String>,
    /// Show the names of the tests of the whole system, and the groups
    #[arg(long)]
    pub list: bool,
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

/// Numbers of processors that the kernel's own tests run with.
const PROCESSORS: [u32; 3] = [1, 2, 4];
const KERNEL_LIMIT: Duration = Duration::from_secs(480);

/// The command; its result is our exit status.
///
/// # Errors
/// If the tests cannot be run. Tests that fail are no error here.
pub fn test(project: &Project, options: &Options) -> Result<i32> {
    let toolchain = setup::toolchain()?;
    setup::machine()?;
    if options.list {
        println!("host\nkernel\nisolation\nhosted");
        return system(project, &toolchain, &["--list"]).map(|_| 0);
    }
    let mut count = Count::default();
    let name = options.name.as_deref();
    if let Some(name) = name.filter(|name| !is_group(name)) {
        expect_named(name, &system_names(project, &toolchain)?)?;
    }
    if let Some(package) = part_of("host", name) {
        count.add(host(project, &toolchain, package)?);
    }
    for tests in [&SELFTEST, &ISOLATION] {
        if let Some(part) = part_of(tests.name, name) {
            let inside = inside(project, tests, part)?;
            if !part.is_empty() && inside == Count::default() {
                return Err(no_test(part));
            }
            count.add(inside);
        }
    }
    if matches!(name, None | Some("hosted")) {
        let (passed, failed) = lab::hosted::test(project)?;
        count.add(Count { passed, failed });
    }
    if !name.is_some_and(is_group) {
        build::build(project, None)?;
        count.add(system(
            project,
            &toolchain,
            &name.into_iter().collect::<Vec<_>>(),
        )?);
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(i32::from(count.failed > 0))
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
fn host(project: &Project, toolchain: &Toolchain, package: &str) -> Result<Count> {
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
        Zone::Kernel => matches!(package.name.as_str(), "isolation" | "framework" | "faults"),
        Zone::Policy => true,
        // Its tests call no function of the kernel, which is not there on the host.
        Zone::DomainLibrary => package.name == "respawn",
        Zone::Domain | Zone::Foreign => false,
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

/// A table of tests that runs inside the booted machine and reports in the kernel's log.
struct Inside {
    /// What it is called in messages.
    name: &'static str,
    /// The word on the command line that asks for it.
    word: &'static str,
    /// What stands in front of a part of the names, in a word of its own.
    part: &'static str,
    /// What stands in front of a test's name in the log.
    mark: &'static str,
}

/// The framework's own tests.
const SELFTEST: Inside = Inside {
    name: "kernel",
    word: "selftest",
    part: "selftest=",
    mark: "] selftest ",
};

/// The isolation tests: the domain `prober` starts others that do harm.
const ISOLATION: Inside = Inside {
    name: "isolation",
    word: "root=domains/prober",
    part: "options=",
    mark: "] prober: test ",
};

/// Runs such a table with several numbers of processors, or only the tests that have `part` in
/// their name.
fn inside(project: &Project, tests: &Inside, part: &str) -> Result<Count> {
    let built = build::build_for_tests(project)?;
    let mut count = Count::default();
    for processors in PROCESSORS {
        tool::step(format_args!(
            "testing the {} on {processors} processors",
            tests.name
        ));
        let mut machine = Machine::new(
            &built.kernel,
            &project.out.join(format!("{}-{processors}", tests.name)),
        );
        machine.archive = Some(built.archive.clone());
        machine.processors = processors;
        // The first word that asks for tests is the one that counts.
        if !part.is_empty() {
            machine.words.push(format!("{}{part}", tests.part));
        }
        machine
            .words
            .extend([tests.word.into(), "panic=off".into()]);
        let mut session = Session::start(&machine, false)?;
        let ended = session.end(KERNEL_LIMIT);
        let log = session.guest.log();
        let mut result = log_results(&log, tests.mark);
        // What the machine counted itself, at the very end, must be what was read.
        let told = log.lines().rev().find_map(summary);
        if ended.is_err() || told != Some(result) {
            println!(
                "the machine did not end its tests properly\n{}",
                session.report()
            );
            result.failed += 1;
        }
        count.add(result);
    }
    Ok(count)
}

/// The counts in a line of the log such as `[    1.2] prober: 64 passed, 0 failed`.
fn summary(line: &str) -> Option<Count> {
    let (_, text) = line.split_once("] ")?;
    let text = text.rsplit_once(": ").map_or(text, |(_, text)| text);
    system_result(text.trim_end())
}

/// Counts the lines `MARK NAME ok` and `MARK NAME FAILED: why` of a log, and shows the latter.
fn log_results(log: &str, mark: &str) -> Count {
    let mut count = Count::default();
    for line in log
        .lines()
        .filter_map(|line| line.split_once(mark))
        .map(|(_, line)| line.trim_end())
    {
        if line.ends_with(" ok") {
            count.passed += 1;
        } else if line.contains(" FAILED") {
            count.failed += 1;
            println!("test {line}");
        }
    }
    count
}

/// The names of the tests of the whole system.
fn system_names(project: &Project, toolchain: &Toolchain) -> Result<Vec<String>> {
    let mut command = toolchain.cargo(project);
    command.args(["run", "--quiet", "--package", "tests", "--", "--list"]);
    let names = tool::output(&mut command)?;
    Ok(names.lines().map(String::from).collect())
}

/// Runs the program of the package `tests`, whose last line has its counts.
fn system(project: &Project, toolchain: &Toolchain, arguments: &[&str]) -> Result<Count> {
    tool::step("testing the whole system");
    let mut command = toolchain.cargo_with_key(project);
    command
        .args(["run", "--quiet", "--package", "tests", "--"])
        .args(arguments);
    // Some tests start this very tool.
    command.env("TREFOIL_XTASK", guard::own_copy(project)?);
    let mut count = None;
    each_line(&mut command, |line| match system_result(line) {
        Some(result) => count = Some(result),
        None => println!("{line}"),
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

    #[test]
    fn a_log_that_breaks_off_has_no_summary() {
        let line = "[    0.4] prober: 1 passed, 1 failed\r";
        let count = Count {
            passed: 1,
            failed: 1,
        };
        assert_eq!(summary(line), Some(count));
        assert_eq!(summary("[    0.4] 1 passed, 1 failed"), Some(count));
        assert_eq!(summary("[    0.4] PANIC: a queue"), None);
    }

    #[test]
    fn the_kernels_results_are_read_from_its_log() {
        let log = "[    0.1] Trefoil\r\n[    0.2] selftest frames ok\r\n[    0.3] selftest irq FAILED: late\r\n[    0.4] 1 passed, 1 failed\r\n";
        assert_eq!(
            log_results(log, SELFTEST.mark),
            Count {
                passed: 1,
                failed: 1
            }
        );
        assert_eq!(log_results("", SELFTEST.mark), Count::default());
    }
}
