//! `cargo xtask COMMAND`: see `cargo xtask --help`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use lab::{bench, cuts, faults, fuzz, hosted, model, records, sanitize, steps, storms};
use trefoil_gate::project::Project;
use trefoil_gate::{build, guard, setup, signer, tool};
use xtask::{
    backtrace, check, debian, demo, doc, example, image, profile, run, symbols, tcb, test, trace,
};

/// Builds, runs, tests, checks and measures Trefoil
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_version_flag = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Find or install what is needed: compiler, QEMU, file system tools
    Setup,
    /// Build the kernel, the domains and the boot archive
    Build {
        /// Pack this manifest instead of images/default.toml
        #[arg(long, value_name = "FILE")]
        manifest: Option<std::path::PathBuf>,
    },
    /// Boot the system with its console in this terminal
    Run(run::Options),
    /// Boot the kernel in 100 lines (docs/guide/write-a-kernel.md)
    Example(example::Options),
    /// gdb on the dump of a domain
    Dump {
        /// What `trefoil dump` has written
        file: std::path::PathBuf,
        /// What gdb is called with besides
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// gdb on the machine that `run` has started in another terminal
    Gdb {
        /// What gdb is called with besides
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Boot the system, run a shell line, and write a time line of what all domains did
    Trace(trace::Options),
    /// Run all tests: on the host, inside the kernel, and of the whole system
    Test(test::Options),
    /// Check format, lints, folder rules and what domain code must not contain
    Check(check::Options),
    /// Show how much code is trusted: what may write `unsafe`, safe code in the kernel, tools
    Tcb(tcb::Options),
    /// Measure; without names, everything that can be measured
    Bench(bench::Options),
    /// Make a domain fail again and again under clients that check every result
    Faults(faults::Options),
    /// Feed a part of the system with damaged input: images, disks, `.idl` files, calls, programs
    Fuzz(fuzz::Options),
    /// Cut the power under work on files and check what is on the disk afterwards
    Cuts(cuts::Options),
    /// Crash the file system again and again under programs that use it, and check what they did
    Storms(storms::Options),
    /// Kill a domain at every instruction of a call, on the bare machine
    Steps(steps::Options),
    /// Check calls, deaths and the shared heap under many schedules
    Model(model::Options),
    /// Run tests on the host with AddressSanitizer and ThreadSanitizer
    Sanitize(sanitize::Options),
    /// Run domains in a Linux process; the arguments are those of `trefoil-host`
    Host(hosted::Options),
    /// Run a shell line in the booted system, and say in which functions the time went
    Profile(profile::Options),
    /// Make a disk image with Debian's own programs, of its packages
    Debian(debian::Options),
    /// Put kernel, domains, a disk of Debian's packages and a script that boots them into one file
    Image(image::Options),
    /// Record what Debian's own kernel answers to the scripts of tests/linux
    Record(records::Options),
    /// Print a kernel log that was kept, with the stacks of domains that died in words
    Backtrace(backtrace::Options),
    /// Put symbols on a disk, for `dmesg -b` inside the system
    Symbols(symbols::Options),
    /// Write the manual of the interfaces and the documentation of the crates as pages
    Doc,
    /// The interface compiler: `cargo xtask idlc help`
    Idlc {
        /// What it is to do
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// A tour of half a minute that needs no typing
    Demo,
}

fn main() -> ExitCode {
    if let Some(code) = signer::called().or_else(guard::called) {
        return code;
    }
    tool::end_with_the_reader();
    let project = Project::here();
    match execute(&project, Arguments::parse().command) {
        Ok(status) => ExitCode::from(u8::try_from(status & 0xff).unwrap_or(1)),
        Err(error) if tool::is_broken_pipe(&error) => ExitCode::from(tool::BROKEN_PIPE_STATUS),
        Err(error) => {
            eprintln!("error: {}", tool::plain(&format!("{error:#}")));
            match error.is::<tool::UsageError>() {
                true => ExitCode::from(tool::USAGE_STATUS),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// Runs the command; its result is the exit status.
fn execute(project: &Project, task: Task) -> Result<i32> {
    match task {
        Task::Setup => setup::setup().map(|()| 0),
        Task::Build { manifest } => build::build(project, manifest.as_deref()).map(|built| {
            println!("{}\n{}", built.kernel.display(), built.archive.display());
            0
        }),
        Task::Run(options) => run::run(project, &options),
        Task::Example(options) => example::example(project, &options),
        Task::Dump { file, arguments } => run::dump(project, &file, &arguments),
        Task::Gdb { arguments } => run::gdb(project, &arguments),
        Task::Trace(options) => trace::trace(project, &options),
        Task::Test(options) => test::test(project, &options),
        Task::Check(options) => check::check(project, &options),
        Task::Tcb(options) => tcb::tcb(project, &options).map(|()| 0),
        Task::Bench(options) => bench::bench(project, &options),
        Task::Faults(options) => faults::faults(project, &options),
        Task::Fuzz(options) => fuzz::fuzz(project, &options),
        Task::Cuts(options) => cuts::cuts(project, &options),
        Task::Storms(options) => storms::storms(project, &options),
        Task::Steps(options) => steps::steps(project, &options),
        Task::Model(options) => model::model(project, &options).map(|()| 0),
        Task::Sanitize(options) => sanitize::sanitize(project, &options).map(|()| 0),
        Task::Host(options) => hosted::host(project, &options),
        Task::Profile(options) => profile::profile(project, &options),
        Task::Debian(options) => debian::debian(project, &options).map(|()| 0),
        Task::Image(options) => image::image(project, &options).map(|()| 0),
        Task::Record(options) => records::record(project, &options),
        Task::Backtrace(options) => backtrace::backtrace(project, &options).map(|()| 0),
        Task::Symbols(options) => symbols::symbols(project, &options).map(|()| 0),
        Task::Doc => doc::doc(project).map(|()| 0),
        Task::Idlc { arguments } => doc::idlc(project, &arguments),
        Task::Demo => demo::demo(project),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// A builder with debug assertions refuses the whole command line where one option contradicts
    /// itself.
    #[test]
    fn all_options_agree_and_static_programs_have_their_name() {
        Arguments::command().debug_assert();
        let words = ["xtask", "run", "--static", "--exec", "true"];
        let parsed = Arguments::try_parse_from(words).map(|arguments| arguments.command);
        assert!(matches!(parsed, Ok(Task::Run(options)) if options.statics));
    }
}
