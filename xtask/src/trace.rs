//! `cargo xtask trace -- LINE`: boots the system, runs a shell line as `run --exec` does, and
//! writes a time line of what all domains did meanwhile.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use lab::hosted;
use lab::trace::{FILES, MarkKind, Recorder, Recording, Timeline, listing, traced, write};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::{observed, run};

/// What to trace, and where.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Put trace.json (Perfetto), trace.speedscope.json and trace.svg here; without this, into
    /// the folder `trace` of the out folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Besides, print each call that a domain of this name made or was asked on standard error
    #[arg(long, value_name = "NAME")]
    pub calls: Option<String>,
    /// The line, and where it runs.
    #[command(flatten)]
    pub observed: observed::Observed,
}

/// The command; its result is the exit status of the line.
///
/// # Errors
/// If there is no line, the files cannot be written, the system cannot be booted, or nothing was
/// traced.
pub fn trace(project: &Project, options: &Options) -> Result<i32> {
    let line = options.observed.line("trace")?;
    let usual = || project.out.join("trace");
    let folder = options.output.clone().unwrap_or_else(usual);
    // Now, and not after the line has run.
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let (status, recording) = match options.observed.hosted {
        true => hosted::watched(
            project,
            "--traced",
            &options.observed.line,
            Recorder::of_process,
            Recorder::end,
        )?,
        false => booted(project, options, &line, &folder)?,
    };
    if recording.events.is_empty() {
        bail!("nothing was traced: `calls traced` did not run; see above");
    }
    tool::step(format!("pairing {} events", recording.events.len()));
    let timeline = Timeline::of(&recording);
    write(&timeline, &line, &folder)?;
    eprint!("{}", told(&timeline, &recording));
    for name in FILES {
        eprintln!("    {}", folder.join(name).display());
    }
    if let Some(name) = &options.calls {
        eprint!("{}", listing::of(&timeline, name)?);
    }
    Ok(status)
}

/// Boots the system to run `line`: its status, and what was noted meanwhile.
fn booted(
    project: &Project,
    options: &Options,
    line: &str,
    folder: &Path,
) -> Result<(i32, Recording)> {
    let bytes = options.observed.bytes()?;
    let mut recorder = None;
    let status = run::run_with(project, &options.observed.boot(traced(line)), |machine| {
        let new = Recorder::start(&machine.kernel, bytes, &project.out)?;
        machine.memory_file = Some(new.file().to_path_buf());
        // Of its own, so that several may run at once.
        machine.log = folder.join("kernel.log");
        machine.errors = folder.join("errors");
        machine.meeting = None;
        recorder = Some(new);
        tool::step(format!(
            "running `{line}` on {} processors",
            machine.processors
        ));
        Ok(())
    })?;
    Ok((status, recorder.context("the machine was started")?.end()?))
}

/// What there is to see, for people.
fn told(line: &Timeline, recording: &Recording) -> String {
    let count = |kind| line.marked(kind).count();
    let mut text = format!(
        "    {} calls in {} ms; {} deaths, {} restarts, {} repeated requests\n",
        line.calls.len(),
        (line.to - line.from) / 1_000_000,
        count(MarkKind::Death),
        count(MarkKind::Restart),
        count(MarkKind::Repeat),
    );
    if recording.lost() != 0 {
        text += &format!(
            "warning: {} events are lost: the host was too slow to take them; the files say where\n",
            recording.lost()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &[&str]) -> Result<Options, clap::Error> {
        let words = ["trace"].into_iter().chain(words.iter().copied());
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn the_line_is_what_stands_behind_the_dashes() {
        let options = options(&["--processors", "4", "-o", "/t", "--", "ls", "-l"]).expect("right");
        assert_eq!(
            (options.observed.processors, options.observed.line.join(" ")),
            (4, "ls -l".into())
        );
        let boot = options.observed.boot(traced("ls -l"));
        assert_eq!(
            (boot.smp, boot.exec.as_deref()),
            (4, Some("calls traced; ls -l"))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(options(&["--processors", "9", "--", "ls"]).is_err());
        assert!(options(&["ls"]).is_err());
        assert!(options(&["--disk", "/d", "--no-disk", "--", "ls"]).is_err());
        let none = trace(&Project::here(), &options(&["--", " "]).expect("right"));
        let error = none.expect_err("there is no line");
        assert!(error.is::<tool::UsageError>(), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_said_before_anything_runs() {
        let options = options(&["-o", "/dev/null/trace", "--", "ls"]).expect("right");
        let error = trace(&Project::here(), &options).expect_err("no folder");
        assert!(error.to_string().contains("/dev/null/trace"), "{error}");
    }
}
