//! `cargo xtask debian`: a disk image with Debian's own programs.

use std::path::PathBuf;

use anyhow::Result;
use machine::{debian, preflight};
use trefoil_gate::project::Project;

/// Which packages, and whither.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The image to make; one that is there is replaced
    #[arg(value_name = "OUT.img")]
    pub image: PathBuf,
    /// The packages, which come with all that they depend on; without, what a shell needs
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',')]
    pub packages: Vec<String>,
    /// The size of the file system, such as 800M; the file takes what its content takes
    #[arg(long, value_name = "SIZE", default_value = debian::DEFAULT_SIZE)]
    pub size: String,
}

/// The command.
///
/// # Errors
/// If a package is not to be had, the files do not fit, or a machine uses the image.
pub fn debian(project: &Project, options: &Options) -> Result<()> {
    let packages = match options.packages.is_empty() {
        true => debian::owned(&debian::DEFAULT_PACKAGES),
        false => options.packages.clone(),
    };
    // A machine that runs from it would have its disk replaced.
    let _claim = match options.image.exists() {
        true => Some(preflight::claim(&options.image, false)?),
        false => None,
    };
    debian::make(project, &options.image, &packages, &options.size)?;
    println!("{}", options.image.display());
    Ok(())
}
