//! What `trace` and `profile` have in common: a shell line that is looked at from outside.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use machine::preflight;
use trefoil_gate::tool;

use crate::run;

/// The line, and the machine that runs it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Observed {
    /// Number of processors, 1 to 8
    #[arg(long, visible_alias = "smp", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub processors: u32,
    /// Use this raw disk image (any ext2 file system) instead of the default one
    #[arg(long, value_name = "FILE", conflicts_with = "no_disk")]
    pub disk: Option<PathBuf>,
    /// Let the system write also to a disk without a journal; otherwise it only reads it
    #[arg(long)]
    pub rw: bool,
    /// Boot without a disk
    #[arg(long)]
    pub no_disk: bool,
    /// Memory, such as 512M or 1.5G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = preflight::memory)]
    pub memory: String,
    /// Let the host's processor run the system directly
    #[arg(long)]
    pub kvm: bool,
    /// Boot with this manifest instead of images/default.toml; it grants `calls` the service
    /// `monitor`
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// End the system after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub timeout: u64,
    /// Domains in a Linux process in place of the system; behind `--` stands what `cargo xtask
    /// host` is given, such as `run domains/prober domains/victim`
    #[arg(long, conflicts_with_all = ["processors", "disk", "no_disk", "memory", "kvm", "manifest", "timeout"])]
    pub hosted: bool,
    /// The shell line to run, behind `--`
    #[arg(last = true, value_name = "LINE")]
    pub line: Vec<String>,
}

impl Observed {
    /// The line.
    ///
    /// # Errors
    /// If there is none: `what` can be done with one.
    pub fn line(&self, what: &str) -> Result<String> {
        let line = self.line.join(" ");
        if line.trim().is_empty() {
            let example = format!("cargo xtask {what} -- 'sha256sum /big'");
            let text = format!("there is no line to {what}; for example: {example}");
            bail!(tool::UsageError(text));
        }
        Ok(line)
    }

    /// The machine's memory in bytes.
    ///
    /// # Errors
    /// If it is not in MiB.
    pub fn bytes(&self) -> Result<u64> {
        let mib = self.memory.trim_end_matches('M').parse::<u64>();
        Ok(mib.context("memory is in MiB")? << 20)
    }

    /// How the system is booted to run `line`.
    pub fn boot(&self, line: String) -> run::Options {
        run::Options {
            exec: Some(line),
            rv6: true,
            disk: self.disk.clone(),
            rw: self.rw,
            no_disk: self.no_disk,
            no_net: true,
            smp: self.processors,
            memory: Some(self.memory.clone()),
            kvm: self.kvm,
            manifest: self.manifest.clone(),
            timeout: Some(self.timeout),
            ..run::Options::default()
        }
    }
}
