//! `cargo xtask profile -- LINE`: boots the system, runs a shell line as `run --exec` does, and
//! says in which functions the time went: of the kernel, of all domains and programs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use lab::hosted;
use lab::profile::{Profile, Sample, Sampler, profiled};
use machine::log;
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::{observed, run};

/// What to sample, and where.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Write the stacks here, folded, for flame graphs; without this, into profile.folded of the
    /// out folder
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Have the machine's clock count instructions, one to a nanosecond: slower, and what is
    /// measured does not depend on the host
    #[arg(long, conflicts_with_all = ["kvm", "hosted"])]
    pub icount: bool,
    /// The line, and where it runs.
    #[command(flatten)]
    pub observed: observed::Observed,
}

/// How many functions are shown.
const SHOWN: usize = 20;

/// The command; its result is the exit status of the line.
///
/// # Errors
/// If there is no line, the file cannot be written, the system cannot be booted, or nothing was
/// sampled.
pub fn profile(project: &Project, options: &Options) -> Result<i32> {
    let line = options.observed.line("profile")?;
    if options.icount && options.observed.processors > 1 {
        let text = "instructions are counted on one processor: leave --processors or --icount out";
        bail!(tool::UsageError(text.into()));
    }
    let usual = || project.out.join("profile.folded");
    let file = options.output.clone().unwrap_or_else(usual);
    // Now, and not after the line has run.
    fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
    let (status, samples, kernel) = match options.observed.hosted {
        true => {
            let (status, samples) = hosted::watched(
                project,
                "--profiled",
                &options.observed.line,
                Sampler::of_process,
                Sampler::end,
            )?;
            (status, samples, hosted::core_file(project))
        }
        false => booted(project, options, &line)?,
    };
    if samples.is_empty() {
        bail!(
            "nothing was sampled: the line was over within a tick, or `calls profiled` did not run; see above"
        );
    }
    let profile = Profile::of(&samples, &mut log::reader(&kernel));
    fs::write(&file, profile.text())?;
    eprint!("{}", told(&profile, options.icount));
    eprintln!("    {}", file.display());
    Ok(status)
}

/// Boots the system to run `line`: its status, what was sampled meanwhile, and its kernel.
fn booted(project: &Project, options: &Options, line: &str) -> Result<(i32, Vec<Sample>, PathBuf)> {
    let bytes = options.observed.bytes()?;
    let mut started = None;
    let boot = options.observed.boot(profiled(line));
    let status = run::run_with(project, &boot, |machine| {
        let sampler = Sampler::start(&machine.kernel, bytes, &project.out)?;
        machine.memory_file = Some(sampler.file().to_path_buf());
        machine.count_instructions = options.icount;
        machine.meeting = None;
        started = Some((sampler, machine.kernel.clone()));
        tool::step(format!("running `{line}`"));
        Ok(())
    })?;
    let (sampler, kernel) = started.context("the machine was started")?;
    Ok((status, sampler.end()?, kernel))
}

/// What there is to see, for people.
fn told(profile: &Profile, icount: bool) -> String {
    let all = match icount {
        true => format!("{} million instructions", profile.ns / 1_000_000),
        false => format!("{} ms", profile.ns / 1_000_000),
    };
    let mut text = format!(
        "    {} samples of {all}\n{}",
        profile.samples,
        profile.table(SHOWN)
    );
    if profile.lost != 0 {
        let lost = profile.lost;
        text += &format!("warning: {lost} samples are lost: the host was too slow to take them\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut options = Options {
            icount: true,
            ..Options::default()
        };
        let error = profile(&Project::here(), &options).expect_err("there is no line");
        assert!(error.is::<tool::UsageError>(), "{error}");
        options.observed.line = vec!["ls".into()];
        options.observed.processors = 2;
        let error = profile(&Project::here(), &options).expect_err("two processors");
        assert!(error.is::<tool::UsageError>(), "{error}");
        options.observed.processors = 1;
        options.output = Some("/dev/null/profile".into());
        let error = profile(&Project::here(), &options).expect_err("no file");
        assert!(error.to_string().contains("/dev/null/profile"), "{error}");
    }
}
