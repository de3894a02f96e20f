//! `cargo xtask sanitize`: tests on the host with AddressSanitizer and ThreadSanitizer.
//!
//! What runs: the scenes of calls, deaths and the shared heap on threads of Linux
//! (`kernel/isolation/src/model/stress.rs`), and the unit tests of the crates that hold the logic
//! of the framework and of isolation. The bare-metal core of the hosted platform itself cannot: the
//! sanitizers need a target that they know, and its own allocator. Leaks are not looked for: what a
//! domain owned when it died is never freed by its code.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use trefoil_gate::project::Project;
use trefoil_gate::setup::{self, Toolchain};
use trefoil_gate::tool;

/// What to look for.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only this one
    #[arg(value_enum)]
    pub sanitizer: Option<Sanitizer>,
    /// How often each scene runs
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub runs: u32,
}

/// A tool that watches what the compiled program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sanitizer {
    /// Memory that is used after it was freed, or beyond its end
    Address,
    /// Memory that two threads use at once
    Thread,
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Crates with logic of framework and isolation.
const CRATES: [&str; 14] = [
    "isolation",
    "abi",
    "framework",
    "policy",
    "buddy",
    "acpi-tables",
    "pipe",
    "restart",
    "pages",
    "services",
    "events",
    "clockpage",
    "requests",
    "deadlines",
];

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }

    /// The part of the runtime library's name.
    fn runtime(self) -> &'static str {
        match self {
            Sanitizer::Address => "_rt.asan.a",
            Sanitizer::Thread => "_rt.tsan.a",
        }
    }
}

/// The command.
///
/// # Errors
/// If the toolchain cannot, or something is found.
pub fn sanitize(project: &Project, options: &Options) -> Result<()> {
    let toolchain = setup::toolchain()?;
    let all = [Sanitizer::Address, Sanitizer::Thread];
    let wanted = |sanitizer: &Sanitizer| options.sanitizer.is_none_or(|only| only == *sanitizer);
    for sanitizer in all.into_iter().filter(wanted) {
        need_runtime(&toolchain, sanitizer)?;
        tool::step(format_args!(
            "testing with the {} sanitizer",
            sanitizer.name()
        ));
        run(project, &toolchain, sanitizer, options.runs)?;
    }
    Ok(())
}

/// Makes sure that the toolchain has the sanitizer's runtime library: rustup's have, Debian's have
/// not.
fn need_runtime(toolchain: &Toolchain, sanitizer: Sanitizer) -> Result<()> {
    let mut rustc = std::process::Command::new(toolchain.bin.join("rustc"));
    let folder = tool::output(rustc.args(["--print", "target-libdir", "--target", TARGET]))?;
    let folder = PathBuf::from(folder.trim());
    let files = folder
        .read_dir()
        .with_context(|| folder.display().to_string())?;
    let mut names = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned());
    if !names.any(|name| name.ends_with(sanitizer.runtime())) {
        bail!(
            "the toolchain in {} has no runtime of the {} sanitizer for {TARGET}; those of rustup have it",
            toolchain.bin.display(),
            sanitizer.name()
        );
    }
    Ok(())
}

fn run(project: &Project, toolchain: &Toolchain, sanitizer: Sanitizer, runs: u32) -> Result<()> {
    let name = sanitizer.name();
    let mut command = toolchain.cargo(project);
    command.args(["test", "--target", TARGET, "--lib", "--no-fail-fast"]);
    for package in CRATES {
        command.args(["--package", package]);
    }
    if sanitizer == Sanitizer::Thread {
        // Its shadow of the standard library's own atomics is needed, too.
        command.arg("-Zbuild-std");
    }
    // The model checker changes stacks on one thread, which the sanitizers cannot follow.
    command.args(["--", "--skip", "model::checks", "--skip", "tests::checks"]);
    command.args(["--skip", "tests::schedules"]);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={name}"))
        .env(
            "CARGO_TARGET_DIR",
            project.target.join(format!("sanitize-{name}")),
        )
        .env(
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=0",
        )
        .env("TSAN_OPTIONS", "halt_on_error=0:exitcode=66")
        .env("TREFOIL_STRESS_RUNS", runs.to_string());
    tool::run(&mut command)
}
