//! `cargo xtask model`: calls, deaths and the shared heap under many more schedules than `make
//! test` tries.
//!
//! The scenes, and what the model assumes, are in `kernel/isolation/src/model`.

use anyhow::Result;

use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// Which schedules.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only scenes whose name contains this
    pub scene: Option<String>,
    /// Schedules for each scene: as many at random, and as many by the PCT algorithm
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub rounds: u64,
    /// What the schedules depend on
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// The command.
///
/// # Errors
/// If a scene fails under some schedule, which is printed.
pub fn model(project: &Project, options: &Options) -> Result<()> {
    let toolchain = setup::toolchain()?;
    let mut command = toolchain.cargo(project);
    command
        .args(["test", "--release", "--package", "isolation", "--lib", "--"])
        .arg(format!(
            "model::checks::{}",
            options.scene.as_deref().unwrap_or("")
        ))
        .env("TREFOIL_MODEL_ROUNDS", options.rounds.to_string())
        .env("TREFOIL_MODEL_SEED", options.seed.to_string());
    tool::run(&mut command)
}
