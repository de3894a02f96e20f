//! `cargo xtask example`: boots the kernel of `kernel/example`, which is the framework without
//! domains, and has it run programs in ring 3.

use std::time::Duration;

use anyhow::Result;
use machine::qemu::Machine;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup};

use crate::run;

/// What it runs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Programs to run one after the other: hello, pointers, peek, wild, halt
    #[arg(value_name = "PROGRAM", default_value = "hello",
          value_parser = ["hello", "pointers", "peek", "wild", "halt"])]
    pub programs: Vec<String>,
    /// Show the kernel's log on standard error
    #[arg(long)]
    pub log: bool,
}

/// The command; its result is the status of the last program, which is our exit status.
///
/// # Errors
/// If the kernel cannot be built or booted.
pub fn example(project: &Project, options: &Options) -> Result<i32> {
    setup::machine()?;
    let kernel = build::build_example(project)?;
    let mut machine = Machine::new(&kernel, &project.out);
    machine.words.push("panic=off".into());
    machine.words.extend(options.programs.iter().cloned());
    let limit = Duration::from_secs(run::DEFAULT_TIMEOUT);
    run::attend(&machine, limit, options.log)
}
