//! `cargo xtask symbols`: puts symbols on a disk, for `dmesg -b` inside the system.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use machine::{disk, preflight, tables};
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

/// Of what, and whither.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Images, such as ext2; without names, all. The kernel is always among them
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The raw disk image, with an ext2 file system, instead of the default one
    #[arg(long, value_name = "FILE")]
    pub disk: Option<PathBuf>,
    /// Into this folder, and not on a disk
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "disk")]
    pub output: Option<PathBuf>,
}

/// The command.
///
/// # Errors
/// If the system cannot be built, an image is not there, the disk is in use, or has no room.
pub fn symbols(project: &Project, options: &Options) -> Result<()> {
    let built = build::build(project, None)?;
    let own = project.out.join(format!("tables-{}", std::process::id()));
    let folder = options.output.as_ref().unwrap_or(&own);
    let made = tool::timed("making tables of symbols", || {
        tables::make(project, &built.kernel, &options.names, folder)
    });
    let ended = made.and_then(|made| {
        let bytes: u64 = made.iter().map(|table| table.length).sum();
        println!("{} files, {} KiB", made.len(), bytes.div_ceil(1024));
        if options.output.is_some() {
            return Ok(());
        }
        let disk = match &options.disk {
            Some(disk) => disk.clone(),
            None => disk::default(project)?,
        };
        let _claim = preflight::claim(&disk, false)?;
        tables::put(&disk, folder, &made)
    });
    if options.output.is_none() {
        // It is ours, or was never made.
        let _ = fs::remove_dir_all(own);
    }
    ended
}
